"""Kernels of public packages, held against the backward that their authors wrote.

A package's `autograd.Function` is used twice. As it is, for the authors' gradients. And its
`forward` alone under autograd, with every kernel that it launches made `differentiable`, so that
the gradients are ours. float64 PyTorch judges both.
"""

from __future__ import annotations

import contextlib
import importlib
from collections.abc import Callable, Sequence

import torch
from gradients import assert_close
from triton.backends.autodiff import differentiable
from triton.runtime.jit import KernelInterface

_differentiable: dict[int, tuple] = {}


class Context:
    """Takes what a `Function.forward` leaves for its backward, and forgets it."""

    def __init__(self, arguments):
        self.needs_input_grad = tuple(
            isinstance(x, torch.Tensor) and x.requires_grad for x in arguments
        )

    def save_for_backward(self, *tensors):
        """Nothing: our backward saves what it needs."""

    def mark_non_differentiable(self, *tensors):
        """Nothing: which outputs get an upstream gradient is up to the test."""

    def set_materialize_grads(self, value):
        """Nothing: there is no hand-written backward to receive them."""


def _made_differentiable(kernel):
    """The same differentiable kernel each time, as a decorated kernel would be."""
    entry = _differentiable.get(id(kernel))
    if entry is None:
        entry = _differentiable[id(kernel)] = (kernel, differentiable(kernel))
    return entry[1]


@contextlib.contextmanager
def differentiated_launches(**constants):
    """Every `kernel[grid](…)` is a node of autograd's graph; `constants` replace arguments."""

    def item(kernel, grid):
        launch = _made_differentiable(kernel)[grid]
        own = {name: value for name, value in constants.items() if name in kernel.arg_names}
        return lambda *args, **kwargs: launch(*args, **{**kwargs, **own})

    original = KernelInterface.__getitem__
    KernelInterface.__getitem__ = item
    try:
        yield
    finally:
        KernelInterface.__getitem__ = original


def forward_of(function: type[torch.autograd.Function], *args, **constants):
    """The outputs of `function.forward`, differentiated by us."""
    with differentiated_launches(**constants):
        return function.forward(Context(args), *args)


def _tuple(value) -> tuple:
    return tuple(value) if isinstance(value, (tuple, list)) else (value,)


def _flat(values):
    """The tensors among arguments, those in lists too."""
    for value in values:
        if isinstance(value, (tuple, list)):
            yield from _flat(value)
        elif isinstance(value, torch.Tensor):
            yield value


def _mapped(change, value):
    if isinstance(value, (tuple, list)):
        return type(value)(_mapped(change, x) for x in value)
    return change(value) if isinstance(value, torch.Tensor) else value


def _own(x: torch.Tensor) -> torch.Tensor:
    """A copy that a kernel may overwrite, through which gradients reach `x`."""
    return x.clone() if x.requires_grad else x.detach().clone()


def _double(x: torch.Tensor) -> torch.Tensor:
    """A float64 leaf with the same numbers."""
    if not x.is_floating_point():
        return x
    return x.detach().double().requires_grad_(x.requires_grad)


def _in(dtype: torch.dtype, x: torch.Tensor) -> torch.Tensor:
    """The same numbers in another precision, through which gradients reach `x`."""
    return x.to(dtype) if x.is_floating_point() else x


def _backward(outputs, upstreams, wanted):
    used = [(y, g.to(y.dtype)) for y, g in zip(outputs, upstreams, strict=True) if y.requires_grad]
    return torch.autograd.grad([y for y, _ in used], wanted, [g for _, g in used])


def assert_as_good_as_theirs(
    ours: Callable, theirs: Callable, reference: Callable, inputs: Sequence, roundings: int = 8
) -> None:
    """Our outputs and gradients are as near to float64 as the authors' own, times a factor.

    `reference` is plain PyTorch. It may return fewer outputs than the kernel's wrapper, and None
    for one that is not compared. For `roundings` see `gradients.floor`.
    """
    wanted = [x for x in _flat(inputs) if x.requires_grad]
    exact = _mapped(_double, tuple(inputs))
    truths = _tuple(reference(*exact))
    places = [i for i, y in enumerate(truths) if y is not None]
    truths = [truths[i] for i in places]
    results, upstreams = [], None
    for function in (ours, theirs):
        outputs = _tuple(function(*_mapped(_own, inputs)))
        outputs = [outputs[i] for i in places]
        if upstreams is None:
            # Half precision has few bits for what a small gradient of a loss is multiplied by.
            upstreams = [
                torch.randn_like(y) if y.dim() else 1 + torch.rand_like(y) for y in outputs
            ]
        # Plain PyTorch promotes by other rules than a kernel's wrapper.
        outputs = [y.to(g.dtype) for y, g in zip(outputs, upstreams, strict=True)]
        values = [y.detach().clone() for y in outputs]
        results.append([*values, *_backward(outputs, upstreams, wanted)])
    wanted = [x for x in _flat(exact) if x.requires_grad]
    results.append([*truths, *_backward(truths, upstreams, wanted)])
    names = [f"output {i}" for i in places] + [f"gradient {i}" for i in range(len(wanted))]
    for name, value, baseline, truth in zip(names, *results, strict=True):
        assert_close(name, value, baseline, truth, roundings)


def check(
    path: str, reference: Callable, inputs: Sequence, *options,
    refused: bool = False, roundings: int = 8, **constants,
) -> None:  # fmt: skip
    """Compare the function at `module.Class` with float64 PyTorch and with its own backward.

    The function gets `inputs` and then `options`; `reference` the inputs alone. Kernel arguments
    named in `constants` are replaced in our forward. Where the package refuses its own backward,
    plain PyTorch takes its place, all in the precision of the first input.
    """

    def plain(*args):
        return reference(*_mapped(lambda x: _in(args[0].dtype, x), args))

    module, name = path.rsplit(".", 1)
    function = getattr(importlib.import_module(module), name)
    assert_as_good_as_theirs(
        lambda *args: forward_of(function, *args, *options, **constants),
        plain if refused else lambda *args: function.apply(*args, *options),
        reference,
        inputs,
        roundings,
    )
