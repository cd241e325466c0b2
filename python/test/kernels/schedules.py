"""Kernels whose loops can become the grid of a backward kernel, and such whose loops must not."""

import math

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh


@triton.jit
def _bounds(p, other, n, BAND: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr):
    """From where to where a program's loop runs."""
    start, end = 0, n
    if BAND == "causal":
        end = (p + 1) * WIDTH
    if BAND == "diagonal":
        start = p * WIDTH
        end = (p + 1) * WIDTH
    if BAND == "rest":
        start = p * WIDTH
    if BAND == "window":
        start = max(0, (p - 2) * WIDTH)
        end = min(n, (p + 1) * WIDTH)
    if BAND == "falling end":
        end = n - p * WIDTH
    if BAND == "falling start":
        start = max(0, 3 * WIDTH - p * WIDTH)
    if BAND == "far end":
        end = min(n + WIDTH, (p + 2) * WIDTH)
    if BAND == "half steps":
        start = p * (STEP // 2)
    if BAND == "below zero":
        start = (p * WIDTH - 2 * WIDTH) // STEP * STEP
    if BAND == "other id":
        end = min(n, (other + 1) * WIDTH)
    if BAND == "row before":
        start = (other * WIDTH - 2 * WIDTH * min(other, 1)) // STEP * STEP
    return start, end


@triton.jit
def _term(x, q):
    """What an iteration adds, not linear in either."""
    return x * x * q + tanh(x + q)


@triton.jit
def band_kernel(
    x_ptr, q_ptr, y_ptr, n, BAND: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr
):
    """y[other, p] = Σ term(x[other, j + …], q[other, p]) over a band of j that p chooses."""
    p, other = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, STEP)
    place = (other * tl.num_programs(0) + p) * STEP + lanes
    q = tl.load(q_ptr + place)
    acc = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    start, end = _bounds(p, other, n, BAND, WIDTH, STEP)
    for j in range(start, end, STEP):
        inside = j + lanes < n
        if BAND == "below zero":
            inside = inside & (j + lanes >= 0)
        x = tl.load(x_ptr + other * n + j + lanes, mask=inside, other=0.0)
        acc += tl.where(inside, _term(x, q), 0.0)
    tl.store(y_ptr + place, acc)


@triton.jit
def two_bands_kernel(
    x_ptr, q_ptr, y_ptr, n, BAND: tl.constexpr, WIDTH: tl.constexpr, STEP: tl.constexpr
):
    """The causal band in two stages, as attention kernels do that mask the second one only."""
    p, other = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, STEP)
    place = (other * tl.num_programs(0) + p) * STEP + lanes
    q = tl.load(q_ptr + place)
    acc = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    for j in range(0, p * WIDTH, STEP):
        x = tl.load(x_ptr + other * n + j + lanes, mask=j + lanes < n, other=0.0)
        acc += tl.where(j + lanes < n, _term(x, q), 0.0)
    for j in range(p * WIDTH, (p + 1) * WIDTH, STEP):
        x = tl.load(x_ptr + other * n + j + lanes, mask=j + lanes < n, other=0.0)
        acc += tl.where(j + lanes < n, _term(x, q), 0.0)
    tl.store(y_ptr + place, acc)


