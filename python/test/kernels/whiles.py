"""Loops that end when they find out, and loops whose bounds come from memory."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh


@triton.jit
def newton_kernel(x_ptr, y_ptr, count_ptr, tolerance, BLOCK: tl.constexpr):
    """Square roots by Newton's method, until the tile has converged: float state decides."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    y = x
    steps = 0
    while tl.max(tl.abs(y * y - x), 0) > tolerance:
        y = 0.5 * (y + x / y)
        steps += 1
    tl.store(y_ptr + offsets, y)
    tl.store(count_ptr + tl.program_id(0), steps)


def newton(kernel, x, tolerance, BLOCK=8):
    y = poisoned(x.shape, x)
    programs = x.numel() // BLOCK
    counts = torch.zeros(programs, dtype=torch.int32, device=x.device)
    kernel[(programs,)](x, y, counts, tolerance, BLOCK=BLOCK)
    return y


def newton_reference(x, tolerance, BLOCK=8):
    parts = []
    for part in x.split(BLOCK):
        y = part
        while (y * y - part).abs().max() > tolerance:
            y = 0.5 * (y + part / y)
        parts.append(y)
    return torch.cat(parts)


@triton.jit
def ragged_kernel(x_ptr, w_ptr, lengths_ptr, y_ptr, columns, BLOCK: tl.constexpr):
    """A recurrence over as many rows as memory says, for each program another number."""
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    n = tl.load(lengths_ptr + pid)
    w = tl.load(w_ptr + lane)
    h = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for t in range(n):
        h = tanh(w * h + tl.load(x_ptr + (pid * columns + t) * BLOCK + lane))
    tl.store(y_ptr + pid * BLOCK + lane, h)


def ragged(kernel, x, w, lengths):
    rows, columns, lanes = x.shape
    y = poisoned((rows, lanes), x)
    kernel[(rows,)](x, w, lengths, y, columns, BLOCK=lanes)
    return y


def ragged_reference(x, w, lengths):
    rows = []
    for row, n in zip(x.unbind(0), lengths.tolist(), strict=True):
        h = torch.zeros_like(row[0]) + 0 * w
        for t in range(n):
            h = torch.tanh(w * h + row[t])
        rows.append(h)
    return torch.stack(rows)


