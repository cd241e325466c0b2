"""What a user may ask of a kernel's backward, beside gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .errors import ArgumentError
from .tapes import checked_limit

# What Triton compiles a kernel with, and by what factor the compiler may widen tiles.
_POWERS_OF_TWO = ("num_warps", "num_ctas", "widen")
_COUNTS = ("num_stages", "maxnreg")


def _checked_backward(given) -> tuple[tuple[str, int], ...] | None:
    """Return the launch options that a user gives backward kernels, sorted, or raise."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f'backward should be a dictionary like {{"num_warps": 8}}, got {given!r}')
    for name, value in given.items():
        if name not in (*_POWERS_OF_TWO, *_COUNTS):
            known = ", ".join((*_POWERS_OF_TWO, *_COUNTS))
            raise ArgumentError(f"backward: {name!r} is none of the options {known}")
        if type(value) is not int:
            raise TypeError(f"backward: {name} should be an integer, got {value!r}")
        if value < 1 or (name in _POWERS_OF_TWO and value & (value - 1)):
            kind = "a power of two" if name in _POWERS_OF_TWO else "positive"
            raise ArgumentError(f"backward: {name} should be {kind}, got {value}")
    return tuple(sorted(given.items()))


def _checked_flag(name: str, value) -> bool | None:
    if value is not None and type(value) is not bool:
        raise TypeError(f"{name} should be True or False, got {value!r}")
    return value


class Options(NamedTuple):
    """The options of one differentiable kernel; None where the user gave none."""

    tape_limit: int | None = None
    deterministic: bool | None = None
    backward: tuple[tuple[str, int], ...] | None = None
    autotune: bool | None = None

    @classmethod
    def checked(
        cls, base: Options, tape_limit=None, deterministic=None, backward=None, autotune=None
    ) -> Options:
        """Return the options that a user gave, or raise; `base` provides the others."""
        given = cls(
            checked_limit(tape_limit),
            _checked_flag("deterministic", deterministic),
            _checked_backward(backward),
            _checked_flag("autotune", autotune),
        )
        return cls(*(old if new is None else new for new, old in zip(given, base, strict=True)))

    @property
    def widen(self) -> int | None:
        """The factor by which the compiler may widen tiles, None where that is its own choice."""
        return dict(self.backward or ()).get("widen")

    @property
    def launch(self) -> dict[str, int]:
        """The compile options of backward kernels that the user chose."""
        return {name: value for name, value in self.backward or () if name != "widen"}

    def atomics(self) -> int:
        """Return whether gradients may meet in atomics, as things are."""
        if self.deterministic is None:
            return torch.get_deterministic_debug_mode()
        return FORBIDDEN if self.deterministic else ALLOWED


DEFAULT = Options()
# PyTorch's debug modes: `use_deterministic_algorithms(True)` forbids, with `warn_only=True` warns.
ALLOWED, WARNED_OF, FORBIDDEN = 0, 1, 2
