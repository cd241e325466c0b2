"""Operations: differentiable kernels together with stubs, which launch them."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from torch.utils._pytree import tree_leaves

from ..errors import ArgumentError, AutodiffError, KernelTypeError
from ..graphs import stubs as graph_stubs
from ..kernels import naming
from ..kernels.order import Outermost
from ..kernels.stubs import name_after
from ..launching import nodes, plain_launches, stub_results
from ..launching.batches import for_each_example, is_batching
from ..launching.options import DEFAULT
from ..launching.tracers import outside_of_dynamo
from ..printing.explain import backward_text, report
from ..printing.source import backward_source, jvp_source
from ..storage.addresses import makes_pointers
from .kernel import DifferentiableKernel, WarmupKernel, exporting

Tensor = torch.Tensor


class _PostProcess(torch.autograd.Function):
    """Passes tensors on; their gradients go through a user's function of all of them."""

    @staticmethod
    def forward(ctx, process, *tensors):
        ctx.process = process
        return tuple(t.view_as(t) for t in tensors)

    @staticmethod
    @outside_of_dynamo
    def backward(ctx, *grads):
        processed = ctx.process(*grads)
        if isinstance(processed, Tensor) or processed is None:
            processed = (processed,)
        if len(processed) != len(grads):
            raise AutodiffError(
                f"post_process_fn was given {len(grads)} gradients and returned {len(processed)}"
            )
        return (None, *processed)


