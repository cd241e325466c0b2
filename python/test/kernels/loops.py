"""Loops and branches: carried state, nesting, no iteration at all."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def rnn_kernel(x_ptr, w_ptr, h0_ptr, last_ptr, steps, n_channels, BLOCK: tl.constexpr):
    """h = tanh(x_t + w * h) for each channel: a carried value that is none of the easy kinds."""
    batch = tl.program_id(0)
    channels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = channels < n_channels
    w = widen(tl.load(w_ptr + channels, mask=mask, other=0.0))
    h = widen(tl.load(h0_ptr + batch * n_channels + channels, mask=mask, other=0.0))
    x_ptrs = x_ptr + batch * steps * n_channels + channels
    for _ in range(steps):
        x = tl.load(x_ptrs, mask=mask, other=0.0)
        h = tanh(x + w * h)
        x_ptrs += n_channels
    tl.store(last_ptr + batch * n_channels + channels, h, mask=mask)


@triton.jit
def rnn_states_kernel(x_ptr, w_ptr, h0_ptr, states_ptr, steps, n_channels, BLOCK: tl.constexpr):
    """As rnn_kernel, but every state is an output."""
    batch = tl.program_id(0)
    channels = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    mask = channels < n_channels
    w = widen(tl.load(w_ptr + channels, mask=mask, other=0.0))
    h = widen(tl.load(h0_ptr + batch * n_channels + channels, mask=mask, other=0.0))
    for t in range(steps):
        offsets = (batch * steps + t) * n_channels + channels
        h = tanh(tl.load(x_ptr + offsets, mask=mask, other=0.0) + w * h)
        tl.store(states_ptr + offsets, h, mask=mask)


def rnn(kernel, x, w, h0, BLOCK=16):
    """The last state of x: (batch, steps, channels)."""
    batch, steps, channels = x.shape
    last = poisoned((batch, channels), x)
    kernel[(batch, triton.cdiv(channels, BLOCK))](x, w, h0, last, steps, channels, BLOCK=BLOCK)
    return last


def rnn_states(kernel, x, w, h0, BLOCK=16):
    batch, steps, channels = x.shape
    states = poisoned(x.shape, x)
    kernel[(batch, triton.cdiv(channels, BLOCK))](x, w, h0, states, steps, channels, BLOCK=BLOCK)
    return states


def rnn_states_reference(x, w, h0):
    states, h = [], h0
    for x_t in x.unbind(1):
        h = torch.tanh(x_t + w * h)
        states.append(h)
    return torch.stack(states, dim=1)


def rnn_reference(x, w, h0):
    return rnn_states_reference(x, w, h0)[:, -1] if x.shape[1] else h0.clone()


@triton.jit
def running_sum_kernel(x_ptr, w_ptr, y_ptr, steps, BLOCK: tl.constexpr):
    """A sum that every iteration reads after adding to it."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    width = tl.num_programs(0) * BLOCK
    total = tl.load(w_ptr + lane)
    for t in range(steps):
        total += tl.load(x_ptr + t * width + lane)
        tl.store(y_ptr + t * width + lane, total * 3.0)


