"""Programs, or lanes, that store to one element: an error if they may disagree, else a gradient."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor

pytestmark = pytest.mark.usefixtures("needs_gradients")

# What no gradient can tell.


@triton.jit
def added_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(y_ptr) + tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def last_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(x_ptr + tl.program_id(0)))


@triton.jit
def last_column_kernel(x_ptr, y_ptr, columns, N: tl.constexpr):
    """Programs of a row store to the same element; some axis of the grid says which row it is."""
    row, column = tl.program_id(1), tl.program_id(0)
    x = tl.load(x_ptr + row * columns + column * N + tl.arange(0, N))
    tl.store(y_ptr + row, tl.sum(x * x))


@triton.jit
def overlapping_kernel(x_ptr, y_ptr, step, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + tl.program_id(0) * BLOCK + i)
    tl.store(y_ptr + tl.program_id(0) * step + i, x * x)


@triton.jit
def lanes_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i * 0, tl.load(x_ptr + i) * 2)


@triton.jit
def diagonals_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(y_ptr + i + j, tl.load(x_ptr + i * N + j) * 2)


@triton.jit
def two_stores_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Every program clears all of it, and stores its part."""
    for k in range(0, n, BLOCK):
        tl.store(y_ptr + k + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * 2)


@triton.jit
def loop_kernel(x_ptr, y_ptr, n):
    """Each program leaves what its last iteration stores, to the same element."""
    for k in range(n):
        tl.store(y_ptr + k, tl.load(x_ptr + tl.program_id(0) * n + k))


@triton.jit
def returning_kernel(x_ptr, y_ptr, n):
    if tl.program_id(0) >= n:
        return
    tl.store(y_ptr, tl.load(x_ptr + tl.program_id(0)) * 2)


@triton.jit
def strided_loop_kernel(x_ptr, y_ptr, n):
    """Each program leaves what its last iteration stores, but iterations are not the same."""
    for k in range(tl.program_id(0), n, tl.num_programs(0)):
        tl.store(y_ptr, tl.load(x_ptr + k))


@triton.jit
def triangle_kernel(x_ptr, y_ptr):
    for k in range(tl.program_id(0)):
        tl.store(y_ptr, tl.load(x_ptr + tl.program_id(0)) + k)


@triton.jit
def all_but_one_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.program_id(0)) * 2 + i * 0.0, mask=i != 0)


@triton.jit
def ends_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr, n):
    """Neighbours share the first and the last element, if the middle is not all there is."""
    i = tl.program_id(0) * (BLOCK - 1) + tl.arange(0, BLOCK)
    k = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.program_id(0) * BLOCK + k), mask=(k < 1) | (k >= n))


@triton.jit
def running_kernel(x_ptr, y_ptr, n):
    """Neighbours store to one element in other iterations: sums of other lengths."""
    total = 0.0
    for k in range(n):
        total += tl.load(x_ptr)
        tl.store(y_ptr + tl.program_id(0) + k, total)


def _added(kernel, x, y):
    kernel[(4,)](x, y)


def _column(kernel, x, y):
    kernel[(4, 8)](x, y, 64, N=16)


def _overlapping(kernel, x, y):
    kernel[(4,)](x, y, 12, BLOCK=16)


def _lanes(kernel, x, y):
    kernel[(1,)](x, y, BLOCK=16)


def _diagonals(kernel, x, y):
    kernel[(1,)](x, y, N=8)


def _two_stores(kernel, x, y):
    kernel[(4,)](x, y, 64, BLOCK=16)


def _looped(kernel, x, y):
    kernel[(3,)](x, y, 8)


def _returning(kernel, x, y):
    kernel[(9,)](x, y, 3)


def _strided(kernel, x, y):
    kernel[(2,)](x, y, 3)


def _in_blocks(kernel, x, y):
    kernel[(2,)](x, y, BLOCK=8)


def _ends(kernel, x, y):
    kernel[(3,)](x, y, BLOCK=8, n=5)


