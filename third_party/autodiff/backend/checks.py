"""Host checks: facts about one launch that the compiler could not prove for all launches."""

from __future__ import annotations

from dataclasses import dataclass

from .errors import CheckError, PlanError
from .expr import evaluate, used_arguments, validate


def merge(dims) -> tuple[tuple[int, int], ...]:
    """Return `(extent, stride)` pairs sorted by stride, unit extents dropped, neighbours joined.

    Two index spaces without repeated offsets that merge to the same pairs cover the same offsets.
    """
    merged: list[tuple[int, int]] = []
    for extent, stride in sorted((d for d in dims if d[0] != 1), key=lambda d: (d[1], d[0])):
        if merged and stride == merged[-1][0] * merged[-1][1]:
            merged[-1] = (merged[-1][0] * extent, merged[-1][1])
        else:
            merged.append((extent, stride))
    return tuple(merged)


def distinct(dims) -> bool:
    """Return whether the offsets of merged `(extent, stride)` pairs are proved distinct."""
    reach = 0
    for extent, stride in dims:
        if stride <= reach:
            return False
        reach += (extent - 1) * stride
    return True


@dataclass(frozen=True)
class BijectiveCheck:
    """The accesses of one load site hit every element of an argument's tensor exactly once.

    A dimension is `(stride, digits, bound)`, a digit `(stride, extent)`, all of them expressions.
    """

    argument: int
    offset: object
    dims: tuple

    @classmethod
    def from_json(cls, data: dict, arguments: int) -> BijectiveCheck:
        """Build the check from its JSON form, raising `PlanError` if that is malformed."""
        argument = data.get("argument")
        if not isinstance(argument, int) or not 0 <= argument < arguments:
            raise PlanError(f"check of unknown argument {argument!r}")
        validate(data.get("offset"), arguments)
        dims = []
        for dim in data.get("dims", ()):
            bound = dim.get("bound")
            validate(dim.get("stride"), arguments)
            if bound is not None:
                validate(bound, arguments)
            digits = []
            for digit in dim.get("digits", ()):
                if not isinstance(digit, list) or len(digit) != 2:
                    raise PlanError(f"a digit is a [stride, extent] pair, got {digit!r}")
                validate(digit[0], arguments)
                validate(digit[1], arguments)
                digits.append(tuple(digit))
            dims.append((dim["stride"], tuple(digits), bound))
        return cls(argument, data["offset"], tuple(dims))

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments that decide the outcome."""
        exprs = [self.offset]
        for stride, digits, bound in self.dims:
            exprs += [stride, *(e for digit in digits for e in digit)]
            exprs += [] if bound is None else [bound]
        return set().union(*(used_arguments(e) for e in exprs))

    def holds(self, shape, strides, args, grid) -> bool:
        """Return whether the check holds for a tensor of `shape` and `strides`, in elements.

        `args` are the launch's arguments, `grid` its three extents. An expression without a value
        fails the check: that only ever selects a more careful plan.
        """
        try:
            offset = evaluate(self.offset, args, grid)
            dims = [self._dim(dim, args, grid) for dim in self.dims]
        except CheckError:
            return False
        if offset != 0 or any(dim is None for dim in dims):
            return False
        accessed = merge(dims)
        tensor = merge(zip(shape, strides, strict=True))
        return accessed == tensor and distinct(accessed)

    @staticmethod
    def _dim(dim, args, grid):
        """Return the `(extent, stride)` of a dimension, None if it is empty or has gaps."""
        stride, digits, bound = dim
        values = [(evaluate(s, args, grid), evaluate(e, args, grid)) for s, e in digits]
        total = 1
        for digit_stride, extent in sorted(v for v in values if v[1] != 1):
            if extent <= 0 or digit_stride != total:
                return None
            total *= extent
        if bound is not None:
            total = min(total, evaluate(bound, args, grid))
        return (total, evaluate(stride, args, grid)) if total > 0 else None


_KINDS = {"bijective": BijectiveCheck.from_json}


def check_from_json(data, arguments: int):
    """Build a check of any kind from its JSON form."""
    kind = data.get("kind") if isinstance(data, dict) else None
    if kind not in _KINDS:
        raise PlanError(f"unknown host check {data!r}")
    return _KINDS[kind](data, arguments)
