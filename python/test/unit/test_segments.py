"""Groups of rows, whose places come from memory: stored where no two meet, whatever they are."""

import gradients
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import segments

APART = (0, 7, 7, 30, 39)


def _bounds(starts, ends, device, dtype=torch.int32):
    return tuple(torch.tensor(n, device=device, dtype=dtype) for n in (starts, ends))


def _how(op, name):
    """What the latest launch does with one gradient."""
    lines = op.explain().splitlines()
    return next(f"{line}\n" for line in lines if line.startswith(f"  gradient of {name}: "))


def _assert_schedule(op, name, expected):
    if not gradients.FORWARD_ONLY:
        assert expected in _how(op, name)


@pytest.mark.parametrize("dtype", [torch.int32, torch.int64])
def test_softmax(device, dtype):
    """Each row belongs to one segment; some segments are empty."""
    bounds = _bounds(APART[:-1], APART[1:], device, dtype)
    x = random_tensor(39, 5, device=device)
    op = differentiated(segments.softmax_kernel, segments.softmax)
    assert_gradients_close(op, segments.softmax_reference, (x, *bounds), roundings=16)
    _assert_schedule(op, "x_ptr", "plain stores")


@pytest.mark.parametrize(
    ("starts", "ends", "expected"),
    [
        (APART[:-1], APART[1:], "plain stores"),
        ((3, 10, 20), (9, 20, 37), "plain stores"),  # gaps, where the gradient is zero
        ((20, 0, 5), (39, 5, 20), "plain stores"),
        ((0, 10), (15, 39), "atomic"),  # rows 10 to 15 belong to both
    ],
)
def test_squares(device, starts, ends, expected):
    x = random_tensor(39, 21, device=device)
    op = differentiated(segments.squares_kernel, segments.squares)
    bounds = _bounds(starts, ends, device)
    assert_gradients_close(op, segments.squares_reference, (x, *bounds), roundings=16)
    _assert_schedule(op, "x_ptr", expected)


def test_other_places(device):
    """Places are looked at anew at each launch, also where a tensor was changed in place."""
    op = differentiated(segments.squares_kernel, segments.squares)
    starts, ends = _bounds((0, 20), (20, 39), device)
    for change in ((0, 20), (0, 10), (5, 20), (0, 0)):
        starts.copy_(torch.tensor(change))
        x = random_tensor(39, 21, device=device)
        assert_gradients_close(op, segments.squares_reference, (x, starts, ends), roundings=16)
        apart = change[1] == 20
        _assert_schedule(op, "x_ptr", "plain stores" if apart else "atomic")


def test_places_in_shared_memory(device):
    """Of a tensor that the kernel may write to, nothing is known: its places are not looked at."""
    op = differentiated(segments.squares_kernel, segments.squares)
    memory = torch.zeros(64, device=device)
    starts = memory[:2].view(torch.int32).copy_(torch.tensor((0, 20)))
    ends = torch.tensor((20, 39), device=device, dtype=torch.int32)
    x = random_tensor(39, 21, device=device)
    assert_gradients_close(op, segments.squares_reference, (x, starts, ends), roundings=16)
    _assert_schedule(op, "x_ptr", "plain stores")


@pytest.mark.parametrize("rows", [(0, 20, 20, 61, 70), (0, 1, 2, 3, 4), (0, 0, 0, 0, 33)])
def test_experts(device, rows):
    """Blocks of rows that an expert does not have return early."""
    starts = torch.tensor(rows, device=device, dtype=torch.int32)
    x = random_tensor(rows[-1], 40, device=device)
    w = random_tensor(4, 40, 24, device=device)
    op = differentiated(segments.experts_kernel, segments.experts)
    assert_gradients_close(op, segments.experts_reference, (x, w, starts), roundings=32)
    for name in ("x_ptr", "w_ptr"):
        _assert_schedule(op, name, "plain stores")


@pytest.mark.parametrize("counts", [(3, 0, 2), (3, 3, 3)])
def test_blocks(device, counts):
    """What a program that returns would have stored stays as it was."""
    x, w = random_tensor(3, 24, 48, device=device), random_tensor(3, 48, device=device)
    y = random_tensor(3, 24, device=device)
    counts = torch.tensor(counts, device=device, dtype=torch.int32)
    op = differentiated(segments.blocks_kernel, segments.blocks)
    inputs = (x, w, y, counts)
    assert_gradients_close(op, segments.blocks_reference, inputs, roundings=32)


@pytest.mark.parametrize("rows", [(33, 17, 40), (40, 40, 40), (0, 1, 40)])
def test_lengths(device, rows):
    """Rows of a padded batch: what is beyond their ends has gradient zero."""
    lengths = torch.tensor(rows, device=device, dtype=torch.int32)
    x, w = (random_tensor(3, 40, 16, device=device) for _ in range(2))
    op = differentiated(segments.lengths_kernel, segments.lengths)
    assert_gradients_close(op, segments.lengths_reference, (x, w, lengths), roundings=32)
    _assert_schedule(op, "w_ptr", "plain stores")


@pytest.mark.parametrize("starts", [(0, 17, 17, 64), (0, 40, 41, 70), (3, 20, 30, 50)])
def test_pairs(device, starts):
    """A loop over all rows of a segment, from where memory says, that several programs run."""
    x, w = random_tensor(3, 40, 16, device=device), random_tensor(70, 16, device=device)
    starts = torch.tensor(starts, device=device, dtype=torch.int32)
    op = differentiated(segments.pairs_kernel, segments.pairs)
    assert_gradients_close(op, segments.pairs_reference, (x, w, starts), roundings=32)
    _assert_schedule(op, "w_ptr", "plain stores")


@pytest.mark.parametrize(
    ("starts", "expected"),
    [
        ((0, 32, 64, 96), "plain stores, each element once\n"),
        ((0, 48, 64, 96), "atomic"),
        ((0, 0, 48, 96), "atomic"),
        ((0, 32, 64, 80), "atomic"),  # as long as others, the last one would go beyond the end
    ],
)
def test_whole_tiles(device, starts, expected):
    """Without masks, only how often a loop runs says where a segment ends."""
    x, w = random_tensor(3, 40, 16, device=device), random_tensor(starts[-1], 16, device=device)
    starts = torch.tensor(starts, device=device, dtype=torch.int32)
    op = differentiated(segments.pairs_kernel, segments.pairs)
    inputs = (x, w, starts, True)
    assert_gradients_close(op, segments.pairs_reference, inputs, roundings=32)
    _assert_schedule(op, "w_ptr", expected)


def test_places_in_a_graph(cuda, recorded):
    """A recorded launch has to hold for other places than those that it was recorded with."""
    op = differentiated(segments.squares_kernel, segments.squares)
    starts, ends = _bounds((0, 20), (20, 39), cuda)
    x = random_tensor(39, 21, device=cuda)
    upstream = torch.randn(2, 21, device=cuda)

    def step():
        return torch.autograd.grad(op(x, starts, ends), x, upstream)[0]

    graph, gradient = recorded(step)
    for change in ((0, 20), (0, 10)):
        starts.copy_(torch.tensor(change))
        graph.replay()
        torch.cuda.synchronize()
        expected = torch.zeros_like(x)
        for segment, start in enumerate(change):
            end = int(ends[segment])
            expected[start:end] += 2 * x.detach()[start:end] * upstream[segment]
        torch.testing.assert_close(gradient, expected)
