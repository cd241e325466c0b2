"""Print docs/results.md: the tables of benchmarks/published.json.

    python benchmarks/results.py > docs/results.md

A table has a title, a date, a machine, a note, footnotes and rows. Numbers are as the run printed
them; a ratio is of times before they were rounded.
"""

import json
import textwrap
from pathlib import Path

from report import COLUMNS, table

WIDTH = 98
HEADER = """\
# Results

A row is a backward. Its numbers are GPU times in microseconds, if a table says nothing else: that
of the derived kernels under *ours*, then those of others. A ratio is our time over another one.
Smaller is better, and *ours / best* is over the fastest other one. [measuring.md](measuring.md)
says how times are measured and what the columns mean; [decisions](decisions/README.md) say what was
learnt from them.

`make docs` generates this page from `benchmarks/published.json`, which says when and where each
table was measured.
"""


def cell(row, key):
    """One cell of a row; empty if there is no value."""
    value = row.get(key)
    if value is None:
        return ""
    if key == "difference":
        return " ".join([f"{value:.1e}", *row.get("marks", "")])
    return f"{value:.2f}" if key in ("ratio", "of_copy") else f"{value}"


def section(entry):
    """A table with its title and notes."""
    rows = entry["rows"]
    titles = {**COLUMNS, "ratio": entry["ratio"], "of_copy": "of copy", "difference": "difference"}
    keys = [key for key in titles if any(key in row for row in rows)]
    lines = [[row["name"], *(cell(row, key) for key in keys)] for row in rows]
    return [
        f"## {entry['title']}",
        "",
        f"{entry['date']}, {entry['machine']}.",
        "",
        *textwrap.wrap(entry["note"], WIDTH, break_long_words=False, break_on_hyphens=False),
        "",
        *table([entry["of"], *(titles[key] for key in keys)], lines),
        *(line for note in entry["footnotes"] for line in [*textwrap.wrap(note, WIDTH), ""]),
    ]


def main():
    path = Path(__file__).with_name("published.json")
    lines = [line for entry in json.loads(path.read_text()) for line in section(entry)]
    print(HEADER + "\n" + "\n".join(lines).rstrip())


if __name__ == "__main__":
    main()
