"""PyTorch's cache of compiled graphs knows a registered operator by its name alone.

So a graph of an older kernel or stub would be found again. Of operators made by `triton_op`, the
cache looks at the source of their kernels: it is given ours in the same way, and the stub's.
"""

from __future__ import annotations

import contextlib
import inspect

import torch._library.triton

from ..kernels.stubs import innermost
from ..library import native


def _nothing():
    """Stands for what a kernel calls."""


class _Source:
    """Stands for a kernel of an operator: its source decides whether a cached graph fits."""

    __name__ = _nothing.__name__
    fn = staticmethod(_nothing)

    def __init__(self, op, schemas):
        self._op, self._schemas = op, schemas

    @property
    def src(self) -> str:
        """A text that is equal for equal operations."""
        resolver, text = self._op.kernel._resolver, ""
        with contextlib.suppress(OSError, TypeError):
            text = inspect.getsource(innermost(self._op.stub))
        decides = native().version(), resolver.identity(), resolver.options, text, self._schemas
        return repr(decides)


def distinguish(op, name: str, *schemas: str) -> None:
    """Let cached graphs with an operator be found only for the same operation, and schemas."""
    known = getattr(torch._library.triton, "triton_ops_to_kernels", None)
    if known is not None:
        known[name] = [_Source(op, schemas)]
