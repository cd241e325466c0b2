"""Tiles that are reshaped to one axis, and reduced together with others."""

import hopper
import pytest
import torch
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import raveled
from triton.backends.autodiff.compiling.front_end import made
from triton.backends.autodiff.faults import reordered
from triton.backends.autodiff.inspecting import corpus

pytestmark = pytest.mark.every_triton

WAYS = ("most", "least", "later", "product")
SHAPES = pytest.mark.parametrize("shape", [(2, 32), (16, 8), (8, 64)], ids=str)


@SHAPES
@pytest.mark.parametrize(
    ("how", "dtype"),
    # A product of many is only as good as its type.
    [*((how, torch.float32) for how in WAYS), *((how, torch.float16) for how in WAYS[:-1])],
    ids=str,
)
def test_gradients(device, shape, how, dtype):
    """An element's gradient goes to its place in memory, and the forward gives that place."""
    A, B = shape
    if how == "product":  # of size one
        x = 1 + random_tensor(5, A * B, device=device).detach() / (8 * A * B)
    else:  # no two are equal, in any type
        x = (torch.rand(5, A * B, device=device).argsort(1) - A * B / 2) / 64
    x = x.to(dtype).requires_grad_()
    w = random_tensor(A * B, device=device).detach() / (8 * A * B)
    op = differentiated(raveled.place_kernel, raveled.place)
    for warps in (1, 4, 8):

        def launch(*inputs, warps=warps):
            return op(*inputs, num_warps=warps)[0]

        def reference(*inputs):
            return raveled.place_reference(*inputs)[0]

        inputs = (x, w.to(dtype), shape, how)
        assert_gradients_close(launch, reference, inputs, roundings=64)
        _, found = op(*inputs, num_warps=warps)
        _, right = raveled.place_reference(*inputs)
        torch.testing.assert_close(found, right)


@SHAPES
@pytest.mark.parametrize("how", WAYS)
def test_order_is_kept(shape, how):
    """In no derived kernel does Triton let elements be in any order where it counts."""
    constants = {"A": shape[0], "B": shape[1], "HOW": how}
    types = ["*fp32", "*fp32", "*fp32", "*i32"]
    own = hopper.ttir(raveled.place_kernel, types, constants)
    assert "allow_reorder" in own and bool(reordered.pairs(own)) == (how != "product")
    plan = hopper.plan_of(own)
    derived = [kernel["ttir"] for kernel in corpus.kernels_of(plan)]
    assert any("tt.reduce" in ttir for ttir in derived)
    for ttir in derived:
        assert "allow_reorder" not in made(ttir, hopper.TARGET, {})
