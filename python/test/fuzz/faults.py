"""Small programs whose gradients were wrong once, and the kinds of random programs they stand for.

Now they are right, or refused for a stated reason.
"""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, replace

from .choices import replayed
from .program import Buffer, Kernel, Program


@dataclass(frozen=True)
class Fault:
    """What was wrong, the kinds of programs that showed it, and one of these."""

    about: str
    kinds: tuple[str, ...]
    program: Program
    device: str = "cpu"
    # See `precision.TYPES`; in float64 on the CPU if there are none.
    types: str | None = None
    # Whether such programs have no gradient.
    refused: bool = False


def written(
    body: str, grid=(1,), lead: int = 0, n: int = 0, tables: dict | None = None, **sizes: int
) -> Program:
    """Return a program: inputs are x1, x2 …, outputs y1, y2 …, of so many elements.

    Copies w1, w2 …, which are not returned, are of another type, A.

    `n` is an argument of the kernel, and `lead` is what lies before x1 in memory. `tables` has
    integers by name.
    """
    k = Kernel(replayed([]), "kernel")
    roles = {"x": "input", "y": "raced", "w": "copy"}
    k.buffers = [
        Buffer(name, roles[name[0]], size, type="A" if name[0] == "w" else "M")
        for name, size in sizes.items()
    ]
    k.buffers[0].lead = lead
    for name, numbers in (tables or {}).items():
        k.buffers.append(Buffer(name, "table", numbers=numbers, type="torch.int32"))
    k.grid, k.scalars = grid, {"n": str(n)}
    k.lines = textwrap.indent(textwrap.dedent(body).strip(), "    ").splitlines()
    return k.finish()


def attention(mask: str, own: str, scores: str = "tl.dot(q, kt)") -> Program:
    """Return a softmax over two blocks of four keys, of three rows that count and one more."""
    return written(
        f"""
        i = tl.arange(0, 4)
        m1 = i < 3
        q = tl.load(x1 + i[:, None] * 4 + i[None, :])
        v1 = tl.full([4], float("-inf"), T)
        v2 = tl.zeros([4], T)
        v3 = tl.zeros([4, 4], T)
        for j in range(2):
            kt = tl.load(x2 + j * 16 + i[None, :] * 4 + i[:, None])
            v = tl.load(x3 + j * 16 + i[:, None] * 4 + i[None, :])
            s = {scores}
            seen = {mask}
            s1 = tl.maximum(v1, tl.max(seen, 1))
            s2 = tl.exp(v1 - s1)
            s3 = tl.exp(seen - s1[:, None])
            v3 = v3 * ({own})[:, None] + tl.dot(s3, v)
            v2 = v2 * s2 + tl.sum(s3, 1)
            v1 = s1
        tl.store(y1 + i[:, None] * 4 + i[None, :], v3 / v2[:, None], mask=m1[:, None])
        """,
        x1=16,
        x2=32,
        x3=32,
        y1=16,
    )


def chain(unless: str, asked: str) -> Program:
    """Return three programs that pack three of four elements, each behind the one before it."""
    return written(
        f"""
        p = tl.program_id(0)
        {unless}
            while {asked} == 0:
                pass
        k = tl.load(t2 + p)
        tl.store(t2 + p + 1, k + 3)
        tl.debug_barrier()
        tl.atomic_xchg(t1 + p + 1, 1)
        v1 = tl.load(x1 + p * 4 + tl.arange(0, 4))
        tl.store(y1 + k + tl.arange(0, 4), v1 * v1, mask=tl.arange(0, 4) < 3)
        """,
        grid=(3,),
        tables={"t1": [1, 0, 0, 0], "t2": [0, 0, 0, 0]},
        x1=12,
        y1=9,
    )


def short_product(m: int, n: int) -> Program:
    """Return a product of matrices of so many rows and columns, that sums over 16 elements."""
    return written(
        f"""
        i = tl.arange(0, 16)
        m = tl.arange(0, {m})
        n = tl.arange(0, {n})
        v1 = tl.load(x1 + m[:, None] * 16 + i[None, :])
        v2 = tl.load(x2 + i[:, None] * {n} + n[None, :])
        v3 = tl.dot(v1, v2, input_precision=P)
        tl.store(y1 + m[:, None] * {n} + n[None, :], v3)
        """,
        x1=m * 16,
        x2=16 * n,
        y1=m * n,
    )


