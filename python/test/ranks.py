"""Processes of a test that talk to one another: through gloo, or through NCCL on GPUs."""

from __future__ import annotations

import datetime
import multiprocessing
import os
import tempfile
import time
from collections.abc import Callable

import pytest
import torch
import torch.distributed as dist
import torch.multiprocessing as mp

COUNT = 2  # unless a test asks for more
# A process may compile meanwhile, and others be busy, too.
SECONDS = 480


def run(worker: Callable, device: str, *args, count: int = COUNT) -> None:
    """Call `worker(device, *args)` in each process; raises what one of them raises.

    None outlives the call, and a test that takes too long fails. They are forks of one process that
    has imported PyTorch, which takes longer than most of these tests.
    """
    if device == "cuda" and torch.cuda.device_count() < count:
        pytest.skip(f"needs {count} GPUs")
    with tempfile.TemporaryDirectory() as folder:
        given = worker, device, count, os.path.join(folder, "store"), dict(os.environ), args
        multiprocessing.set_forkserver_preload(["torch", "triton"])
        context = mp.start_processes(
            _start, given, nprocs=count, join=False, start_method="forkserver"
        )
        end = time.monotonic() + SECONDS
        try:
            while not context.join(timeout=1):
                assert time.monotonic() < end, f"{worker.__name__} takes more than {SECONDS} s"
        finally:
            for process in context.processes:
                process.kill()
                process.join()


def _start(rank, worker, device, count, store, environment, args) -> None:
    os.environ.update(environment)
    if device == "cuda":
        torch.cuda.set_device(rank)
    elif torch.cuda.is_available():
        from triton.backends import backends
        from triton.runtime.driver import driver

        driver.set_active(backends["autodiff"].driver())
    torch.set_num_threads(1)
    dist.init_process_group(
        "nccl" if device == "cuda" else "gloo",
        init_method=f"file://{store}",
        rank=rank,
        world_size=count,
        timeout=datetime.timedelta(seconds=SECONDS / 2),
    )
    torch.manual_seed(7)
    worker(device, *args)
    # Nobody leaves while others still talk to it.
    dist.barrier()
    dist.destroy_process_group()
