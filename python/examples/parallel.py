"""One layer on several devices: data parallel (DDP), fully sharded (FSDP2), tensor parallel.

    python python/examples/parallel.py

starts two processes, which talk through gloo; on GPUs, one for each of at most two, and NCCL. It
checks gradients against those of one process in float64.
"""

import datetime
import os
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
import triton
import triton.language as tl
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import Shard, distribute_tensor
from torch.distributed.tensor.parallel import (
    ColwiseParallel,
    RowwiseParallel,
    parallelize_module,
)
from torch.nn.parallel import DistributedDataParallel
from triton_autodiff import autodiff

INNER = 32


@triton.jit
def gelu_kernel(x_ptr, bias_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    place = tl.program_id(0) * n + i
    x = tl.load(x_ptr + place, mask=i < n, other=0.0)
    x += tl.load(bias_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr + place, x * tl.sigmoid(1.702 * x), mask=i < n)


def gelu(kernel, x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    rows, n = x.shape
    kernel[(rows,)](x, bias, y, n, BLOCK=triton.next_power_of_2(n))
    return y


def reference(x: torch.Tensor, bias: torch.Tensor) -> torch.Tensor:
    return (x + bias) * torch.sigmoid(1.702 * (x + bias))


def registered(device: str):
    """The operation as an operator that DTensors can be given: it knows how rows are divided."""
    example = torch.empty(4, INNER, device=device), torch.empty(INNER, device=device)
    rule = {"x": 1, "bias": 0, "result": 1}
    return autodiff(gelu_kernel, gelu).register("parallel::gelu", shard=rule, example=example)


class FeedForward(torch.nn.Module):
    def __init__(self, activate):
        super().__init__()
        self.up = torch.nn.Linear(24, INNER, bias=False)
        self.bias = torch.nn.Parameter(torch.randn(INNER))
        self.down = torch.nn.Linear(INNER, 8)
        self.activate = activate

    def forward(self, x):
        return self.down(self.activate(self.up(x), self.bias))


# Each returns the layer as it runs there, and the dimension of its input that is divided.


def data_parallel(layer: FeedForward, mesh: DeviceMesh):
    """Each device has all parameters, and a part of the batch."""
    return DistributedDataParallel(layer), 0


def fully_sharded(layer: FeedForward, mesh: DeviceMesh):
    """Each device has a part of each parameter, gathers them to run, and a part of the batch."""
    return fully_shard(layer, mesh=mesh), 0


def tensor_parallel(layer: FeedForward, mesh: DeviceMesh):
    """Each device computes a part of what is between the two products, for the whole batch."""
    plan = {
        "up": ColwiseParallel(use_local_output=False),
        "down": RowwiseParallel(input_layouts=Shard(1)),
    }
    layer.bias = torch.nn.Parameter(distribute_tensor(layer.bias.detach(), mesh, [Shard(0)]))
    return parallelize_module(layer, mesh, plan), None


WAYS = (data_parallel, fully_sharded, tensor_parallel)


def check(way, activate, mesh: DeviceMesh, run=lambda module: module) -> None:
    """Compare the gradients of a layer that runs in this way with those of one process."""
    device = mesh.device_type
    layer = FeedForward(activate).to(device)
    x = torch.randn(6, 24, device=device)
    # The same on each device.
    for tensor in (x, *layer.parameters()):
        dist.broadcast(tensor.data, 0)
    whole = FeedForward(reference).to(device).double()
    whole.load_state_dict(layer.state_dict())
    whole(x.double()).square().mean().backward()

    module, divided = way(layer, mesh)
    own = x if divided is None else x.chunk(mesh.size(), divided)[mesh.get_rank()]
    run(module)(own).square().mean().backward()
    for (name, ours), theirs in zip(layer.named_parameters(), whole.parameters(), strict=True):
        gradient = ours.grad.full_tensor() if hasattr(ours.grad, "full_tensor") else ours.grad
        torch.testing.assert_close(gradient, theirs.grad.float(), msg=lambda m, n=name: f"{n}: {m}")


def main(rank: int, processes: int, device: str, store: str) -> None:
    if device == "cuda":
        torch.cuda.set_device(rank)
    dist.init_process_group(
        {"cuda": "nccl", "cpu": "gloo"}[device],
        init_method=f"file://{store}",
        rank=rank,
        world_size=processes,
        timeout=datetime.timedelta(minutes=2),
    )
    mesh = init_device_mesh(device, (processes,))
    activate = registered(device)
    for way in WAYS:
        check(way, activate, mesh)
        if rank == 0:
            print(f"{way.__name__}: gradients agree with those of one process")
    # Nobody leaves while others still talk to it.
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    gpus = torch.cuda.device_count()
    processes = min(gpus, 2) or 2
    with tempfile.TemporaryDirectory() as folder:
        given = processes, "cuda" if gpus else "cpu", os.path.join(folder, "store")
        # Processes of a fork server end without a finalizer of Python, which would abort them where
        # a thread of gloo has not let go of its last tensor.
        mp.start_processes(main, given, nprocs=processes, start_method="forkserver")
