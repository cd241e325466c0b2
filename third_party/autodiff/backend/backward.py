"""A plan bound to the facts of a launch: the backward as flat lists, ready to run."""

from __future__ import annotations

from operator import itemgetter

import torch

from .bounds import CheckedLaunch
from .counting import Counting, Size
from .facts import Facts
from .memory import Span, allocate, extent, gradient_of, is_non_overlapping, lay_out
from .plan import Plan

DTYPES = {
    "i1": torch.bool,
    "i8": torch.int8,
    "i16": torch.int16,
    "i32": torch.int32,
    "i64": torch.int64,
    "f16": torch.float16,
    "bf16": torch.bfloat16,
    "f32": torch.float32,
    "f64": torch.float64,
    "f8E4M3FN": torch.float8_e4m3fn,
    "f8E4M3FNUZ": torch.float8_e4m3fnuz,
    "f8E5M2": torch.float8_e5m2,
    "f8E5M2FNUZ": torch.float8_e5m2fnuz,
}


class Handle:
    """A plan with its kernels' executables, which are compiled when first launched."""

    def __init__(self, plan: Plan, forward, backward, counting=None):
        self.plan = plan
        self.forward = forward
        self.backward = backward
        self.counting = counting


class _Operands:
    """Picks a kernel's operands from the pool: arguments, cotangents, gradients, buffers, sizes."""

    def __init__(self, operands, arguments: int, buffers: int):
        starts = {"argument": 0, "cotangent": 1, "gradient": 2, "buffer": 3}
        starts = {kind: n * arguments for kind, n in starts.items()}
        starts["size"] = starts["buffer"] + buffers
        indices = [starts[kind] + index for kind, index in operands if kind in starts]
        pick = itemgetter(*indices) if indices else None
        # itemgetter returns a bare value for one index.
        self.pick = (lambda pool: (pick(pool),)) if len(indices) == 1 else pick or (lambda _: ())


class _Shadow:
    """How to make the gradient buffer of one argument, and the gradient from it."""

    __slots__ = ("argument", "shape", "strides", "span", "dtype", "init", "result", "zero", "plain",
                 "returned", "partials")  # fmt: skip

    def __init__(self, gradient, tensor, facts):
        self.argument = gradient.argument
        self.shape, self.strides, self.result = tensor.shape, tensor.strides, tensor.dtype
        self.dtype = DTYPES[gradient.dtype]
        self.init, self.returned = gradient.init, gradient.returned
        tight = gradient.covers_tensor
        own = Span(0, extent(self.shape, self.strides))
        self.span = own if tight else tensor.span
        # Without a proof that every element is written, what is not written has gradient zero.
        self.zero = gradient.init == "zero" or not tight
        self.plain = self.dtype == self.result and is_non_overlapping(self.shape, self.strides)
        self.partials = None if gradient.partials is None else facts.evaluate(gradient.partials)

    def make(self, cotangents, device):
        """Return the initialised gradient buffer."""
        if self.partials is not None:
            size = self.span.total
            flat = torch.empty(self.partials * size, dtype=self.dtype, device=device)
            return flat.as_strided((self.partials, *self.shape), (size, *self.strides))
        shadow = allocate(self.shape, self.strides, self.span, self.dtype, device, self.zero)
        if self.init == "cotangent":
            upstream = cotangents.get(self.argument)
            if upstream is not None:
                shadow.copy_(upstream)
            elif not self.zero:
                shadow.zero_()
        return shadow

    def finish(self, shadow):
        """Return the gradient of the tensor."""
        if self.partials is not None:
            return shadow.sum(0).to(self.result)
        return shadow if self.plain else gradient_of(shadow, self.result)


def buffer_sizes(plan: Plan, facts: Facts) -> tuple:
    """Return `(kind, dtype, size)` of each buffer of a plan."""
    return tuple(
        (b.kind, DTYPES[b.dtype], Size(b.size, facts, f"buffer {b.name!r} of {plan.kernel!r}"))
        for b in plan.buffers
    )


def grid_of(kernel, facts: Facts) -> tuple[int, int, int]:
    """Return the grid extents of a generated kernel."""
    if kernel.grid is None:
        return facts.grid
    return tuple(facts.evaluate(e) for e in kernel.grid)