def running_sum(kernel, x, w, BLOCK=16):
    y = poisoned(x.shape, x)
    kernel[(x.shape[1] // BLOCK,)](x, w, y, x.shape[0], BLOCK=BLOCK)
    return y


def running_sum_reference(x, w):
    return 3 * (w + x.cumsum(0))


@triton.jit
def nested_kernel(x_ptr, w_ptr, y_ptr, n_rows, n_columns, BLOCK: tl.constexpr):
    """An accumulator in the inner loop feeds a nonlinear state of the outer one."""
    lane = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    lanes = tl.num_programs(0) * BLOCK
    state = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for i in range(n_rows):
        total = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
        for j in range(n_columns):
            w = tl.load(w_ptr + j)
            total += w * tl.load(x_ptr + (i * n_columns + j) * lanes + lane)
        state = tanh(state * 0.5 + total)
    tl.store(y_ptr + lane, state)


def nested(kernel, x, w, BLOCK=16):
    """x: (rows, columns, lanes), lanes a multiple of BLOCK."""
    rows, columns, lanes = x.shape
    y = poisoned((lanes,), x)
    kernel[(lanes // BLOCK,)](x, w, y, rows, columns, BLOCK=BLOCK)
    return y


def nested_reference(x, w):
    state = torch.zeros_like(x[0, 0]) if x.shape[0] else x.new_zeros(x.shape[2])
    for row in (x * w[:, None]).sum(1).unbind(0):
        state = torch.tanh(state * 0.5 + row)
    return state


@triton.jit
def triangular_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The bound of the inner loop is the counter of the outer one."""
    lane = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), dtype=x_ptr.dtype.element_ty)
    for i in range(n):
        product = tl.full((BLOCK,), 1.0, x_ptr.dtype.element_ty)
        for j in range(i + 1):
            product *= tl.load(x_ptr + j * BLOCK + lane)
        total += product
    tl.store(y_ptr + lane, total)


def triangular(kernel, x):
    steps, lanes = x.shape
    y = poisoned((lanes,), x)
    kernel[(1,)](x, y, steps, BLOCK=lanes)
    return y


def triangular_reference(x):
    # Without cumprod, whose gradient divides.
    total, product = torch.zeros_like(x.sum(0)), torch.ones_like(x.sum(0))
    for row in x.unbind(0):
        product = product * row
        total = total + product
    return total


@triton.jit
def branch_kernel(x_ptr, y_ptr, mode, n, BLOCK: tl.constexpr):
    """A run-time condition picks the function; one side depends on the program too."""
    pid = tl.program_id(0)
    offsets = pid * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask, other=0.0)
    if mode > 0:
        y = tl.sin(x) * x
    else:
        y = tl.exp(x)
    if pid % 2 == 0:
        y = y * y
    tl.store(y_ptr + offsets, y, mask=mask)


def branch(kernel, x, mode, BLOCK=32):
    y = poisoned(x.shape, x)
    kernel[(triton.cdiv(x.numel(), BLOCK),)](x, y, mode, x.numel(), BLOCK=BLOCK)
    return y


def branch_reference(x, mode, BLOCK=32):
    y = torch.sin(x) * x if mode > 0 else torch.exp(x)
    even = (torch.arange(x.numel(), device=x.device) // BLOCK) % 2 == 0
    return torch.where(even, y * y, y)


@triton.jit
def data_branch_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """The condition is computed from loaded values, inside a loop over blocks."""
    pid = tl.program_id(0)
    total = tl.zeros((), dtype=x_ptr.dtype.element_ty)
    for start in range(0, n, BLOCK):
        offsets = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + pid * n + offsets, mask=offsets < n, other=0.0)
        s = tl.sum(x, axis=0)
        if s > 0:
            total += tl.sum(x * x, axis=0)
        else:
            total = 0.5 * total - s
    tl.store(y_ptr + pid, total)


def data_branch(kernel, x, BLOCK=16):
    rows, columns = x.shape
    y = poisoned((rows,), x)
    kernel[(rows,)](x, y, columns, BLOCK=BLOCK)
    return y


def data_branch_reference(x, BLOCK=16):
    total = x.new_zeros(x.shape[0])
    for part in x.split(BLOCK, dim=1):
        s = part.sum(1)
        total = torch.where(s > 0, total + (part * part).sum(1), 0.5 * total - s)
    return total


@triton.jit
def storing_logsumexp_kernel(x_ptr, y_ptr, z_ptr, n, BLOCK: tl.constexpr):
    """An online log-sum-exp whose loop stores something else besides."""
    row = tl.program_id(0)
    running_max, total = -float("inf"), 0.0
    for start in range(0, n, BLOCK):
        columns = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + row * n + columns, mask=columns < n, other=-float("inf"))
        tl.store(z_ptr + row * n + columns, 3.0 * x, mask=columns < n)
        new_max = tl.maximum(running_max, tl.max(x, 0))
        total = total * tl.exp(running_max - new_max) + tl.sum(tl.exp(x - new_max), 0)
        running_max = new_max
    tl.store(y_ptr + row, running_max + tl.log(total))


def storing_logsumexp(kernel, x, BLOCK=16):
    rows, columns = x.shape
    y, z = poisoned((rows,), x), poisoned(x.shape, x)
    kernel[(rows,)](x, y, z, columns, BLOCK=BLOCK)
    return y, z


def storing_logsumexp_reference(x):
    return x.logsumexp(1), 3 * x
