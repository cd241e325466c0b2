"""Rows that are longer than a tile, which loops read one after the other."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen, with_output


@triton.jit
def twice_kernel(
    x_ptr, w_ptr, s_ptr, y_ptr, n, stride_x, stride_y, first,
    HOW: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """y = x t + w, where t is the sum of x w over the row from `first` on, or as `HOW` says."""
    row = tl.program_id(0)
    x_ptr += row * stride_x
    y_ptr += row * stride_y
    lanes = tl.arange(0, BLOCK)
    if HOW == "wide":
        n = n.to(tl.int64)
    total = widen(tl.load(x_ptr + lanes, mask=lanes < 0, other=0.0))
    scalar = tl.sum(total)
    number = first
    last = first - 1
    x_tile = x_ptr + first + lanes
    for start in range(first, n, BLOCK):
        columns = start + lanes
        if HOW == "number":
            columns = number + lanes
            number += BLOCK
        mask = columns < n
        if HOW == "unmasked":
            x = widen(tl.load(x_ptr + columns))
            w = widen(tl.load(w_ptr + columns))
        elif HOW == "pointers":
            x = widen(tl.load(x_tile, mask=mask, other=0.0))
            x_tile += BLOCK
            w = widen(tl.load(w_ptr + columns, mask=mask, other=0.0))
        else:
            x = widen(tl.load(x_ptr + columns, mask=mask, other=0.0))
            w = widen(tl.load(w_ptr + columns, mask=mask, other=0.0))
        if HOW == "each scaled":
            x *= widen(tl.load(s_ptr + start // BLOCK))
        elif HOW == "each divided":
            x *= 1 + n // (start + 1)
        elif HOW == "each halved":
            x *= tl.where(start > first, 0.5, 1.0)
        # What is left out of a row counts.
        v = x * w + tl.where(mask, 0.0, 1.0) if HOW == "filled" else x * w
        if HOW == "scalar":
            scalar += tl.sum(v)
        elif HOW == "ones":
            total += v
            scalar += 1.0
        elif HOW == "decay":
            total = 0.5 * total + v
        elif HOW == "largest":
            total = tl.maximum(total, v)
        elif HOW == "smallest":
            scalar = tl.minimum(scalar, tl.min(v))
        elif HOW == "last positive":
            last = tl.maximum(last, tl.max(tl.where((x > 0) & mask, columns, -1)))
            total += v
        elif HOW == "pairs":
            pairs = tl.reshape(v, (BLOCK // 2, 2))
            scalar += tl.sum(tl.sum(tl.trans(pairs), axis=1) * tl.sum(pairs, axis=0))
        else:
            total += v
    t = tl.sum(total) * scalar if HOW == "ones" else tl.sum(total) + scalar
    if HOW == "number":
        t *= number
    elif HOW == "last positive":
        t *= last
    until = n - BLOCK if HOW == "shorter" else n
    for start in range(first, until, BLOCK):
        columns = start + lanes
        mask = columns < n
        place = lanes if HOW == "meeting" else columns
        if HOW == "unmasked":
            tl.store(y_ptr + place, widen(tl.load(x_ptr + columns)) * t)
        else:
            x = widen(tl.load(x_ptr + columns, mask=mask, other=0.0))
            w = widen(tl.load(w_ptr + columns, mask=mask, other=0.0))
            y = x * t + w
            if HOW == "in place":
                tl.store(x_ptr + place, y, mask=mask)
            elif HOW == "added":
                tl.atomic_add(y_ptr + place, y, mask=mask)
            else:
                tl.store(y_ptr + place, y, mask=mask)


@triton.jit
def softmax_kernel(x_ptr, y_ptr, l_ptr, n, HOW: tl.constexpr, BLOCK: tl.constexpr):
    """y = softmax of each row of x, l: the logarithm of the sum of exponentials."""
    row = tl.program_id(0)
    x_ptr += row * n
    y_ptr += row * n
    lanes = tl.arange(0, BLOCK)
    none = float("-inf")
    m, s = none, 0.0
    if HOW == "online":
        for start in range(0, n, BLOCK):
            columns = start + lanes
            x = tl.load(x_ptr + columns, mask=columns < n, other=none).to(tl.float32)
            above = tl.maximum(m, tl.max(x, 0))
            s = s * tl.exp(m - above) + tl.sum(tl.exp(x - above), 0)
            m = above
    elif HOW == "online by lanes":
        largest = tl.full((BLOCK,), none, tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            columns = start + lanes
            x = tl.load(x_ptr + columns, mask=columns < n, other=-1e4).to(tl.float32)
            above = tl.maximum(largest, x)
            sums = sums * tl.exp(largest - above) + tl.exp(x - above)
            largest = above
        m = tl.max(largest, 0)
        s = tl.sum(sums * tl.exp(largest - m), 0)
    else:
        largest = tl.full((BLOCK,), none, tl.float32)
        sums = tl.zeros((BLOCK,), tl.float32)
        for start in range(0, n, BLOCK):
            columns = start + lanes
            x = tl.load(x_ptr + columns, mask=columns < n, other=none).to(tl.float32)
            largest = tl.maximum(largest, x)
        m = tl.max(largest, 0)
        for start in range(0, n, BLOCK):
            columns = start + lanes
            x = tl.load(x_ptr + columns, mask=columns < n, other=none).to(tl.float32)
            sums += tl.exp(x - m)
        s = tl.sum(sums, 0)
    for start in range(0, n, BLOCK):
        columns = start + lanes
        x = tl.load(x_ptr + columns, mask=columns < n, other=none).to(tl.float32)
        tl.store(y_ptr + columns, tl.exp(x - m) / s, mask=columns < n)
    tl.store(l_ptr + row, m + tl.log(s))


@triton.jit
def stored_kernel(
    x_ptr, r_ptr, w_ptr, s_ptr, y_ptr, z_ptr, n, HOW: tl.constexpr, BLOCK: tl.constexpr
):  # fmt: skip
    """s = x + r, y = s w times the sum of s² over the row, z: of what is read of s, the square."""
    row = tl.program_id(0)
    x_ptr += row * n
    r_ptr += row * n
    s_ptr += row * n
    y_ptr += row * n
    squares = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    read = tl.zeros((BLOCK,), x_ptr.dtype.element_ty)
    squares, read = widen(squares), widen(read)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n
        # Lanes that are left out have numbers, too.
        x = widen(tl.load(x_ptr + columns, mask=mask, other=3.0))
        s = x + widen(tl.load(r_ptr + columns, mask=mask, other=0.0))
        tl.store(s_ptr + columns, s, mask=mask)
        if HOW == "twice":
            tl.store(s_ptr + columns, 2 * s, mask=mask)
        squares += tl.where(mask, s * s, 0.0)
    total = tl.sum(squares)
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        mask = columns < n
        if HOW == "filled":
            s = widen(tl.load(s_ptr + columns, mask=mask, other=1.0))
        elif HOW == "fewer":
            s = widen(tl.load(s_ptr + columns, mask=mask & (columns != 1), other=0.0))
        elif HOW == "reversed":
            s = widen(tl.load(s_ptr + n - 1 - columns, mask=mask, other=0.0))
        else:
            s = widen(tl.load(s_ptr + columns, mask=mask, other=0.0))
        read += s
        w = widen(tl.load(w_ptr + columns, mask=mask, other=0.0))
        tl.store(y_ptr + columns, s * w * total, mask=mask)
    read = tl.sum(read)
    tl.store(z_ptr + row, read * read)


def _stored(n, how, first, BLOCK):
    """How many columns the second loop stores, from `first` on."""
    until = n - BLOCK if how == "shorter" else n
    return min(n - first, -(-max(until - first, 0) // BLOCK) * BLOCK)


def twice(kernel, x, w, s, how="", first=0, BLOCK=16):
    """Returns the part of y that is stored."""
    rows, n = x.shape
    x, y = with_output(x, how)
    kernel[(rows,)](x, w, s, y, n, x.stride(0), y.stride(0), first, HOW=how, BLOCK=BLOCK)
    if how == "meeting":
        return y[:, : min(BLOCK, n)]
    return y[:, first : first + _stored(n, how, first, BLOCK)]


def twice_reference(x, w, s, how="", first=0, BLOCK=16):
    n = x.shape[1]
    x, w = x[:, first:], w[first:]
    length = n - first
    trips = -(-length // BLOCK)
    starts = first + torch.arange(length, device=x.device) // BLOCK * BLOCK
    v = x * w
    if how == "each scaled":
        v = v * s[starts // BLOCK]
    elif how == "each divided":
        v = v * (1 + n // (starts + 1))
    elif how == "each halved":
        v = v * torch.where(starts > first, 0.5, 1.0).to(x.dtype)
    tiles = torch.nn.functional.pad(v, (0, trips * BLOCK - length)).reshape(-1, trips, BLOCK)
    t = v.sum(-1)
    if how == "filled":
        t = t + trips * BLOCK - length
    elif how == "ones":
        t = t * trips
    elif how == "decay":
        powers = 0.5 ** torch.arange(trips - 1, -1, -1, dtype=x.dtype, device=x.device)
        t = (tiles.sum(-1) * powers).sum(-1)
    elif how == "largest":
        t = tiles.amax(1).clamp(min=0).sum(-1)
    elif how == "smallest":
        t = tiles.amin((1, 2)).clamp(max=0)
    elif how == "last positive":
        columns = torch.arange(first, n, device=x.device)
        t = t * torch.where(x > 0, columns, first - 1).amax(1)
    elif how == "pairs":
        t = tiles.reshape(-1, trips, BLOCK // 2, 2).sum(2).square().sum((1, 2))
    elif how == "number":
        t = t * (first + trips * BLOCK)
    y = x * t[:, None]
    if how != "unmasked":
        y = y + w
    if how == "meeting":
        last = [max(range(lane, n, BLOCK)) for lane in range(min(BLOCK, n))]
        return y[:, last]
    return y[:, : _stored(n, how, first, BLOCK)]


def softmax(kernel, x, how, BLOCK=16):
    """x: (rows, n)"""
    y, sums = poisoned(x.shape, x), poisoned(x.shape[:1], x)
    kernel[x.shape[:1]](x, y, sums, x.shape[1], HOW=how, BLOCK=BLOCK)
    return y, sums


def softmax_reference(x, how, BLOCK=16):
    return torch.softmax(x, 1), torch.logsumexp(x, 1)


def stored(kernel, x, r, w, how="", BLOCK=16):
    """x and r: (rows, n), w: (n,)"""
    r, s = with_output(r, how)
    x, y = with_output(x, "in place" if how == "in its place" else "")
    z = poisoned(x.shape[:1], x)
    kernel[x.shape[:1]](x, r, w, s, y, z, x.shape[1], HOW=how, BLOCK=BLOCK)
    return s, y, z


def stored_reference(x, r, w, how="", BLOCK=16):
    s = x + r
    total = s.square().sum(1, keepdim=True)
    if how == "twice":
        s = 2 * s
    read = s
    if how == "fewer":
        read = s * (torch.arange(s.shape[1], device=s.device) != 1)
    elif how == "reversed":
        read = s.flip(1)
    filled = -s.shape[1] % BLOCK if how == "filled" else 0
    return s, read * w * total, (read.sum(1) + filled).square()
