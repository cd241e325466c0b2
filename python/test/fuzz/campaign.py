"""Many random programs on many workers: what came of them, and failures made small.

python -m fuzz.campaign 10000 --jobs 16 --seed 3 --out build/fuzz
python -m fuzz.campaign 10000 --seed 3 --out build/fuzz --shard 2 --of 4
python -m fuzz.campaign 5000 --seed 3 --out results --device cuda --seconds 540
python -m fuzz.campaign --only 1234 77 --seed 3
python -m fuzz.campaign --kind "edge before a view" --seed 3
python -m fuzz.campaign 4000 --device cuda --types float64 --kind "product of T"
python -m fuzz.campaign --report build/fuzz

One program in ten is looked at, and another one compiled as users' kernels are (LLVM's level 2).
The others are not looked at, and compiled at level 0: `--look 1` and `--level 2` are for all. One
in twenty is carried out in other ways than launches, too (`--ways`), and one in ten in batches of
`vmap` (`--batches`).
Each result is a line of a file in the output folder, which a shard that was cut off goes on with.
Kinds of programs that are known to fail can be left out with `--without`.
"""

from __future__ import annotations

import argparse
import ast
import dataclasses
import json
import os
import re
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import levels

from .differences import POISON, UNSEEN
from .generate import program_of
from .pool import Worker, run
from .precision import TYPES
from .program import Program
from .script import script
from .shrink import NAME, shrink
from .summary import FAILURES, Summary

# Types of programs by turns: on a GPU, half precisions, then tf32, most of all; on the CPU, where
# they cost as much as all the rest, of some only.
TURNS = {
    "cuda": ("bfloat16", "float16", "tf32", "bfloat16", "float16", "tf32", "float32", "float64"),
    "cpu": ("bfloat16", None, None, "float16", None, None, "float32", None, None),
}
# Of so many programs, one is looked at (`--look`), one is carried out in other ways (`--ways`), and
# one in batches (`--batches`).
LOOK, WAYS, BATCHES = 10, 20, 10
# Of a result, what is kept in the output folder.
KEPT = ("number", "status", "reason", "types", "schedules", "features", "seconds")


def is_one_of(count: int, number: int) -> bool:
    """Return whether a program is the one of `count` that is chosen.

    Other choices are made by remainders of numbers: this one goes through all of them.
    """
    return number % count == number // count % count


