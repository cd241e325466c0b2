"""Values that travel through memory: what a program stores, it loads again."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def recurrence_kernel(x_ptr, a_ptr, h_ptr, n, D: tl.constexpr):
    """The state of a nonlinear recurrence lives in memory only."""
    columns = tl.arange(0, D)
    x_ptr += tl.program_id(0) * n * D
    h_ptr += tl.program_id(0) * (n + 1) * D
    tl.store(h_ptr + columns, tl.load(a_ptr + columns))
    for t in range(n):
        tl.debug_barrier()
        state = tl.load(h_ptr + t * D + columns)
        x = tl.load(x_ptr + t * D + columns)
        tl.store(h_ptr + (t + 1) * D + columns, state * x - 0.1 * state * state)


def recurrence(kernel, x, a):
    batch, n, d = x.shape
    h = poisoned((batch, n + 1, d), x)
    kernel[(batch,)](x, a, h, n, D=d)
    return h


def recurrence_reference(x, a):
    h = [a.expand(x.shape[0], -1)]
    for t in range(x.shape[1]):
        h.append(h[-1] * x[:, t] - 0.1 * h[-1] ** 2)
    return torch.stack(h, 1) + 0 * x.sum()


@triton.jit
def scratch_kernel(x_ptr, scratch_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """A row goes from thread to thread through a workspace, and overwritten there."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    row = tl.program_id(0) * n
    x = tl.load(x_ptr + row + lanes, mask=mask)
    tl.store(scratch_ptr + row + lanes, tl.exp(x), mask=mask)
    tl.debug_barrier()
    mirrored = tl.load(scratch_ptr + row + n - 1 - lanes, mask=mask)
    tl.debug_barrier()
    tl.store(scratch_ptr + row + lanes, mirrored * x, mask=mask)
    tl.debug_barrier()
    z = tl.load(scratch_ptr + row + lanes, mask=mask)
    tl.store(y_ptr + row + lanes, z * z, mask=mask)


def scratch(kernel, x, BLOCK=32):
    workspace, y = poisoned(x.shape, x), poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, workspace, y, x.shape[1], BLOCK=BLOCK)
    return y


def scratch_with_workspace(kernel, x, BLOCK=32):
    workspace, y = poisoned(x.shape, x), poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, workspace, y, x.shape[1], BLOCK=BLOCK)
    return y, workspace


def scratch_reference(x):
    return (x.exp().flip(1) * x) ** 2


def scratch_with_workspace_reference(x):
    z = x.exp().flip(1) * x
    return z**2, z


@triton.jit
def substitution_kernel(l_ptr, b_ptr, y_ptr, n):
    """Forward substitution: the inner loop's length is the outer loop's variable."""
    l_ptr += tl.program_id(0) * n * n
    b_ptr += tl.program_id(0) * n
    y_ptr += tl.program_id(0) * n
    for i in range(n):
        rest = tl.load(b_ptr + i)
        for j in range(i):
            tl.debug_barrier()
            rest -= tl.load(l_ptr + i * n + j) * tl.load(y_ptr + j)
        tl.store(y_ptr + i, rest / tl.load(l_ptr + i * n + i))


def substitution(kernel, lower, b):
    y = poisoned(b.shape, b)
    kernel[(b.shape[0],)](lower, b, y, b.shape[1])
    return y


def substitution_reference(lower, b):
    return torch.linalg.solve_triangular(lower.tril(), b[..., None], upper=False)[..., 0]


@triton.jit
def sweep_kernel(x_ptr, n, sweeps, BLOCK: tl.constexpr):
    """In-place updates, several times, only in every other sweep of the second kind."""
    lanes = tl.arange(0, BLOCK)
    mask = lanes < n
    x_ptr += tl.program_id(0) * n
    for sweep in range(sweeps):
        tl.debug_barrier()
        x = tl.load(x_ptr + lanes, mask=mask)
        tl.store(x_ptr + lanes, x + 0.1 * x * x, mask=mask)
        if sweep % 2 == 1:
            tl.debug_barrier()
            left = tl.load(x_ptr + lanes - 1, mask=mask & (lanes > 0), other=1.0)
            tl.debug_barrier()
            tl.store(x_ptr + lanes, left * x, mask=mask)


def sweep(kernel, x, sweeps, BLOCK=32):
    x = x.clone(memory_format=torch.contiguous_format)
    kernel[(x.shape[0],)](x, x.shape[1], sweeps, BLOCK=BLOCK)
    return x


def sweep_reference(x, sweeps):
    for index in range(sweeps):
        old, x = x, x + 0.1 * x * x
        if index % 2 == 1:
            left = torch.nn.functional.pad(x[:, :-1], (1, 0), value=1.0)
            x = left * old
    return x


