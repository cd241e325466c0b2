"""Registered operators on DTensors, which are sharded over several devices.

For each dimension of the device mesh, a rule (`sharding_rules.py`) says how arguments are sharded.
It is the first of the operation's rules by which an argument is sharded already; without one, all
are replicated. Arguments with another layout are redistributed. A device whose shard is empty runs
nothing.
"""

from __future__ import annotations

import torch
from torch._guards import detect_fake_mode
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard
from torch.distributed.tensor._dtensor_spec import DTensorSpec
from torch.distributed.tensor._redistribute import redistribute_local_tensor
from torch.utils._pytree import tree_flatten, tree_leaves, tree_map, tree_unflatten

from ..errors import AutodiffError
from .sharding_rules import Trial, checked, is_sum, results_by

Tensor = torch.Tensor


class Sharding:
    """The sharding rules of an operation with these parameters, tried on an example.

    `shard` is a rule, or a list of them; True stands for all that can be found.
    """

    def __init__(self, op, names, shard, example):
        self._op, self._names = op, names
        if example is None:
            raise AutodiffError(
                f"shard={shard!r} of {op!r} is tried out before it is believed: give arguments to "
                "do so, as example=(x, w), which are replaced by random ones like these"
            )
        trial = Trial(op, names, example)
        if shard is True:
            self.rules = trial.proposals()
            if not self.rules:
                raise AutodiffError(
                    f"no rule can be found by which {op!r} does to parts of its arguments what it "
                    "does to the whole: give one, as shard={'x': 0, 'result': 0}, or none"
                )
            return
        given = shard if isinstance(shard, (list, tuple)) else [shard]
        self.rules = [checked(op, names, rule) for rule in given]
        self._require(trial)

    def _require(self, trial: Trial) -> None:
        for rule in self.rules:
            trial.require(rule)

    def try_out(self, args) -> None:
        """Raise unless all rules hold for random arguments like these."""
        self._require(Trial(self._op, self._names, args))

    def register(self, forward) -> None:
        """Let the operator take DTensors; its gradient gets each device's shards."""
        forward.register_torch_dispatch(DTensor, self._forward)

    def _forward(self, mode, operator, types, args, kwargs):
        return _Call(self, args, kwargs).forward(operator)

    def call(self, args, kwargs) -> _Call | None:
        """Return a call with DTensors, None if there are none."""
        has_any = any(isinstance(leaf, DTensor) for leaf in tree_leaves(args))
        return _Call(self, args, kwargs) if has_any else None


