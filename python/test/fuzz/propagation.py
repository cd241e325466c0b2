"""Programs whose maxima and minima pass NaN on, and whose stores do not overwrite it.

The place of a maximum is another one where there is a NaN, as it is on some devices.

What has no effect there has none because masks, selections and branches leave it out.
"""

from __future__ import annotations

import dataclasses
import re

from .program import Program

FLOAT = re.compile(r" *[vs]\d+(, [a-z]+\d+)* [+-]?= ")
PLACES = re.compile(r"\btl\.(argmax|argmin)\(")
FUNCTIONS = re.compile(r"\btl\.(maximum|minimum|clamp|max|min|sort)\(")
COMBINERS = re.compile(r"\bc\.(maximum|minimum|larger_pair|soft_maximum)\b")


def passing_nan(program: Program) -> Program:
    """Return the program, but for NaN, which nothing hides."""

    def changed(line: str) -> str:
        if FLOAT.match(line):
            line = FUNCTIONS.sub(r"c.nan_\1(", line)
        line = PLACES.sub(r"c.nan_\1(", line)
        return COMBINERS.sub(r"c.nan_\1", line).replace("tl.store(", "c.nan_store(")

    name = f"{program.name}_nan"
    return dataclasses.replace(
        program,
        name=name,
        head=program.head.replace(f"def {program.name}(", f"def {name}("),
        body=[changed(line) for line in program.body],
        stub=program.stub.replace(f"def {program.name}_", f"def {name}_"),
    )
