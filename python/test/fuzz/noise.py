"""Programs with noise wherever a type rounds: Monte Carlo arithmetic.

Each result, each conversion to a type of memory and each operand of a product is off by a part of
its size, up or down at random, and so are the adjoints that go back there. What such a program
computes in float64 moves with the noise as it would with rounding.
"""

from __future__ import annotations

import dataclasses
import re

from .program import Program

# Sizes of the noise of results, of conversions to M and to A, and of operands; and which sample.
QUIET = (0.0, 0.0, 0.0, 0.0, 0.0)
FLOAT = re.compile(r"[vs]\d+")
STORE = re.compile(r"( *tl\.(?:store|atomic_add)\((\w+)(?: \+ .*)?), ([vs]\d+)((?:, mask=.*)?\))")
PRODUCT = re.compile(r"tl\.dot\(([vs]\d+)(?:\.to\(\w\))?, ([vs]\d+)(?:\.to\((\w)\))?")
ARITHMETIC = re.compile(r"\(.*\.to\(([MA])\) [*+] .*\)\.to\(T\)")
CONVERSION = re.compile(r"\b([vs]\d+)\.to\(([MA])\)")
ASSIGNMENT = re.compile(r"( *)([a-z]+\d+(?:, [a-z]+\d+)*) [+-]?= ")


def with_noise(program: Program) -> Program:
    """Return a program that is the same, but for noise of sizes that its stub is given."""
    lines: list[str] = []

    def noisy(name: str, size: str) -> str:
        return f"c.noisy({name}, e_{size}, sample + {len(lines) * 3.7:.1f})"

    for line in program.body:
        if found := STORE.fullmatch(line):
            begin, buffer, name, end = found.groups()
            lines.append(f"{begin}, {noisy(name, program.types[buffer])}{end}")
            continue
        product, arithmetic = PRODUCT.search(line), ARITHMETIC.search(line)
        line = CONVERSION.sub(lambda found: f"{noisy(found[1], found[2])}.to({found[2]})", line)
        if product and not product[3]:
            operands = ", ".join(noisy(name, "P") for name in (product[1], product[2]))
            line = line.replace(product[0], f"tl.dot({operands}")
        lines.append(line)
        found = ASSIGNMENT.match(line)
        for name in found[2].split(", ") if found else ():
            if FLOAT.fullmatch(name):
                # The adjoint of a product is an operand of others.
                size = (product[3] or "P") if product else arithmetic[1] if arithmetic else "T"
                lines.append(f"{found[1]}{name} = {noisy(name, size)}")
    name = f"{program.name}_noisy"
    arguments = f"def {name}(e_T, e_M, e_A, e_P, sample, "
    head = program.head.replace(f"def {program.name}(", arguments)
    stub = program.stub.replace(f"def {program.name}_", f"def {name}_")
    stub = stub.replace("*, T=", f"*, noise={QUIET}, T=").replace("](", "](*noise, ", 1)
    return dataclasses.replace(program, name=name, head=head, body=lines, stub=stub)
