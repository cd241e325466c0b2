"""Exported modules: what makes one, runs it beside the operation, and compares."""

import importlib.util
import subprocess
import sys

import torch


def module_at(path):
    """Import a file."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def adds_atomically(plan) -> bool:
    """Whether programs of a plan's kernels add to one element, or take the gradient of one that
    several have stored, in an order that differs.
    """
    atomic = ("tt.atomic_rmw fadd", "tt.atomic_rmw exch")
    return any(text in kernel.ttir for kernel in plan.kernels for text in atomic)


def exported(op, path, *args):
    """Return the function of a module to which an operation was exported."""
    return getattr(module_at(op.export(path / "exported.py", *args)), op.stub.__name__)


def run(function, args):
    """Return the output of a function and the gradients of its arguments."""
    leaves = [
        a.detach().clone(memory_format=torch.preserve_format).requires_grad_(a.requires_grad)
        if isinstance(a, torch.Tensor)
        else a
        for a in args
    ]
    outputs = function(*leaves)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    torch.manual_seed(5)
    upstream = [torch.randn(y.shape).to(y) for y in outputs]
    torch.autograd.backward(outputs, upstream)
    grads = [a.grad for a in leaves if isinstance(a, torch.Tensor) and a.requires_grad]
    return [*(y.detach() for y in outputs), *grads]


def compare(op, twin, args, exact=True) -> bool:
    """Run both; returns False if the exported one refuses."""
    try:
        theirs = run(twin, args)
    except AssertionError:
        return False
    for mine, other in zip(run(op, args), theirs, strict=True):
        if exact:
            assert torch.equal(mine, other)
        else:
            torch.testing.assert_close(other, mine)
    return True


def assert_other_sizes(op, path, arguments, exact=True) -> None:
    """Export for the first of some arguments; others are equal, at least three, or refused."""
    arguments = iter(arguments)
    first = next(arguments)
    run(op, first)
    twin = exported(op, path, *first)
    assert compare(op, twin, first, exact)
    taken = [compare(op, twin, args, exact) for args in arguments]
    assert sum(taken) >= 3, taken


def assert_other_layouts(op, twin, others, *rest) -> None:
    """Run both with others in place of the first argument: equal to the bit, or refused."""

    def found(function, other):
        leaf = other.detach().requires_grad_()
        y = function(leaf, *rest)
        y = y[0] if isinstance(y, tuple) else y
        return y, torch.autograd.grad(y.sum(), leaf)[0]

    for other in others:
        try:
            theirs = found(twin, other)
        except AssertionError:
            continue
        for mine, their in zip(found(op, other), theirs, strict=True):
            torch.testing.assert_close(their, mine, rtol=0, atol=0)


def tensors(*shapes, dtype=torch.float32, device="cpu"):
    """Return tensors that want gradients."""
    return [torch.randn(*s, dtype=dtype, device=device, requires_grad=True) for s in shapes]


def passes_ruff(path) -> None:
    """Raise if a module has faults, or is formatted otherwise than ruff would."""
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--isolated", path], check=True)
    columns = ("--line-length", "100")
    subprocess.run([*ruff, "format", "--isolated", *columns, "--diff", path], check=True)