class Op(Outermost):
    """A stub around a differentiable kernel: call it with the stub's arguments.

    Iterating yields the op and a kernel for a warm-up call, so that the earlier form
    `my_op, bwd_kernel = autodiff(…)` works.
    """

    def __init__(self, kernel, stub, idx_upstream=None, post_process_fn=None, options=DEFAULT):
        self.kernel = DifferentiableKernel(kernel, options)
        self.kernel._keeps_all = True
        self.stub = stub
        self._idx_upstream = idx_upstream
        self._post_process = post_process_fn
        # The rules for DTensors that it was registered with.
        self._shardings: list = []
        name_after(self, stub, slice(1))

    def __repr__(self):
        name = self.kernel._resolver.function.__name__
        return f"autodiff({name}, {self.__name__})"

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        # A stub may be a method that is bound to the copied object.
        functions = self.stub, self._post_process
        stub, post_process = copies = copy.deepcopy(functions, memo)
        if copies is functions:
            return self
        options = self.kernel._resolver.options
        return Op(self.kernel._kernel, stub, self._idx_upstream, post_process, options)

    def __reduce__(self):
        return naming.reduce_op(self, self._idx_upstream, self._post_process)

    def __iter__(self) -> Iterator[Any]:
        return iter((self, WarmupKernel(self.kernel)))

    def _traced(self, *args, **kwargs) -> Any:
        """Run the stub where Dynamo traces."""
        graph_stubs.teach_dynamo()
        if self._post_process is not None:
            return self._call_outside(*args, **kwargs)
        return self.stub(self.kernel, *args, **kwargs)

    @outside_of_dynamo
    def _call_outside(self, *args, **kwargs):
        return self(*args, **kwargs)

    @functools.partial(outside_of_dynamo, instead=_traced)
    def __call__(self, *args, **kwargs) -> Any:
        """Run the stub under autograd and return its result."""
        if is_batching(tree_leaves((args, kwargs))):
            return for_each_example(self, args, kwargs)
        if self._post_process is not None:
            args = self._through_post_process(args)
        self.kernel._launches.clear()
        plain_launches.watch()
        with nodes.recording_history(), stub_results.Watch(self.stub) as watch:
            result = stub_results.call(self.stub, self.kernel, args, kwargs)
        # Under torch.func, a tensor does not tell what it depends on outside of a transform.
        is_seen = torch.is_grad_enabled() and not torch._C._are_functorch_transforms_active()
        if is_seen and not any(w.is_reachable for w in watch.witnesses):
            name, launches = self.kernel._resolver.function.__name__, self.kernel._launches
            by_address = any(makes_pointers(kernel) for kernel, *_ in launches)
            launched = "by address" if by_address else bool(launches)
            stub_results.refuse_lost(self.stub, name, launched, watch, (args, kwargs), result)
        if self._idx_upstream is not None:
            self._check_upstream()
        return result

    def __getitem__(self, grid):
        raise KernelTypeError(
            f"{self.__name__!r} is an operation: it is called without a grid, which its stub gives "
            "the kernel. What autodiff returned has the kernel as its attribute `kernel`"
        )

    def _through_post_process(self, args):
        places = [n for n, a in enumerate(args) if isinstance(a, Tensor) and a.requires_grad]
        if not places or not torch.is_grad_enabled():
            return args
        wrapped = _PostProcess.apply(self._post_process, *(args[n] for n in places))
        args = list(args)
        for n, tensor in zip(places, wrapped, strict=True):
            args[n] = tensor
        return args

    def _check_upstream(self):
        for _, execution, *_ in self.kernel._launches:
            if execution is None:
                continue
            spec = execution.state.spec
            written = {spec.parameters[j] for j in execution.backward.plan.outputs}
            if self._idx_upstream not in written:
                names = sorted(spec.names[j] for j in execution.backward.plan.outputs)
                raise ArgumentError(
                    f"idx_upstream={self._idx_upstream} is not an output of kernel "
                    f"{spec.name!r}, which stores to {', '.join(names)}"
                )

    def preview(self, args, kwargs, note=None):
        """Return `(state, plan, execution)` for each launch of a call, without running it.

        Without arguments: for those of the last call. Of each launch, `note` is told.
        """
        if args or kwargs:
            self.kernel._launches.clear()
            kernel = self.kernel._previewed(note)
            kernel._written = []
            try:
                stub_results.call(self.stub, kernel, args, kwargs)
            finally:
                for tensor in kernel._written:
                    tensor.detach_()
        return self.kernel._plans((), {})

    def backward_ir(self, *args, **kwargs) -> str:
        """Return the TTIR of the backward kernels of the last call, or of a call with `args`."""
        return backward_text(self.preview(args, kwargs))

    def backward_source(self, *args, **kwargs) -> str:
        """Return the backward kernels of the last (or the given) call as Triton Python.

        Kernels with one name get numbers. See `DifferentiableKernel.backward_source`.
        """
        return backward_source(self.preview(args, kwargs))

    def jvp_source(self, *args, **kwargs) -> str:
        """Return the kernels with tangents of the last (or the given) call as Triton Python.

        Kernels with one name get numbers. See `DifferentiableKernel.jvp_source`.
        """
        self.preview(args, kwargs)
        return jvp_source(self.kernel._moving((), {}))

    def backward_kernels(self, *args, **kwargs) -> dict[str, Any]:
        """Return the backward kernels of the last (or the given) call as functions of Triton.

        See `DifferentiableKernel.backward_kernels`.
        """
        backward_kernels, _ = exporting()
        return backward_kernels(self.preview(args, kwargs))

    def export(self, path, *args, **kwargs) -> Path:
        """Write the operation, as the last call (or one with `args`) was, as a module of its own.

        It has a function of the stub's name, and imports torch and triton, not this package. See
        `DifferentiableKernel.export`.
        """
        _, export = exporting()
        return export(path, self.preview(args, kwargs), self.stub)

    def register(self, name: str, schema: str | None = None, shard=None, example=None):
        """Make it an operator of PyTorch, `torch.ops.NAMESPACE.NAME`, and return that.

        Annotations of the stub say what it takes and returns, or a `schema`, like
        "(Tensor x, float eps) -> Tensor". A rule like `shard={"x": 0, "result": 0}`, or a list of
        these, is for DTensors; it is tried out on arguments like the `example`. With `shard=True`
        all rules that can be found are taken. See docs/pytorch.md.
        """
        from ..operators.registered import register

        return register(self, name, schema, shard, example)

    def shardings(self, *example) -> list[dict]:
        """Return the rules for DTensors that are found by trying arguments like these.

        Each rule divides all axes of one size. So sizes that are independent should differ in the
        example.
        """
        from ..operators.sharding_rules import Trial

        names = list(inspect.signature(self.stub).parameters)[1:]
        return Trial(self, names, example).proposals()

    def explain(self, *args, verbose: bool = False, **kwargs) -> str:
        """Return how each gradient of the last call, or of one with `args`, is computed, and why.

        With `verbose=True`, also every schedule that the compiler tried, and what stood in its way.
        """
        return report(self.preview(args, kwargs), verbose)


graph_stubs.runs_stubs.add(Op._traced.__code__)
