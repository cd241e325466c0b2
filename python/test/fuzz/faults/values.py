"""Programs whose values are rounded, counted, or made of bits."""

from __future__ import annotations

from dataclasses import replace

from .fault import Fault, written

FOUND = {
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
