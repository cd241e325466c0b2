"""Command line: `python -m triton_autodiff corpus DIR`."""

import argparse
import json
import sys

from . import corpus


def main(arguments=None):
    """Run a command and return the exit status: 0 if every file passed every step asked for."""
    parser = argparse.ArgumentParser(prog="python -m triton_autodiff")
    commands = parser.add_subparsers(dest="command", required=True)
    table = commands.add_parser("corpus", help="how far each TTIR file of a folder gets")
    table.add_argument("folder", help="searched for *.ttir, subfolders too; or one file")
    table.add_argument("--target", default="cuda:90", help="cuda:90, hip:gfx942, cpu")
    table.add_argument("--steps", nargs="+", choices=corpus.STEPS, default=corpus.STEPS)
    table.add_argument("--workers", type=int, default=2)
    table.add_argument("--timeout", type=float, default=600.0, help="seconds per file")
    table.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    options = parser.parse_args(arguments)

    def progress(row):
        print(f"{row.file} ({row.seconds:.1f} s)", file=sys.stderr, flush=True)

    # Every later step needs the parsed module.
    steps = [step for step in corpus.STEPS if step in options.steps or step == "parsed"]
    if "accepted" in steps and "differentiated" not in steps:
        steps.insert(steps.index("accepted"), "differentiated")
    rows = corpus.run_corpus(
        options.folder, options.target, steps, options.workers, options.timeout, progress
    )
    if options.json:
        print(json.dumps([row.as_json() for row in rows], indent=1))
    else:
        print(corpus.format_table(rows, steps))
    return 0 if rows and all(row.reached(step) for row in rows for step in steps) else 1


if __name__ == "__main__":
    sys.exit(main())
