"""One wrapper, two backwards: the authors' own, and ours of the same forward.

A package's `autograd.Function` is used as it is for the authors' gradients. For ours its `forward`
runs under autograd, with every launch `differentiable`, wherever the wrapper applies it: PyTorch
code around is differentiated by PyTorch on both sides.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterable, Mapping

import torch
from triton.backends.autodiff import differentiable
from triton.runtime.autotuner import Autotuner
from triton.runtime.jit import KernelInterface


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


@contextlib.contextmanager
def differentiated(modules: Iterable[str], kernels: Kernels, constants: Mapping | None = None):
    """Within it, functions of these top-level modules are differentiated by us.

    Every `kernel[grid](…)` is a node of autograd's graph; `constants` replace arguments.
    """
    modules, constants = frozenset(modules), dict(constants or {})
    apply = torch.autograd.Function.__dict__["apply"]

    def forward(cls, *args):
        if cls.__module__.split(".")[0] in modules:
            return cls.forward(Context(args), *args)
        return apply.__func__(cls, *args)

    def item(kernel, grid):
        launch = kernels.of(kernel)[grid]
        own = {name: value for name, value in constants.items() if name in kernel.arg_names}
        return lambda *args, **kwargs: launch(*args, **{**kwargs, **own})

    with (
        replaced(torch.autograd.Function, "apply", classmethod(forward)),
        replaced(KernelInterface, "__getitem__", item),
    ):
        yield


@contextlib.contextmanager
def first_configuration():
    """Autotuners take their first valid configuration, and measure nothing."""
    prune = Autotuner.prune_configs
    with (
        replaced(Autotuner, "prune_configs", lambda self, kwargs: prune(self, kwargs)[:1]),
        replaced(Autotuner, "_bench", lambda self, *args, config, **meta: [0.0, 0.0, 0.0]),
    ):
        yield
