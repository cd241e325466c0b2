"""Products whose scores are masked by comparisons of rows with the columns of an iteration."""

import torch
import triton
import triton.language as tl

from .common import poisoned

# The last three are no conjunctions of bounds.
FORMS = (
    *("causal", "shifted", "scaled", "window", "difference", "wide", "between"),
    *("reversed", "outside", "diagonal", "negated"),
)


@triton.jit
def allowed(row, column, width, FORM: tl.constexpr):
    if FORM == "causal":
        seen = column <= row
    elif FORM == "shifted":
        seen = column < row + width
    elif FORM == "scaled":
        seen = 2 * column <= 3 * row + width
    elif FORM == "window":
        seen = (column <= row) & (column > row - width)
    elif FORM == "difference":
        seen = (row - column < width) & (row - column >= -2 * width)
    elif FORM == "wide":
        seen = column.to(tl.int64) + width >= row.to(tl.int64)
    elif FORM == "between":
        seen = (row * 0 + column >= 7) & (row * 0 + column < 3 * width)
    elif FORM == "reversed":
        seen = 40 - column <= row
    elif FORM == "outside":
        seen = (column <= row - width) | (column > row + width)
    elif FORM == "diagonal":
        seen = (column != row) & (column <= row + width)
    else:
        seen = ~(column > row)
    return seen


@triton.jit
def masked_product_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, rows, columns, width, low, step, DIM: tl.constexpr,
    BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, FORM: tl.constexpr, STEPS: tl.constexpr,
):  # fmt: skip
    """sin(q kᵀ) v, of what is allowed from column ``low`` on; STEPS: in steps of ``step``."""
    row = tl.program_id(0) * BLOCK_M + tl.arange(0, BLOCK_M)
    dims = tl.arange(0, DIM)
    places = row[:, None] * DIM + dims[None, :]
    q = tl.load(q_ptr + places, mask=row[:, None] < rows, other=0.0)
    acc = tl.zeros((BLOCK_M, DIM), tl.float32)
    for block in range(low, columns, step if STEPS else BLOCK_N):
        column = block + tl.arange(0, BLOCK_N)
        others = column[:, None] * DIM + dims[None, :]
        k = tl.load(k_ptr + others, mask=column[:, None] < columns, other=0.0)
        v = tl.load(v_ptr + others, mask=column[:, None] < columns, other=0.0)
        scores = tl.dot(q, tl.trans(k), input_precision="ieee")
        seen = allowed(row[:, None], column[None, :], width, FORM)
        scores = tl.where(seen, tl.sin(scores), 0.0)
        acc += tl.dot(scores, v, input_precision="ieee")
    tl.store(out_ptr + places, acc, mask=row[:, None] < rows)


def masked_product(kernel, q, k, v, width, low, form, steps=False, tiles=(16, 16)):
    """q: (rows, dim); k, v: (columns, dim)"""
    (rows, dim), (block_m, block_n) = q.shape, tiles
    out = poisoned(q.shape, q)
    kernel[(triton.cdiv(rows, block_m),)](
        q, k, v, out, rows, k.shape[0], width, low, block_n, DIM=dim, BLOCK_M=block_m,
        BLOCK_N=block_n, FORM=form, STEPS=steps,
    )  # fmt: skip
    return out


def masked_product_reference(q, k, v, width, low, form, steps=False, tiles=(16, 16)):
    row = torch.arange(q.shape[0], device=q.device)[:, None]
    column = torch.arange(k.shape[0], device=q.device)[None, :]
    seen = {
        "causal": column <= row,
        "shifted": column < row + width,
        "scaled": 2 * column <= 3 * row + width,
        "window": (column <= row) & (column > row - width),
        "difference": (row - column < width) & (row - column >= -2 * width),
        "wide": column + width >= row,
        "between": (column >= 7) & (column < 3 * width),
        "reversed": 40 - column <= row,
        "outside": (column <= row - width) | (column > row + width),
        "diagonal": (column != row) & (column <= row + width),
        "negated": column <= row,
    }[form]
    return torch.where(seen & (column >= low), (q @ k.T).sin(), 0.0) @ v
