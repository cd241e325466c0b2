"""Which results of a registered operation have a history, while a graph is made.

Autograd asks then, and nothing has run. So the stub runs on tensors without memory under autograd,
and its launches are operators of a graph that nobody keeps (`graphs/operator.py`).
"""

from __future__ import annotations

import torch
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils._python_dispatch import _disable_current_modes
from torch.utils._pytree import tree_flatten, tree_unflatten

from ..graphs.facts import hint, hints
from ..launching.nodes import recording_history
from ..storage.tensors import tensors_in
from ..support.ambient import undrawn

Tensor = torch.Tensor


def without_history(op, wanted, args, kwargs) -> list[int]:
    """Return the numbers of those tensors among the results that do not depend, for autograd, on
    the leaves `wanted` of the arguments.

    Where that cannot be known, there are none: their gradients are zeros.
    """
    leaves, structure = tree_flatten((args, kwargs))
    try:
        with _disable_current_modes(), torch.enable_grad(), recording_history(), undrawn():
            with FakeTensorMode(allow_non_fake_inputs=True):
                leaves = [_like(leaf) for leaf in leaves]
                for n in wanted:
                    leaves[n].requires_grad_()
                args, kwargs = tree_unflatten(leaves, structure)
                result = op.stub(op.kernel, *args, **kwargs)
    except Exception:
        # It says what is wrong when it runs, if anything is: there may be launches that no graph
        # can hold.
        return []
    return [n for n, tensor in enumerate(tensors_in(result)) if not tensor.requires_grad]


def _like(value):
    if not isinstance(value, Tensor):
        return hint(value)
    shape, strides = hints(value.shape), hints(value.stride())
    return torch.empty_strided(shape, strides, dtype=value.dtype, device=value.device)
