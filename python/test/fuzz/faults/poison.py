"""Programs that read what does not count: NaN there reached gradients."""

from __future__ import annotations

from ..program import Program
from .fault import Fault, written


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


FOUND = {
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
    "a value that decides a number": Fault(
        "a value counted where a number came of it, by a comparison or as an index",
        ("value that decides",),
        written(
            """
            i = tl.arange(0, 4)
            v1 = tl.load(x1 + i) * tl.load(x2 + i)
            k1 = tl.argmax(tl.reshape(v1, [4, 1]), 1)
            v2 = tl.load(x3 + i) + k1.to(T) + (v1 > 0.1).to(T) * 0.0
            if n > 0:
                v2 = v1
            tl.store(y1 + i, v2)
            """,
            n=0,
            x1=4,
            x2=4,
            x3=4,
            y1=4,
        ),
    ),
    "a result that is not stored": Fault(
        "what one result of a reduction is computed from reached the gradient of another one",
        (),
        written(
            """
            i = tl.arange(0, 4)
            v1, v2 = tl.load(x1 + i), tl.load(x2 + i)
            v3, v4 = tl.reduce((v1, v2), 0, c.linear_recurrence)
            tl.store(y1, v3)
            tl.store(y2, v4, mask=n > 0)
            """,
            n=0,
            x1=4,
            x2=4,
            y1=1,
            y2=1,
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
}
