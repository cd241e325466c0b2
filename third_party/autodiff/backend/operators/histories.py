"""What autograd recorded during one call of a stub, apart from the memory that it needs.

A registered operation runs its stub once, in its forward operator. The nodes that autograd makes
meanwhile are a `History`. What they save are places in a list of tensors, and the tensors leave
the operator as results. So PyTorch keeps them as it keeps all that is saved: hooks, checkpoints and
graphs see tensors, and a history without them is small. The backward operator gets the tensors
again, and the number of the history.
"""

from __future__ import annotations

import itertools
import threading
import weakref
from collections import OrderedDict

import torch
from torch._library.fake_impl import allocate_size
from torch.autograd.graph import GradientEdge, get_gradient_edge, saved_tensors_hooks
from torch.utils._pytree import tree_leaves

from ..errors import AutodiffError
from ..graphs.kept import has_numbers_of_runs
from ..launching.nodes import recording_history
from ..storage.tensors import flattened, rebuilt
from ..support.places import named
from .kept_memory import Kept

Tensor = torch.Tensor
# The most histories of one operator that graphs may refer to.
_MOST = 1 << 13
# To Dynamo, smaller numbers are constants.
_numbers = itertools.count(2)
_histories: weakref.WeakValueDictionary[int, History] = weakref.WeakValueDictionary()


class _Box:
    """Holds the saved tensors of a history while its nodes run."""

    __slots__ = ("tensors",)

    def __init__(self):
        self.tensors: list | None = None


class _Slot:
    """Stands for a tensor that a node has saved: the tensor until the stub returns, its place
    after that.
    """

    __slots__ = ("tensor", "version", "box", "place", "__weakref__")

    def __init__(self, tensor: Tensor, box: _Box):
        self.tensor, self.box = tensor, box
        self.version = None if tensor.is_inference() else tensor._version

    def get(self) -> Tensor:
        """Return the tensor."""
        if self.tensor is not None:
            return self.tensor
        if self.box.tensors is None:
            raise AutodiffError(
                "a gradient was asked for through a tensor that a registered operation has made "
                "inside, and not returned: return it"
            )
        return self.box.tensors[self.place]


def _entry(anchor, tensors) -> tuple[Tensor, ...]:
    """Return tensors with the memory of others, where gradients leave a history: their node holds
    none of them.
    """
    # A node of C++ takes less time than one of Python, both to make and to keep alive.
    node = torch._C._functions.DelayedError(b"no gradient gets here", 1 + len(tensors))
    return node(anchor, *tensors)[1:]


class _Held(torch.autograd.Function):
    """Holds a tensor for `_found_again`."""

    @staticmethod
    def forward(ctx, tensor):
        ctx.save_for_backward(tensor)
        return tensor.new_empty(0)


def _found_again(stand_in: Tensor, reference):
    """Return a function that returns what a reference refers to, with the history of the tensor
    that stands for it; None if it is gone.
    """
    with saved_tensors_hooks(lambda _: reference, lambda known: known()):
        # In PyTorch 2.11, the node lives as long as its result.
        held = _Held.apply(stand_in)
    return lambda: None if reference() is None else held.grad_fn.saved_tensors[0]


