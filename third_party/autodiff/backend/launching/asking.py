"""Which request to send to the compiler, and which one after it.

A plan is for some launches. For others, and for those that could have a better plan, it says in
steps which request to send next. The compiler decides which request answers which failure: this
module evaluates conditions and changes requests.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

from ..checking.expr import substitute
from ..checking.facts import Facts
from ..compiling.executable_plan import ExecutablePlan
from ..errors import CheckError, PlanError
from ..plans.plan import Next
from ..programs.binding import buffer_sizes
from .options import REQUESTED
from .tapes import tape_bytes


class PlanRequest(NamedTuple):
    """A request for a plan, without the kernel; see docs/plan.md."""

    wanted: tuple[int, ...] | None
    cotangents: tuple[int, ...] | None = None
    atomic: tuple[int, ...] = ()
    repeated: tuple[int, ...] = ()
    confine: tuple[int, ...] = ()
    aligned: tuple[int, ...] = ()
    known: tuple[tuple[int, int], ...] = ()
    same: tuple[tuple[int, int], ...] = ()
    save: bool = True
    reload: bool = True
    checkpoint: bool = False
    deterministic: bool = False
    assume: bool = True
    axes: tuple[int, ...] | None = ()
    widen: int | None = None
    schedules: tuple[str, ...] | None = None
    scheduled: bool | None = None
    again: bool = False

    def to_json(self) -> dict:
        """Return the request that the compiler reads."""
        request = {k: list(v) if isinstance(v, tuple) else v for k, v in self._asdict().items()}
        for name in REQUESTED:
            if request[name] is None:
                del request[name]
        if not self.again:
            del request["again"]
        return request

    def changed(self, changes) -> PlanRequest:
        """Return it with changes, `(key, value)` pairs; values are added to keys that are lists."""
        request = self
        for key, value in changes:
            if key in Next.LISTS:
                value = tuple(sorted({*getattr(request, key), *value}))
            request = request._replace(**{key: value})
        return request


class Suitability:
    """A plan for a launch: which checks fail, and what to request next.

    Everything is evaluated lazily: expressions of a later step may be undefined if an earlier step
    applies.
    """

    def __init__(self, given: ExecutablePlan, launched: Facts, forbids_atomics: bool, tape_limit):
        self._executable_plan = given
        self._plan = given.plan
        self._launched = launched
        self._forbids_atomics = forbids_atomics
        self._tape_limit = tape_limit

    def next(self) -> list[Next]:
        """Return the entries that hold in the first step with any; empty if the plan is suitable.

        Raises `PlanError` if these entries do not answer a check that fails.
        """
        for step in self._plan.next:
            found = [entry for entry in step if self._holds(entry)]
            if found:
                return found
        if self._grid is None or self.failed or self.repeated or self._far:
            raise PlanError(
                f"the plan of kernel {self._plan.kernel!r} does not hold for a launch, and says "
                "nothing of what to ask for then"
            )
        return []

    def changes(self, entries) -> list[tuple[str, object]]:
        """Return the changes of a request for entries that hold, as `(key, value)` pairs."""
        return [(entry.key, self._value(entry)) for entry in entries]

    def failed_among(self, entries) -> dict[int, str]:
        """Return, by argument, why checks fail of gradients that these entries are about."""
        about = {entry.argument for entry in entries if entry.fails == "gradient"}
        return {argument: self.failed[argument] for argument in about}

    def _holds(self, entry: Next) -> bool:
        try:
            if any(self._evaluate(e) < 0 for e in entry.not_negative):
                return False
            self._value(entry)
        except CheckError:
            return False
        return entry.fails is None or self._fails(entry)

    def _fails(self, entry: Next) -> bool:
        if entry.fails == "launch":
            return self._grid is None
        if entry.fails == "tapes":
            sizes = buffer_sizes(self._plan, self.facts)
            return tape_bytes(sizes) > self._tape_limit
        failures = {"gradient": self.failed, "output": self.repeated, "reach": self._far}
        return entry.argument in failures[entry.fails]

    def _value(self, entry: Next):
        if entry.key == "axes" and entry.value is not None:
            return tuple(self._evaluate(e) for e in entry.value)
        return entry.value

    def _evaluate(self, expr) -> int:
        """Return the value of an expression for the user's launch."""
        known = {"deterministic": lambda: int(self._forbids_atomics)}
        return self._launched.evaluate(substitute(expr, known))

    # --------------------------------------------------------------------------------------
    # What the plan says of the launch
    # --------------------------------------------------------------------------------------

    @functools.cached_property
    def _grid(self):
        return self._plan.grid_of(self._launched.scalars, self._launched.grid)

    @functools.cached_property
    def _own(self) -> Facts:
        """The facts of the launch that the plan's kernels are for, which may be rearranged."""
        if self._grid is None:
            raise PlanError(f"the plan of kernel {self._plan.kernel!r} is for no launch like this")
        return self._launched.with_grid(self._grid)

    @functools.cached_property
    def facts(self) -> Facts:
        """The same facts, with the memory for gradients."""
        return self._own.with_spans(self._spans)

    @functools.cached_property
    def executable_plan(self) -> ExecutablePlan:
        """The plan.

        Where a gradient's check fails, its variant that leaves elements out, if that holds.
        """
        failed = self._objections(self._plan.gradients)
        # Elements that are left out have gradient zero, and need no atomics.
        others = (g.leaving_out() for g in self._plan.gradients if g.argument in failed)
        sparse = [g for g in others if g and not self._objections([g])]
        return self._executable_plan.with_gradients(sparse) if sparse else self._executable_plan

    @functools.cached_property
    def failed(self) -> dict[int, str]:
        """Why checks of gradients fail, by argument."""
        return self._objections(self.executable_plan.plan.gradients)

    @functools.cached_property
    def repeated(self) -> set[int]:
        """The outputs for which a check fails."""
        return {c.argument for c in self._plan.checks if self._objection(c)}

    @functools.cached_property
    def _spans(self) -> dict:
        """The memory of each gradient, as a range; None where accesses have to be masked to stay in
        it.
        """
        facts = self._own
        return {
            gradient.argument: gradient.span(tensor, facts.scalars, facts.grid)
            for gradient in self.executable_plan.plan.gradients
            if (tensor := facts.tensors[gradient.argument]).is_tensor
        }

    @functools.cached_property
    def _far(self) -> set[int]:
        return {argument for argument, span in self._spans.items() if span is None}

    def _objections(self, gradients) -> dict[int, str]:
        return {
            gradient.argument: objection
            for gradient in gradients
            for check in gradient.checks
            if (objection := self._objection(check)) is not None
        }

    def _objection(self, check) -> str | None:
        facts = self._own
        tensor = facts.tensors[check.argument]
        if not tensor.is_tensor:
            return "what it reaches is not known to be a tensor"
        return check.objection(tensor.shape, tensor.strides, facts.scalars, facts.grid)
