"""Sharding rules: how an operation on shards of its arguments gives shards of its results.

A rule has, by parameter name, the dimension in which a tensor is sharded; all others are
replicated. Under "result" it says how results are composed, in one value for all or one for each in
a tuple: the dimension in which they are sharded, None if they are replicated, or `Partial()` if
they have to be added up. Gradients follow: those of replicated tensors are partial sums.

A rule is accepted after a trial with random arguments, whole and in two shards.
"""

from __future__ import annotations

import itertools

import torch
from torch.distributed.tensor import Partial
from torch.utils._pytree import tree_leaves, tree_map

from ..errors import AutodiffError
from ..graphs.gradient import gradients_of

Tensor = torch.Tensor
RESULT = "result"
_PARTS = 2


def checked(op, names, rule) -> dict:
    """Check a rule for an operation with these parameters; returns it."""
    wrong = None
    if not isinstance(rule, dict) or RESULT not in rule:
        wrong = f"is to name {RESULT!r}, and parameters"
    elif unknown := [name for name in rule if name not in (*names, RESULT)]:
        wrong = f"names {unknown[0]!r}, which is no parameter"
    elif not any(type(rule[name]) is int for name in rule if name != RESULT):
        wrong = "divides no parameter"
    elif any(not _is_dimension(rule[name]) for name in rule if name != RESULT):
        wrong = "is to give dimensions of parameters, or None"
    elif any(not (_is_dimension(r) or is_sum(r)) for r in _results(rule)):
        wrong = f"is to give dimensions of {RESULT!r}, None or Partial()"
    if wrong is None:
        return rule
    raise AutodiffError(
        f"shard={rule!r} of {op!r} {wrong}. It gives the dimension in which each parameter, of "
        f"{', '.join(names)}, and {RESULT!r} are divided, as {{{names[0]!r}: 0, {RESULT!r}: 0}}"
    )


def _is_dimension(value) -> bool:
    return value is None or type(value) is int


def is_sum(value) -> bool:
    """Whether shards of a result have to be added up."""
    return isinstance(value, Partial) and value.reduce_op == "sum"


def _results(rule) -> tuple:
    given = rule[RESULT]
    return tuple(given) if isinstance(given, (tuple, list)) else (given,)


def results_by(rule, count: int) -> tuple:
    """Return a rule's value for each of `count` results."""
    given = _results(rule)
    if len(given) == 1:
        return given * count
    if len(given) == count:
        return given
    raise AutodiffError(
        f"shard={rule!r} says what becomes of {len(given)} results, and there are {count}"
    )