RACES = {
    "read, added to and stored": (added_kernel, _added, "programs 0 and 1"),
    "stored": (last_kernel, _added, "programs 0 and 1"),
    "parts of a row": (last_column_kernel, _column, r"programs \(0, 0\) and \(1, 0\)"),
    "tiles that overlap": (
        overlapping_kernel,
        _overlapping,
        "programs 0 and 1 store to element 12",
    ),
    "lanes": (lanes_kernel, _lanes, "lanes of program 0"),
    "lanes of two axes": (diagonals_kernel, _diagonals, "lanes of program 0 store to element 1 "),
    "two stores": (two_stores_kernel, _two_stores, "programs 0 and 1 store to element 0 "),
    "loops": (loop_kernel, _looped, "programs 0 and 1"),
    "early returns": (returning_kernel, _returning, "programs 0 and 1"),
    "loops that go on": (strided_loop_kernel, _strided, "programs 0 and 1 store to element 0 "),
    "loops as long as": (triangle_kernel, _added, "programs 1 and 2 store to element 0 "),
    "all lanes but one": (all_but_one_kernel, _in_blocks, "programs 0 and 1 store to element 1 "),
    "sums so far": (running_kernel, _looped, "programs 0 and 1 store to element 1 "),
    "first and last lanes": (ends_kernel, _ends, "programs 0 and 1 store to element 7 "),
}


@pytest.mark.parametrize("case", RACES)
def test_races(device, differentiable, case):
    from triton.backends.autodiff.errors import RaceError

    kernel, launch, who = RACES[case]
    kernel = differentiable(kernel)
    x, y = random_tensor(512, device=device), torch.zeros(64, device=device)
    # As long as nobody asks for a gradient, it is the kernel's own business.
    launch(kernel, x, y)
    with pytest.raises(RaceError, match=f"{who}.*'y_ptr'.*test_races.py:\\d+.*not known to be"):
        y.sum().backward()


def test_one_program_is_no_race(device, differentiable):
    x, y = random_tensor(3, device=device), torch.ones(1, device=device)
    differentiable(added_kernel)[(1,)](x, y)
    y.backward()
    assert x.grad.tolist() == [1, 0, 0]
    y = torch.zeros(1, device=device)
    differentiable(returning_kernel)[(9,)](x, y, 1)
    (gradient,) = torch.autograd.grad(y, x)
    assert gradient.tolist() == [2, 0, 0]


# What has a gradient.


@triton.jit
def row_statistic_kernel(x_ptr, m_ptr, y_ptr, columns, tiles, N: tl.constexpr):
    """Each program of a row computes, and stores, the sum of its squares."""
    row, tile = tl.program_id(0) // tiles, tl.program_id(0) % tiles
    total = 0.0
    for k in range(0, columns, N):
        x = tl.load(x_ptr + row * columns + k + tl.arange(0, N))
        total += tl.sum(x * x)
    i = row * columns + tile * N + tl.arange(0, N)
    tl.store(m_ptr + row, total)
    tl.store(y_ptr + i, tl.load(x_ptr + i) / tl.sqrt(total))


def _row_statistic(kernel, x):
    y, m = torch.empty_like(x), torch.empty(x.shape[0], device=x.device)
    kernel[(x.shape[0] * 4,)](x, m, y, 64, 4, N=16)
    return y, m


@pytest.mark.parametrize("schedules", [None, []])
def test_statistic_of_a_row(device, differentiable, schedules):
    options = {} if schedules is None else {"backward": {"schedules": schedules}}
    kernel = differentiable(row_statistic_kernel, **options)

    def reference(x):
        m = (x * x).sum(1)
        return x / m.sqrt()[:, None], m

    x = random_tensor(5, 64, device=device)
    assert_gradients_close(lambda x: _row_statistic(kernel, x), reference, (x,), roundings=32)


