"""Programs with noise wherever a type rounds: Monte Carlo arithmetic.

Each result, each conversion to a type of memory and each operand of a product is off by a part of
its size, up or down at random, and so are the adjoints that go back there. Where a line has a value
more than once, each place contributes to its gradient, and all contributions but the first are
off by themselves, too: a GPU multiplies and adds in one step, which rounds one of them less. What
such a program computes in float64 moves with the noise as it would with rounding.
"""

from __future__ import annotations

import dataclasses
import re

from .program import Program

# Sizes of the noise of results, of conversions to M, A and F, and of operands; and which sample.
QUIET = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0)
FLOAT = re.compile(r"[vs]\d+")
STORED = r"[vs]\d+|tl\.trans\([vs]\d+\)"
STORE = re.compile(rf"( *tl\.(?:store|atomic_add)\((\w+)(?: \+ .*)?), ({STORED})((?:, mask=.*)?\))")
OPERAND = r"([vs]\d+)(?:\.to\((\w)\))?"
PRODUCT = re.compile(rf"tl\.dot\({OPERAND}, {OPERAND}")
ARITHMETIC = re.compile(r"\(.*\.to\(([MA])\) [*+] .*\)\.to\(T\)")
# What a load puts in place of what it leaves out is converted to the type in memory.
OTHER = re.compile(r"tl\.load\((\w+)\b.*, other=([vs]\d+)\)")
CONVERSION = re.compile(r"\b([vs]\d+)\.to\(([MA])\)")
ASSIGNMENT = re.compile(r"( *)([a-z]+\d+(?:, [a-z]+\d+)*) [+-]?= ")
# What only moves numbers rounds nothing.
MOVE = re.compile(
    r" = tl\.(?:trans|permute|reshape|broadcast_to)\([vs]\d+\b[^()]*(?:\([^()]*\))?[^()]*\)$"
)


def _contributing(line: str, place: int) -> str:
    """Return an assignment in which values contribute apart where they stand more than once."""
    begin, equals, expression = line.partition("= ")
    seen: dict[str, int] = {}

    def apart(found: re.Match) -> str:
        name = found[0]
        count = seen[name] = seen.get(name, -1) + 1
        sample = f"sample + {place * 3.7 + count * 1.3:.1f}"
        return f"c.noisy_contribution({name}, e_T, {sample})" if count else name

    return begin + equals + re.sub(rf"\b{FLOAT.pattern}\b", apart, expression)


def with_noise(program: Program) -> Program:
    """Return a program that is the same, but for noise of sizes that its stub is given.

    Equal values of one line have the same noise, and so have those that go to one buffer: a product
    of a matrix and itself stays symmetric.
    """
    lines: list[str] = []
    number = 0
    stores: dict[str, int] = {}

    def noisy(name: str, size: str) -> str:
        return f"c.noisy({name}, e_{size}, sample + {number * 3.7:.1f})"

    for place, line in enumerate(program.body):
        number = place
        if found := STORE.fullmatch(line):
            begin, buffer, name, end = found.groups()
            number = stores.setdefault(buffer, place)
            lines.append(f"{begin}, {noisy(name, program.types[buffer])}{end}")
            continue
        product, arithmetic = PRODUCT.search(line), ARITHMETIC.search(line)
        if product:
            # Tensor cores round what they take, whatever types memory would hold it in.
            operands = [
                f"{noisy(noisy(operand, 'P'), kind)}.to({kind})" if kind else noisy(operand, "P")
                for operand, kind in zip(product.groups()[::2], product.groups()[1::2], strict=True)
            ]
            line = line.replace(product[0], f"tl.dot({', '.join(operands)}")
        if other := OTHER.search(line):
            filled = noisy(other[2], program.types[other[1]])
            line = line.replace(f"other={other[2]})", f"other={filled})")
        line = CONVERSION.sub(lambda found: f"{noisy(found[1], found[2])}.to({found[2]})", line)
        found = None if MOVE.search(line) else ASSIGNMENT.match(line)
        results = [n for n in found[2].split(", ") if FLOAT.fullmatch(n)] if found else []
        lines.append(_contributing(line, place) if results and not product else line)
        for name in results:
            sizes = [arithmetic[1] if arithmetic else "T"]
            if product:
                # Its adjoint is an operand of others.
                sizes = ["P", product[4]] if product[4] else ["P"]
            lines += [f"{found[1]}{name} = {noisy(name, size)}" for size in sizes]
    name = f"{program.name}_noisy"
    arguments = f"def {name}(e_T, e_M, e_A, e_F, e_P, sample, "
    head = program.head.replace(f"def {program.name}(", arguments)
    stub = program.stub.replace(f"def {program.name}_", f"def {name}_")
    stub = stub.replace("*, T=", f"*, noise={QUIET}, T=").replace("](", "](*noise, ", 1)
    return dataclasses.replace(program, name=name, head=head, body=lines, stub=stub)
