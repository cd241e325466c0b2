"""The arena's commands; see the package."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Iterator
from pathlib import Path

from . import ROOT
from .atomics import summary
from .case import Case
from .packages import installed, plugins
from .pool import Pool, default_cache, threads_of_each
from .rows import ATOMICS, JUDGED, ORDERS, TIMED, Sink, read, settled
from .worker import Request


def chosen(options) -> Iterator[tuple[str, Case]]:
    """The cases that the options select, with their plug-ins."""
    names = [name for name in options.only.split(",") if name]
    others = [name for name in options.but.split(",") if name]
    for package, plugin in plugins().items():
        if not installed(plugin):
            print(f"{package}: {', '.join(plugin.PACKAGES)} is not installed", file=sys.stderr)
            continue
        for case in plugin.cases():
            if case.gpu and options.device == "cpu":
                continue
            if any(name in case.name or name == package for name in others):
                continue
            if not names or any(name in case.name or name == package for name in names):
                yield package, case


def tasks(options) -> list[list]:
    """For each case its variants, of this shard."""
    index, count = map(int, options.shard.split("/"))
    sizes = ["small"] if options.device == "cpu" and not options.sizes else options.sizes
    found = []
    for package, case in chosen(options):
        variants = [
            [package, case.name, *variant]
            for variant in case.variants()
            if (not sizes or variant.size in sizes)
            and (not options.dtypes or variant.dtype in options.dtypes)
        ]
        if variants:
            found.append(variants)
    return found[index::count]


def machine() -> dict:
    """A description of the machine for the rows."""
    import torch
    import triton

    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    from importlib.metadata import version

    packages = {
        package: version(package)
        for plugin in plugins().values()
        if installed(plugin)
        for package in plugin.PACKAGES
    }
    return {"device": name, "torch": torch.__version__, "triton": triton.__version__, **packages}


def _open(options, name: str, first=False):
    """The variants of each case, or of its first one, that have no row yet, and the file for their
    rows.
    """
    before = read([*options.done, options.out], name)
    found = [case[:1] if first else case for case in tasks(options)]
    done = {key for key, row in before.items() if settled(row, options.retry)}
    left = [[task for task in case if tuple(task) not in done] for case in found]
    left = [case for case in left if case]
    sink = Sink(options.out, name, machine())

    def write(row):
        sink.write(row)
        said = row.get("failed") or row.get("verdict") or row.get("us") or row.get("atomics", "")
        print(row["package"], row["case"], row["size"], row["dtype"], said, sep="\t", flush=True)

    return left, write


def _request(options, job: str, tasks_: list) -> Request:
    exact = "first" if options.device == "cpu" else "last"
    cache = str(options.cache.resolve())
    given = json.loads(options.options)
    return Request(job, options.device, tasks_, exact, not options.unspoilt, given, cache)


def _run(options, job: str, name: str, done: str) -> None:
    left, write = _open(options, name)
    threads_of_each(options.jobs)
    pool = Pool(options.jobs, write, options.limit, options.seconds)
    missing = pool.run(_request(options, job, case) for case in left)
    print(f"{missing} variants are left" if missing else f"all variants are {done}")


def judge(options) -> None:
    """Judge the gradients of all variants; also measures a case's first call."""
    _run(options, "judge", JUDGED, "judged")


def orders(options) -> None:
    """Compare tangents with gradients, and second derivatives with one another."""
    options.sizes = options.sizes or ["small"]
    _run(options, "orders", ORDERS, "looked at")


def count_atomics(options) -> None:
    """List the gradients that meet in atomic operations."""
    _run(options, "atomics", ATOMICS, "looked at")
    print(summary(read([*options.done, options.out], ATOMICS).values()))


def measure(options) -> None:
    """Measure times, in one process. Before that, several jobs compile the kernels.

    Without sizes and dtypes, only the variant that counts: half precision at users' sizes.
    """
    first = not (options.sizes or options.dtypes)
    options.sizes = options.sizes or ["users"]
    left, write = _open(options, TIMED, first)
    threads_of_each(options.jobs)
    cold = [case for case in left if _is_cold(options, case)]
    Pool(options.jobs, lambda row: None, options.limit, options.seconds / 2).run(
        _request(options, "warm", case) for case in cold
    )
    pool = Pool(1, write, options.limit, options.seconds / (2 if cold else 1))
    missing = pool.run([_request(options, "time", [task for case in left for task in case])])
    print(f"{missing} variants are left" if missing else "all variants are timed")


def _is_cold(options, case: list) -> bool:
    return not Path(options.cache, f"{case[0][0]}-{case[0][1]}").is_dir()


def report(options) -> None:
    """Write the page and its picture."""
    from .report import write

    write(options.folders, options.page)


def show(options) -> None:
    """List the cases."""
    count = 0
    for package, case in chosen(options):
        count += 1
        print(package, case.name, case.family, *map(str, case.variants()), sep="\t")
    print(f"{count} cases")


def parser() -> argparse.ArgumentParser:
    """The command line."""
    top = argparse.ArgumentParser(prog="arena", description=__doc__)
    commands = top.add_subparsers(required=True)
    import torch

    device = "cuda" if torch.cuda.is_available() else "cpu"
    for name, function in (
        ("judge", judge),
        ("orders", orders),
        ("atomics", count_atomics),
        ("time", measure),
        ("list", show),
    ):
        command = commands.add_parser(name, help=function.__doc__)
        command.set_defaults(function=function)
        command.add_argument("--only", default="", help="names, or parts of names, with commas")
        command.add_argument("--but", default="", help="names of what is left out, as --only")
        command.add_argument("--device", default=device, choices=["cpu", "cuda"])
        command.add_argument("--sizes", type=lambda s: s.split(","), default=[])
        command.add_argument("--dtypes", type=lambda s: s.split(","), default=[])
        command.add_argument("--shard", default="0/1", help="i/n: every n-th case, from the i-th")
        if name == "list":
            continue
        command.add_argument("--out", type=Path, required=True, help="where rows are written")
        command.add_argument("--done", type=Path, nargs="*", default=[], help="earlier folders")
        command.add_argument("--retry", action="store_true", help="run again what has failed")
        command.add_argument("--jobs", type=int, default=1, help="processes side by side")
        command.add_argument("--seconds", type=float, default=1e6, help="when to stop")
        command.add_argument("--limit", type=float, default=180, help="seconds for a variant")
        command.add_argument("--cache", type=Path, default=default_cache())
        command.add_argument("--unspoilt", action="store_true", help="do not judge the judge")
        command.add_argument("--options", default="{}", help="of `differentiable`, as JSON")
    command = commands.add_parser("report", help=report.__doc__)
    command.set_defaults(function=report)
    command.add_argument("folders", type=Path, nargs="+")
    command.add_argument("--page", type=Path, default=ROOT / "docs" / "arena.md")
    return top


def main() -> None:
    """Run a command."""
    options = parser().parse_args()
    options.function(options)


if __name__ == "__main__":
    main()
