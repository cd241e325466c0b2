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


def pushed(spec: Specialization, ttir: str, arguments, rules) -> Pushed:
    """Return the kernel of some TTIR that computes tangents, too, from those of arguments."""
    request = {"tangents": sorted(arguments), "rules": rules, **described(spec.target)}
    return kernel_with_tangents(ttir, request, spec.name)


class WithTangents(Specialization):
    """The arguments of a kernel that computes tangents, too: first those of the `primal`.

    `tangents` are the arguments of the primal whose tangents follow, in order. Tangents are
    addressed as their primals are.
    """

    def __init__(self, primal: Specialization, arguments, rules, chosen: dict):
        made = pushed(primal, primal.ttir, arguments, rules)
        executable = Executable(
            Kernel(made.name, made.ttir, None, ()), primal.target, primal.options, chosen
        )
        executable.compile()
        self.primal = primal
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
