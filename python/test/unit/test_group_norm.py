"""Group norms that go through a group at once, and channel by channel."""

import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import group_norm as gn
from schedules import assert_sums

pytestmark = pytest.mark.schedules


def _check(random, ran, channels, pitch, groups, sums, **options):
    op = differentiated(gn.channels_kernel, lambda *args: gn.channels(*args, **options))
    inputs = (random(channels, pitch), random(channels, shift=1.0), groups)
    assert_gradients_close(
        op, lambda *args: gn.channels_reference(*args, **options), inputs, roundings=64
    )
    assert_sums(ran, sums, 0)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize(("channels", "pitch", "groups"), [(8, 32, 2), (6, 37, 2), (5, 7, 5)])
def test_channels(random, ran, dtype, channels, pitch, groups):
    """Both ways lead through the same elements, also where blocks end in other places."""
    _check(random, ran, channels, pitch, groups, "store")


@pytest.mark.parametrize(("counted", "pixels"), [(80, None), (None, 20), (60, 20)])
def test_other_elements(random, ran, counted, pixels):
    """Statistics of a part of the group, or of more than is normalized; as many, but others."""
    _check(random, ran, 6, 37, 2, "atomic", counted=counted, pixels=pixels)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16], ids=str)
@pytest.mark.parametrize("rows", [1, 4])
@pytest.mark.parametrize(
    ("channels", "pixels"), [(1, 512), (3, 300), (1, 70), (40, 17)], ids=lambda n: str(n)
)
def test_pixels_of_a_channel(random, dtype, rows, channels, pixels):
    """Lanes that share a channel: tiles with one of them, a few, and one at every 17th lane."""
    op = differentiated(gn.flat_kernel, gn.flat)
    inputs = (random(3, channels * pixels), random(3 * channels), random(3 * channels))
    assert_gradients_close(op, gn.flat_reference, (*inputs, channels, rows), roundings=64)
