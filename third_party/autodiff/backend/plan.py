"""The plan that the compiler returns: kernels, buffers, gradients and host checks, as data.

Loading validates everything that the runtime relies on, so that a stale or damaged plan is an
error here and never a wrong launch later. Argument indices count the TTIR function's arguments.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, replace
from typing import NamedTuple

from . import bounds
from .checks import BijectiveCheck, DistinctCheck
from .errors import CheckError, PlanError
from .expr import evaluate, used_arguments, used_counters, validate

VERSION = 1

INITS = ("none", "zero", "cotangent")
ACCUMULATIONS = ("store", "partial", "atomic")
BUFFER_KINDS = ("saved", "tape", "handover", "tally")
OPERAND_KINDS = (
    *("argument", "cotangent", "gradient", "rounded", "buffer", "size", "counters"),
    *bounds.OPERANDS,
)
DTYPES = (
    *("i1", "i8", "i16", "i32", "i64", "f16", "bf16", "f32", "f64"),
    *("f8E4M3FN", "f8E4M3FNUZ", "f8E5M2", "f8E5M2FNUZ"),
)


@dataclass(frozen=True)
class Argument:
    """An argument of the TTIR function and what the kernel does with it."""

    type: str
    loaded: bool = False
    stored: bool = False

    @property
    def is_pointer(self) -> bool:
        return self.type.startswith("ptr<")


@dataclass(frozen=True)
class Buffer:
    """Scratch memory.

    "saved" lives from the forward to the backward, "tape" in the backward; "handover" is what one
    backward kernel leaves for others, "tally", cleared, what one counts for others.
    """

    name: str
    kind: str
    dtype: str
    size: object


class Tallied(NamedTuple):
    """Kernels for a sum of which parts that get one contribution are stored to the gradient.

    `tally` finds these; the other parts are cleared before the backward, and rounded after it.
    The gradient is then a tensor that is cleared otherwise. They run if `tally.when` is not zero.
    """

    tally: Kernel
    clear: Kernel
    round: Kernel


@dataclass(frozen=True)
class Gradient:
    """How the gradient of one pointer argument is accumulated and initialised.

    With `partials`, the buffer holds so many partial sums, one after the other. With `remainder`,
    a later kernel adds to what was stored, atomically, and maybe elsewhere in the tensor's storage.
    With several `checks`, contributions take turns, of which each reaches no element twice.
    One that is not returned is a copy of an upstream gradient, which the backward uses up. Where
    an argument is only `overwritten`, kernels store zeros: elements that are left out have the
    upstream gradient.
    """

    argument: int
    dtype: str
    init: str
    accumulate: str
    checks: tuple[BijectiveCheck | DistinctCheck, ...]
    returned: bool = True
    partials: object = None
    remainder: bool = False
    overwritten: bool = False
    tallied: Tallied | None = None

    @property
    def fills_tensor(self) -> bool:
        """Whether the (passed) checks prove that every element of the tensor is stored to."""
        return self.accumulate != "atomic" and any(c.kind == "bijective" for c in self.checks)

    @property
    def stays_inside(self) -> bool:
        """Whether the (passed) checks prove that only the tensor's elements are written."""
        proved = all(c.kind == "bijective" for c in self.checks)
        return self.fills_tensor and proved and not self.remainder

    def leaving_out(self) -> Gradient | None:
        """Return it for launches that may leave out elements of the tensor; None if it cannot."""
        # What is stored to because windows or ranges reach it may not be what they load.
        if (
            self.accumulate != "store"
            or not self.fills_tensor
            or any(c.within or c.whole for c in self.checks)
        ):
            return None
        checks = (c.weakened() if c.kind == "bijective" else c for c in self.checks)
        init = "cotangent" if self.overwritten else "zero"
        return replace(self, init=init, checks=tuple(checks))


