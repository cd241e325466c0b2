"""An `autodiff` operation as an operator of PyTorch, with a name and a schema.

The operator is functional: it allocates its results and does not change its arguments. Without
memory (for meta tensors), it runs the stub with a kernel that launches nothing. Its gradient is a
second operator, `NAME_backward`, which runs the operation again with autograd.
"""

from __future__ import annotations

import functools
import inspect
import threading
import typing

import torch
from torch.autograd import forward_ad
from torch.utils._pytree import tree_flatten, tree_leaves, tree_unflatten

from .errors import ArgumentError, AutodiffError, KernelTypeError
from .graph_gradient import gradient_like, gradients_of, room_for_gradient
from .memory import Span, extent, restore
from .places import named
from .runtime import mark_written, recording_history
from .state import KernelState
from .stubs import innermost

Tensor = torch.Tensor
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
        for taken in (name, f"{name}_backward"):
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


class _Noted:
    """A kernel whose launches increase the version of tensors that they write, like in-place
    operations.
    """

    def __init__(self, kernel):
        self._kernel = kernel

    def __getattr__(self, name):
        return getattr(self._kernel, name)

    def __getitem__(self, grid):
        return functools.partial(self.run, grid=grid)

    def run(self, *args, grid, **kwargs):
        """Launch the kernel."""
        launches = self._kernel._launches
        before = len(launches)
        result = self._kernel.run(*args, grid=grid, **kwargs)
        resolver = self._kernel._resolver
        for kernel, _, function in launches[before:]:
            state = KernelState.of(kernel, function, resolver.options)
            # The launch has increased versions if it knew what is written.
            if state.outputs is None:
                state.plan_of_everything()
                mark_written(state, state.spec.flatten(resolver.bind(args, kwargs)))
        return result


