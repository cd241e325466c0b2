"""Rules as linear functions: a vjp takes cotangents to gradients, a jvp tangents to tangents.

The transpose of a vjp is the jvp of the same function, and the other way round: it is what `vjp`
derives of the rule as a function of its first arguments.
"""

from __future__ import annotations

import inspect
import itertools
from typing import Any, NamedTuple

import triton
import triton.language as tl

from ..errors import AutodiffError
from . import derived_functions
from .device_functions import vjp
from .stand_ins import stand_in
from .tracing import builtin, cotangent_type, flatten, is_float

_numbers = itertools.count()


class LinearRule(NamedTuple):
    """A rule at one place in a kernel.

    It is called with derivatives of the floats `of`, and then with `given`. It returns a derivative
    for each of `likes`, a `noun`, each for one `like`; only those of floats count. `what` is what
    errors call it.
    """

    what: str
    rule: Any
    of: list
    given: list
    likes: list
    noun: str
    like: str

    def apply(self, derivatives, semantic, generator) -> list:
        """Return the derivatives of the float `likes`."""
        return self._apply(derivatives, self.given, semantic, generator)

    def _apply(self, derivatives, given, semantic, generator) -> list:
        returned = generator.call_JitFunction(self.rule, [*derivatives, *given], {})
        found = flatten(returned)
        if len(found) != len(self.likes):
            raise AutodiffError(
                f"{self.what} should return {len(self.likes)} {self.noun}s, one for each "
                f"{self.like}, but returns {len(found)}"
            )
        pairs = zip(found, self.likes, strict=True)
        return [
            self._checked(i, derivative, like, semantic)
            for i, (derivative, like) in enumerate(pairs)
            if is_float(like)
        ]

    def _checked(self, number, derivative, like, semantic):
        what = f"{self.what}: {self.noun} {number}"
        if not isinstance(derivative, tl.tensor):
            value = float(getattr(derivative, "value", derivative))
            derivative = semantic.full([], value, cotangent_type(like.type).scalar)
        if not derivative.type.scalar.is_floating():
            raise AutodiffError(f"{what} should be a float, but is {derivative.type}")
        shape, own = (list(x.shape) if x.type.is_block() else [] for x in (like, derivative))
        if own == shape:
            return derivative
        if own:
            raise AutodiffError(
                f"{what} should have the {self.like}'s shape {shape}, but has {own}"
            )
        return semantic.splat(derivative, shape)

    def apply_transposed(self, derivatives, semantic, generator) -> list:
        """Return the derivatives of `of`, from those of the float `likes`."""
        count, number = len(self.of), next(_numbers)

        @builtin
        def call(*arguments, _semantic=None, _generator=None):
            linear, given = arguments[:count], arguments[count:]
            return tl.tuple(self._apply(linear, given, _semantic, _generator))

        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        names = [f"argument_{i}" for i in range(count + len(self.given))]
        parameters = [inspect.Parameter(name, kind) for name in names]
        home = f"{self.rule.fn.__module__}.transposed.{number}"
        scope = {"__name__": home, "_call": call}
        what = f"transposed {self.rule.__name__} {number}"
        function = triton.jit(stand_in(what, self.rule.__name__, parameters, (), scope))
        derived = vjp(function, argnums=tuple(range(count)))
        # A linear function has the same transpose everywhere.
        at = [_zero(value.type, semantic) for value in self.of]
        try:
            returned = derived_functions.call(
                derived, [*at, *self.given, tl.tuple(list(derivatives))], semantic, generator
            )
        except AutodiffError as error:
            raise AutodiffError(f"{self.what} has no transpose: {error}") from None
        return flatten(returned)


def _zero(type_, semantic):
    type_ = cotangent_type(type_)
    shape = list(type_.shape) if type_.is_block() else []
    return semantic.full(shape, 0.0, type_.scalar)


def derivatives(rule: LinearRule | None, opposite: LinearRule | None, given, *tracer) -> list:
    """Return what a rule makes of `given`, or if there is none, the transpose of the opposite."""
    return rule.apply(given, *tracer) if rule else opposite.apply_transposed(given, *tracer)
