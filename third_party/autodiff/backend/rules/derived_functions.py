"""Derives the gradient of a function that kernels call, for given types, as Triton Python.

The function is traced for the types of a call, with a placeholder for each value. The compiler
derives the gradient of its TTIR, as a function, and prints it as Python. The kernel's trace
continues with a call of that.
"""

from __future__ import annotations

import dataclasses
import functools
import re
from collections.abc import Callable
from typing import Any, NamedTuple

import triton
import triton.language as tl
from triton.runtime import driver

from ..errors import ArgumentError, AutodiffError
from ..library import native
from ..printing.source import printed, shortest_product
from ..support.places import named
from .stand_ins import load_derived
from .tracing import (
    call_declared,
    cotangent_type,
    flatten,
    is_float,
    placeholder,
    trace_call,
    trace_call_inside,
)
from .user_rules import find_rules, functions_of, generation


class Value(NamedTuple):
    """Stands for a value of a kernel: its number among the values of a call."""

    number: int
    type: Any
    name: str


class Group(tuple):
    """Stands for a tuple of a kernel, whose elements may have names."""

    fields = None


class Derived(NamedTuple):
    """A gradient for given types: its text, the function, and the result types of the original.

    Results that are no floats have the type None.
    """

    text: str
    function: Any
    returned: tuple


# ------------------------------------------------------------------------------------------
# Calls, as trees: tuples of values, and constants
# ------------------------------------------------------------------------------------------


def _map(function, tree):
    """Apply `function` to each `Value` of a tree; tuples become Triton's."""
    if isinstance(tree, Value):
        return function(tree)
    if isinstance(tree, Group):
        items = [_map(function, item) for item in tree]
        return tl.tuple(items, tl.tuple_type([item.type for item in items], tree.fields))
    return tree


def _values(tree) -> list[Value]:
    if isinstance(tree, Value):
        return [tree]
    return [v for item in tree for v in _values(item)] if isinstance(tree, Group) else []


def _unwrapped(constant):
    return constant.value if isinstance(constant, tl.constexpr) else constant


def _key(tree) -> str:
    if isinstance(tree, Value):
        return f"{tree.number}: {tree.type}"
    if isinstance(tree, Group):
        return f"{tree.fields}({', '.join(map(_key, tree))})"
    constant = _unwrapped(tree)
    return getattr(constant, "cache_key", repr(constant))


class Call:
    """A call of a derived function: the arguments of the original, and which results are wanted."""

    def __init__(self, derived, arguments):
        self.derived = derived
        self.arguments = Group(arguments)
        self.what = repr(derived)
        names = [parameter.name for parameter in derived.function.params]
        asked = derived.asked.argnums
        self.is_one = isinstance(asked, int)
        if asked is None:
            asked = [n for n, tree in enumerate(self.arguments) if self._has_float(tree)]
            if not asked:
                raise ArgumentError(f"{self.what}: no argument is a float, so there is no gradient")
            self.is_one = len(asked) == 1
        self.asked = (asked,) if isinstance(asked, int) else tuple(asked)
        self.wanted = []
        for n in self.asked:
            values = _values(self.arguments[n])
            for value in values:
                if not value.type.scalar.is_floating():
                    self._refuse(names[n], f"is of type {value.type}")
            if not values:
                self._refuse(names[n], "is a constant here")
            self.wanted += [value.number for value in values]

    @staticmethod
    def _has_float(tree) -> bool:
        return any(value.type.scalar.is_floating() for value in _values(tree))

    def _refuse(self, name, why):
        raise ArgumentError(
            f"{self.what}: argument {name!r} of {named(self.derived.function.fn)} {why}, and has "
            "no gradient: leave it out of argnums"
        )

    def derive(self, trace: Callable, shortest: Callable, key: str) -> Derived:
        """Return the gradient for these types; `trace` gives the TTIR of a kernel with one call.

        `shortest` gives the shortest sum of `tl.dot`. `key` identifies the device and options, on
        which both depend.
        """
        key = (key, _key(self.arguments), generation(), self.derived.function.cache_key)
        found = self.derived.found.get(key)
        if found is None:
            found = self.derived.found[key] = self._derive(trace, shortest)
        return found

    def _derive(self, trace, shortest) -> Derived:
        function, asked = self.derived.function, self.derived.asked
        site = Site(function, self.arguments)
        ttir = trace(_kernel_of_call, site, function)
        for rule in functions_of(find_rules(ttir)):
            raise AutodiffError(
                f"{self.what}: {named(function.fn)} has an operation with the rule "
                f"{rule.__name__!r} of register_vjp, which gradients of kernels know, and those of "
                "functions do not: put the operation into a function with a custom_vjp"
            )
        floats = [t for t in site.returned if t is not None]
        if not floats:
            raise AutodiffError(f"{self.what}: {named(function.fn)} returns no float")
        if not asked.takes_cotangents and len(site.returned) > 1:
            raise AutodiffError(
                f"{self.what}: {named(function.fn)} returns {len(site.returned)} values, of which "
                f"it is not said what the gradient is of: take vjp({function.__name__}), with a "
                "cotangent for each float"
            )
        name = f"{asked.mode}_{function.__name__}"
        options = f"wanted={','.join(map(str, self.wanted))} name={name}"
        if not asked.takes_cotangents:
            options += " ones"
        if asked.mode == "value_and_grad":
            options += " values"
        passes = f"builtin.module(autodiff-differentiate-function{{{options}}})"
        text = printed(native().run_pipeline(ttir, passes, name), name, shortest)
        made = load_derived(text, name, self.derived.module)
        return Derived(text, made, tuple(site.returned))

    def gradients(self, given: list):
        """Return the gradients, one for each wanted value, in the form the caller gets."""
        rest = iter(given)
        trees = [_map(lambda _: next(rest), self.arguments[n]) for n in self.asked]
        return trees[0] if self.is_one else tl.tuple(trees)


