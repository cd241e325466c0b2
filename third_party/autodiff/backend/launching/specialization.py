"""What Triton has compiled for some types, constants and alignments: its TTIR and arguments."""

from __future__ import annotations

import functools
import re

import torch

from ..compiling.executable import inherited_options
from ..errors import ArgumentError, AutodiffError
from ..faults.lost_sums import warn_of_lost_sums
from ..faults.misaddressed import warn_of_misaddressed
from ..faults.miscompiled import warn_of_wrong
from ..faults.omitted import warn_of_omitted
from ..faults.reordered import warn_of_reordered
from ..faults.uniform_operands import warn_of_uniform_operands
from ..kernels import descriptors
from ..kernels.effects import refuse_idle, refuse_results
from ..plans.cache import unusable
from ..rules.tracing import (
    BOTH_WAYS_CALL,
    CUSTOM_MARKER,
    EXACT_CALL,
    STOP_MARKER,
    trace_for_derivative,
)
from ..storage.tensor_likes import tensor_of

_CALLS = "|".join(map(re.escape, (CUSTOM_MARKER, BOTH_WAYS_CALL, EXACT_CALL)))
_CUSTOM = re.compile(rf"@(?:{_CALLS})\.(\w+)\.\d+")


def leaves_of(types, path=()):
    """Yield the path and type of each run-time argument of a (nested) signature."""
    for index, type_ in enumerate(types):
        if isinstance(type_, (tuple, list)):
            yield from leaves_of(type_, (*path, index))
        elif type_.startswith("tensordesc<"):
            yield from descriptors.leaves(type_, (*path, index))
        elif type_ != "constexpr":
            yield (*path, index), type_


def step(value, index):
    """Follow one step of a path into a parameter's value: a tuple or a descriptor."""
    return value[index] if isinstance(index, int) else descriptors.part_of(value, index)


class Specialization:
    """The arguments of one compiled kernel, in Python and in its TTIR."""

    # What runs after each launch, and the arguments that it stores to.
    settling = None
    settled: frozenset[int] = frozenset()

    def __init__(self, kernel, function):
        self.kernel = kernel
        self.function = function
        self.name = function.__name__
        self.target = kernel.metadata.target
        self.options = inherited_options(kernel.metadata)
        self.ttir = kernel.asm.get("ttir")
        if self.ttir is None:
            raise unusable(
                f"it has no TTIR of kernel {self.name!r}: the file is gone, or "
                "TRITON_STORE_BINARY_ONLY is set"
            )
        refuse_results(self.ttir)
        refuse_idle(kernel, function)
        warn_of_wrong(kernel, self.name)
        warn_of_reordered(kernel, self.name)
        warn_of_misaddressed(kernel, self.name)
        warn_of_omitted(kernel, self.name)
        warn_of_lost_sums(kernel, self.name)
        warn_of_uniform_operands(kernel, self.name)
        if CUSTOM_MARKER in self.ttir:
            self.ttir = trace_for_derivative(kernel, self.target, self.options)
        signature = kernel.src.signature
        names = list(signature)
        leaves = list(leaves_of(signature.values()))
        self.paths = tuple(path for path, _ in leaves)
        self.parameters = tuple(path[0] for path in self.paths)
        self.types = tuple(type_ for _, type_ in leaves)
        self.names = tuple(
            names[path[0]] + "".join(f"[{i}]" if isinstance(i, int) else f".{i}" for i in path[1:])
            for path in self.paths
        )
        self._flat = all(len(path) == 1 for path in self.paths)
        for name, type_ in zip(self.names, self.types, strict=True):
            if type_.startswith(("tensordesc", "nvTmaDesc")):
                raise ArgumentError(
                    f"argument {name!r} of kernel {self.name!r} is of type {type_}, which cannot "
                    "be differentiated: pass a triton.tools.tensor_descriptor.TensorDescriptor"
                )
        self.pointers = tuple(i for i, type_ in enumerate(self.types) if type_.startswith("*"))
        self.descriptors = descriptors.Descriptors(signature.values(), self.paths)
        # TTIR for other values of constexprs.
        self._others: dict[tuple[str, object], str | None] = {}

    def values_of(self, leaves) -> list:
        """Return the values of the parameters from those of the plan's arguments."""
        remaining, constants = iter(leaves), self.kernel.src.constants

        def value(type_, path):
            if isinstance(type_, (tuple, list)):
                return tuple(value(part, (*path, n)) for n, part in enumerate(type_))
            if type_.startswith("tensordesc<"):
                return descriptors.rebuilt(type_, remaining)
            if type_ != "constexpr":
                return next(remaining)
            return constants.get(path, constants.get(path[0]) if len(path) == 1 else None)

        signature = self.kernel.src.signature.values()
        return [value(type_, (n,)) for n, type_ in enumerate(signature)]

    @functools.cached_property
    def constants(self) -> dict[str, object]:
        """The values that the kernel was specialized for, by parameter."""
        constants = self.kernel.src.constants
        return {
            name: constants.get((n,), constants.get(n))
            for n, (name, type_) in enumerate(self.kernel.src.signature.items())
            if type_ == "constexpr"
        }

    def with_constexpr(self, name: str, value) -> str | None:
        """Return the kernel's TTIR for another value of a constexpr; None if there is none."""
        if (name, value) not in self._others:
            try:
                ttir = trace_for_derivative(self.kernel, self.target, self.options, {name: value})
            except AutodiffError:
                ttir = None
            self._others[name, value] = ttir
        return self._others[name, value]

    def own_derivatives(self) -> list[str]:
        """Return the names of functions with user-defined derivatives in the kernel's source."""
        names = dict.fromkeys(_CUSTOM.findall(self.ttir))
        found = [f"own derivative of {name!r}" for name in names]
        stops = STOP_MARKER in self.kernel.asm["ttir"]
        return [*found, "stop_gradient"] if stops else found

    def flatten(self, values) -> list:
        """Return the values of the plan's arguments from those of the parameters.

        Tensors take the place of objects that stand for them.
        """
        if self._flat:
            leaves = [values[i] for i in self.parameters]
        else:
            leaves = [functools.reduce(step, path, values) for path in self.paths]
        for i in self.pointers:
            if not isinstance(leaves[i], torch.Tensor):
                where = f"argument {self.names[i]!r} of kernel {self.name!r}"
                leaves[i] = tensor_of(leaves[i], where)
        return leaves
