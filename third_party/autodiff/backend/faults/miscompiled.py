"""Finds reductions that Triton lowers wrongly in TTGIR, and repairs them there.

A layout says, for each bit of a lane's and of a warp's number, by how much it moves in the tile.
Before 3.8, Triton's lowering of `tt.reduce` assumes that the bits along one axis are consecutive.
It combines lanes whose numbers differ in as many bits as there are along the axis, from the first
such bit on. `reshape` and `trans` turn the layout of a load into a `#ttg.linear` one, where this
need not hold. In `lane = [[0, 4], [1, 0], [2, 0], [0, 1], [0, 2]]`, bits 0, 3 and 4 are along axis
1, but lanes are combined that differ in bits 0, 1 and 2. If warps share the axis, partial results
go through shared memory, whose addresses make the same assumption; then some are read that were
never written.

The repair is a layout in which just the order of these bits is different. The tile is converted to
it and reduced, and the result is converted back.
"""

from __future__ import annotations

import json
import re
import warnings

import triton

from ..errors import Miscompiled
from ..plans.cache import write_ir
from ..support.places import lines_of
from .table import fault

_FAULT = fault("reduced-lanes")
AFFECTED = _FAULT.affects(triton.__version__)

_REDUCE = re.compile(
    r'^(?P<indent> *)(?P<name>%[\w$.-]+)(?P<count>:\d+)? = "tt\.reduce"\((?P<operands>[^)]*)\)'
    r" <\{axis = (?P<axis>\d+) : i32(?P<properties>[^}]*)\}> \(\{\n(?P<body>.*?)^(?P=indent)\}\)"
    r"(?P<attributes>(?: \{[^\n]*?\})?) : \((?P<types>[^\n]*?)\) -> (?P<results>[^\n]*?)"
    r"(?P<location> loc\([^\n]*\))?\n",
    re.MULTILINE | re.DOTALL,
)
_LINEAR = re.compile(r"^(#\w+) = (#ttg\.linear<.*>)$", re.MULTILINE)
_SLICE = re.compile(r"#ttg\.slice<\{dim = (\d+), parent = (.*)\}>")
_BASES = re.compile(r"(\w+) = (\[.*?\])(?=, \w+ = |\})")


# --------------------------------------------------------------------------------------------
# Layouts
# --------------------------------------------------------------------------------------------


def _bases(encoding: str, linear: dict) -> dict | None:
    """Return the step of each bit, by what the number counts (lane, warp, …).

    None for layouts that are not linear: there, the bits along an axis are consecutive.
    """
    if sliced := _SLICE.fullmatch(encoding):
        axis, parent = int(sliced[1]), _bases(sliced[2], linear)
        return parent and {
            kind: [step[:axis] + step[axis + 1 :] for step in steps]
            for kind, steps in parent.items()
        }
    encoding = linear.get(encoding, encoding)
    if not encoding.startswith("#ttg.linear<"):
        return None
    return {kind: json.loads(steps) for kind, steps in _BASES.findall(encoding)}


def _axes(steps) -> list[int | None]:
    """Return the axis along which each bit moves, None for a bit that does not move."""
    return [next((axis for axis, by in enumerate(step) if by), None) for step in steps]


def _scattered(steps, axis: int) -> bool:
    """Return whether bits along an axis are not consecutive."""
    places = [place for place, along in enumerate(_axes(steps)) if along == axis]
    return bool(places) and places[-1] - places[0] >= len(places)


def _misnumbered(steps, axis: int) -> bool:
    """Return whether Triton mistakes other bits for those along an axis when it computes addresses.

    Of the bits that move, it takes the lowest ones for those along the first axis, the next ones
    for those along the second, and so on.
    """
    axes = [along for along in _axes(steps) if along is not None]
    assumed = sorted(axes, key=axes.index)
    return [along == axis for along in axes] != [along == axis for along in assumed]


def _is_wrong(bases: dict, axis: int) -> bool:
    """Return whether Triton reduces a tile of this layout wrongly along an axis."""
    if _scattered(bases["lane"], axis):
        return True
    shared = axis in _axes(bases["warp"])
    return shared and any(_misnumbered(bases[kind], axis) for kind in ("lane", "warp"))


def _in_order(steps, axis: int) -> list:
    """Return bits in an order that the lowering expects; unchanged if they are in such an order."""
    if not (_scattered(steps, axis) or _misnumbered(steps, axis)):
        return steps
    axes = _axes(steps)
    order = [along for along in dict.fromkeys(axes) if along is not None]
    return [
        step
        for group in (*order, None)
        for step, along in zip(steps, axes, strict=True)
        if along == group
    ]


def _reordered(bases: dict, axis: int) -> str:
    """Return the layout with lanes and warps numbered so that it is reduced correctly."""
    changed = {kind: _in_order(bases[kind], axis) for kind in ("lane", "warp")}
    shown = (f"{kind} = {json.dumps(steps)}" for kind, steps in {**bases, **changed}.items())
    return f"#ttg.linear<{{{', '.join(shown)}}}>"


# --------------------------------------------------------------------------------------------
# TTGIR
# --------------------------------------------------------------------------------------------


