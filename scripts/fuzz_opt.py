"""Feed mangled TTIR to the compiler, built with AddressSanitizer and UndefinedBehaviorSanitizer.

Whatever it is given, the library must answer with a result or an error: no crash, no assertion, no
hang, and kernels that it makes must be valid. Each try is numbered, and depends only on its number,
the seed and the corpus. What fails is left in the folder --out.

    python scripts/fuzz_opt.py [--tries N] [--jobs N] [--seed N] [--corpus FOLDER]… [--binary PATH]
    python scripts/fuzz_opt.py --replay FILE
"""

from __future__ import annotations

import argparse
import collections
import json
import multiprocessing
import os
import random
import re
import select
import subprocess
import sys
import time
import traceback
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
BUILD = ROOT / "build" / "sanitized"
SECONDS = 30
# MLIR's archives are not instrumented: what only makes sense with all code instrumented is off.
SANITIZERS = {
    "ASAN_OPTIONS": "detect_leaks=0:detect_container_overflow=0:allow_user_poisoning=0:"
    "detect_odr_violation=0:handle_abort=1:allocator_may_return_null=1:max_allocation_size_mb=4096:"
    "hard_rss_limit_mb=6144:quarantine_size_mb=32",
    "UBSAN_OPTIONS": "print_stacktrace=1:halt_on_error=1",
}


def build() -> Path:
    """Build the instrumented program; returns its path."""
    options = ["-DCMAKE_BUILD_TYPE=Debug", "-DTAD_SANITIZE=ON"]
    subprocess.run(["cmake", "-G", "Ninja", "-S", ROOT, "-B", BUILD, *options], check=True)
    subprocess.run(["ninja", "-C", BUILD, "triton-autodiff-fuzz"], check=True)
    return BUILD / "bin" / "triton-autodiff-fuzz"


# --------------------------------------------------------------------------- mangling

TOKEN = re.compile(r"\s+|[%@!#^]?[\w.$-]+|.", re.DOTALL)
NUMBER = re.compile(r"(?<![\w%#.])-?\d+(?:\.\d+(?:e[+-]?\d+)?)?(?![\w.])|\d+(?=x)")
NAME = re.compile(r"%[\w-]+")
OPERATION = re.compile(r"\b(?:tt|arith|math|scf|cf|gpu|ub)\.\w+")
TYPE = re.compile(r"!tt\.\w+<[^<>]*(?:<[^<>]*>)?>|tensor<[^<>]*(?:<[^<>]*>)?[^<>]*>|\b[fi]\d+\b")
ASSEMBLY = re.compile(r'(?<=elementwise_inline_asm )"[^"\\\n]*"')
PTX_TOKEN = re.compile(r"\s+|[%$]?\w+|.")
PTX = """$0 $1 $7 ${1} { } < > , ; : . @ @! | _ // /* */ - ! [ .reg .pred .b8 .b16 .b32 .b64 p r<3>
add sub mul mad fma div min max abs neg rcp ex2 lg2 tanh and or xor not lop3 shl shr shf prmt bfe
bfi cvt mov setp set selp slct testp popc clz brev bra rn rz rp rni rzi sat ftz relu approx
full satfinite lt geu nan and wide hi lo f16 f16x2 bf16x2 f32 f32x2 f64 s8 u8 u16 s32 u32 u64
b32 b64 e4m3x2 e5m2x2 e2m1x2 tf32 0 1 7 8 16 31 32 64 -1 255 4294967295 99999999999999999999
0x5746 0x7f007f00 0f3F800000 0f7FC00000 0d3FF0000000000000 1.5 1e999""".split()
CLAUSES = (r"\{[^{}\n]*\}", r"\[[^\[\]\n]*\]", r"loc\([^()\n]*\)", r"<[^<>\n]*>", r"\([^()\n]*\)",
           r"\w+ = [^,{}\n]*")  # fmt: skip
