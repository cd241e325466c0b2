"""While loops, and for loops whose number of iterations only the memory knows."""

import pytest
import torch
import triton.backends.autodiff.inspecting.corpus as corpus
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import whiles

pytestmark = [pytest.mark.schedules, pytest.mark.every_triton]

DTYPES = pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)


@DTYPES
def test_float_state_decides(device, dtype):
    x = random_tensor(24, device=device, dtype=dtype).detach().abs().add(0.5).requires_grad_()
    op = differentiated(whiles.newton_kernel, whiles.newton)
    assert_gradients_close(op, whiles.newton_reference, (x, 0.3))
    # No iteration at all.
    assert_gradients_close(op, whiles.newton_reference, (x, 1e6))


@DTYPES
@pytest.mark.parametrize("lengths", [(3, 0, 5, 1), (0, 0, 0, 0), (5, 5, 5, 5)], ids=str)
def test_bounds_from_memory(device, lengths, dtype):
    x = random_tensor(4, 5, 8, device=device, dtype=dtype)
    w = random_tensor(8, device=device, dtype=dtype, scale=0.4)
    lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
    op = differentiated(whiles.ragged_kernel, whiles.ragged)
    if not lengths.any():
        y = op(x, w, lengths)
        assert (y == 0).all()
        gradients = torch.autograd.grad(y.sum(), (x, w))
        assert all((g == 0).all() for g in gradients)
        return
    assert_gradients_close(op, whiles.ragged_reference, (x, w, lengths))


def test_bounds_that_change_before_the_backward(device):
    """What the counts depend on is saved, so a change in place is PyTorch's error."""
    x = random_tensor(4, 5, 8, device=device)
    w = random_tensor(8, device=device, scale=0.4)
    lengths = torch.tensor([1, 2, 3, 0], dtype=torch.int32, device=device)
    y = differentiated(whiles.ragged_kernel, whiles.ragged)(x, w, lengths)
    lengths.fill_(5)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


@DTYPES
@pytest.mark.parametrize("begins", [(0, 3, 3, 10, 12), (2, 2), (5, 4, 3)], ids=str)
def test_nested_bounds_from_memory(device, begins, dtype):
    # A cosine that nearly vanishes would magnify roundings.
    x = random_tensor(12, 16, device=device, dtype=dtype, scale=0.5)
    begins = torch.tensor(begins, dtype=torch.int64, device=device)
    op = differentiated(whiles.ragged_nest_kernel, whiles.ragged_nest)
    if begins.diff().max() <= 0:
        gradient = torch.autograd.grad(op(x, begins).sum(), x)[0]
        assert (gradient == 0).all()
        return
    assert_gradients_close(op, whiles.ragged_nest_reference, (x, begins))


@DTYPES
def test_counting_while(device, dtype):
    x = random_tensor(11, 8, device=device, dtype=dtype, shift=1.0)
    op = differentiated(whiles.stepping_kernel, whiles.stepping)
    assert_gradients_close(op, whiles.stepping_reference, (x, 3, 2))


@DTYPES
@pytest.mark.parametrize("limit", [-0.3, 1e6])
def test_replaced_state_and_final_counters(device, limit, dtype):
    x = random_tensor(6, 8, device=device, dtype=dtype)
    op = differentiated(whiles.replacing_kernel, whiles.replacing)
    assert_gradients_close(op, whiles.replacing_reference, (x, limit))


@DTYPES
@pytest.mark.parametrize("limit", [1, 2, 7])
def test_integer_state_decides(device, limit, dtype):
    x = random_tensor(9, 8, device=device, dtype=dtype)
    successors = torch.tensor([4, 5, -1, 0, 7, 8, 1, 6, -1], dtype=torch.int32, device=device)
    op = differentiated(whiles.chain_kernel, whiles.chain)
    assert_gradients_close(op, whiles.chain_reference, (x, successors, limit))


@DTYPES
def test_while_in_a_branch_in_a_loop(device, dtype):
    x = random_tensor(7, 16, device=device, dtype=dtype, scale=2.0)
    op = differentiated(whiles.nested_while_kernel, whiles.nested_while)
    assert_gradients_close(op, whiles.nested_while_reference, (x, 0.7))


SEARCH = """
module {
  tt.func public @search(%px: !tt.ptr<f32>, %pn: !tt.ptr<i32>, %py: !tt.ptr<f32>) {
    %c0 = arith.constant 0 : i32
    %c1 = arith.constant 1 : i32
    %limit = arith.constant 0.1 : f32
    %range = tt.make_range {start = 0 : i32, end = 64 : i32} : tensor<64xi32>
    %base = tt.splat %px : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %p = tt.addptr %base, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    %x = tt.load %p : tensor<64x!tt.ptr<f32>>
    %n = tt.load %pn : !tt.ptr<i32>
    %h = scf.for %i = %c0 to %n step %c1 iter_args(%a = %x) -> tensor<64xf32> : i32 {
      %w = scf.while (%b = %a) : (tensor<64xf32>) -> tensor<64xf32> {
        %max = "tt.reduce"(%b) <{axis = 0 : i32}> ({
        ^bb0(%l: f32, %r: f32):
          %m = arith.maxnumf %l, %r : f32
          tt.reduce.return %m : f32
        }) : (tensor<64xf32>) -> f32
        %c = arith.cmpf ogt, %max, %limit : f32
        scf.condition(%c) %b : tensor<64xf32>
      } do {
      ^bb0(%b: tensor<64xf32>):
        %s = math.sin %b : tensor<64xf32>
        %t = arith.mulf %s, %b : tensor<64xf32>
        scf.yield %t : tensor<64xf32>
      }
      %e = math.exp %w : tensor<64xf32>
      scf.yield %e : tensor<64xf32>
    }
    %out = tt.splat %py : !tt.ptr<f32> -> tensor<64x!tt.ptr<f32>>
    %q = tt.addptr %out, %range : tensor<64x!tt.ptr<f32>>, tensor<64xi32>
    tt.store %q, %h : tensor<64x!tt.ptr<f32>>
    tt.return
  }
}
"""


def test_derived_kernels_compile_for_a_gpu(tmp_path):
    (tmp_path / "search.ttir").write_text(SEARCH)
    (row,) = corpus.run_corpus(tmp_path)
    assert row.results == dict.fromkeys(corpus.STEPS, "")
    assert row.kernels >= 2