FOUND = {
    "a summand chosen by a number": Fault(
        "ptxas computed a float64 product wrongly where a number chose what it was added to",
        ("summand chosen by a number",),
        written(
            """
            k1 = tl.program_id(0) * 16 + tl.arange(0, 16)[:, None]
            k2 = tl.arange(0, 16)[None, :]
            m1 = (k1 < n) & (k2 < n)
            v1 = tl.load(x1 + k1 * 16 + k2, mask=m1, other=0.5)
            v2 = tl.zeros([16, 16], T) + tl.exp(tl.load(x2))
            v3 = tl.dot(v1, tl.trans(v2), input_precision=P).to(T)
            v4 = tl.dot(tl.sigmoid(v3 * 0.1), v1, input_precision=P).to(T)
            tl.store(y1 + k1 * 16 + k2, v4, mask=m1)
            """,
            n=12,
            x1=256,
            x2=1,
            y1=256,
        ),
        "cuda",
        "float64",
    ),
    "a product stored by its values": Fault(
        "Triton rejected a float64 product of what a mask, saved as bytes, had chosen",
        ("product stored by its values",),
        written(
            """
            i = tl.arange(0, 16)[:, None] * 16 + tl.arange(0, 16)[None, :]
            v1 = tl.load(x1 + i)
            v2 = tl.dot(v1, tl.load(x2 + i), input_precision=P).to(T)
            v3 = tl.dot(tl.sigmoid(v2), v1, input_precision=P).to(T)
            tl.store(y1 + i, v3, mask=v2 > -0.5)
            """,
            x1=256,
            x2=256,
            y1=256,
        ),
        "cuda",
        "float64",
    ),
    "a read beyond a tensor": Fault(
        "the backward wrote beside the gradient",
        ("edge beyond a tensor",),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i)
            tl.store(y1 + i, v1 * v1, mask=i < n)
            """,
            n=5,
            x1=5,
            y1=8,
        ),
    ),
    "a read before a view": Fault(
        "what lies before it got no gradient",
        ("edge before a view",),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i - 2)
            tl.store(y1 + i, v1 * v1)
            """,
            lead=3,
            x1=8,
            y1=8,
        ),
    ),
    "a race": Fault(
        "the first program got the gradient, whichever was last",
        ("race of different numbers",),
        written("tl.store(y1, tl.load(x1 + tl.program_id(0)))", grid=(4,), x1=4, y1=1),
        refused=True,
    ),
    "an average": Fault(
        "a combiner that is not associative",
        ("combine average", "combine average of equals"),
        written(
            """
            i = tl.arange(0, 4)
            tl.store(y1, tl.reduce(tl.load(x1 + i), 0, c.average))
            """,
            x1=4,
            y1=1,
        ),
        refused=True,
    ),
    "permuted pairs": Fault(
        "a split of what was interleaved otherwise",
        ("layout permuted pairs",),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i)
            v2 = tl.load(x1 + i)
            v3 = tl.zeros([4, 4], T) + tl.load(x2 + tl.program_id(0))
            for j in range(0, n):
                v3 = v3 * 0.5
            v3 = v3 / (1.0 + tl.abs(v3)) - v3
            v4 = v3 * v1[:, None] + v2[None, :]
            v5 = tl.reshape(tl.interleave(v4, v3), (4, 2, 4))
            v6, v7 = tl.split(tl.permute(v5, (0, 2, 1)))
            at = tl.program_id(0) * 16 + i[:, None] * 4 + i[None, :]
            tl.store(y1 + at, v6 * v7, mask=i[None, :] < 3)
            """,
            grid=(2,),
            x1=4,
            x2=2,
            y1=32,
        ),
    ),
    "poison in its place": Fault(
        "what nobody stores got a gradient of its own if it is NaN",
        ("poison in its place",),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i)
            tl.store(y1 + i, v1 * v1, mask=i < 5)
            """,
            x1=8,
            y1=8,
        ),
    ),
    "poison elsewhere": Fault(
        "rows that nobody stores reached the gradients of others",
        ("poison elsewhere",),
        attention("tl.where(i[None, :] <= i[:, None], s, float('-inf'))", "s2"),
    ),
    "dead code in a softmax": Fault(
        "rows that see nothing reached the gradients of others",
        ("online softmax by dead code",),
        attention(
            "s + tl.where(m1[:, None] & (i[None, :] <= i[:, None]), 0.0, float('-inf'))",
            "v2 * 0 + s2",
        ),
    ),
    "decays in rows behind the last": Fault(
        "decays of rows that do not count reached the gradients of others",
        ("decay in rows of zero", "decay in rows of anything"),
        written(
            """
            i = tl.arange(0, 4)
            m1 = i < 3
            v1 = tl.where(m1, tl.load(x1 + i) - 800.0, 0.0)
            v2 = tl.exp(v1[:, None] - v1[None, :])
            v3 = tl.where(i[:, None] >= i[None, :], v2, 0.0)
            v4 = tl.load(x2 + i[:, None] * 4 + i[None, :], mask=m1[:, None], other=0.0)
            tl.store(y1 + i[:, None] * 4 + i[None, :], tl.dot(v3, v4), mask=m1[:, None])
            """,
            x1=4,
            x2=16,
            y1=16,
        ),
    ),
    "quotients of programs": Fault(
        "what programs read that store nothing reached the gradients of others",
        (),
        written(
            """
            i = tl.arange(0, 8)
            j = tl.arange(0, 4)
            v1 = tl.load(x1 + i[:, None] * 4 + j[None, :])
            k1 = tl.program_id(0) // 3 * 8 + i
            v2 = tl.load(x2 + k1[:, None] * 4 + j[None, :])
            k2 = tl.program_id(0) * 8 + i
            tl.store(y1 + k2, tl.sum(v1 * v2, 1), mask=k2 < n)
            """,
            grid=(6,),
            n=6,
            x1=32,
            x2=64,
            y1=48,
        ),
    ),
    "overwritten": Fault(
        "what a program stored and then overwrote reached gradients",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i)
            for t in range(2):
                tl.store(y1 + i, v1 * tl.sqrt(v1 - 8.0 + 12.0 * t))
            """,
            x1=4,
            y1=4,
        ),
    ),
    "rows of later programs": Fault(
        "a row was live if it was in programs that do not read it",
        (),
        written(
            """
            i = tl.arange(0, 4)[:, None]
            j = tl.arange(0, 2)[None, :]
            v1 = tl.zeros([4, 2], T)
            for t in range(tl.program_id(0) + 1):
                v2 = tl.load(x1 + t * 8 + i * 2 + j)
                v1 += v2 * tl.load(x2 + t * 2 + j)
            k1 = tl.program_id(0) * 4 + i
            tl.store(y1 + k1 * 2 + j, v1, mask=k1 < n)
            """,
            grid=(2,),
            n=6,
            x1=16,
            x2=4,
            y1=16,
        ),
    ),
    "a mask that ends later": Fault(
        "a mask of the same lanes counted as the one that was needed, whatever its end",
        (),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i, mask=i < 6, other=0.0)
            tl.store(y1 + i, v1 * v1, mask=i < 5)
            v2 = tl.load(x2 + tl.arange(0, 1))
            tl.store(y2 + i, tl.exp(v1) * v2, mask=i < 5)
            """,
            x1=8,
            x2=1,
            y1=8,
            y2=8,
        ),
    ),
    "saved by a forward that reads more": Fault(
        "what the forward saved was taken for finite because the backward would not have read it",
        (),
        written(
            """
            i = tl.arange(0, 4)[:, None]
            j = tl.arange(0, 4)[None, :]
            k1 = tl.program_id(0) * 4 + i
            v1 = tl.zeros([4, 4], T)
            for t in range(tl.program_id(0) + 1):
                v1 += tl.load(x1 + t * 16 + i * 4 + j)
            tl.store(y1 + k1 * 4 + j, tl.sin(v1), mask=k1 < n)
            """,
            grid=(2,),
            n=6,
            x1=32,
            y1=32,
        ),
    ),
    "a factor of all that is read": Fault(
        "a factor of the gradient was computed in the forward without a selection that the "
        "backward's mask stood for",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.zeros([4], T)
            for t in range(n):
                v1 += tl.load(x1 + t * 4 + i)
            v2 = tl.where(i < 2, tl.load(x2 + i), 0.0)
            tl.store(y1 + i, tl.sin(v1) * v2)
            """,
            n=3,
            x1=12,
            x2=4,
            y1=4,
        ),
        types="bfloat16",
    ),
    "a loop that does not run": Fault(
        "what only its iterations ask for reached the gradients of others",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i)
            v2 = v1 * tl.load(x2 + i)
            tl.store(y1 + i, v1)
            for t in range(1, n):
                tl.store(y2 + t * 4 + i, v2)
            """,
            n=1,
            x1=4,
            x2=4,
            y1=4,
            y2=8,
        ),
    ),
    "the last iteration": Fault(
        "what only a next iteration asks for reached the gradients of others",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i)
            for t in range(n):
                tl.store(y1 + t * 4 + i, v1)
                v1 = v1 * tl.load(x2 + t * 4 + i)
            """,
            n=2,
            x1=4,
            x2=8,
            y1=8,
        ),
    ),
    "an output without lanes": Fault(
        "a launch that stores no lane of one output reached the gradients of another",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1)
            tl.store(y1, v1)
            v2 = tl.zeros([4], T) + v1 * tl.load(x2)
            tl.store(y2 + i, v2, mask=i < n)
            """,
            n=0,
            x1=1,
            x2=1,
            y1=1,
            y2=4,
        ),
    ),
    "rows of later iterations": Fault(
        "a loop counter counted as one that reaches every row",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i)
            for t in range(n):
                v2 = tl.load(x2 + t)
                tl.store(y1 + t, tl.sum(tl.where(i <= t, v1 * v2, 0.0)))
            """,
            n=2,
            x1=4,
            x2=2,
            y1=2,
        ),
    ),
    "rows of programs whose loop does not run": Fault(
        "a loop that runs in one program counted as one that runs in all",
        (),
        written(
            """
            i = tl.arange(0, 4)
            t = tl.program_id(0)
            v1 = tl.load(x1 + i, mask=i < tl.num_programs(0), other=0.0)
            v2 = tl.zeros([4], T)
            for u in range(t, n):
                v2 += tl.where(i <= t, v1 * tl.load(x2 + u), 0.0)
            tl.store(y1 + t * 4 + i, v2)
            """,
            grid=(4,),
            n=2,
            x1=4,
            x2=2,
            y1=16,
        ),
    ),
    "one element": Fault(
        "what is combined with nothing reached the gradient of others",
        (),
        written(
            """
            i = tl.arange(0, 1)
            v1, v2 = tl.reduce((tl.load(x1 + i), tl.load(x2 + i)), 0, c.complex_product)
            tl.store(y1, v1)
            v3, v4 = tl.associative_scan((tl.load(x3 + i), tl.load(x4 + i)), 0, c.complex_product)
            tl.store(y2 + i, v3)
            """,
            x1=1,
            x2=1,
            x3=1,
            x4=1,
            y1=1,
            y2=1,
        ),
    ),
    "few columns": Fault(
        "the adjoint of a product summed over an axis that matrix units do not take",
        tuple(f"product with N of {n}" for n in (1, 2, 4, 8)),
        short_product(16, 2),
        "cuda",
        "bfloat16",
    ),
    "few rows": Fault(
        "the adjoint of a product summed over an axis that matrix units do not take",
        tuple(f"product with M of {m}" for m in (1, 2, 4, 8)),
        short_product(2, 16),
        "cuda",
        "bfloat16",
    ),
    "the largest of sums": Fault(
        "threads had other copies of a sum than that which the maximum was made of",
        ("reduce max", "reduce sum"),
        written(
            """
            i = tl.arange(0, 8)[:, None] * 32 + tl.arange(0, 32)[None, :]
            v1 = tl.sum(tl.load(x1 + i) * tl.load(x2 + i), 1)
            tl.store(y1, tl.max(v1, 0))
            """,
            x1=256,
            x2=256,
            y1=1,
        ),
        "cuda",
        "float32",
    ),
    "a maximum in two layouts": Fault(
        "the largest of sums was looked for in a copy that another layout had summed",
        ("reduce max", "reduce sum"),
        written(
            """
            r = tl.arange(0, 2)
            k = (1 - r)[:, None, None] + (r // 2)[None, :, None] * 2
            v1 = tl.load(x1 + k + tl.arange(0, 16)[None, None, :] * 4)
            v2, v3 = tl.split(tl.reshape(v1, [2, 2, 8, 2]))
            v4 = tl.sum(tl.sum(tl.interleave(v3, v2), 2) * 0.16666666666666666, 0)
            v5 = v4 / (1.0 + tl.abs(v4))
            if n > 0:
                v5 = v4
            tl.store(y1, tl.max(v5, 0))
            """,
            x1=64,
            y1=1,
        ),
        "cuda",
        "float32",
    ),
    "iterations of some programs": Fault(
        "a loop runs in programs whose lanes are dead, told by another digit than the mask's",
        ("shared loops",),
        written(
            """
            p = tl.program_id(0)
            k = p // 2
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + k * 8 + i)
            v2 = tl.zeros([8], T)
            for j in range(k + 1):
                v2 += v1 * tl.load(x2 + j * 16 + i)
            tl.store(y1 + p * 8 + i, v2, mask=p * 8 + i < 7)
            """,
            grid=(6,),
            x1=24,
            x2=48,
            y1=48,
        ),
    ),
    "a lane that decides": Fault(
        "lanes were not read of which a selection depends, but nothing that is differentiated",
        ("statement store of a part",),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i)
            tl.store(y1 + i, v1, mask=i < n)
            tl.store(y2 + i, tl.where(v1 > 0.1, tl.load(x2 + i), tl.load(x3 + i)))
            """,
            n=3,
            x1=8,
            x2=8,
            x3=8,
            y1=8,
            y2=8,
        ),
    ),
    "a lane that branches": Fault(
        "lanes were not read by which a branch is taken that stores",
        ("statement store of a part",),
        written(
            """
            for i in range(tl.program_id(0), 4, tl.num_programs(0)):
                v1 = tl.load(x1 + i)
                if v1 > -0.4:
                    tl.store(y1 + i, tl.load(x2 + i))
                tl.store(y2 + i, v1, mask=i < n)
            """,
            n=0,
            x1=4,
            x2=4,
            y1=4,
            y2=4,
        ),
    ),
    "an index that is found again": Fault(
        "a backward found the largest of equal sums elsewhere than the forward",
        ("reduce pair", "reduce sum"),
        written(
            """
            r = tl.arange(0, 2)
            for i in range(tl.program_id(0), n, tl.num_programs(0)):
                k = (1 - r)[:, None, None] + (r // 2)[None, :, None] * 2
                v1 = tl.load(x1 + k + tl.arange(0, 16)[None, None, :] * 4)
                v2, v3 = tl.split(tl.reshape(v1, [2, 2, 8, 2]))
                v4 = tl.sum(tl.sum(tl.interleave(v3, v2), 2) * 0.16666666666666666, 0)
                v5, k1 = tl.max(v4 / (1.0 + tl.abs(v4)), 0, return_indices=True)
                tl.store(y1 + i, v5)
                tl.store(y2 + i, tl.load(x2 + k1))
            """,
            n=1,
            x1=64,
            x2=2,
            y1=1,
            y2=1,
        ),
        "cuda",
        "float32",
    ),
    "a record in a branch": Fault(
        "what a loop in a branch recorded was read before",
        ("carried general",),
        written(
            """
            if tl.program_id(0) < n:
                v1 = tl.load(x1)
                for i in range(tl.load(x2).to(tl.int32), tl.load(x2).to(tl.int32) + 1):
                    v1 = tl.maximum(tl.sin(v1), tl.load(x3))
                tl.store(y1 + tl.program_id(0), v1 * v1)
            """,
            grid=(2,),
            n=1,
            x1=1,
            x2=1,
            x3=1,
            y1=2,
        ),
    ),
    "a loop that begins at another's number": Fault(
        "the compiler crashed where an inner loop counts from a program's number and an outer loop",
        ("loop over the grid",),
        written(
            """
            for i in range(tl.program_id(0), 3, tl.num_programs(0)):
                v1 = tl.load(x1 + i)
                for j in range(i + tl.program_id(1), i + tl.program_id(1) + n):
                    v1 += tl.sin(tl.load(x2 + j))
                tl.store(y1 + tl.program_id(1) * 3 + i, v1)
            """,
            grid=(2, 2),
            n=2,
            x1=3,
            x2=5,
            y1=6,
        ),
    ),
    "a count": Fault(
        "what no float of an input reaches had a history",
        ("steady count", "steady place", "steady mask"),
        replace(
            written(
                """
                i = tl.arange(0, 8)
                v1 = tl.load(x1 + i)
                tl.store(y1 + i, v1 * tl.sum((v1 > 0.1).to(T), 0))
                tl.store(y2, tl.sum((v1 > 0.1).to(T), 0))
                tl.store(y3, 0.0 * tl.load(x2))
                """,
                x1=8,
                x2=1,
                y1=8,
                y2=1,
                y3=1,
            ),
            histories={"y2": [], "y3": ["x2"]},
        ),
    ),
    "a number below zero": Fault(
        "a mask that leaves out iterations below zero was taken for one that always holds",
        ("shared loop from below zero",),
        written(
            """
            v1 = tl.zeros([4], T)
            for i in range(tl.program_id(0) - 2, tl.program_id(0) + n):
                k = (i + 2) * 4 + tl.arange(0, 4)
                v2 = tl.load(x1 + k, mask=(tl.arange(0, 4) < 4) & (i >= 0), other=0.0)
                v1 += tl.sin(v2)
            tl.store(y1 + tl.program_id(0) * 4 + tl.arange(0, 4), v1)
            """,
            n=1,
            x1=12,
            y1=4,
        ),
    ),
    "a wait in a branch": Fault(
        "what is loaded behind a wait was read from a snapshot made before the launch",
        ("wait in branch", "wait by add"),
        chain("if p > 0:", "tl.atomic_add(t1 + p, 0)"),
    ),
    "a wait by volatile loads": Fault(
        "the backward waited, too, for flags that nobody set",
        ("wait in branch", "wait by volatile"),
        chain("if p > 0:", "tl.load(t1 + p, volatile=True)"),
    ),
    "a wait in a loop": Fault(
        "what is loaded behind a loop with a wait was read from a snapshot",
        ("wait in loop", "wait by compare and swap"),
        chain("for i in range(p):", "tl.atomic_cas(t1 + p, 1, 1)"),
    ),
    "a rounded statistic": Fault(
        "what a program had stored in fewer bits was read back in place of what it had computed",
        ("copy of a statistic", "copy of a sum"),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + tl.program_id(0) * 8 + i)
            v2 = tl.rsqrt(tl.sum(v1 * v1, 0) / 8 + 0.1)
            tl.store(w1 + tl.program_id(0), v2)
            v3 = v1 * v2
            tl.store(y1 + tl.program_id(0) * 8 + i, v3)
            """,
            grid=(3,),
            x1=24,
            w1=1,
            y1=24,
        ),
        types="float32",
    ),
    "rounded states": Fault(
        "what a loop had stored in fewer bits was read back in place of what it had carried",
        ("copies of states",),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i)
            for j in range(4):
                v2 = tl.load(x2 + j * 8 + i)
                v1 = v1 * v2 + v2
                tl.store(w1 + j * 8 + i, v1)
            v3 = v1 * 0.5
            tl.store(y1 + i, v3)
            """,
            x1=8,
            x2=32,
            w1=32,
            y1=8,
        ),
        types="float32",
    ),
    "rows past the end": Fault(
        "gradients of rows that are loaded without a mask, and not stored, were written elsewhere",
        ("rows without a mask", "tiles in order of groups", "product with itself"),
        written(
            """
            p = tl.program_id(0)
            height = tl.minimum(3 - p // 4 * 2, 2)
            i = (p // 4 * 2 + p % 4 % height) * 2 + tl.arange(0, 2)
            j = p % 4 // height * 2 + tl.arange(0, 2)
            k = tl.arange(0, 4)
            v1 = tl.zeros([2, 2], T)
            for s in range(n):
                v2 = tl.load(x1 + i[:, None] * 8 + s * 4 + k[None, :])
                v3 = tl.load(x2 + j[None, :] * 8 + s * 4 + k[:, None])
                v1 = tl.dot(v2, v3, v1, input_precision=P, out_dtype=T)
            tl.store(y1 + i[:, None] * 4 + j[None, :], v1, mask=(i[:, None] < 5) & (j[None, :] < 4))
            """,
            grid=(6,),
            n=2,
            x1=40,
            x2=32,
            y1=20,
        ),
    ),
    "floats by their bits": Fault(
        "floats that are chosen or exchanged by arithmetic on their bits were refused",
        ("layout exchange by bits", "function of two chosen by bits"),
        written(
            """
            i = tl.arange(0, 8)
            v1 = tl.load(x1 + i)
            v2 = c.exchanged_by_bits(v1 * tl.sin(v1))
            v3 = c.chosen_by_bits(v2, tl.load(x2 + i), v2 > 0.1)
            tl.store(y1 + i, v3 * c.negated_by_bits(c.abs_by_bits(v1)))
            """,
            x1=8,
            x2=8,
            y1=8,
        ),
    ),
}
