"""What is stored in fewer bits stands in for what was computed only where that is right."""

import functools

import pytest
import torch
from gradients import TF32, assert_gradients_close, differentiated, random_tensor
from kernels import narrow_copies

HALF = (torch.float16, torch.bfloat16)
NARROW = (*HALF, torch.float8_e5m2, torch.float32)
backward = pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")


def _with_states(*inputs, op):
    """The result of a recurrence, whose states get a gradient, too: zero."""
    y, h = op(*inputs, both=True)
    none = h.float().masked_fill(torch.ones_like(h, dtype=torch.bool), 0)
    return y + none.sum(0).to(y.dtype)


def _positive(*shape, device, dtype=torch.float32):
    values = 0.25 + 0.7 * torch.rand(*shape, device=device)
    return values.to(dtype).requires_grad_()


@pytest.mark.parametrize("stored", NARROW, ids=str)
@pytest.mark.parametrize("how", ["variance", "root", "inverse", "mean", "logarithm"])
def test_numbers_of_rows(device, how, stored):
    """Such a number is in no range that a narrow type has, or has more digits."""
    op = differentiated(narrow_copies.statistic_kernel, narrow_copies.statistic)
    scales = (1.0,) if how in ("mean", "logarithm") else (1.0, 400.0, 1e-5)
    for dtype in (torch.float32, torch.bfloat16):
        for scale in scales:
            x = random_tensor(5, 50, device=device, dtype=dtype)
            inputs = (x, how, stored, scale)
            assert_gradients_close(op, narrow_copies.statistic_reference, inputs, roundings=48)


