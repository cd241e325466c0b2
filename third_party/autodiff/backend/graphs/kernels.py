"""A traced launch and its backward in a form that PyTorch can trace: Triton kernels and operators.

The text is that of an exported module (`exporting/export.py`). The module's assertions are about
symbols here, and become the graph's guards: the graph is valid for all sizes for which the plan is.
"""

from __future__ import annotations

import inspect
import re
from functools import cached_property

import torch

from ..checking.spaces import are_inside
from ..compiling.executable import inherited_options
from ..errors import CheckError
from ..exporting.arguments import with_types
from ..exporting.bundle import private
from ..exporting.checks import refused
from ..exporting.export import Module
from ..exporting.exported import Layout
from ..exporting.launch import ExportedLaunch, said_options
from ..exporting.printed_kernels import scope_of
from ..faults.double_products import has_products
from ..printing.source import python_of
from ..storage.memory import Span, extent, is_dense, is_non_overlapping, same_strides
from .numbers import REPLACED, without_comprehensions

Tensor = torch.Tensor
# Operations on descriptors that PyTorch knows.
_KNOWN = re.compile(r"tt\.(?:make_tensor_descriptor|descriptor_load|descriptor_store)\b")
# The least integer that takes 64 bits.
_LONG = 1 << 31


def _refuse_descriptors(name: str, ttir: str) -> None:
    """Raise if PyTorch would not notice all writes of a kernel, or would have to pass
    descriptors.
    """
    for line in ttir.splitlines():
        if ("tensordesc" in line or "tt.descriptor" in line) and not _KNOWN.search(line):
            raise refused(name, f"PyTorch does not follow descriptors through {line.strip()!r}")


def _refuse_library(name: str, text: str) -> None:
    """Raise if Inductor would have to write functions of a library, which it imports by name."""
    if "@tl.core.extern" in text:
        raise refused(name, "it calls functions of a library")


def _refuse_around(launch: ExportedLaunch) -> None:
    """Raise if the launch touches elements around a tensor: a graph does not know whose they are,
    nor whether there are any. It has to be sure, so bounds of what is touched are enough.
    """
    plan, facts, users = launch.plan, launch.facts, launch.execution.facts
    touched = [
        (i, "reads", space, facts)
        for i in launch.loose
        for space in plan.live.get(i, ())
        if space is not None
    ]
    touched += [(store.argument, "stores", store.space, users) for store in plan.stores]
    for i, does, space, of in touched:
        try:
            ends = space.ends(of.scalars, of.grid)
        except CheckError:
            continue
        if not are_inside(ends, of.tensors[i].own.total):
            why = f"argument {launch.spec.names[i]!r} may be a part, and it {does} around it"
            raise refused(launch.kernel_name, why)


class TracedLayout(Layout):
    """The layout of a traced tensor, which has no address."""

    __slots__ = ()

    @classmethod
    def of(cls, tensor: Tensor) -> TracedLayout:
        """Return the layout of a tensor.

        A graph does not know its storage, so nothing is around it.
        """
        strides = tensor.stride()
        span = Span(0, extent(tensor.shape, strides))
        return cls(tensor.shape, strides, span, tensor.dtype, tensor.device)

    def upstream(self, gradient: Tensor | None) -> Tensor:
        """Return an upstream gradient in the layout that kernels read; None is zero."""
        tight = self.span == Span(0, self.size) and is_dense(self.shape, self.strides)
        if tight and gradient is not None and gradient.dtype == self.dtype:
            if same_strides(self.shape, gradient.stride(), self.strides):
                return gradient
        made = self.memory(self.dtype, self.span, gradient is None or not tight)
        return made if gradient is None else made.copy_(gradient)

    def restored(self, kept: Tensor, around: bool = False) -> Tensor:
        """Return a tensor that was saved: in a graph, it has its layout still."""
        return kept


class _Context:
    """Stands for autograd's context in the functions of a module."""

    def __init__(self, saved=(), launch=None):
        self.saved_tensors, self.launch = saved, launch

    def set_materialize_grads(self, value) -> None:
        pass

    def mark_dirty(self, *tensors) -> None:
        pass

    def save_for_backward(self, *tensors) -> None:
        self.saved_tensors = tensors


class _Text:
    """The functions of a module for one launch, which PyTorch traces."""

    def __init__(self, execution, backward):
        launch = ExportedLaunch(execution, backward, "", knows_storage=False)
        _refuse_around(launch)
        module = Module([launch], None, is_for_readers=False)
        text = module.text()
        _refuse_library(launch.kernel_name, text)
        text = without_comprehensions(with_types(text, dict.fromkeys(module.nodes[0].launched)))
        self.launch, self.node = launch, module.nodes[0]
        self._scope = scope_of(text, launch.kernel_name)
        for name in self.node.launched:
            self._scope[name] = _Traced(self._scope[name])
        self._scope |= {**REPLACED, private("added_up"): _added_up}
        self._class = self._scope[launch.class_name]

    @cached_property
    def _check(self):
        check = self._scope.get(f"_check_{self.launch.kernel_name}")
        # Symbols cannot be keys of a cache.
        return None if check is None else getattr(check, "__wrapped__", check)

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        return () if self._check is None else tuple(inspect.signature(self._check).parameters)

    def unknown(self, known: dict) -> set[str]:
        """Return the names that the functions need and the launch does not know: integers in
        memory.
        """
        return {*self._asked, *self.node.told} - {*known, self.launch.programs}

    def programs(self, known: dict):
        """Check the assumptions of the kernels; returns the grid that they are for."""
        found = None
        if self._check is not None:
            found = self._check(**{name: known[name] for name in self._asked})
        return found if self.launch.is_replaced else known[self.launch.grid]

    def forward(self, grids, values) -> tuple[Tensor, ...]:
        """Launch the kernel; returns the tensors that the backward needs."""
        context = _Context()
        self._class.forward(context, *grids, *values)
        return context.saved_tensors

    def backward(self, saved, known: dict, upstream) -> tuple:
        """Return the gradients of the arguments."""
        context = _Context(saved, tuple(known[name] for name in self.node.told))
        return self._class.gradients(context, *upstream)


