"""A case: a package's differentiable wrapper, and how inputs for it are made."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

import torch

Tensor = torch.Tensor
BF16, F16, F32 = torch.bfloat16, torch.float16, torch.float32
SIZES = ("small", "users")


class Variant(NamedTuple):
    """A case at one size, in one dtype."""

    size: str
    dtype: str

    def __str__(self):
        return f"{self.size} {self.dtype}"


@dataclass(frozen=True)
class Case:
    """A wrapper, called with its inputs by name.

    `reference` is the same function in plain PyTorch; it takes the inputs in order. It may return
    fewer outputs, and None for an output that it does not compute. It is evaluated in float64.
    """

    name: str
    family: str
    function: Callable
    inputs: Callable[[Maker], dict]
    reference: Callable | None = None
    # In half precision, the first one counts at users' sizes and the last one at the small size.
    dtypes: tuple[torch.dtype, ...] = (BF16, F16, F32)
    # The outputs that the loss depends on; None: all that have a gradient.
    outputs: tuple[int, ...] | None = None
    # The function that we differentiate instead, if `function` computes gradients in its forward.
    ours: Callable | None = None
    # Kernel arguments with other values in our forward.
    constants: Mapping = field(default_factory=dict)
    # The authors' forward computes the gradients, so forward and backward are timed together.
    whole: bool = False
    # Why it needs a GPU, if it does; whether it takes too long for a test on the CPU.
    gpu: str = ""
    slow: bool = False
    sizes: tuple[str, ...] = SIZES
    # How many rounding errors accumulate in a gradient in float32; see `gradients`.
    roundings: int = 8

    def variants(self) -> list[Variant]:
        """What the arena runs: half precision and float32 at users' sizes, and at a small one."""
        half = [dtype for dtype in self.dtypes if dtype != F32]
        full = [dtype for dtype in self.dtypes if dtype == F32]
        dtypes = {"users": half[:1] + full, "small": half[-1:] + full}
        return [
            Variant(size, str(dtype)[6:])
            for size in reversed(SIZES)
            if size in self.sizes
            for dtype in dtypes[size]
        ]


class Maker:
    """Makes a case's inputs; sizes (`batch`, `time`, ...) are its attributes."""

    def __init__(self, dimensions: Mapping[str, int], dtype: torch.dtype, device: str):
        self.dtype = dtype
        self.device = device
        for name, value in dimensions.items():
            setattr(self, name, value)

    def normal(self, *shape, scale=1.0, shift=0.0, dtype=None) -> Tensor:
        """Random numbers in the case's dtype, without gradient."""
        value = torch.randn(shape, device=self.device, dtype=F32) * scale + shift
        return value.to(dtype or self.dtype)

    def __call__(self, *shape, **options) -> Tensor:
        """As `normal`, but with a gradient."""
        return self.normal(*shape, **options).requires_grad_()

    def full(self, *shape, **options) -> Tensor:
        """A leaf in float32 whatever the case's dtype is: states, gates, biases."""
        return self(*shape, dtype=F32, **options)

    def decay(self, *shape, dtype=F32) -> Tensor:
        """Logarithms of factors between 0 and 1, a leaf."""
        value = torch.nn.functional.logsigmoid(self.normal(*shape, dtype=F32))
        return value.to(dtype).requires_grad_()

    def gate(self, *shape, dtype=None) -> Tensor:
        """Factors between 0 and 1, a leaf."""
        return self.normal(*shape, dtype=F32).sigmoid().to(dtype or self.dtype).requires_grad_()

    def unit(self, *shape, dtype=None) -> Tensor:
        """Vectors of length 1 along the last axis, a leaf."""
        value = torch.nn.functional.normalize(self.normal(*shape, dtype=F32), dim=-1)
        return value.to(dtype or self.dtype).requires_grad_()

    def probabilities(self, *shape, dtype=None) -> Tensor:
        """Rows that sum to 1, without gradient."""
        return self.normal(*shape, dtype=F32).softmax(-1).to(dtype or self.dtype)

    def indices(self, high: int, *shape, ignored=None, dtype=torch.long) -> Tensor:
        """Random integers below `high`; element `ignored` has the usual ignore_index."""
        value = torch.randint(high, shape, device=self.device, dtype=dtype)
        if ignored is not None:
            value[ignored] = -100
        return value

    def starts(self, total: int, dtype=torch.int32) -> Tensor:
        """Where three packed sequences begin, and the last one ends."""
        return torch.tensor([0, total // 5, total // 2 + 3, total], device=self.device, dtype=dtype)


def packed(inputs: dict) -> dict:
    """The same inputs as one sequence: batch and time become one axis."""
    return {
        name: x.detach().reshape(1, -1, *x.shape[2:]).requires_grad_(x.requires_grad)
        for name, x in inputs.items()
    }


def attribute(path: str):
    """The object at `module.name`, imported now."""
    module, name = path.rsplit(".", 1)
    return getattr(importlib.import_module(module), name)


def applied(path: str, *options) -> Callable:
    """The `apply` of an autograd Function as a function of inputs by name, with `options` behind
    them.
    """
    return lambda **inputs: attribute(path).apply(*inputs.values(), *options)


def called(path: str, **options) -> Callable:
    """A function of inputs by name, with further keyword arguments."""
    return lambda **inputs: attribute(path)(**inputs, **options)