def _band_of(band, p, other, n, width, step):
    start, end = 0, n
    if band == "causal":
        end = (p + 1) * width
    if band == "diagonal":
        start, end = p * width, (p + 1) * width
    if band == "rest":
        start = p * width
    if band == "window":
        start, end = max(0, (p - 2) * width), min(n, (p + 1) * width)
    if band == "falling end":
        end = n - p * width
    if band == "falling start":
        start = max(0, 3 * width - p * width)
    if band == "far end":
        end = min(n + width, (p + 2) * width)
    if band == "half steps":
        start = p * (step // 2)
    if band == "below zero":
        start = int((p * width - 2 * width) / step) * step
    if band == "other id":
        end = min(n, (other + 1) * width)
    if band == "row before":
        start = int((other * width - 2 * width * min(other, 1)) / step) * step
    return range(start, end, step)


def band(kernel, x, q, name, width=16, step=8):
    y = poisoned(q.shape, q)
    kernel[q.shape[1], q.shape[0]](x, q, y, x.shape[1], BAND=name, WIDTH=width, STEP=step)
    return y


def band_reference(x, q, name, width=16, step=8):
    rows = []
    for other in range(q.shape[0]):
        for p in range(q.shape[1]):
            total = torch.zeros_like(q[other, p]) + 0 * q[other, p] + 0 * x.sum()
            for j in _band_of(name, p, other, x.shape[1], width, step):
                first = 0 if name == "below zero" else -other * x.shape[1]
                lanes = [lane for lane in range(step) if first <= j + lane < x.shape[1]]
                if lanes:
                    at = torch.tensor(lanes, device=x.device)
                    xs, qs = x.flatten()[other * x.shape[1] + j + at], q[other, p, at]
                    total = total.index_add(0, at, xs * xs * qs + torch.tanh(xs + qs))
            rows.append(total)
    return torch.stack(rows).reshape(q.shape)


# What may meet in one gradient: each function reads x again and again in another way.
@triton.jit
def meeting_kernel(
    x_ptr, q_ptr, y_ptr, n, first, step, flag, HOW: tl.constexpr, STEP: tl.constexpr
):
    p = tl.program_id(0)
    lanes = tl.arange(0, STEP)
    q = tl.load(q_ptr + p * STEP + lanes)
    acc = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    if HOW == "plain":
        for j in range(0, n, STEP):
            acc += _term(tl.load(x_ptr + j + lanes), q)
    if HOW == "two lengths":
        for j in range(0, first, STEP):
            acc += _term(tl.load(x_ptr + j + lanes), q)
        for j in range(0, n, STEP):
            acc += 2.0 * _term(tl.load(x_ptr + j + lanes), q)
    if HOW == "twice in a loop":
        for j in range(0, n, STEP):
            acc += _term(tl.load(x_ptr + j + lanes), q)
            acc += 3.0 * _term(tl.load(x_ptr + j + lanes), 2.0 * q)
    if HOW == "two widths":
        half = tl.arange(0, STEP // 2)
        extra = 0.0
        for j in range(0, n, STEP):
            acc += _term(tl.load(x_ptr + j + lanes), q)
            extra += tl.sum(tl.load(x_ptr + j + half))
        acc += extra
    if HOW == "before the loop":
        acc += _term(tl.load(x_ptr + lanes), q)
        for j in range(0, n, STEP):
            acc += _term(tl.load(x_ptr + j + lanes), q)
    if HOW == "nested":
        for j in range(0, n, STEP):
            x = tl.load(x_ptr + j + lanes)
            for i in range(0, first):
                acc += _term(x, q) * tl.sin(0.3 * i)
    if HOW == "loaded in a nested loop":
        for i in range(0, 3):
            for j in range(0, n, STEP):
                acc += _term(tl.load(x_ptr + j + lanes), q * i)
    if HOW == "branch":
        for j in range(0, n, STEP):
            if j < first:
                acc += _term(tl.load(x_ptr + j + lanes), q)
    if HOW == "id in a branch":
        for j in range(0, n, STEP):
            x = tl.load(x_ptr + j + lanes)
            if j < flag:
                factor = tl.load(q_ptr + tl.program_id(0) * STEP + lanes)
            else:
                factor = (tl.num_programs(0) + p + 0 * lanes).to(x.dtype)
            acc += x * x * factor
    if HOW == "run-time step":
        for j in range(0, n, step):
            acc += _term(tl.load(x_ptr + j + lanes), q)
    if HOW == "from the program on":
        for j in range(p * STEP, n, STEP):
            x = tl.load(x_ptr + (j - p * STEP) + lanes)
            acc += _term(x, q)
    if HOW == "pointer from the start":
        ptrs = x_ptr + lanes
        for _ in range(p * STEP, n, STEP):
            acc += _term(tl.load(ptrs), q)
            ptrs += STEP
    if HOW == "mask by the program":
        for j in range(0, n, STEP):
            x = tl.load(x_ptr + j + lanes, mask=j + lanes <= p * STEP + 3, other=0.0)
            acc += _term(x, q)
    if HOW == "mask on the value":
        for j in range(0, n, STEP):
            x = tl.load(x_ptr + j + lanes)
            acc += tl.where(j + lanes <= p * STEP + 3, _term(x, q), 0.0)
    if HOW == "counted by a scalar":
        for j in range(0, n):
            acc += _term(tl.load(x_ptr + j), q)
    if HOW == "carried":
        before = q
        for j in range(0, n, STEP):
            x = tl.load(x_ptr + j + lanes)
            before = tanh(before + x)
            acc += before
    tl.store(y_ptr + p * STEP + lanes, acc)


def meeting(kernel, x, q, how, first=16, flag=16, repeats=1, STEP=8):
    y = poisoned(q.shape, q)
    kernel[q.shape[0], repeats](x, q, y, x.numel(), first, STEP, flag, HOW=how, STEP=STEP)
    return y


def meeting_reference(x, q, how, first=16, flag=16, repeats=1, STEP=8):
    programs, lanes = q.shape[0], torch.arange(STEP, device=x.device)
    tiles = x.reshape(-1, STEP)
    number = torch.arange(programs, device=x.device, dtype=q.dtype)[:, None]
    zero = 0 * q + 0 * x.sum()

    def term(tile, q):
        return tile * tile * q + torch.tanh(tile + q)

    total = sum((term(tile, q) for tile in tiles), zero)
    if how == "two lengths":
        return 2 * total + sum((term(tile, q) for tile in tiles[: first // STEP]), zero)
    if how == "twice in a loop":
        return total + sum((3 * term(tile, 2 * q) for tile in tiles), zero)
    if how == "two widths":
        return total + tiles[:, : STEP // 2].sum()
    if how == "before the loop":
        return total + term(tiles[0], q)
    if how == "nested":
        return total * sum(math.sin(0.3 * i) for i in range(first))
    if how == "loaded in a nested loop":
        return sum((term(tile, q * i) for tile in tiles for i in range(3)), zero)
    if how == "branch":
        return sum((term(tile, q) for tile in tiles[: math.ceil(first / STEP)]), zero)
    if how == "id in a branch":
        split = math.ceil(flag / STEP)
        squares = sum((tile * tile for tile in tiles[split:]), zero)
        return sum((t * t * q for t in tiles[:split]), zero) + squares * (programs + number)
    if how in ("from the program on", "pointer from the start"):
        sums = [
            sum((term(tile, q[p]) for tile in tiles[: max(0, len(tiles) - p)]), zero[p])
            for p in range(programs)
        ]
        return torch.stack(sums)
    if how in ("mask by the program", "mask on the value"):
        reach = STEP * torch.arange(programs, device=x.device)[:, None] + 3
        out = zero
        for n, tile in enumerate(tiles):
            seen = n * STEP + lanes <= reach
            if how == "mask on the value":
                out = out + torch.where(seen, term(tile, q), 0)
            else:
                out = out + term(torch.where(seen, tile, 0), q)
        return out
    if how == "counted by a scalar":
        return sum((term(value, q) for value in x), zero)
    if how == "carried":
        before, out = q, zero
        for tile in tiles:
            before = torch.tanh(before + tile)
            out = out + before
        return out
    return total


@triton.jit
def heads_kernel(
    q_ptr, k_ptr, y_ptr, length, H, group, GROUP: tl.constexpr, WHOLE: tl.constexpr,
    STEP: tl.constexpr,
):  # fmt: skip
    """y[b, h, p] = Σ term(k[b, h / GROUP, j], q[b, h, p]): attention's addresses.

    A program id holds batch and head; if WHOLE, queries are addressed by the id itself. Without
    GROUP, heads are in groups of run-time size.
    """
    p, pid = tl.program_id(0), tl.program_id(1)
    b, h = pid // H, pid % H
    if GROUP is not None:
        group = GROUP
    heads = H // group
    lanes = tl.arange(0, STEP)
    if WHOLE:
        place = (pid * tl.num_programs(0) + p) * STEP + lanes
    else:
        place = b * (H * tl.num_programs(0) * STEP) + (h * tl.num_programs(0) + p) * STEP + lanes
    q = tl.load(q_ptr + place)
    acc = tl.zeros((STEP,), dtype=q_ptr.dtype.element_ty)
    for j in range(0, length, STEP):
        k = tl.load(k_ptr + b * (heads * length) + (h // group) * length + j + lanes)
        acc += _term(k, q)
    tl.store(y_ptr + place, acc)


def heads(kernel, q, k, group, whole, fixed=True, STEP=8):
    """q: batch × heads × programs × STEP; k: batch × heads / group × length."""
    y = poisoned(q.shape, q)
    kernel[q.shape[2], q.shape[0] * q.shape[1]](
        q,
        k,
        y,
        k.shape[2],
        q.shape[1],
        group,
        GROUP=group if fixed else None,
        WHOLE=whole,
        STEP=STEP,
    )
    return y


def heads_reference(q, k, group, whole, fixed=True, STEP=8):
    k = k.repeat_interleave(group, 1).unflatten(2, (-1, STEP))[:, :, None]
    q = q[:, :, :, None]
    return (k * k * q + torch.tanh(k + q)).sum(3)


@triton.jit
def staircase_kernel(q_ptr, k_ptr, y_ptr, programs, STEP: tl.constexpr):
    """y[h, p] = Σ term(k[j], q[h, p]) over j < (p + 1) · STEP, with h and p in one program id."""
    pid = tl.program_id(0)
    h, p = pid // programs, pid % programs
    lanes = tl.arange(0, STEP)
    place = (h * programs + p) * STEP + lanes
    q = tl.load(q_ptr + place)
    acc = tl.zeros((STEP,), dtype=q_ptr.dtype.element_ty)
    for j in range(0, (p + 1) * STEP, STEP):
        acc += _term(tl.load(k_ptr + j + lanes), q)
    tl.store(y_ptr + place, acc)


def staircase(kernel, q, k, STEP=8):
    """q: heads × programs × STEP; k: programs · STEP."""
    y = poisoned(q.shape, q)
    kernel[(q.shape[0] * q.shape[1],)](q, k, y, q.shape[1], STEP=STEP)
    return y


def staircase_reference(q, k, STEP=8):
    k, q = k.unflatten(0, (-1, STEP))[None, None], q[:, :, None]
    steps = torch.arange(q.shape[1], device=q.device)
    reached = (steps[:, None] >= steps)[None, :, :, None]
    return torch.where(reached, k * k * q + torch.tanh(k + q), 0.0).sum(2)


@triton.jit
def skipping_kernel(
    x_ptr, flag_ptr, y_ptr, n, stride, HOW: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr
):
    """y[row] = Σ x[row, j]² of rows, or of elements, that are flagged."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    if HOW == "early return":
        tl.store(y_ptr + row, 0.0)
        if tl.load(flag_ptr + row * n) == 0:
            return
        x = tl.load(x_ptr + row * stride + columns, mask=columns < n, other=0.0)
        tl.store(y_ptr + row, tl.sum(x * x, 0))
    elif HOW == "mask":
        flags = tl.load(flag_ptr + row * n + columns, mask=columns < n, other=0)
        mask = (columns < n) & (flags != 0)
        x = tl.load(x_ptr + row * stride + columns, mask=mask, other=0.0)
        tl.store(y_ptr + row, tl.sum(x * x, 0))
    else:
        acc = tl.zeros((STEP,), x_ptr.dtype.element_ty)
        for start in range(0, n, STEP):
            place = start + tl.arange(0, STEP)
            if tl.load(flag_ptr + row * n + start) != 0:
                x = tl.load(x_ptr + row * stride + place, mask=place < n, other=0.0)
                acc += x * x
        tl.store(y_ptr + row, tl.sum(acc, 0))


def skipping(kernel, x, flag, how, BLOCK=64, STEP=16):
    y = poisoned((x.shape[0],), x)
    kernel[(x.shape[0],)](x, flag, y, x.shape[1], x.stride(0), HOW=how, BLOCK=BLOCK, STEP=STEP)
    return y


def skipping_reference(x, flag, how, BLOCK=64, STEP=16):
    if how == "early return":
        flag = flag[:, :1].expand_as(flag)
    elif how == "branch":
        flag = flag[:, ::STEP].repeat_interleave(STEP, 1)[:, : flag.shape[1]]
    return torch.where(flag != 0, x * x, 0.0).sum(1)


@triton.jit
def shared_product_kernel(
    a_ptr, b_ptr, c_ptr, m, n, k,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    """C[i] = A[i] @ B: one B for all of a batch."""
    pid_m, pid_n, i = tl.program_id(0), tl.program_id(1), tl.program_id(2)
    rows = pid_m * BLOCK_M + tl.arange(0, BLOCK_M)[:, None]
    columns = pid_n * BLOCK_N + tl.arange(0, BLOCK_N)[None, :]
    acc = tl.zeros((BLOCK_M, BLOCK_N), dtype=tl.float32)
    for start in range(0, k, BLOCK_K):
        inner = start + tl.arange(0, BLOCK_K)
        down, across = inner[:, None], inner[None, :]
        a_mask, b_mask = (rows < m) & (across < k), (down < k) & (columns < n)
        a = tl.load(a_ptr + i * (m * k) + rows * k + across, mask=a_mask, other=0.0)
        b = tl.load(b_ptr + down * n + columns, mask=b_mask, other=0.0)
        acc = tl.dot(a, b, acc, input_precision="ieee")
    mask = (rows < m) & (columns < n)
    tl.store(c_ptr + i * (m * n) + rows * n + columns, acc.to(c_ptr.dtype.element_ty), mask=mask)


def shared_product(kernel, a, b, block=16):
    (batch, m, k), n = a.shape, b.shape[1]
    c = poisoned((batch, m, n), a)
    kernel[triton.cdiv(m, block), triton.cdiv(n, block), batch](
        a, b, c, m, n, k, BLOCK_M=block, BLOCK_N=block, BLOCK_K=block
    )
    return c


@triton.jit
def window_and_triangle_kernel(x_ptr, z_ptr, y_ptr, rows, columns, STEP: tl.constexpr):
    """y[r, c] = Σ x²[j] over the rows around r + Σ z²[j] over those up to r, ids in groups of 2."""
    program = tl.program_id(0)
    span = 2 * columns
    first = program // span * 2
    height = tl.minimum(rows - first, 2)
    row = first + program % span % height
    column = program % span // height
    lanes = tl.arange(0, STEP)
    near = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    for j in range(tl.maximum(row - 1, 0), tl.minimum(row + 2, rows)):
        x = tl.load(x_ptr + j * STEP + lanes)
        near += x * x
    before = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    for j in range(row + 1):
        z = tl.load(z_ptr + j * STEP + lanes)
        before += z * z
    place = (row * columns + column) * 2 * STEP + lanes
    tl.store(y_ptr + place, tanh(near))
    tl.store(y_ptr + place + STEP, tanh(before))


def window_and_triangle(kernel, x, z, columns):
    rows, step = x.shape
    y = poisoned((rows, columns, 2, step), x)
    kernel[(rows * columns,)](x, z, y, rows, columns, STEP=step)
    return y


def window_and_triangle_reference(x, z, columns):
    rows = range(x.shape[0])
    near = [x[max(r - 1, 0) : r + 2].square().sum(0) for r in rows]
    before = z.square().cumsum(0)
    y = torch.stack([torch.stack(near), before], 1).tanh()
    return y[:, None].expand(-1, columns, -1, -1)


@triton.jit
def parts_kernel(x_ptr, y_ptr, n, distance, stride, PARTS: tl.constexpr, BLOCK: tl.constexpr):
    """Two outputs a row, of two or three parts of its input that lie `distance` apart."""
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n
    x_ptrs = x_ptr + row * stride + columns
    a = tl.load(x_ptrs, mask=mask, other=0.0)
    b = tl.load(x_ptrs + distance, mask=mask, other=0.0)
    c = b
    if PARTS == 3:
        c = tl.load(x_ptrs + 2 * distance, mask=mask, other=0.0)
    y_ptrs = y_ptr + row * 2 * n + columns
    tl.store(y_ptrs, a * b, mask=mask)
    tl.store(y_ptrs + n, a + c * c, mask=mask)


def parts(kernel, x, n, distance, count):
    """Of x: (rows, at least n + (count - 1) · distance)."""
    y = poisoned((x.shape[0], 2 * n), x)
    BLOCK = triton.next_power_of_2(n)
    kernel[(x.shape[0],)](x, y, n, distance, x.stride(0), PARTS=count, BLOCK=BLOCK)
    return y


def parts_reference(x, n, distance, count):
    a, b, c = (x[:, i * distance : i * distance + n] for i in (0, 1, count - 1))
    return torch.cat([a * b, a + c * c], 1)


@triton.jit
def counted_kernel(x_ptr, y_ptr, n, STEP: tl.constexpr):
    """y[p] = Σ (j - p + 1) · x²[j] over j from p on: a counter starts where the program does."""
    p = tl.program_id(0)
    lanes = tl.arange(0, STEP)
    acc = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    count = 1
    for j in range(p, n):
        x = tl.load(x_ptr + j * STEP + lanes)
        acc += x * x * count
        count += 1
    tl.store(y_ptr + p * STEP + lanes, acc)


def counted(kernel, x):
    y = poisoned(x.shape, x)
    kernel[(x.shape[0],)](x, y, x.shape[0], STEP=x.shape[1])
    return y


def counted_reference(x):
    squares = x.square()
    rows = range(x.shape[0])
    counts = torch.tensor([[max(j - p + 1, 0) for j in rows] for p in rows])
    return counts.to(squares) @ squares


@triton.jit
def opposites_kernel(x_ptr, q_ptr, y_ptr, n, STEP: tl.constexpr, LOOPS: tl.constexpr):
    """y[p] = Σ q[p] · x²[j] + q²[p] · x³[n - 1 - j], in one loop or in two."""
    p = tl.program_id(0)
    lanes = tl.arange(0, STEP)
    q = tl.load(q_ptr + p * STEP + lanes)
    acc = tl.zeros((STEP,), dtype=x_ptr.dtype.element_ty)
    for j in range(n):
        x = tl.load(x_ptr + (n - 1 - j) * STEP + lanes)
        acc += q * q * x * x * x
        if LOOPS == 1:
            x = tl.load(x_ptr + j * STEP + lanes)
            acc += q * x * x
    if LOOPS == 2:
        for j in range(n):
            x = tl.load(x_ptr + j * STEP + lanes)
            acc += q * x * x
    tl.store(y_ptr + p * STEP + lanes, acc)


def opposites(kernel, x, q, loops):
    y = poisoned(q.shape, x)
    kernel[(q.shape[0],)](x, q, y, x.shape[0], STEP=x.shape[1], LOOPS=loops)
    return y


def opposites_reference(x, q, loops):
    return q * x.square().sum(0) + q.square() * x.pow(3).sum(0)


@triton.jit
def weights_kernel(x_ptr, w_ptr, v_ptr, y_ptr, STEP: tl.constexpr):
    """y[r, c] = x²[r, c] · w + tanh(x[r, c]) · v[c]: sums over all programs, and over rows."""
    row, column = tl.program_id(0), tl.program_id(1)
    lanes = tl.arange(0, STEP)
    place = (row * tl.num_programs(1) + column) * STEP + lanes
    x = tl.load(x_ptr + place)
    w, v = tl.load(w_ptr + lanes), tl.load(v_ptr + column * STEP + lanes)
    tl.store(y_ptr + place, x * x * w + tanh(x) * v)


def weights(kernel, x, w, v):
    y = poisoned(x.shape, x)
    kernel[x.shape[:2]](x, w, v, y, STEP=x.shape[2])
    return y


def weights_reference(x, w, v):
    return x.square() * w + x.tanh() * v
