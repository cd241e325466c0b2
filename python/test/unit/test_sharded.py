"""Registered operations of DTensors, with gloo on two processes."""

import os

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import triton
import triton.language as tl
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh
from triton_autodiff import AutodiffError, autodiff

Tensor = torch.Tensor
pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed"),
    pytest.mark.skipif(torch.cuda.is_available(), reason="kernels run on the GPU, gloo does not"),
]


@triton.jit
def rms_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    r = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-5)
    tl.store(y_ptr + row * n + i, x * r * w, mask=i < n)


def rms(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def reference(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


EXAMPLE = torch.empty(4, 24), torch.empty(24)


def compare(op, mesh, layout):
    """With `x` laid out so, the operation does what it does to whole tensors."""
    x, w, upstream = torch.randn(6, 40), torch.randn(40), torch.randn(6, 40)
    leaves = [
        distribute_tensor(x, mesh, [layout]).requires_grad_(),
        distribute_tensor(w, mesh, [Replicate()]).requires_grad_(),
    ]
    y = op(*leaves)
    assert y.placements == ((Shard(0) if layout == Shard(0) else Replicate()),)
    y.backward(distribute_tensor(upstream, mesh, [Shard(0)]))
    assert leaves[1].grad.placements[0].is_partial() == (layout == Shard(0))
    wholes = [t.double().requires_grad_() for t in (x, w)]
    z = reference(*wholes)
    z.backward(upstream.double())
    torch.testing.assert_close(y.full_tensor(), z.float())
    for leaf, whole in zip(leaves, wholes, strict=True):
        torch.testing.assert_close(leaf.grad.full_tensor(), whole.grad.float())


def worker(rank, port):
    os.environ.update(MASTER_ADDR="127.0.0.1", MASTER_PORT=str(port))
    dist.init_process_group("gloo", rank=rank, world_size=2)
    op = autodiff(rms_kernel, rms).register(
        "autodiff_test::sharded_rms", shard={"x": 0, "result": 0}, example=EXAMPLE
    )
    mesh = init_device_mesh("cpu", (2,))
    torch.manual_seed(7)
    for layout in (Shard(0), Shard(1), Replicate()):
        compare(op, mesh, layout)
    dist.destroy_process_group()


def test_parts_of_rows(unused_port):
    mp.spawn(worker, (unused_port,), nprocs=2)


@pytest.fixture
def unused_port():
    import socket

    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


@pytest.mark.parametrize(
    ("shard", "example", "message"),
    [
        ({"x": 1, "w": 0, "result": 1}, EXAMPLE, "do not give parts of the result"),
        ({"x": 0}, EXAMPLE, "is to name 'result'"),
        ({"x": 0, "result": 0}, None, "tried out"),
    ],
)
def test_rules_that_are_refused(shard, example, message):
    with pytest.raises(AutodiffError, match=message):
        autodiff(rms_kernel, rms).register("autodiff_test::wrong", shard=shard, example=example)
