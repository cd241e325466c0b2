"""Exported modules for tensors with gaps, or with elements that share memory."""

import pytest
import torch
import triton
import triton.language as tl
from exporting import exported, passes_ruff, tensors
from test_surroundings import amid
from triton.backends.autodiff import AutodiffError, autodiff, differentiable


@triton.jit
def windows_kernel(x_ptr, y_ptr, rows, columns, row, step, BLOCK: tl.constexpr):
    """Products of neighbours in each row: gradients are added up."""
    r, i = tl.program_id(0), tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    inside = i < columns - 1
    x = tl.load(x_ptr + r * row + i * step, inside)
    y = x * tl.load(x_ptr + r * row + (i + 1) * step, inside)
    tl.store(y_ptr + r * (columns - 1) + i, y, inside)


def windows(kernel, x):
    rows, columns = x.shape
    y = x.new_empty(rows, columns - 1)
    grid = rows, triton.cdiv(columns - 1, 16)
    kernel[grid](x, y, rows, columns, *x.stride(), BLOCK=16)
    return y


@triton.jit
def picked_kernel(x_ptr, index_ptr, y_ptr, n, step, BLOCK: tl.constexpr):
    """Elements that only the memory knows."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i, i < n)
    x = tl.load(x_ptr + index * step, i < n)
    tl.store(y_ptr + i, x * x, i < n)


def picked(kernel, x):
    """Each element of the first column, and the first one often."""
    count = x.shape[0]
    index = (torch.arange(2 * count, device=x.device) % (2 * count - 3)) % count
    y = x.new_empty(2 * count)
    grid = (triton.cdiv(2 * count, 16),)
    kernel[grid](x, index.int(), y, 2 * count, x.stride(0), BLOCK=16)
    return y


@triton.jit
def shared_kernel(w_ptr, y_ptr, rows, columns, row, step, M: tl.constexpr, N: tl.constexpr):
    """A matrix that all programs read: few of them sum up each part of its gradient."""
    r, i = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    inside = (r < rows) & (i < columns)
    w = tl.load(w_ptr + r * row + i * step, inside)
    tl.store(y_ptr + (tl.program_id(0) * rows + r) * columns + i, w * w, inside)


def shared(kernel, w):
    y = w.new_empty(12, *w.shape)
    kernel[(12,)](w, y, *w.shape, *w.stride(), M=16, N=64)
    return y


OPS = {
    "windows": autodiff(windows_kernel, windows),
    "picked": autodiff(picked_kernel, picked),
    "shared": autodiff(shared_kernel, shared),
}
# What is made of a tensor of rows and three times as many columns.
LAYOUTS = {
    "gaps": lambda x: x[:, ::3],
    "pieces of rows": lambda x: x[:, : x.shape[1] // 3],
    "transposed": lambda x: x.t()[::3].t(),
    "rows that are one": lambda x: x[:1, ::3].expand(x.shape[0], -1),
    "columns that are one": lambda x: x[:, :1].expand(-1, x.shape[1] // 3),
    "without gaps": lambda x: x[:, ::3].contiguous(),
    "rows in turns": lambda x: x[::2, ::3],
}
SIZES = [(5, 20), (6, 37), (1, 18), (9, 50), (12, 33)]


def values(function, base, layout):
    """Return the output, and the gradient of the tensor that the argument is a view of."""
    base = base.detach().requires_grad_()
    y = function(layout(base))
    torch.manual_seed(5)
    return y.detach(), torch.autograd.grad(y, base, torch.rand_like(y))[0]


def compare(op, twin, base, layout) -> bool:
    """Run both; returns False if the exported one refuses.

    Programs add to elements that they share in any order.
    """
    try:
        theirs = values(twin, base, layout)
    except AssertionError:
        return False
    for mine, other in zip(values(op, base, layout), theirs, strict=True):
        torch.testing.assert_close(mine, other)
    return True


@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("name", OPS)
def test_layouts(name, layout, device, tmp_path):
    """As exported at other sizes; and whatever else, equal or refused."""
    op = OPS[name]
    (first, *others), made = SIZES, LAYOUTS[layout]

    def base(rows, columns):
        return tensors((rows, 3 * columns), device=device)[0]

    given = base(*first)
    twin = exported(op, tmp_path, made(given))
    is_in_parts = "_added_up(" in (tmp_path / "exported.py").read_text()
    assert is_in_parts == (name == "shared" and "are one" not in layout)
    assert compare(op, twin, given, made)
    taken = [compare(op, twin, base(*size), made) for size in others]
    assert sum(taken) >= 2, taken
    for other in LAYOUTS.values():
        for size in SIZES:
            compare(op, twin, base(*size), other)


@triton.jit
def neighbours_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """What is read in front of the tensor, and behind it, leads to nothing."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    y = tl.load(x_ptr + i - 1) * tl.load(x_ptr + i + 1)
    tl.store(y_ptr + i, tl.where((i > 0) & (i < n - 1), y, 0), i < n)


def neighbours(kernel, x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, y, x.numel(), BLOCK=32)
    return y


def test_beyond_the_storage(device, tmp_path):
    """A module for a part of a large storage takes tensors that are all of theirs."""
    op = autodiff(neighbours_kernel, neighbours)
    twin = exported(op, tmp_path, torch.randn(500, device=device)[100:200].requires_grad_())
    for n in (100, 33, 64, 2, 1):
        x = amid(torch.randn(n, device=device), before=8, behind=64)
        for mine, theirs in zip(
            *(values(f, x, lambda leaf: leaf) for f in (op, twin)), strict=True
        ):
            torch.testing.assert_close(theirs, mine)


@triton.jit
def shifted_kernel(x_ptr, y_ptr, n, by, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i + by, 2 * tl.load(x_ptr + i - by, i < n), i < n)


@triton.jit
def crowded_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, i < n) * tl.program_id(0), i < n)


def test_refused(device, tmp_path):
    """Whatever a module knows nothing of: what, where, the way out."""
    x, y = (torch.randn(60, device=device, requires_grad=wants) for wants in (True, False))
    shifted, crowded = differentiable(shifted_kernel), differentiable(crowded_kernel)
    launches = [
        (shifted, (x[20:40], y, 20, 5), r"'x_ptr' is a part.* reads around it, .*pass the whole"),
        (shifted, (x, y[20:40], 20, 5), r"'y_ptr' is a part.* stores around it.*_layouts.py:\d+"),
        (crowded, (x, y, 20), r"programs 0 and 1 store to element 0 .*_layouts.py:\d+"),
    ]
    for kernel, args, words in launches:
        with pytest.raises(AutodiffError, match=words):
            kernel.export(
                tmp_path / "exported.py", *args, BLOCK=32, grid=(2 if kernel is crowded else 1,)
            )
    assert not list(tmp_path.iterdir())


def test_other_types(device, tmp_path):
    twin = exported(OPS["windows"], tmp_path, tensors((5, 60), device=device)[0][:, ::3])
    with pytest.raises(AssertionError, match=r"was of torch.float32, it is of torch.float16"):
        twin(tensors((5, 60), dtype=torch.float16, device=device)[0][:, ::3])


@pytest.mark.parametrize("name", OPS)
def test_ruff(name, device, tmp_path):
    pytest.importorskip("ruff")
    x = tensors((5, 60), device=device)[0]
    passes_ruff(OPS[name].export(tmp_path / "exported.py", x[:, ::3]))
