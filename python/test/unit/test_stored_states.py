"""States that a loop stores are read back where memory holds them, and taped where it may not."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import recurrences, stored_states

FILTERS = ("linear", "saturating", "largest", "normalized", "needed")


def _filter_inputs(device, dtype, rows=4, steps=7, lanes=11):
    """Of one sign, as upstream gradients are: the gain's gradient is a sum that does not cancel."""
    shapes = (rows, steps, lanes), (rows, lanes)
    x, first = (random_tensor(*s, device=device, dtype=dtype, scale=0.5) for s in shapes)
    for tensor in (x, first):
        tensor.detach().abs_()
    gain = torch.tensor([0.8], device=device, dtype=dtype, requires_grad=True)
    return x, gain, first


def _reads_back(op) -> bool:
    lines = op.explain().splitlines()
    taped = [line for line in lines if "taped" in line]
    read = [line for line in lines if "reads back: y_ptr" in line or "states_ptr" in line]
    return bool(read) and not taped


def _positive(outputs):
    """Upstream gradients of one sign: what lanes contribute to the gain does not cancel."""
    return [0.5 + torch.rand_like(y) for y in outputs]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16], ids=str)
@pytest.mark.parametrize("how", FILTERS)
def test_states_after_their_update(device, how, dtype, request):
    """Masked, of rows one after the other; rounded ones are read where only products need them."""
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    for shape in [(4, 7, 11), (2, 1, 16), (6, 12, 3)]:
        inputs = _filter_inputs(device, dtype, *shape)
        upstreams = _positive(stored_states.filtered_reference(*inputs, how))
        assert_gradients_close(
            op, stored_states.filtered_reference, (*inputs, how), upstreams, roundings=96
        )
    if not request.config.getoption("--forward-only"):
        exact = dtype != torch.bfloat16
        expected = how != "normalized" and (exact or how == "linear")
        assert _reads_back(op) == expected, op.explain()


@pytest.mark.parametrize("how", FILTERS)
def test_without_steps(device, how):
    """Nothing is stored: the first state is the last one."""
    x, gain, first = _filter_inputs(device, torch.float32, steps=0)
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    _, last = op(x, gain, first, how)
    assert torch.equal(last, first)
    (gradient,) = torch.autograd.grad(last.sum(), first)
    assert torch.equal(gradient, torch.ones_like(first))


@pytest.mark.parametrize("how", ["linear", "saturating"])
def test_states_that_are_overwritten(device, how):
    """All go to one place, which holds the last one: the launch's check notices."""
    inputs = _filter_inputs(device, torch.float32)
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    for stride in (None, 0, None):
        upstreams = _positive(stored_states.filtered_reference(*inputs, how, stride))
        assert_gradients_close(
            op, stored_states.filtered_reference, (*inputs, how, stride), upstreams, roundings=96
        )


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_states_before_their_update(device, dtype, request):
    """Tiles that products read; in bfloat16 as they have been rounded for these."""
    op = differentiated(stored_states.linear_attention_kernel, stored_states.linear_attention)
    for shape in [(2, 5, 16, 16), (3, 2, 16, 32)]:
        q, k, v = (random_tensor(*shape, device=device, dtype=dtype) for _ in range(3))
        decay = (0.5 + 0.5 * torch.rand(shape[:2], device=device)).to(dtype).requires_grad_()
        inputs = (q, k, v, decay)
        assert_gradients_close(op, stored_states.linear_attention_reference, inputs, roundings=64)
        assert_gradients_close(
            op, stored_states.linear_attention_reference, (*inputs, 0), roundings=64
        )
        assert_gradients_close(op, stored_states.linear_attention_reference, inputs, roundings=64)
    if not request.config.getoption("--forward-only"):
        op(*inputs)
        assert _reads_back(op), op.explain()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(2, 9, 70), (1, 2, 3), (3, 4, 64)], ids=str)
def test_gates(device, shape, dtype, request):
    """A loop that moves its positions on, with a tail of channels."""
    x = random_tensor(*shape, device=device, dtype=dtype)
    g = (-torch.rand(shape, device=device)).to(dtype).requires_grad_()
    op = differentiated(recurrences.gated_kernel, recurrences.gated)
    assert_gradients_close(op, recurrences.gated_reference, (x, g), roundings=64)
    if not request.config.getoption("--forward-only"):
        assert _reads_back(op), op.explain()


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_states_changed_since(device):
    """As with PyTorch's own operations: a state that a backward needs must not be overwritten."""
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    y, _ = op(*_filter_inputs(device, torch.float32), "linear")
    loss = y.sum()
    loss.backward(retain_graph=True)
    y.detach().add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_parts_of_an_output(device):
    """Rows that launches write one after the other: each is its own, and taped."""

    def by_rows(kernel, x, gain, first, how):
        y, last = torch.empty_like(x), torch.empty_like(first)
        n, steps, lanes = x.shape
        for row in range(n):
            kernel[(1,)](
                x[row], gain, first[row], y[row], last[row], 1, steps, lanes, lanes,
                BLOCK=16, HOW=how,
            )  # fmt: skip
        return y, last

    inputs = _filter_inputs(device, torch.float32)
    op = differentiated(stored_states.filter_kernel, by_rows)
    upstreams = _positive(stored_states.filtered_reference(*inputs, "saturating"))
    assert_gradients_close(
        op, stored_states.filtered_reference, (*inputs, "saturating"), upstreams, roundings=96
    )


@pytest.mark.parametrize("limit", ["1", "1000000"])
@pytest.mark.parametrize("shape", [(4, 7, 11), (2, 12, 16)], ids=str)
def test_states_beside_tapes(device, shape, limit, monkeypatch):
    """One value is stored and another one is not: of that, the tape may hold checkpoints."""
    monkeypatch.setenv("TRITON_AUTODIFF_TAPE_LIMIT", limit)
    inputs = _filter_inputs(device, torch.float32, *shape)
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    for how in ("paired", "normalized"):
        upstreams = _positive(stored_states.filtered_reference(*inputs, how))
        assert_gradients_close(
            op, stored_states.filtered_reference, (*inputs, how), upstreams, roundings=96
        )


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_explanation_of_a_state_beside_a_tape(device):
    op = differentiated(stored_states.filter_kernel, stored_states.filtered)
    op(*_filter_inputs(device, torch.float32, steps=9), "paired")
    text = op.explain()
    assert "reads back: y_ptr, which the forward has stored" in text
    assert text.count("taped: ") == 1
