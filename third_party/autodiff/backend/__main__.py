"""Command line: `python -m triton_autodiff`."""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import os
import sys
from pathlib import Path

from . import __version__
from .errors import AutodiffError
from .inspecting import choices, comparison, corpus, doctor, stored_plans
from .plans import recording
from .support import leftovers, waiting

TARGETS = "cuda:90, hip:gfx942, cpu"
KERNEL = "a kernel as Triton prints it, *.ttir, or a request that was recorded, *.json"


def _corpus(options) -> int:
    """Run one of the four `corpus` commands; returns 0 if all is well."""
    if options.compare:
        return _compare_plans(options)
    if options.choices:
        print(choices.table(stored_plans.read(options.choices)))
        return 0
    if options.folder is None:
        raise AutodiffError("corpus needs a folder, or a file of plans to --compare with")
    return _record_plans(options) if options.record else _corpus_table(options)


def _say(what: str) -> None:
    """Report progress to a person who waits."""
    print(what, file=sys.stderr, flush=True)


def _record_plans(options) -> int:
    """Write the plans of a corpus to a file."""
    asked = recording.read(options.folder)
    plans, errors = stored_plans.record(
        options.record, asked, options.targets, options.workers, options.timeout, _say
    )
    targets = len(set(options.targets))
    size = os.path.getsize(options.record) / 2**20
    print(
        f"{len(asked)} requests for {targets} targets: {plans} plans and {errors} errors in "
        f"{options.record}, {size:.1f} MiB"
    )
    return 0


def _compare_plans(options) -> int:
    """Print how plans differ from those in a file; returns 0 if all differences are accepted."""
    if options.folder or options.record:
        raise AutodiffError("--compare takes the corpus from its file: leave DIR and --record out")
    accepted = comparison.read_accepted(options.accept) if options.accept else []
    found = stored_plans.compare_with(options.compare, options.workers, options.timeout, _say)
    report = comparison.Report(found, accepted)
    print(report.as_json() if options.json else report.text(options.lines))
    return 1 if report.others else 0


def _corpus_table(options) -> int:
    """Print how far each file gets; 0 if every file passed every step asked for."""
    if not Path(options.folder).exists():
        raise AutodiffError(f"{options.folder} does not exist: give a folder with *.ttir files")

    def progress(row):
        _say(f"{row.file} ({row.seconds:.1f} s)")

    # Every other step needs the parsed module.
    steps = [step for step in corpus.STEPS if step in options.steps or step == "parsed"]
    if "accepted" in steps and "differentiated" not in steps:
        steps.insert(steps.index("accepted"), "differentiated")
    rows = corpus.run_corpus(
        options.folder,
        options.target,
        steps,
        options.workers,
        options.timeout,
        progress,
        assemble=not options.text,
    )
    if options.json:
        print(json.dumps([row.as_json() for row in rows], indent=1))
    else:
        print(corpus.format_table(rows, steps))
    return 0 if rows and all(row.reached(step) for row in rows for step in steps) else 1


def _explain(options) -> int:
    """Print what `explain()` says of a kernel that is not launched."""
    print(_kernel_files().explained(options.file, options.target, options.ir, options.verbose))
    return 0


def _source(options) -> int:
    """Print a kernel as Triton Python."""
    print(_kernel_files().as_python(options.file), end="")
    return 0


def _kernel_files():
    from .inspecting import kernel_files

    return kernel_files


def _example(place: str):
    """Return what the function at FILE.py:NAME or MODULE:NAME returns, an operation and inputs."""
    source, _, name = place.partition(":")
    name = name or "example"
    if source.endswith(".py"):
        path = Path(source).resolve()
        sys.path.insert(0, str(path.parent))
        spec = importlib.util.spec_from_file_location(path.stem, path)
        module = sys.modules[path.stem] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    else:
        sys.path.insert(0, "")
        module = importlib.import_module(source)
    function = getattr(module, name, None)
    if not callable(function):
        raise AutodiffError(f"{source} has no function {name!r}: name one, {source}:NAME")
    result = function()
    if not (isinstance(result, tuple) and len(result) == 2 and callable(result[0])):
        raise AutodiffError(f"{name}() should return an operation and its inputs, got {result!r}")
    return result


@contextlib.contextmanager
def _one_thread():
    """Compute gradients in this thread: an error in one of autograd's own may still be freed there
    when the process ends, which aborts it.
    """
    import torch

    with torch.autograd.set_multithreading_enabled(False):
        yield


@_one_thread()
def _check(options) -> int:
    """Print a comparison with finite differences; returns 0 if all gradients are right."""
    from .inspecting.gradient_check import check

    op, inputs = _example(options.example)
    report = check(
        op,
        inputs,
        elements=options.elements,
        directions=options.directions,
        rtol=options.rtol,
        seed=options.seed,
        raise_exception=False,
    )
    print(report)
    return 0 if report else 1


