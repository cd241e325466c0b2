"""A row of the table, and how its inputs are made."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import torch

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"


@dataclass(frozen=True)
class Case:
    """One row.

    ``reference`` is the same function of the same inputs in plain PyTorch, if that can be had.
    ``rivals`` are others, each behind a function that imports what it needs: packages may be
    absent.
    """

    family: str
    name: str
    kernel: object
    stub: Callable
    inputs: Callable[[], tuple]
    reference: Callable | None
    rivals: Mapping[str, Callable[[], Callable]] = field(default_factory=dict)
    # Among the rows of a quick run.
    quick: bool = False
    # Forward and backward are timed together, for some do the work of one in the other.
    whole: bool = False
    # Whether gradients can be compared, and whether torch.compile has anything to do.
    comparable: bool = True
    compiles: bool = True
    # Limited by memory: the time is compared with that of reading upstream gradients (and "inputs")
    # and writing "gradients" once.
    streams: str = ""


def leaf(*shape, dtype=torch.float16, scale=1.0):
    """A random input with a gradient."""
    return (scale * torch.randn(*shape, device=DEVICE)).to(dtype).requires_grad_()


def leaves(count, *shape, **options):
    """A function that makes so many random inputs."""
    return lambda: tuple(leaf(*shape, **options) for _ in range(count))


def with_options(stub, **options):
    """The stub with tile sizes and launch options of a real size."""
    return lambda kernel, *args: stub(kernel, *args, **options)
