"""Sums of halves of which few elements are touched.

What one run of elements adds alone is stored; of the rest, only what is touched is cleared and
rounded.
"""

import random

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import gather
from kernels.common import poisoned

HALVES = [torch.float16, torch.bfloat16]
# Large enough that three launches pay.
ROWS, COLUMNS = 4096, 700


@pytest.fixture
def touched(monkeypatch):
    """The kernels beside those that added in the last backward; None if that is not known."""
    if gradients.FORWARD_ONLY:
        return None
    from triton.backends.autodiff.programs.backward import Backward

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
    assert_touched(touched, "tally1", "clear1", "round1")


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
    assert_touched(touched, *(() if how == "expanded" else ("tally1", "clear1", "round1")))


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
    assert_touched(touched, "tally2", "clear2", "round2")


def assert_sums(touched, op, reference, table, *rest):
    """The gradient of what `reference` gathers is the sum in float64, rounded once."""
    out = op(table, *rest)
    wide = table.detach().double().requires_grad_()
    truth = reference(wide, *rest)
    assert torch.equal(out.double(), truth)
    if touched is None:
        return
    # Eighths, of which float32 holds every sum exactly, whatever the order.
    upstream = torch.randint(-64, 65, out.shape, device=out.device).to(out.dtype) / 8
    (gradient,) = torch.autograd.grad(out, table, upstream)
    (truth,) = torch.autograd.grad(truth, wide, upstream.double())
    assert gradient.dtype == table.dtype
    assert torch.equal(gradient, truth.to(table.dtype))
    assert len(touched) == 3, "nobody counted"