class _Operator:
    """The two operators of an operation: `forward`, and `backward` for its gradients."""

    def __init__(self, op, name: str, schema: str | None, shard, example):
        self._op, self._stub = op, op.stub
        self._without_kernel = _NoLaunch(op.kernel)
        self._schema = _schema(op.stub) if schema is None else schema
        parsed = torch._C.parse_schema(f"{name}{self._schema}")
        self._names = [argument.name for argument in parsed.arguments]
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
        self.forward = torch.library.custom_op(
            name, self._run, mutates_args=(), schema=self._schema
        )
        self.forward.register_fake(self._fake)
        prefix = "Tensor?[] {}, int[] {}".format(*self._unused("upstream", "wanted"))
        arguments = self._schema[1 : self._schema.rindex("->")].strip()[:-1]
        of_backward = f"({', '.join(part for part in (prefix, arguments) if part)}) -> Tensor[]"
        self.backward = torch.library.custom_op(
            f"{name}_backward", self._gradients, mutates_args=(), schema=of_backward
        )
        self.backward.register_fake(self._no_gradients)
        has_keywords = any(argument.kwarg_only for argument in parsed.arguments)
        self.forward.register_autograd(
            self._differentiate, setup_context=self._keep_both if has_keywords else self._keep
        )

        self._library = self._guarded(name)
        if sharding is not None:
            sharding.register(self.forward, self.backward)
            op._shardings.append(sharding)
        space, short = name.split("::")
        from .flops import register_formulas

        packets = (getattr(getattr(torch.ops, space), of) for of in (short, f"{short}_backward"))
        register_formulas(op, *packets)

    def _guarded(self, name: str) -> torch.library.Library:
        """Raise errors for transforms that Python operators do not support.

        PyTorch would lose tangents, and has messages for other transforms that users do not
        understand.
        """
        space, short = name.split("::")
        library = torch.library.Library(space, "FRAGMENT")
        for key in ("AutogradCPU", "AutogradCUDA"):
            plain = torch.library.get_kernel(name, key)

            def guarded(keyset, *args, plain=plain, **kwargs):
                if forward_ad._current_level >= 0:
                    self._refuse(args, "has a forward-mode tangent", _has_tangent)
                if torch._C._are_functorch_transforms_active() and torch.is_grad_enabled():
                    what = "is differentiated by torch.func"
                    self._refuse(args, what, lambda tensor: tensor.requires_grad)
                return plain.call_boxed(keyset, *args, **kwargs)

            library.impl(short, guarded, key, with_keyset=True)
        return library

    def _refuse(self, args, what: str, is_refused) -> None:
        for name, value in zip(self._names, args, strict=False):
            if any(map(is_refused, _tensors(value))):
                raise ArgumentError(
                    f"argument {name!r} of {self._op!r} {what}, and operators are differentiated "
                    "by backward() or torch.autograd.grad only"
                )

    def _unused(self, *names: str):
        """Return names that no argument of the operator has."""
        for name in names:
            while name in self._names:
                name += "_"
            yield name

    def _run(self, *args, **kwargs):
        # Tensors of inference_mode have no version.
        given = [t for t in _tensors((args, kwargs)) if not t.is_inference()]
        before = [(t, t._version) for t in given]
        with torch.no_grad():
            self._op.kernel._launches.clear()
            result = self._stub(_Noted(self._op.kernel), *args, **kwargs)
        for tensor, version in before:
            if tensor._version != version:
                raise AutodiffError(
                    f"stub {named(self._stub)} changes {self._which(tensor, args, kwargs)}, which "
                    "an operator must leave as it is: write to a copy, or to an empty_like, and "
                    "return that"
                )
        return self._checked(result, args, kwargs)

    def _fake(self, *args, **kwargs):
        return self._checked(self._stub(self._without_kernel, *args, **kwargs), args, kwargs)

    def _checked(self, result, args, kwargs):
        """Return a result as it is; raises if it shares memory with anything else."""
        owners = {_storage(t): t for t in _tensors((args, kwargs))}
        for tensor in _tensors(result):
            owner = owners.setdefault(_storage(tensor), tensor)
            if owner is not tensor or any(owner is t for t in _tensors((args, kwargs))):
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
            if any(tensor is t for t in _tensors(value)):
                return f"its argument {name!r}"
        return "another of its results"

    def _keep(self, ctx, inputs, output) -> None:
        self._keep_both(ctx, inputs, {}, output)

    def _keep_both(self, ctx, inputs, keyword_only_inputs, output) -> None:
        ctx.set_materialize_grads(False)
        leaves, ctx.structure = tree_flatten(inputs)
        ctx.keywords = keyword_only_inputs
        ctx.places = [n for n, value in enumerate(leaves) if isinstance(value, Tensor)]
        ctx.others = [None if isinstance(value, Tensor) else value for value in leaves]
        ctx.strides = [_strides(leaves[n]) for n in ctx.places]
        ctx.save_for_backward(*(leaves[n] for n in ctx.places))

    def _differentiate(self, ctx, *upstream):
        leaves, gradients = list(ctx.others), [None] * len(ctx.others)
        for place, tensor, strides in zip(ctx.places, ctx.saved_tensors, ctx.strides, strict=True):
            # Hooks may change the layout of saved tensors.
            if _strides(tensor) != strides:
                tensor = restore(tensor, strides, Span(0, extent(tensor.shape, strides)))
            leaves[place] = tensor
        needed = tree_leaves(ctx.needs_input_grad)
        wanted = [n for n in ctx.places if needed[n]]
        given = tree_leaves(upstream)
        if wanted and any(g is not None for g in given):
            arguments = tree_unflatten(leaves, ctx.structure)
            found = self.backward(given, wanted, *arguments, **ctx.keywords)
            for place, gradient in zip(wanted, found, strict=True):
                gradients[place] = gradient
        return tuple(tree_unflatten(gradients, ctx.structure))

    def _gradients(self, upstream, wanted, /, *args, **kwargs):
        """Return gradients of the tensors that are wanted, by running the operation again."""
        with torch.enable_grad(), recording_history():
            leaves, structure = tree_flatten(args)
            for place in wanted:
                leaves[place] = leaves[place].detach().requires_grad_()
            results = tree_leaves(self._op(*tree_unflatten(leaves, structure), **kwargs))
            inputs = [leaves[place] for place in wanted]
            found = gradients_of(results, inputs, upstream)
        taken = {_storage(t) for t in _tensors((args, kwargs, upstream))}
        return [_own(t, g, taken) for t, g in zip(inputs, found, strict=True)]

    def _no_gradients(self, upstream, wanted, /, *args, **kwargs):
        leaves = tree_leaves(args)
        return [room_for_gradient(leaves[place]) for place in wanted]


def _own(tensor, gradient, taken: set) -> Tensor:
    """Return a gradient in its tensor's layout, in memory that nothing else uses."""
    fits = gradient is not None and gradient.stride() == tensor.stride()
    if fits and _storage(gradient) not in taken:
        taken.add(_storage(gradient))
        return gradient
    return gradient_like(tensor, gradient)


def _tensors(value) -> list[Tensor]:
    return [t for t in tree_leaves(value) if isinstance(t, Tensor)]


def _has_tangent(tensor: Tensor) -> bool:
    return forward_ad.unpack_dual(tensor).tangent is not None


def _strides(tensor: Tensor):
    return tensor.stride() if tensor.layout is torch.strided else None


def _storage(tensor) -> int:
    return tensor.untyped_storage()._cdata


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
