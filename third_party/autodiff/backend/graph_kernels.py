"""A traced launch and its backward as what PyTorch can look into: Triton kernels and its operators.

The text is that of an exported module (`export.py`). What a module asserts is asserted of symbols
here, and so becomes what the graph is guarded by: it is for all sizes for which the plan holds.
"""

from __future__ import annotations

import inspect
import re
from functools import cached_property

import torch

from .bundle import private
from .executable import inherited_options
from .export import Module
from .export_arguments import with_types
from .export_checks import refused
from .export_launch import ExportedLaunch, said_options
from .exported import Layout
from .graph_numbers import REPLACED, without_comprehensions
from .memory import Span, extent, is_dense, is_non_overlapping, same_strides
from .printed_kernels import scope_of
from .source import python_of

Tensor = torch.Tensor
# What PyTorch knows of descriptors: kernels that make them, load and store.
_KNOWN = re.compile(r"tt\.(?:make_tensor_descriptor|descriptor_load|descriptor_store)\b")


def _refuse_descriptors(name: str, ttir: str) -> None:
    """Raise if PyTorch would not see all that a kernel writes, or be given descriptors."""
    for line in ttir.splitlines():
        if ("tensordesc" in line or "tt.descriptor" in line) and not _KNOWN.search(line):
            raise refused(name, f"PyTorch does not follow descriptors through {line.strip()!r}")


class TracedLayout(Layout):
    """Where the elements of a traced tensor are, which has no address."""

    __slots__ = ()

    @classmethod
    def of(cls, tensor: Tensor) -> TracedLayout:
        """Return that of a tensor. Nothing is around it: a graph does not know its storage."""
        strides = tensor.stride()
        span = Span(0, extent(tensor.shape, strides))
        return cls(tensor.shape, strides, span, tensor.dtype, tensor.device)

    def upstream(self, gradient: Tensor | None) -> Tensor:
        """Return an upstream gradient as kernels read it; nothing is zero."""
        tight = self.span == Span(0, self.size) and is_dense(self.shape, self.strides)
        if tight and gradient is not None and gradient.dtype == self.dtype:
            if same_strides(self.shape, gradient.stride(), self.strides):
                return gradient
        made = self.memory(self.dtype, self.span, gradient is None or not tight)
        return made if gradient is None else made.copy_(gradient)

    def restored(self, kept: Tensor) -> Tensor:
        """Return what was kept of a tensor: here it is as it was."""
        return kept


class _Context:
    """What takes the place of autograd's context in the functions of a module."""

    def __init__(self, saved=(), launch=None):
        self.saved_tensors, self.launch = saved, launch

    def set_materialize_grads(self, value) -> None:
        pass

    def mark_dirty(self, *tensors) -> None:
        pass

    def save_for_backward(self, *tensors) -> None:
        self.saved_tensors = tensors


