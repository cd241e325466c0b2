"""Run every pass alone and in pairs, in the compiler built with sanitizers.

A pass may be given any module: one that lacks what earlier passes leave, that has been through it
before, or that later passes have changed. It has to leave a valid module, or an error that says
what is missing; no crash, no hang, no failure without a reason.

A walk takes a module of the corpus through the passes of a random request, one by one. At random
places on the way it stops and runs one or two random passes on a copy: these are the tries. A walk
depends only on its number, the seed and the corpus. Its results are a line in the journal in --out,
so that a run with the same seed goes on where it was cut off. What fails is made small and left
there, with the command that repeats it.

    python scripts/fuzz_passes.py [--tries N] [--seed N] [--jobs N] [--corpus FOLDER]…
    python scripts/fuzz_passes.py --replay FILE
"""

from __future__ import annotations

import argparse
import collections
import itertools
import json
import multiprocessing
import os
import random
import re
import sys
import time
import traceback
from pathlib import Path

import fuzz_opt
from fuzz_opt import BUILD, ROOT, Failure, Program

DECLARED = re.compile(r'def \w+ : (?:Autodiff|Target)?Pass<\s*"([\w-]+)",\s*"([\w:]+)"')
ANCHORS = {
    "::mlir::ModuleOp": "{}",
    "::mlir::triton::FuncOp": "tt.func({})",
    "::mlir::func::FuncOp": "func.func({})",
}
# What no test has: modules that are no kernel.
ODD = (
    "module {}",
    "tt.func private @declared(!tt.ptr<f32>)",
    "tt.func private @helper(%x: f32) -> f32 { tt.return %x : f32 }",
    "tt.func public @nothing() { tt.return }",
    "tt.func public @a() { tt.return }\ntt.func public @b() { tt.return }",
    'tt.func public @k() attributes {autodiff.role = "backward"} { tt.return }',
    'tt.func public @k() attributes {autodiff.role = "nonsense"} { tt.return }',
    "tt.func public @k() attributes {autodiff.role = 1 : i32} { tt.return }",
    "tt.func public @k() { tt.return }\n"
    'tt.func private @b(!tt.ptr<f32>) attributes {autodiff.role = "backward"}',
    "tt.func public @k() { tt.return }\n"
    'tt.func public @c(%x: i32) attributes {autodiff.role = "count"} { tt.return }',
)
SCHEDULES = ("batch", "unravel", "merge", "interchange", "persist")


def declared_passes() -> list[str]:
    """Return all passes of ours, as pipelines spell them."""
    folder = ROOT / "third_party" / "autodiff" / "include"
    texts = [path.read_text() for path in sorted(folder.rglob("*.td"))]
    return [ANCHORS[on].format(name) for text in texts for name, on in DECLARED.findall(text)]


def random_request(rng) -> dict:
    """Return a request that changes which passes there are, and their options."""

    def some_arguments():
        return sorted(rng.sample(range(6), rng.choice((0, 1, 1, 2, 3))))

    request = {}
    for key in ("wanted", "cotangents", "atomic", "repeated", "confine"):
        if rng.random() < 0.15:
            request[key] = some_arguments()
    if rng.random() < 0.3:
        request["schedules"] = rng.sample(SCHEDULES, rng.randrange(len(SCHEDULES) + 1))
    if rng.random() < 0.1:
        request["axes"] = rng.choice(([], [16], [64], [4, 8], [2, 4, 8]))
    for key, unusual in (
        ("save", False),
        ("reload", False),
        ("assume", False),
        ("check", True),
        ("deterministic", True),
    ):
        if rng.random() < 0.1:
            request[key] = unusual
    return request


def passes_of(program, request) -> list[str]:
    """Return the passes that the library runs for a request."""
    outcome, text = program.ask("pipeline", json.dumps(request))
    if outcome != "ok":
        raise Failure(f"no passes for {request}: {text}")
    return text.splitlines()


def complaint(outcome, errors) -> str:
    """Return what is wrong with an answer, or nothing."""
    if outcome == "invalid":
        return f"an invalid module: {errors}"
    if outcome == "error" and ("error: " not in errors or "without a diagnostic" in errors):
        return f"no diagnostic: {errors}"
    if outcome == "error" and "the compiler gave up" in errors:
        return f"it gave up: {errors}"
    return ""


class Finding(Exception):
    """Passes that did neither what they should nor say why."""

    def __init__(self, text, prefix, passes, log):
        super().__init__(log)
        self.text, self.prefix, self.passes, self.log = text, list(prefix), list(passes), log

    def __reduce__(self):
        return Finding, (self.text, self.prefix, self.passes, self.log)

    def cause(self) -> str:
        """Return what findings of one cause have in common."""
        names = [re.sub(r"\{.*|.*\(|\)", "", each) for each in self.passes]
        if self.log.startswith(("an invalid", "no diag", "it gave up")):
            said = re.sub(r"\S*: error: ", "", self.log).replace("\n", " ")
            said = re.sub(r"[@%]\w+|'[^']*'|\d+", "_", said)[:120]
            return f"{names[-1]}: {said}"
        found = fuzz_opt.signature(self.log)
        # Without sanitizers, nothing says where it was.
        return found if " < " in found else f"{' '.join(names)}: {found.strip()}"


