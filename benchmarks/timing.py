"""Times of a backward pass: the caller's waiting time, GPU time, and compilation time."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence

import torch
import triton
from triton import knobs

# Inputs are rotated through several copies, larger than any L2 cache.
ROTATION_BYTES = 256 * 2**20


class Rotation:
    """Calls one of several equal functions in turn, each with its own tensors."""

    def __init__(self, functions: Sequence[Callable]):
        self.functions = functions
        self.turn = 0

    def __call__(self):
        self.turn = (self.turn + 1) % len(self.functions)
        return self.functions[self.turn]()


def copies(tensors: Sequence) -> int:
    """How many sets of these tensors exceed the cache."""
    size = sum(t.numel() * t.element_size() for t in tensors if isinstance(t, torch.Tensor))
    return max(1, min(8, -(-ROTATION_BYTES // max(size, 1))))


def synchronize() -> None:
    """Wait for the GPU, if there is one."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def waiting_time(function: Callable, quick: bool) -> float:
    """Median microseconds between the events around a call; do_bench clears the L2 cache."""
    warmup, rep = (10, 50) if quick else (50, 200)
    return 1e3 * triton.testing.do_bench(function, warmup=warmup, rep=rep, return_mode="median")


def gpu_time(function: Callable, quick: bool) -> float | None:
    """Microseconds of GPU work in a call (kernels, copies and fills), None without a profiler."""
    if not torch.cuda.is_available():
        return None
    repetitions = 5 if quick else 20
    for _ in range(3):
        function()
    torch.cuda.synchronize()
    activities = [torch.profiler.ProfilerActivity.CUDA]
    with torch.profiler.profile(activities=activities) as profile:
        for _ in range(repetitions):
            function()
        torch.cuda.synchronize()
    total = sum(event.self_device_time_total for event in profile.key_averages())
    return total / repetitions if total else None


def copy_bandwidth() -> float | None:
    """The bandwidth of copying a large tensor, in bytes a second; None without a GPU."""
    if not torch.cuda.is_available():
        return None
    source = torch.empty(2**30, dtype=torch.int8, device="cuda")
    target = torch.empty_like(source)
    milliseconds = triton.testing.do_bench(lambda: target.copy_(source), return_mode="median")
    return 2 * source.numel() / (1e-3 * milliseconds)


class Compilations:
    """Notes how long Triton compiles during the context."""

    def __init__(self):
        self.times: dict[str, list[float]] = {}

    def __enter__(self):
        self._before = knobs.compilation.listener
        knobs.compilation.listener = self._note
        return self

    def __exit__(self, *_):
        knobs.compilation.listener = self._before

    def _note(self, *, metadata, times, cache_hit, **_):
        if not cache_hit:
            self.times.setdefault(metadata.get("name", ""), []).append(1e-3 * times.total)

    def milliseconds(self) -> float:
        """The time for one variant of each kernel: autotuners compile several."""
        return sum(statistics.mean(times) for times in self.times.values())
