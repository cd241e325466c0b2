"""Check that each C++ file includes only what its layer may include.

The layers are a table in docs/architecture.md, the lowest first. A file includes those of its own
folder and of the rows above it: so nothing goes round in a circle, either.
"""

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TABLE = ROOT / "docs/architecture.md"
SOURCES = ROOT / "third_party/autodiff"
HEADERS = ("include/autodiff/", "include/autodiff-c/", "lib/")
# How files name those of other folders, and what the folder's path then begins with.
SPELLINGS = {"autodiff/": "", "autodiff-c/": "CAPI/", "": "Transforms/"}


def read_rows(section="Layers"):
    """Return what the first cells of a section's table name, each with the number of its row."""
    section = TABLE.read_text().split(f"\n## {section}\n")[1].split("\n## ")[0]
    rows = [row.split("|")[1] for row in section.splitlines() if row.startswith("| `")]
    return {name: row for row, names in enumerate(rows) for name in re.findall("`(.+?)`", names)}


def folder_of(path, layers):
    """Return the innermost folder of the table that has `path`, or None."""
    within = [name for name in layers if path == name or path.startswith(name + "/")]
    return max(within, key=len, default=None)


def own_path(source):
    """Return where `source` is, as the table has folders."""
    path = source.relative_to(SOURCES).as_posix()
    prefix = next(prefix for prefix in HEADERS if path.startswith(prefix))
    return ("CAPI/" if prefix == "include/autodiff-c/" else "") + path.removeprefix(prefix)


def included_paths(source):
    """Yield the line of each include of ours in `source`, and where what it names is."""
    for number, line in enumerate(source.read_text().splitlines(), 1):
        found = re.match(r'#include "(.+/.+)"', line)
        for spelling, folder in SPELLINGS.items() if found else ():
            path = folder + found[1].removeprefix(spelling)
            if found[1].startswith(spelling) and (spelling or (SOURCES / "lib" / path).exists()):
                yield number, path
                break


def main():
    layers = read_rows()
    sources = [f for prefix in HEADERS for f in (SOURCES / prefix).rglob("*.*")]
    wrong = 0
    for source in sorted(f for f in sources if f.suffix in (".h", ".c", ".cpp")):
        folder = folder_of(own_path(source), layers)
        for number, path in included_paths(source):
            other = folder_of(path, layers)
            if folder == other and folder or layers.get(other, 99) < layers.get(folder, -1):
                continue
            wrong += 1
            where = f"{source.relative_to(ROOT)}:{number}"
            print(f"{where}: {folder} may not include {path}, of {other} ({TABLE.name}, Layers)")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