class Backward:
    """The backward of one plan at launches that share their facts."""

    def __init__(self, handle: Handle, facts: Facts, spec):
        plan = handle.plan
        self.handle = handle
        self.plan = plan
        self.device = facts.device
        self.count = len(plan.arguments)
        self.cotangents = plan.cotangents()
        self.buffers = buffer_sizes(plan, facts)
        self.saved = tuple(n for n, b in enumerate(self.buffers) if b[0] == "saved")
        self.sizes = tuple(Size(e, facts, f"a size of {plan.kernel!r}") for e in plan.sizes)
        own = [size for kind, _, size in self.buffers if kind != "saved"]
        self._counts = any(size.is_counted for size in (*own, *self.sizes))
        self.counting = None
        if plan.counting is not None:
            self.counting = Counting(plan, handle.counting, facts, spec)
        self.shadows = tuple(_Shadow(g, facts.tensors[g.argument], facts) for g in plan.gradients)
        self.layouts = {
            j: (facts.tensors[j].shape, facts.tensors[j].strides, facts.tensors[j].dtype,
                facts.tensors[j].span)
            for j in self.cotangents
        }  # fmt: skip
        self.pointers = tuple(
            sorted(
                {
                    i
                    for kernel in plan.kernels
                    if kernel is not plan.forward
                    for kind, i in kernel.operands
                    if kind == "argument" and plan.arguments[i].is_pointer
                }
            )
        )
        self.launches = tuple(
            (
                executable,
                grid_of(executable.kernel, facts),
                _Operands(executable.kernel.operands, self.count, len(self.buffers)).pick,
                CheckedLaunch.of(executable.kernel, spec, plan),
            )
            for executable in (e.suited(facts) for e in handle.backward)
        )

    def spanned(self) -> set[int]:
        """Return the arguments whose storage extent this depends on."""
        loose = {g.argument for g in self.plan.gradients if not g.covers_tensor}
        return loose | self.cotangents

    def count_trips(self, arguments, tensors):
        """Return what the sizes of this backward depend on, None if they are known."""
        return self.counting.run(arguments, tensors) if self._counts else None

    def run(self, arguments, saved, upstream, tensors, counts) -> dict:
        """Run the backward kernels; returns the gradients by argument.

        `arguments` are the TTIR function's arguments, pointers as tensors or addresses; `saved`
        the saved buffers in order; `upstream` the gradients of outputs, absent ones zero;
        `tensors` the memory behind the first two, for checks; `counts` come from `count_trips`.
        """
        device = self.device
        cotangents = {}
        for j, (shape, strides, dtype, span) in self.layouts.items():
            gradient = upstream.get(j)
            if gradient is None:
                cotangents[j] = allocate(shape, strides, span, dtype, device, True)
            else:
                cotangents[j] = lay_out(gradient, shape, strides, dtype, span)
        shadows = [shadow.make(cotangents, device) for shadow in self.shadows]
        count = self.count
        sizes = [size.get(counts) for size in self.sizes]
        pool = [*arguments, *(None,) * (2 * count), *(None,) * len(self.buffers), *sizes]
        for j, tensor in cotangents.items():
            pool[count + j] = tensor.data_ptr()
        for shadow, tensor in zip(self.shadows, shadows, strict=True):
            pool[2 * count + shadow.argument] = tensor.data_ptr()
        held = []
        for n, (kind, dtype, size) in enumerate(self.buffers):
            if kind != "saved":
                buffer = torch.empty(size.get(counts), dtype=dtype, device=device)
                held.append(buffer)
                pool[3 * count + n] = buffer.data_ptr()
        for n, buffer in zip(self.saved, saved, strict=True):
            pool[3 * count + n] = buffer.data_ptr()
        for executable, grid, pick, checked in self.launches:
            if checked is None:
                executable.launch(grid, pick(pool))
            else:
                memory = (*tensors, *cotangents.values(), *shadows, *held)
                checked.launch(executable, grid, pick(pool), memory, device)
        return {
            shadow.argument: shadow.finish(tensor)
            for shadow, tensor in zip(self.shadows, shadows, strict=True)
            if shadow.returned
        }