NUMBERS = """0 1 -1 2 3 7 16 63 64 65 1024 1048576 2147483647 2147483648 -2147483648
4294967295 4294967296 9223372036854775807 9223372036854775808 -9223372036854775808
18446744073709551615 99999999999999999999999 0.0 -0.0 1.0e308 1.0e-320 0x7FC00000
0x7F800000 0xFF800000""".split()
TYPES = """i1 i2 i8 i16 i32 i64 i128 i257 index f16 bf16 f32 f64 f128 f80 tf32 f8E4M3FN f8E5M2
f8E4M3B11FNUZ none complex<f32> tuple<> tuple<f32,i32> vector<4xf32> vector<[4]xf32> memref<4xf32>
memref<*xf32> tensor<f32> tensor<0xf32> tensor<1xf32> tensor<?xf32> tensor<*xf32> tensor<3xf32>
tensor<64xf32> tensor<16x16xf32> tensor<2x4x8xf32> tensor<4xindex> tensor<64xi1>
tensor<4x!tt.ptr<f32>> tensor<64x!tt.ptr<f32>> !tt.ptr<f32> !tt.ptr<f16> !tt.ptr<i1>
!tt.ptr<tensor<4xf32>> !tt.ptr<!tt.ptr<f32>> !tt.ptr<f32,3> !tt.tensordesc<tensor<16x16xf32>>
!llvm.ptr !llvm.void !llvm.struct<(i32,i32)> ()->() (f32)->f32""".split()
STRAY = list('{}()<>[]:,=%@#!^"-*?/ \n\0\x7f\xff') + [
    "loc(",
    "^bb0:",
    "//",
    "dense<",
    "array<i32: ",
    "->",
]


def replace(rng, text, pattern, make, everywhere=False):
    """Replace one match of a pattern, or all that read like it."""
    matches = list(pattern.finditer(text))
    if not matches:
        return text
    match = rng.choice(matches)
    new = make(match.group())
    if not everywhere:
        return text[: match.start()] + new + text[match.end() :]
    same = {m.span() for m in matches if m.group() == match.group()}
    for start, end in sorted(same, reverse=True):
        text = text[:start] + new + text[end:]
    return text


def mangle_bytes(rng, text, other):
    """Flip, insert or delete a few characters."""
    for _ in range(rng.choice((1, 1, 2, 8))):
        at = rng.randrange(len(text) + 1)
        keep = rng.choice((0, 1, 1, 5))
        text = (
            text[:at]
            + rng.choice(("", rng.choice(STRAY), chr(rng.randrange(256))))
            + text[at + keep :]
        )
    return text


def mangle_tokens(rng, text, other):
    """Delete, repeat, swap or import tokens."""
    tokens = TOKEN.findall(text)
    for _ in range(rng.choice((1, 1, 2, 4))):
        a, b = rng.randrange(len(tokens)), rng.randrange(len(tokens))
        kind = rng.randrange(4)
        if kind == 0:
            tokens[a] = ""
        elif kind == 1:
            tokens[a] += tokens[a]
        elif kind == 2:
            tokens[a], tokens[b] = tokens[b], tokens[a]
        else:
            tokens[a] = rng.choice(TOKEN.findall(other))
    return "".join(tokens)


def mangle_lines(rng, text, other):
    """Delete, repeat, move or import lines, or cut the text off."""
    lines = text.split("\n")
    for _ in range(rng.choice((1, 1, 2, 4))):
        a, b = rng.randrange(len(lines)), rng.randrange(len(lines))
        kind = rng.randrange(5)
        if kind == 0 and len(lines) > 1:
            del lines[a]
        elif kind == 1:
            lines.insert(b, lines[a])
        elif kind == 2:
            lines[a], lines[b] = lines[b], lines[a]
        elif kind == 3:
            lines.insert(a, rng.choice(other.split("\n")))
        elif rng.random() < 0.2:
            del lines[a + 1 :]
    return "\n".join(lines)


def mangle_numbers(rng, text, other):
    """Make a number, or all like it, extreme or another one of the text."""
    pool = NUMBERS if rng.random() < 0.6 else NUMBER.findall(text) or NUMBERS
    return replace(rng, text, NUMBER, lambda _: rng.choice(pool), rng.random() < 0.7)


def mangle_types(rng, text, other):
    """Change a type, or all like it."""
    pool = TYPES if rng.random() < 0.6 else TYPE.findall(other) or TYPES
    return replace(rng, text, TYPE, lambda _: rng.choice(pool), rng.random() < 0.8)


def mangle_operations(rng, text, other):
    """Turn an operation, or all like it, into another one."""
    pool = OPERATION.findall(text if rng.random() < 0.5 else other) or ["tt.load"]
    return replace(rng, text, OPERATION, lambda _: rng.choice(pool), rng.random() < 0.3)


def mangle_operands(rng, text, other):
    """Use another value."""
    pool = NAME.findall(text) or ["%0"]
    return replace(rng, text, NAME, lambda _: rng.choice(pool))


def mangle_attributes(rng, text, other):
    """Drop a dictionary, a list, a location or a clause."""
    pattern = re.compile(rng.choice(CLAUSES))
    return replace(rng, text, pattern, lambda _: "")


