"""The plan that the compiler returns: kernels, buffers, gradients, host steps and checks, as data.

Everything that the runtime relies on is validated when a plan is loaded, so that a stale or damaged
plan is an error here and not a wrong launch later. Argument indices count the TTIR function's
arguments.
"""

from __future__ import annotations

import functools
import hashlib
import json
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ..checking import bounds
from ..checking.checks import BijectiveCheck, DistinctCheck, address_check
from ..checking.expr import evaluate, used_arguments, used_counters, validate
from ..checking.races import Store
from ..checking.spaces import Space, union
from ..errors import CheckError, PlanError
from ..storage.memory import Span, extent
from ..support.dtypes import DTYPES
from ..support.fields import get, number_below, one_of, require
from .planned_steps import require_all, steps_of
from .rearranged_launch import RearrangedLaunch

VERSION = 5

INITS = ("none", "zero", "cotangent")
ACCUMULATIONS = ("store", "partial", "atomic")
# Failures about one argument come first.
FAILURES = ("gradient", "output", "reach", "launch", "tapes")
CONFINED = ("none", "sums", "all")
# What keeps a write inside of the memory for it.
INSIDE = ("proof", "mask", "check", "room")
BUFFER_KINDS = ("saved", "tape", "handover", "tally")
OPERAND_KINDS = (
    *("argument", "cotangent", "gradient", "rounded", "buffer", "size", "counters"),
    *bounds.OPERANDS,
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

    @property
    def points_to_floats(self) -> bool:
        return self.type.startswith(("ptr<f", "ptr<bf"))


@dataclass(frozen=True)
class Buffer:
    """Scratch memory.

    A "saved" buffer lives from the forward to the backward, a "tape" only in the backward. A
    "handover" is written by one backward kernel for others. A "tally" is cleared, and counts
    contributions for other kernels.
    """

    name: str
    kind: str
    dtype: str
    size: object


class Tallied(NamedTuple):
    """Kernels for a sum in which blocks with a single contribution are stored to the gradient.

    `tally` counts contributions. Other blocks are cleared before the backward, and rounded after
    it. The gradient itself is a tensor that is cleared in another way. The kernels run if
    `tally.when` is not zero.
    """

    tally: Kernel
    clear: Kernel
    round: Kernel


# How many elements beyond a tensor's storage a gradient buffer may have in any case.
_ROOM = 1 << 16


@dataclass(frozen=True)
class Gradient:
    """How the gradient of one pointer argument is added up and initialised.

    With `partials`, the buffer contains that many partial sums, one after the other. With
    `remainder`, a later kernel adds atomically to what was stored, maybe elsewhere in the tensor's
    storage. With several `checks`, contributions take turns: each touches no element twice. One
    that is not returned is a copy of an upstream gradient, which the backward overwrites. If an
    argument is only `overwritten`, kernels store zeros: elements that are left out keep the
    upstream gradient.

    Contributions are at the addresses that loads `reach`, or for stores, that their checks
    describe: its memory covers both. If they are `confined` to the buffer ("all" of them, or only
    "sums"), it has a `margin` on both sides.
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
    reach: tuple[Space, ...] = ()
    confined: str = "none"
    margin: int = 0

    @property
    def fills_tensor(self) -> bool:
        """Whether the checks, if they hold, prove that every element of the tensor is stored to."""
        return self.accumulate != "atomic" and any(c.kind == "bijective" for c in self.checks)

    @property
    def stays_inside(self) -> bool:
        """Whether the checks, if they hold, prove that only the tensor's elements are written."""
        proved = all(c.kind == "bijective" for c in self.checks)
        return self.fills_tensor and proved and not self.remainder

    @property
    def spaces(self) -> tuple[Space, ...]:
        """Where contributions are, other than ranges that move: its memory covers these."""
        apart = (c for c in self.checks if c.kind == "distinct" and not c.moves)
        return (*self.reach, *(check.space for check in apart))

    def keeps_inside(self, said: str) -> str:
        """Return what keeps a write inside, given what the compiler `said`.

        Without the check that the tensor's elements are stored to, memory covers what else is.
        """
        is_checked = self.stays_inside or self.partials is not None
        return "room" if said == "check" and not is_checked else said

    def span(self, tensor, args, grid) -> Span | None:
        """Return the memory for the gradient of a tensor, relative to the tensor's pointer.

        None if contributions reach so far that accesses should be masked instead.
        """
        if self.stays_inside:
            return Span(0, extent(tensor.shape, tensor.strides))
        held = tensor.span.widened(self.margin)
        if self.confined == "all":
            return held
        # What a bijective check is about are the tensor's own elements.
        moving = (c for c in self.checks if c.moves and c.kind == "distinct")
        try:
            ends = union(part.ends(args, grid) for part in (*self.spaces, *moving))
        except CheckError:
            return None
        span = held if ends is None else held.covering(*ends)
        return span if span.total - held.total <= max(_ROOM, held.total // 8) else None

    def leaving_out(self) -> Gradient | None:
        """Return it for launches that may leave elements of the tensor out; None if that is
        impossible.
        """
        # Elements may be stored because windows or ranges contain them, though they are not loaded.
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

    The first of its `variants` that suits a launch, whose `when` is not zero, runs instead. A
    kernel with bounds checks lists its accesses, and its last operands are `bounds.OPERANDS`.
    `writes` are pairs of an operand's number and one of `INSIDE`. The text `leaner` does the same
    with fewer registers, and is slower if there are enough.
    """

    name: str
    ttir: str
    grid: tuple | None
    operands: tuple[tuple[str, int], ...]
    options: tuple[tuple[str, object], ...] = ()
    accesses: tuple[bounds.Access, ...] | None = None
    when: object = 1
    variants: tuple[Kernel, ...] = ()
    writes: tuple[tuple[int, str], ...] = ()
    leaner: str | None = None

    @functools.cached_property
    def digest(self) -> str:
        """A hash that identifies this kernel by its text and operands."""
        text = "\0".join((self.ttir, str(self.operands), str(self.grid), str(self.options)))
        return hashlib.sha256(text.encode()).hexdigest()


@dataclass(frozen=True)
class Hazard:
    """If their tensors share memory, loads through `read` may see stores through `written`.

    They do not if the tensors start at the same address and all pairs of expressions in `unless`
    are equal. If it is None, nothing excludes it.
    """

    written: int
    read: int
    unless: tuple[tuple, ...] | None


class Next(NamedTuple):
    """What to request next for launches that a plan does not suit, or for which there is a better
    one.

    It applies to launches in which no number is negative, and something `fails`, if that is given:
    what the plan says of the launch, of the `argument`, or how large tapes are. Then a `key` of the
    request gets a value; without a key, there is no plan for such launches.
    """

    not_negative: tuple
    fails: str | None
    argument: int | None
    key: str | None
    value: object

    FLAGS = ("assume", "reload", "checkpoint", "deterministic")
    LISTS = ("atomic", "repeated", "confine")

    @classmethod
    def from_json(cls, data, arguments: int) -> Next:
        """Build it from JSON; raises `PlanError` if that is malformed."""
        not_negative = tuple(get(data, "notNegative", list, []))
        for expr in not_negative:
            validate(expr, arguments)
        fails, argument, key = (data.get(name) for name in ("fails", "argument", "ask"))
        if fails is not None:
            one_of(fails, FAILURES, "failure")
        require((fails in FAILURES[:3]) == (argument is not None), f"malformed {fails!r}")
        if argument is not None:
            number_below(argument, arguments, "argument")
        value = data.get("value")
        if key in cls.LISTS:
            value = tuple(number_below(i, arguments, key) for i in get(data, "value", list))
        elif key == "axes" and value is not None:
            value = tuple(get(data, "value", list))
            for expr in value:
                validate(expr, arguments)
        else:
            valid = type(value) is bool if key in cls.FLAGS else value is None
            require(valid and key in (None, "axes", *cls.FLAGS), f"malformed request {data!r}")
        return cls(not_negative, fails, argument, key, value)

    @property
    def expressions(self) -> tuple:
        """The expressions of a launch on which it depends."""
        return (*self.not_negative, *((self.value or ()) if self.key == "axes" else ()))


@dataclass(frozen=True)
class Plan:
    """Everything needed to run one kernel's backward, as long as its `checks` hold."""

    kernel: str
    arguments: tuple[Argument, ...]
    inputs: tuple[int, ...]
    outputs: tuple[int, ...]
    # For each output of floats, the arguments whose floats reach what is stored.
    history: dict[int, frozenset[int]]
    snapshots: tuple[int, ...]
    buffers: tuple[Buffer, ...]
    gradients: tuple[Gradient, ...]
    forward: Kernel | None
    backward: tuple[Kernel, ...]
    report: dict
    # What the host does, as pairs of a kind and what it is about, by stage.
    steps: dict[str, tuple[tuple[str, tuple[int, ...]], ...]]
    checks: tuple[BijectiveCheck | DistinctCheck, ...] = ()
    sizes: tuple = ()
    counting: Kernel | None = None
    hazards: tuple[Hazard, ...] = ()
    assumed: tuple = ()
    launch: RearrangedLaunch | None = None
    next: tuple[tuple[Next, ...], ...] = ()
    stores: tuple[Store, ...] = ()
    # What the user's kernel touches of each argument; None for what only the kernel can place.
    accesses: dict[int, tuple[Space | None, ...]] = field(default_factory=dict)
    live: dict[int, tuple[Space | None, ...]] = field(default_factory=dict)
    # The question it answers: the kernel's text, the request and the kernel's name.
    asked: tuple[str, str, str] | None = field(default=None, repr=False, compare=False)

    def grid_of(self, args, grid) -> tuple[int, int, int] | None:
        """Return the grid that the kernels are for; None if an assumption about a launch is wrong.

        Numbers that are assumed not to be negative must not be so in any program.
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

    def answers(self, fails: str) -> tuple[tuple[str, object], ...]:
        """Return the changes of the request, `(key, value)` pairs, that answer a failure."""
        entries = (entry for step in self.next for entry in step)
        return tuple((entry.key, entry.value) for entry in entries if entry.fails == fails)

    @property
    def kernels(self) -> tuple[Kernel, ...]:
        """All generated kernels, beginning with the counting one and the augmented forward."""
        variants = (v for k in self.backward for v in k.variants)
        tallying = (k for g in self.gradients for k in g.tallied or ())
        first = (k for k in (self.counting, self.forward) if k)
        return (*first, *self.backward, *variants, *tallying)

    def reread(self) -> frozenset[int]:
        """Return the pointer arguments that kernels other than the forward take."""
        return frozenset(
            i
            for kernel in self.kernels
            if kernel is not self.forward
            for kind, i in kernel.operands
            if kind == "argument" and self.arguments[i].is_pointer
        )

    def counters(self) -> frozenset[int]:
        """Return the counters that sizes depend on."""
        exprs = (*(b.size for b in self.buffers), *self.sizes)
        return frozenset().union(*(used_counters(e) for e in exprs))

    def cotangents(self) -> frozenset[int]:
        """Return the outputs whose upstream gradient the backward reads."""
        read = {i for k in self.backward for kind, i in k.operands if kind == "cotangent"}
        return frozenset(read | {g.argument for g in self.gradients if g.init == "cotangent"})

    def with_history(self, wanted) -> tuple[int, ...]:
        """Return the outputs that have a history in autograd after a launch.

        Floats of a `wanted` argument reach them, or they are wanted: what an output held before,
        and its history, may in part still be there.
        """
        known = {*wanted}
        return tuple(j for j, inputs in self.history.items() if j in known or inputs & known)

    def used_arguments(self) -> frozenset[int]:
        """Return the scalar arguments that sizes, grids and checks depend on."""
        exprs = [*(b.size for b in self.buffers), *self.sizes, *self.assumed]
        exprs += [e for step in self.next for entry in step for e in entry.expressions]
        exprs += [e for k in self.kernels for e in (*(k.grid or ()), k.when)]
        exprs += [g.partials for g in self.gradients if g.partials is not None]
        used = set().union(*(used_arguments(e) for e in exprs))
        used |= set() if self.launch is None else self.launch.used_arguments()
        spaces = (reach for g in self.gradients for reach in g.reach)
        of_gradients = [check for g in self.gradients for check in g.checks]
        for check in (*self.checks, *of_gradients, *spaces):
            used |= check.used_arguments()
        # How far one reaches also depends on where it begins.
        used = used.union(*(used_arguments(check.offset) for check in of_gradients))
        for hazard in self.hazards:
            used = used.union(*(used_arguments(e) for pair in hazard.unless or () for e in pair))
        return frozenset(used)

    def with_gradients(self, gradients) -> Plan:
        """Return it with other `gradients` for their arguments."""
        others = {g.argument: g for g in gradients}
        return replace(self, gradients=tuple(others.get(g.argument, g) for g in self.gradients))

    def has_same_forward(self, other: Plan) -> bool:
        """Return whether a forward run for `other` fills the saved buffers that this plan reads.

        Equal forward kernels with equal operands store equal values in equal buffers.
        """
        if self.forward is None and other.forward is None:
            return True
        if self.forward is None or other.forward is None:
            return False
        buffers = {i for kind, i in self.forward.operands if kind == "buffer"}
        sizes = {i for kind, i in self.forward.operands if kind == "size"}
        return (
            self.forward == other.forward
            and all(self.buffers[i] == other.buffers[i] for i in buffers)
            and all(self.sizes[i] == other.sizes[i] for i in sizes)
        )


def _reaches(entries, arguments: int) -> dict[int, tuple[Space | None, ...]]:
    return {
        number_below(get(entry, "argument", int), arguments, "argument"): tuple(
            None if reach is None else Space.from_json(reach, arguments)
            for reach in get(entry, "reach", list)
        )
        for entry in entries
    }


def _pairs(value, arguments: int):
    if value is None:
        return None
    pairs = isinstance(value, list) and all(isinstance(p, list) and len(p) == 2 for p in value)
    require(pairs, f"expected pairs of expressions, got {value!r}")
    for pair in value:
        for expression in pair:
            validate(expression, arguments)
    return tuple(tuple(pair) for pair in value)


def _kernel(data, arguments, buffers, gradients, sizes) -> Kernel:
    grid = data.get("grid", "primal") if isinstance(data, dict) else None
    if grid == "primal":
        grid = None
    else:
        require(isinstance(grid, list) and len(grid) == 3, f"malformed grid {grid!r}")
        for extent in grid:
            validate(extent, len(arguments))
        grid = tuple(grid)
    operands = []
    with_gradient = {g.argument for g in gradients}
    for operand in get(data, "operands", list):
        kind = one_of(get(operand, "kind", str), OPERAND_KINDS, "operand kind")
        index = get(operand, "index", int)
        if kind in bounds.OPERANDS:
            number_below(index, len(operands), f"{kind} operand")
        elif kind == "gradient":
            require(index in with_gradient, f"operand reads a gradient of argument {index}")
        elif kind != "counters":
            spaces = {"buffer": buffers, "size": sizes}
            number_below(index, len(spaces.get(kind, arguments)), f"{kind} operand")
        if kind == "cotangent":
            require(arguments[index].is_pointer, f"cotangent of scalar argument {index}")
        operands.append((kind, index))
    accesses = data.get("accesses")
    if accesses is not None:
        accesses = tuple(
            bounds.Access(get(a, "argument", int), get(a, "op", str), get(a, "position", str))
            for a in accesses
        )
    options = data.get("options") or {}
    require(isinstance(options, dict), f"malformed options {options!r}")
    when = data.get("when", 1)
    validate(when, len(arguments))
    variants = get(data, "variants", list, [])
    return Kernel(
        name=get(data, "name", str),
        ttir=get(data, "ttir", str),
        grid=grid,
        operands=tuple(operands),
        options=tuple(sorted(options.items())),
        accesses=accesses,
        when=when,
        variants=tuple(_kernel(v, arguments, buffers, gradients, sizes) for v in variants),
        writes=tuple(
            (
                number_below(get(w, "operand", int), len(operands), "written operand"),
                one_of(get(w, "inside", str), INSIDE, "reason to stay inside"),
            )
            for w in get(data, "writes", list)
        ),
    )


def load(text: str) -> Plan:
    """Parse and validate the JSON form of a plan; raises `PlanError` when malformed."""
    try:
        data = json.loads(text)
    except ValueError as error:
        raise PlanError(f"plan is not JSON: {error}") from None
    require(isinstance(data, dict), "plan is not an object")
    version = data.get("version")
    require(version == VERSION, f"plan has version {version!r}, expected {VERSION}")
    arguments = tuple(
        Argument(get(a, "type", str), get(a, "loaded", bool, False), get(a, "stored", bool, False))
        for a in get(data, "arguments", list)
    )

    def pointers(key):
        indices = tuple(number_below(i, len(arguments), key) for i in get(data, key, list, []))
        require(all(arguments[i].is_pointer for i in indices), f"{key!r} names a scalar")
        return indices

    buffers = []
    for b in get(data, "buffers", list, []):
        validate(b.get("size") if isinstance(b, dict) else None, len(arguments))
        kind = one_of(get(b, "kind", str), BUFFER_KINDS, "buffer kind")
        dtype = one_of(get(b, "dtype", str), DTYPES, "buffer dtype")
        buffers.append(Buffer(get(b, "name", str), kind, dtype, b["size"]))
    sizes = tuple(get(data, "sizes", list, []))
    for size in sizes:
        validate(size, len(arguments))
    gradients = []
    for g in get(data, "gradients", list):
        argument = number_below(get(g, "argument", int), len(arguments), "gradient argument")
        require(arguments[argument].is_pointer, f"gradient of scalar argument {argument}")
        partials = g.get("partials")
        partial = g.get("accumulate") == "partial"
        require(partial == (partials is not None), f"malformed partial sums {partials!r}")
        if partial:
            validate(partials, len(arguments))
            exact = [c.get("kind") == BijectiveCheck.kind for c in get(g, "checks", list, [])]
            require(exact and all(exact), "partial sums that may not be of the tensor's elements")
        gradients.append(
            Gradient(
                argument,
                one_of(get(g, "dtype", str), DTYPES, "gradient dtype"),
                one_of(get(g, "init", str), INITS, "init"),
                one_of(get(g, "accumulate", str), ACCUMULATIONS, "accumulate"),
                tuple(address_check(c, len(arguments)) for c in get(g, "checks", list, [])),
                get(g, "returned", bool, True),
                partials,
                get(g, "remainder", bool, False),
                get(g, "overwritten", bool, False),
                reach=tuple(Space.from_json(r, len(arguments)) for r in get(g, "reach", list, [])),
                confined=one_of(get(g, "confined", str, "none"), CONFINED, "confined"),
                margin=get(g, "margin", int, 0),
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
    require(not missing, f"inputs {sorted(missing)} have no gradient buffer")
    forward = data.get("forward")
    if forward is not None:
        forward = _kernel(forward, arguments, buffers, (), sizes)
        kinds = {kind for kind, _ in forward.operands}
        require(not kinds & {"cotangent", "gradient"}, "the forward kernel reads gradients")
    counting = data.get("counting")
    if counting is not None:
        counting = _kernel(counting, arguments, (), (), ())
        kinds = {kind for kind, _ in counting.operands} - {*bounds.OPERANDS}
        require(kinds <= {"argument", "counters"}, "the counting kernel reads what is not there")
    history = {}
    for entry in get(data, "history", list):
        output = number_below(get(entry, "argument", int), len(arguments), "output")
        reaching = (number_below(i, len(arguments), "input") for i in get(entry, "inputs", list))
        history[output] = frozenset(reaching)
    outputs = pointers("outputs")
    floats = {j for j in outputs if arguments[j].points_to_floats}
    require(history.keys() == floats, f"the history of outputs {sorted(floats)} is not known")
    launch = data.get("launch")
    following = get(data, "next", list, [])
    is_lists = all(isinstance(entries, list) for entries in following)
    require(is_lists, f"malformed requests {following!r}")
    plan = Plan(
        kernel=get(data, "kernel", str),
        arguments=arguments,
        inputs=inputs,
        outputs=outputs,
        history=history,
        snapshots=pointers("snapshots"),
        buffers=tuple(buffers),
        gradients=tuple(gradients),
        forward=forward,
        backward=tuple(
            _kernel(k, arguments, buffers, gradients, sizes) for k in get(data, "backward", list)
        ),
        report=get(data, "report", dict, {}),
        steps=steps_of(get(data, "steps", list)),
        checks=tuple(address_check(c, len(arguments)) for c in get(data, "checks", list, [])),
        sizes=sizes,
        counting=counting,
        hazards=tuple(
            Hazard(
                number_below(get(h, "written", int), len(arguments), "written argument"),
                number_below(get(h, "read", int), len(arguments), "read argument"),
                _pairs(h.get("unless"), len(arguments)),
            )
            for h in get(data, "hazards", list, [])
        ),
        assumed=tuple(get(data, "assumed", list, [])),
        launch=None if launch is None else RearrangedLaunch.from_json(launch, len(arguments)),
        next=tuple(
            tuple(Next.from_json(entry, len(arguments)) for entry in entries)
            for entries in following
        ),
        stores=tuple(Store.from_json(s, len(arguments)) for s in get(data, "stores", list, [])),
        accesses=_reaches(get(data, "accesses", list, []), len(arguments)),
        live=_reaches(get(data, "live", list, []), len(arguments)),
    )
    for expr in plan.assumed:
        validate(expr, len(arguments), per_program=True)
    require(counting is not None or not plan.counters(), "sizes refer to what nobody counts")
    require_all(plan)
    return plan