@triton.jit
def clamped_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The last tile ends with the tensor, and overlaps the one before it."""
    start = tl.minimum(tl.program_id(0) * BLOCK, n - BLOCK)
    i = start + tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.sin(tl.load(x_ptr + i)))


@triton.jit
def clamped_rows_kernel(x_ptr, w_ptr, y_ptr, m_ptr, rows, M: tl.constexpr, N: tl.constexpr):
    first = tl.minimum(tl.program_id(0) * M, rows - M)
    i, j = first + tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    mean = tl.sum(x, 1) / N
    y = (x - mean[:, None]) * tl.load(w_ptr + j)[None, :]
    tl.store(y_ptr + i[:, None] * N + j[None, :], y)
    tl.store(m_ptr + i, mean)


def test_last_tile_ends_with_the_tensor(device, differentiable):
    kernel = differentiable(clamped_kernel)

    def op(x):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(len(x), 32),)](x, y, len(x), BLOCK=32)
        return y

    assert_gradients_close(op, torch.sin, (random_tensor(75, device=device),))


def test_last_rows_end_with_the_tensor(device, differentiable):
    kernel = differentiable(clamped_rows_kernel)

    def op(x, w):
        y, m = torch.empty_like(x), torch.empty(len(x), device=device)
        kernel[(triton.cdiv(len(x), 8),)](x, w, y, m, len(x), M=8, N=32)
        return y, m

    def reference(x, w):
        mean = x.mean(1)
        return (x - mean[:, None]) * w, mean

    inputs = random_tensor(21, 32, device=device), random_tensor(32, device=device)
    assert_gradients_close(op, reference, inputs, roundings=64)


@triton.jit
def constant_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Padding that every program clears, and a scalar that all lanes share."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(y_ptr + n + tl.arange(0, BLOCK), tl.zeros((BLOCK,), tl.float32))
    tl.store(y_ptr + i, tl.load(x_ptr + i) * 2)


def test_what_all_store_alike(device, differentiable):
    kernel = differentiable(constant_kernel)
    x, y = random_tensor(64, device=device), torch.empty(80, device=device)
    kernel[(4,)](x, y, 64, BLOCK=16)
    upstream = torch.randn_like(y)
    y.backward(upstream)
    torch.testing.assert_close(x.grad, 2 * upstream[:64])


@triton.jit
def one_for_all_lanes_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    total = tl.sum(tl.load(x_ptr + i))
    tl.store(y_ptr + i * 0, i * 0 + total)


def test_lanes_that_agree(device, differentiable):
    x, y = random_tensor(16, device=device), torch.empty(1, device=device)
    differentiable(one_for_all_lanes_kernel)[(1,)](x, y, BLOCK=16)
    y.backward(torch.full_like(y, 3))
    torch.testing.assert_close(x.grad, torch.full_like(x, 3))


@triton.jit
def last_iteration_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """One program after the other, iterations overwrite what those before have stored."""
    i = tl.arange(0, BLOCK)
    for k in range(n):
        x = tl.load(x_ptr + (tl.program_id(0) * n + k) * BLOCK + i)
        tl.store(y_ptr + tl.program_id(0) * BLOCK + i, x * x, mask=i < BLOCK - k)


def test_the_last_iteration_counts(device, differentiable):
    kernel = differentiable(last_iteration_kernel)

    def op(x):
        y = torch.empty(x.shape[0], x.shape[2], device=device)
        kernel[(x.shape[0],)](x, y, x.shape[1], BLOCK=16)
        return y

    def reference(x):
        columns = torch.arange(16, device=device)
        last = (15 - columns).clamp(max=x.shape[1] - 1)
        return x[:, last, columns] ** 2

    assert_gradients_close(op, reference, (random_tensor(3, 5, 16, device=device),))


@triton.jit
def first_program_kernel(x_ptr, y_ptr, m_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)
    if tl.program_id(0) == 0:
        tl.store(m_ptr, tl.sum(x))


@triton.jit
def summed_kernel(x_ptr, y_ptr, N: tl.constexpr):
    i = tl.program_id(0) * N + tl.arange(0, N)
    tl.atomic_add(y_ptr, tl.sum(tl.load(x_ptr + i)))


def test_one_of_them_stores(device, differentiable):
    x = random_tensor(64, device=device)
    y, m = torch.empty(64, device=device), torch.empty(1, device=device)
    differentiable(first_program_kernel)[(4,)](x, y, m, N=16)
    (y.sum() + 5 * m).backward()
    expected = 2 * x.detach()
    expected[:16] += 5
    torch.testing.assert_close(x.grad, expected)


@triton.jit
def each_its_own_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Of elements that all programs go through, each stores every third one."""
    programs = tl.num_programs(0)
    for k in range(tl.program_id(0), 3):
        i = k * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i)
        mine = (k == tl.program_id(0)) & ((i != 5) | (programs > 9))
        tl.store(y_ptr + i, x * x, mask=mine)


