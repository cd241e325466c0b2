"""The public surface: `differentiable` kernels, and `autodiff` of a kernel with its stub."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, ParamSpec, overload

from triton.runtime.jit import KernelInterface

from .errors import ArgumentError, KernelTypeError
from .kernels import naming
from .kernels.order import Outermost
from .launching.options import DEFAULT, Options
from .storage.tensors import is_of
from .surface.kernel import DifferentiableKernel
from .surface.operation import Op

P = ParamSpec("P")


class _Later:
    """A differentiable kernel without its kernel yet, which it gets as a decorator."""

    def __repr__(self):
        return "<the function below>"


_LATER: Any = _Later()


def _given(tape_limit, deterministic, backward, autotune, order) -> dict:
    return {
        "tape_limit": tape_limit,
        "deterministic": deterministic,
        "backward": backward,
        "autotune": autotune,
        "order": order,
    }


def _with_options(kernel, given):
    """Return a kernel without our wrapper, and its options: the given ones and those it had."""
    if is_of(kernel, "torch._higher_order_ops.triton_kernel_wrap", "TraceableTritonKernelWrapper"):
        # Our launches do what `torch.library.wrap_triton` is for.
        kernel = kernel.kernel
    if isinstance(kernel, DifferentiableKernel):
        return kernel._kernel, Options.checked(kernel._resolver.options, **given)
    return kernel, Options.checked(DEFAULT, **given)


@overload
def differentiable(
    kernel: Any,
    *,
    tape_limit: int | None = None,
    deterministic: bool | None = None,
    backward: dict[str, Any] | None = None,
    autotune: bool | None = None,
    order: int | None = None,
) -> DifferentiableKernel: ...


@overload
def differentiable(
    *,
    tape_limit: int | None = None,
    deterministic: bool | None = None,
    backward: dict[str, Any] | None = None,
    autotune: bool | None = None,
    order: int | None = None,
) -> Callable[[Any], DifferentiableKernel]: ...


def differentiable(
    kernel=_LATER,
    *,
    tape_limit=None,
    deterministic=None,
    backward=None,
    autotune=None,
    order=None,
):
    """Make every launch of a Triton kernel an autograd node; a decorator or a function.

    `kernel` is decorated with `@triton.jit`, under `@triton.autotune` and `@triton.heuristics` if
    need be. Tensors that a launch writes to become functions of those that it reads. Without a
    kernel, it returns a decorator.

    `tape_limit` is how many bytes a backward may take for what loops carry between iterations
    before it runs some of them twice. With `deterministic=True` a backward gives the same bits in
    every run, and what would need atomics is an error; by default, PyTorch's
    `use_deterministic_algorithms` decides. `backward` holds launch options of the backward
    kernels, like `{"num_warps": 8, "num_stages": 3}`. With `autotune=True` the first backward
    measures which are best. With `order=2` a launch keeps all that it reads, for second and higher
    derivatives: without, these are errors where an input is gone or has changed.
    """
    given = _given(tape_limit, deterministic, backward, autotune, order)
    if kernel is _LATER:
        return functools.partial(differentiable, **given)
    if isinstance(kernel, DifferentiableKernel) and all(v is None for v in given.values()):
        return kernel
    return DifferentiableKernel(*_with_options(kernel, given))


def _with_stub(function: Callable[P, Op]) -> Callable[P, Op]:
    """Check that the first argument is a kernel, and the second a stub."""

    @functools.wraps(function)
    def call(*args: P.args, **kwargs: P.kwargs) -> Op:
        if len(args) < 2 and "stub" not in kwargs:
            raise KernelTypeError(
                "autodiff(kernel, stub) needs a stub, the function that allocates and launches: "
                "def stub(kernel, x): y = torch.empty_like(x); kernel[grid](x, y, …); return y. "
                "The kernel alone is made differentiable by differentiable(kernel)"
            )
        return function(*args, **kwargs)

    return call


@_with_stub
def autodiff(
    kernel: Any,
    stub: Callable[..., Any],
    grid: Any = None,
    idx_upstream: int | None = None,
    non_stub_args_idxs: list[int] | tuple[int, ...] | None = None,
    post_process_fn: Callable[..., Any] | None = None,
    *,
    tape_limit: int | None = None,
    deterministic: bool | None = None,
    backward: dict[str, Any] | None = None,
    autotune: bool | None = None,
    order: int | None = None,
) -> Op:
    """Return `stub` as a differentiable operation: `op(*args)` is `stub(kernel, *args)`.

    Nothing but kernel and stub is needed. The options are those of `differentiable`. The other
    parameters serve code written for an earlier form: `grid` (the stub's launches decide),
    `idx_upstream` (the kernel parameter that the upstream gradient belongs to; checked),
    `non_stub_args_idxs` (the tensors that the stub makes itself; found by analysis), and
    `post_process_fn`, which is applied to the gradients of the stub's tensors before autograd
    receives them.
    """
    given = _given(tape_limit, deterministic, backward, autotune, order)
    if not callable(stub) or isinstance(stub, (Outermost, KernelInterface, type)):
        hint = ": the kernel comes first" if isinstance(stub, KernelInterface) else ""
        raise KernelTypeError(f"stub should be a function of (kernel, *args), got {stub!r}{hint}")
    kernel, options = _with_options(kernel, given)
    if post_process_fn is not None and not callable(post_process_fn):
        raise KernelTypeError(f"post_process_fn should be a function, got {post_process_fn!r}")
    op = Op(kernel, stub, idx_upstream, post_process_fn, options)
    count = len(op.kernel._resolver.function.arg_names)
    indices = {
        "idx_upstream": () if idx_upstream is None else (idx_upstream,),
        "non_stub_args_idxs": non_stub_args_idxs or (),
    }
    for name, value in indices.items():
        if not isinstance(value, (tuple, list)) or any(type(i) is not int for i in value):
            raise KernelTypeError(f"{name} should hold argument indices, got {value!r}")
        if any(not 0 <= i < count for i in value):
            raise ArgumentError(
                f"{name}={value!r}: the kernel has {count} parameters, 0 to {count - 1}"
            )
    return op


naming.surface = naming.Surface(DifferentiableKernel, Op, Options)