# ------------------------------------------------------------------------------------------
# Tracing a function by itself
# ------------------------------------------------------------------------------------------


@dataclasses.dataclass
class Site:
    """A call that is traced by itself: the function, its arguments, and afterwards its results."""

    function: Any
    arguments: tuple
    returned: list = dataclasses.field(default_factory=list)


@tl.core.builtin
def _trace_site(site, _semantic=None, _generator=None):
    site = _unwrapped(site)
    # Errors should name the user's function, not this line.
    code = site.function.fn.__code__
    _semantic.builder.set_loc(code.co_filename, code.co_firstlineno, 0)

    def stand_for(value):
        made = placeholder(_semantic, f"operand {value.number}", value.type)
        location = made.handle.get_loc()
        made.handle.set_loc(_semantic.builder.create_name_loc(value.name, location))
        return made

    arguments = [_map(stand_for, argument) for argument in site.arguments]
    results = flatten(_generator.call_JitFunction(site.function, arguments, {}))
    site.returned[:] = [x.type if is_float(x) else None for x in results]
    call_declared(_generator, "autodiff.yield", [x for x in results if is_float(x)])


@triton.jit
def _kernel_of_call(SITE: tl.constexpr):
    _trace_site(SITE)


# ------------------------------------------------------------------------------------------
# Calls in a kernel
# ------------------------------------------------------------------------------------------


def _numbered(value, name: str, leaves: list):
    """Return a value of a kernel as a tree, and add the values in it to `leaves`."""
    if isinstance(value, tl.tuple):
        group = Group(_numbered(item, name, leaves) for item in value.values)
        group.fields = value.type.fields
        return group
    if isinstance(value, tl.tensor):
        leaves.append(value)
        return Value(len(leaves) - 1, value.type, name)
    if isinstance(value, tl.constexpr) or value is None:
        return tl.constexpr(_unwrapped(value))
    raise ArgumentError(
        f"argument {name!r} is a {type(value).__name__}, and only numbers, tiles, pointers, tuples "
        "of these and constants can be passed on to a function that is differentiated"
    )


def _as_printed(value, semantic):
    """Convert an integer to a signed one, as the printed function expects."""
    scalar = value.type.scalar
    element = scalar.element_ty if scalar.is_ptr() else scalar
    if not element.is_int_unsigned() or element.is_int1():
        return value
    signed = getattr(tl, f"int{element.primitive_bitwidth}")
    return semantic.bitcast(value, tl.pointer_type(signed) if scalar.is_ptr() else signed)


