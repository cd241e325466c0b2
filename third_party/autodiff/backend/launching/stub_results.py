"""Runs the stub of an operation, and finds errors between a stub and autograd.

A stub launches its kernel and returns what the kernel wrote. If it returns something else, or
launches with detached tensors, autograd has no path from the result to the inputs. Its error would
be somewhere else, if there is one at all.
"""

from __future__ import annotations

import threading
from weakref import ref

import torch

from ..errors import AutodiffError, KernelTypeError
from ..storage.tensors import tensors_in
from ..support.places import named

Tensor = torch.Tensor


class _Thread(threading.local):
    # The `Watch` of the stub that runs in this thread; None if there is none.
    watch: Watch | None = None


of_thread = _Thread()


class Witness:
    """Tells whether a launch of a stub can still be differentiated, or has been."""

    __slots__ = ("execution", "node", "was_used")

    def __init__(self, execution, node: ref):
        self.execution = execution
        # It lives as long as a tensor depends on it.
        self.node = node
        self.was_used = False

    @property
    def is_reachable(self) -> bool:
        """Whether a tensor exists that depends on the launch, or its gradient has been computed."""
        return self.was_used or self.node() is not None


def witness_of(execution, node) -> Witness:
    """Return the witness of a launch in a stub, whose node exists."""
    found = Witness(execution, ref(node))
    of_thread.watch.witnesses.append(found)
    return found


def note_wanted() -> None:
    """Note that a kernel is launched with a tensor whose gradient may be wanted."""
    if of_thread.watch is not None:
        of_thread.watch.was_wanted = True


def note_without_history(tensors) -> None:
    """Note tensors that a launch with a node has written, and that no gradient comes from."""
    if of_thread.watch is not None:
        of_thread.watch.without_history += tensors


class Watch:
    """Observes the launches that a stub makes, as a context.

    `witnesses` are those of launches that can be differentiated. There may be none though a
    gradient `was_wanted`: then no output depends on the tensor. Such outputs of other launches are
    `without_history`.
    """

    __slots__ = ("_before", "_stub", "witnesses", "was_wanted", "without_history")

    def __init__(self, stub):
        self._stub = stub

    @property
    def stub(self) -> str:
        """The stub, in words."""
        return named(self._stub)

    def __enter__(self):
        self.witnesses, self.was_wanted, self.without_history = [], False, []
        self._before, of_thread.watch = of_thread.watch, self
        return self

    def __exit__(self, *_):
        of_thread.watch = self._before
        if self._before is not None:
            self._before.witnesses += self.witnesses
            self._before.was_wanted |= self.was_wanted
            self._before.without_history += self.without_history


def call(stub, kernel, args, kwargs):
    """Return the result of a stub for a kernel and the arguments of an operation."""
    try:
        return stub(kernel, *args, **kwargs)
    except TypeError as error:
        # An error of the call itself has no frame of the stub.
        if error.__traceback__.tb_next is not None:
            raise
        raise KernelTypeError(
            f"stub {named(stub)} does not take what it is given: {error}. A stub gets the kernel "
            "first, which counts, then what the operation is called with: "
            f"def {getattr(stub, '__name__', 'stub')}(kernel, …)"
        ) from None


def _written(witnesses) -> str:
    """Return which arguments of which kernels were written, in words."""
    found = {}
    for seen in witnesses:
        spec = seen.execution.state.spec
        names = ", ".join(repr(spec.names[j]) for j in seen.execution.position)
        found[f"what kernel {spec.name!r} wrote to {names}"] = None
    return " and ".join(found)


def refuse_lost(stub, name: str, launched: bool | str, watch: Watch, given, result) -> None:
    """Raise if the result of an operation does not depend on inputs whose gradient may be wanted.

    `name` is the kernel's, `given` are the arguments of the operation. Launches that could be
    differentiated have left witnesses; if one of these is reachable, nothing is wrong.
    `launched` is "by address" if kernels made pointers of integers.
    """
    witnesses = watch.witnesses
    if not witnesses and not any(t.requires_grad for t in tensors_in(given)):
        return
    results = list(tensors_in(result))
    floats = [t for t in results if t.is_floating_point() and t.numel()]
    if results and not floats:
        # Integers have no gradient in PyTorch.
        return
    own = {id(tensor) for tensor in tensors_in(given)}
    if any(t.requires_grad and not (witnesses and id(t) in own) for t in floats):
        return
    constant = {tensor.untyped_storage()._cdata for tensor in watch.without_history}
    if any(t.untyped_storage()._cdata in constant for t in floats):
        return
    way_out = "Where no gradient is wanted, call it under torch.no_grad()"
    if witnesses:
        raise AutodiffError(
            f"stub {named(stub)} returned {_described(result, floats)}: {_written(witnesses)} is "
            f"lost, and its gradient with it. Return that tensor, or what PyTorch computes of it. "
            f"{way_out}"
        )
    if not floats or watch.was_wanted:
        return
    if launched:
        # Of the tensor at an address, autograd sees nothing.
        instead = ", and not its address (data_ptr())" if launched == "by address" else ""
        raise AutodiffError(
            f"stub {named(stub)} launched kernel {name!r} without a gradient: none of the tensors "
            "that it passed requires one, though an argument of the operation does. Pass that "
            "one itself, without detach(), .data, a copy of its numbers, or no_grad around the "
            f"launch{instead}. {way_out}"
        )
    raise AutodiffError(
        f"the stub did not launch the kernel it was given, and its result has no gradient: launch "
        f"its first parameter, kernel[grid](…), not {name!r} itself ({named(stub)})"
    )


def _described(result, floats) -> str:
    if result is None:
        return "nothing"
    if not floats:
        return f"{type(result).__name__} {result!r:.40}"
    if any(tensor.requires_grad for tensor in floats):
        return "a tensor that it was given"
    return "a tensor without a history, detached or not the one that was written"