def mangle_assembly(rng, text, other):
    """Delete, repeat, swap, import or invent tokens of inline assembly."""

    def change(assembly):
        tokens = PTX_TOKEN.findall(assembly)
        pool = "".join(ASSEMBLY.findall(other)) or assembly
        for _ in range(rng.choice((1, 1, 2, 4))):
            a, b = rng.randrange(len(tokens)), rng.randrange(len(tokens))
            tokens[a] = rng.choice(
                ("", tokens[a] * 2, tokens[b], rng.choice(PTX), rng.choice(PTX_TOKEN.findall(pool)))
            )
        return "".join(tokens).replace('"', "")

    return replace(rng, text, ASSEMBLY, lambda match: f'"{change(match[1:-1] or ";")}"')


# The first three seldom leave anything that can be read; the others reach the passes.
MANGLERS = {
    mangle_bytes: 1,
    mangle_tokens: 2,
    mangle_lines: 3,
    mangle_attributes: 3,
    mangle_numbers: 5,
    mangle_types: 4,
    mangle_operations: 5,
    mangle_operands: 6,
    mangle_assembly: 5,
}


def make_try(corpus, seed, number) -> str:
    """Return the text of a try."""
    rng = random.Random(f"{seed}:{number}")
    text, other = rng.choice(corpus), rng.choice(corpus)
    for mangle in rng.choices([*MANGLERS], MANGLERS.values(), k=rng.choice((1, 1, 1, 1, 2, 2, 4))):
        text = mangle(rng, text, other) or "\n"
    return text


def read_corpus(folders) -> list[str]:
    """Return the modules of all files, lit tests split into theirs."""
    texts = []
    for folder in folders:
        for path in sorted([*Path(folder).rglob("*.mlir"), *Path(folder).rglob("*.ttir")]):
            for part in path.read_text().split("// -----"):
                if "tt.func" in part and len(part) < 60_000:
                    # Comments of tests teach nothing; locations do, but are long.
                    lines = [line for line in part.split("\n") if not re.match(r"\s*//", line)]
                    texts.append("\n".join(lines))
    return texts


# --------------------------------------------------------------------------- running


class Failure(Exception):
    """The program did not answer."""


class Program:
    """The instrumented program, started again after it died."""

    def __init__(self, binary):
        self.binary = binary
        self.process = None
        self.answers = 0

    def ask(self, step, text):
        """Return "ok", "error" or "invalid", and the result of a step or its errors."""
        # What longjmp leaves behind adds up. The module that it keeps would go, too.
        if self.answers > 3000 and step not in ("advance", "print", "try"):
            self.stop()
        if self.process is None:
            environment = {**os.environ, **SANITIZERS}
            self.process = subprocess.Popen(
                [self.binary], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, env=environment)  # fmt: skip
            self.answers = 0
        self.answers += 1
        data = text.encode("utf-8", "surrogateescape")
        try:
            self.process.stdin.write(f"{step} {len(data)}\n".encode() + data)
            self.process.stdin.flush()
        except BrokenPipeError:
            raise Failure(self.last_words()) from None
        output = b""
        began = self.cpu_seconds()
        while True:
            head, newline, rest = output.partition(b"\n")
            if newline and len(rest) >= int(head.split()[1]):
                return head.split()[0].decode(), rest.decode("utf-8", "surrogateescape")
            if not select.select([self.process.stdout], [], [], 1)[0]:
                # Of its own time: the machine may be busy with other things.
                if self.cpu_seconds() - began > SECONDS:
                    self.process.kill()
                    self.last_words()
                    raise Failure(f"{step}: no answer within {SECONDS} s")
                continue
            chunk = os.read(self.process.stdout.fileno(), 1 << 20)
            if not chunk:
                raise Failure(f"{step}: {self.last_words()}")
            output += chunk

    def cpu_seconds(self) -> float:
        """Return the processor time that the program has used."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def last_words(self) -> str:
        """Return what the dead program wrote to its standard error."""
        _, errors = self.process.communicate()
        status, self.process = self.process.returncode, None
        return f"exit status {status}\n{errors.decode(errors='replace')[-20_000:]}"

    def stop(self):
        """End the program."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.kill()
            self.process.wait()
            self.process = None