@triton.jit
def ragged_nest_kernel(x_ptr, begins_ptr, y_ptr, groups, BLOCK: tl.constexpr):
    """An outer loop over groups, an inner one over a group's rows; products inside sums."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lanes = tl.num_programs(0) * BLOCK
    state = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
    for g in range(groups):
        product = state
        for row in range(tl.load(begins_ptr + g), tl.load(begins_ptr + g + 1), 2):
            product = product * tl.load(x_ptr + row * lanes + lane) + 0.5
        state = tl.sin(state + product)
    tl.store(y_ptr + lane, state)


def ragged_nest(kernel, x, begins, BLOCK=8):
    y = poisoned((x.shape[1],), x)
    kernel[(x.shape[1] // BLOCK,)](x, begins, y, begins.numel() - 1, BLOCK=BLOCK)
    return y


def ragged_nest_reference(x, begins):
    state = torch.ones_like(x[0])
    begins = begins.tolist()
    for begin, end in zip(begins[:-1], begins[1:], strict=True):
        product = state
        for row in range(begin, end, 2):
            product = product * x[row] + 0.5
        state = torch.sin(state + product)
    return state


@triton.jit
def stepping_kernel(x_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    """A while loop that counts is a for loop; its step varies by program."""
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    product = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
    i = pid
    while i < n:
        product *= tl.load(x_ptr + i * BLOCK + lane)
        i += step + pid
    tl.store(y_ptr + pid * BLOCK + lane, product)


def stepping(kernel, x, programs, step):
    rows, lanes = x.shape
    y = poisoned((programs, lanes), x)
    kernel[(programs,)](x, y, rows, step, BLOCK=lanes)
    return y


def stepping_reference(x, programs, step):
    results = []
    for pid in range(programs):
        product = torch.ones_like(x[0])
        for i in range(pid, x.shape[0], step + pid):
            product = product * x[i]
        results.append(product)
    return torch.stack(results)


@triton.jit
def replacing_kernel(x_ptr, y_ptr, n, limit, BLOCK: tl.constexpr):
    """Programs count as far as their number, then on while a condition holds; where they end is
    where they store. Neither loop reads what it replaces, and either may have no iteration."""
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + pid * BLOCK + lane)
    y = x * x
    i = 1
    while i < pid:
        y = tl.load(x_ptr + i * BLOCK + lane) * x
        i += 2
    z = tl.sin(y)
    j = i
    while (tl.sum(z, 0) > limit) & (j < n - 1):
        z = tl.load(x_ptr + j * BLOCK + lane) * y - x
        j += 1
    tl.store(y_ptr + ((pid * n + i) * n + j) * BLOCK + lane, z)


def replacing(kernel, x, limit):
    rows, lanes = x.shape
    y = torch.zeros((rows, rows, rows, lanes), dtype=x.dtype, device=x.device)
    kernel[(rows,)](x, y, rows, limit, BLOCK=lanes)
    return y


def replacing_reference(x, limit):
    rows, lanes = x.shape
    places = {}
    for pid in range(rows):
        y = x[pid] * x[pid]
        i = 1
        while i < pid:
            y = x[i] * x[pid]
            i += 2
        z = torch.sin(y)
        j = i
        while z.sum() > limit and j < rows - 1:
            z = x[j] * y - x[pid]
            j += 1
        places[(pid * rows + i) * rows + j] = z
    none = torch.zeros_like(x[0])
    flat = [places.get(place, none) for place in range(rows**3)]
    return torch.stack(flat).reshape(rows, rows, rows, lanes)


@triton.jit
def chain_kernel(x_ptr, next_ptr, y_ptr, visits_ptr, limit, BLOCK: tl.constexpr):
    """Follows a linked list, storing at every visit; two conditions end it."""
    pid = tl.program_id(0)
    lane = tl.arange(0, BLOCK)
    node = pid
    visits = 0
    value = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
    other = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    while (node >= 0) & (visits < limit):
        x = tl.load(x_ptr + node * BLOCK + lane)
        value, other = other + x * value, value
        if visits % 2 == 1:
            tl.store(visits_ptr + (pid * limit + visits) * BLOCK + lane, value)
        node = tl.load(next_ptr + node)
        visits += 1
    tl.store(y_ptr + pid * BLOCK + lane, value * other)


def chain(kernel, x, successors, limit):
    lanes = x.shape[1]
    programs = 3
    y = poisoned((programs, lanes), x)
    visits = torch.zeros((programs, limit, lanes), dtype=x.dtype, device=x.device)
    kernel[(programs,)](x, successors, y, visits, limit, BLOCK=lanes)
    return y, visits


def chain_reference(x, successors, limit):
    results, visited = [], []
    for pid in range(3):
        node, count = pid, 0
        value, other = torch.ones_like(x[0]), torch.zeros_like(x[0])
        stored = [0 * x[0] for _ in range(limit)]
        while node >= 0 and count < limit:
            value, other = other + x[node] * value, value
            if count % 2 == 1:
                stored[count] = value
            node = int(successors[node])
            count += 1
        results.append(value * other)
        visited.append(torch.stack(stored))
    return torch.stack(results), torch.stack(visited)


@triton.jit
def nested_while_kernel(x_ptr, y_ptr, rows, threshold, BLOCK: tl.constexpr):
    """A while loop in a branch in a for loop: halves a row until it is small."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lanes = tl.num_programs(0) * BLOCK
    total = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for i in range(rows):
        row = tl.load(x_ptr + i * lanes + lane)
        if i % 3 != 1:
            while tl.sum(row * row, 0) > threshold:
                row = row * 0.5 + 0.1 * row * row / (1.0 + row * row)
        total = total * row + tl.sin(row)
    tl.store(y_ptr + lane, total)


def nested_while(kernel, x, threshold, BLOCK=8):
    rows, lanes = x.shape
    y = poisoned((lanes,), x)
    kernel[(lanes // BLOCK,)](x, y, rows, threshold, BLOCK=BLOCK)
    return y


def nested_while_reference(x, threshold, BLOCK=8):
    parts = []
    for part in x.split(BLOCK, 1):
        total = torch.zeros_like(part[0])
        for i, row in enumerate(part.unbind(0)):
            if i % 3 != 1:
                while (row * row).sum() > threshold:
                    row = row * 0.5 + 0.1 * row * row / (1 + row * row)
            total = total * row + torch.sin(row)
        parts.append(total)
    return torch.cat(parts)
