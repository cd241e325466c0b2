"""PyTorch's tracers during a launch: which one is active, and whether it records the launch.

Tracers record operations of PyTorch, and a launch becomes one (`graphs/launch.py`). Dynamo reads
code; what it must not read runs between two graphs. Tracers that do not record operators
(`torch.jit.trace`, `torch.fx.symbolic_trace`) would make a graph without the launch, so that is an
error.
"""

from __future__ import annotations

import functools

import torch

from ..errors import AutodiffError

_MODES = {
    torch._C._TorchDispatchModeKey.PROXY: "make_fx, or what uses it (torch.export, say)",
    torch._C._TorchDispatchModeKey.FUNCTIONAL: "AOTAutograd, or another functionalization",
    torch._C._TorchDispatchModeKey.FAKE: "a FakeTensorMode",
}
# Excluded below autograd, where nothing has a history.
AUTOGRAD = torch._C.DispatchKey.AutogradFunctionality
_PRE_DISPATCH = torch._C.DispatchKey.PreDispatch
_modes = torch._C._len_torch_dispatch_stack
_is_tracing = torch._C._is_tracing
_is_included = torch._C._dispatch_tls_is_dispatch_key_included
_frames = torch._C._dynamo.eval_frame
# Returns what Dynamo reads frames with, None where it is not active.
_reader = _frames.get_eval_frame_callback
_transforms = torch._C._functorch.get_interpreter_stack
_FUNCTIONALIZE = torch._C._functorch.TransformType.Functionalize


# PyTorch's message if such a launch breaks a graph that has to be whole.
NOT_IN_GRAPHS = (
    "no graph can hold this launch: its kernel is interpreted, or is under a wrapper that may "
    "launch anything. Differentiate what the wrapper holds, or leave the launch between two "
    "graphs, as torch.compile does without fullgraph=True"
)


def outside_of_dynamo(function, instead=None, reason: str | None = None):
    """Return a function that Dynamo does not read, nor anything that it calls.

    Triton's compiler fails if it is traced. Dynamo reads `instead`, if that is given, and shows the
    `reason` if it has to.
    """
    disabled = None

    @functools.wraps(function)
    def call(*args, **kwargs):
        nonlocal disabled
        if instead is not None and torch.compiler.is_dynamo_compiling():
            return instead(*args, **kwargs)
        # Nothing reads what runs now. Importing Dynamo takes time, so it is not imported here.
        if _reader() is None:
            return function(*args, **kwargs)
        if disabled is None:
            disabled = torch.compiler.disable(function)
        return disabled(*args, **kwargs)

    # Dynamo breaks its graph at a call of this function, and does not compile the function. It
    # remembers that by the function's code, so this one gets a code of its own.
    call.__code__ = call.__code__.replace(co_name=function.__qualname__)
    if instead is None:
        call._torchdynamo_disable = True
        call._torchdynamo_disable_msg = reason
    skip = _frames._FrameExecStrategy(_frames._FrameAction.SKIP, _frames._FrameAction.DEFAULT)
    _frames.set_code_exec_strategy(call.__code__, skip)
    return call


def _recorder() -> str | None:
    """Return the active tracer that records operators, in words; None if there is none."""
    if _modes():
        for key, tracer in _MODES.items():
            if torch._C._get_dispatch_mode(key) is not None:
                return tracer
    if _is_included(_PRE_DISPATCH):
        return "torch.export, or another tracer before dispatch,"
    for transform in _transforms() or ():
        if transform.key() == _FUNCTIONALIZE:
            return "torch.func.functionalize"
    return None


def is_quiet() -> bool:
    """Whether nothing is active that may look at PyTorch's operations: no tracer, dispatch mode or
    transform.
    """
    return not (_modes() or _is_included(_PRE_DISPATCH) or _transforms() or _is_tracing())


def is_traced() -> bool:
    """Whether a tracer is active that records operators."""
    return _recorder() is not None


def is_recorded(name: str) -> bool:
    """Whether a tracer is active that records a launch of kernel `name`; raises for other
    tracers.
    """
    if _recorder() is not None:
        return True
    if _is_tracing():
        raise _without_operators(name, "torch.jit.trace")
    return False


def refuse_tracers(name: str, reason: str = NOT_IN_GRAPHS) -> None:
    """Raise if any tracer is active, for a launch of kernel `name` that none can record."""
    if is_recorded(name):
        raise AutodiffError(f"kernel {name!r} is launched in {_recorder()}: {reason}")


def refuse_proxy(name: str, value) -> None:
    """Raise if an argument of kernel `name` is a proxy of `torch.fx`."""
    if isinstance(value, torch.fx.Proxy):
        raise _without_operators(name, "torch.fx.symbolic_trace")


def _without_operators(name: str, tracer: str) -> AutodiffError:
    return AutodiffError(
        f"kernel {name!r} is launched while {tracer} records a graph, in which the launch would be "
        "missing: keep the launch out of what is traced, or use torch.compile or torch.export, in "
        "whose graphs it is an operator"
    )
