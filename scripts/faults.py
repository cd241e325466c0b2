"""Check the table of others' faults, and with `--write` renew docs/faults.md.

The table is `faults.json`, beside `table.py`, which says what its entries are. Their files, passes
and tests exist; descriptions of passes name the faults that these are there for, as "Fault: NAME.";
each module of `faults` is there for a fault; and the page is what the table says.
"""

import argparse
import ast
import importlib.util
import re
import sys
import textwrap
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
AUTODIFF = ROOT / "third_party/autodiff"
ROOM = AUTODIFF / "backend/faults"
PAGE = ROOT / "docs/faults.md"
TESTS = "python/test/unit/test_faults.py"
# Where the files of entries are: they may be the end of a path.
FOLDERS = [AUTODIFF / "backend", AUTODIFF / "lib", ROOT / "python/test"]
# What is there for all faults.
COMMON = {"__init__.py", "table.py"}
SHOWN = {
    "compiling": "compiling with Triton",
    "ptxas": "assembling with ptxas",
    "python": "a run of Python",
    "gpu": "a GPU",
    None: "nothing that is small",
}
PASS = re.compile(r'^def \w+ : [^"]*"(?P<name>[\w-]+)".*?^\}', re.MULTILINE | re.DOTALL)
HEADER = """\
# Faults of others

`make docs` generates this page from
[`faults.json`](../third_party/autodiff/backend/faults/faults.json).

A *fault* is something that a program does wrong which we work with: Triton, ptxas, PyTorch, LLVM or
CPython. ptxas is NVIDIA's assembler. It makes machine code of PTX, the text that Triton compiles a
kernel to. Triton brings its own ptxas.

We work around these faults. This page says what each is, how we notice it, what we do, and when
our code for it may go. Python and C++ read the same table. So a version is written in one place.

- A fault is there *from* one version on, and some later version is *right*. A dash says that we do
  not know, or that no version is right yet. A version is written down only if it was run.
- Some faults are *avoided* from a Triton on: they are still there, but that Triton does not meet
  them.
- A fault is *shown* by what is needed to see it without our code. `test_faults.py` shows all those
  that need no GPU, with every Triton. It fails when a fault is gone, and says what to do then.
- `python -m triton_autodiff doctor` lists the faults of what is installed.
"""


def table():
    """Return the module `table.py`, from its file: the package may not be installed."""
    spec = importlib.util.spec_from_file_location("table", ROOM / "table.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def wrapped(text, indent=""):
    """Return text in lines of the page, none of which ends within code."""
    whole = re.sub(r"`[^`]*`", lambda code: code[0].replace(" ", "\0"), text)
    lines = textwrap.fill(
        whole,
        100,
        subsequent_indent=indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
    return lines.replace("\0", " ")


def versions(fault):
    """Return in words which versions have a fault."""
    parts = [f"from {fault.since}" if fault.since else "", f"right: {fault.right or '–'}"]
    parts.append(f"avoided: Triton {fault.avoided}" if fault.avoided else "")
    return ", ".join(filter(None, parts))


def section(fault):
    """Return the section of a fault."""
    targets = f" On {', '.join(fault.targets)}." if fault.targets else ""
    items = {
        "Versions": f"{versions(fault)}.{targets}",
        "Noticed": fault.noticed,
        "Done": fault.done,
        "Where": ", ".join(f"`{place}`" for place in fault.where),
        "Goes": f"{fault.goes}.",
        "Shown by": f"{SHOWN[fault.shown]}. Test: `{fault.test}`",
    }
    lines = [f"## {fault.name}", "", wrapped(f"Of {fault.of}. {fault.what}"), ""]
    lines += [wrapped(f"- {name}: {text}", "  ") for name, text in items.items()]
    return "\n".join([*lines, ""])


def page(faults):
    """Return the text of the page."""
    rows = [
        f"| [{f.name}](#{f.name}) | {f.of} | {versions(f)} | {SHOWN[f.shown]} |" for f in faults
    ]
    head = ["| fault | of | versions | shown by |", "|---|---|---|---|"]
    return "\n".join([HEADER, *head, *rows, "", *map(section, faults)])


def passes():
    """Return the faults that each pass names."""
    found = {}
    for file in (AUTODIFF / "include").rglob("*.td"):
        for match in PASS.finditer(file.read_text()):
            found[match["name"]] = set(re.findall(r"\bFault:\s+([\w-]+)\.", match[0]))
    return found


def is_test(name):
    """Return whether a test exists: a file, or a function in it."""
    file, _, function = name.partition("::")
    path = ROOT / file
    if not path.is_file() or not function:
        return path.is_file()
    return any(getattr(node, "name", "") == function for node in ast.parse(path.read_text()).body)


def wrong_entries(faults, named):
    """Yield what is wrong with the entries."""
    files = [str(file) for folder in FOLDERS for file in folder.rglob("*") if file.is_file()]
    for fault in faults:
        for place in fault.where:
            if place in named:
                if fault.name not in named[place]:
                    yield f"{fault.name}: the description of {place} does not name it"
            elif not any(file.endswith(f"/{place}") for file in files):
                yield f"{fault.name}: there is no file and no pass {place}"
        if not is_test(fault.test):
            yield f"{fault.name}: there is no test {fault.test}"
        own = f"{TESTS}::test_{fault.name.replace('-', '_')}"
        if fault.shown in ("compiling", "ptxas", "python") and fault.test != own:
            yield f"{fault.name}: its test is not {own}"


def wrong(faults):
    """Yield what is wrong."""
    named = passes()
    yield from wrong_entries(faults, named)
    for name, of in named.items():
        entries = {fault.name for fault in faults if name in fault.where}
        yield from (f"{name}: names {fault}, which is not there for it" for fault in of - entries)
    places = {place for fault in faults for place in fault.where}
    for file in sorted({path.name for path in ROOM.glob("*.py")} - COMMON):
        if f"faults/{file}" not in places:
            yield f"faults/{file}: is there for no fault"
    if not PAGE.is_file() or PAGE.read_text() != page(faults):
        yield f"{PAGE.name} is not what the table says: run `python scripts/faults.py --write`"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--write", action="store_true", help="renew docs/faults.md")
    faults = table().faults()
    if parser.parse_args().write:
        PAGE.write_text(page(faults))
    said = list(wrong(faults))
    print("".join(f"{line}\n" for line in said), end="")
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
