"""Arithmetic in any float format and rounding mode, exactly: what instructions are judged by.

Numbers are Python floats, which hold every number of the formats here.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import NamedTuple

NAN, INFINITY = math.nan, math.inf


class Format(NamedTuple):
    """A binary format: digits with the leading one, the smallest exponent, the largest number."""

    digits: int
    smallest: int
    largest: float
    #: What is too large becomes the largest number.
    saturates: bool = False


F16 = Format(11, -14, 65504.0)
BF16 = Format(8, -126, (2 - 2.0**-7) * 2.0**127)
F32 = Format(24, -126, (2 - 2.0**-23) * 2.0**127)
F64 = Format(53, -1022, (2 - 2.0**-52) * 2.0**1023)
TF32 = Format(11, -126, (2 - 2.0**-10) * 2.0**127)
E4M3 = Format(4, -6, 448.0, True)
E5M2 = Format(3, -14, 57344.0, True)


def quantum(x: float, form: Format) -> Fraction:
    """Return the distance of neighbouring numbers at x."""
    exponent = math.frexp(x)[1] - 1 if x else form.smallest
    return Fraction(2) ** (max(exponent, form.smallest) - form.digits + 1)


def _exponent(x: Fraction) -> int:
    """Return the largest e with 2^e <= x."""
    e = x.numerator.bit_length() - x.denominator.bit_length()
    return e if Fraction(2) ** e <= x else e - 1


def rounded(x: Fraction | float, form: Format, mode: str = "rn") -> float:
    """Round to a format: to nearest even (rn) or away (rna), to zero (rz), down (rm), up (rp)."""
    if isinstance(x, float):
        if not math.isfinite(x):
            saturated = form.saturates and math.isinf(x)
            return math.copysign(form.largest, x) if saturated else x
        if x == 0:
            return x
        x = Fraction(x)
    if x == 0:
        return 0.0
    unit = Fraction(2) ** (max(_exponent(abs(x)), form.smallest) - form.digits + 1)
    whole, rest = divmod(abs(x), unit)
    half = rest * 2 - unit
    away = {
        "rn": half > 0 or (half == 0 and whole % 2 == 1),
        "rna": half >= 0,
        "rz": False,
        "rm": rest > 0 and x < 0,
        "rp": rest > 0 and x > 0,
    }[mode]
    size = (whole + away) * unit
    sign = -1.0 if x < 0 else 1.0
    if size > Fraction(form.largest):
        stays = form.saturates or mode == "rz" or mode == ("rm" if x > 0 else "rp")
        return sign * (form.largest if stays else INFINITY)
    return sign * float(size)


def flushed(x: float, form: Format) -> float:
    """Return zero, with the sign, for a subnormal number."""
    return math.copysign(0.0, x) if abs(x) < 2.0**form.smallest else x


def _zero(negative: bool) -> float:
    return -0.0 if negative else 0.0


def add(x: float, y: float, form: Format, mode: str = "rn") -> float:
    """Return x + y, rounded once."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x + y
    total = Fraction(x) + Fraction(y)
    if total == 0:
        same = math.copysign(1, x) == math.copysign(1, y)
        return math.copysign(0.0, x) if same else _zero(mode == "rm")
    return rounded(total, form, mode)


def _sign(*factors: float) -> float:
    return math.prod(math.copysign(1, f) for f in factors)


def multiply(x: float, y: float, form: Format, mode: str = "rn") -> float:
    """Return x · y, rounded once."""
    if not (math.isfinite(x) and math.isfinite(y)):
        return x * y
    product = Fraction(x) * Fraction(y)
    return rounded(product, form, mode) if product else _zero(_sign(x, y) < 0)


def multiply_add(x: float, y: float, z: float, form: Format, mode: str = "rn") -> float:
    """Return x · y + z, rounded once."""
    if not all(map(math.isfinite, (x, y))):
        return x * y + z
    if not math.isfinite(z):
        return z
    product = Fraction(x) * Fraction(y)
    if product == 0:
        return add(_zero(_sign(x, y) < 0), z, form, mode)
    total = product + Fraction(z)
    return rounded(total, form, mode) if total else _zero(mode == "rm")


def divide(x: float, y: float, form: Format, mode: str = "rn") -> float:
    """Return x / y, rounded once."""
    if math.isnan(x) or math.isnan(y) or (math.isinf(x) and math.isinf(y)) or x == y == 0:
        return NAN
    if math.isinf(x) or y == 0:
        return _sign(x, y) * INFINITY
    if math.isinf(y) or x == 0:
        return _zero(_sign(x, y) < 0)
    return rounded(Fraction(x) / Fraction(y), form, mode)


def root(x: float, form: Format, mode: str = "rn") -> float:
    """Return the square root, rounded once."""
    if math.isnan(x) or x < 0:
        return NAN
    if x == 0 or math.isinf(x):
        return x
    # Far more digits than are asked for; one below stands for all that are cut off.
    n = Fraction(x) * 4**1200
    whole = math.isqrt(n.numerator // n.denominator)
    exact = Fraction(whole) ** 2 == n
    return rounded((Fraction(whole) + (0 if exact else Fraction(1, 2))) / 2**1200, form, mode)


def whole(x: float, mode: str) -> float:
    """Round to a whole number: rni (even), rzi, rmi, rpi."""
    if not math.isfinite(x) or x == 0:
        return x
    n = {"rni": round, "rzi": math.trunc, "rmi": math.floor, "rpi": math.ceil}[mode](Fraction(x))
    return float(n) if n else math.copysign(0.0, x)