def examine(program, text) -> str:
    """Take a text through the compiler; returns how far it came."""
    parsed, _ = program.ask("parse", text)
    if parsed != "ok":
        return "unreadable"
    compiled, _ = program.ask("compile", text)
    differentiated, answer = program.ask("differentiate", text)
    if differentiated != "ok":
        return "compiled" if compiled == "ok" else "refused"
    plan = json.loads(answer)
    for kernel in [plan["forward"], *plan["backward"]]:
        if kernel is not None:
            valid, errors = program.ask("parse", kernel["ttir"])
            if valid != "ok":
                raise Failure(f"an invalid kernel was generated: {errors}\n{kernel['ttir']}")
            program.ask("compile", kernel["ttir"])
    return "differentiated"


def signature(log) -> str:
    """Return what failures of one cause have in common."""
    kinds = r"runtime error: .*|Assertion .*? failed|ERROR: \w+: [\w-]+|no answer|invalid kernel.*"
    head = re.search(kinds, log)
    place = re.search(r"(?:autodiff/|Dialect/Triton/)[\w/]*\w+\.(?:cpp|h|inc):\d+", log)
    frames = re.findall(r"#\d+ 0x\w+ +(?:in ([^\n/]+)|\(.*?(\+0x\w+)\))", log)
    names = [a.strip()[:60] or b for a, b in frames]
    names = [n for n in names if not re.match(r"raise|abort|__|_start|main", n)]
    where = [place.group()] if place else names[:4]
    return " < ".join([head.group()[:150] if head else log[:80], *where])


def work(binary, corpus, seed, numbers, results):
    """Examine tries until there are none left."""
    program = Program(binary)
    while (number := numbers.get()) is not None:
        try:
            results.put((number, examine(program, make_try(corpus, seed, number)), ""))
        except Failure as failure:
            results.put((number, "failed", str(failure)))
        except Exception:  # A campaign would wait for this one's answer for ever.
            results.put((number, "failed", traceback.format_exc()))
            program.stop()
    program.stop()


def campaign(options, binary, corpus) -> int:
    """Examine all tries; returns the number of different failures."""
    options.out.mkdir(parents=True, exist_ok=True)
    numbers, results = multiprocessing.Queue(1000), multiprocessing.Queue()
    workers = [
        multiprocessing.Process(target=work, args=(binary, corpus, options.seed, numbers, results))
        for _ in range(options.jobs)
    ]
    for worker in workers:
        worker.start()
    tries = iter(range(options.start, options.start + options.tries))
    waiting, counts, found = 0, collections.Counter(), collections.Counter()
    began = time.monotonic()
    exhausted = False
    while waiting or not exhausted:
        while not exhausted and waiting < 8 * options.jobs:
            number = next(tries, None)
            exhausted = number is None or (
                options.seconds and time.monotonic() - began > options.seconds
            )
            if not exhausted:
                numbers.put(number)
                waiting += 1
        if not waiting:
            break
        number, result, log = results.get()
        waiting -= 1
        counts[result] += 1
        if result == "failed":
            cause = signature(log)
            found[cause] += 1
            if found[cause] <= 3:
                stem = options.out / f"{list(found).index(cause):03}-{number}"
                text = make_try(corpus, options.seed, number)
                stem.with_suffix(".ttir").write_bytes(text.encode("utf-8", "surrogateescape"))
                stem.with_suffix(".log").write_text(log)
            if found[cause] == 1:
                print(f"try {number}: {cause}", flush=True)
        total = counts.total()
        if total % 1000 == 0:
            print(f"{total} tries, {time.monotonic() - began:.0f} s: {dict(counts)}", flush=True)
    for _ in workers:
        numbers.put(None)
    for worker in workers:
        worker.join()
    print(f"{counts.total()} tries, {time.monotonic() - began:.0f} s: {dict(counts)}")
    for cause, times in found.most_common():
        print(f"{times:6} {cause}")
    return len(found)


def main() -> int:
    """Parse the command line, build, and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--start", type=int, default=0, help="the number of the first try")
    parser.add_argument("--seconds", type=int, default=0, help="stop earlier, after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--binary", type=Path, help="a triton-autodiff-fuzz that is built already")
    parser.add_argument("--out", type=Path, default=BUILD / "found")
    parser.add_argument("--replay", type=Path, help="examine one file")
    options = parser.parse_args()
    binary = (options.binary or build()).resolve(strict=True)
    if options.replay:
        text = options.replay.read_bytes().decode("utf-8", "surrogateescape")
        print(examine(Program(binary), text))
        return 0
    folders = [ROOT / "test", ROOT / "third_party" / "autodiff" / "test", *options.corpus]
    corpus = read_corpus(folders)
    print(f"{len(corpus)} modules, seed {options.seed}", flush=True)
    return int(campaign(options, binary, corpus) > 0)


if __name__ == "__main__":
    sys.exit(main())