def _types(text: str) -> list[str]:
    """Return the types in a list, with or without parentheses."""
    return re.findall(r"tensor<.*?>(?=, tensor<|\)|$)|\w+", text)


def _with_layout(type_: str, layout: str) -> str:
    """Return a tile's type with another layout; a scalar stays as it is."""
    return f"{type_.split(', ', 1)[0]}, {layout}>" if type_.startswith("tensor<") else type_


def _wrong(ttgir: str):
    """Yield the reductions that Triton lowers wrongly, each with a layout that it lowers
    correctly.
    """
    linear = dict(_LINEAR.findall(ttgir))
    for found in _REDUCE.finditer(ttgir) if linear else ():
        layout = _types(found["types"])[0].split(", ", 1)[1][:-1]
        bases, axis = _bases(layout, linear), int(found["axis"])
        if bases and _is_wrong(bases, axis):
            yield found, _reordered(bases, axis)


def find_wrong(ttgir: str) -> list[str]:
    """Return the lines of the user's file with reductions that Triton lowers wrongly."""
    return lines_of(ttgir, (reduction["location"] or "" for reduction, _ in _wrong(ttgir)))


def _reduce_in(layout: str, found) -> tuple[str, dict]:
    """Return a reduction with tiles converted to `layout`, and results converted back.

    Also returns the new names of the results, by the old ones.
    """
    indent, name, axis = found["indent"], found["name"], found["axis"]
    count, end = found["count"] or "", (found["location"] or "") + "\n"
    lines, renamed = [], {}

    def convert(result, value, old, new):
        lines.append(f"{indent}{result} = ttg.convert_layout {value} : {old} -> {new}{end}")

    types, results = _types(found["types"]), _types(found["results"])
    operands = [f"%operand{index}.{name[1:]}" for index in range(len(types))]
    own_types = [_with_layout(type_, layout) for type_ in types]
    sliced = f"#ttg.slice<{{dim = {axis}, parent = {layout}}}>"
    own_results = [_with_layout(type_, sliced) for type_ in results]
    for each in zip(operands, found["operands"].split(", "), types, own_types, strict=True):
        convert(*each)
    lines.append(
        f'{indent}{name}{count} = "tt.reduce"({", ".join(operands)}) <{{axis = {axis} : i32'
        f"{found['properties']}}}> ({{\n{found['body']}{indent}}}){found['attributes']} : "
        f"({', '.join(own_types)}) -> ({', '.join(own_results)}){end}"
    )
    for index, (own, type_) in enumerate(zip(own_results, results, strict=True)):
        if own != type_:
            value = f"{name}#{index}" if count else name
            renamed[value] = f"%result{index}.{name[1:]}"
            convert(renamed[value], value, own, type_)
    return "".join(lines), renamed


def mended(ttgir: str) -> str:
    """Return equivalent TTGIR with reductions that Triton lowers correctly."""
    while (wrong := next(_wrong(ttgir), None)) is not None:
        found, layout = wrong
        text, renamed = _reduce_in(layout, found)
        rest = ttgir[found.end() :]
        # A name is valid to the end of its block; sibling blocks may use it, too.
        outside = re.search(rf"^ {{0,{len(found['indent']) - 1}}}\S", rest, re.MULTILINE).start()
        block = rest[:outside]
        for old, new in renamed.items():
            block = re.sub(rf"{re.escape(old)}(?![\w$.#-])", new, block)
        ttgir = ttgir[: found.start()] + text + block + rest[outside:]
    return ttgir


# --------------------------------------------------------------------------------------------
# Kernels
# --------------------------------------------------------------------------------------------


def ensure_right(compiled, translate):
    """Return a derived kernel as Triton has compiled it, or compiled again from repaired TTGIR.

    `translate` compiles a file.
    """
    if not AFFECTED or not find_wrong(compiled.asm.get("ttgir", "")):
        return compiled
    stages = compiled.asm
    text = mended(stages["ttgir"])
    compiled = translate(write_ir(text, compiled.metadata.name, "ttgir"))
    # The new kernel has gone through the earlier stages, too.
    compiled.asm.setdefault("ttir", stages.get("ttir"))
    left = find_wrong(compiled.asm["ttgir"])
    if left:
        raise Miscompiled(
            f"Triton {triton.__version__} computes reductions of the generated kernel "
            f"{compiled.metadata.name!r} wrongly ({', '.join(left)}), a fault of its layouts of "
            f"tiles that are reshaped or transposed: use Triton {_FAULT.right} or newer"
        )
    return compiled


def warn_of_wrong(compiled, name: str) -> None:
    """Warn if Triton lowers a reduction of the user's own kernel wrongly."""
    wrong = find_wrong(compiled.asm.get("ttgir", "")) if AFFECTED else ()
    if wrong:
        warnings.warn(
            f"Triton {triton.__version__} computes a reduction in kernel {name!r} wrongly, at "
            f"{', '.join(wrong)}: it combines other elements than those along the axis, because "
            "the tile is loaded along another axis, then reshaped or transposed. Its gradient is "
            "that of what is written there. Reduce before the tile is reshaped, or use Triton "
            f"{_FAULT.right} or newer",
            stacklevel=2,
        )