@dataclass(frozen=True)
class Kernel:
    """A generated kernel. `grid` is None for the forward's own, else three expressions.

    The first of its `variants` that suits a launch runs in its place: whose `when` is not zero.
    One that checks its accesses lists them, and its last operands are `bounds.OPERANDS`.
    """

    name: str
    ttir: str
    grid: tuple | None
    operands: tuple[tuple[str, int], ...]
    options: tuple[tuple[str, object], ...] = ()
    accesses: tuple[bounds.Access, ...] | None = None
    when: object = 1
    variants: tuple[Kernel, ...] = ()

    @functools.cached_property
    def digest(self) -> str:
        """What tells this kernel from others: a hash of its text and operands."""
        text = "\0".join((self.ttir, str(self.operands), str(self.grid), str(self.options)))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Hazard:
    """Loads through `read` may see stores through `written` if their tensors share memory.

    Not so if they start at the same address and all pairs of expressions in `unless` are equal
    (None: there is nothing that would exclude it).
    """

    written: int
    read: int
    unless: tuple[tuple, ...] | None


@dataclass(frozen=True)
class Launch:
    """The launch that a plan is for, where iterations have become programs, or lanes of tiles.

    `grid` are three expressions over the user's launch. Both do the same if the numbers `assumed`
    are not negative there, and the `checks` of outputs hold for the programs of this one. The loop
    that became programs is at `position`; those that became an axis at `batched`. The digits of a
    position that became axes are those of the division at `unraveled`, the lowest first.
    """

    grid: tuple
    assumed: tuple
    checks: tuple[DistinctCheck, ...]
    position: str = ""
    batched: tuple[str, ...] = ()
    unraveled: str = ""
    axes: tuple[int, ...] = ()

    @classmethod
    def from_json(cls, data, arguments: int) -> Launch:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        grid, assumed = (tuple(_get(data, key, list)) for key in ("grid", "assumed"))
        _require(len(grid) == 3, f"a grid has three extents, got {grid!r}")
        for expr in (*grid, *assumed):
            validate(expr, arguments)
        checks = (DistinctCheck.from_json(c, arguments) for c in _get(data, "checks", list))
        batch, unraveled = (_get(data, key, dict, {}) for key in ("batch", "unraveled"))
        return cls(
            grid,
            assumed,
            tuple(checks),
            _get(data, "position", str, ""),
            tuple(_get(batch, "positions", list, [])),
            _get(unraveled, "position", str, ""),
            tuple(_get(unraveled, "lengths", list, [_get(batch, "length", int)] if batch else [])),
        )

    def used_arguments(self) -> set[int]:
        """Return the scalar arguments that decide the grid, and whether it holds."""
        used = (used_arguments(e) for e in (*self.grid, *self.assumed))
        return set().union(*used, *(check.used_arguments() for check in self.checks))

    def replaced(self, args, grid) -> tuple[int, int, int] | None:
        """Return the grid in place of that of a launch; None if it would not do the same."""
        if any(evaluate(e, args, grid) < 0 for e in self.assumed):
            return None
        programs = tuple(evaluate(e, args, grid) for e in self.grid)
        return programs if all(c.holds(args, programs) for c in self.checks) else None


@dataclass(frozen=True)
class Batch:
    """How many iterations all loops have, and how long an axis of them may be.

    It has to have as many, the number itself, if it is `exact`.
    """

    trips: object
    most: int
    exact: bool

    @classmethod
    def from_json(cls, data, arguments: int) -> Batch:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        trips = data.get("trips") if isinstance(data, dict) else None
        validate(trips, arguments)
        return cls(trips, _get(data, "most", int), _get(data, "exact", bool))

    @property
    def expressions(self) -> list:
        """The expressions over a launch that decide."""
        return [self.trips]

    def axes(self, args, grid) -> tuple[int, ...]:
        """Return how long the axis is for a launch, a power of two; nothing if there is none."""
        try:
            trips = evaluate(self.trips, args, grid)
        except CheckError:
            return ()
        if trips <= 0:
            return ()
        length = _power_of_two(trips)
        return () if length > self.most or (self.exact and length != trips) else (length,)


@dataclass(frozen=True)
class Unravel:
    """The limits of the digits of positions, the lowest first, and how many lanes a tile has."""

    limits: tuple
    lanes: int

    @classmethod
    def from_json(cls, data, arguments: int) -> Unravel:
        """Build it from its JSON form, raising `PlanError` if that is malformed."""
        limits = tuple(_get(data, "limits", list))
        for limit in limits:
            validate(limit, arguments)
        return cls(limits, _get(data, "lanes", int))

    @property
    def expressions(self) -> list:
        """The expressions over a launch that decide."""
        return list(self.limits)

    def axes(self, args, grid) -> tuple[int, ...]:
        """Return how long an axis of tiles is for each digit, powers of two; nothing if none is.

        Lower digits, whose elements are neighbours in memory, get the lanes first.
        """
        try:
            limits = [evaluate(limit, args, grid) for limit in self.limits]
        except CheckError:
            return ()
        lanes, axes = self.lanes, []
        for limit in limits:
            if limit <= 0:
                return ()
            axes.append(_fitting(limit, lanes))
            lanes //= axes[-1]
        return tuple(axes)


