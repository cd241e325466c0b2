"""Operations with several results, of which some programs or lanes store only one."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def _affine(a, b, c, d):
    """x ↦ c (a x + b) + d."""
    return a * c, c * b + d


@triton.jit
def _dual(a, b, c, d):
    """(a + b ε) (c + d ε), in which sides may be swapped."""
    return a * c, a * d + b * c


@triton.jit
def _product_and_ratio(a, b):
    return a * a, a / b


@triton.jit
def pairs_kernel(
    a_ptr, b_ptr, y_ptr, z_ptr, n, N: tl.constexpr, HOW: tl.constexpr, AGAIN: tl.constexpr
):
    """y is of a alone, for all rows; z is of both, for the first n rows.

    With AGAIN, the first of z is stored once more where n > N, which it never is.
    """
    i = tl.arange(0, N)
    places = i[:, None] * N + i[None, :]
    a, b = tl.load(a_ptr + places), tl.load(b_ptr + places)
    if HOW == "reduce":
        y, z = tl.reduce((a, b), 1, _dual)
        tl.store(y_ptr + i, y)
        tl.store(z_ptr + i, z, mask=i < n)
    else:
        if HOW == "map":
            y, z = tl.map_elementwise(_product_and_ratio, a, b)
        else:
            y, z = tl.associative_scan((a, b), 1, _affine, reverse=HOW == "reversed")
        tl.store(y_ptr + places, y)
        tl.store(z_ptr + places, z, mask=(i < n)[:, None])
    if AGAIN:
        tl.store(z_ptr, tl.max(z), mask=n > N)


def pairs(kernel, a, b, n, how, again):
    """a, b: (N, N); returns y, and z, which is NaN in rows that are not stored."""
    shape = (len(a),) if how == "reduce" else a.shape
    y, z = poisoned(shape, a), poisoned(shape, a)
    kernel[(1,)](a, b, y, z, n, N=len(a), HOW=how, AGAIN=again)
    return y, z[:n]


def pairs_reference(a, b, n, how, again):
    if how == "map":
        return a * a, (a / b)[:n]
    if how == "reversed":
        a, b = a.flip(1), b.flip(1)
    rows, states = [a[:, 0]], [b[:, 0]]
    for column in range(1, a.shape[1]):
        before = rows[-1] if how == "reduce" else 1
        states.append(a[:, column] * states[-1] + before * b[:, column])
        rows.append(rows[-1] * a[:, column])
    y, z = torch.stack(rows, 1), torch.stack(states, 1)
    if how == "reduce":
        return y[:, -1], z[:n, -1]
    if how == "reversed":
        y, z = y.flip(1), z.flip(1)
    return y, z[:n]
