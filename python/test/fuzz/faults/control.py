"""Programs whose loops, branches and lanes decide what runs."""

from __future__ import annotations

from .fault import Fault, written

FOUND = {
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
}
