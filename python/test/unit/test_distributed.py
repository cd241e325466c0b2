"""Models on two devices: data parallel, fully sharded, tensor parallel, compiled and not."""

import functools

import parallel
import pytest
import ranks
import torch
import torch.distributed as dist
import torch.utils._triton
import triton
from torch.distributed.device_mesh import init_device_mesh
from triton_autodiff import autodiff, differentiable

pytestmark = pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed")

# Hooks of modules run between graphs; a module without any is one graph.
WAYS = {
    "data parallel": (parallel.data_parallel, False),
    "fully sharded": (parallel.fully_sharded, False),
    "tensor parallel": (parallel.tensor_parallel, True),
}


def launched(x, bias):
    """A launch without a stub."""
    y = torch.empty_like(x)
    block = triton.next_power_of_2(x.shape[1])
    differentiable(parallel.gelu_kernel)[(x.shape[0],)](x, bias, y, x.shape[1], BLOCK=block)
    return y


def worker(device, name):
    # Dynamo asks for a GPU where one may not be.
    torch.utils._triton.has_triton = lambda: True
    way, fullgraph = WAYS[name]
    mesh = init_device_mesh(device, (ranks.COUNT,))
    activations = [parallel.registered(device)]
    if way is not parallel.tensor_parallel:
        activations += [launched, autodiff(parallel.gelu_kernel, parallel.gelu)]
    compiled = functools.partial(torch.compile, backend="aot_eager", fullgraph=fullgraph)
    for activate in activations:
        torch._dynamo.reset()
        parallel.check(way, activate, mesh)
        parallel.check(way, activate, mesh, compiled)


@pytest.mark.parametrize("name", WAYS)
def test_gradients_are_those_of_one_process(device, needs_gradients, name):
    ranks.run(worker, device, name)
