"""Programs that sum and combine: products, reductions, and the layouts that they need."""

from __future__ import annotations

from ..program import Program
from .fault import Fault, written


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
    "a product with one number": Fault(
        "ptxas left out a product, one factor of which is the same in all threads",
        ("product of M", "broadcast of a scalar", "decay in rows all"),
        written(
            """
            i = tl.arange(0, 4)
            p = tl.program_id(1) * 2 + tl.program_id(0)
            k = tl.load(t1 + p)
            m1 = (i[None, :] >= 0) & (p > 1)
            k1 = tl.load(t2 + tl.arange(0, 2))[:, None] * 7 + (i % 2)[None, :]
            k1 = k1 + tl.program_id(1) * 2
            v18 = tl.load(x1 + k1).to(T)
            v19 = tl.where(m1, v18, 0.0)
            j = tl.arange(0, 32)
            v32 = tl.load(x2 + j, mask=j < 32, other=0.0).to(T) * 0.5 - 800.0
            v33 = tl.where(j[:, None] >= j[None, :], tl.exp(v32[:, None] - v32[None, :]), 0.0)
            v35 = tl.sin(tl.where(m1, v18, 0.5))
            v36 = tl.reduce(v35, 0, c.multiply)
            v37, k2 = tl.reduce((v36, i), 0, c.larger_pair)
            v41 = tl.dot(v33, tl.broadcast_to(v37, [32, 2]), input_precision=P).to(T)
            v43 = tl.min(v41 / (1.0 + tl.abs(v41)), 1)
            v45 = tl.max(tl.where(j < 32, v43, 0.5), 0)
            v48 = tl.fma(tl.broadcast_to(v37, [2, 4]), v19, v37)
            v51 = tl.cumsum((tl.program_id(1) * 1).to(T) * 0.25 + tl.zeros([4], T), 0)
            tl.store(y1 + k * 17 + p * 4 + i, v51)
            v55 = tl.exp(v35 - tl.max(v35, 0, keep_dims=True))
            v56 = v55 / tl.sum(v55, 0, keep_dims=True)
            k58 = (p ^ 1) % 3
            v59 = tl.full([4], -9.0, T)
            v60 = tl.zeros([4], T)
            v61 = tl.zeros([4], T)
            v62 = tl.broadcast_to(v56[None, :, :], [2, 2, 4])
            v63 = v62
            for s in range(k58, k58 + k58 * 3, n):
                v89, k90 = tl.max(tl.sum(v62, 2), 0, return_indices=True)
                v92 = tl.cos(tl.broadcast_to(v89[None, :], [4, 2]) * 0.5)
                s93 = tl.maximum(v59, tl.max(v92, 1))
                s94 = tl.exp(v92 - s93[:, None])
                s95 = tl.exp(v59 - s93)
                s96 = v60 * 0 + s95
                v60 = v60 * s95 + tl.sum(s94, 1)
                v61 = v61 * s96 + tl.sum(s94 * v92, 1)
                v59 = s93
                v63 = tl.minimum(tl.maximum(v62 - tl.max(v62, 0, keep_dims=True), -0.9973), 0.9973)
            v99 = v61 / tl.maximum(v60, 0.01)
            v108 = tl.cos(tl.sum(tl.max(v63, 2), 1)[:, None] * 0.5)
            v111 = v55 + v45 + v48 + v51[None, :] + v108 + v99[None, :]
            tl.store(y1 + k * 17 + tl.arange(0, 2)[:, None] + i[None, :] * 5, v111)
            """,
            grid=(2, 2),
            n=3,
            tables={"t1": [3, 0, 2, 1], "t2": [0, 0]},
            x1=11,
            x2=32,
            y1=68,
        ),
        "cuda",
        "float64",
    ),
}