class _Traced:
    """A kernel whose launches PyTorch traces."""

    def __init__(self, kernel):
        self._kernel = kernel

    def __getitem__(self, grid):
        # PyTorch forgets kernels when Dynamo is reset.
        return torch.library.wrap_triton(self._kernel)[grid]


def _added_up(layouts, partials) -> list[Tensor]:
    return [p.sum(0).to(like.dtype) for like, p in zip(layouts, partials, strict=True)]


class InlinedLaunch:
    """A launch and its backward, for all launches that would use the same `execution`.

    Raises an `AutodiffError` if PyTorch cannot trace them.
    """

    def __init__(self, execution):
        self._state, self.execution = execution.state, execution
        self._texts: dict = {}
        self._first = self._text(execution.backward)
        launch = self._first.launch
        texts = (self._state.spec.ttir, *(executable.text for executable in launch.executables))
        if launch.counting is not None:
            raise refused(launch.kernel_name, "it counts iterations")
        if any(has_products(executable.compiled) for executable in launch.derived):
            # It may compile them to other code than this launch has.
            why = "PyTorch does not look for float64 products that ptxas gets wrong"
            raise refused(launch.kernel_name, why)
        for text in texts:
            _refuse_descriptors(launch.kernel_name, text)
        tensors = (launch.facts.tensors[g.argument] for g in launch.plan.gradients)
        if not all(is_non_overlapping(tensor.shape, tensor.strides) for tensor in tensors):
            # In a tensor that a graph writes to, no elements may share memory.
            raise refused(launch.kernel_name, "elements of a tensor share memory")

    def _text(self, backward) -> _Text:
        if backward not in self._texts:
            self._texts[backward] = _Text(self.execution, backward)
        return self._texts[backward]

    def check(self, values, grid) -> dict:
        """Check the assumptions of the kernels for a launch; returns what its functions
        know of it.
        """
        launch, spec = self._first.launch, self._state.spec
        leaves = spec.flatten(values)
        known = {launch.grid: grid}
        known |= {launch.variables[i]: leaves[i] for i in launch.scalars}
        known |= {name: TracedLayout.of(leaves[i]) for i, name in launch.layouts.items()}
        unknown = self._first.unknown(known)
        if unknown:
            raise refused(launch.kernel_name, f"its plan depends on {sorted(unknown)}")
        known[launch.programs] = self._first.programs(known)
        return known

    def forward(self, values, grid):
        """Launch with values for parameters; returns what a backward needs, and what it knows."""
        launch, spec = self._first.launch, self._state.spec
        guard(spec, values)
        known = self.check(values, grid)
        grids = [known[name] for name in launch.grids]
        return self._first.forward(grids, spec.flatten(values)), known

    def backward(self, saved, known, upstream: dict) -> dict:
        """Return gradients by argument, given those of outputs, by argument."""
        chosen = self.execution._backward_for(upstream)
        text = self._text(chosen)
        gradients = [upstream.get(j) for j in text.launch.returned]
        found = text.backward(saved, known, gradients)[len(text.launch.grids) :]
        return {i: g for i, g in enumerate(found) if g is not None}


class InlinedForward:
    """A launch without gradients.

    Raises an `AutodiffError` if PyTorch cannot trace it.
    """

    def __init__(self, state):
        self._state = state
        spec = state.spec
        ttir = spec.kernel.asm["ttir"]
        _refuse_descriptors(spec.name, ttir)
        text = python_of(ttir, target=spec.target)
        _refuse_library(spec.name, text)
        text = with_types(text, {spec.name: None})
        self._kernel = _Traced(scope_of(text, spec.name)[spec.name])
        self._options = said_options(inherited_options(spec.kernel.metadata), spec.target)

    def check(self, values, grid) -> None:
        """Nothing has to be checked."""

    def forward(self, values, grid) -> None:
        """Launch on values of parameters."""
        spec = self._state.spec
        guard(spec, values)
        self._kernel[grid](*spec.flatten(values), **self._options)


def guard(spec, values) -> None:
    """Restrict a graph to numbers for which Triton would specialize the kernel in the same way."""
    for name, value in zip(spec.kernel.src.signature, values, strict=True):
        if spec.kernel.src.signature[name] == "constexpr" or isinstance(value, tuple):
            _make_constant(value)
    leaves = spec.flatten(values)
    for i, value in enumerate(leaves):
        if isinstance(value, torch.SymInt):
            attributes = spec.kernel.src.attrs.get((spec.parameters[i],), ())
            divisible = any(a[0] == "tt.divisibility" for a in attributes)
            least, end = (-_LONG, _LONG) if spec.types[i] == "i32" else (_LONG, 1 << 63)
            if (divisible and value % 16 != 0) or not value < end or value < least:
                raise AssertionError("a symbol is not what it is traced with")


def refuse_long(spec, leaves) -> None:
    """Raise if Inductor would take an integer for one of 32 bits: it does with what is below −2³¹.

    `leaves` are the values of the kernel's arguments, without symbols.
    """
    for type_, value in zip(spec.types, leaves, strict=True):
        if type_ == "i64" and value < _LONG:
            raise refused(spec.name, "Inductor takes its integers for short ones")


def _make_constant(value) -> None:
    if isinstance(value, torch.SymInt):
        int(value)
    elif isinstance(value, tuple):
        for part in value:
            _make_constant(part)
