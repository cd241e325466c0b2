"""Kernels that compute tangents beside their values, as if a user had written them.

Such a kernel is differentiated like any other: so reverse mode over forward mode, and second
derivatives, come of the same plans as first ones.
"""

from __future__ import annotations

from ..compiling.executable import Executable
from ..kernels.descriptors import Descriptors
from ..plans.cache import Pushed, kernel_with_tangents
from ..plans.plan import Kernel
from ..plans.target import described
from .specialization import Specialization


def pushed(spec: Specialization, ttir: str, arguments, rules, settle: bool = False) -> Pushed:
    """Return the kernel of some TTIR that computes tangents, too, from those of arguments; or the
    one that runs after it, to `settle` whose values atomic operations have left.
    """
    when = {"settle": True} if settle else {"later": True}
    request = {"tangents": sorted(arguments), "rules": rules, **when, **described(spec.target)}
    return kernel_with_tangents(ttir, request, spec.name)


class Settling:
    """What runs after a kernel with tangents that has atomic maxima, minima or exchanges.

    It stores the tangents of what these have left in memory.
    """

    def __init__(self, spec: WithTangents, arguments, rules, chosen: dict):
        primal = spec.primal
        made = pushed(primal, primal.ttir, arguments, rules, settle=True)
        kernel = Kernel(made.name, made.ttir, None, (), made.options)
        self._executable = Executable(kernel, spec.target, spec.options, chosen)
        self._executable.compile()
        own = range(len(primal.types))
        self._picked = (*own, *(spec.place_of_tangent(i) for i in made.tangents))

    def launch(self, grid, leaves) -> None:
        """Launch it on the arguments of the kernel with tangents, which has run."""
        self._executable.launch(grid, [leaves[i] for i in self._picked])


class WithTangents(Specialization):
    """The arguments of a kernel that computes tangents, too: first those of the `primal`.

    `tangents` are the arguments of the primal whose tangents follow, in order: those that are
    `given`, and those that it stores to. Tangents are addressed as their primals are.
    """

    def __init__(self, primal: Specialization, arguments, rules, chosen: dict):
        made = pushed(primal, primal.ttir, arguments, rules)
        kernel = Kernel(made.name, made.ttir, None, (), made.options)
        executable = Executable(kernel, primal.target, primal.options, chosen)
        executable.compile()
        self.primal = primal
        self.given = frozenset(arguments)
        self.tangents = made.tangents
        self.kernel = executable.compiled
        self.function = primal.function
        self.name = made.name
        self.target = primal.target
        self.options = primal.options
        self.ttir = made.differentiated
        self.types = (*primal.types, *(primal.types[i] for i in self.tangents))
        tangents_of = (f"tangent of {primal.names[i]}" for i in self.tangents)
        self.names = (*primal.names, *tangents_of)
        self.parameters = tuple(range(len(self.types)))
        self.paths = tuple((i,) for i in self.parameters)
        self.pointers = tuple(i for i, type_ in enumerate(self.types) if type_.startswith("*"))
        self.descriptors = Descriptors(self.types, self.paths)
        self._flat = True
        self.settling = Settling(self, arguments, rules, chosen) if made.later else None
        self.settled = frozenset(map(self.place_of_tangent, made.later))

    # Nothing of it is Python.
    constants: dict[str, object] = {}

    def with_constexpr(self, name: str, value) -> None:
        """There is no other text for other constants."""

    def own_derivatives(self) -> list[str]:
        """Return the names of functions with user-defined derivatives in the kernel's source."""
        return self.primal.own_derivatives()

    def values_of(self, leaves) -> list:
        """Return the values of the kernel's parameters: there are no others."""
        return list(leaves)

    def place_of_tangent(self, argument: int) -> int | None:
        """Return which argument is the tangent of one of the primal's; None if it has none."""
        if argument not in self.tangents:
            return None
        return len(self.primal.types) + self.tangents.index(argument)