@pytest.mark.parametrize("stored", NARROW, ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
def test_columns_of_numbers(device, dtype, stored):
    """What is broadcast to a tile is small beside it, and kept as it was computed."""
    op = differentiated(narrow_copies.rows_kernel, narrow_copies.rows)
    for shape in [(5, 50), (3, 2)]:
        x = random_tensor(*shape, device=device, dtype=dtype)
        w = random_tensor(shape[1], device=device, dtype=dtype)
        inputs = (x, w, stored)
        assert_gradients_close(op, narrow_copies.rows_reference, inputs, roundings=32)


@pytest.mark.parametrize("stored", NARROW, ids=str)
@pytest.mark.parametrize("how", ["silu", "square", "difference", "exp", "tanh"])
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
def test_before_an_activation(device, dtype, how, stored):
    op = differentiated(narrow_copies.activation_kernel, narrow_copies.activation)
    for rows, masked in [(16, False), (21, True)]:
        x = random_tensor(rows, 16, device=device, dtype=dtype)
        w = random_tensor(16, 16, device=device, dtype=dtype)
        inputs = (x, w, how, stored, masked)
        assert_gradients_close(op, narrow_copies.activation_reference, inputs, roundings=32)


@pytest.mark.parametrize("stored", NARROW, ids=str)
@pytest.mark.parametrize("parts", [1, 3])
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
def test_states(device, dtype, parts, stored):
    """They leave the range of half precision, on either side, or lose digits."""
    launched = differentiated(narrow_copies.recurrence_kernel, narrow_copies.recurrence)
    op = functools.partial(_with_states, op=launched)
    for scale in (1.0, 1e5, 1e-7):
        a = _positive(12, 20, device=device, dtype=dtype)
        x = _positive(12, 20, device=device, dtype=dtype)
        inputs = (a, x, stored, scale, parts)
        assert_gradients_close(op, narrow_copies.recurrence_reference, inputs, roundings=48)


def _explained(op, *inputs, **options) -> str:
    op(*inputs, **options)
    return op.explain(verbose=True)


@pytest.mark.parametrize("how", ["exp", "sqrt"])
@pytest.mark.parametrize("dtype", [torch.float32, *HALF], ids=str)
@pytest.mark.parametrize("stored", [torch.float32, *HALF], ids=str)
def test_results_of_functions(device, dtype, stored, how, request):
    """PyTorch's own derivative reads the output of exp and sqrt, if all has its type."""
    op = differentiated(narrow_copies.function_kernel, narrow_copies.function)
    x = random_tensor(32, 16, device=device, dtype=dtype)
    w = random_tensor(16, 16, device=device, dtype=dtype)
    inputs = (x, w, how, stored)
    assert_gradients_close(op, narrow_copies.function_reference, inputs, roundings=32)
    if not request.config.getoption("--forward-only"):
        # Whether it is worth it depends on what it takes to compute again.
        may_be_read = stored in (torch.float32, dtype)
        assert may_be_read or "reads back: y_ptr" not in op.explain(), op.explain()


MEANS = ("mean", "reciprocal", "guarded", "sink")
NO_MEANS = ("scaled", "scaled sum", "scaled values", "other weights", "signed", "used")


@pytest.mark.parametrize(
    "how, dtype, stored",
    [
        *((how, torch.float16, torch.float16) for how in (*MEANS, *NO_MEANS)),
        ("mean", torch.float32, torch.float16),
        ("mean", torch.bfloat16, torch.bfloat16),
        ("used", torch.bfloat16, torch.bfloat16),
    ],
    ids=str,
)
def test_means(device, dtype, stored, how, request):
    """Only a mean has the range of half precision, and only its own gradient is rounded, too."""
    op = differentiated(narrow_copies.mean_kernel, narrow_copies.mean)
    for gain in (2.0**14, 2.0**-18) if how.startswith("scaled") else (1.0,):
        scale = min(1.0, 2.0**6 / gain)
        q, k = (random_tensor(n, 16, device=device, dtype=dtype) for n in (32, 40))
        v = random_tensor(40, 16, device=device, dtype=dtype, scale=scale)
        # Gradients have the size of what half precision resolves.
        size = 2.0**13 if gain < 1 else 1.0
        count = 2 if how == "used" else 1
        upstreams = [size * torch.randn(32, 16, device=device).to(stored) for _ in range(count)]
        inputs = (q, k, v, how, stored, gain)
        # What comes back from z may leave the range of half precision: products are tf32 on a GPU,
        # which cuts off as many bits as half precision rounds.
        theirs = TF32 if device == "cuda" and how == "used" and dtype == torch.float16 else 0.0
        assert_gradients_close(
            op, narrow_copies.mean_reference, inputs, upstreams, roundings=64, theirs=theirs
        )
    if stored == torch.float16 and not request.config.getoption("--forward-only"):
        is_read = "reads back: y_ptr" in op.explain()
        assert is_read == (dtype == stored and how in MEANS), op.explain()


@backward
def test_means_in_bfloat16(device):
    """What half precision does not hold is in the range of bfloat16."""
    for how in MEANS:
        op = differentiated(narrow_copies.mean_kernel, narrow_copies.mean)
        inputs = [random_tensor(32, 16, device=device, dtype=torch.bfloat16) for _ in range(3)]
        assert "reads back: y_ptr" in _explained(op, *inputs, how, torch.bfloat16)


@backward
def test_which_states_are_read_back(device):
    """Rounded to bfloat16 they are factors of gradients that are rounded to it, too."""
    for dtype in (torch.float32, *HALF):
        for stored in NARROW:
            op = differentiated(narrow_copies.recurrence_kernel, narrow_copies.recurrence)
            a, x = (_positive(12, 20, device=device, dtype=dtype) for _ in range(2))
            _with_states(a, x, stored, op=op).sum().backward()
            text = _explained(op, a, x, stored, both=True)
            is_read = stored == torch.float32 or dtype == stored == torch.bfloat16
            assert ("reads back: h_ptr" in text) == is_read, text
            assert ("taped: " in text) != is_read, text


@backward
@pytest.mark.parametrize("is_wanted", [False, True])
def test_states_of_gradients_that_are_asked_for(device, is_wanted):
    """A gradient in float32 needs more than a state in bfloat16, if it is asked for."""
    op = differentiated(narrow_copies.recurrence_kernel, narrow_copies.recurrence)
    a = _positive(12, 20, device=device, dtype=torch.bfloat16)
    x = _positive(12, 20, device=device).detach().requires_grad_(is_wanted)
    _with_states(a, x, torch.bfloat16, op=op).sum().backward()
    text = _explained(op, a, x, torch.bfloat16, both=True)
    assert ("reads back: h_ptr" in text) != is_wanted, text


@backward
def test_explanation_of_a_copy(device):
    """A rounded copy is not read back, and the explanation says so."""
    op = differentiated(narrow_copies.statistic_kernel, narrow_copies.statistic)
    x = random_tensor(5, 50, device=device, dtype=torch.float32)
    text = _explained(op, x, "inverse", torch.float16)
    assert "f16 does not hold what the derivative needs" in text
    text = _explained(op, x, "inverse", torch.float32)
    assert "read back from what the forward has stored" in text


@backward
@pytest.mark.parametrize("viewed", [False, True])
@pytest.mark.parametrize("stored", [*HALF, torch.float32], ids=str)
@pytest.mark.parametrize("turns", [0, 1, 5])
def test_sums_of_adjoints(device, stored, turns, viewed):
    """Float64 that is rounded often gets a sum in float64, wherever Triton rounds it."""
    op = differentiated(narrow_copies.numbers_kernel, narrow_copies.numbers)
    x = torch.randn(8, device=device, dtype=torch.float64, requires_grad=True)
    y, z = op(x, turns, 32, stored, viewed)
    upstream = [torch.randn(out.shape, device=device).to(stored) for out in (y, z)]
    (found,) = torch.autograd.grad((y, z), x, upstream)
    expected = x.cos() * (upstream[0].double().sum((0, 2)) + upstream[1].double())
    # So few numbers of at most 24 bits have exact sums: cosine and product are rounded.
    torch.testing.assert_close(found, expected, rtol=16 * torch.finfo(x.dtype).eps, atol=0)