def ask(program, step, text, prefix, passes) -> str:
    """Run passes; returns the outcome, or raises a finding for which `text` is the module."""
    try:
        outcome, errors = program.ask(step, "\n".join(passes))
        wrong = complaint(outcome, errors)
    except Failure as failure:
        wrong = str(failure)
    if wrong:
        raise Finding(text, prefix, passes, wrong)
    return outcome


def make_start(corpus, seed, number) -> str:
    """Return the module that a walk starts with: one of the corpus, or somewhat odder."""
    rng = random.Random(f"{seed}:{number}")
    if rng.random() < 0.2:
        return fuzz_opt.make_try(corpus, seed, number)
    text = rng.choice(corpus)
    if "module" not in text and "#loc" not in text and rng.random() < 0.2:
        # What the library notes of a request.
        noted = rng.sample(("autodiff.checkpoint", "autodiff.any_order"), rng.choice((1, 1, 2)))
        return f"module attributes {{{', '.join(noted)}}} {{\n{text}\n}}"
    return text


def walk(program, text, seed, number, declared, tries, counts):
    """Take a module through the passes, with tries on the way, and count outcomes."""
    rng = random.Random(f"{seed}:{number}:walk")
    way = passes_of(program, random_request(rng))
    pool = declared + passes_of(program, random_request(rng))
    try:
        if program.ask("load", text)[0] != "ok":
            return
    except Failure as failure:
        raise Finding(text, [], [], str(failure)) from None
    prefix = []
    for stop in sorted(rng.randrange(len(way) + 1) for _ in range(tries)):
        while prefix is not None and len(prefix) < stop:
            step = way[len(prefix)]
            if ask(program, "advance", text, prefix, [step]) == "ok":
                prefix.append(step)
            else:
                # An error on the way: what is left of the tries is about the module as it was.
                program.ask("load", text)
                prefix = None
        passes = rng.choices(pool, k=rng.choice((1, 2)))
        if rng.random() < 0.1:
            passes = passes[:1] * 2
        counts[ask(program, "try", text, prefix or [], passes)] += 1


# --------------------------------------------------------------------------- making small


def reproduces(program, finding, text, prefix, passes):
    """Return the finding that smaller input leads to if it has the same cause, else None."""
    try:
        if program.ask("load", text)[0] != "ok":
            return None
        done = []
        for step in prefix:
            if ask(program, "advance", text, done, [step]) != "ok":
                return None
            done.append(step)
        ask(program, "try", text, done, passes)
    except Finding as found:
        if found.cause() == finding.cause() and len(done) == len(prefix):
            return found
    except Failure:
        pass
    return None


def make_small(program, finding, seconds) -> Finding:
    """Leave out what a finding does without."""
    ends = time.monotonic() + seconds
    # As text, what passes have left may read otherwise.
    try:
        program.ask("load", finding.text)
        for step in finding.prefix:
            program.ask("advance", step)
        outcome, text = program.ask("print", "")
        found = outcome == "ok" and reproduces(program, finding, text, [], finding.passes)
        finding = found or finding
    except Failure:
        pass
    for kept in (finding.passes[1:], finding.passes[:1]):
        if len(finding.passes) > 1:
            finding = reproduces(program, finding, finding.text, finding.prefix, kept) or finding
    for index in reversed(range(len(finding.prefix))):
        if time.monotonic() < ends and index < len(finding.prefix):
            fewer = finding.prefix[:index] + finding.prefix[index + 1 :]
            finding = reproduces(program, finding, finding.text, fewer, finding.passes) or finding
    size = len(finding.text.split("\n")) // 2
    while size and time.monotonic() < ends:
        at = 0
        while at < len(finding.text.split("\n")) and time.monotonic() < ends:
            lines = finding.text.split("\n")
            fewer = "\n".join(lines[:at] + lines[at + size :])
            found = reproduces(program, finding, fewer, finding.prefix, finding.passes)
            finding, at = (found, at) if found else (finding, at + size)
        size //= 2
    return finding


def command_of(finding) -> str:
    """Return the command that repeats a finding."""
    pipeline = ",".join(finding.prefix + finding.passes)
    return f"triton-autodiff-opt %s --pass-pipeline='builtin.module({pipeline})'"


def write(finding, stem):
    """Leave a finding in a file that triton-autodiff-opt and --replay read, and what it said."""
    stem.with_suffix(".mlir").write_text(f"// RUN: {command_of(finding)}\n{finding.text}\n")
    stem.with_suffix(".log").write_text(finding.log)