def test_masks_of_lanes_apart(device, differentiable):
    x, y = random_tensor(24, device=device), torch.zeros(24, device=device)
    differentiable(each_its_own_kernel)[(3,)](x, y, BLOCK=8)
    y.sum().backward()
    expected = 2 * x.detach()
    expected[5] = 0
    torch.testing.assert_close(x.grad, expected)


def test_the_most_lanes_that_are_looked_at(device, differentiable, monkeypatch):
    """Those of two programs are as many places as are compared."""
    from triton.backends.autodiff.checking import spaces
    from triton.backends.autodiff.errors import RaceError

    monkeypatch.setattr(spaces, "_MOST_PLACES", 16)
    x, y = random_tensor(16, device=device), torch.zeros(16, device=device)
    differentiable(overlapping_kernel)[(2,)](x, y, 4, BLOCK=8)
    with pytest.raises(RaceError, match="programs .* store to element 4 of argument 'y_ptr'"):
        y.sum().backward()


def test_iterations_that_are_not_looked_at(device, differentiable, monkeypatch):
    """Where too many iterations store, nobody knows what the last one leaves."""
    from triton.backends.autodiff.checking import spaces

    monkeypatch.setattr(spaces, "_MOST_PLACES", 4)
    kernel = differentiable(last_equal_kernel)
    x, y = random_tensor(8, device=device), torch.zeros(1, device=device)
    kernel[(2,)](x, y, 8)
    y.sum().backward()
    assert x.grad.count_nonzero() == 1 and x.grad[7] == 1


@triton.jit
def last_equal_kernel(x_ptr, y_ptr, n):
    """Programs start at elements of their own, and end at the same one."""
    for k in range(n):
        at = tl.where(k == n - 1, k, (k + tl.program_id(0)) % n)
        tl.store(y_ptr, tl.load(x_ptr + at))


def test_atomics_are_no_races(device, differentiable):
    x, y = random_tensor(64, device=device), torch.zeros(1, device=device)
    differentiable(summed_kernel)[(4,)](x, y, N=16)
    y.backward()
    torch.testing.assert_close(x.grad, torch.ones_like(x))


# Addresses that are loaded.


@triton.jit
def scattered_kernel(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + tl.load(index_ptr + i), x * x)


@pytest.fixture
def checking(monkeypatch):
    from triton.backends.autodiff.launching import state

    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    monkeypatch.setattr(state, "_ATTRIBUTE", "_racing_state")


@pytest.mark.parametrize("kind", ["apart", "programs", "lanes", "equal"])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_scattered(device, differentiable, checking, kind, dtype):
    from triton.backends.autodiff.errors import RaceError

    kernel = differentiable(scattered_kernel)
    x, y = (
        random_tensor(64, device=device, dtype=dtype),
        torch.zeros(100, device=device, dtype=dtype),
    )
    index = torch.randperm(100, device=device)[:64]
    if kind != "apart":
        index[30 if kind == "lanes" else 3] = index[20]
        if kind == "equal":
            x = x.detach().index_fill_(0, torch.tensor([3, 20], device=device), 2).requires_grad_()
    if kind in ("apart", "equal"):
        kernel[(4,)](x, index, y, BLOCK=16)
        if kind == "apart":
            y.sum().backward()
            torch.testing.assert_close(x.grad, 2 * x.detach())
        return
    where = f"element {int(index[20])} of .*'y_ptr'.* at .*test_races.py"
    with pytest.raises(RaceError, match=f"store different values to {where}"):
        kernel[(4,)](x, index, y, BLOCK=16)


