"""Cross-entropy with an online log-sum-exp over a vocabulary of run-time size."""

import pytest
import torch
from gradients import assert_gradcheck, assert_gradients_close, differentiated, random_tensor
from kernels import cross_entropy as ce
from schedules import assert_sums

pytestmark = pytest.mark.schedules


def _inputs(rows, classes, device, dtype):
    logits = random_tensor(rows, classes, device=device, dtype=dtype, scale=2.0)
    return logits, torch.randint(classes, (rows,), device=device)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(16, 512), (9, 300), (4, 50)], ids=str)
def test_cross_entropy(device, shape, dtype):
    op = differentiated(ce.cross_entropy_kernel, ce.cross_entropy)
    assert_gradients_close(op, ce.cross_entropy_reference, _inputs(*shape, device, dtype))


def test_mean_loss(device):
    """The upstream gradient of a mean is one expanded number."""

    def mean_loss(kernel, logits, target):
        return ce.cross_entropy(kernel, logits, target).mean()

    op = differentiated(ce.cross_entropy_kernel, mean_loss)
    assert_gradients_close(
        op,
        lambda logits, target: ce.cross_entropy_reference(logits, target).mean(),
        _inputs(10, 200, device, torch.float32),
    )


def test_gradcheck(device):
    logits, target = _inputs(3, 10, device, torch.float64)
    op = differentiated(
        ce.cross_entropy_kernel,
        lambda kernel, logits: ce.cross_entropy(kernel, logits, target, BLOCK=4),
    )
    assert_gradcheck(op, (logits,))


@pytest.mark.parametrize("rows", [6, 5])
@pytest.mark.parametrize("counts_first", [True, False])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_rows_that_do_not_count(device, ran, dtype, counts_first, rows):
    """The target's logit is loaded in a branch; the last rows may have no target at all."""
    classes = 40
    logits = random_tensor(2, 6, classes, device=device, dtype=dtype, scale=2.0)
    target = torch.randint(classes, (2, rows), device=device)
    target[0, 1] = target[1, 3] = -100
    # One is in the next row.
    target[0, 2] = classes + 3
    op = differentiated(ce.counted_kernel, ce.counted)
    assert_gradients_close(op, ce.counted_reference, (logits, target, -100, counts_first))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("by_floats", [False, True])
@pytest.mark.parametrize("target_first", [True, False])
@pytest.mark.parametrize("classes", [16, 45])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
def test_rows_that_return(device, ran, dtype, classes, target_first, by_floats):
    """They run no iteration, and get no gradient but from another row's target."""
    logits = random_tensor(7, classes, device=device, dtype=dtype, scale=2.0)
    target = torch.randint(classes, (7,), device=device)
    target[2] = target[3] = target[6] = -100
    target[1] = classes + 3
    op = differentiated(ce.returning_kernel, ce.returning)
    inputs = (logits, target, -100, target_first, by_floats)
    assert_gradients_close(op, ce.returning_reference, inputs, roundings=16)
    assert_sums(ran, "store", 0)


def test_all_rows_return(device, ran):
    logits = random_tensor(3, 20, device=device)
    target = torch.full((3,), -100, device=device)
    op = differentiated(ce.returning_kernel, ce.returning)
    assert_gradients_close(op, ce.returning_reference, (logits, target, -100))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("picked_by", [0, 1])
@pytest.mark.parametrize("classes", [64, 45])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_chunks_of_rows(device, ran, dtype, classes, picked_by):
    """Each program could look at the target as well as the first one; there may be no second."""
    logits = random_tensor(7, classes, device=device, dtype=dtype, scale=2.0)
    target = torch.randint(classes, (7,), device=device)
    target[2] = target[5] = -100
    target[3] = classes + 3
    op = differentiated(ce.chunked_kernel, ce.chunked)
    assert_gradients_close(op, ce.chunked_reference, (logits, target, -100, picked_by))
    assert_sums(ran, "atomic" if picked_by else "store", 0)


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32, torch.float64], ids=str)
@pytest.mark.parametrize("classes, split", [(5, None), (50, None), (50, 20), (50, 0), (50, 50)])
def test_divergence(device, ran, classes, split, dtype):
    """Each iteration has two running maxima; a second loop goes on with both."""
    op = differentiated(ce.divergence_kernel, ce.divergence)
    x, y = (random_tensor(7, classes, device=device, dtype=dtype) for _ in range(2))
    assert_gradients_close(op, ce.divergence_reference, (x, y, split), roundings=64)
    if split is None:
        assert_sums(ran, "store", 0, 1)


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16], ids=str)
def test_cross_entropy_real_sizes(cuda, dtype):
    op = differentiated(
        ce.cross_entropy_kernel,
        lambda kernel, logits, target: ce.cross_entropy(
            kernel, logits, target, BLOCK=4096, num_warps=8
        ),
    )
    assert_gradients_close(op, ce.cross_entropy_reference, _inputs(2048, 50257, cuda, dtype))
