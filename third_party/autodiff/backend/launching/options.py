"""Options of a kernel's backward."""

from __future__ import annotations

from typing import NamedTuple

import torch

from ..errors import ArgumentError
from .tapes import checked_limit

_is_deterministic = torch._C._get_deterministic_algorithms
# Triton's compile options, and by what factor tiles may become longer.
_POWERS_OF_TWO = ("num_warps", "num_ctas", "widen")
_COUNTS = ("num_stages", "maxnreg")
# The ways to rearrange programs and loops; see docs/plan.md.
_SCHEDULES = ("batch", "unravel", "merge", "interchange", "persist")
_KNOWN = (*_POWERS_OF_TWO, *_COUNTS, "schedules", "scheduled")
# Options that become part of the request.
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


def _checked_order(value) -> int | None:
    if value is not None and type(value) is not int:
        raise TypeError(f"order should be an integer, got {value!r}")
    if value is not None and value < 1:
        raise ArgumentError(f"order should be 1 or more, got {value}")
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
    """Check the options for backward kernels; returns them sorted."""
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
    order: int | None = None
    # If the forward is autotuned, the stages and warps of its configurations.
    forward_configs: tuple[tuple[int, int], ...] = ()

    @classmethod
    def checked(
        cls,
        base: Options,
        tape_limit=None,
        deterministic=None,
        backward=None,
        autotune=None,
        order=None,
    ) -> Options:
        """Check a user's options; returns them, with others from `base`."""
        given = {
            "tape_limit": checked_limit(tape_limit),
            "deterministic": _checked_flag("deterministic", deterministic),
            "backward": _checked_backward(backward),
            "autotune": _checked_flag("autotune", autotune),
            "order": _checked_order(order),
        }
        return base._replace(**{k: value for k, value in given.items() if value is not None})

    @property
    def tunes(self) -> bool:
        """Whether options of backwards are measured: if the user says so, or if the forward is
        autotuned.
        """
        return bool(self.forward_configs) if self.autotune is None else self.autotune

    @property
    def keeps_inputs(self) -> bool:
        """Whether a launch keeps all that it reads, for derivatives of higher order."""
        return self.order is not None and self.order > 1

    @property
    def requested(self) -> dict[str, object]:
        """Options that override decisions of the compiler; see `PlanRequest`."""
        return {name: value for name, value in self.backward or () if name in REQUESTED}

    @property
    def launch(self) -> dict[str, int]:
        """Compile options that the user chose for backward kernels."""
        return {name: value for name, value in self.backward or () if name not in REQUESTED}

    def atomics(self) -> int:
        """Return whether gradients may be added atomically, with PyTorch's present settings:
        ALLOWED, WARNED_OF or FORBIDDEN.
        """
        if self.deterministic is None:
            return torch.get_deterministic_debug_mode() if _is_deterministic() else ALLOWED
        return FORBIDDEN if self.deterministic else ALLOWED


DEFAULT = Options()
# The keywords of `differentiable` and `autodiff`.
KEYWORDS = tuple(name for name in Options._fields if name != "forward_configs")
# PyTorch's debug modes: `use_deterministic_algorithms(True)` forbids, with `warn_only=True` warns.
ALLOWED, WARNED_OF, FORBIDDEN = 0, 1, 2
