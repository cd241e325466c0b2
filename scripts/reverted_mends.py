"""Show that the tests notice when a fault that was mended comes back.

Of the last commits that mended a fault, a sample is drawn. What each changed in the sources is
taken back, alone, in a worktree of HEAD; its own tests are left out. Then tests run until one
fails: those that run the changed functions (touching.py), and the test files that were changed most
often together with the same sources. Lit tests do not run.

    python scripts/reverted_mends.py --sample 20 --seed 1 [--only py] [--limit SECONDS]

A commit is taken for a mend if it changes few lines of the sources, and tests too, and its subject
does not say that it is about something else. Most are of lines that have changed since; they do not
count. C++ is built by `--build`, in the worktree. The journal gets a line for each commit, so that
a later run goes on. Another LLVM level, which is in the environment (TRITON_AUTODIFF_CPU_LEVEL), is
another line. The exit status is 1 if there is a mend without which no test fails.
"""

from __future__ import annotations

import argparse
import ast
import collections
import functools
import os
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import runtime_mutation
import touching
from journal import Journal, place

ROOT = Path(__file__).resolve().parents[1]
TREE = ROOT / "build" / "mends"
PYTHON = "third_party/autodiff/backend/"
SOURCES = (PYTHON, "third_party/autodiff/lib/", "third_party/autodiff/include/", "lib/", "include/")
TESTS = ("python/test/", "third_party/autodiff/test/", "test/")
UNIT = "python/test/unit/test_"
# Commits about these mend nothing that the package does.
OTHERS = re.compile(
    r"(docs?\b|documents?\b|tests?\b|random programs|fuzz|examples?\b|ci\b|wip\b|campaigns)", re.I
)
# A mend changes so many lines of the sources at most.
LARGEST = 60
BUILD = "cmake -G Ninja -S . -B build/core && ninja -C build/core triton_autodiff"
# The verdict on a mend whose lines have changed since.
GONE = "does not apply"
LIBRARY = "build/core/lib/libtriton_autodiff.so"
# The lines at the head of a difference that name its file, and the names in them.
_HEADS = re.compile(r"^(?:diff --git|---|\+\+\+) [ab]/.*$", re.MULTILINE)
_PATHS = re.compile(r"( [ab]/)(\S+)")


def git(*arguments, tree=ROOT, **options) -> str:
    """Return what a command of git prints."""
    command = ["git", *arguments]
    result = subprocess.run(
        command, cwd=tree, check=True, stdout=subprocess.PIPE, text=True, **options
    )
    return result.stdout


@functools.cache
def moves() -> dict[str, str]:
    """Return where files are now, by each name that they had before."""
    listed = git("log", "--no-merges", "-M", "--diff-filter=R", "--name-status", "--format=")
    found: dict[str, str] = {}
    for row in listed.splitlines():
        if row:
            _, before, after = row.split("\t")
            found.setdefault(before, found.get(after, after))
    return found


def moved(path: str) -> str:
    """Return where a file of an older commit is now."""
    return moves().get(path, path)


class Mend:
    """A commit that mended a fault."""

    def __init__(self, commit: str, subject: str, lines: dict[str, int]):
        self.commit, self.subject = commit, subject
        self.lines = lines
        self.sources = [path for path in lines if path.startswith(SOURCES)]
        self.tests = [path for path in lines if path.startswith(TESTS)]

    @property
    def is_mend(self) -> bool:
        changed = sum(self.lines[path] for path in self.sources)
        code = [path for path in self.sources if path.endswith((".py", ".cpp", ".h", ".td"))]
        return bool(code and self.tests and changed <= LARGEST) and not OTHERS.match(self.subject)

    def own_tests(self) -> set[str]:
        """Return the names of functions that it added or changed in the tests."""
        diff = git("show", "--format=", "--unified=0", self.commit, "--", *self.tests)
        names = re.findall(r"^\+\s*def (\w+)", diff, re.MULTILINE)
        names += re.findall(r"^@@ .* @@ def (\w+)", diff, re.MULTILINE)
        return set(names)


def history() -> list[Mend]:
    """Return all commits but merges, the last first."""
    text = git("log", "--no-merges", "--no-renames", "--numstat", "--format=%x00%h%x09%s")
    commits = []
    for part in text.split("\0")[1:]:
        head, _, rows = part.partition("\n")
        commit, _, subject = head.partition("\t")
        fields = (row.split("\t") for row in rows.splitlines() if row)
        lines = {path: int(more) + int(less) for more, less, path in fields if more != "-"}
        commits.append(Mend(commit, subject, lines))
    return commits


def companions(mend: Mend, commits) -> list[str]:
    """Return the unit tests' files, those first that were most often changed with its sources."""
    together, alone = collections.Counter(), collections.Counter()
    for other in commits:
        shared = set(map(moved, other.sources)) & set(map(moved, mend.sources))
        for path in other.tests:
            if path.startswith(UNIT) and (ROOT / path).exists():
                together[path] += bool(shared)
                alone[path] += 1
    files = [path for path in alone if together[path]]
    return sorted(files, key=lambda path: -(together[path] ** 2) / alone[path])


def functions_in(text: str) -> dict[str, str]:
    """Return the code of each function, by its name."""
    found = {}

    def look(node, scope):
        for child in ast.iter_child_nodes(node):
            inner = scope
            if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
                inner = [*scope, child.name]
                if not isinstance(child, ast.ClassDef):
                    found[".".join(inner)] = ast.dump(child)
            look(child, inner)

    look(ast.parse(text), [])
    return found


