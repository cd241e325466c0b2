"""What kernels make of a sum in float32 before they round it."""

import torch
import torch.nn.functional as F
import triton
import triton.language as tl

from .common import poisoned, precision_of, tanh, widen


@triton.jit
def epilogue_kernel(
    a_ptr, w_ptr, v_ptr, bias_ptr, keep_ptr, y_ptr, z_ptr, m, n, k,
    BLOCK: tl.constexpr, KIND: tl.constexpr, PRECISION: tl.constexpr,
):  # fmt: skip
    """y = f(a w + bias) or f(a w + bias, a v), rounded, and maybe a second output."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = (rows < m)[:, None] & (columns < n)[None, :]
    bias = widen(tl.load(bias_ptr + columns, mask=columns < n, other=0.0))
    acc = tl.zeros((BLOCK, BLOCK), tl.float32) + bias[None, :]
    other = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, k, BLOCK):
        summed = start + tl.arange(0, BLOCK)
        here = (rows < m)[:, None] & (summed < k)[None, :]
        a = tl.load(a_ptr + rows[:, None] * k + summed[None, :], mask=here, other=0.0)
        there = (summed < k)[:, None] & (columns < n)[None, :]
        places = summed[:, None] * n + columns[None, :]
        w = tl.load(w_ptr + places, mask=there, other=0.0)
        acc = tl.dot(a, w, acc, input_precision=PRECISION)
        if KIND == "gate":
            v = tl.load(v_ptr + places, mask=there, other=0.0)
            other = tl.dot(a, v, other, input_precision=PRECISION)
    place = rows[:, None] * n + columns[None, :]
    y = acc
    if KIND == "tanh":
        y = tanh(acc)
    if KIND == "steps":
        y = tl.where(acc > 0, acc * acc, 0.0625 * acc)
    if KIND == "log":
        y = tl.log(acc)
    if KIND == "dropout":
        keep = tl.load(keep_ptr + place, mask=mask, other=0)
        y = tl.where(keep != 0, acc * tl.sigmoid(acc), 0.0) * 2
    if KIND == "gate":
        y = acc * tl.sigmoid(acc) * other
    if KIND == "two outputs":
        y = tanh(acc)
        tl.store(z_ptr + place, tl.sigmoid(acc), mask=mask)
    if KIND == "stored, too":
        y = tanh(acc)
        tl.store(z_ptr + place, acc, mask=mask)
    if KIND == "rows":
        y = acc * tl.sum(acc * acc, 1)[:, None] / n
    tl.store(y_ptr + place, y, mask=mask)


KINDS = ("tanh", "steps", "log", "dropout", "gate", "two outputs", "stored, too", "rows")


def epilogue(kernel, a, w, v, bias, keep, kind, BLOCK=16):
    (m, k), n = a.shape, w.shape[1]
    y, z = poisoned((m, n), a), poisoned((m, n), a)
    grid = (triton.cdiv(m, BLOCK), triton.cdiv(n, BLOCK))
    kernel[grid](
        a, w, v, bias, keep, y, z, m, n, k, BLOCK=BLOCK, KIND=kind, PRECISION=precision_of(a)
    )
    return (y, z) if kind in ("two outputs", "stored, too") else y


def epilogue_reference(a, w, v, bias, keep, kind, BLOCK=16):
    # In float32, as the kernel.
    wide = torch.promote_types(a.dtype, torch.float32)
    z = (a @ w).to(wide) + bias
    if kind == "tanh":
        y = z.tanh()
    elif kind == "steps":
        y = torch.where(z > 0, z * z, 0.0625 * z)
    elif kind == "log":
        y = z.log()
    elif kind == "dropout":
        y = F.silu(z) * (keep != 0) * 2
    elif kind == "gate":
        y = F.silu(z) * (a @ v).to(wide)
    elif kind == "rows":
        blocks = z.split(BLOCK, 1)
        y = torch.cat([b * b.square().sum(1, keepdim=True) for b in blocks], 1) / z.shape[1]
    else:
        other = z.sigmoid() if kind == "two outputs" else z
        return z.tanh().to(a.dtype), other.to(a.dtype)
    return y.to(a.dtype)
