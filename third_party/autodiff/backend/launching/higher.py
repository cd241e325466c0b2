"""What ran for tangents and second derivatives of a kernel's launches, for `explain()`."""

from __future__ import annotations

from typing import Any, NamedTuple


class WithoutPlan(Exception):
    """A second derivative cannot come of the plan of the first one; says why not."""


class Pushed(NamedTuple):
    """Launches with tangents of the arguments `given`: the state of the kernel that ran, and the
    execution, if a gradient of it was wanted.
    """

    given: frozenset[int]
    state: Any
    execution: Any


class Again(NamedTuple):
    """Second derivatives by the arguments `wanted`, `along` tangents of others.

    They come of the plan of the gradient, whose `programs` ran with tangents; or for a `reason` of
    the gradient of the kernel with tangents. `state` is that of this kernel, and `execution` that
    of its gradient.
    """

    wanted: tuple[int, ...]
    along: frozenset[int]
    state: Any
    programs: tuple = ()
    reason: str | None = None
    execution: Any = None


class Higher:
    """The latest of each kind that ran for one compiled kernel."""

    def __init__(self):
        self.tangents: dict[frozenset[int], Pushed] = {}
        self.second: dict[tuple, Again] = {}
        # The arguments whose tangents were given last.
        self.latest: frozenset[int] = frozenset()

    def note_tangents(self, given: frozenset[int], state, execution) -> None:
        """Note a launch with tangents."""
        self.tangents[given] = Pushed(given, state, execution)
        self.latest = given

    def note_second(self, again: Again) -> None:
        """Note how second derivatives were computed."""
        self.second[again.wanted, again.along] = again