class Trial:
    """Tries rules for an operation, with random arguments like those of an example."""

    def __init__(self, op, names, example):
        self._op, self._names = op, names
        self._args = tree_map(_random, tuple(example))
        self._whole = self._run(self._args)
        self._upstream = [
            torch.randn_like(y) if y is not None and y.requires_grad else None for y in self._whole
        ]
        self._expected = _gradients(self._whole, self._args, self._upstream)

    def _run(self, args) -> list[Tensor | None]:
        return tree_leaves(self._op(*args))

    def require(self, rule) -> None:
        """Raise unless shards of arguments give the shards of results and of gradients."""
        wrong = f"shard={rule!r} of {self._op!r} is wrong: "
        given = [self._part(rule, part) for part in range(_PARTS)]
        found = [self._run(args) for args in given]
        results = results_by(rule, len(self._whole))
        for parts, whole, divided in zip(zip(*found, strict=True), self._whole, results,
                                         strict=True):  # fmt: skip
            for made, expected in _joined(parts, whole, divided):
                _compare(made, expected, f"{wrong}parts of arguments do not give parts of results")
        gradients = []
        for part, (args, made) in enumerate(zip(given, found, strict=True)):
            upstream = [
                None if g is None else _upstream(g, divided, part)
                for g, divided in zip(self._upstream, results, strict=True)
            ]
            gradients.append(_gradients(made, args, upstream))
        for parameter, parts, expected in zip(self._owners(), zip(*gradients, strict=True),
                                              self._expected, strict=True):  # fmt: skip
            dim = rule.get(parameter)
            joined = sum(parts) if dim is None else torch.cat(parts, dim)
            _compare(joined, expected, f"{wrong}parts do not give the gradient of {parameter!r}")

    def _owners(self) -> list[str]:
        """Return the parameter name for each tensor with a gradient."""
        pairs = zip(self._names, self._args, strict=False)
        return [name for name, value in pairs for t in tree_leaves(value) if _is_float(t)]

    def _part(self, rule, part: int) -> list:
        def divide(value, name):
            if not isinstance(value, Tensor):
                return value
            dim = rule.get(name)
            held = value.detach() if dim is None else _chunk(value.detach(), dim, part).clone()
            return held.requires_grad_(value.requires_grad)

        return [
            tree_map(lambda v, name=name: divide(v, name), value)
            for name, value in zip(self._names, self._args, strict=False)
        ]

    def proposals(self) -> list[dict]:
        """Return the rules that shard all dimensions of one size, as far as these hold.

        So independent sizes of the example should differ.
        """
        found = []
        shapes = {
            name: [t.shape for t in tree_leaves(value) if isinstance(t, Tensor)]
            for name, value in zip(self._names, self._args, strict=False)
        }
        sizes = {n for given in shapes.values() for shape in given for n in shape if n >= _PARTS}
        for size in sorted(sizes):
            dims = {name: _dims_of(size, given) for name, given in shapes.items()}
            dims = {name: given for name, given in dims.items() if given}
            for chosen in itertools.product(*dims.values()):
                rule = self._completed(dict(zip(dims, chosen, strict=True)))
                if rule is not None:
                    found.append(rule)
        return found

    def _completed(self, rule: dict) -> dict | None:
        """Complete a rule by how results are composed; None if it does not hold."""
        try:
            found = [self._run(self._part(rule, part)) for part in range(_PARTS)]
            results = tuple(map(_division, zip(*found, strict=True), self._whole))
            rule = {**rule, RESULT: results[0] if len(results) == 1 else results}
            self.require(rule)
        except Exception:  # A stub may say anything of parts.
            return None
        return rule


def _is_float(value) -> bool:
    return isinstance(value, Tensor) and value.is_floating_point()


def _random(value):
    return torch.randn_like(value).requires_grad_() if _is_float(value) else value


def _dims_of(size: int, shapes) -> list[int]:
    """Return the dimensions of this size, the same in all tensors of a parameter."""
    count = min(map(len, shapes), default=0)
    return [dim for dim in range(count) if all(shape[dim] == size for shape in shapes)]


def _chunk(tensor: Tensor, dim: int, part: int) -> Tensor:
    if not -tensor.ndim <= dim < tensor.ndim or tensor.shape[dim] < _PARTS:
        raise AutodiffError(
            f"a tensor of the shape {tuple(tensor.shape)} has no two parts in dimension {dim}: "
            "give an example that has, or another rule"
        )
    return tensor.chunk(_PARTS, dim)[part]


def _joined(parts, whole: Tensor | None, divided):
    """Yield composed shards of results, and the expected values."""
    if whole is None:
        return
    if is_sum(divided):
        yield sum(parts), whole
    elif divided is None:
        yield from ((part, whole) for part in parts)
    else:
        for part, made in enumerate(parts):
            yield made, _chunk(whole, divided, part)


def _division(parts, whole: Tensor | None):
    """Return how shards of a result are composed."""
    if whole is None:
        return None
    for divided in (*range(whole.ndim), Partial(), None):
        try:
            for made, expected in _joined(parts, whole, divided):
                _compare(made, expected, "")
        except AutodiffError:
            continue
        return divided
    raise AutodiffError("parts make nothing of the whole result")


def _upstream(gradient: Tensor, divided, part: int) -> Tensor:
    """Return a shard's part of the gradient of a result."""
    if is_sum(divided):
        return gradient
    return gradient / _PARTS if divided is None else _chunk(gradient, divided, part)


def _gradients(results, args, upstream) -> tuple[Tensor, ...]:
    leaves = [t for t in tree_leaves(tuple(args)) if _is_float(t)]
    found = gradients_of(results, leaves, upstream)
    pairs = zip(leaves, found, strict=True)
    return tuple(torch.zeros_like(leaf) if g is None else g for leaf, g in pairs)


def _compare(found: Tensor, expected: Tensor, message: str) -> None:
    try:
        torch.testing.assert_close(found, expected)
    except AssertionError as error:
        raise AutodiffError(f"{message}. {error}") from None
