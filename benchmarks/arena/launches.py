"""One wrapper, two backwards: the authors' own, and ours of the same forward.

A package's `autograd.Function` is used as it is for the authors' gradients. For ours its `forward`
runs under autograd, with every launch `differentiable`, wherever the wrapper applies it: PyTorch
code around is differentiated by PyTorch on both sides.
"""

from __future__ import annotations

import contextlib
import sys
import types
from collections.abc import Iterable, Mapping

import torch
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import KernelInterface
from triton_autodiff import differentiable


class Context:
    """Takes what a `Function.forward` leaves for its backward, and forgets it."""

    def __init__(self, arguments):
        self.needs_input_grad = tuple(
            isinstance(x, torch.Tensor) and x.requires_grad for x in arguments
        )

    def save_for_backward(self, *tensors):
        """Nothing: our backward saves what it needs."""

    def mark_non_differentiable(self, *tensors):
        """Nothing: which outputs get an upstream gradient is decided elsewhere."""

    def mark_dirty(self, *tensors):
        """Nothing: autograd sees what launches write to."""

    def set_materialize_grads(self, value):
        """Nothing: there is no hand-written backward to receive them."""


class Kernels:
    """The differentiable kernels of a run: one for each of a package's, as decorated ones are."""

    def __init__(self, options: Mapping | None = None):
        # Without tuning, as theirs: see `first_configuration`.
        self.options = {"autotune": False, **(options or {})}
        self._made: dict[int, tuple] = {}

    def of(self, kernel):
        """The kernel, differentiable."""
        entry = self._made.get(id(kernel))
        if entry is None:
            entry = self._made[id(kernel)] = (kernel, differentiable(kernel, **self.options))
        return entry[1]

    def explain(self) -> str:
        """What every kernel that was launched says of its gradients."""
        return "\n".join(kernel.explain() for _, kernel in self._made.values() if kernel._launches)


@contextlib.contextmanager
def replaced(owner, name: str, value):
    """An attribute of a class has another value for a while."""
    before = owner.__dict__[name]
    setattr(owner, name, value)
    try:
        yield
    finally:
        setattr(owner, name, before)


class Bypassed(RuntimeError):
    """A package's Function was applied in a way that was not seen: its own backward is in ours."""


def _of(module: str, modules: frozenset[str]) -> bool:
    return module.split(".")[0] in modules


_ALIASES: dict[tuple, list] = {}


def _aliases(modules: frozenset[str]) -> list[tuple[dict, str, types.MethodType]]:
    """The global names of packages for `Function.apply`: `softmax = SoftmaxFunction.apply`."""
    known = modules, len(sys.modules)
    if known not in _ALIASES:
        apply = torch.autograd.Function.__dict__["apply"].__func__
        _ALIASES[known] = [
            (vars(module), name, value)
            for module in list(sys.modules.values())
            if _of(getattr(module, "__name__", None) or "", modules)
            for name, value in list(vars(module).items())
            if isinstance(value, types.MethodType) and value.__func__ is apply
        ]
    return _ALIASES[known]


@contextlib.contextmanager
def differentiated(modules: Iterable[str], kernels: Kernels, constants: Mapping | None = None):
    """Within it, functions of these top-level modules are differentiated by us.

    Every `kernel[grid](…)` is a node of autograd's graph; `constants` replace arguments.
    """
    modules, constants = frozenset(modules), dict(constants or {})
    aliases = _aliases(modules)
    apply = torch.autograd.Function.__dict__["apply"]
    plain = KernelInterface.__getitem__

    def forward(cls, *args):
        if _of(cls.__module__, modules):
            return cls.forward(Context(args), *args)
        return apply.__func__(cls, *args)

    def item(kernel, grid):
        launch = kernels.of(kernel)[grid]
        own = {name: value for name, value in constants.items() if name in kernel.arg_names}

        def run(*args, **kwargs):
            # What ours launches is the kernel itself.
            with replaced(KernelInterface, "__getitem__", plain):
                return launch(*args, **{**kwargs, **own})

        return run

    with (
        replaced(torch.autograd.Function, "apply", classmethod(forward)),
        replaced(KernelInterface, "__getitem__", item),
    ):
        for scope, name, method in aliases:
            scope[name] = types.MethodType(forward, method.__self__)
        try:
            yield
        finally:
            for scope, name, method in aliases:
                scope[name] = method


def check_graph(outputs, modules: Iterable[str]) -> None:
    """Raise if a backward of these top-level modules is in the graph of outputs."""
    modules, seen = frozenset(modules), set()
    left = [y.grad_fn for y in outputs]
    while left:
        node = left.pop()
        if node is None or node in seen:
            continue
        seen.add(node)
        function = getattr(node, "_forward_cls", None)
        if function is not None and _of(function.__module__, modules):
            raise Bypassed(f"{function.__qualname__}.apply was called by another name")
        left += [following for following, _ in node.next_functions]


@contextlib.contextmanager
def first_configuration():
    """Autotuners take their first valid configuration, and measure nothing."""
    prune = Autotuner.prune_configs
    with (
        replaced(Autotuner, "prune_configs", lambda self, kwargs: prune(self, kwargs)[:1]),
        replaced(Autotuner, "_bench", lambda self, *args, config, **meta: [0.0, 0.0, 0.0]),
    ):
        yield
