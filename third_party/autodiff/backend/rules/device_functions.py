"""`grad`, `value_and_grad`, `vjp`: gradients of functions that kernels call.

Each returns a function that kernels can call in the same way. Its gradient is derived when a kernel
is compiled, for the types of the call (`derived_functions.py`), as a function in Triton Python: the
kernel is compiled as if somebody had written it.
"""

from __future__ import annotations

import dataclasses
import hashlib
import inspect
from typing import Any

import triton.language as tl
from triton.runtime.jit import ConstexprFunction, JITFunction

from ..compiler import sources_hash
from ..errors import ArgumentError, KernelTypeError
from ..kernels.interpreted import compilable, is_jit
from ..library import native
from ..support.places import named
from . import derived_functions
from .stand_ins import parameters_of, stand_in
from .tracing import builtin
from .user_rules import fingerprint


def _version() -> str:
    return f"{native().version()}-{sources_hash()}"


class _Transformation(ConstexprFunction):
    """`grad` and the like, which may be called in a kernel or outside.

    If a kernel calls it, Triton's cache key of the kernel includes our version, the registered
    rules, and the function that is passed, since the kernel names it.
    """

    def __init__(self, function):
        super().__init__(function)
        self.__signature__ = inspect.signature(function)

    @property
    def cache_key(self) -> str:
        """The cache key of kernels that call it."""
        return f"{self._fn_name}-{_version()}-{fingerprint()}"


class DerivedFunction(JITFunction):
    """The gradient of a function that kernels call: a function that kernels can call."""

    def __init__(self, stand_in, function, asked):
        super().__init__(stand_in)
        self.asked = asked
        self.function = function
        self.found: dict[tuple, derived_functions.Derived] = {}
        self.__doc__ = f"{asked.describe(function.__name__)}, for use in a kernel."

    @property
    def cache_key(self) -> str:
        """The cache key of kernels that call it, which includes our version."""
        key = f"{super().cache_key}-{self.asked}-{_version()}-{fingerprint()}"
        return hashlib.sha256(key.encode()).hexdigest()

    def __call__(self, *args, **kwargs):
        raise KernelTypeError(
            f"{self!r} is for use in a kernel that is compiled: it can be called neither from "
            "Python nor in Triton's interpreter (TRITON_INTERPRET=1)"
        )

    def __repr__(self):
        return self.asked.describe(self.function.__name__)

    def __str__(self):
        texts = [derived.text for derived in self.found.values()]
        if not texts:
            return (
                f"{self!r}, of {named(self.function.fn)}: no kernel has called it yet; "
                ".source(…) shows it for types like 'fp32[16, 16]'"
            )
        return "\n".join(texts)

    def source(self, *types, **constants) -> str:
        """Return it as Triton Python, for given types of the arguments.

        A type is Triton's, or text: `"fp32"`, `"fp32[16, 16]"` for a tile, `"*fp16"` for a
        pointer. In place of a type stands the value of an argument that is a constexpr, which may
        also be given by keyword.
        """
        return derived_functions.source(self, types, constants)


@dataclasses.dataclass(frozen=True)
class Asked:
    """Which gradients are wanted, and what else is returned."""

    mode: str
    argnums: int | tuple[int, ...] | None

    def describe(self, name: str) -> str:
        """Return the call that made it, for a function of this name."""
        return f"{self.mode}({name}" + (
            ")" if self.argnums is None else f", argnums={self.argnums!r})"
        )

    @property
    def takes_cotangents(self) -> bool:
        """Whether the function takes cotangents of the original's results."""
        return self.mode == "vjp"


def _checked_argnums(what: str, function, argnums):
    """Check `argnums`: each must be an argument that may have a gradient. Returns the numbers."""
    several = isinstance(argnums, (tuple, list, tl.tuple))
    listed = [getattr(n, "value", n) for n in argnums] if several else [argnums]
    parameters = function.params
    for number in listed:
        if type(number) is not int or not 0 <= number < len(parameters):
            raise ArgumentError(
                f"{what}: argnums={argnums!r} should be the number of an argument of "
                f"{named(function.fn)}, from 0 to {len(parameters) - 1}, or a tuple of some"
            )
        if parameters[number].is_constexpr:
            raise ArgumentError(
                f"{what}: argument {parameters[number].name!r} of {named(function.fn)} is a "
                "constexpr, and has no gradient"
            )
    if len(set(listed)) != len(listed) or not listed:
        raise ArgumentError(f"{what}: argnums={argnums!r} should name each argument once")
    return tuple(listed) if several else listed[0]


def _derive(mode: str, fn, argnums) -> DerivedFunction:
    if not is_jit(fn):
        kind = type(fn).__name__
        raise KernelTypeError(f"{mode} takes a function decorated with @triton.jit, got {kind}")
    function = compilable(fn)
    parameters = parameters_of(function)
    if argnums is not None:
        argnums = _checked_argnums(mode, function, argnums)
    asked = Asked(mode, argnums)
    if asked.takes_cotangents:
        taken = {p.name for p in parameters}
        name = next(n for n in ("cotangent", "cotangent_", "cotangent__") if n not in taken)
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters.append(inspect.Parameter(name, kind, default=None))

    @builtin
    def call(_, *args, _semantic=None, _generator=None):
        return derived_functions.call(derived, args, _semantic, _generator)

    what = f"{asked.describe(function.__name__)} of {function.fn.__module__}"
    # Triton identifies functions by module and name, which would be the same for all of these.
    own = function.fn.__module__ if isinstance(function, DerivedFunction) else id(function)
    digest = hashlib.sha256(f"{what} {own}".encode()).hexdigest()[:12]
    home = f"{function.fn.__module__}.{mode}.{digest}"
    # Triton's cache key of a kernel includes the functions that a called function names.
    scope = {"__name__": home, "_call": call, "_function": function}
    name = f"{mode}_{function.__name__}"
    derived = DerivedFunction(
        stand_in(what, name, parameters, ("_function",), scope), function, asked
    )
    return derived


def _transformation(function):
    return _Transformation(function)


@_transformation
def grad(fn: Any, argnums: int | tuple[int, ...] = 0) -> Any:
    """Return the gradient of a `@triton.jit` function that kernels call, as such a function.

    `fn` returns one float, or a tile of floats, whose sum is differentiated: the result has the
    type of argument `argnums`. For several, in a tuple, it is a tuple. Pointers lead to constants.
    """
    return _derive("grad", fn, argnums)


@_transformation
def value_and_grad(fn: Any, argnums: int | tuple[int, ...] = 0) -> Any:
    """Return a function that gives a pair: the result of `fn`, and that of `grad(fn, argnums)`."""
    return _derive("value_and_grad", fn, argnums)


@_transformation
def vjp(fn: Any, argnums: int | tuple[int, ...] | None = None) -> Any:
    """Return the pullback of a `@triton.jit` function that kernels call, as such a function.

    It takes the arguments of `fn`, and then the cotangent of its result: a tile, or a tuple of one
    for each float that `fn` returns. It returns the gradient of each float argument, or of those in
    `argnums`; a tuple if there are several.
    """
    return _derive("vjp", fn, argnums)
