"""Gradients of functions in kernels, beside those of PyTorch's functions."""

import torch
from gradients import assert_close


def said(error) -> str:
    """All that an exception and its causes say."""
    texts = []
    while error is not None:
        texts.append(str(error))
        error = error.__cause__
    return "\n".join(texts)


def gradients_of(function, inputs, upstreams, dtype=None):
    """The gradients of a function of PyTorch, in the inputs' precision or another one."""
    inputs = [x.detach().to(dtype or x.dtype).requires_grad_() for x in inputs]
    outputs = function(*inputs)
    outputs = outputs if isinstance(outputs, tuple) else (outputs,)
    upstreams = [u.to(y.dtype) for u, y in zip(upstreams, outputs, strict=True)]
    return torch.autograd.grad(outputs, inputs, upstreams, materialize_grads=True)


def assert_all_close(found, function, inputs, upstreams, roundings=16):
    """Gradients are as near to those in float64 as PyTorch's are."""
    truths = gradients_of(function, inputs, upstreams, torch.float64)
    baselines = gradients_of(function, inputs, upstreams)
    for i, values in enumerate(zip(found, baselines, truths, strict=True)):
        assert_close(f"gradient of input {i}", *values, roundings=roundings)
