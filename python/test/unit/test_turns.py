"""Contributions that reach each element once, but not all together: they take turns."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import turns
from schedules import assert_interchanged, assert_sums

pytestmark = pytest.mark.schedules


@pytest.mark.parametrize("shape", [(40, 33), (16, 48), (7, 16)])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
def test_rows_and_columns(device, ran, shape, dtype):
    """One kernel sums over columns of the result and stores, one over rows, and adds."""
    x = random_tensor(*shape, device=device, dtype=dtype)
    op = differentiated(turns.gram_kernel, turns.gram)
    assert_gradients_close(op, turns.gram_reference, (x,))
    blocks = -(-shape[1] // 16) * -(-shape[0] // 16)
    assert_interchanged(ran, [0], blocks, blocks)
    assert_sums(ran, "store", 0)


def test_strided_rows_and_columns(device, ran):
    """Elements that lie between those of the tensor are none of its gradient."""
    x = random_tensor(33, 80, device=device)
    op = differentiated(turns.gram_kernel, lambda kernel, x: turns.gram(kernel, x[:, ::2].t()))
    assert_gradients_close(op, lambda x: turns.gram_reference(x[:, ::2].t()), (x,))
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("n", [0, 5, 16, 53])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_loops_whose_order_matters(device, ran, n, dtype):
    """What the loop for the results has stored, that for the moments adds to, behind a barrier."""
    x = random_tensor(6, n, device=device, dtype=dtype)
    op = differentiated(turns.running_norm_kernel, turns.running_norm)
    assert_gradients_close(op, turns.running_norm_reference, (x,), roundings=64)
    if n > 16:
        assert_sums(ran, "store", 0)


@pytest.mark.parametrize("width", [16, 40])
def test_atomics_before_sums(device, ran, width):
    """What rows gather meets in atomics; what columns get, one program then adds to that."""
    n = 37
    s = random_tensor(n, n, device=device)
    g = random_tensor(n, device=device, scale=0.3)
    at = torch.randint(n, (n,), dtype=torch.int32, device=device)
    v = random_tensor(n, width, device=device)
    op = differentiated(turns.decayed_scores_kernel, turns.decayed_scores)
    assert_gradients_close(op, turns.decayed_scores_reference, (s, g, at, v), roundings=16)
    assert_sums(ran, "store", 3)
    assert_sums(ran, "atomic", 1)
    if ran is not None:
        assert [len(g.checks) for g in ran.gradients if g.argument == 1] == [1]


@pytest.mark.parametrize("pair", [2, 8])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_lanes_from_behind(device, ran, pair, dtype):
    """The same elements of a program's own, by other lanes."""
    x = random_tensor(5, 16, pair, device=device, dtype=dtype)
    op = differentiated(turns.mirrored_kernel, turns.mirrored)
    assert_gradients_close(op, turns.mirrored_reference, (x,), roundings=16)
    assert_sums(ran, "store", 0)


@pytest.mark.parametrize("schedules", [None, ["interchange", "persist"]], ids=str)
@pytest.mark.parametrize("scales", [1, 3])
@pytest.mark.parametrize("n", [32, 53])
def test_rows_that_programs_share(device, n, scales, schedules):
    """Few programs may not sum up what other kernels contribute to as well."""
    x = random_tensor(n, 16, device=device)
    op = differentiated(
        turns.shared_rows_kernel, turns.shared_rows, backward=schedules and {"schedules": schedules}
    )
    assert_gradients_close(op, turns.shared_rows_reference, (x, scales), roundings=64)


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_explanation(device):
    op = differentiated(turns.gram_kernel, turns.gram)
    op(random_tensor(40, 33, device=device))
    text = op.explain()
    assert "gradient of x_ptr: plain stores, each element once a turn" in text
    assert "yes: stored first, and others add to it" in text
    assert "yes: added to what others have stored before, in an earlier kernel" in text
