"""Check that the documentation of the passes says what they do.

    python scripts/check_passes.py --build build/core

docs/architecture.md has a table row for each pass, in the order of the pipeline; the row's first
cell links an example in docs/passes. An example is lines of a lit test's IR before the pass and
after it. Here the test runs again, and both must be what the compiler prints. Values may have
other names, `…` stands for anything, and the types at the end of a line may be missing.
"""

import argparse
import itertools
import re
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
DOCS = ROOT / "docs"
AUTODIFF = ROOT / "third_party" / "autodiff"
MOST_WORDS = 120
# It runs between all others.
ANYWHERE = {"cleanup"}
ROW = re.compile(
    r"^\| \[(?P<name>[\w-]+)\]\((?P<page>passes/\w+\.md)#(?P<anchor>[\w-]+)\) \|"
    r" (?P<purpose>.+) \| (?P<needs>.+) \| (?P<leaves>.+) \| `(?P<file>\w+\.cpp)` \|$",
    re.MULTILINE,
)
EXAMPLE = re.compile(
    r"^## (?P<name>[\w-]+)\n\n[^`#]*(?:`[^`]+`[^`#]*)*```text\n// (?P<test>[\w-]+\.mlir)\n"
    r"(?P<before>.*?)^=>\n(?P<after>.*?)^```$",
    re.MULTILINE | re.DOTALL,
)
# In front of each: when it was made, and whether the pass has failed.
DUMP = re.compile(r"^// -----// IR Dump (Before|After) \w+ (Failed )?\([\w-]+\).*$", re.MULTILINE)


class Compiler:
    """`triton-autodiff-opt`, and what it says of itself."""

    def __init__(self, build):
        self.program = str(build / "bin" / "triton-autodiff-opt")

    def run(self, *options, **how):
        return subprocess.run([self.program, *options], capture_output=True, text=True, **how)

    def passes(self):
        """The names of our passes, without what they begin with."""
        text = self.run("--help").stdout
        text = text[text.index("Passes:") : text.index("Pass Pipelines:")]
        return set(re.findall(r"^      --autodiff-([\w-]+) ", text, re.MULTILINE))

    def pipeline(self, name):
        """The passes of a pipeline in order, each where it comes first."""
        text = self.run(f"--autodiff-{name}", "--dump-pass-pipeline", input="module {}").stderr
        return list(dict.fromkeys(re.findall(r"^ +autodiff-([\w-]+)", text, re.MULTILINE)))

    def commands(self, test):
        """The options of a lit test's runs."""
        text = re.sub(r"\\\n// RUN:", "", test.read_text())
        for line in re.findall(r"^// RUN: (.*)$", text, re.MULTILINE):
            if "sed " in line or "split-file " in line:
                continue
            program, *options = shlex.split(line.split("|")[0])
            if program.startswith("%"):
                # As far as one of the passes, or all of them: it is the same until then.
                yield ["--autodiff-differentiate", "-split-input-file", str(test)]
            elif program == "triton-autodiff-opt":
                kept = [word for word in options if word != "-verify-diagnostics"]
                yield [str(test) if word == "%s" else word for word in kept]

    def changes(self, test, name):
        """What the IR of a test is before a pass and after it, each time that it runs."""
        for options in self.commands(test):
            prints = [f"--mlir-print-ir-{when}=autodiff-{name}" for when in ("before", "after")]
            text = self.run(*options, *prints, "--mlir-disable-threading", "-o", "/dev/null").stderr
            pieces = DUMP.split(text)[1:]
            dumps = zip(pieces[::3], pieces[1::3], pieces[2::3], strict=True)
            for (first, _, before), (second, failed, after) in itertools.pairwise(dumps):
                if (first, second) == ("Before", "After"):
                    # Of a pass that fails, the error comes before the second dump.
                    yield before, before if failed else after


def pattern(lines):
    """A regular expression for these lines in this order, with others between them.

    What has another name is another value.
    """
    seen, parts = [], []
    for line in lines:
        text = ""
        for piece in re.split(r"(%\w+|…)", line.strip()):
            if piece == "…":
                text += r"[^\n]*?"
            elif re.fullmatch(r"%\w+", piece):
                name = f"v_{piece[1:]}"
                others = "".join(rf"(?!(?P={other})(?!\w))" for other in seen if other != name)
                text += rf"(?P={name})(?!\w)" if name in seen else rf"{others}(?P<{name}>%\w+)"
                seen.append(name)
            else:
                text += re.escape(piece)
        parts.append(rf"^ *{text}(?: *[:{{][^\n]*| *-> [^\n]*)?$")
    return re.compile(r"\n(?:[^\n]*\n)*?".join(parts), re.MULTILINE)


def source_of(name):
    """The file that has the class of a pass."""
    defined = re.compile(rf'^def (\w+) : [^"]*"autodiff-{name}"', re.MULTILINE)
    names = [defined.search(td.read_text()) for td in (AUTODIFF / "include").rglob("*.td")]
    [record] = [match[1] for match in names if match]
    base = f"::{record}Base<"
    [path] = [p for p in (AUTODIFF / "lib").rglob("*.cpp") if base in p.read_text()]
    return path.name


def wrong_rows(rows, compiler):
    """What is wrong with the table."""
    names = [row["name"] for row in rows]
    for name in compiler.passes() ^ set(names):
        yield f"{name}: the page and the compiler have not the same passes"
    for name in {name for name in names if names.count(name) > 1}:
        yield f"{name}: has two rows"
    earlier = set(ANYWHERE)
    for pipeline in ("differentiate", "differentiate-function"):
        order = [name for name in compiler.pipeline(pipeline) if name not in earlier]
        earlier.update(order)
        listed = [name for name in names if name in order]
        if listed != order:
            yield f"{pipeline} runs {order}, and the page lists {listed}"
    for row in rows:
        if row["file"] != source_of(row["name"]):
            yield f"{row['name']}: is in {source_of(row['name'])}"
        if row["anchor"] != row["name"]:
            yield f"{row['name']}: links {row['anchor']}"
        if len(row[0].split()) > MOST_WORDS:
            yield f"{row['name']}: has more than {MOST_WORDS} words"


def wrong_examples(rows, compiler):
    """What is wrong with the examples."""
    tests = {path.name: path for path in (AUTODIFF / "test").rglob("*.mlir")}
    for row in rows:
        page = (DOCS / row["page"]).read_text()
        examples = [match for match in EXAMPLE.finditer(page) if match["name"] == row["name"]]
        if len(examples) != 1:
            yield f"{row['name']}: {row['page']} has {len(examples)} examples"
            continue
        before, after = (pattern(examples[0][part].splitlines()) for part in ("before", "after"))
        changes = list(compiler.changes(tests[examples[0]["test"]], row["name"]))
        if not any(before.search(first) and after.search(second) for first, second in changes):
            yield f"{row['name']}: {row['page']} is not what the compiler prints"


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "core")
    compiler = Compiler(parser.parse_args().build)
    rows = list(ROW.finditer((DOCS / "architecture.md").read_text()))
    wrong = [*wrong_rows(rows, compiler), *wrong_examples(rows, compiler)]
    print("\n".join(wrong) or f"{len(rows)} passes are as they are documented")
    sys.exit(bool(wrong))


if __name__ == "__main__":
    main()