def level_of(number: int) -> int:
    """Return LLVM's level for a program; one that is looked at has the fast one."""
    is_usual = is_one_of(levels.EACH, number + levels.EACH // 2)
    return levels.USUAL if is_usual else levels.FAST


def requests_of(options, numbers) -> list[dict]:
    """Return the programs of these numbers."""
    turns = TURNS["cuda" if options.on_gpu else "cpu"]
    if options.types:
        turns = (options.types,)
    return [
        {
            "number": n,
            "name": f"kernel_{n}",
            "seed": f"{options.seed}:{n}",
            "point": n,
            "types": turns[n % len(turns)],
            "device": options.device,
            "on_gpu": options.on_gpu,
            "without": options.without,
            "look": options.look > 0 and is_one_of(options.look, n),
            "in_ways": options.ways > 0 and is_one_of(options.ways, n + options.ways // 2),
            "in_batches": options.batches > 0 and is_one_of(options.batches, n + 3),
            "level": level_of(n) if options.level is None else options.level,
        }
        for n in numbers
    ]


def kind(result: dict) -> tuple[str, str]:
    """Return what a smaller program has to share with a failing one."""
    lines = result["reason"].splitlines()
    # Of a crash, what it was; of an error, what it says.
    fatal = [line for line in lines if line.startswith("Fatal Python error")]
    first = (fatal or lines or [""])[0]
    if result["status"] in ("wrong", "forward"):
        # Which input's gradient, and whether it is a number.
        first = re.split(r"[\[:]| is ", first)[0] + " nan" * ("nan" in first)
        return result["status"], first
    return result["status"], re.sub(r"\d+", "#", first)


def minimised(result: dict, seconds: float) -> tuple[Program, dict]:
    """Return a small program that fails in the same way, and what is said of it."""
    program = program_of(result)
    worker, last = Worker(result["device"]), result

    def fails(body):
        nonlocal last
        smaller = dataclasses.replace(program, body=body)
        try:
            ast.parse(smaller.source)
        except SyntaxError:
            return False
        request = {k: v for k, v in result.items() if k not in ("seed", "reason", "status")}
        found = next(worker.check([{**request, "program": dataclasses.asdict(smaller)}]))
        if kind(found) != kind(result):
            return False
        last = {**found, "seed": result["seed"]}
        return True

    body = shrink(program.body, fails, seconds, set(NAME.findall(program.head)))
    worker.close()
    return dataclasses.replace(program, body=body), last


def show(result: dict, options) -> None:
    """Write a script of a failing program, made small."""
    program, result = minimised(result, options.shrink)
    path = options.out / f"seed{options.seed}_{result['name']}.py"
    lines = [f"{result['seed']}: {result['status']}", *result["reason"].splitlines()[:20]]
    path.write_text(script("\n".join(lines), program, result))
    print(f"{path}: {result['status']}", flush=True)


def journal(options) -> Path:
    """Return the file of a shard's results."""
    part = f"-{options.shard}of{options.of}" if options.of > 1 else ""
    return options.out / f"{options.device}-seed{options.seed}{part}.jsonl"


def results_of(path: Path) -> dict[int, dict]:
    """Return the results in a file by number; a line that was cut off is none."""
    found = {}
    for line in path.read_text().splitlines() if path.exists() else ():
        try:
            result = json.loads(line)
        except json.JSONDecodeError:
            continue
        found[result["number"]] = result
    return found


def report(folder: Path) -> int:
    """Print what all results in a folder come to."""
    summary = Summary()
    for path in sorted(folder.glob("*.jsonl")):
        for result in results_of(path).values():
            summary.add(result)
    summary.print()
    return bool(summary.failures)


def parsed() -> argparse.Namespace:
    """Return the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("count", type=int, nargs="?", default=500)
    parser.add_argument("--seed", type=int, default=int.from_bytes(os.urandom(3), "little"))
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--only", type=int, nargs="+", help="numbers of programs to run again")
    parser.add_argument("--shard", type=int, default=0, help="which shard, from 0 on")
    parser.add_argument("--of", type=int, default=1, help="how many shards there are")
    parser.add_argument("--seconds", type=float, help="after which no program is begun")
    parser.add_argument("--out", type=Path, default=Path("build/fuzz"))
    parser.add_argument("--done", type=Path, help="a folder with results of this seed from before")
    parser.add_argument("--report", type=Path, help="only sum up the results in a folder")
    parser.add_argument("--device", choices=["cpu", "cuda"], default="cpu")
    parser.add_argument(
        "--on-gpu", action="store_true", help="programs that suit a GPU, also on the CPU"
    )
    parser.add_argument("--types", choices=TYPES, help="the types of all programs")
    parser.add_argument("--without", action="append", default=[], help="a kind to leave out")
    parser.add_argument("--kind", action="append", help="only programs that have one of these")
    parser.add_argument("--look", type=int, default=LOOK, metavar="N", help="look at one in N")
    parser.add_argument(
        "--ways",
        type=int,
        default=WAYS,
        metavar="N",
        help="carry one in N out in a graph and as an exported module, too",
    )
    parser.add_argument(
        "--batches", type=int, default=BATCHES, metavar="N", help="run one in N under vmap, too"
    )
    parser.add_argument("--level", type=int, choices=[0, 1, 2], help="LLVM's, on the CPU")
    parser.add_argument("--shrink", type=float, default=60, help="seconds for each failure")
    parser.add_argument("--most", type=int, default=6, help="how many failures are made small")
    options = parser.parse_args()
    options.on_gpu |= options.device == "cuda"
    options.without += {*UNSEEN} - {*(options.kind or ())}
    return options


def wanted(request: dict, kinds: list[str] | None) -> bool:
    """Return whether a program has one of some kinds; what NaN does may be seen in all."""
    some = set(kinds or ()) - set(POISON)
    return not some or not some.isdisjoint(program_of(request).features)


def main() -> int:
    """Run from the command line."""
    options = parsed()
    if options.report:
        return report(options.report)
    print(f"--seed {options.seed}", flush=True)
    options.out.mkdir(parents=True, exist_ok=True)
    path = journal(options)
    known = {} if options.only else results_of(path)
    if options.done:
        known |= results_of(options.done / path.name)
    numbers = options.only or range(options.shard, options.count, options.of)
    requests = requests_of(options, [n for n in numbers if n not in known])
    requests = [request for request in requests if wanted(request, options.kind)]
    summary = Summary()
    for result in known.values():
        summary.add(result)
    fresh: list[dict] = []
    with path.open("a") as file:

        def add(result: dict) -> None:
            summary.add(result)
            file.write(json.dumps({name: result.get(name) for name in KEPT}) + "\n")
            file.flush()
            if result["status"] in FAILURES:
                fresh.append(result)
                first = result["reason"].splitlines()[0][:150]
                print(f"{result['seed']}: {result['status']}: {first}", flush=True)

        run(requests, options.jobs, add, options.device, options.seconds)
    summary.print()
    with ThreadPoolExecutor(options.jobs) as threads:
        list(threads.map(lambda result: show(result, options), fresh[: options.most]))
    return bool(summary.failures)


if __name__ == "__main__":
    sys.exit(main())
