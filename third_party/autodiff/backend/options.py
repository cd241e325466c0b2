"""What a user may ask of a kernel's backward, beside gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .tapes import checked_limit


class Options(NamedTuple):
    """The options of one differentiable kernel; None where the user gave none."""

    tape_limit: int | None = None
    deterministic: bool | None = None

    @classmethod
    def checked(cls, base: Options, *, tape_limit, deterministic) -> Options:
        """Return the options that a user gave, or raise; `base` provides the others."""
        if deterministic is not None and type(deterministic) is not bool:
            raise TypeError(f"deterministic should be True or False, got {deterministic!r}")
        given = cls(checked_limit(tape_limit), deterministic)
        return cls(*(old if new is None else new for new, old in zip(given, base, strict=True)))

    def atomics(self) -> int:
        """Return whether gradients may meet in atomics, as things are."""
        if self.deterministic is None:
            return torch.get_deterministic_debug_mode()
        return FORBIDDEN if self.deterministic else ALLOWED


DEFAULT = Options()
# PyTorch's debug modes: `use_deterministic_algorithms(True)` forbids, with `warn_only=True` warns.
ALLOWED, WARNED_OF, FORBIDDEN = 0, 1, 2
