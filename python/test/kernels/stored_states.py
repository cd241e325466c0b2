"""Loops that store what they carry: a state after its update or before it, in parts or in all."""

import torch
import triton
import triton.language as tl

from .common import poisoned, tanh, widen


@triton.jit
def linear_attention_kernel(
    q_ptr, k_ptr, v_ptr, decay_ptr, states_ptr, y_ptr, n_chunks, stride,
    CHUNK: tl.constexpr, DIM: tl.constexpr,
):  # fmt: skip
    """Chunks of keys and values enter a state; each chunk's queries see that of the chunks before.

    Every state is stored before its update, `stride` elements behind one another, as the kernels
    do that leave the rest to another one.
    """
    sequence = tl.program_id(0)
    row, column = tl.arange(0, CHUNK), tl.arange(0, DIM)
    square = column[:, None] * DIM + column[None, :]
    state = tl.zeros((DIM, DIM), tl.float32)
    for chunk in range(n_chunks):
        place = (sequence * n_chunks + chunk) * CHUNK + row
        rows = place[:, None] * DIM + column[None, :]
        kept = state.to(states_ptr.dtype.element_ty)
        tl.store(states_ptr + sequence * n_chunks * DIM * DIM + chunk * stride + square, kept)
        q, k, v = tl.load(q_ptr + rows), tl.load(k_ptr + rows), tl.load(v_ptr + rows)
        y = tl.dot(q, kept.to(q.dtype), input_precision="ieee")
        tl.store(y_ptr + rows, y.to(y_ptr.dtype.element_ty))
        decay = tl.load(decay_ptr + sequence * n_chunks + chunk).to(tl.float32)
        state = state * decay + tl.dot(tl.trans(k), v, input_precision="ieee")


def linear_attention(kernel, q, k, v, decay, stride=None):
    """q, k, v: (sequences, chunks, CHUNK, DIM); decay: (sequences, chunks). States and outputs."""
    sequences, chunks, length, dim = q.shape
    states, y = poisoned((sequences, chunks, dim, dim), q), poisoned(q.shape, q)
    stride = dim * dim if stride is None else stride
    kernel[(sequences,)](
        q, k, v, decay, states, y, chunks, stride, CHUNK=length, DIM=dim, num_warps=1
    )
    return (states, y) if stride else (states[:, :1], y)


def linear_attention_reference(q, k, v, decay, stride=None):
    states, state = [], 0 * k[:, 0].mT @ v[:, 0]
    for chunk in range(q.shape[1]):
        states.append(state)
        state = state * decay[:, chunk, None, None] + k[:, chunk].mT @ v[:, chunk]
    stored = torch.stack(states, 1)
    y = q @ stored
    return (stored if stride is None else stored[:, -1:]), y


@triton.jit
def filter_kernel(
    x_ptr, gain_ptr, first_ptr, y_ptr, last_ptr, n_rows, n_steps, n_lanes, stride,
    BLOCK: tl.constexpr, HOW: tl.constexpr,
):  # fmt: skip
    """h = update(h, x) along time, for some rows in each program; a gain that all lanes share."""
    lane = tl.arange(0, BLOCK)
    mask = lane < n_lanes
    gain = widen(tl.load(gain_ptr))
    for i in range(n_rows):
        row = tl.program_id(0) * n_rows + i
        h = widen(tl.load(first_ptr + row * n_lanes + lane, mask=mask, other=-float("inf")))
        other = tl.zeros_like(h)
        for t in range(n_steps):
            at = (row * n_steps + t) * n_lanes + lane
            x = widen(tl.load(x_ptr + at, mask=mask, other=0.0))
            if HOW == "linear":
                h = gain * h + x
            elif HOW == "saturating":
                h = tanh(gain * h + x)
            elif HOW == "largest":
                h = tl.maximum(h, gain * x)
            elif HOW == "normalized":
                # Lanes meet, those that are left out, too.
                h = tl.where(mask, h, 0.0)
                h = gain * h / tl.sqrt(1.0 + tl.sum(h * h, 0)) + x
            elif HOW == "paired":
                # A second value is carried, and not stored.
                other = x + 0.5 * other * tl.where(mask, h, 0.0)
                h = tanh(gain * h + other)
            elif HOW == "needed":
                # The sum itself is a factor of the gradient.
                h = gain * h + x
                h = h * h * 0.25
            tl.store(y_ptr + row * n_steps * n_lanes + t * stride + lane, h, mask=mask)
        tl.store(last_ptr + row * n_lanes + lane, h, mask=mask)


def filtered(kernel, x, gain, first, how, stride=None, BLOCK=16, rows=2):
    """x: (rows, steps, lanes); gain: (1,); first: (rows, lanes). All states, and the last ones."""
    n, steps, lanes = x.shape
    y, last = poisoned(x.shape, x), poisoned(first.shape, x)
    stride = lanes if stride is None else stride
    kernel[(n // rows,)](x, gain, first, y, last, rows, steps, lanes, stride, BLOCK=BLOCK, HOW=how)
    return (y, last) if stride else (y[:, :1], last)


def filtered_reference(x, gain, first, how, stride=None):
    updates = {
        "linear": lambda h, x: gain * h + x,
        "saturating": lambda h, x: torch.tanh(gain * h + x),
        "largest": lambda h, x: torch.maximum(h, gain * x),
        "normalized": lambda h, x: gain * h / (1 + (h * h).sum(-1, True)).sqrt() + x,
        "needed": lambda h, x: (gain * h + x).square() * 0.25,
    }
    states, h, other = [], first, torch.zeros_like(first)
    for t in range(x.shape[1]):
        if how == "paired":
            other = x[:, t] + 0.5 * other * h
            h = torch.tanh(gain * h + other)
        else:
            h = updates[how](h, x[:, t])
        states.append(h)
    y = torch.stack(states, 1) if states else x
    return (y if stride is None else y[:, -1:]), h