def test_checks_find_nothing_else(device, differentiable, checking):
    """Kernels that store the same, or one after the other, are not races while that is checked."""
    test_statistic_of_a_row(device, differentiable, None)
    test_last_rows_end_with_the_tensor(device, differentiable)
    test_the_last_iteration_counts(device, differentiable)
    test_lanes_that_agree(device, differentiable)


@triton.jit
def meeting_kernel(x_ptr, sums_ptr, maxima_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.atomic_add(y_ptr + tl.load(sums_ptr + i), x)
    tl.atomic_max(y_ptr + tl.load(maxima_ptr + i), x)


@pytest.mark.parametrize("meet", [False, True])
def test_sums_that_meet_maxima(device, differentiable, checking, meet):
    """At loaded addresses, a sum and a maximum may go to one element."""
    from triton.backends.autodiff.errors import RaceError

    kernel = differentiable(meeting_kernel)
    x = random_tensor(64, device=device)
    sums, maxima = (torch.randperm(64, device=device) % 16 for _ in range(2))
    maxima += 16
    y = torch.cat([torch.zeros(16), torch.full((16,), -float("inf"))]).to(device)
    if not meet:
        kernel[(4,)](x, sums, maxima, y, BLOCK=16)
        y[:16].sum().backward()
        torch.testing.assert_close(x.grad, torch.ones_like(x))
        return
    maxima[40] = sums[20]
    where = f"test_races.*element {int(sums[20])} of the memory of argument 'y_ptr'"
    with pytest.raises(RaceError, match=where):
        kernel[(4,)](x, sums, maxima, y, BLOCK=16)


@triton.jit
def mirrored_kernel(x_ptr, y_ptr):
    p, n = tl.program_id(0), tl.num_programs(0)
    x = tl.load(x_ptr + p)
    tl.store(y_ptr + p, x)
    tl.store(y_ptr + n - 1 - p, x)


def test_two_stores_are_named(device, differentiable):
    """Both lines, where programs store to one element by two statements."""
    from triton.backends.autodiff.errors import RaceError

    x, y = random_tensor(4, device=device), torch.empty(4, device=device)
    differentiable(mirrored_kernel)[(4,)](x, y)
    lines = r"test_races\.py:\d+:\d+ and \S*test_races\.py:\d+:\d+.*on one side of the diagonal"
    with pytest.raises(RaceError, match=lines):
        y.sum().backward()


@triton.jit
def noted_kernel(x_ptr, r_ptr, k_ptr, z_ptr, step, N: tl.constexpr):
    """Each program notes its norm and its largest element, in places of their own or in one."""
    row, i = tl.program_id(0), tl.arange(0, N)
    x = tl.load(x_ptr + row * N + i)
    r, k = tl.sqrt(tl.sum(x * x, 0)), tl.argmax(x, 0)
    tl.store(r_ptr + row * step, r)
    tl.store(k_ptr + row * step, k)
    tl.store(z_ptr + row * N + i, tl.where(i == k, x * x, x) / r)


@pytest.mark.parametrize("step", [1, 0, 2])
def test_notes_of_several_programs(device, differentiable, step):
    """What a later program has overwritten is not read back; only the tile has a gradient."""
    rows, n = 5, 16
    kernel = differentiable(noted_kernel)

    def launch(x):
        r = torch.full((2 * rows,), float("nan"), device=device)
        k = torch.full((2 * rows,), -1, dtype=torch.int32, device=device)
        z = torch.full((rows, n), float("nan"), device=device)
        kernel[(rows,)](x, r, k, z, step, N=n)
        return z

    def reference(x):
        largest = torch.nn.functional.one_hot(x.argmax(1), n).bool()
        return torch.where(largest, x * x, x) / x.square().sum(1, keepdim=True).sqrt()

    for _ in range(2):
        assert_gradients_close(launch, reference, (random_tensor(rows, n, device=device),))
