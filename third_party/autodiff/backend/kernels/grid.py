"""The grid of a launch: three extents, or an error that says what is wrong with them."""

from __future__ import annotations

import operator

from ..errors import ArgumentError

# Program ids are 32-bit integers; GPUs have fewer bits for the last two axes.
_LIMITS = {"cpu": (2**31 - 1,) * 3}
_SMALL = 65535
_GPU_LIMITS = (2**31 - 1, _SMALL, _SMALL)


def checked_grid(grid, kernel: str, backend: str) -> tuple[int, int, int]:
    """Return the three extents of a grid that is not a function (any more)."""
    if type(grid) is tuple and 1 <= len(grid) <= 3:
        x, y, z = (*grid, 1, 1)[:3]
        if type(x) is type(y) is type(z) is int:
            if 0 <= x <= _SMALL and 0 <= y <= _SMALL and 0 <= z <= _SMALL:
                return x, y, z
    try:
        extents = [operator.index(extent) for extent in grid]
    except TypeError:
        extents = []
    if isinstance(grid, str) or not 1 <= len(extents) <= 3:
        raise ArgumentError(
            f"the grid of kernel {kernel!r} should be one to three integers, (x, y, z), or a "
            f"function of the arguments that returns them, got {grid!r}"
        )
    for axis, extent, limit in zip("xyz", extents, _LIMITS.get(backend, _GPU_LIMITS), strict=False):
        if not 0 <= extent <= limit:
            raise ArgumentError(
                f"the grid of kernel {kernel!r} has {extent} programs along {axis}: 0 to {limit} "
                f"are possible on {backend}"
            )
    return (*extents, 1, 1)[:3]