def changed_functions(paths) -> set[str]:
    """Return "room/module:function" for each function that differs in the worktree from HEAD."""
    changed = set()
    for path in paths:
        before, after = (functions_in((tree / path).read_text()) for tree in (ROOT, TREE))
        names = {n for n in before.keys() | after.keys() if before.get(n) != after.get(n)}
        module = path.removeprefix(PYTHON).removesuffix(".py")
        changed |= {f"{module}:{name}" for name in names}
    return changed


class Judge:
    """Takes mends back, and runs tests."""

    def __init__(self, options, commits):
        self.options, self.commits = options, commits
        self.notes = touching.read(options.touched)
        if not TREE.exists():
            git("worktree", "add", "--detach", TREE, "HEAD")

    def judge(self, mend: Mend) -> tuple[str, str]:
        """Return the verdict on a mend, and what showed it."""
        git("checkout", "-q", "-f", "--detach", git("rev-parse", "HEAD").strip(), tree=TREE)
        diff = git("show", "--format=", "--binary", mend.commit, "--", *mend.sources)
        diff = _HEADS.sub(lambda head: _PATHS.sub(lambda p: p[1] + moved(p[2]), head[0]), diff)
        command = ["git", "apply", "-R", "--3way"]
        applied = subprocess.run(command, cwd=TREE, input=diff, text=True, capture_output=True)
        if applied.returncode:
            git("reset", "-q", "--hard", tree=TREE)
            return GONE, ""
        paths = git("diff", "--name-only", "HEAD", tree=TREE).split()
        if not paths:
            return "changes nothing", ""
        python = [path for path in paths if path.startswith(PYTHON) and path.endswith(".py")]
        if any((ROOT / path).exists() != (TREE / path).exists() for path in python):
            return GONE, "a file appears or goes"
        try:
            functions = changed_functions(python)
        except SyntaxError:
            return "does not build", ""
        texts = {path.removeprefix(PYTHON): (TREE / path).read_bytes() for path in python}
        if len(python) < len(paths):
            built = subprocess.run(self.options.build, shell=True, cwd=TREE, capture_output=True)
            if built.returncode:
                return "does not build", ""
            texts[Path(LIBRARY).name] = (TREE / LIBRARY).read_bytes()
        with tempfile.TemporaryDirectory() as site:
            runtime_mutation.lay_out(Path(site), texts)
            return self.run_tests(mend, functions, Path(site))

    def run_tests(self, mend: Mend, functions, site: Path) -> tuple[str, str]:
        """Run tests that may notice, the most likely first, while there is time."""
        own = mend.own_tests()
        files = companions(mend, self.commits)
        chosen = runtime_mutation.tests_of(functions, self.notes)
        left_out = ["-p", "touching", f"--leave-out={','.join(sorted(own))}"]
        end = time.monotonic() + self.options.limit
        for tests in (chosen, *([file] for file in files)):
            limit = end - time.monotonic()
            if tests and limit > 0:
                verdict, by = runtime_mutation.run_tests([*left_out, *tests], site, limit)
                if verdict == "noticed" and by != "hangs":
                    return "noticed", by
        return "unnoticed", "time is up" if time.monotonic() > end else "all that is near has run"


def main() -> int:
    """Parse the command line, and take back what is left."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sample", type=int, default=20, help="how many mends that still apply")
    parser.add_argument("--of", type=int, default=150, help="of so many, the last ones")
    parser.add_argument("--seed", type=int, default=0, help="which ones")
    parser.add_argument("--only", choices=["py", "cpp"], help="those that change one language")
    parser.add_argument("--limit", type=float, default=300, help="seconds of tests for each")
    parser.add_argument("--build", default=BUILD, help="the command that builds the worktree")
    parser.add_argument("--touched", type=Path, default=ROOT / "build" / "touched.jsonl")
    parser.add_argument("--journal", type=Path, default=ROOT / "build" / "reverted-mends.jsonl")
    parser.add_argument(
        "--seconds", type=float, default=float("inf"), help="begin nothing after so long"
    )
    options = parser.parse_args()
    commits = history()
    mends = [commit for commit in commits if commit.is_mend][: options.of]
    if options.only:
        python = options.only == "py"
        mends = [m for m in mends if python == all(path.startswith(PYTHON) for path in m.sources)]
    mends.sort(key=lambda m: place(options.seed, m.commit))
    level = os.environ.get("TRITON_AUTODIFF_CPU_LEVEL", "")
    end, journal, judge = time.monotonic() + options.seconds, Journal(options.journal), None
    verdicts = collections.Counter()
    for mend in mends:
        if verdicts.total() - verdicts[GONE] >= options.sample:
            break
        name = f"{mend.commit} level {level}" if level else mend.commit
        if name not in journal.known:
            if time.monotonic() > end:
                continue
            judge = judge or Judge(options, commits)
            began = time.monotonic()
            verdict, by = judge.judge(mend)
            seconds = round(time.monotonic() - began, 1)
            line = {"name": name, "verdict": verdict, "by": by, "subject": mend.subject}
            journal.add(line | {"seconds": seconds})
        line = journal.known[name]
        verdicts[line["verdict"]] += 1
        print(f"{line['verdict']:15} {name} {line['subject'][:60]}  {line['by'][:90]}", flush=True)
    print(", ".join(f"{count} {verdict}" for verdict, count in verdicts.items()))
    return int(bool(verdicts["unnoticed"]))


if __name__ == "__main__":
    sys.exit(main())
