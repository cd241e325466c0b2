"""Launches of kernels that are not differentiated: what they write.

Autograd does not know of such a launch. Its writes count for PyTorch's version counters, so that a
backward that reads a tensor again raises PyTorch's error. In a stub, whose author may think that
all of it is differentiated, a launch that cuts a gradient off is an error.

Launches are seen at Triton's compiled kernel, once an operation or a node has been made: those of
`kernel[grid](…)`, of tuners, and of kernels that were warmed up. What other code launches (graphs
of Inductor, other languages, Triton's interpreter, kernels compiled from text) is not seen.
"""

from __future__ import annotations

import functools
import json
from typing import NamedTuple

import torch
from triton.compiler import ASTSource

from ..errors import AutodiffError
from ..kernels import wrappers
from ..library import native
from ..plans.target import described
from ..storage.layouts import read
from ..storage.memory import extent, meet
from ..storage.overwritten import MOST_WRITES, note_write, writes
from . import stub_results
from .specialization import leaves_of, step
from .state import KernelState
from .tracers import AUTOGRAD

Tensor = torch.Tensor
_ATTRIBUTE = "_autodiff_effects"
# The launch function's arguments before those of the kernel.
_BEFORE = 9
# Increase the versions of tensors.
increase = torch._C._increment_version
# What a kernel loads and stores needs no derivative.
_REQUEST = {"wanted": [], "cotangents": [], "scheduled": False, "assume": False, "save": False}


class Pointer(NamedTuple):
    """A pointer among a kernel's arguments: its name, where it is, and whether it is to floats."""

    name: str
    path: tuple
    is_float: bool
    number: int

    def tensor(self, values) -> Tensor | None:
        """Return the tensor that a launch gives; None if it is no tensor."""
        value = functools.reduce(step, self.path, values)
        value = value if isinstance(value, Tensor) else getattr(value, "base", None)
        return value if isinstance(value, Tensor) else None


class Effects(NamedTuple):
    """The arguments through which a compiled kernel loads, and through which it stores.

    `places` are the places of the latter among those of the launch function; None if they are in
    tuples or descriptors.
    """

    kernel: str
    loaded: tuple[Pointer, ...]
    stored: tuple[Pointer, ...]
    places: tuple[int, ...] | None
    count: int


def effects_of(kernel) -> Effects | None:
    """Return what a compiled kernel does to its arguments; None if that is not known."""
    found = vars(kernel).get(_ATTRIBUTE, False)
    if found is False:
        try:
            found = _derived(kernel)
        except Exception:
            # It may be of another front end, and its launch is none of ours.
            found = None
        setattr(kernel, _ATTRIBUTE, found)
    return found


def _derived(kernel) -> Effects | None:
    ttir = kernel.asm.get("ttir")
    if ttir is None or not isinstance(kernel.src, ASTSource):
        return None
    request = json.dumps({**_REQUEST, **described(kernel.metadata.target)})
    arguments = json.loads(native().differentiate(ttir, request))["arguments"]
    signature = kernel.src.signature
    names, leaves = list(signature), list(leaves_of(signature.values()))
    pointers = [
        Pointer(names[path[0]], path, argument["type"].startswith(("ptr<f", "ptr<bf")), number)
        for number, ((path, _), argument) in enumerate(zip(leaves, arguments, strict=True))
    ]
    used = zip(pointers, arguments, strict=True)
    kinds = [(p, a["loaded"], a["stored"]) for p, a in used if a["type"].startswith("ptr")]
    loaded, stored = (p for p, loads, _ in kinds if loads), tuple(p for p, _, s in kinds if s)
    flat = tuple([_BEFORE + p.path[0] for p in stored if len(p.path) == 1])
    places = flat if len(flat) == len(stored) else None
    name = kernel.src.fn.__name__
    return Effects(name, tuple(loaded), stored, places, _BEFORE + len(names))


def watch() -> None:
    """See launches of all kernels from now on."""
    if wrappers.observer is None:
        wrappers.observe(_observed)


def note(kernel, values) -> bool:
    """Note what a launch of a compiled kernel has written; returns whether that is known."""
    effects = effects_of(kernel)
    if effects is None:
        return False
    _note_each(effects, effects.stored, values)
    return True


def _note_each(effects: Effects, stored, values) -> None:
    for pointer in stored:
        tensor = pointer.tensor(values)
        if tensor is not None and not tensor.is_inference():
            increase((tensor,))
            note_write((effects.kernel, pointer.name, None), tensor)