@triton.jit
def last_store_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Every iteration stores to the same place: the last one counts."""
    lanes = tl.arange(0, BLOCK)
    for i in range(n):
        x = tl.load(x_ptr + (tl.program_id(0) * n + i) * BLOCK + lanes)
        tl.debug_barrier()
        tl.store(y_ptr + tl.program_id(0) * BLOCK + lanes, x * x)


def last_store(kernel, x):
    batch, n, block = x.shape
    y = x.new_full((batch, block), 7.0) if n == 0 else poisoned((batch, block), x)
    kernel[(batch,)](x, y, n, BLOCK=block)
    return y


def last_store_reference(x):
    return x[:, -1] ** 2


@triton.jit
def ticket_kernel(x_ptr, counter_ptr, y_ptr, BLOCK: tl.constexpr):
    """Which row a program works on is decided by who comes first."""
    ticket = tl.atomic_add(counter_ptr, 1)
    lanes = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + ticket * BLOCK + lanes)
    tl.store(y_ptr + ticket * BLOCK + lanes, x * x * x)


def ticket(kernel, x):
    counter = torch.zeros(1, dtype=torch.int32, device=x.device)
    y = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, counter, y, BLOCK=x.shape[1])
    return y


def ticket_reference(x):
    return x**3


@triton.jit
def partial_sum_kernel(x_ptr, y_ptr, n, summed, columns, BLOCK: tl.constexpr):
    """Lanes that add nothing have read something."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n)
    tl.atomic_add(y_ptr + lanes % columns, x * x, mask=(lanes < n) & (lanes < summed))


def partial_sum(kernel, x, start, summed, columns=None, BLOCK=16):
    y = start.clone()
    grid = (triton.cdiv(x.numel(), BLOCK),)
    kernel[grid](x, y, x.numel(), summed, columns or start.numel(), BLOCK=BLOCK)
    return y


def partial_sum_reference(x, start, summed):
    columns = torch.arange(summed, device=x.device) % start.numel()
    return start.index_add(0, columns, x[:summed] ** 2)


@triton.jit
def extremum_kernel(x_ptr, y_ptr, n, columns, BLOCK: tl.constexpr, MINIMUM: tl.constexpr):
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n)
    if MINIMUM:
        tl.atomic_min(y_ptr + lanes % columns, x * x - x, mask=lanes < n)
    else:
        tl.atomic_max(y_ptr + lanes % columns, x * x - x, mask=lanes < n)


def extremum(kernel, x, start, minimum, BLOCK=16):
    y = start.clone()
    grid = (triton.cdiv(x.numel(), BLOCK),)
    kernel[grid](x, y, x.numel(), start.numel(), BLOCK=BLOCK, MINIMUM=minimum)
    return y


def extremum_reference(x, start, minimum):
    values = x * x - x
    gap = -values.numel() % start.numel()
    filler = torch.full((gap,), float("inf") if minimum else float("-inf")).to(values)
    table = torch.cat([values, filler]).view(-1, start.numel())
    table = torch.cat([table, start[None]])
    return table.amin(0) if minimum else table.amax(0)


@triton.jit
def row_update_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Two passes over a row; the second stores where it has loaded."""
    x_ptr += tl.program_id(0) * n
    y_ptr += tl.program_id(0) * n
    total = tl.zeros((), x_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
        total += tl.sum(x * x)
    for start in range(0, n, BLOCK):
        lanes = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + lanes, mask=lanes < n)
        tl.store(y_ptr + lanes, x * total, mask=lanes < n)


def row_update(kernel, x):
    x = x.clone(memory_format=torch.contiguous_format)
    kernel[(x.shape[0],)](x, x, x.shape[1], BLOCK=16)
    return x


def row_update_reference(x):
    return x * (x * x).sum(1, keepdim=True)


@triton.jit
def running_kernel(x_ptr, y_ptr, n):
    """Adds to each element the result before it, which it loads through `x_ptr`, shifted."""
    for i in range(1, n):
        before = tl.load(x_ptr + i - 1)
        tl.store(y_ptr + i, before * 2)


@triton.jit
def last_kernel(x_ptr, parts_ptr, y_ptr, count_ptr, n, BLOCK: tl.constexpr, PARTS: tl.constexpr):
    """The last program, by a counter, adds up what all have stored."""
    lanes = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + lanes, mask=lanes < n, other=0.0)
    tl.store(parts_ptr + tl.program_id(0), tl.sum(x * x))
    tl.debug_barrier()
    if tl.atomic_add(count_ptr, 1) == tl.num_programs(0) - 1:
        parts = tl.arange(0, PARTS)
        sums = tl.load(parts_ptr + parts, mask=parts < tl.num_programs(0), other=0.0)
        tl.store(y_ptr, tl.sqrt(tl.sum(sums)))


def last(kernel, x):
    parts, y = x.new_empty(4), x.new_empty(1)
    count = torch.zeros(1, dtype=torch.int32, device=x.device)
    kernel[(triton.cdiv(len(x), 16),)](x, parts, y, count, len(x), BLOCK=16, PARTS=4)
    return y