class History:
    """The autograd nodes of one call, without the tensors that they save, which are `kept`.

    `results` are what the stub returned, detached, until somebody takes them.
    """

    def __init__(self, op, wanted, args, kwargs, check):
        self.number = next(_numbers)
        self._box, self._lock, self._op = _Box(), threading.RLock(), op
        made: list[weakref.ref] = []

        def pack(tensor):
            slot = _Slot(tensor, self_box)
            made.append(weakref.ref(slot))
            return slot

        self_box = self._box
        leaves = flattened(args)
        tensors = [n for n, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
        given = [leaves[n] for n in tensors]
        # The arguments that are wanted, and their versions.
        self._arguments = [(weakref.ref(leaves[n]), leaves[n]._version) for n in wanted]
        self._places = [tensors.index(n) for n in wanted]
        with torch.enable_grad(), recording_history(), saved_tensors_hooks(pack, _Slot.get):
            anchor = torch.empty(0, device="cpu", requires_grad=True)
            inputs = _entry(anchor, [leaves[n].detach() for n in wanted])
            first = get_gradient_edge(inputs[0])
            self.inputs = [first._replace(output_nr=t.output_nr) for t in inputs]
            for n, tensor in zip(wanted, inputs, strict=True):
                leaves[n] = tensor
            result = op(*rebuilt(args, iter(leaves)), **kwargs)
            self._note_changed(inputs, wanted, flattened(args))
            # The nodes of tensors that only the stub has used are gone after this.
            del tensor, leaves
            result = check(result)
            found = flattened((result,))
            # In PyTorch 2.11, an edge keeps a node written in Python alive by the node of a view,
            # which must be recorded, too.
            self._outputs = [_edge(t) for t in found if isinstance(t, Tensor)]
            nodes = [*self._nodes()]
            self._let_find(nodes, inputs)
            del inputs
        results = [t.detach() if isinstance(t, Tensor) else t for t in found]
        (self.results,) = rebuilt((result,), iter(results))
        del result, found
        self._refuse_others(nodes, anchor)
        returned = [t for t in results if isinstance(t, Tensor)]
        always = self._places if op.kernel._resolver.options.keeps_inputs else ()
        self.kept = Kept(self._saved(made), given, returned, always)
        _histories[self.number] = self

    @staticmethod
    def _note_changed(inputs, wanted, leaves) -> None:
        """Count changes of tensors that stand for arguments as changes of these."""
        for n, tensor in zip(wanted, inputs, strict=True):
            if tensor._version:
                torch.autograd.graph.increment_version(leaves[n])

    def _saved(self, made) -> list[Tensor]:
        """Replace the tensors in slots by places; returns the tensors."""
        saved = []
        for reference in made:
            slot = reference()
            if slot is None:
                continue
            tensor = slot.tensor
            if slot.version is not None and tensor._version != slot.version:
                raise AutodiffError(
                    f"stub {named(self._op.stub)} changes a tensor of shape {tuple(tensor.shape)} "
                    "in place after a gradient needs it as it was: change a clone, or what is "
                    "detached before the gradient needs it"
                )
            slot.place, slot.tensor = len(saved), None
            saved.append(tensor)
        return saved

    def _nodes(self):
        """Yield the nodes that lead from the results to the arguments."""
        entry = {edge.node for edge in self.inputs}
        stack = [edge.node for edge in self._outputs if edge is not None]
        seen = {*stack, *entry}
        stack = [node for node in dict.fromkeys(stack) if node not in entry]
        while stack:
            node = stack.pop()
            yield node
            for following, _ in node.next_functions:
                if following is not None and following not in seen:
                    seen.add(following)
                    stack.append(following)

    def _let_find(self, nodes, inputs) -> None:
        """Let launches find arguments that they did not save, for their second derivatives.

        What stood for an argument is gone with the stub.
        """
        numbers = {id(tensor): n for n, tensor in enumerate(inputs)}
        for node in nodes:
            others = node.left.inputs if getattr(node, "execution", None) is not None else ()
            for place, (reference, _) in enumerate(others):
                n = numbers.get(id(reference()))
                if n is not None:
                    others[place] = _found_again(inputs[n], self._arguments[n][0]), 0

    def _refuse_others(self, nodes, anchor) -> None:
        """Raise for tensors with a gradient that the stub has used, and that are no arguments."""
        for node in nodes:
            leaf = getattr(node, "variable", None)
            if leaf is not None and leaf is not anchor:
                raise AutodiffError(
                    f"stub {named(self._op.stub)} uses a tensor of shape {tuple(leaf.shape)} that "
                    "requires a gradient and is none of the arguments, so the operator has no "
                    "gradient for it: make it a parameter of the stub, or detach() it"
                )

    @property
    def without_history(self) -> list[int]:
        """The numbers of the tensors among the results that do not depend on the arguments, for
        autograd.
        """
        return [n for n, edge in enumerate(self._outputs) if edge is None]

    def executions(self):
        """Yield the execution of each launch that has a gradient, and its numbers."""
        for node in self._nodes():
            if (execution := getattr(node, "execution", None)) is not None:
                yield execution, node.left.scalars

    # ------------------------------------------------------------------------- in graphs

    def joined(self, device, without) -> list[Tensor]:
        """Return what arguments and results do not contain of what is saved, for a graph.

        These are bytes on the device, bytes on the CPU, and a tensor that has the number as its
        size. In the graph, the results `without` a history have none.
        """
        self._refuse_hidden()
        for n in without:
            if self._outputs[n] is not None:
                raise AutodiffError(
                    f"result {n} of stub {named(self._op.stub)} depends on an argument that "
                    "requires a gradient, and did not when the graph was made, where tensors have "
                    "no memory. What a stub returns must not depend on chance, on what tensors "
                    "contain, or on what changes outside of it"
                )
        whole = self.kept.join(device, self._refuse)
        return [*whole, torch.empty((self.number, 0), device=device)]

    def _refuse(self, tensor) -> None:
        raise AutodiffError(
            f"stub {named(self._op.stub)} saves a tensor for its gradient that no graph can keep: "
            f"it is on {tensor.device}, and its layout is {tensor.layout}"
        )

    def _refuse_hidden(self) -> None:
        """Raise if a node holds memory that PyTorch does not know of."""
        for node in self._nodes():
            values = getattr(node, "__dict__", {}).values()
            if getattr(node, "opaque", None) or any(
                isinstance(t, Tensor) and t.numel() for t in tree_leaves(list(values))
            ):
                raise AutodiffError(
                    f"stub {named(self._op.stub)} keeps memory for its gradient in {node.name()}, "
                    "which no graph can keep: give a kernel tensors, and save tensors by "
                    "save_for_backward"
                )

    def take(self):
        """Return the results, which the history does not keep."""
        results, self.results = self.results, None
        return results

    # ------------------------------------------------------------------------- gradients

    def gradients(self, upstream, given, results, kept) -> tuple[Tensor | None, ...]:
        """Return the gradients of the arguments that are wanted; None if nothing reaches them."""
        edges, upstream = self.reached_by(upstream)
        if not edges:
            return (None,) * len(self.inputs)
        tensors = self.kept.tensors(given, results, kept)
        return self.differentiated(edges, self.inputs, upstream, tensors)

    def reached_by(self, upstream) -> tuple[tuple, tuple]:
        """Return the edges of results that have a history and a gradient, and these gradients."""
        pairs = zip(self._outputs, upstream, strict=True)
        reached = [(edge, g) for edge, g in pairs if edge is not None and g is not None]
        return tuple(zip(*reached, strict=True)) if reached else ((), ())

    def differentiated(
        self, outputs, inputs, upstream, tensors, is_recorded=False
    ) -> tuple[Tensor | None, ...]:
        """Return gradients by inputs, which may be edges, through the nodes of this history and
        what was computed of them. They have saved `tensors`.

        If this is recorded, the gradients can be differentiated.
        """
        with self._lock:
            before, self._box.tensors = self._box.tensors, tensors
            try:
                return torch.autograd.grad(
                    outputs,
                    inputs,
                    upstream,
                    retain_graph=True,
                    create_graph=is_recorded,
                    allow_unused=True,
                )
            finally:
                self._box.tensors = before

    def arguments(self, saved) -> list[Tensor | None]:
        """Return the arguments that are wanted; None for those that are gone, or have changed.

        `saved` are the arguments that are saved, by number.
        """
        found = []
        for place, (reference, version) in zip(self._places, self._arguments, strict=True):
            tensor = reference()
            if tensor is not None and tensor._version != version:
                tensor = None
            found.append(saved.get(place, tensor))
        return found

    def reached_from(self, tensors) -> set[int]:
        """Return the numbers of the arguments that are wanted on which tensors depend that were
        computed of the nodes.
        """
        entry, numbers = self.inputs[0].node, {e.output_nr: n for n, e in enumerate(self.inputs)}
        stack, found = [t.grad_fn for t in tensors if t.grad_fn is not None], set()
        seen = {*stack}
        while stack:
            for node, output in stack.pop().next_functions:
                if node is entry:
                    found.add(numbers[output])
                elif node is not None and node not in seen:
                    seen.add(node)
                    stack.append(node)
        return found


class Histories:
    """The histories of one operator by number: the latest that only graphs know, and those that
    nodes keep.
    """

    def __init__(self, name: str):
        self._name, self._lock, self._latest = name, threading.Lock(), threading.local()
        self._histories: OrderedDict[int, History] = OrderedDict()

    def add(self, history: History, is_known: bool) -> None:
        """Keep a history: until the next one in this thread, if a node is about to know it."""
        if is_known:
            self._latest.history = history
            return
        with self._lock:
            self._histories[history.number] = history
            while len(self._histories) > _MOST:
                self._histories.popitem(last=False)

    @staticmethod
    def known(number: int) -> History | None:
        """Return the history that has a number, None if nobody keeps it."""
        return _histories.get(number)

    def find(self, number: int) -> History:
        """Return the history that has a number, kept here or by somebody else."""
        history = self.known(number)
        if history is None:
            raise AutodiffError(
                f"operator {self._name!r} has been called {_MOST} times since the forward of this "
                "backward, or in another process: run backwards sooner"
            )
        return history


def placeholders(tensors) -> list[Tensor]:
    """Return what `History.join` returns, without memory."""
    device, cpu = tensors[0].device, torch.device("cpu")
    sizes = [0, 0, 0]
    if has_numbers_of_runs(tensors):
        sizes = [allocate_size(torch.library.get_ctx()._shape_env) for _ in sizes]
    whole = [
        torch.empty(n, dtype=torch.uint8, device=d)
        for n, d in zip(sizes, (device, cpu), strict=False)
    ]
    return [*whole, torch.empty((sizes[2], 0), device=device)]


def _edge(result: Tensor) -> GradientEdge | None:
    return get_gradient_edge(result) if result.requires_grad else None
