"""Measures what a backward costs: the first call, memory, and GPU time."""

from __future__ import annotations

import gc
import statistics
import time

import torch
import triton
import triton.language as tl
from timing import Rotation, copies, gpu_time, synchronize, waiting_time
from triton_autodiff import differentiable

from .problem import OURS, THEIRS, Problem, context_is_lost, leaf, mapped, own, tensors, told

# Both sides are timed in turns, so that a drifting clock affects both.
_ROUNDS = 3
_MOST_COPIES = 4


@triton.jit
def _double_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, 2.0 * tl.load(x_ptr + i))


def warm_up(device: str) -> None:
    """Do what a process does once: start CUDA, autograd, the compilers and our library."""
    x = torch.ones(16, device=device, requires_grad=True)
    y = torch.empty_like(x)
    differentiable(_double_kernel)[(1,)](x, y, BLOCK=16)
    torch.autograd.grad(y.sum(), x)
    synchronize()


def _allocated() -> int:
    return torch.cuda.memory_allocated() if torch.cuda.is_available() else 0


def _first(problem: Problem, who: str) -> dict:
    """The first forward and backward of a side: seconds, and bytes."""
    gc.collect()
    if torch.cuda.is_available():
        torch.cuda.reset_peak_memory_stats()
    inputs = mapped(leaf, problem.inputs)
    given = _allocated()
    begin = time.perf_counter()
    leaves, outputs = problem.forward_from(inputs, who)
    synchronize()
    forward = time.perf_counter() - begin
    kept = _allocated() - given
    begin = time.perf_counter()
    problem.backward(leaves, outputs)
    synchronize()
    backward = time.perf_counter() - begin
    found = {"forward_s": forward, "backward_s": backward}
    if torch.cuda.is_available():
        found |= {"kept": kept, "peak": torch.cuda.max_memory_allocated() - given}
    return found


def first_calls(problem: Problem) -> dict:
    """The first calls of both sides, theirs first: it has compiled the forward for ours, too."""
    found = {}
    for who in (THEIRS, OURS):
        try:
            found[who] = _first(problem, who)
        except Exception as error:
            if context_is_lost(error):
                raise
            found[who] = {"error": told(error)}
    return found


def _timed(problem: Problem, who: str):
    """What is timed: the backward of a graph that is built once, or forward and backward."""
    inputs = mapped(leaf, problem.inputs)
    if problem.case.whole:
        return lambda: problem.backward(*problem.forward_from(inputs, who), again=True)
    leaves, outputs = problem.forward_from(inputs, who)
    return lambda: problem.backward(leaves, outputs, again=True)


def _microseconds(function) -> float:
    return gpu_time(function, quick=True) or waiting_time(function, quick=True)


def times(problem: Problem) -> dict:
    """Microseconds of both backwards, warm, with inputs that are not in the cache.

    A side that fails is left out.
    """
    problem.forward(THEIRS)
    moved = [*tensors(problem.inputs), *problem.upstreams]
    count = 1 if problem.case.whole else min(_MOST_COPIES, copies(moved))
    functions = {}
    for who in (THEIRS, OURS):
        try:
            function = Rotation([_timed(problem, who) for _ in range(count)])
            for _ in range(2 * count):
                function()
            functions[who] = function
        except Exception as error:
            if context_is_lost(error):
                raise
    found = {who: [] for who in functions}
    for _ in range(_ROUNDS):
        for who, function in functions.items():
            found[who].append(_microseconds(function))
    # A forward is timed together with copying inputs that it may overwrite; that is subtracted.
    spent = _microseconds(lambda: mapped(own, problem.inputs)) if problem.case.whole else 0.0
    return {who: statistics.median(values) - spent for who, values in found.items()}
