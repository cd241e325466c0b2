"""Every nest of loops and branches, carried values of every type, and bounded tapes."""

import json

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import loops, nests, whiles
from schedules import assert_sums

pytestmark = pytest.mark.schedules

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)

CASES = {
    "exits": (nests.exits_kernel, nests.exits, nests.exits_reference),
    "walk": (nests.walk_kernel, nests.walk, nests.walk_reference),
    "powers": (nests.powers_kernel, nests.powers, nests.powers_reference),
    "recurrence": (loops.rnn_kernel, loops.rnn, loops.rnn_reference),
    "triangular": (loops.triangular_kernel, loops.triangular, loops.triangular_reference),
    "newton": (whiles.newton_kernel, whiles.newton, whiles.newton_reference),
    "ragged nest": (whiles.ragged_nest_kernel, whiles.ragged_nest, whiles.ragged_nest_reference),
    "chain": (whiles.chain_kernel, whiles.chain, whiles.chain_reference),
}


# Five in each of 11 steps: h, h², 1 - h², and two products.
ROUNDINGS = {"recurrence": 5 * 11}


def _inputs(name, device, dtype):
    def leaf(*shape, **options):
        return random_tensor(*shape, device=device, dtype=dtype, **options)

    if name == "exits":
        return leaf(16), 3, 2
    if name == "walk":
        return leaf(5, 8), 3, 9
    if name == "powers":
        return leaf(16, 16, scale=0.5), 3
    if name == "recurrence":
        # Where tanh is near 1, 1 - h² has lost most of its digits, in PyTorch too.
        return leaf(2, 11, 8, scale=0.5), leaf(8, scale=0.4), leaf(2, 8)
    if name == "triangular":
        return (leaf(5, 8),)
    if name == "newton":
        return leaf(16).detach().abs().add(0.5).requires_grad_(), 0.1
    if name == "ragged nest":
        begins = torch.tensor([0, 3, 3, 10, 12], dtype=torch.int64, device=device)
        return leaf(12, 8), begins
    successors = torch.tensor([4, 5, -1, 0, 7, 8, 1, 6, -1], dtype=torch.int32, device=device)
    return leaf(9, 8), successors, 7


@DTYPES
@pytest.mark.parametrize("mode", [0, 1, 3])
def test_exits(device, mode, dtype):
    x = random_tensor(16, device=device, dtype=dtype)
    op = differentiated(nests.exits_kernel, nests.exits)
    assert_gradients_close(op, nests.exits_reference, (x, 4, mode))


@DTYPES
@pytest.mark.parametrize("swapped", [False, True], ids=["alike", "swapped"])
def test_two_nests_over_a_tensor(device, ran, swapped, dtype):
    """What they contribute meets in one of them, if they go over the tensor in one order.

    Otherwise they take turns: each program owns the same elements in both.
    """
    x = random_tensor(3, 4, 4, 8, device=device, dtype=dtype)
    op = differentiated(nests.centered_kernel, nests.centered)
    assert_gradients_close(op, nests.centered_reference, (x, swapped))
    assert_sums(ran, "store", 0)
    if ran is not None:
        assert [len(gradient.checks) for gradient in ran.gradients] == [2 if swapped else 1]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(3, 4, 13, 37), (2, 1, 8, 16), (2, 3, 5, 0), (2, 0, 5, 7)])
def test_sums_over_lanes_in_loops(device, shape, dtype):
    """The sums of a scale and of shifts, over loops that may not run."""
    x = random_tensor(*shape, device=device, dtype=dtype)
    s = random_tensor(shape[0], device=device, dtype=dtype)
    t = random_tensor(shape[0], shape[2], device=device, dtype=dtype)
    op = differentiated(nests.affine_planes_kernel, nests.affine_planes)
    assert_gradients_close(op, nests.affine_planes_reference, (x, s, t), roundings=64)


@DTYPES
@pytest.mark.parametrize("steps", [0, 1, 9])
def test_integer_and_boolean_state(device, steps, dtype):
    x = random_tensor(5, 8, device=device, dtype=dtype)
    op = differentiated(nests.walk_kernel, nests.walk)
    assert_gradients_close(op, nests.walk_reference, (x, 3, steps))


@pytest.mark.parametrize("steps", [1, 4])
def test_dots_of_carried_tiles(device, steps):
    a = random_tensor(16, 16, device=device, scale=0.5)
    op = differentiated(nests.powers_kernel, nests.powers)
    assert_gradients_close(op, nests.powers_reference, (a, steps))


@pytest.mark.parametrize("name", CASES)
def test_checkpoints(device, name, monkeypatch):
    """No memory for tapes: iterations are recorded in chunks, and gradients stay as they are."""
    monkeypatch.setenv("TRITON_AUTODIFF_TAPE_LIMIT", "1")
    kernel, stub, reference = CASES[name]
    op = differentiated(kernel, stub)
    inputs = _inputs(name, device, torch.float32)
    assert_gradients_close(op, reference, inputs, roundings=ROUNDINGS.get(name, 8))


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_limit_of_tapes_goes_with_the_operation(device, monkeypatch):
    """An operation's own limit goes before the environment's, and is no other operation's."""
    from triton.backends.autodiff import autodiff, differentiable
    from triton.backends.autodiff.errors import ArgumentError

    kernel, stub, reference = CASES["recurrence"]
    inputs = _inputs("recurrence", device, torch.float32)
    limits = {0: True, 1 << 30: False, None: True}
    monkeypatch.setenv("TRITON_AUTODIFF_TAPE_LIMIT", "1")
    for limit, checkpoints in limits.items():
        op = autodiff(kernel, stub, tape_limit=limit)
        assert_gradients_close(op, reference, inputs, roundings=ROUNDINGS["recurrence"])
        _, execution, *_ = op.kernel._launches[-1]
        assert execution.request.checkpoint == checkpoints
    with pytest.raises(TypeError, match="number of bytes"):
        autodiff(kernel, stub, tape_limit="1 GB")
    with pytest.raises(ArgumentError, match="number of bytes"):
        differentiable(tape_limit=-1)(kernel)


PRODUCT = """
module {
  tt.func public @product(%x: !tt.ptr<f32>, %w: !tt.ptr<f32>, %y: !tt.ptr<f32>, %n: i32) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %h = tt.load %x : !tt.ptr<f32>
    %f = tt.load %w : !tt.ptr<f32>
    %r = scf.for %i = %c0 to %n step %c1 iter_args(%a = %h) -> f32 : i32 {
      %b = arith.mulf %a, %f : f32
      scf.yield %b : f32
    }
    tt.store %y, %r : !tt.ptr<f32>
    tt.return
  }
}
"""


def test_tapes_with_checkpoints_grow_as_the_root():
    from triton.backends.autodiff import _native
    from triton.backends.autodiff.checking.expr import evaluate
    from triton.backends.autodiff.plans.plan import load

    def entries(checkpoint, n):
        answer = _native.differentiate(PRODUCT, json.dumps({"checkpoint": checkpoint}))
        plan = load(answer)
        return sum(evaluate(b.size, [None, None, None, n], (1, 1, 1)) for b in plan.buffers)

    for n in (0, 1, 99, 10_000, 1_000_000):
        assert entries(False, n) == n
        assert entries(True, n) <= 2 * (n**0.5 + 1)
