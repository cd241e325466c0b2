"""Integers and bits."""

from __future__ import annotations

from .table import enter, unsigned


def _truncated(x: int, y: int) -> int:
    """Return the quotient toward zero."""
    return abs(x) // abs(y) * (1 if (x < 0) == (y < 0) else -1)


def _permuted(order):
    def permute(a, b):
        data = (a % 2**32).to_bytes(4, "little") + (b % 2**32).to_bytes(4, "little")
        chosen = bytearray()
        for place in range(4):
            choice = order >> 4 * place & 0xF
            byte = data[choice & 7]
            chosen.append((0xFF if byte & 0x80 else 0) if choice & 8 else byte)
        return int.from_bytes(chosen, "little")

    return permute


def _logic(table):
    def combine(a, b, c):
        bits = 0
        for i in range(32):
            row = (a >> i & 1) << 2 | (b >> i & 1) << 1 | c >> i & 1
            bits |= (table >> row & 1) << i
        return bits

    return combine


def _extracted(low, length, signed):
    def extract(a):
        a %= 2**32
        top = min(low + length - 1, 31)
        fill = a >> top & 1 if signed and length else 0
        bits = 0
        for i in range(32):
            inside = i < length and i + low <= 31
            bits |= (a >> (i + low) & 1 if inside else fill) << i
        return bits

    return extract


def _inserted(low, length):
    mask = sum(1 << i for i in range(32) if low <= i < low + length)
    return lambda a, b: (b & ~mask) | (a << low & mask)


def _enter_integers():
    one, two, three = "i32", "i32 i32", "i32 i32 i32"
    for name, function in {
        "add.s32": lambda x, y: x + y,
        "sub.s32": lambda x, y: x - y,
        "mul.lo.s32": lambda x, y: x * y,
        "mul.hi.s32": lambda x, y: x * y >> 32,
        "mul.hi.u32": unsigned(lambda x, y: x * y >> 32),
        "min.s32": min,
        "max.u32": unsigned(max),
        "and.b32": lambda x, y: x & y,
        "or.b32": lambda x, y: x | y,
        "xor.b32": lambda x, y: x ^ y,
        "shl.b32": lambda x, y: x << y % 2**32 if y % 2**32 < 32 else 0,
        "shr.u32": unsigned(lambda x, y: x >> y if y < 32 else 0),
        "shr.s32": lambda x, y: x >> min(y % 2**32, 31),
        "add.sat.s32": lambda x, y: min(max(x + y, -(2**31)), 2**31 - 1),
        "sub.sat.s32": lambda x, y: min(max(x - y, -(2**31)), 2**31 - 1),
    }.items():
        enter(name, f"{name} $0, $1, $2;", two, one, function)
    for name, function in {
        "abs.s32": abs,
        "neg.s32": lambda x: -x,
        "not.b32": lambda x: ~x,
        "cnot.b32": lambda x: int(x == 0),
        "popc.b32": unsigned(lambda x: bin(x).count("1")),
        "clz.b32": unsigned(lambda x: 32 - x.bit_length()),
        "brev.b32": unsigned(lambda x: int(f"{x:032b}"[::-1], 2)),
    }.items():
        enter(name, f"{name} $0, $1;", one, one, function)
    for name, divisor, function in (
        ("div.s32", -7, _truncated),
        ("div.u32", 7, lambda x, y: x % 2**32 // y),
        ("rem.s32", 7, lambda x, y: x - _truncated(x, y) * y),
        ("rem.u32", 10, lambda x, y: x % 2**32 % y),
    ):
        enter(name, f"{name} $0, $1, {divisor};", one, one,
               lambda x, y=divisor, f=function: f(x, y))  # fmt: skip
    enter("mad.lo.s32", "mad.lo.s32 $0, $1, $2, $3;", three, one, lambda x, y, z: x * y + z)
    enter("mad.lo.u32 by 5", "mad.lo.u32 $0, $1, 5, $2;", two, one, lambda x, y: x * 5 + y)
    enter("mul.wide.s32", "mul.wide.s32 $0, $1, $2;", two, "i64", lambda x, y: x * y)
    enter("mad.wide.u32", "{ .reg .u64 t; cvt.u64.u32 t, $3; mad.wide.u32 $0, $1, $2, t; }",
           three, "i64", unsigned(lambda x, y, z: x * y + z))  # fmt: skip
    for table in (0xF8, 0xEA, 0x96, 0xE8, 0x1B, 0xCA, 0x3F, 0x00, 0xFF, 0x80, 0x01):
        enter(f"lop3.b32 {table:#x}", f"lop3.b32 $0, $1, $2, $3, {table:#x};", three, one,
               _logic(table))  # fmt: skip
    for order in (0x5746, 0x0123, 0xB3A1, 0x7531):
        enter(f"prmt.b32 {order:#x}", f"prmt.b32 $0, $1, $2, {order:#x};", two, one,
               _permuted(order))  # fmt: skip
    for low, length in ((0, 0), (4, 8), (20, 12), (25, 20), (31, 1), (0, 32)):
        where = f"{low} {length}"
        for kind in ("u", "s"):
            enter(f"bfe.{kind}32 {where}", f"bfe.{kind}32 $0, $1, {low}, {length};", one, one,
                   _extracted(low, length, kind == "s"))  # fmt: skip
        enter(f"bfi.b32 {where}", f"bfi.b32 $0, $1, $2, {low}, {length};", two, one,
               _inserted(low, length))  # fmt: skip

    def funnel(up, clamps):
        def shift(a, b, c):
            both = (b % 2**32) << 32 | a % 2**32
            places = min(c % 2**32, 32) if clamps else c % 32
            return both << places >> 32 if up else both >> places

        return shift

    for up in "lr":
        for mode in ("wrap", "clamp"):
            enter(f"shf.{up}.{mode}.b32", f"shf.{up}.{mode}.b32 $0, $1, $2, $3;", three, one,
                   funnel(up == "l", mode == "clamp"))  # fmt: skip
    for kind, places in (("u", 9), ("s", 9), ("s", 40)):
        enter(f"shr.{kind}32 {places}", f"shr.{kind}32 $0, $1, {places};", one, one,
               (lambda x, p=places: x >> p) if kind == "s" else
               unsigned(lambda x, p=places: x >> p))  # fmt: skip


_enter_integers()
