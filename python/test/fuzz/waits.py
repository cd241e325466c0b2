"""Kernels whose programs wait for one another, and hand on where the next one is to pack."""

from __future__ import annotations

from .grids import LIMIT, scaled_linearly, smooth
from .integers import entries
from .program import LARGEST, Buffer, Kernel

# Ways to ask for a flag.
ASKING = {
    "add": "tl.atomic_add({flag}, 0)",
    "compare and swap": "tl.atomic_cas({flag}, 1, 1)",
    "volatile": "tl.load({flag}, volatile=True)",
}


def integers(k: Kernel, numbers: list[int], type: str = "torch.int32") -> Buffer:
    """Return memory that holds these numbers before each launch."""
    buffer = k.buffer("table")
    buffer.numbers, buffer.type = numbers, type
    return buffer


def wait(k: Kernel, flag: str) -> None:
    """Write a loop that ends when the flag is set."""
    # On a GPU, a volatile load orders no loads behind it.
    ways = {way: 1 for way in ASKING if not (k.on_gpu and way == "volatile")}
    asked = ASKING[k.kind("wait by", ways)].format(flag=flag)
    k.emit(f"while {asked} == 0:")
    with k.block():
        k.emit("pass")


def chained(k: Kernel) -> None:
    """Write the body of a kernel of which each program packs its part behind those before it."""
    programs = k.choices.between(1, 4)
    k.grid = (programs,)
    p = k.define("tl.program_id(0)", "i", (), 0, programs - 1, "pid").text
    lanes = f"tl.arange(0, {k.columns})"
    lengths = [k.choices.below(k.columns + 1) for _ in range(programs)]
    own = integers(k, lengths)
    length = k.integer(entries(k, own.name, p), (), 0, k.columns).text
    flags = integers(k, [1] + [0] * programs)
    # Whatever is handed on was not there before the launch.
    type = k.choices.pick(["torch.int32", "torch.int32", "torch.int64"])
    places = integers(k, [0] + [k.choices.below(2) for _ in range(programs)], type)
    early = k.choices.chance(50)
    v = smooth(k, _loaded(k, f"{p} * {k.columns} + {lanes}", programs)) if early else None
    where = k.kind("wait in", {"branch": 3, "open": 2, "loop": 1})
    if where == "open":
        wait(k, f"{flags.name} + {p}")
    else:
        k.emit(f"if {p} > 0:" if where == "branch" else f"for {k.fresh('i')} in range({p}):")
        with k.block():
            wait(k, f"{flags.name} + {p}")
    total = sum(lengths)
    begin = k.integer(entries(k, places.name, p), (), 0, total).text
    end = k.integer(f"{begin} + {length}", (), 0, total).text
    k.emit(f"tl.store({places.name} + {p} + 1, {end})")
    k.emit("tl.debug_barrier()")
    k.emit(f"tl.atomic_xchg({flags.name} + {p} + 1, 1)")
    if v is None:
        v = smooth(k, _loaded(k, f"{p} * {k.columns} + {lanes}", programs))
    if k.maybe("load at a place handed on", 50):
        other = smooth(k, _loaded(k, f"{begin} + {lanes}", programs + 1))
        bound = v.size * other.size
        v = k.floating(f"{v.text} * {other.text}", v.shape, -bound, bound)
    if k.maybe("loop up to a place handed on", 30):
        i = k.fresh("i")
        total_name = k.floating(f"tl.zeros([{k.columns}], T)", v.shape, 0.0, 0.0).text
        source = k.buffer("input")
        source.size = max(total, 1) * k.columns
        k.emit(f"for {i} in range({begin}, {end}):")
        with k.block():
            k.emit(f"{total_name} += tl.load({source.name} + {i} * {k.columns} + {lanes}).to(T)")
        bound = v.size + k.columns * LARGEST
        v = k.floating(f"{v.text} + {total_name} * {total_name}", v.shape, -(bound**2), bound**2)
    v = scaled_linearly(k, v, LIMIT)
    output = k.buffer("output")
    output.size = k.columns
    k.emit(f"tl.store({output.name} + {begin} + {lanes}, {v.text}, mask={lanes} < {length})")


def _loaded(k: Kernel, where: str, blocks: int):
    """Load a row of an input."""
    source = k.buffer("input")
    source.size = blocks * k.columns
    return k.floating(f"tl.load({source.name} + {where}).to(T)", (k.columns,), -LARGEST, LARGEST)
