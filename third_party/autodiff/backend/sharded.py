"""Registered operators of tensors that lie in parts on several devices, as DTensors.

A rule gives for each parameter, and for "result", the dimension of which each device has a part;
what it does not name, each device has whole. Gradients of the latter are sums of which each device
has a part. A rule is accepted only if the operation does the same to parts as to the whole.
"""

from __future__ import annotations

import torch
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._redistribute import redistribute_local_tensor
from torch.utils._pytree import tree_leaves, tree_map

from .errors import AutodiffError

Tensor = torch.Tensor
RESULT = "result"
_PARTS = 2


class Sharding:
    """A rule for an operation with parameters of these names, tried out on an example."""

    def __init__(self, op, names, rule: dict[str, int], example):
        self._op, self._names, self._rule = op, names, rule
        unknown = [name for name in rule if name not in (*names, RESULT)]
        if unknown or RESULT not in rule:
            raise AutodiffError(
                f"shard={rule!r} of {op!r} is to name {RESULT!r} and parameters, of "
                f"{', '.join(names)}: it gives the dimension in which each is divided"
            )
        if example is None:
            raise AutodiffError(
                f"shard={rule!r} of {op!r} is tried out before it is believed: give arguments to "
                "do so, as example=(x, w), which are replaced by random ones like these"
            )
        self._try(example)

    def register(self, forward, backward) -> None:
        """Let both operators take DTensors."""
        forward.register_torch_dispatch(DTensor, self._forward)
        backward.register_torch_dispatch(DTensor, self._backward)

    def _try(self, example) -> None:
        """Raise unless parts of arguments give parts of results and of gradients."""

        def fresh(value):
            if not isinstance(value, Tensor) or not value.is_floating_point():
                return value
            return torch.randn_like(value).requires_grad_()

        args = tree_map(fresh, tuple(example))
        whole = self._op(*args)
        if not isinstance(whole, Tensor):
            raise AutodiffError(
                f"shard={self._rule!r}: {self._op!r} returns {type(whole).__name__}, and a rule is "
                "for one tensor as result"
            )
        upstream = torch.randn_like(whole)
        expected = _gradients(whole, args, upstream)
        dim, name = self._rule[RESULT], f"shard={self._rule!r} of {self._op!r} is wrong: "
        sums = [[] for _ in expected]
        for part in range(_PARTS):
            given = [
                tree_map(lambda v, name=name_: self._part(v, name, part), value)  # noqa: B023
                for name_, value in zip(self._names, args, strict=False)
            ]
            result = self._op(*given)
            _compare(result, _slice(whole, dim, part), name + "parts of arguments do not give "
                     "parts of the result")  # fmt: skip
            for found, g in zip(sums, _gradients(result, given, _slice(upstream, dim, part)),
                                strict=True):  # fmt: skip
                found.append(g)
        places = [n for n, v in enumerate(args) for t in tree_leaves(v) if _is_float(t)]
        for place, found, g in zip(places, sums, expected, strict=True):
            parameter = self._names[place]
            dim = self._rule.get(parameter)
            made = sum(found) if dim is None else torch.cat(found, dim)
            _compare(made, g, f"{name}parts do not give the gradient of {parameter!r}")

    def _part(self, value, name: str, part: int):
        if not isinstance(value, Tensor):
            return value
        if name in self._rule:
            value = _slice(value, self._rule[name], part)
        return value.detach().requires_grad_(value.requires_grad)

    def _forward(self, mode, operator, types, args, kwargs):
        mesh, divided = self._layout(args, kwargs)
        result = operator(*self._local(args, mesh, divided), **kwargs)
        return DTensor.from_local(result, mesh, self._placements(RESULT, divided), run_check=False)

    def _backward(self, mode, operator, types, args, kwargs):
        upstream, wanted, *args = args
        mesh, divided = self._layout(args, kwargs)
        placements = self._placements(RESULT, divided)
        upstream = [self._redistributed(g, mesh, placements, "a gradient") for g in upstream]
        found = operator(upstream, wanted, *self._local(args, mesh, divided), **kwargs)
        owners = [n for n, v in zip(self._names, args, strict=False) for _ in tree_leaves(v)]
        return [
            DTensor.from_local(
                g, mesh, self._placements(owners[place], divided, Partial()), run_check=False
            )
            for place, g in zip(wanted, found, strict=True)
        ]

    def _layout(self, args, kwargs):
        """Return the mesh of devices, and which of its dimensions have parts by the rule."""
        if any(isinstance(v, Tensor) for v in tree_leaves(kwargs)):
            raise AutodiffError(f"{self._op!r}: DTensors are positional arguments")
        mesh = next(v.device_mesh for v in tree_leaves(args) if isinstance(v, DTensor))
        divided = [False] * mesh.ndim
        for name, value in zip(self._names, args, strict=False):
            for tensor in tree_leaves(value):
                if not isinstance(tensor, DTensor) or name not in self._rule:
                    continue
                dim = self._rule[name] % tensor.ndim
                for n, placement in enumerate(tensor.placements):
                    divided[n] |= placement == Shard(dim)
        parts = 1
        for n, is_divided in enumerate(divided):
            parts *= mesh.size(n) if is_divided else 1
        for name, value in zip(self._names, args, strict=False):
            for tensor in tree_leaves(value):
                if name in self._rule and tensor.shape[self._rule[name]] % parts:
                    raise AutodiffError(
                        f"{self._op!r}: dimension {self._rule[name]} of argument {name!r} has "
                        f"{tensor.shape[self._rule[name]]} elements, which {parts} devices cannot "
                        "have in equal parts: pad it, or give it whole, as Replicate()"
                    )
        return mesh, divided

    def _placements(self, name: str, divided, other=None):
        by_rule = Shard(self._rule[name]) if name in self._rule else other or Replicate()
        return [by_rule if is_divided else Replicate() for is_divided in divided]

    def _local(self, args, mesh, divided):
        return [
            tree_map(
                lambda v, name=name: self._redistributed(
                    v, mesh, self._placements(name, divided), f"argument {name!r}"
                ),
                value,
            )
            for name, value in zip(self._names, args, strict=False)
        ]

    def _redistributed(self, value, mesh, placements, what: str):
        """Return what this device has of a tensor that is laid out by the rule."""
        if not isinstance(value, Tensor):
            return value
        if not isinstance(value, DTensor) or value.device_mesh != mesh:
            raise AutodiffError(
                f"{self._op!r}: {what} is no DTensor of the same mesh as others are: "
                "distribute it, with distribute_tensor or from_local"
            )
        # Below autograd, where PyTorch 2.11 has no `DTensor.redistribute`.
        spec = value._spec
        target = DTensorSpec(mesh, tuple(placements), tensor_meta=spec.tensor_meta)
        return redistribute_local_tensor(value._local_tensor, spec, target)


def _is_float(value) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _slice(tensor: Tensor, dim: int, part: int) -> Tensor:
    if tensor.shape[dim] % _PARTS:
        raise AutodiffError(f"an example to divide has an even number of elements, not in {dim}")
    return tensor.detach().chunk(_PARTS, dim)[part].clone().requires_grad_(tensor.requires_grad)


def _gradients(result, args, upstream):
    leaves = [t for t in tree_leaves(tuple(args)) if _is_float(t)]
    return torch.autograd.grad(result, leaves, upstream, materialize_grads=True)


def _compare(found, expected, message: str) -> None:
    try:
        torch.testing.assert_close(found, expected)
    except AssertionError as error:
        raise AutodiffError(f"{message}. {error}") from None