def _observed(kernel, run):
    """Return a function that launches a compiled kernel as Triton's `run` does, and notes what it
    writes.
    """
    effects = effects_of(kernel)
    if effects is None or not effects.stored:
        return run
    # Every launch of the process comes here, so what is known before is done before.
    count, places, of_thread = effects.count, effects.places or (), stub_results.of_thread
    notes = [(effects.kernel, pointer.name, None) for pointer in effects.stored]
    pairs = tuple(zip(places, notes, strict=False))

    def launch(*args):
        if len(args) != count:
            return run(*args)
        if of_thread.watch is not None:
            _look_at(of_thread.watch, kernel, effects, args[_BEFORE:])
        run(*args)
        if not (args[0] and args[1] and args[2]):
            return
        try:
            for place, described in pairs:
                tensor = args[place]
                increase((tensor,))
                writes[tensor.data_ptr()] = described, tensor._version
        except RuntimeError:
            # It is no tensor, or one of inference mode, which has no version.
            _note_each(effects, effects.stored[places.index(place) :], args[_BEFORE:])
            return
        if effects.places is None:
            _note_each(effects, effects.stored, args[_BEFORE:])
        if len(writes) > MOST_WRITES:
            writes.clear()

    return launch


def _look_at(watched, kernel, effects: Effects, values) -> None:
    """Look at a launch in a stub."""
    # Below autograd, somebody else knows the history: a custom operator, say.
    if torch.is_grad_enabled() and not torch._C._dispatch_tls_is_dispatch_key_excluded(AUTOGRAD):
        _check(watched, kernel, effects, values)


def _check(watched, kernel, effects: Effects, values) -> None:
    """Raise if a launch in a stub changes a gradient without autograd's knowledge."""
    name = effects.kernel
    launch = (
        f"kernel {name!r} is launched in stub {watched.stub}, and not differentiated, for it is "
        "not the stub's first parameter"
    )
    both = f"differentiable({name})"
    for pointer in effects.stored:
        tensor = pointer.tensor(values)
        if tensor is None:
            continue
        if tensor.requires_grad:
            raise AutodiffError(
                f"{launch}: it writes argument {pointer.name!r}, which has a history, and the "
                f"gradient would not know. Launch {both} in its place, or, if what it writes has "
                "no gradient, give it a detach() of the tensor"
            )
        reader = _reader(watched, tensor)
        if reader is not None:
            raise AutodiffError(
                f"{launch}: it writes argument {pointer.name!r}, which the backward of {reader} "
                "reads again: give one of them a clone() of the tensor"
            )
    sources = [p for p in effects.loaded if p.is_float and _has_history(p.tensor(values))]
    targets = [p for p in effects.stored if p.is_float]
    if sources and targets and _depend(kernel, sources):
        raise AutodiffError(
            f"{launch}: it reads argument {sources[0].name!r}, which has a history, and writes "
            f"what it computes of that to {targets[0].name!r}, which has no gradient then. Launch "
            f"{both} in its place, or, if none is wanted, give it a detach() of the tensor"
        )


def _has_history(tensor) -> bool:
    return tensor is not None and tensor.requires_grad


def _depend(kernel, sources) -> bool:
    """Whether floats that a kernel stores have a gradient by what it loads from some arguments."""
    try:
        state = KernelState.of(kernel, kernel.src.fn)
        wanted = tuple(pointer.number for pointer in sources)
        return bool(state.executable_plan(state.first_request(wanted)).plan.with_history(wanted))
    except AutodiffError:
        # It is not known, then.
        return True


def _reader(watched, tensor: Tensor) -> str | None:
    """Return a launch of a stub whose backward reads memory of a tensor, in words; None if there
    is none.
    """
    for seen in watched.witnesses:
        node = seen.node()
        if node is None:
            continue
        execution = seen.execution
        left = node.left
        for i, layout in zip(execution.kept, read(left.layouts), strict=False):
            facts, address = execution.facts.tensors[i], layout.address
            if i in left.surrounded:
                address += left.surrounded[i].lead * facts.dtype.itemsize
            if _overlap(tensor, facts, address):
                spec = execution.state.spec
                return f"kernel {spec.name!r} (argument {spec.names[i]!r})"
    return None


def _overlap(tensor: Tensor, facts, address: int) -> bool:
    """Whether a tensor has memory in common with one of which facts are known."""
    first = tuple(tensor.shape), tensor.stride(), tensor.element_size()
    second = facts.shape, facts.strides, facts.dtype.itemsize
    distance = address - tensor.data_ptr()
    ends = [extent(shape, strides) * size for shape, strides, size in (first, second)]
    return -ends[1] < distance < ends[0] and 0 not in ends and meet(first, second, distance)
