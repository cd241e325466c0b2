"""An `autodiff` operation as an operator of PyTorch, with a name and a schema.

The operator is functional: it allocates its results and does not change its arguments. Without
memory (for meta tensors), it runs the stub with a kernel that launches nothing. If a gradient is
wanted, `NAME_forward` runs the stub in its place, and returns what the gradient needs, too.
`NAME_backward` computes that without the stub (`histories.py`).
"""

from __future__ import annotations

import functools
import inspect
import threading
import types
import typing

import torch
from torch._functorch import compile_utils

from ..errors import AutodiffError, KernelTypeError
from ..graphs.operator_flops import register_formulas
from ..kernels.stubs import innermost
from ..launching import plain_launches
from ..launching.batches import behind
from ..launching.compiled_autograd import each_layout, room
from ..launching.duals import has_tangents
from ..launching.tracers import is_traced, outside_of_dynamo
from ..launching.transformed_operators import under_transforms
from ..storage.tensors import flattened, tensors_in
from ..support.ambient import autocast, autocast_of, undrawn
from ..support.places import named
from .cached_graphs import distinguish
from .histories import Histories, History, placeholders
from .registered_node import Call, node
from .traced_histories import without_history

Tensor = torch.Tensor
# A stub may draw random numbers: two calls are two, and each has to run.
_TAGS = (torch.Tag.nondeterministic_seeded,)
_BACKWARD = (
    "(Tensor?[] upstream, Tensor[] given, Tensor[] results, Tensor[] kept, SymInt number, "
    "str[] types, int[] ranks, SymInt[] shapes, SymInt[] strides) -> Tensor[]"
)
_lock = threading.Lock()
_registered: dict[str, tuple] = {}


def register(op, name: str, schema: str | None = None, shard=None, example=None):
    """Make an operator of an `autodiff` operation; see `Op.register`."""
    with _lock:
        known, given, made = _registered.get(name, (None, None, None))
        if known is op and given == (schema, shard):
            return made
        if name.count("::") != 1 or not all(part.isidentifier() for part in name.split("::")):
            raise AutodiffError(
                f"{name!r} is no name of an operator: give a namespace and a name, 'mine::rms'"
            )
        for taken in (name, f"{name}_forward", f"{name}_backward"):
            if torch._C._dispatch_has_kernel(taken):
                raise AutodiffError(
                    f"there is an operator {taken!r} already, and it is another one: give "
                    f"{op!r} a name of its own"
                )
        made = _Operator(op, name, schema, shard, example).forward
        _registered[name] = op, (schema, shard), made
        return made


class _NoLaunch:
    """Stands for a kernel: it has the kernel's attributes, and launches nothing."""

    def __init__(self, kernel):
        self._kernel = kernel

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def __getitem__(self, grid):
        return self.run

    def run(self, *args, **kwargs) -> None:
        """Accept the arguments of a launch."""