def replay(program, path) -> int:
    """Repeat a finding."""
    head, _, text = path.read_text().partition("\n")
    passes = re.search(r"builtin\.module\((.*)\)'", head)
    if not passes:
        raise SystemExit(f"{path} does not begin with the command that repeats it")
    try:
        outcome, errors = program.ask("load", text)
        if outcome == "ok":
            outcome, errors = program.ask("try", passes[1])
    except Failure as failure:
        outcome, errors = "failed", str(failure)
    print(f"{outcome}\n{errors}")
    return int(outcome == "failed" or bool(complaint(outcome, errors)))


# --------------------------------------------------------------------------- the campaign


def work(options, corpus, numbers, results):
    """Walk until there is nothing left to do."""
    program = Program(options.binary)
    declared = declared_passes()
    while (number := numbers.get()) is not None:
        text = make_start(corpus, options.seed, number)
        counts, finding = collections.Counter(), None
        try:
            walk(program, text, options.seed, number, declared, options.stops, counts)
        except Finding as found:
            finding = found
        except Exception:  # The campaign would wait for this one's answer for ever.
            finding = Finding(text, [], [], traceback.format_exc())
            program.stop()
        if finding:
            counts["failed"] += 1
        results.put((number, counts, finding))
    program.stop()


def read_journal(path) -> dict:
    """Return what earlier runs with this seed have done, by walk."""
    lines = path.read_text().splitlines() if path.exists() else []
    return {entry["walk"]: entry for entry in map(json.loads, lines)}


def campaign(options, corpus) -> int:
    """Walk until there were enough tries; returns the number of different findings."""
    options.out.mkdir(parents=True, exist_ok=True)
    journal = options.out / f"passes-{options.seed}.jsonl"
    done = read_journal(journal)
    counts, causes = collections.Counter(), collections.Counter()
    for entry in done.values():
        counts.update(entry["counts"])
        causes.update(filter(None, [entry["cause"]]))
    numbers, results = multiprocessing.Queue(), multiprocessing.Queue()
    workers = [
        multiprocessing.Process(target=work, args=(options, corpus, numbers, results))
        for _ in range(options.jobs)
    ]
    for worker in workers:
        worker.start()
    ahead = (number for number in itertools.count() if number not in done)
    small = Program(options.binary)
    began, told, waiting = time.monotonic(), 0, 0
    while True:
        late = options.seconds and time.monotonic() - began > options.seconds
        expected = counts.total() + waiting * options.stops
        while not late and waiting < 2 * options.jobs and expected < options.tries:
            numbers.put(next(ahead))
            waiting, expected = waiting + 1, expected + options.stops
        if not waiting:
            break
        number, found, finding = results.get()
        waiting -= 1
        counts.update(found)
        cause = finding.cause() if finding else None
        if finding:
            causes[cause] += 1
        if causes[cause] == 1:
            stem = options.out / f"passes-{options.seed}-{number}"
            write(finding, stem)
            print(f"walk {number}: {cause}\n    {stem}.mlir", flush=True)
            if options.shrink:
                write(make_small(small, finding, options.shrink), stem)
        with journal.open("a") as file:
            print(json.dumps({"walk": number, "counts": found, "cause": cause}), file=file)
        if counts.total() // 1000 > told:
            told = counts.total() // 1000
            print(f"{counts.total()} tries, {time.monotonic() - began:.0f} s: {dict(counts)}",
                  flush=True)  # fmt: skip
    for _ in workers:
        numbers.put(None)
    for worker in workers:
        worker.join()
    small.stop()
    print(f"{counts.total()} tries: {dict(counts)}")
    for cause, times in causes.most_common():
        print(f"{times:6} {cause}")
    return len(causes)


def main() -> int:
    """Parse the command line, build, and run."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tries", type=int, default=10_000)
    parser.add_argument("--stops", type=int, default=100, help="tries in a walk")
    parser.add_argument("--seconds", type=int, default=0, help="stop earlier, after so long")
    parser.add_argument("--jobs", type=int, default=os.cpu_count())
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    parser.add_argument("--corpus", type=Path, action="append", default=[])
    parser.add_argument("--binary", type=Path, help="a triton-autodiff-fuzz that is built already")
    parser.add_argument("--out", type=Path, default=BUILD / "found")
    parser.add_argument("--shrink", type=int, default=60, help="seconds to make a finding small")
    parser.add_argument("--replay", type=Path, help="repeat what is in one file")
    options = parser.parse_args()
    options.binary = (options.binary or fuzz_opt.build()).resolve(strict=True)
    if options.replay:
        return replay(Program(options.binary), options.replay)
    folders = [ROOT / "test", ROOT / "third_party" / "autodiff" / "test", *options.corpus]
    corpus = [*fuzz_opt.read_corpus(folders), *ODD]
    print(f"{len(corpus)} modules, seed {options.seed}", flush=True)
    return int(campaign(options, corpus) > 0)


if __name__ == "__main__":
    sys.exit(main())