def _cotangents(call: Call, returned, given, semantic) -> list:
    """Return the cotangents of a call's floats, in the form that the derived function takes."""
    types = [cotangent_type(t) for t in returned if t is not None]
    given = _unwrapped(given)
    values = [] if given is None else flatten(given)
    if len(values) != len(types):
        shown = ", ".join(map(str, types))
        raise ArgumentError(
            f"{call.what} takes the cotangent of what {call.derived.function.__name__!r} returns "
            f"({shown}), a tuple if there are several, behind its arguments, or by name; it is "
            f"given {len(values)}. Where arguments have a default give these, too, or name the "
            "cotangent"
        )
    return [_cotangent(call, *pair, semantic) for pair in zip(values, types, strict=True)]


def _cotangent(call, value, type_, semantic):
    if not isinstance(value, tl.tensor):
        value = semantic.full([], float(_unwrapped(value)), type_.scalar)
    shape = list(type_.shape) if type_.is_block() else []
    own = list(value.type.shape) if value.type.is_block() else []
    fits = (
        not own
        or len(own) == len(shape)
        and all(a in (1, b) for a, b in zip(own, shape, strict=True))
    )
    if not fits or not value.type.scalar.is_floating():
        raise ArgumentError(f"{call.what}: the cotangent is {value.type}, and should be {type_}")
    if own != shape:
        value = semantic.broadcast_impl_shape(value, shape)
    return semantic.cast(value, type_.scalar)


def call(derived, arguments, semantic, generator):
    """Call a derived function in a kernel that is being traced."""
    function, asked = derived.function, derived.asked
    given = list(arguments)
    cotangent = given.pop() if asked.takes_cotangents else None
    numbers = () if asked.argnums is None else flatten(asked.argnums)
    for n in numbers:
        if isinstance(_unwrapped(given[n]), float):
            given[n] = semantic.to_tensor(_unwrapped(given[n]))
    leaves: list = []
    names = [parameter.name for parameter in function.params]
    trees = [_numbered(*pair, leaves) for pair in zip(given, names, strict=True)]
    made = Call(derived, trees)
    trace = functools.partial(trace_call_inside, generator)
    shortest = generator.builder.codegen_fns["min_dot_size"]
    found = made.derive(trace, shortest, repr(generator.builder.options))
    operands = [_as_printed(leaf, semantic) for leaf in leaves]
    if asked.takes_cotangents:
        operands += _cotangents(made, found.returned, cotangent, semantic)
    returned = flatten(generator.call_JitFunction(found.function, operands, {}))
    if asked.mode == "value_and_grad":
        return tl.tuple([returned[0], made.gradients(returned[1:])])
    return made.gradients(returned)


# ------------------------------------------------------------------------------------------
# Calls with written types
# ------------------------------------------------------------------------------------------

_TYPE = re.compile(r"\s*(\*?\w+)\s*(?:\[([\d\s,]*)\])?\s*")


def _type_of(written):
    """Return the type that a text denotes, or None."""
    if isinstance(written, tl.dtype):
        return written
    match = _TYPE.fullmatch(written) if isinstance(written, str) else None
    try:
        element = tl.str_to_ty(match[1], None) if match else None
    except (KeyError, AttributeError):
        element = None
    if element is None or match[2] is None:
        return element
    return tl.block_type(element, [int(n) for n in match[2].split(",") if n.strip()])


def source(derived, types, constants) -> str:
    """Return the text of a derived function for types that a user has written."""
    function = derived.function
    try:
        bound = function.signature.bind(*types, **constants)
    except TypeError as error:
        raise ArgumentError(
            f"{derived!r}.source(…) takes a type or a value for each argument of "
            f"{named(function.fn)}: {error}"
        ) from None
    bound.apply_defaults()
    count = 0
    argnums = derived.asked.argnums
    asked = () if argnums is None else flatten(argnums)

    def tree(parameter):
        nonlocal count
        written = bound.arguments[parameter.name]
        type_ = None if parameter.is_constexpr else _type_of(written)
        if isinstance(written, float) and parameter.num in asked:
            type_ = tl.float32
        if type_ is not None:
            count += 1
            return Value(count - 1, type_, parameter.name)
        if isinstance(written, str) and not parameter.is_constexpr:
            raise ArgumentError(
                f"{derived!r}.source(…): {written!r}, of argument {parameter.name!r}, is no type: "
                "write 'fp32' for a number, 'fp32[16, 16]' for a tile, '*fp16' for a pointer"
            )
        return tl.constexpr(written)

    made = Call(derived, [tree(parameter) for parameter in function.params])
    target = driver.active.get_current_target()
    trace = functools.partial(trace_call, target)
    return made.derive(trace, shortest_product(target), repr(target)).text