class _Call:
    """A call with DTensors: the rule for each dimension of the mesh, and the layouts that
    follow.
    """

    def __init__(self, sharding: Sharding, args, kwargs):
        self._op = sharding._op
        self._args, self._kwargs = args, kwargs
        if any(isinstance(v, Tensor) for v in tree_leaves(kwargs)):
            raise AutodiffError(f"{self._op!r}: DTensors are positional arguments")
        pairs = zip(sharding._names, args, strict=False)
        self._owners = [name for name, value in pairs for _ in tree_leaves(value)]
        self._leaves, self._structure = tree_flatten(list(args))
        self._mesh = next(v.device_mesh for v in self._leaves if isinstance(v, DTensor))
        self._rules = [
            next((r for r in sharding.rules if self._divides(r, n)), None)
            for n in range(self._mesh.ndim)
        ]
        self._layouts = [
            self._placements(owner, leaf.ndim) if isinstance(leaf, Tensor) else None
            for owner, leaf in zip(self._owners, self._leaves, strict=True)
        ]

    def _divides(self, rule, n: int) -> bool:
        """Whether a rule shards an argument in dimension `n` of the mesh."""
        return any(
            isinstance(leaf, DTensor)
            and rule.get(owner) is not None
            and leaf.placements[n] == Shard(rule[owner] % leaf.ndim)
            for owner, leaf in zip(self._owners, self._leaves, strict=True)
        )

    def _placements(self, owner: str, ndim: int, whole=Replicate) -> list:
        """Return the layout of an argument, or of its gradient, which is `Partial` if `whole` says
        so.
        """
        found = []
        for rule in self._rules:
            dim = None if rule is None else rule.get(owner)
            if dim is not None:
                found.append(Shard(dim % ndim))
            else:
                found.append(Replicate() if rule is None else whole())
        return found

    def _of_results(self, results, whole=Replicate, added=Partial) -> list[list]:
        """Return the layouts of results, or with both kinds swapped, of their gradients."""
        given = [None if rule is None else results_by(rule, len(results)) for rule in self._rules]

        def placement(by_rule, n):
            if by_rule is None or results[n] is None:
                return Replicate()
            if isinstance(by_rule[n], int):
                return Shard(by_rule[n] % results[n].ndim)
            return added() if is_sum(by_rule[n]) else whole()

        return [[placement(by_rule, n) for by_rule in given] for n in range(len(results))]

    def forward(self, operator, of_whole=None):
        """Return the results as DTensors; `of_whole` tells the results of whole arguments."""
        self._shards = local = self._local()
        if not self._is_uneven:
            return self._distributed(operator(*local, **self._kwargs))
        whole = self._of_whole(of_whole or operator)
        self._require_parts(whole)
        if self._has_nothing(local):
            return self._distributed(self._nothing(whole), whole)
        return self._distributed(operator(*local, **self._kwargs), whole)

    def keep(self, run, wanted):
        """Return the results as DTensors, this device's shards of them and of the arguments, and
        what `run(*shards)` returns more, for a gradient of the leaves that are `wanted`.
        """
        # A device whose shard is empty has no history, which has the number zero.
        own, kept = (), [torch.empty((0, 0))]

        def on_shards(*args, **_):
            nonlocal own, kept
            *own, kept = run(*args)
            return own[0] if len(own) == 1 else tuple(own)

        def on_whole(*args, **_):
            *found, _ = run(*args)
            return found[0] if len(found) == 1 else tuple(found)

        results, local = self.forward(on_shards, on_whole), self._shards
        self._wanted = [
            (leaf.shape, leaf.stride(), self._placements(owner, leaf.ndim, Partial))
            for leaf, owner in ((self._leaves[n], self._owners[n]) for n in wanted)
        ]
        given = [t for t in tree_leaves(results) if isinstance(t, Tensor)]
        self._upstream = self._of_results(given, whole=Partial, added=Replicate)
        # It does not keep the arguments.
        self._args = self._leaves = ()
        return results, own, local, kept

    def local_upstream(self, upstream) -> list:
        """Return this device's shards of the gradients of results."""
        return [
            g if g is None else self._redistributed(g, layout, "a gradient")
            for g, layout in zip(upstream, self._upstream, strict=True)
        ]

    def gradients(self, found) -> list:
        """Return gradients as DTensors."""
        return [
            DTensor.from_local(g, self._mesh, layout, run_check=False, shape=shape, stride=stride)
            for g, (shape, stride, layout) in zip(found, self._wanted, strict=True)
        ]

    def _distributed(self, results, whole=None):
        """Return DTensors from each device's shards; `whole` has their shapes if necessary."""
        local, structure = tree_flatten(results)
        wholes = [None] * len(local) if whole is None else tree_leaves(whole)
        made = map(self._from_local, local, self._of_results(local), wholes)
        return tree_unflatten(made, structure)

    def _from_local(self, local, layout, whole):
        if local is None:
            return None
        if whole is None:
            return DTensor.from_local(local, self._mesh, layout, run_check=False)
        shape, stride = whole.shape, whole.stride()
        own = tuple(self._own_shape(shape, layout))
        if tuple(local.shape) != own:
            raise AutodiffError(
                f"{self._op!r}: a part of the result has the shape {tuple(local.shape)}, where "
                f"DTensor wants {own}: divide arguments in equal parts"
            )
        return DTensor.from_local(
            local, self._mesh, layout, run_check=False, shape=shape, stride=stride
        )

    def _own_shape(self, shape, layout) -> list:
        """Return the shape of this device's shard of a tensor: a chunk of a chunk, and so on."""
        own, place = list(shape), self._mesh.get_coordinate()
        for n, placement in enumerate(layout):
            if isinstance(placement, Shard):
                size = own[placement.dim]
                chunk = -(-size // self._mesh.size(n))
                own[placement.dim] = max(0, min(chunk, size - chunk * place[n]))
        return own

    @property
    def _is_uneven(self) -> bool:
        """Whether shards have different sizes."""
        return any(size % parts for size, parts in self._divided())

    def _divided(self):
        """Yield the size of each sharded dimension, and the number of shards."""
        for leaf, layout in zip(self._leaves, self._layouts, strict=True):
            parts: dict[int, int] = {}
            for n, placement in enumerate(layout or ()):
                if isinstance(placement, Shard):
                    parts[placement.dim] = parts.get(placement.dim, 1) * self._mesh.size(n)
            yield from ((leaf.shape[dim], count) for dim, count in parts.items())

    def _has_nothing(self, local) -> bool:
        """Whether this device's shard is empty."""
        return any(
            own.shape[placement.dim] == 0 and leaf.shape[placement.dim] != 0
            for own, leaf, layout in zip(
                tree_leaves(local), self._leaves, self._layouts, strict=True
            )
            for placement in layout or ()
            if isinstance(placement, Shard)
        )

    def _require_parts(self, results) -> None:
        """Raise on all devices if one may have an empty shard, but has to compute a replicated
        result.
        """
        has_whole = any(
            rule is not None and None in results_by(rule, len(tree_leaves(results)))
            for rule in self._rules
        )
        if has_whole and any(size < count * count for size, count in self._divided()):
            raise AutodiffError(
                f"{self._op!r} has a result that is whole on each device, and one of these may "
                "have no part of the arguments: divide them in equal parts"
            )

    def _of_whole(self, operator):
        """Return the results for unsharded arguments, without memory."""

        def like(value):
            if not isinstance(value, Tensor):
                return value
            given = {"dtype": value.dtype, "device": value.device}
            return torch.empty_strided(value.shape, value.stride(), **given)

        with detect_fake_mode(self._leaves) or FakeTensorMode():
            return operator(*tree_map(like, list(self._args)), **self._kwargs)

    def _nothing(self, whole):
        """Return the results on a device whose shards are empty."""
        results, structure = tree_flatten(whole)
        found = [
            result
            if result is None
            else torch.zeros(
                self._own_shape(result.shape, layout), dtype=result.dtype, device=result.device
            )
            for result, layout in zip(results, self._of_results(results), strict=True)
        ]
        return tree_unflatten(found, structure)

    def _local(self) -> list:
        """Return this device's shards of the arguments, by the rules."""
        found = [
            leaf if layout is None else self._redistributed(leaf, layout, f"argument {owner!r}")
            for leaf, layout, owner in zip(self._leaves, self._layouts, self._owners, strict=True)
        ]
        return tree_unflatten(found, self._structure)

    def _redistributed(self, value, placements, what: str):
        """Return this device's shard of a tensor with this layout."""
        if not isinstance(value, DTensor) or value.device_mesh != self._mesh:
            raise AutodiffError(
                f"{self._op!r}: {what} is no DTensor of the same mesh as others are: "
                "distribute it, with distribute_tensor or from_local"
            )
        # PyTorch only makes partial sums from replicated tensors.
        before = value.placements
        whole = [
            Replicate() if to.is_partial() and not of.is_partial() else to
            for of, to in zip(before, placements, strict=True)
        ]
        local = value._local_tensor
        for following in (whole, placements):
            # Below autograd, where PyTorch 2.11 has no `DTensor.redistribute`.
            meta = value._spec.tensor_meta
            specs = [DTensorSpec(self._mesh, tuple(p), tensor_meta=meta)
                     for p in (before, following)]  # fmt: skip
            if specs[0] != specs[1]:
                local = redistribute_local_tensor(local, *specs)
            before = following
        return local
