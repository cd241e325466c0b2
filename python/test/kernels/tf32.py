"""Products in tf32, as the matrix units of GPUs compute them."""

import torch

# The bits of a float32 that tf32 has not.
_CUT = 0x1FFF


def _cut(x):
    """Return `x` without these bits: they are cut off, not rounded."""
    short = (x.detach().view(torch.int32) & ~_CUT).view(torch.float32)
    return x + (short - x.detach())


def product(a, b):
    """Return a @ b; of float32 on a GPU, as a kernel's `tl.dot` has it."""
    if a.is_cuda and a.dtype == torch.float32:
        a, b = _cut(a), _cut(b)
    return a @ b
