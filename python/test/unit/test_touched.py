"""Sums of halves of which few elements are touched: only these are cleared and rounded."""

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import gather
from kernels.common import poisoned

HALVES = [torch.float16, torch.bfloat16]
# Large enough that two launches pay.
ROWS, COLUMNS = 4096, 700


@pytest.fixture
def touched(monkeypatch):
    """The kernels that cleared and rounded in the last backward; None if that is not known."""
    if gradients.FORWARD_ONLY:
        return None
    from triton.backends.autodiff.backward import Backward

    noted, run = [], Backward.run

    def note(backward, *args):
        around = (bound for bound in backward.sequence if bound not in backward.launches)
        noted[:] = [bound.executable.kernel.name for bound in around]
        return run(backward, *args)

    monkeypatch.setattr(Backward, "run", note)
    return noted


def assert_touched(touched, *suffixes):
    if touched is not None:
        assert [name.rpartition("_")[2] for name in touched] == list(suffixes)


def lookup(kernel, table, index):
    return gather.embedding(kernel, index, table)


def lookup_reference(table, index):
    return table[index]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("bound", [ROWS, 7], ids=["many rows", "few rows"])
def test_embedding(device, touched, dtype, bound):
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=dtype)
    index = torch.randint(bound, (150,), device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    assert_gradients_close(op, lookup_reference, (table, index))
    assert_touched(touched, "clear1", "round1")


def test_where_all_is_touched(device, touched):
    """As many additions as there are elements: clearing the whole sum is cheaper."""
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.randint(ROWS, (ROWS,), device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    assert_gradients_close(op, lookup_reference, (table, index))
    assert_touched(touched)


def test_float32_needs_no_rounding(device, touched):
    table = random_tensor(ROWS, COLUMNS, device=device)
    index = torch.randint(ROWS, (150,), device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    assert_gradients_close(op, lookup_reference, (table, index))
    assert_touched(touched)


def test_nothing_is_touched(device, touched):
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.empty(0, dtype=torch.int64, device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    (gradient,) = torch.autograd.grad(op(table, index).sum(), table) if touched is not None else [0]
    assert touched is None or not gradient.any()


@pytest.mark.parametrize("how", ["rows", "columns", "expanded"])
def test_views(device, touched, how):
    """Memory around a view has no gradient, and shared memory has one."""
    rows = 3 * ROWS if how == "rows" else ROWS
    base = random_tensor(1 if how == "expanded" else rows, COLUMNS, device=device, dtype=HALVES[0])
    index = torch.randint(ROWS // 2, (150,), device=device)

    def view(x):
        if how == "expanded":
            return x.expand(rows, -1)
        return x[100 : 100 + ROWS] if how == "rows" else x

    def stub(kernel, x, index):
        out = poisoned((index.numel(), COLUMNS), x)
        table = view(x)
        width = COLUMNS - 33 if how == "columns" else COLUMNS
        kernel[(index.numel(),)](index, table, out, *table.stride(), width, BLOCK=1024)
        return out[:, :width]

    def reference(x, index):
        return view(x)[index][:, : COLUMNS - 33 if how == "columns" else COLUMNS]

    assert_gradients_close(differentiated(strided_kernel, stub), reference, (base, index))
    # Of an expanded table, one row is all there is.
    assert_touched(touched, *(() if how == "expanded" else ("clear1", "round1")))


@triton.jit
def strided_kernel(
    index_ptr, table_ptr, out_ptr, stride, stride_column, n_columns, BLOCK: tl.constexpr
):
    row = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    index = tl.load(index_ptr + row)
    values = tl.load(table_ptr + index * stride + columns * stride_column, mask=mask)
    tl.store(out_ptr + row * 700 + columns, values, mask=mask)


@triton.jit
def bag_kernel(
    index_ptr, weight_ptr, table_ptr, out_ptr, count, limit, n_columns, BLOCK: tl.constexpr
):
    """Of each bag, those up to the limit, in a loop and under a branch."""
    bag = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    total = tl.zeros((BLOCK,), tl.float32)
    for i in range(count):
        index = tl.load(index_ptr + bag * count + i)
        if index < limit:
            row = tl.load(table_ptr + index * n_columns + columns, mask=mask).to(tl.float32)
            total += tl.sigmoid(row) * tl.load(weight_ptr + bag * count + i)
    tl.store(out_ptr + bag * n_columns + columns, total, mask=mask)


def bag(kernel, table, weight, index, limit):
    bags, count = index.shape
    out = poisoned((bags, table.shape[1]), table, torch.float32)
    kernel[(bags,)](index, weight, table, out, count, limit, table.shape[1], BLOCK=1024)
    return out


def bag_reference(table, weight, index, limit):
    kept = (index < limit).to(table.dtype)[..., None]
    total = (table[index].to(weight.dtype).sigmoid() * weight[..., None] * kept).sum(1)
    return total.to(torch.promote_types(table.dtype, torch.float32))


@pytest.mark.parametrize("count", [0, 1, 5])
def test_loop_and_branch(device, touched, count):
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.bfloat16)
    weight = random_tensor(20, count, device=device)
    index = torch.randint(ROWS, (20, count), device=device)
    op = differentiated(bag_kernel, bag)
    assert_gradients_close(op, bag_reference, (table, weight, index, ROWS // 2))
    assert_touched(touched, "clear2", "round2")


def test_same_bits(device, touched, monkeypatch):
    """Rounded where it is touched or everywhere: it is the same sum."""
    if touched is None:
        pytest.skip("no backward")
    from triton.backends.autodiff import autodiff
    from triton.backends.autodiff.backward import _Shadow

    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.randperm(ROWS, device=device)[:150]
    upstream = torch.randn(150, COLUMNS, device=device).half()
    found = []
    for tape_limit in (1 << 30, 1 << 31):
        op = autodiff(gather.embedding_kernel, lookup, tape_limit=tape_limit)
        found += torch.autograd.grad(op(table, index), table, upstream)
        assert bool(touched) == (tape_limit == 1 << 30)
        monkeypatch.setattr(_Shadow, "_is_touched", lambda *_: False)
    assert torch.equal(*found)


def test_checked_accesses(device, touched, monkeypatch):
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.randint(ROWS, (150,), device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    assert_gradients_close(op, lookup_reference, (table, index))
    assert_touched(touched, "clear1", "round1")
