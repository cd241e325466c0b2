"""Launches that are carried out once more, as exported modules: what is recorded and compared.

What other tests launch is carried out so, too, with `--replay` (conftest.py, replay.py).
"""

from unittest import mock

import pytest
import replay
import torch
from kernels import elementwise as ew
from kernels import normalization
from triton.backends.autodiff import autodiff

pytestmark = pytest.mark.usefixtures("needs_gradients")


@pytest.fixture
def replayer():
    """One that records all; what records is taken away again."""
    from triton.backends.autodiff.launching import nodes

    found = replay.Replayer()
    with mock.patch.object(nodes, "start", found._recording(nodes.start)):
        found.begin()
        yield found


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_a_launch_of_each_plan(device, replayer):
    """The same plan is not carried out again, another one is."""
    op = autodiff(normalization.layer_norm_kernel, normalization.layer_norm)
    for rows, columns in ((5, 16), (7, 16), (3, 40)):
        x, w, b = (
            torch.randn(*s, requires_grad=True) for s in ((rows, columns), *[(columns,)] * 2)
        )
        op(x, w, b)
    assert replayer.replay() == [] and replayer.counts == {"same": 2}


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_memory_is_as_it_was(device):
    """Layouts, integers and what shares a storage stay; floats are others."""
    memory = torch.arange(40.0)
    numbers = torch.tensor([3, 1, 2])
    leaf = torch.randn(4, requires_grad=True)
    values = [memory[8:24].view(4, 4).t(), memory[30:], numbers, leaf, 7, (numbers[1:], None)]
    launch = mock.Mock(values=values, grid=(1, 1, 1))
    drawn, memories, _, leaves = replay.Recording(launch).drawn()
    one, two, three, four, seven, (five, none) = drawn
    assert len(memories) == 3 and (seven, none) == (7, None)
    assert one.stride() == (1, 4) and one.storage_offset() == 8 and two.storage_offset() == 30
    assert one.untyped_storage().data_ptr() == two.untyped_storage().data_ptr()
    assert one.untyped_storage().nbytes() == 160 and not torch.equal(one, values[0])
    assert torch.equal(three, numbers) and torch.equal(five, numbers[1:])
    assert four.requires_grad and not four.is_leaf and len(leaves) == 1


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_what_differs_is_said(device, replayer):
    """A module with another constant in its backward."""
    x = torch.randn(50, requires_grad=True)
    autodiff(ew.gelu_tanh_kernel, ew.unary)(x)
    load = replay.module_at

    def spoilt(path):
        text = path.read_text()
        assert "0.044715" in text
        begin, _, end = text.rpartition("0.044715")
        path.write_text(f"{begin}0.054715{end}")
        return load(path)

    with mock.patch.object(replay, "module_at", spoilt):
        (found,) = replayer.replay()
    assert "kernel 'gelu_tanh_kernel': gradient 0[" in found
    assert replayer.counts == {"different": 1}