class _Operator:
    """The two operators of an operation: `forward`, and `backward` for its gradients."""

    def __init__(self, op, name: str, schema: str | None, shard, example):
        self._op, self._stub = op, op.stub
        self._without_kernel = _NoLaunch(op.kernel)
        self._schema = _schema(op.stub) if schema is None else schema
        parsed = torch._C.parse_schema(f"{name}{self._schema}")
        self._names = [argument.name for argument in parsed.arguments]
        self._count = len(parsed.returns)
        if parsed.is_mutable:
            raise AutodiffError(
                f"operator {name!r} would change its arguments, by its schema {self._schema}: an "
                "operator with gradients leaves them as they are. Let the stub return what it "
                "writes, in memory of its own"
            )
        sharding = None
        if shard is not None:
            from .sharded import Sharding

            sharding = Sharding(op, self._names, shard, example)
        self._name, self._sharding = name, sharding
        self._refuse_keyword_tensors(parsed)
        self.forward = torch.library.custom_op(
            name, self._run, mutates_args=(), schema=self._schema, tags=_TAGS
        )
        self.forward.register_fake(self._fake)
        self.forward.__deepcopy__ = self._copied
        self._histories, self._node = Histories(name), node(repr(op))
        self._library = self._defined(name)
        if sharding is not None:
            sharding.register(self.forward)
            op._shardings.append(sharding)

    def _copied(self, memo):
        """An operator is one for the process: copies of a model have the same."""
        stub = innermost(self._stub)
        if isinstance(stub, types.MethodType) and id(stub.__self__) in memo:
            raise AutodiffError(
                f"operator {self._name!r} launches for one {type(stub.__self__).__name__}, and a "
                "copy of that would use its attributes: make what the stub needs its arguments, or "
                "copy before `register`, which gives each copy an operator of its own"
            )
        return self.forward

    def _refuse_keyword_tensors(self, parsed) -> None:
        for argument in parsed.arguments:
            if argument.kwarg_only and "Tensor" in str(argument.type):
                raise AutodiffError(
                    f"operator {self._name!r} has a tensor that is given by name only, "
                    f"{argument.name!r}, which has no gradient in PyTorch: make it positional"
                )

    def _defined(self, name: str) -> torch.library.Library:
        """Define the operators for autograd, and let it use them."""
        space, short = name.split("::")
        library = torch.library.Library(space, "FRAGMENT")

        def define(suffix, schema, implementation, fake, tags):
            tags = (torch.Tag.needs_exact_strides, torch.Tag.cudagraph_unsafe, *tags)
            library.define(f"{short}{suffix}{schema}", tags=tags)
            library.impl(f"{short}{suffix}", implementation, "CompositeExplicitAutograd")
            torch.library.register_fake(f"{name}{suffix}", fake, lib=library)
            return getattr(getattr(torch.ops, space), f"{short}{suffix}").default

        arguments, results = self._schema[1:].rsplit("->", 1)
        arguments = arguments.strip()[:-1]
        results = results.strip()
        results = results[1:-1] if results.startswith("(") else results
        own = "int[] {}, int[]? {}, str {}".format(*self._unused("wanted", "without", "cast"))
        parts = ", ".join(part for part in (own, arguments) if part)
        returned = ", ".join(part for part in (results, "Tensor[]") if part)
        tags = (*_TAGS, torch.Tag.dynamic_output_shape)
        keeping = f"({parts}) -> ({returned})"
        self._keeping = define("_forward", keeping, self._keep, self._keep_fake, tags)
        distinguish(self._op, name, keeping, _BACKWARD)
        self._backward = define("_backward", _BACKWARD, self._gradients, self._no_gradients, ())
        for key in ("AutogradCPU", "AutogradCUDA", "AutogradMeta"):
            library.impl(short, outside_of_dynamo(self._recorded), key)
        plainly = outside_of_dynamo(self._plainly)
        under_transforms(library, short, self.forward._opoverload, plainly)
        packets = [getattr(torch.ops, space)]
        packets = [getattr(packets[0], short + of) for of in ("", "_forward", "_backward")]
        register_formulas(self._op, self._histories, *packets)
        # PyTorch merges equal calls in a graph, except of what draws random numbers by this list.
        compile_utils.rand_ops += packets[:2]
        return library

    def _recorded(self, *args, **kwargs):
        """Run the operator with autograd, if a gradient is wanted."""
        leaves = flattened(args)
        if has_tangents(leaves):
            return self._plainly(*args, **kwargs)
        wanted = [n for n, t in enumerate(leaves) if isinstance(t, Tensor) and t.requires_grad]
        if not wanted or not torch.is_grad_enabled():
            cast = autocast_of(tensors_in(leaves))
            with torch._C._AutoDispatchBelowAutograd():
                if not cast or not is_traced():
                    return self.forward._opoverload(*args, **kwargs)
                # Graphs switch autocast off.
                *results, _ = self._keeping([], [], cast, *args, **kwargs)
                return results[0] if self._count == 1 else tuple(results)
        call = Call(self, args, kwargs, leaves, wanted)
        results = self._node.apply(call, *(leaves[n] for n in wanted))
        return call.restored(results)

    def _plainly(self, *args, **kwargs):
        """Call the operation itself, whose launches have derivatives of every order."""
        before = self._versions(args, kwargs)
        result = self._op(*args, **kwargs)
        self._refuse_changed(before, args, kwargs)
        return self._checked(result, args, kwargs)

    @property
    def described(self) -> str:
        """The operation, in words."""
        return f"operation {self._op.__name__!r}"

    def keep(self, wanted, without, *args, **kwargs):
        """Call the operator that runs the stub and returns what the gradient needs, too.

        In a graph, results `without` a history are known before; it is None elsewhere.
        """
        return self._keeping(wanted, without, autocast_of(tensors_in(args)), *args, **kwargs)

    def without_history(self, wanted, args, kwargs) -> list[int]:
        """Return the results that have no history in a graph, by number."""
        return without_history(self._op, wanted, args, kwargs)

    def gradient(self, *given) -> list[Tensor]:
        """Call the operator for gradients; what it does, where nobody looks at operators."""
        if torch.compiler.is_dynamo_compiling():
            return self._backward(*given)
        looked_at = torch._C._len_torch_dispatch_stack() or torch.autograd._profiler_enabled()
        return self._backward(*given) if looked_at or is_traced() else self._gradients(*given)

    def history(self, number: int) -> History | None:
        """Return the history with a number, None if it is gone."""
        return self._histories.known(number)

    def shards(self, args, kwargs):
        """Return a call with DTensors, None for a call without."""
        return None if self._sharding is None else self._sharding.call(args, kwargs)

    def _unused(self, *names: str):
        """Return names that no argument of the operator has."""
        for name in names:
            while name in self._names:
                name += "_"
            yield name

    def _run(self, *args, **kwargs):
        before = self._versions(args, kwargs)
        with torch.no_grad():
            self._op.kernel._launches.clear()
            result = self._stub(self._op.kernel, *args, **kwargs)
        self._refuse_changed(before, args, kwargs)
        return self._checked(result, args, kwargs)

    def _versions(self, args, kwargs) -> list[tuple[Tensor, Tensor, int]]:
        """Return the arguments with their memory and its version, for `_refuse_changed`."""
        plain_launches.watch()
        # Tensors of inference_mode have no version.
        found = ((t, behind(t)) for t in tensors_in((args, kwargs)))
        return [(t, own, own._version) for t, own in found if not own.is_inference()]

    def _refuse_changed(self, before, args, kwargs) -> None:
        """Raise if an argument has another version than before."""
        for tensor, memory, version in before:
            if memory._version != version:
                raise AutodiffError(
                    f"stub {named(self._stub)} changes {self._which(tensor, args, kwargs)}, which "
                    "an operator must leave as it is: write to a copy, or to an empty_like, and "
                    "return that"
                )

    def _keep(self, wanted, without, cast, /, *args, **kwargs):
        """Run the stub; returns its results, and what the gradient needs of this run."""
        given, joined = list(tensors_in(args)), without is not None
        with autocast(cast, given):
            if not wanted:
                result = self._run(*args, **kwargs)
                return *self._listed(result), placeholders(given) if joined else []
            before = self._versions(args, kwargs)
            check = functools.partial(self._checked, args=args, kwargs=kwargs)
            history = History(self._op, wanted, args, kwargs, check)
            self._refuse_changed(before, args, kwargs)
        if joined:
            kept = history.joined(given[0].device, without)
        else:
            kept = [*history.kept.take(), torch.empty((history.number, 0), device="cpu")]
        self._histories.add(history, is_known=not joined)
        return *self._listed(history.take()), kept

    def _keep_fake(self, wanted, without, cast, /, *args, **kwargs):
        given = list(tensors_in(args))
        with autocast(cast, given):
            results = self._listed(self._fake(*args, **kwargs))
        return *results, [] if without is None else placeholders(given)

    def _listed(self, result) -> tuple:
        """Return the results one by one, as they are in the schema."""
        if self._count == 1:
            return (result,)
        return () if result is None else tuple(result)

    def _fake(self, *args, **kwargs):
        with undrawn():
            result = self._stub(self._without_kernel, *args, **kwargs)
        return self._checked(result, args, kwargs)

    def _checked(self, result, args, kwargs):
        """Return a result as it is; raises if it shares memory with anything else."""
        owners = {_storage(t): t for t in tensors_in((args, kwargs))}
        own = set(owners)
        for tensor in tensors_in(result):
            key = _storage(tensor)
            owner = owners.setdefault(key, tensor)
            if owner is not tensor or key in own:
                raise AutodiffError(
                    f"stub {named(self._stub)} returns memory of "
                    f"{self._which(owner, args, kwargs)}, which an operator must not: return a "
                    "copy of it, made by clone()"
                )
        return list(result) if isinstance(result, tuple) and self._returns_list() else result

    def _returns_list(self) -> bool:
        return self._schema.endswith("-> Tensor[]")

    def _which(self, tensor, args, kwargs) -> str:
        for name, value in (*zip(self._names, args, strict=False), *kwargs.items()):
            if any(tensor is t for t in tensors_in(value)):
                return f"its argument {name!r}"
        return "another of its results"

    def _gradients(self, upstream, given, results, kept, number, *layouts) -> list[Tensor]:
        """Return gradients of the tensors that are wanted, by what the forward has kept."""
        if not number and kept:
            *kept, numbered = kept
            number = numbered.shape[0]
        if number:
            found = self._histories.find(number).gradients(upstream, given, results, kept)
        else:
            found = [None] * len(layouts[0])
        taken = {_storage(t) for t in tensors_in((upstream, given, results, kept))}
        return [_own(*of, g, taken) for of, g in zip(each_layout(*layouts), found, strict=True)]

    def _no_gradients(self, upstream, given, results, kept, number, *layouts) -> list[Tensor]:
        return [room(*layout) for layout in each_layout(*layouts)]


