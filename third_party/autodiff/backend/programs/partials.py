"""Adds up gradients that kernels leave as partial sums.

On a GPU, one launch does it for all gradients of a backward. The order only depends on the number
of sums, so that equal launches give equal bits.
"""

from __future__ import annotations

from contextlib import nullcontext

import torch
import triton
import triton.language as tl
from triton.runtime.driver import driver
from triton.runtime.jit import JITFunction, MockTensor

from ..compiling.device_launch import launch, load
from ..faults.launchers import built_meanwhile
from ..kernels.interpreted import compiling, is_interpreted
from ..support.waiting import work

# Where there are more sums, one program takes too long for them; PyTorch divides them.
_MOST_SUMS = 8192
# The most sums that a program adds up at a time, and the most elements in registers.
_MOST_ROWS = 512
_TILE = 8192
_ELEMENTS_A_THREAD = 32
# Narrow tiles spread few elements over many programs; 16 floats are half a cache line.
_FEWEST_COLUMNS, _MOST_COLUMNS = 16, 1024
# Types to which PyTorch and Triton round in the same way.
ROUNDED_ALIKE = (torch.float16, torch.bfloat16, torch.float32, torch.float64)


# Not by triton.jit, which would make a function for the interpreter under TRITON_INTERPRET.
@JITFunction
def _add_up_one(partials, total, size, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    columns = tl.program_id(0).to(tl.int64) * COLUMNS + tl.arange(0, COLUMNS)
    inside = columns < size
    tile = tl.zeros((ROWS, COLUMNS), partials.dtype.element_ty)
    for start in range(0, count, ROWS):
        rows = (start + tl.arange(0, ROWS)).to(tl.int64)
        mask = (rows < count)[:, None] & inside[None, :]
        tile += tl.load(partials + rows[:, None] * size + columns[None, :], mask=mask, other=0.0)
    tl.store(total + columns, tl.sum(tile, axis=0), mask=inside)


class _Kernel(JITFunction):
    """A kernel whose launcher is built while it compiles."""

    def _do_compile(self, key, signature, device, constexprs, options, attrs, warmup):
        target = driver.active.get_current_target()
        with built_meanwhile(target, lambda: self.ASTSource(self, signature, constexprs, attrs)):
            return super()._do_compile(key, signature, device, constexprs, options, attrs, warmup)


@_Kernel
def add_up(partials, totals, sizes, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Store in each of `totals` the sum of `count` tensors, one after the other in `partials`."""
    for n in tl.static_range(len(partials)):
        if tl.program_id(1) == n:
            _add_up_one(partials[n], totals[n], sizes[n], count, ROWS, COLUMNS)


def suit_kernel(count: int, device, results) -> bool:
    """Return whether a kernel adds up `count` partial sums of each of some gradients, which are
    converted to the dtypes `results`. Otherwise, PyTorch does.
    """
    alike = all(result in ROUNDED_ALIKE for result in results)
    return device.type != "cpu" and count <= _MOST_SUMS and alike


def tile_of(count: int) -> tuple[int, int, int]:
    """Return rows and columns of a program's tile, and its warps, for `count` partial sums."""
    rows = min(triton.next_power_of_2(max(count, 1)), _MOST_ROWS)
    columns = min(max(_TILE // rows, _FEWEST_COLUMNS), _MOST_COLUMNS)
    return rows, columns, max(1, rows * columns // (32 * _ELEMENTS_A_THREAD))


class SumOfPartials:
    """The gradient of a tensor from `count` sums, each with the tensor's layout."""

    __slots__ = ("count", "size", "shape", "strides", "dtype", "result")

    def __init__(self, count, size, shape, strides, dtype, result):
        self.count, self.size = count, size
        self.shape, self.strides = shape, strides
        self.dtype, self.result = dtype, result

    def make(self, device) -> torch.Tensor:
        """Return memory for the sums."""
        flat = torch.empty(self.count * self.size, dtype=self.dtype, device=device)
        return flat.as_strided((self.count, *self.shape), (self.size, *self.strides))

    def by_torch(self, partials) -> torch.Tensor:
        """Return the gradient, computed by PyTorch."""
        return partials.sum(0).to(self.result)


class Sums:
    """Makes the gradients of several tensors from as many partial sums of each.

    They are added up by one launch of a kernel, or by PyTorch. `sums` are `SumOfPartials`.
    """

    def __init__(self, sums, device):
        self._sums, self.count = sums, sums[0].count
        self.is_kernel = suit_kernel(self.count, device, [s.result for s in sums])
        self.rows, self.columns, self.warps = tile_of(self.count)
        blocks = max(triton.cdiv(s.size, self.columns) for s in sums)
        self.grid = (blocks, len(sums), 1)
        self.compiled = None

    def compile(self) -> None:
        """Compile for this device, unless that has been done; Triton caches the kernel."""
        if self.is_kernel and self.compiled is None:
            with work(f"compiling kernel {add_up.__name__!r}"):
                kernel = self._compile()
                load(kernel)
            self.compiled = kernel

    def _compile(self):
        partials = tuple(MockTensor(s.dtype) for s in self._sums)
        totals = tuple(MockTensor(s.result) for s in self._sums)
        args = (partials, totals, *self._values())
        with compiling(add_up) if is_interpreted(tl.sum) else nullcontext():
            kernel = add_up.run(*args, grid=self.grid, warmup=True, num_warps=self.warps)
        return kernel.result() if hasattr(kernel, "result") else kernel

    def _values(self):
        return tuple(s.size for s in self._sums), self.count, self.rows, self.columns

    def run(self, partials) -> list[torch.Tensor]:
        """Return the gradients."""
        pairs = zip(self._sums, partials, strict=True)
        if not self.is_kernel:
            return [s.by_torch(p) for s, p in pairs]
        self.compile()
        totals = [
            torch.empty_strided(s.shape, s.strides, dtype=s.result, device=p.device)
            for s, p in pairs
        ]
        pointers = (tuple(t.data_ptr() for t in tensors) for tensors in (partials, totals))
        launch(self.compiled, self.grid, (*pointers, *self._values()))
        return totals
