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

Times of derived backward kernels beside those of others, in microseconds of GPU work. `make docs`
generates this page from `benchmarks/published.json`, which says when and where each table was
measured. How it is measured, and what the columns mean, is in [measuring.md](measuring.md). What
was learnt from it is in [decisions](decisions/README.md). Of ratios, smaller is better;
*ours / best* is of the best other one.
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
