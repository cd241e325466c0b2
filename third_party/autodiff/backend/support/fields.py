"""Fields of a plan's JSON, checked as they are read."""

from __future__ import annotations

from ..errors import PlanError


def require(condition, message: str) -> None:
    """Raise `PlanError` unless a condition holds."""
    if not condition:
        raise PlanError(message)


def get(data: dict, key: str, kind, default=None):
    """Return what an object has under a key, of this type."""
    # Messages show what is wrong, and take long: objects have whole kernels in them.
    if not isinstance(data, dict):
        raise PlanError(f"expected an object with {key!r}, got {data!r}")
    value = data.get(key, default)
    if not isinstance(value, kind) or (kind is int and isinstance(value, bool)):
        raise PlanError(f"{key!r} should be a {kind.__name__}, got {value!r}")
    return value


def number_below(value, limit: int, what: str) -> int:
    """Return a number that is not negative and below `limit`."""
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
    require(valid, f"{what} {value!r} is out of range")
    return value


def one_of(value, choices, what: str):
    """Return a value that is one of `choices`."""
    require(value in choices, f"{what} should be one of {', '.join(choices)}, got {value!r}")
    return value
