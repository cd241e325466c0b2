"""Plain launches in a stub that Dynamo reads.

PyTorch hides from autograd what a plain kernel writes, so a graph would have a wrong gradient.
Where that may be, Dynamo breaks its graph: the operation runs as it does without a graph, and its
launches are checked (`launching/plain_launches.py`).
"""

from __future__ import annotations

import functools
import sys

import torch

Tensor = torch.Tensor
# Importing Dynamo takes time, so it is not imported here.
_VARIABLES = "torch._dynamo.variables.functions"
# The code objects of functions that call stubs.
runs_stubs: set = set()


def teach_dynamo() -> None:
    """Let Dynamo look at plain launches in the stubs of operations."""
    functions = sys.modules.get(_VARIABLES)
    caller = getattr(functions, "DynamoTritonHOPifier", None)
    if caller is None or hasattr(caller.call_HOP, "sees_stubs"):
        return
    plain = caller.call_HOP

    @functools.wraps(plain)
    def call_HOP(self, variable, grids, combined_args, tx):
        if torch.is_grad_enabled() and _is_in_stub(tx):
            _look_at(variable, combined_args, tx)
        return plain(self, variable, grids, combined_args, tx)

    call_HOP.sees_stubs = True
    caller.call_HOP = call_HOP


# Dynamo calls the function while it reads a stub.
teach_dynamo._dynamo_marked_constant = True


def _is_in_stub(tx) -> bool:
    while tx is not None:
        if tx.f_code in runs_stubs:
            return True
        tx = getattr(tx, "parent", None)
    return False


def _look_at(variable, combined_args, tx) -> None:
    """Break the graph if a launch may change a gradient."""
    from torch._dynamo.exc import unimplemented

    values = {name: _example(value) for name, value in combined_args.items()}
    tensors = {name: value for name, value in values.items() if isinstance(value, Tensor)}
    name = variable.kernel.fn.__name__
    written = _written(variable.kernel, values, tensors)
    read_again = _read_again(tx)
    sources = [n for n, t in tensors.items() if t.requires_grad]
    for n in written:
        tensor = tensors[n]
        if tensor.requires_grad or _storage(tensor) in read_again:
            why = f"writes argument {n!r}, which has a history, or which a backward reads again"
        elif sources and tensor.is_floating_point():
            why = f"reads argument {sources[0]!r}, which has a history, and writes to {n!r}"
        else:
            continue
        unimplemented(
            gb_type="plain launch of a Triton kernel in a stub",
            context=f"kernel {name!r}",
            explanation=f"kernel {name!r} is launched in a stub, and not differentiated: it {why}",
            hints=[
                f"Launch differentiable({name}) in its place, or give it a detach() or clone() of "
                "the tensor where no gradient is wanted."
            ],
        )


def _example(value):
    """Return what Dynamo knows of an argument: a fake tensor, or a constant."""
    tensor = value.get_tensor() if hasattr(value, "get_tensor") else value
    if hasattr(tensor, "as_proxy") and not tensor.is_python_constant():
        proxy = tensor.as_proxy()
        return proxy.node.meta.get("example_value") if hasattr(proxy, "node") else proxy
    return value.as_python_constant()


def _written(kernel, values, tensors) -> list[str]:
    """Return the names of tensors that a kernel writes; of all, if that is not known."""
    from torch._higher_order_ops import triton_kernel_wrap

    table = triton_kernel_wrap.kernel_side_table
    constants = {n: value for n, value in values.items() if n not in tensors}
    try:
        numbers = table.add_kernel(kernel), table.add_constant_args(constants)
        return triton_kernel_wrap.get_mutated_tensors(*numbers, tensors, {})
    except Exception:
        return list(tensors)


def _read_again(tx) -> set[int]:
    """Return the storages of tensors that the backwards of launches in the graph read again."""
    from .operator import NAMESPACE, rereads

    found = set()
    for node in tx.output.graph.nodes:
        space, _, name = str(node.target).partition(".")
        if node.op == "call_function" and space == NAMESPACE:
            for place in rereads(name.removesuffix(".default")):
                value = node.args[0][place].meta.get("example_value")
                if isinstance(value, Tensor):
                    found.add(_storage(value))
    return found


def _storage(tensor: Tensor) -> int:
    return tensor.untyped_storage()._cdata
