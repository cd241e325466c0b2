"""A row of the table, and how its inputs are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Case:
    """One row.

    ``reference`` is the same function of the same inputs in plain PyTorch, if available. ``rivals``
    are others, each behind a function that imports what it needs: packages may be missing.
    """

    family: str
    name: str
    kernel: object
    stub: Callable
    inputs: Callable[[], tuple]
    reference: Callable | None
    rivals: Mapping[str, Callable[[], Callable]] = field(default_factory=dict)
    # Whether it is part of a quick run.
    quick: bool = False
    # Whether forward and backward are timed together, because a rival computes gradients in its
    # forward.
    whole: bool = False
    # Whether gradients can be compared, and whether torch.compile can do anything.
    comparable: bool = True
    compiles: bool = True
    # For memory-bound kernels: what is added to the upstream gradients, "inputs" or "gradients",
    # for the least memory traffic that the time is compared with.
    streams: str = ""
    # The reference in a form that PyTorch differentiates twice, if its own has none.
    twice: Callable | None = None


def leaf(*shape, dtype=torch.float16, scale=1.0):
    """A random input with a gradient."""
    return (scale * torch.randn(*shape, device=DEVICE)).to(dtype).requires_grad_()


def leaves(count, *shape, **options):
    """A function that makes `count` random inputs."""
    return lambda: tuple(leaf(*shape, **options) for _ in range(count))


def with_options(stub, **options):
    """The stub with tile sizes and launch options of a real size."""
    return lambda kernel, *args: stub(kernel, *args, **options)