def places(pattern, count, bound, device):
    """Numbers below a bound, of which some may be equal."""
    if pattern == "different":
        return torch.randperm(bound, device=device)[:count]
    if pattern == "one":
        return torch.randint(bound, (1,), device=device).expand(count).contiguous()
    if pattern == "neighbours":
        return torch.randint(bound - count, (1,), device=device) + torch.arange(
            count, device=device
        )
    few = torch.randint(bound, (max(count // 3, 1),), device=device)
    if pattern == "few":
        return few[torch.randint(len(few), (count,), device=device)]
    mixed = torch.randint(bound, (count,), device=device)
    mixed[:: 1 + count // len(few)] = few[0]
    return mixed


PATTERNS = ["different", "one", "neighbours", "few", "mixed"]


@pytest.mark.parametrize("dtype", HALVES, ids=str)
@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("block", [64, 1024])
def test_rows(device, touched, pattern, block, dtype):
    """In pieces whose last one is shorter, or as a whole."""
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=dtype)
    index = places(pattern, 150, ROWS, device)

    def stub(kernel, table, index):
        return gather.embedding(kernel, index, table, BLOCK=block)

    op = differentiated(gather.embedding_kernel, stub)
    assert_sums(touched, op, lookup_reference, table, index)


def test_what_is_alone_keeps_its_bits(device, touched):
    """Sums of one: -0, subnormal numbers and infinities are what they were."""
    if touched is None:
        pytest.skip("no backward")
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.randperm(ROWS, device=device)[:150]
    op = differentiated(gather.embedding_kernel, lookup)
    bits = torch.randint(-(2**15), 2**15, (150, COLUMNS), dtype=torch.int16, device=device)
    upstream = bits.view(torch.float16).nan_to_num(nan=-0.0, posinf=None, neginf=None)
    (gradient,) = torch.autograd.grad(op(table, index), table, upstream)
    assert torch.equal(gradient[index].view(torch.int16), upstream.view(torch.int16))
    assert gradient.count_nonzero() == upstream.count_nonzero()


@triton.jit
def windows_kernel(
    start_ptr, x_ptr, out_ptr, count, width,
    STEP: tl.constexpr, ROWS: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Each row of a tile is a piece of memory that starts anywhere."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    columns = tl.arange(0, BLOCK)
    start = tl.load(start_ptr + rows, mask=rows < count, other=0)
    mask = (rows < count)[:, None] & (columns < width)[None, :]
    values = tl.load(x_ptr + start[:, None] + columns[None, :] * STEP, mask=mask)
    tl.store(out_ptr + rows[:, None] * width + columns[None, :], values, mask=mask)


def windows(rows, block, step=1):
    def stub(kernel, x, start, width):
        count = start.numel()
        out = poisoned((count, width), x)
        grid = (triton.cdiv(count, rows),)
        kernel[grid](start, x, out, count, width, STEP=step, ROWS=rows, BLOCK=block)
        return out

    def reference(x, start, width):
        columns = step * torch.arange(width, device=x.device)
        return x.flatten()[start[:, None] + columns]

    return differentiated(windows_kernel, stub), reference


@pytest.mark.parametrize("pattern", PATTERNS)
@pytest.mark.parametrize("rows, block, width, pitch", [
    (8, 64, 64, 64),  # rows of a tile are rows of the table
    (4, 64, 64, 100),  # some of their elements
    (16, 16, 11, 300),  # with a tail
    (4, 256, 200, 64),  # more than one
    (8, 8, 8, 3),  # windows that overlap
    (16, 32, 32, 1),
    (8, 128, 128, 129),
    (32, 1, 1, 1),
])  # fmt: skip
def test_windows(device, touched, pattern, rows, block, width, pitch):
    x = random_tensor(3_200_000 // pitch, pitch, device=device, dtype=torch.float16)
    bound = min(40_000, (x.numel() - width) // pitch)
    start = pitch * places(pattern, 501, bound, device)
    op, reference = windows(rows, block)
    assert_sums(touched, op, reference, x, start, width)


@pytest.mark.parametrize("step", [-1, 2, -3, 7])
def test_steps(device, touched, step):
    x = random_tensor(3_200_000, device=device, dtype=torch.bfloat16)
    start = torch.randint(2_000, (300,), device=device) * 17 + 100
    op, reference = windows(4, 32, step)
    assert_sums(touched, op, reference, x, start, 30)


@triton.jit
def sieve_kernel(
    start_ptr, keep_ptr, x_ptr, out_ptr, last, ROWS: tl.constexpr, BLOCK: tl.constexpr
):
    """Columns of a tile go backwards through memory, with holes; `last` is the first lane's."""
    rows = tl.program_id(0) * ROWS + tl.arange(0, ROWS)
    lanes = tl.arange(0, BLOCK)
    start = tl.load(start_ptr + rows)
    places = rows[None, :] * BLOCK + lanes[:, None]
    keep = tl.load(keep_ptr + places)
    values = tl.load(x_ptr + start[None, :] + (last - lanes)[:, None], mask=keep != 0, other=0)
    tl.store(out_ptr + places, values)


@pytest.mark.parametrize("density", [0.0, 0.03, 0.9, 1.0])
@pytest.mark.parametrize("rows, block", [(1, 64), (8, 32)])
def test_any_mask(device, touched, density, rows, block):
    x = random_tensor(32_000, 100, device=device, dtype=torch.float16)
    start = 50 * torch.randint(900, (160,), device=device)
    keep = (torch.rand(160, block, device=device) < density).to(torch.int32)

    def stub(kernel, x, start, keep):
        out = poisoned(keep.shape, x)
        kernel[(160 // rows,)](start, keep, x, out, block - 1, ROWS=rows, BLOCK=block)
        return out

    def reference(x, start, keep):
        found = x.flatten()[start[:, None] + torch.arange(block, device=device).flip(0)]
        return torch.where(keep != 0, found, 0)

    assert_sums(touched, differentiated(sieve_kernel, stub), reference, x, start, keep)


@triton.jit
def walk_kernel(index_ptr, table_ptr, out_ptr, n_columns, BLOCK: tl.constexpr):
    """A row in pieces, by a pointer that a loop moves on."""
    row = tl.program_id(0)
    index = tl.load(index_ptr + row)
    source = table_ptr + index * n_columns + tl.arange(0, BLOCK)
    target = out_ptr + row * n_columns + tl.arange(0, BLOCK)
    for start in range(0, n_columns, BLOCK):
        mask = start + tl.arange(0, BLOCK) < n_columns
        tl.store(target, tl.load(source, mask=mask), mask=mask)
        source += BLOCK
        target += BLOCK


@pytest.mark.parametrize("pattern", ["different", "mixed"])
def test_loop_over_a_row(device, touched, pattern):
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.bfloat16)
    index = places(pattern, 100, ROWS, device)

    def stub(kernel, table, index):
        out = poisoned((100, COLUMNS), table)
        kernel[(100,)](index, table, out, COLUMNS, BLOCK=64)
        return out

    assert_sums(touched, differentiated(walk_kernel, stub), lookup_reference, table, index)


@pytest.mark.parametrize("check", ["0", "1"])
def test_any_places(device, touched, seed, check, monkeypatch):
    """Pieces of any length that start anywhere, some of them close to each other."""
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", check)
    generator = random.Random(seed)
    for _ in range(5):
        block = 2 ** generator.randrange(8)
        width = generator.randint(1, block)
        shape = [(3_200_000,), (32_000, 100), (100, 32_000), (32, 100, 1_000)]
        x = random_tensor(*generator.choice(shape), device=device, dtype=torch.float16)
        near = generator.choice([1, 7, 100, 5_000, x.numel() // 2])
        first = generator.randrange(x.numel() - block - near)
        count = generator.randint(1, 300)
        start = first + torch.randint(near, (count,), device=device)
        rows = 2 ** generator.randrange(5)
        print(f"{tuple(x.shape)}: {count} of {width} in {rows}x{block}, {near} from {first}")
        op, reference = windows(rows, block)
        assert_sums(touched, op, reference, x, start, width)


@pytest.mark.parametrize("bound", [50, 3_000_000])
@pytest.mark.parametrize("count", [40, 1000])
def test_elements(device, touched, count, bound):
    """Elements of a tile that lie anywhere, and may be the same."""
    x = random_tensor(3_200_000, device=device, dtype=torch.bfloat16)
    index = torch.randint(bound, (count,), device=device)

    def reference(x, index):
        return x[index]

    assert_sums(touched, differentiated(elements_kernel, elements), reference, x, index)


@triton.jit
def elements_kernel(x_ptr, index_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    index = tl.load(index_ptr + offsets, mask=mask, other=0)
    tl.store(out_ptr + offsets, tl.load(x_ptr + index, mask=mask), mask=mask)


def elements(kernel, x, index):
    out = poisoned(index.shape, x)
    kernel[(triton.cdiv(index.numel(), 64),)](x, index, out, index.numel(), BLOCK=64)
    return out


@triton.jit
def pairs_kernel(index_ptr, table_ptr, out_ptr, stride, before, n_columns, BLOCK: tl.constexpr):
    """Two rows, one of them relative to a place in the middle of the table."""
    pair = tl.program_id(0)
    columns = tl.arange(0, BLOCK)
    mask = columns < n_columns
    a = tl.load(index_ptr + 2 * pair)
    b = tl.load(index_ptr + 2 * pair + 1)
    first = tl.load(table_ptr + (a - before) * stride + columns, mask=mask)
    second = tl.load(table_ptr + (b - before) * stride + columns, mask=mask & (a != b))
    tl.store(out_ptr + 2 * pair * n_columns + columns, first, mask=mask)
    tl.store(out_ptr + (2 * pair + 1) * n_columns + columns, second, mask=mask & (a != b))


@pytest.mark.parametrize("pattern", ["different", "few", "mixed"])
@pytest.mark.parametrize("before", [0, 333])
@pytest.mark.parametrize("columns", [0, 5])
def test_pairs_around_a_place(device, touched, pattern, before, columns):
    """The kernel's pointer is in the middle of the storage, with a view's offset."""
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = places(pattern, 100, ROWS, device)
    width = COLUMNS - columns

    def stub(kernel, table, index):
        out = torch.zeros(index.numel(), width, dtype=table.dtype, device=device)
        view = table[before:, columns:]
        grid = (index.numel() // 2,)
        kernel[grid](index, view, out, COLUMNS, before, width, BLOCK=1024)
        return out

    def reference(table, index):
        found = table[index][:, columns:]
        # What the view does not hold is read, but has no gradient.
        found = torch.where((index < before)[:, None], found.detach(), found)
        equal = torch.zeros(len(index), dtype=torch.bool, device=device)
        equal[1::2] = index[0::2] == index[1::2]
        return torch.where(equal[:, None], 0, found)

    assert_sums(touched, differentiated(pairs_kernel, stub), reference, table, index)


def test_checked_accesses(device, touched, monkeypatch):
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    table = random_tensor(ROWS, COLUMNS, device=device, dtype=torch.float16)
    index = torch.randint(ROWS, (150,), device=device)
    op = differentiated(gather.embedding_kernel, lookup)
    assert_gradients_close(op, lookup_reference, (table, index))
    assert_touched(touched, "tally1", "clear1", "round1")
