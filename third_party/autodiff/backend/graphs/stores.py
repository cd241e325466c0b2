"""What kernels store in a graph is inside of their tensors.

A graph copies what a kernel writes to, without what is around it in the same storage. To store
there would overwrite the memory of others.
"""

from __future__ import annotations

import torch

from ..checking.spaces import are_inside
from ..errors import ArgumentError, AutodiffError, CheckError
from ..exporting.bundle import private
from ..exporting.checks import Unwritten, ends_of
from ..printing.expr_source import Text
from ..storage.memory import extent
from .facts import hints
from .numbers import REPLACED, Unclear, without_comprehensions


def refuse_around(spec, stores, leaves, grid) -> None:
    """Raise if a launch stores to elements around a tensor, for certain.

    `leaves` are the values of the kernel's arguments; no number is a symbol.
    """
    for store in stores:
        tensor = leaves[store.argument]
        try:
            ends = store.space.ends(leaves, grid)
            known = ends is not None and store.space.has_exact_ends(leaves, grid)
        except CheckError:
            continue
        size = extent(hints(tensor.shape), hints(tensor.stride()))
        if known and not are_inside(ends, size):
            name, where = spec.names[store.argument], store.position
            raise ArgumentError(
                f"argument {name!r} of kernel {spec.name!r} is a tensor of shape "
                f"{tuple(tensor.shape)}, and the kernel stores around it"
                f"{f' at {where}' if where else ''}: to elements {ends[0]} to {ends[1]}, counted "
                "from its first one. A graph copies what kernels write to, without what is around "
                "it: pass the whole tensor"
            )


def stay_inside(stores, leaves, grid) -> bool:
    """Return whether a launch stores to tensors only; for symbols, that becomes a guard.

    Where numbers do not decide it, which are those of the traced launch, nothing is said.
    """
    for store in stores:
        used = store.space.used_arguments()
        if not any(isinstance(n, torch.SymInt) for n in (*grid, *(leaves[i] for i in used))):
            continue
        try:
            first, last = _ends(store.space, used, leaves, grid)
        except (Unwritten, Unclear, AutodiffError):
            return False
        tensor = leaves[store.argument]
        if first <= last and not (first >= 0 and last < extent(tensor.shape, tensor.stride())):
            return False
    return True


def _ends(space, used, leaves, grid) -> tuple:
    """Return bounds of the elements that a space touches, which may be symbols."""
    names = {i: f"argument_{i}" for i in sorted(used)}
    pids = [f"program_{axis}" for axis in range(3)]
    text = Text({"arg": names.__getitem__}, "grid", pids, private)
    first, last = map(text.of, ends_of(space))
    source = f"def ends({', '.join(['grid', *names.values()])}):\n    return {first}, {last}"
    scope = dict(REPLACED)
    exec(without_comprehensions(source), scope)
    return scope["ends"](grid, *(leaves[i] for i in names))
