"""Loops that become the grid of a backward kernel: which do, and that gradients are right."""

from functools import partial

import layer_norm as looped
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import blocks
from kernels import few_programs as few
from kernels import matmul as mm
from kernels import packed as pk
from kernels import schedules as sch
from schedules import assert_atomic, assert_interchanged, assert_no_atomics, assert_sums

pytestmark = pytest.mark.schedules

# Programs of the kernel that stores the gradient of x, for two rows of 45 elements and 3 programs
# a row; None where iterations cannot be numbered.
BANDS = {
    "full": 12,
    "causal": 12,
    "rest": 12,
    "window": 12,
    "falling end": 12,
    "falling start": 12,
    "far end": 16,
    "half steps": None,
    "below zero": None,
    "diagonal": 12,
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("name", BANDS)
def test_bounds_of_programs(device, ran, name, dtype):
    x = random_tensor(2, 45, device=device, dtype=dtype)
    q = random_tensor(2, 3, 8, device=device, dtype=dtype)
    op = differentiated(sch.band_kernel, sch.band)
    assert_gradients_close(op, sch.band_reference, (x, q, name))
    if BANDS[name] is None:
        assert_atomic(ran, 0)
    else:
        assert_interchanged(ran, [0, 1], BANDS[name])


def test_two_stages(device, ran):
    """Two loops, each with bounds of its own, over the same elements."""
    x = random_tensor(2, 45, device=device)
    q = random_tensor(2, 3, 8, device=device)
    op = differentiated(sch.two_bands_kernel, sch.band)
    assert_gradients_close(op, sch.band_reference, (x, q, "causal"))
    assert_interchanged(ran, [0, 1], 12)


def test_bounds_of_another_id(device, ran):
    """The bounds depend on an id that stays in the grid."""
    x, q = random_tensor(3, 45, device=device), random_tensor(3, 4, 8, device=device)
    op = differentiated(sch.band_kernel, sch.band)
    assert_gradients_close(op, sch.band_reference, (x, q, "other id"))
    assert_interchanged(ran, [0, 1], 18)


def test_start_below_zero_by_another_id(device, ran):
    """Rows that begin in the one before them."""
    x, q = random_tensor(3, 40, device=device), random_tensor(3, 4, 8, device=device)
    op = differentiated(sch.band_kernel, sch.band)
    assert_gradients_close(op, sch.band_reference, (x, q, "row before"))
    assert_atomic(ran, 0)


# How many programs the kernel that stores the gradient of x has, for six tiles.
MEETINGS = {
    "two lengths": 6,
    "twice in a loop": 6,
    "two widths": None,
    "before the loop": None,
    "nested": 6,
    "loaded in a nested loop": 6,
    "branch": None,  # not every iteration reads
    "id in a branch": 6,
    "run-time step": 6,
    "from the program on": None,
    "pointer from the start": None,
    "mask by the program": None,
    "mask on the value": 6,
    "counted by a scalar": 48,
    "carried": None,
}


@pytest.mark.parametrize("how", MEETINGS)
def test_meetings(device, ran, how):
    x, q = random_tensor(48, device=device), random_tensor(4, 8, device=device)
    op = differentiated(sch.meeting_kernel, sch.meeting)
    # Nine of them make a term, with its tanh by an exponential; "counted" sums 32.
    assert_gradients_close(op, sch.meeting_reference, (x, q, how), roundings=16)
    if MEETINGS[how] is None:
        assert_atomic(ran, 0)
    else:
        assert_interchanged(ran, [0], MEETINGS[how])


@pytest.mark.parametrize("first", [0, 8, 48, 64])
def test_lengths(device, first):
    """Of two loops over x either may be the longer one."""
    x, q = random_tensor(64, device=device), random_tensor(3, 8, device=device)
    op = differentiated(sch.meeting_kernel, sch.meeting)
    assert_gradients_close(op, sch.meeting_reference, (x, q, "two lengths", first))


def test_no_iterations(device):
    """An empty x: nothing to launch."""
    x, q = random_tensor(0, device=device), random_tensor(3, 8, device=device)
    op = differentiated(sch.meeting_kernel, sch.meeting)
    assert_gradients_close(op, sch.meeting_reference, (x, q, "plain"))


def test_unreached_elements(device, ran):
    """What no iteration reads has a gradient of zero, which nobody stores."""
    x, q = random_tensor(2, 90, device=device), random_tensor(2, 3, 8, device=device)
    op = differentiated(sch.band_kernel, sch.band)
    assert_gradients_close(op, sch.band_reference, (x, q, "causal"))
    assert_atomic(ran, 0)


def test_programs_that_repeat(device, ran):
    """Programs along an axis that the kernel does not know compute the same once more."""
    x, q = random_tensor(48, device=device), random_tensor(4, 8, device=device)
    op = differentiated(sch.meeting_kernel, sch.meeting)
    assert_gradients_close(op, sch.meeting_reference, (x, q, "plain", 16, 16, 3))
    assert_atomic(ran, 0)


@pytest.mark.parametrize("fixed", [True, False], ids=["constant", "argument"])
@pytest.mark.parametrize("whole", [False, True], ids=["digits", "whole id"])
@pytest.mark.parametrize("group", [1, 2, 3])
def test_heads(device, ran, group, whole, fixed):
    """A batch and a head in one program id; heads of a group share keys."""
    q = random_tensor(3, 6, 5, 8, device=device)
    k = random_tensor(3, 6 // group, 48, device=device)
    op = differentiated(sch.heads_kernel, sch.heads)
    assert_gradients_close(op, sch.heads_reference, (q, k, group, whole, fixed))
    assert_interchanged(ran, [0, 1], 6 * 3 * (6 // group))


def test_uneven_groups(device, ran):
    """A group that has fewer heads than the others."""
    q, k = random_tensor(1, 5, 3, 8, device=device), random_tensor(1, 3, 16, device=device)

    op = differentiated(sch.heads_kernel, lambda kernel, *args: sch.heads(kernel, *args, 2, False))

    def reference(q, k):
        return sch.heads_reference(q, k.repeat_interleave(2, 1)[:, :5], 1, False)

    assert_gradients_close(op, reference, (q, k))
    assert_atomic(ran, 1)


@pytest.mark.parametrize("programs", [2, 5])
def test_bounds_of_a_digit(device, ran, programs):
    """Programs are summed over that differ in a digit that bounds depend on, and in another."""
    q, k = random_tensor(3, programs, 8, device=device), random_tensor(8 * programs, device=device)
    op = differentiated(sch.staircase_kernel, sch.staircase)
    assert_gradients_close(op, sch.staircase_reference, (q, k))
    assert_interchanged(ran, [0, 1], programs)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("how", ["early return", "mask", "branch"])
def test_skipped_elements(device, ran, how, dtype):
    """Data decide what is read, but nothing is read twice: stores into cleared memory."""
    x = random_tensor(7, 45, device=device, dtype=dtype)
    flag = torch.randint(2, (7, 45), device=device, dtype=torch.int32)
    op = differentiated(sch.skipping_kernel, sch.skipping)
    assert_gradients_close(op, sch.skipping_reference, (x, flag, how))
    assert_sums(ran, "store", 0)


def test_skipped_elements_of_one_row(device, ran):
    """All rows are the same memory."""
    x = random_tensor(1, 45, device=device)
    flag = torch.randint(2, (7, 45), device=device, dtype=torch.int32)
    op = differentiated(
        sch.skipping_kernel, lambda kernel, x, *rest: sch.skipping(kernel, x.expand(7, -1), *rest)
    )

    def reference(x, *rest):
        return sch.skipping_reference(x.expand(7, -1), *rest)

    assert_gradients_close(op, reference, (x, flag, "mask"))
    assert_atomic(ran, 0)


def test_skipped_elements_of_a_view(device, ran):
    """Between rows lies memory that has no gradient."""
    x = random_tensor(7, 60, device=device)
    flag = torch.randint(2, (7, 45), device=device, dtype=torch.int32)
    op = differentiated(
        sch.skipping_kernel, lambda kernel, x, *rest: sch.skipping(kernel, x[:, 5:50], *rest)
    )

    def reference(x, *rest):
        return sch.skipping_reference(x[:, 5:50], *rest)

    assert_gradients_close(op, reference, (x, flag, "branch"))
    assert_sums(ran, "store", 0)


def _operands(m, n, k, device, dtype):
    a = random_tensor(m, k, device=device, dtype=dtype)
    return a, random_tensor(k, n, device=device, dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(64, 32, 96), (50, 70, 33), (33, 31, 2)], ids=str)
def test_products(device, ran, shape, dtype):
    m, n, k = shape
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, _operands(m, n, k, device, dtype))
    tiles = -(-k // 32)
    assert_interchanged(ran, [0, 1], -(-m // 32) * tiles, -(-n // 32) * tiles)


@pytest.mark.parametrize("shape", [(160, 96, 64), (150, 70, 33), (50, 190, 40)], ids=str)
def test_swizzled_products(device, ran, shape):
    """Rows and columns are digits of one program id, in groups of three rows."""
    m, n, k = shape
    op = differentiated(mm.grouped_matmul_kernel, mm.grouped_matmul)
    assert_gradients_close(op, torch.matmul, _operands(m, n, k, device, torch.float32))
    tiles = -(-k // 32)
    assert_interchanged(ran, [0, 1], -(-m // 32) * tiles, -(-n // 32) * tiles)


@pytest.mark.parametrize("transposed", [(True, False), (False, True)], ids=str)
def test_transposed_operands(device, ran, transposed):
    a, b = (x.detach() for x in _operands(50, 70, 33, device, torch.float32))
    a, b = (
        (x.t().contiguous().t() if flip else x).requires_grad_()
        for x, flip in zip((a, b), transposed, strict=True)
    )
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, (a, b))
    assert_interchanged(ran, [0, 1], 2 * 2, 3 * 2)


def test_part_of_a_tensor(device):
    """Elements that lie apart: nothing is written between them."""
    a, b = random_tensor(50, 80, device=device), random_tensor(80, 40, device=device)
    op = differentiated(mm.matmul_kernel, lambda kernel, a, b: mm.matmul(kernel, a[:, ::2], b[::2]))
    assert_gradients_close(op, lambda a, b: a[:, ::2] @ b[::2], (a, b))


@pytest.mark.parametrize("wanted", [0, 1])
def test_expanded_operand(device, wanted):
    """Every row or column is the same memory; the output is one sum, which must not cancel."""
    a = random_tensor(1, 40, device=device, shift=4.0)
    b = random_tensor(40, 1, device=device, shift=4.0)
    op = differentiated(
        mm.matmul_kernel, lambda kernel, a, b: mm.matmul(kernel, a.expand(50, -1), b.expand(-1, 36))
    )
    assert_gradients_close(op, lambda a, b: a.expand(50, -1) @ b.expand(-1, 36), (a, b))


def test_batched_products(device, ran):
    a, b = random_tensor(3, 40, 50, device=device), random_tensor(3, 50, 36, device=device)
    op = differentiated(mm.batched_matmul_kernel, mm.batched_matmul)
    assert_gradients_close(op, torch.matmul, (a, b))
    assert ran is None or set(ran.sums.values()) == {"store"}


@pytest.mark.parametrize("shape", [(3, 40, 36, 50), (1, 16, 16, 16), (2, 17, 33, 5)], ids=str)
def test_shared_operand(device, ran, shape):
    """The gradient of B is a sum over rows and the batch: two digits."""
    batch, m, n, k = shape
    a, b = random_tensor(batch, m, k, device=device), random_tensor(k, n, device=device)
    op = differentiated(sch.shared_product_kernel, sch.shared_product)
    assert_gradients_close(op, torch.matmul, (a, b))
    tiles = -(-k // 16)
    assert_interchanged(ran, [0, 1], batch * -(-m // 16) * tiles, -(-n // 16) * tiles)


@pytest.mark.parametrize("activation", ["leaky_relu", "gelu"])
def test_epilogue(device, ran, activation):
    """The derivative of the activation is computed once a program, and handed over."""
    a, b = _operands(50, 70, 33, device, torch.float32)
    bias = random_tensor(70, device=device)
    op = differentiated(mm.bias_activation_kernel, mm.bias_activation)
    assert_gradients_close(op, mm.bias_activation_reference, (a, b, bias, activation))
    assert_interchanged(ran, [0, 1], 4, 6)


@pytest.mark.parametrize("activation", ["leaky_relu", "gelu"])
@pytest.mark.parametrize("shape", [(150, 70, 33), (50, 190, 40)], ids=str)
def test_epilogue_of_swizzled_products(device, ran, shape, activation):
    """What is handed over has a place for each row and column of tiles."""
    m, n, k = shape
    a, b = _operands(m, n, k, device, torch.float32)
    bias = random_tensor(n, device=device)
    op = differentiated(mm.bias_activation_kernel, mm.bias_activation)
    assert_gradients_close(op, mm.bias_activation_reference, (a, b, bias, activation, 3))
    tiles = -(-k // 32)
    assert_interchanged(ran, [0, 1], -(-m // 32) * tiles, -(-n // 32) * tiles)


def test_wanted_alone(device, ran):
    """Only the kernel that stores what was asked for runs."""
    a, b = _operands(50, 70, 33, device, torch.float32)
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, (a, b.detach()))
    assert_interchanged(ran, [0], 4)


def test_other_shapes_of_one_kernel(device):
    """The grid of a kernel follows from each launch anew."""
    op = differentiated(mm.matmul_kernel, mm.matmul)
    for shape in ((64, 32, 96), (32, 32, 32), (50, 70, 0), (20, 96, 64)):
        assert_gradients_close(op, torch.matmul, _operands(*shape, device, torch.float32))


def test_checked_accesses(device, ran, monkeypatch):
    """Kernels with a grid of their own stay within their memory."""
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    op = differentiated(mm.matmul_kernel, mm.matmul)
    assert_gradients_close(op, torch.matmul, _operands(50, 70, 33, device, torch.float32))
    assert_interchanged(ran, [0, 1], 4, 6)
    for name in ("causal", "window", "diagonal", "falling end"):
        x, q = random_tensor(2, 45, device=device), random_tensor(2, 3, 8, device=device)
        op = differentiated(sch.band_kernel, sch.band)
        assert_gradients_close(op, sch.band_reference, (x, q, name))


def test_one_loop_of_two(device):
    """What is handed over for a kernel that cannot be built leaves no gap among the buffers."""
    x, z = (random_tensor(4, 8, device=device) for _ in range(2))
    op = differentiated(sch.window_and_triangle_kernel, sch.window_and_triangle)
    assert_gradients_close(op, sch.window_and_triangle_reference, (x, z, 3))


# Columns of a row, of a part, from part to part, parts; whether each element is in one part.
PARTS = {
    "halves": (20, 10, 10, 2, True),
    "thirds": (33, 11, 11, 3, True),
    "overlapping": (15, 10, 5, 2, False),
    "the same": (10, 10, 0, 2, False),
    "with a gap": (25, 10, 15, 2, True),
}


@pytest.mark.parametrize("name", PARTS)
def test_parts_of_rows(device, ran, name):
    """Several loads of a tensor, and several stores, that share no element if the sizes say so."""
    columns, n, distance, count, once = PARTS[name]
    x = random_tensor(5, columns, device=device)
    op = differentiated(sch.parts_kernel, sch.parts)
    assert_gradients_close(op, sch.parts_reference, (x, n, distance, count))
    assert_sums(ran, "store" if once else "atomic", 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("n, distance, how", [
    (16, 16, "partial"), (50, 50, "partial"), (50, 20, "atomic"), (50, 0, "atomic"),
    (50, 60, "atomic"),
])  # fmt: skip
def test_packed_weights(device, ran, n, distance, how, dtype):
    """Two sums over all rows, of elements of one tensor; of all of its elements, or not."""
    x = random_tensor(70, 2 * n, device=device, dtype=dtype)
    w = random_tensor(distance + n, device=device, dtype=dtype)
    op = differentiated(pk.packed_kernel, pk.packed)
    inputs = x, w, distance
    assert_gradients_close(op, pk.packed_reference, inputs, roundings=64, updates=140)
    assert_sums(ran, how, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("wanted", ["xwb", "xw", "xb", "x", "wb"])
def test_stored_on_the_way(device, ran, wanted, dtype):
    """Looped norms: the kernel that sums over rows stores the gradient of the input, too."""
    shapes = {"x": (7, 37), "w": (37,), "b": (37,)}
    inputs = [
        random_tensor(*shape, device=device, dtype=dtype).requires_grad_(name in wanted)
        for name, shape in shapes.items()
    ]
    op = differentiated(
        looped.layer_norm_kernel,
        partial(looped.layer_norm, BLOCK=16),
        backward={"schedules": ["interchange"]},
    )
    assert_gradients_close(op, looped.reference, inputs, roundings=16)
    if wanted != "x":
        assert_interchanged(ran, [2 if "w" in wanted else 3], 3)


def test_counter_from_where_a_program_starts(device, ran):
    """Iterations are numbered alike in all programs; what counts them is not."""
    x = random_tensor(6, 8, device=device, dtype=torch.float64)
    op = differentiated(sch.counted_kernel, sch.counted)
    assert_gradients_close(op, sch.counted_reference, (x,))
    assert_interchanged(ran, [0], 6)


@pytest.mark.parametrize("loops", [1, 2])
def test_opposites(device, ran, loops):
    """What iterations of the same number contribute goes to different addresses.

    A loop of its own that comes from behind is turned.
    """
    x, q = (random_tensor(n, 8, device=device, dtype=torch.float64) for n in (6, 5))
    op = differentiated(sch.opposites_kernel, sch.opposites)
    assert_gradients_close(op, sch.opposites_reference, (x, q, loops))
    if loops == 1:
        assert_atomic(ran, 0)
    else:
        assert_no_atomics(ran)


def test_weights_of_programs_and_of_columns(device):
    """Gradients that are summed over other digits of program ids do not share a kernel's sums."""
    x = random_tensor(5, 3, 8, device=device)
    w, v = random_tensor(8, device=device), random_tensor(3, 8, device=device)
    op = differentiated(sch.weights_kernel, sch.weights)
    assert_gradients_close(op, sch.weights_reference, (x, w, v))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(1, 16), (3, 5), (64, 16), (333, 20)], ids=str)
def test_rows_of_blocks(device, ran, shape, dtype):
    """What a program adds up for each column, it adds up over rows at the end."""
    x = random_tensor(*shape, device=device, dtype=dtype)
    w = random_tensor(shape[1], device=device, dtype=dtype)
    b = random_tensor(shape[1], device=device, dtype=dtype)
    op = differentiated(blocks.scaled_blocks_kernel, blocks.scaled_blocks)
    assert_gradients_close(op, blocks.scaled_blocks_reference, (x, w, b), roundings=32)
    assert_sums(ran, "partial", 1, 2)


@pytest.mark.parametrize("length", [1, 16, 40, 48])
@pytest.mark.parametrize("how, last", [
    *((how, last) for how in ("after", "before", "branch") for last in (0, 1, 2, 5)),
    ("first", 1),
])  # fmt: skip
def test_first_tiles(random, how, last, length):
    """A condition on programs beside a mask by a position that they are part of."""
    op = differentiated(few.first_tiles_kernel, few.first_tiles)
    assert_gradients_close(op, few.first_tiles_reference, (random(length), how, last))


@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize("how", ["mask", "below", "branch"])
def test_numbers_below_zero(random, rows, how):
    """A condition that iterations are not below zero leaves some out: they start there."""
    op = differentiated(few.history_kernel, few.history)
    assert_gradients_close(op, few.history_reference, (random(3 + rows, 20), 3, how))


@pytest.mark.parametrize("last", [1, 3])
@pytest.mark.parametrize("how", ["equal", "less", "branch"])
def test_few_programs(random, ran, how, last):
    """What one program contributes is stored, what several do is not."""
    last = last if how == "less" else 1
    op = differentiated(few.few_programs_kernel, few.few_programs)
    inputs = (random(5, 20), random(20), how, last)
    assert_gradients_close(op, few.few_programs_reference, inputs)
    assert_sums(ran, "store" if last == 1 else "atomic", 1)
