"""Inline assembly, one instruction after the other and in the forms that libraries have."""

import torch
import triton
import triton.language as tl

from .common import poisoned


@triton.jit
def assembly_kernel(
    a_ptr,
    b_ptr,
    c_ptr,
    y_ptr,
    n,
    ASM: tl.constexpr,
    CONSTRAINTS: tl.constexpr,
    COUNT: tl.constexpr,
    PACK: tl.constexpr,
    BLOCK: tl.constexpr,
):
    """Assembly of one to three operands and one result."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    a = tl.load(a_ptr + offsets, mask=mask, other=1)
    b = tl.load(b_ptr + offsets, mask=mask, other=1)
    c = tl.load(c_ptr + offsets, mask=mask, other=1)
    if COUNT == 1:
        args = [a]
    elif COUNT == 2:
        args = [a, b]
    else:
        args = [a, b, c]
    y = tl.inline_asm_elementwise(
        ASM, CONSTRAINTS, args, y_ptr.dtype.element_ty, is_pure=True, pack=PACK
    )
    tl.store(y_ptr + offsets, y, mask=mask)


def registers(dtype, pack: int) -> list[str]:
    """Return the constraints for the registers that elements are in."""
    bits = torch.empty((), dtype=dtype).element_size() * 8
    if bits == 64:
        return ["d" if dtype.is_floating_point else "l"] * pack
    if bits == 32:
        return ["f" if dtype.is_floating_point else "r"] * pack
    if pack == 1:
        return ["h" if bits == 16 else "r"]
    return ["r"] * max(pack * bits // 32, 1)


def constraints(result, operands, pack: int = 1) -> str:
    """Return what Triton is told of the registers."""
    outs = ["=" + r for r in registers(result, pack)]
    return ",".join(outs + [r for dtype in operands for r in registers(dtype, pack)])


def run(kernel, text, dtype, *operands, pack=1, constrained=None, block=128):
    """Launch a kernel of this signature; all operands are of one shape."""
    if dtype.is_floating_point:
        y = poisoned(operands[0].shape, operands[0], dtype)
    else:
        y = torch.full_like(operands[0], 77, dtype=dtype)
    a, b, c = (*operands, *operands[:1] * 2)[:3]
    n = y.numel()
    kernel[(triton.cdiv(n, block),)](
        a,
        b,
        c,
        y,
        n,
        ASM=text,
        CONSTRAINTS=constrained or constraints(dtype, [x.dtype for x in operands], pack),
        COUNT=len(operands),
        PACK=pack,
        BLOCK=block,
    )
    return y