class _Text:
    """The functions of a module for one launch, which run where PyTorch traces."""

    def __init__(self, execution, backward):
        launch = ExportedLaunch(execution, backward, "")
        module = Module([launch], None, is_for_readers=False)
        text = module.text()
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
        # Symbols cannot be remembered.
        return None if check is None else getattr(check, "__wrapped__", check)

    @cached_property
    def _asked(self) -> tuple[str, ...]:
        return () if self._check is None else tuple(inspect.signature(self._check).parameters)

    def unknown(self, known: dict) -> set[str]:
        """Return what the functions ask for that is not known of a launch: what is in memory."""
        return {*self._asked, *self.node.told} - {*known, self.launch.programs}

    def programs(self, known: dict):
        """Assert what the kernels are for; return the grid that they are for."""
        found = None
        if self._check is not None:
            found = self._check(**{name: known[name] for name in self._asked})
        return found if self.launch.is_replaced else known[self.launch.grid]

    def forward(self, grids, values) -> tuple[Tensor, ...]:
        """Launch the kernel, and return what the backward needs of it."""
        context = _Context()
        self._class.forward(context, *grids, *values)
        return context.saved_tensors

    def backward(self, saved, known: dict, upstream) -> tuple:
        """Return the gradients of the arguments."""
        context = _Context(saved, tuple(known[name] for name in self.node.told))
        return self._class.backward.__wrapped__(context, *upstream)


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
    """A launch and its backward, for all launches that `execution` would be chosen for.

    Raises an `AutodiffError` where that has no form that PyTorch could look into.
    """

    def __init__(self, execution):
        self._state, self.execution = execution.state, execution
        self._texts: dict = {}
        self._first = self._text(execution.backward)
        launch = self._first.launch
        texts = (self._state.spec.ttir, *(executable.text for executable in launch.executables))
        if launch.counting is not None:
            raise refused(launch.kernel_name, "it counts iterations")
        for text in texts:
            _refuse_descriptors(launch.kernel_name, text)
        tensors = (launch.facts.tensors[g.argument] for g in launch.plan.gradients)
        if not all(is_non_overlapping(tensor.shape, tensor.strides) for tensor in tensors):
            # What a graph writes to has each element once.
            raise refused(launch.kernel_name, "elements of a tensor share memory")

    def _text(self, backward) -> _Text:
        if backward not in self._texts:
            self._texts[backward] = _Text(self.execution, backward)
        return self._texts[backward]

    def check(self, values, grid) -> dict:
        """Assert of a launch what the kernels are for; return what its functions know of it."""
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
        """Launch on values of parameters; return what a backward needs, and what it knows."""
        launch, spec = self._first.launch, self._state.spec
        guard(spec, values)
        known = self.check(values, grid)
        grids = [known[name] for name in launch.grids]
        return self._first.forward(grids, spec.flatten(values)), known

    def backward(self, saved, known, upstream: dict) -> dict:
        """Return gradients by argument, for gradients of what was written, by argument."""
        chosen = self.execution._backward_for(upstream)
        text = self._text(chosen)
        gradients = [upstream.get(j) for j in text.launch.returned]
        found = text.backward(saved, known, gradients)[len(text.launch.grids) :]
        return {i: g for i, g in enumerate(found) if g is not None}


class InlinedForward:
    """A launch of which no gradient is wanted.

    Raises an `AutodiffError` where it has no form that PyTorch could look into.
    """

    def __init__(self, state):
        self._state = state
        spec = state.spec
        ttir = spec.kernel.asm["ttir"]
        _refuse_descriptors(spec.name, ttir)
        text = with_types(python_of(ttir, target=spec.target), {spec.name: None})
        self._kernel = _Traced(scope_of(text, spec.name)[spec.name])
        self._options = said_options(inherited_options(spec.kernel.metadata), spec.target)

    def check(self, values, grid) -> None:
        """There is nothing that a launch has to be."""

    def forward(self, values, grid) -> None:
        """Launch on values of parameters."""
        spec = self._state.spec
        guard(spec, values)
        self._kernel[grid](*spec.flatten(values), **self._options)


def guard(spec, values) -> None:
    """Make a graph one for numbers that the kernel would be compiled alike for."""
    for name, value in zip(spec.kernel.src.signature, values, strict=True):
        if spec.kernel.src.signature[name] == "constexpr" or isinstance(value, tuple):
            _make_constant(value)
    leaves = spec.flatten(values)
    for i, value in enumerate(leaves):
        if isinstance(value, torch.SymInt):
            attributes = spec.kernel.src.attrs.get((spec.parameters[i],), ())
            divisible = any(a[0] == "tt.divisibility" for a in attributes)
            bits = int(spec.types[i][1:])
            if (divisible and value % 16 != 0) or not value < 1 << bits - 1:
                raise AssertionError("a symbol is not what it is traced with")


def _make_constant(value) -> None:
    if isinstance(value, torch.SymInt):
        int(value)
    elif isinstance(value, tuple):
        for part in value:
            _make_constant(part)
