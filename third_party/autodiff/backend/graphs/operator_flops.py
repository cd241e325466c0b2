"""How many floating-point operations operators need, for PyTorch's counter (launching/flops.py)."""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensor
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode, register_flop_formula

from ..errors import AutodiffError
from ..launching.flops import of_backward, of_launch
from ..launching.nodes import recording_history
from ..launching.state import KernelState
from ..support.ambient import undrawn

Tensor = torch.Tensor


def count(op, args, kwargs, wanted=None) -> int:
    """Return the operations of a call, or of the gradients that are wanted.

    `op` has a `kernel`, and a `preview` of its launches.
    """
    leaves = tree_leaves(args)
    places = {id(leaves[n]) for n in wanted} if wanted is not None else None

    def prepared(value):
        if not isinstance(value, Tensor):
            return value
        needed = value.is_floating_point() if places is None else id(value) in places
        return value.detach().requires_grad_(needed)

    if any(isinstance(leaf, FakeTensor) for leaf in leaves):
        raise _without_memory(op)
    launches = []

    with torch.enable_grad(), recording_history():
        op.preview(tree_map(prepared, args), kwargs, lambda *launch: launches.append(launch))
    found = 0
    for launch, execution in launches:
        state = KernelState.of(launch.kernel, launch.function, op.kernel._resolver.options)
        given = state.spec.flatten(launch.values)
        if wanted is None:
            found += of_launch(state.spec, launch.grid, given)
        elif execution is not None:
            found += of_backward(execution.backward, given)
    return found


def count_again(op, function, args) -> int:
    """Return the operations of a function of an operator that launches kernels on copies: it runs
    again.
    """
    if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves(args)):
        raise _without_memory(op)
    with FlopCounterMode(display=False) as counter:
        function(*args)
    return counter.get_total_flops()


def _without_memory(op) -> AutodiffError:
    return AutodiffError(
        f"the products of {op!r} are counted for tensors with memory, and these are fake: "
        "count a call outside of a FakeTensorMode"
    )


def register_formulas(op, histories, forward, keeping, backward) -> None:
    """Tell PyTorch's counter the operations of a registered operator and its gradients.

    To count those of the forward, the stub runs again, with kernels that launch nothing.
    """

    @register_flop_formula(forward, get_raw=True)
    def count_forward(*args, out_val=None, **kwargs):
        with undrawn():
            return count(op, args, kwargs)

    @register_flop_formula(keeping, get_raw=True)
    def count_keeping(wanted, without, cast, /, *args, out_val=None, **kwargs):
        with undrawn():
            return count(op, args, kwargs)

    @register_flop_formula(backward, get_raw=True)
    def count_backward(upstream, given, results, kept, number, *layouts, out_val=None):
        if any(isinstance(leaf, FakeTensor) for leaf in tree_leaves((upstream, kept))):
            raise _without_memory(op)
        launches = histories.find(number or kept[-1].shape[0]).executions()
        return sum(of_backward(execution.backward, scalars) for execution, scalars in launches)
