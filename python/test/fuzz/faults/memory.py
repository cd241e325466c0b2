"""Programs that read or write where others do, or beside their tensors."""

from __future__ import annotations

from ..program import Program
from .fault import Fault, written


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


FOUND = {
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
    "mirrored tiles that overlap": Fault(
        "tiles of a symmetric product that are not square, and stored twice, were refused",
        ("mirrored tiles that overlap", "tiles left out below"),
        written(
            """
            p, q = tl.program_id(0), tl.program_id(1)
            if q * 2 + 2 <= p * 4:
                return
            i = p * 4 + tl.arange(0, 4)
            j = q * 2 + tl.arange(0, 2)
            k = tl.arange(0, 4)
            v1 = tl.zeros([4, 2], T)
            for s in range(n):
                v2 = tl.load(x1 + i[:, None] * 8 + s * 4 + k[None, :])
                v3 = tl.load(x1 + j[None, :] * 8 + s * 4 + k[:, None])
                v1 = tl.dot(v2, v3, v1, input_precision=P, out_dtype=T)
            m1 = (i[:, None] < 7) & (j[None, :] < 7)
            tl.store(y1 + i[:, None] * 7 + j[None, :], v1, mask=m1)
            tl.store(y1 + j[:, None] * 7 + i[None, :], tl.trans(v1), mask=tl.trans(m1))
            """,
            grid=(2, 4),
            n=2,
            x1=64,
            y1=49,
        ),
    ),
}