_OFFERS = (("batch", Batch), ("unravel", Unravel))


def _power_of_two(number: int) -> int:
    """Return the least power of two that is not below a number above zero."""
    return 1 << (number - 1).bit_length()


def _fitting(limit: int, most: int) -> int:
    """Return a power of two, at most `most`, multiples of which cover `limit` closely.

    It is the largest that leaves out an eighth of the lanes or less, if there is one from 64 on.
    """

    def covered(length):
        return -(-limit // length) * length

    longest = min(_power_of_two(limit), most)
    lengths = [longest >> n for n in range(longest.bit_length()) if longest >> n >= 64]
    close = (length for length in lengths if 8 * covered(length) <= 9 * limit)
    return next(close, min(lengths, key=covered, default=longest))


@dataclass(frozen=True)
class Plan:
    """Everything needed to run one kernel's backward, as long as its `checks` hold."""

    kernel: str
    arguments: tuple[Argument, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    snapshots: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    gradients: tuple[Gradient, ...]
    forward: Kernel | None
    backward: tuple[Kernel, ...]
    report: dict
    checks: tuple[BijectiveCheck | DistinctCheck, ...] = ()
    sizes: tuple = ()
    counting: Kernel | None = None
    hazards: tuple[Hazard, ...] = ()
    assumed: tuple = ()
    launch: Launch | None = None
    offer: Batch | Unravel | None = None

    def grid_of(self, args, grid) -> tuple[int, int, int] | None:
        """Return the grid that the kernels are for; None if what they assume of a launch fails.

        Numbers that they take for not negative must not be, in any program.
        """
        try:
            if self.launch is not None:
                grid = self.launch.replaced(args, grid)
            holds = grid is not None and all(
                evaluate(["maxpids", ["sub", 0, e]], args, grid) <= 0 for e in self.assumed
            )
        except CheckError:
            return None
        return grid if holds else None

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All generated kernels, the counting one and the augmented forward first."""
        variants = (v for k in self.backward for v in k.variants)
        tallying = (k for g in self.gradients for k in g.tallied or ())
        first = (k for k in (self.counting, self.forward) if k)
        return (*first, *self.backward, *variants, *tallying)

    def counters(self) -> frozenset[int]:
        """Return the counters on which sizes depend."""
        exprs = (*(b.size for b in self.buffers), *self.sizes)
        return frozenset().union(*(used_counters(e) for e in exprs))

    def cotangents(self) -> frozenset[int]:
        """Return the outputs whose upstream gradient the backward reads."""
        read = {i for k in self.backward for kind, i in k.operands if kind == "cotangent"}
        return frozenset(read | {g.argument for g in self.gradients if g.init == "cotangent"})

    def used_arguments(self) -> frozenset[int]:
        """Return the scalar arguments on which sizes, grids and checks depend."""
        exprs = [*(b.size for b in self.buffers), *self.sizes, *self.assumed]
        exprs += [] if self.offer is None else self.offer.expressions
        exprs += [e for k in self.kernels for e in (*(k.grid or ()), k.when)]
        exprs += [g.partials for g in self.gradients if g.partials is not None]
        used = set().union(*(used_arguments(e) for e in exprs))
        used |= set() if self.launch is None else self.launch.used_arguments()
        for check in (*self.checks, *(c for g in self.gradients for c in g.checks)):
            used |= check.used_arguments()
        for hazard in self.hazards:
            used = used.union(*(used_arguments(e) for pair in hazard.unless or () for e in pair))
        return frozenset(used)

    def with_gradients(self, gradients) -> Plan:
        """Return it with `gradients` in place of those of the same arguments."""
        others = {g.argument: g for g in gradients}
        return replace(self, gradients=tuple(others.get(g.argument, g) for g in self.gradients))

    def has_same_forward(self, other: Plan) -> bool:
        """Return whether a forward run for `other` leaves the saved buffers that this plan reads.

        Equal forward kernels with equal operands store equal values in equal buffers.
        """
        if self.forward is None and other.forward is None:
            return True
        if self.forward is None or other.forward is None:
            return False
        mine = {i for kind, i in self.forward.operands if kind == "buffer"}
        theirs = {i for kind, i in other.forward.operands if kind == "buffer"}
        return (
            self.forward == other.forward
            and mine == theirs
            and all(self.buffers[i] == other.buffers[i] for i in mine)
        )


def _require(condition, message: str) -> None:
    if not condition:
        raise PlanError(message)


def _get(data: dict, key: str, kind, default=None):
    _require(isinstance(data, dict), f"expected an object with {key!r}, got {data!r}")
    value = data.get(key, default)
    valid = isinstance(value, kind) and not (kind is int and isinstance(value, bool))
    _require(valid, f"{key!r} should be a {kind.__name__}, got {value!r}")
    return value


def _index(value, limit: int, what: str) -> int:
    valid = isinstance(value, int) and not isinstance(value, bool) and 0 <= value < limit
    _require(valid, f"{what} {value!r} is out of range")
    return value


def _choice(value, choices, what: str):
    _require(value in choices, f"{what} should be one of {', '.join(choices)}, got {value!r}")
    return value


def _pairs(value, arguments: int):
    if value is None:
        return None
    pairs = isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)
    _require(pairs, f"expected pairs of expressions, got {value!r}")
    for pair in value:
        for expression in pair:
            validate(expression, arguments)
    return tuple(tuple(pair) for pair in value)


def _gradient_check(data, arguments: int) -> BijectiveCheck | DistinctCheck:
    distinct = isinstance(data, dict) and data.get("kind") == DistinctCheck.kind
    return (DistinctCheck if distinct else BijectiveCheck).from_json(data, arguments)


def _kernel(data, arguments, buffers, gradients, sizes) -> Kernel:
    grid = data.get("grid", "primal") if isinstance(data, dict) else None
    if grid == "primal":
        grid = None
    else:
        _require(isinstance(grid, list) and len(grid) == 3, f"malformed grid {grid!r}")
        for extent in grid:
            validate(extent, len(arguments))
        grid = tuple(grid)
    operands = []
    with_gradient = {g.argument for g in gradients}
    for operand in _get(data, "operands", list):
        kind = _choice(_get(operand, "kind", str), OPERAND_KINDS, "operand kind")
        index = _get(operand, "index", int)
        if kind in bounds.OPERANDS:
            _index(index, len(operands), f"{kind} operand")
        elif kind == "gradient":
            _require(index in with_gradient, f"operand reads a gradient of argument {index}")
        elif kind != "counters":
            spaces = {"buffer": buffers, "size": sizes}
            _index(index, len(spaces.get(kind, arguments)), f"{kind} operand")
        if kind == "cotangent":
            _require(arguments[index].is_pointer, f"cotangent of scalar argument {index}")
        operands.append((kind, index))
    accesses = data.get("accesses")
    if accesses is not None:
        accesses = tuple(
            bounds.Access(_get(a, "argument", int), _get(a, "op", str), _get(a, "position", str))
            for a in accesses
        )
    options = data.get("options") or {}
    _require(isinstance(options, dict), f"malformed options {options!r}")
    when = data.get("when", 1)
    validate(when, len(arguments))
    variants = _get(data, "variants", list, [])
    return Kernel(
        name=_get(data, "name", str),
        ttir=_get(data, "ttir", str),
        grid=grid,
        operands=tuple(operands),
        options=tuple(sorted(options.items())),
        accesses=accesses,
        when=when,
        variants=tuple(_kernel(v, arguments, buffers, gradients, sizes) for v in variants),
    )


def load(text: str) -> Plan:
    """Parse and validate the JSON form of a plan; raises `PlanError` when malformed."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise PlanError(f"plan is not JSON: {error}") from None
    _require(isinstance(data, dict), "plan is not an object")
    version = data.get("version")
    _require(version == VERSION, f"plan has version {version!r}, expected {VERSION}")
    arguments = tuple(
        Argument(
            _get(a, "type", str), _get(a, "loaded", bool, False), _get(a, "stored", bool, False)
        )
        for a in _get(data, "arguments", list)
    )

    def pointers(key):
        indices = tuple(_index(i, len(arguments), key) for i in _get(data, key, list, []))
        _require(all(arguments[i].is_pointer for i in indices), f"{key!r} names a scalar")
        return indices

    buffers = []
    for b in _get(data, "buffers", list, []):
        validate(b.get("size") if isinstance(b, dict) else None, len(arguments))
        kind = _choice(_get(b, "kind", str), BUFFER_KINDS, "buffer kind")
        dtype = _choice(_get(b, "dtype", str), DTYPES, "buffer dtype")
        buffers.append(Buffer(_get(b, "name", str), kind, dtype, b["size"]))
    sizes = tuple(_get(data, "sizes", list, []))
    for size in sizes:
        validate(size, len(arguments))
    gradients = []
    for g in _get(data, "gradients", list):
        argument = _index(_get(g, "argument", int), len(arguments), "gradient argument")
        _require(arguments[argument].is_pointer, f"gradient of scalar argument {argument}")
        partials = g.get("partials")
        partial = g.get("accumulate") == "partial"
        _require(partial == (partials is not None), f"malformed partial sums {partials!r}")
        if partial:
            validate(partials, len(arguments))
            _require(g.get("checks"), "partial sums without a check that they cover the tensor")
        gradients.append(
            Gradient(
                argument,
                _choice(_get(g, "dtype", str), DTYPES, "gradient dtype"),
                _choice(_get(g, "init", str), INITS, "init"),
                _choice(_get(g, "accumulate", str), ACCUMULATIONS, "accumulate"),
                tuple(_gradient_check(c, len(arguments)) for c in _get(g, "checks", list, [])),
                _get(g, "returned", bool, True),
                partials,
                _get(g, "remainder", bool, False),
                _get(g, "overwritten", bool, False),
            )
        )
    for place, g in enumerate(data["gradients"]):
        if g.get("tallied") is not None:
            kernels = (
                _kernel(g["tallied"].get(role), arguments, buffers, gradients, sizes)
                for role in Tallied._fields
            )
            gradients[place] = replace(gradients[place], tallied=Tallied(*kernels))
    inputs = pointers("inputs")
    missing = set(inputs) - {g.argument for g in gradients if g.returned}
    _require(not missing, f"inputs {sorted(missing)} have no gradient buffer")
    forward = data.get("forward")
    if forward is not None:
        forward = _kernel(forward, arguments, buffers, (), sizes)
        kinds = {kind for kind, _ in forward.operands}
        _require(not kinds & {"cotangent", "gradient"}, "the forward kernel reads gradients")
    counting = data.get("counting")
    if counting is not None:
        counting = _kernel(counting, arguments, (), (), ())
        kinds = {kind for kind, _ in counting.operands} - {*bounds.OPERANDS}
        _require(kinds <= {"argument", "counters"}, "the counting kernel reads what is not there")
    launch = data.get("launch")
    offers = [kind.from_json(data[key], len(arguments)) for key, kind in _OFFERS if key in data]
    plan = Plan(
        kernel=_get(data, "kernel", str),
        arguments=arguments,
        inputs=inputs,
        outputs=pointers("outputs"),
        snapshots=pointers("snapshots"),
        buffers=tuple(buffers),
        gradients=tuple(gradients),
        forward=forward,
        backward=tuple(
            _kernel(k, arguments, buffers, gradients, sizes) for k in _get(data, "backward", list)
        ),
        report=_get(data, "report", dict, {}),
        checks=tuple(_gradient_check(c, len(arguments)) for c in _get(data, "checks", list, [])),
        sizes=sizes,
        counting=counting,
        hazards=tuple(
            Hazard(
                _index(_get(h, "written", int), len(arguments), "written argument"),
                _index(_get(h, "read", int), len(arguments), "read argument"),
                _pairs(h.get("unless"), len(arguments)),
            )
            for h in _get(data, "hazards", list, [])
        ),
        assumed=tuple(_get(data, "assumed", list, [])),
        launch=None if launch is None else Launch.from_json(launch, len(arguments)),
        offer=offers[0] if offers else None,
    )
    for expr in plan.assumed:
        validate(expr, len(arguments), per_program=True)
    _require(counting is not None or not plan.counters(), "sizes refer to what nobody counts")
    return plan