@_one_thread()
def _doctor(options) -> int:
    """Print the findings; returns 0 if nothing is wrong."""
    is_well = True
    for finding in doctor.examine():
        print(finding, flush=True)
        is_well &= finding.mark != "wrong"
    print("nothing is wrong" if is_well else "something is wrong, see above")
    return 0 if is_well else 1


def _cache(options) -> int:
    """Print what is in the cache directory, and delete it if asked to."""
    from triton import knobs

    found = leftovers.find(knobs.cache.dir)
    for kind, (count, size) in leftovers.totals(found).items():
        print(f"{count:6} {kind}, {size / 2**20:.1f} MiB")
    if options.action == "clear":
        leftovers.remove(found)
    done = "deleted from" if options.action == "clear" else "in"
    print(f"{len(found)} entries of this package {done} {knobs.cache.dir}")
    return 0


def _positive(text: str) -> int:
    number = int(text)
    if number < 1:
        raise argparse.ArgumentTypeError(f"{number} is no positive number")
    return number


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="python -m triton_autodiff",
        description="Reverse-mode differentiation of Triton kernels.",
    )
    parser.add_argument("--version", action="version", version=f"triton-autodiff {__version__}")
    commands = parser.add_subparsers(dest="command", required=True)

    table = commands.add_parser(
        "corpus", help="how far each TTIR file of a folder gets, or what has changed in its plans"
    )
    table.add_argument(
        "folder",
        nargs="?",
        help="searched for *.ttir and for requests that were recorded, *.json, subfolders too; or "
        "one file",
    )
    table.add_argument("--target", default="cuda:90", help=TARGETS)
    table.add_argument("--steps", nargs="+", choices=corpus.STEPS, default=corpus.STEPS)
    table.add_argument(
        "--text", action="store_true", help="compile to assembly text, without the assembler"
    )
    table.add_argument("--workers", "--jobs", type=_positive, default=2, help="processes at a time")
    table.add_argument("--timeout", type=float, default=600.0, help="seconds per file")
    table.add_argument("--json", action="store_true", help="one JSON list instead of a table")
    table.add_argument("--record", metavar="FILE", help="write all plans to a file, no table")
    table.add_argument(
        "--targets", nargs="+", default=stored_plans.TARGETS, help="of the plans to --record"
    )
    table.add_argument(
        "--compare",
        metavar="FILE",
        help="derive the plans of that file again, and list how they differ",
    )
    table.add_argument(
        "--choices",
        metavar="FILE",
        help="count the kernels of that file for which other targets get other choices than sm_90",
    )
    table.add_argument(
        "--accept",
        metavar="FILE",
        help="differences that are as they should be, a line each: KERNEL TARGET FIELD: reason",
    )
    table.add_argument(
        "--lines", type=int, default=40, help="shown of each difference; 0: all of them"
    )
    table.set_defaults(run=_corpus)

    explain = commands.add_parser(
        "explain", help="how a kernel's gradients would be computed, and why"
    )
    explain.add_argument("file", help=KERNEL)
    explain.add_argument("--target", default="cuda:90", help=TARGETS)
    explain.add_argument("--ir", action="store_true", help="print the backward kernels instead")
    explain.add_argument(
        "--verbose", action="store_true", help="also say what was tried, and what stood in its way"
    )
    explain.set_defaults(run=_explain)

    source = commands.add_parser("source", help="print a kernel as Triton Python")
    source.add_argument("file", help=KERNEL)
    source.set_defaults(run=_source)

    check = commands.add_parser("check", help="compare gradients with finite differences")
    check.add_argument(
        "example",
        metavar="FILE.py[:NAME]",
        help="or MODULE[:NAME]: a function without arguments (by default, `example`) that returns "
        "an operation and a tuple of its inputs",
    )
    check.add_argument("--elements", type=int, default=32, help="compared of each input")
    check.add_argument("--directions", type=int, default=2, help="over all elements of an input")
    check.add_argument("--rtol", type=float, help="by default, as the dtypes ask for")
    check.add_argument("--seed", type=int, default=0)
    check.set_defaults(run=_check)

    examine = commands.add_parser("doctor", help="what is wrong with the installation, if anything")
    examine.set_defaults(run=_doctor)

    cache = commands.add_parser("cache", help="what this package keeps in Triton's cache directory")
    cache.add_argument(
        "action", choices=["show", "clear"], help="clear deletes it, and nothing else"
    )
    cache.set_defaults(run=_cache)
    return parser


def main(arguments=None) -> int:
    """Run a command and return its exit status: 1 if something is wrong with what it examines."""
    options = _parser().parse_args(arguments)
    try:
        waiting.start()
        return options.run(options)
    except BrokenPipeError:  # whoever reads has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (AutodiffError, OSError, ImportError, UnicodeDecodeError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