def _own(shape, strides, dtype, device, gradient, taken: set) -> Tensor:
    """Return a gradient in its tensor's layout, in memory that nothing else uses."""
    fits = gradient is not None and gradient.layout is torch.strided
    fits = fits and (gradient.stride(), gradient.dtype) == (tuple(strides), dtype)
    if fits and _storage(gradient) not in taken:
        taken.add(_storage(gradient))
        return gradient
    made = room(shape, strides, dtype, device)
    return made.zero_() if gradient is None else made.copy_(gradient)


def _storage(tensor) -> int:
    return behind(tensor).untyped_storage()._cdata


def _schema(stub) -> str:
    """Return the schema of an operator with the stub's parameters, without the kernel."""
    signature, function = inspect.signature(stub), innermost(stub)
    try:
        hints = typing.get_type_hints(function)
    except NameError as error:
        raise AutodiffError(
            f"an annotation of stub {named(stub)} means nothing: {error}. Give the operator's "
            "schema, as schema='(Tensor x, float eps) -> Tensor'"
        ) from None
    parameters = []
    for parameter in list(signature.parameters.values())[1:]:
        hint = hints.get(parameter.name, type(parameter.default))
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise _unknown(stub, f"{parameter} may be any number of arguments", parameter.name)
        if parameter.name not in hints and parameter.default in (None, parameter.empty):
            raise _unknown(stub, f"parameter {parameter.name!r} may be anything", parameter.name)
        parameters.append(parameter.replace(annotation=hint))
    if "return" not in hints:
        raise _unknown(stub, "nothing says what it returns", None)

    def prototype():
        pass

    prototype.__signature__ = signature.replace(
        parameters=parameters, return_annotation=hints["return"]
    )
    try:
        return torch.library.infer_schema(prototype, mutates_args=())
    except ValueError as error:
        raise KernelTypeError(
            f"PyTorch has no operators like stub {named(stub)}: {error}. For a result that may be "
            "None, give the schema, as schema='(Tensor x) -> (Tensor, Tensor?)'"
        ) from error


def _unknown(stub, what: str, name: str | None) -> AutodiffError:
    example = "-> torch.Tensor" if name is None else f"{name.lstrip('*')}: torch.Tensor"
    return AutodiffError(
        f"stub {named(stub)} becomes an operator, which has a type for everything, but {what}: "
        f"annotate it, say {example}, or give schema='(Tensor x, float eps) -> Tensor'"
    )
