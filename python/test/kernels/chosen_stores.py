"""Both sides of a branch store, to the same places or to others."""

import torch
import triton
import triton.language as tl

from .common import poisoned, widen

# Where the sides store: the same place last; in another order; something after it is read; places
# or masks that differ.
FORMS = ("same", "swapped", "read after", "other places", "other masks")


@triton.jit
def chosen_stores_kernel(
    x_ptr, w_ptr, y_ptr, z_ptr, columns, FORM: tl.constexpr, BLOCK: tl.constexpr
):
    """Odd rows: y = exp(x), z = w x; the others: y = w, z = sin(x)."""
    row = tl.program_id(0)
    lanes = tl.arange(0, BLOCK)
    mask = lanes < columns
    x = widen(tl.load(x_ptr + row * columns + lanes, mask=mask, other=0.0))
    w = widen(tl.load(w_ptr + lanes, mask=mask, other=0.0))
    if row % 2 == 1:
        tl.store(y_ptr + row * columns + lanes, tl.exp(x), mask=mask)
        tl.store(z_ptr + row * columns + lanes, w * x, mask=mask)
    else:
        if FORM == "swapped":
            tl.store(z_ptr + row * columns + lanes, tl.sin(x), mask=mask)
            tl.store(y_ptr + row * columns + lanes, w, mask=mask)
        elif FORM == "read after":
            tl.store(y_ptr + row * columns + lanes, w, mask=mask)
            tl.debug_barrier()
            again = widen(tl.load(y_ptr + row * columns + lanes, mask=mask, other=0.0))
            tl.store(z_ptr + row * columns + lanes, tl.sin(x) + (again - w), mask=mask)
        elif FORM == "other places":
            tl.store(y_ptr + row * columns + lanes, w, mask=mask)
            tl.store(z_ptr + row * columns + columns - 1 - lanes, tl.sin(x), mask=mask)
        elif FORM == "other masks":
            tl.store(y_ptr + row * columns + lanes, w, mask=mask)
            tl.store(z_ptr + row * columns + lanes, tl.sin(x), mask=mask & (lanes > 0))
        else:
            tl.store(y_ptr + row * columns + lanes, w, mask=mask)
            tl.store(z_ptr + row * columns + lanes, tl.sin(x), mask=mask)


def chosen_stores(kernel, x, w, form):
    y, z = poisoned(x.shape, x), poisoned(x.shape, x)
    if form == "other masks":
        z = torch.zeros_like(x)
    options = {"FORM": form, "BLOCK": triton.next_power_of_2(x.shape[1])}
    kernel[(x.shape[0],)](x, w, y, z, x.shape[1], **options)
    return y, z


def chosen_stores_reference(x, w, form):
    odd = (torch.arange(x.shape[0], device=x.device) % 2 == 1)[:, None]
    even = x.sin()
    if form == "other places":
        even = even.flip(1)
    elif form == "other masks":
        even = even * (torch.arange(x.shape[1], device=x.device) > 0)
    return torch.where(odd, x.exp(), w.expand_as(x)), torch.where(odd, w * x, even)
