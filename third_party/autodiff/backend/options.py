"""What a user may ask of a kernel's backward, beside gradients."""

from __future__ import annotations

from typing import NamedTuple

import torch

from .errors import ArgumentError
from .tapes import checked_limit

# What Triton compiles a kernel with, and by what factor the compiler may widen tiles.
_POWERS_OF_TWO = ("num_warps", "num_ctas", "widen")
_COUNTS = ("num_stages", "maxnreg")
# How the compiler may rearrange programs and loops; see docs/plan.md.
_SCHEDULES = ("batch", "unravel", "merge", "interchange", "persist")
_KNOWN = (*_POWERS_OF_TWO, *_COUNTS, "schedules", "scheduled")
# What the compiler is asked for.
REQUESTED = ("widen", "schedules", "scheduled")


def _checked_schedules(value) -> tuple[str, ...]:
    listed = isinstance(value, (list, tuple, set, frozenset))
    if not listed or not all(name in _SCHEDULES for name in value):
        raise ArgumentError(
            f"backward: schedules should be some of {', '.join(_SCHEDULES)}, got {value!r}"
        )
    return tuple(sorted(set(value)))


def _checked_flag(name: str, value) -> bool | None:
    if value is not None and type(value) is not bool:
        raise TypeError(f"{name} should be True or False, got {value!r}")
    return value


def _checked_option(name, value) -> int | tuple[str, ...] | bool | None:
    if name not in _KNOWN:
        raise ArgumentError(f"backward: {name!r} is none of the options {', '.join(_KNOWN)}")
    if name == "schedules":
        return _checked_schedules(value)
    if name == "scheduled":
        return _checked_flag("backward: scheduled", value)
    if type(value) is not int:
        raise TypeError(f"backward: {name} should be an integer, got {value!r}")
    if value < 1 or (name in _POWERS_OF_TWO and value & (value - 1)):
        kind = "a power of two" if name in _POWERS_OF_TWO else "positive"
        raise ArgumentError(f"backward: {name} should be {kind}, got {value}")
    return value


def _checked_backward(given) -> tuple[tuple[str, object], ...] | None:
    """Return the options that a user gives backward kernels, sorted, or raise."""
    if given is None:
        return None
    if not isinstance(given, dict):
        raise TypeError(f'backward should be a dictionary like {{"num_warps": 8}}, got {given!r}')
    checked = {name: _checked_option(name, value) for name, value in given.items()}
    return tuple(sorted(checked.items()))


class Options(NamedTuple):
    """The options of one differentiable kernel; None where the user gave none."""

    tape_limit: int | None = None
    deterministic: bool | None = None
    backward: tuple[tuple[str, object], ...] | None = None
    autotune: bool | None = None
    # Of a forward that is autotuned, the stages and warps of its configurations.
    forward_configs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def checked(
        cls, base: Options, tape_limit=None, deterministic=None, backward=None, autotune=None
    ) -> Options:
        """Return the options that a user gave, or raise; `base` provides the others."""
        given = {
            "tape_limit": checked_limit(tape_limit),
            "deterministic": _checked_flag("deterministic", deterministic),
            "backward": _checked_backward(backward),
            "autotune": _checked_flag("autotune", autotune),
        }
        return base._replace(**{k: value for k, value in given.items() if value is not None})

    @property
    def tunes(self) -> bool:
        """Whether backwards are measured: as the user says, or as the forward is."""
        return bool(self.forward_configs) if self.autotune is None else self.autotune

    @property
    def requested(self) -> dict[str, object]:
        """What the user chose of that which the compiler decides; see `Ask`."""
        return {name: value for name, value in self.backward or () if name in REQUESTED}

    @property
    def launch(self) -> dict[str, int]:
        """The compile options of backward kernels that the user chose."""
        return {name: value for name, value in self.backward or () if name not in REQUESTED}

    def atomics(self) -> int:
        """Return whether gradients may meet in atomics, as things are."""
        if self.deterministic is None:
            return torch.get_deterministic_debug_mode()
        return FORBIDDEN if self.deterministic else ALLOWED


DEFAULT = Options()
# What `differentiable` and `autodiff` take.
KEYWORDS = tuple(name for name in Options._fields if name != "forward_configs")
# PyTorch's debug modes: `use_deterministic_algorithms(True)` forbids, with `warn_only=True` warns.
ALLOWED, WARNED_OF, FORBIDDEN = 0, 1, 2
