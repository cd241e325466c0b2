"""Programs that wait for one another: integers are recorded, floats and locks are refused."""

import gradients
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import handed_on
from triton.backends.autodiff import AutodiffError

pytestmark = pytest.mark.schedules

WAITS = pytest.mark.parametrize("wait", ["add", "cas", "volatile", "for"])
PLACES = pytest.mark.parametrize("place", ["branch", "always", "nest", "inside"])
# What only the forward may do, in the text of a kernel: gradients' own atomics are relaxed.
WAITING = ("scf.while", "tt.atomic_cas", "acq_rel", "acquire", "isVolatile")


def assert_only_the_forward_waits(op, *inputs):
    """Assert that no derived kernel but the forward asks what another program has stored."""
    if gradients.FORWARD_ONLY:
        return
    text = op.backward_ir(*inputs)
    assert "tt.func" in text
    assert not [word for word in WAITING if word in text]


@WAITS
@PLACES
def test_positions(device, wait, place):
    if (device, wait) == ("cuda", "volatile"):
        pytest.skip("on a GPU, a volatile load orders no loads behind it: a race of the kernel's")
    x = random_tensor(60, device=device, dtype=torch.float64)
    op = differentiated(handed_on.packing_kernel, handed_on.packing)
    assert_gradients_close(op, handed_on.packing_reference, (x, wait, place))
    assert_only_the_forward_waits(op, x, wait, place)


@pytest.mark.parametrize("dtype", [torch.int16, torch.int64, torch.uint8], ids=str)
def test_positions_of_other_types(device, dtype):
    x = random_tensor(100, device=device)
    op = differentiated(handed_on.packing_kernel, handed_on.packing)
    assert_gradients_close(op, handed_on.packing_reference, (x, "add", "branch", dtype))


def test_look_back(device):
    x = random_tensor(150, device=device, dtype=torch.float64)
    op = differentiated(handed_on.look_back_kernel, handed_on.look_back)
    assert_gradients_close(op, handed_on.packing_reference, (x,))
    assert_only_the_forward_waits(op, x)


@pytest.mark.parametrize("lengths", [(3, 0, 5, 1), (0, 0), (1, 2, 3)], ids=str)
def test_bounds(device, lengths):
    x = random_tensor(sum(lengths) + 1, 8, device=device, dtype=torch.float64)
    lengths = torch.tensor(lengths, dtype=torch.int32, device=device)
    op = differentiated(handed_on.bounds_kernel, handed_on.bounds)
    if not lengths.any():
        assert (torch.autograd.grad(op(x, lengths).sum(), x)[0] == 0).all()
        return
    assert_gradients_close(op, handed_on.bounds_reference, (x, lengths))


def test_probing(device):
    """A loop of compare-and-swaps whose end other programs decide: its result is recorded."""
    x = random_tensor(12, device=device, dtype=torch.float64)
    keys = torch.randint(0, 1000, (12,), dtype=torch.int32, device=device).unique()[:12]
    x = x[: keys.numel()].detach().requires_grad_()
    y, table = differentiated(handed_on.probing_kernel, handed_on.probing)(x, keys)
    place = torch.stack([(table == key).nonzero()[0, 0] for key in keys])
    upstream = torch.randn_like(y)
    torch.testing.assert_close(y[place], x**3)
    if gradients.FORWARD_ONLY:
        return
    (gradient,) = torch.autograd.grad(y, x, upstream)
    torch.testing.assert_close(gradient, 3 * x**2 * upstream[place])


@pytest.mark.parametrize("how", ["branch", "select"])
def test_asked_once(device, how):
    """No loop waits, and yet others decide: a program finds one place or another."""
    x = random_tensor(6, 16, device=device, dtype=torch.float64)
    y = differentiated(handed_on.asked_kernel, handed_on.asked)(x, how)
    y, place = y[:-6].view(6, 16), y[-6:].detach().long()
    truth = x[place] ** 2 * (place[:, None] + 1)
    torch.testing.assert_close(y, truth)
    if gradients.FORWARD_ONLY:
        return
    upstream = torch.randn_like(truth)
    (ours,), (theirs,) = (torch.autograd.grad(r, x, upstream) for r in (y, truth))
    torch.testing.assert_close(ours, theirs)


def test_one_tensor_under_two_names(device):
    x = random_tensor(4, 16, device=device)
    op = differentiated(handed_on.two_names_kernel, handed_on.two_names)
    if gradients.FORWARD_ONLY:
        op(x)
        return
    with pytest.raises(ValueError, match="'count_ptr' and 'seen_ptr' .* share memory"):
        op(x)


def test_a_float_without_a_history(device):
    """A float that depends on no differentiated input is recorded, as an integer is."""
    x = random_tensor(64, device=device, dtype=torch.float32)
    op = differentiated(handed_on.carry_kernel, handed_on.carry)
    assert_gradients_close(op, handed_on.counted_reference, (x, "add", "count"))


def refused(op, message, *inputs):
    if gradients.FORWARD_ONLY:
        op(*inputs)
        return
    with pytest.raises(AutodiffError, match=f"handed_on.py:.*{message}"):
        op(*inputs)


@WAITS
@pytest.mark.parametrize("how", ["sum", "bits"])
def test_floats(device, wait, how):
    x = random_tensor(60, device=device)
    op = differentiated(handed_on.carry_kernel, handed_on.carry)
    refused(op, "do not go from program to program", x, wait, how)


def test_look_back_at_floats(device):
    x = random_tensor(60, device=device)
    op = differentiated(handed_on.look_back_kernel, handed_on.look_back)
    refused(op, "do not go from program to program", x, True)


def test_lock(device):
    x = random_tensor(4, 16, device=device)
    op = differentiated(handed_on.lock_kernel, handed_on.locked)
    refused(op, "do not go from program to program", x)


def test_last_program(device):
    x = random_tensor(4, 16, device=device)
    op = differentiated(handed_on.last_kernel, handed_on.last)
    refused(op, "do not go from program to program", x)


def test_queue(device):
    x = random_tensor(7, 16, device=device)
    op = differentiated(handed_on.queue_kernel, handed_on.queue)
    refused(op, "loop that ends when another program", x)


def test_volatile_loads_of_what_nobody_waits_for(device):
    x = random_tensor(64, device=device, dtype=torch.float64)

    def stub(kernel, x):
        updated, y = x.clone(), torch.empty_like(x)
        kernel[(4,)](updated, y, 16)
        return updated, y

    op = differentiated(handed_on.volatile_kernel, stub)
    assert_gradients_close(op, lambda x: (x.exp(), x * x), (x,))


def test_memory_of_an_earlier_launch(device):
    """A loop over what the kernel only reads is no wait, and nothing is recorded."""
    x = random_tensor(8, device=device, dtype=torch.float64)
    start = torch.tensor([2, -1, 4, 1, -1, 5, 7, 3], dtype=torch.int32, device=device)
    start[5] = -1
    ends = torch.tensor([4, 1, 4, 1, 4, 5, 1, 1], device=device)
    op = differentiated(handed_on.search_kernel, handed_on.search)
    assert_gradients_close(op, lambda x, _: x[ends] ** 2, (x, start))
