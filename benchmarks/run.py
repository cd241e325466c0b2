"""Times of derived backward kernels beside PyTorch's and hand-written ones, on a GPU.

    python benchmarks/run.py [--quick] [--only FAMILY] [--compile] [--tune] [--output FOLDER]
                             [--resume]

writes results.json and results.md; to those that are there, with --resume. Rows run in a worker
process: one that fails, hangs or breaks the CUDA context is reported with its reason and the next
row starts in a fresh worker. Triton's cache is a new one, so that first calls compile.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import tempfile
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from report import markdown  # noqa: E402
from streams import lines_of  # noqa: E402

# Seconds for a row; tuning the hand-written kernels compiles dozens of variants.
ROW_SECONDS = 300


def _start_autograd() -> None:
    """Import what PyTorch needs for the first gradient of a process, which takes seconds."""
    x = torch.ones(1, device="cuda", requires_grad=True)
    torch.autograd.grad([2 * x], [x], [torch.ones_like(x)])
    torch.cuda.synchronize()


def _worker(options) -> None:
    """Measure rows, and print each as a line of JSON."""
    from cases import all_cases
    from measure import measure
    from timing import copy_bandwidth

    _start_autograd()
    print("COPY " + json.dumps(copy_bandwidth()), flush=True)
    cases = {case.name: case for case in all_cases(options.quick)}
    for name in options.worker:
        try:
            row = measure(cases[name], options.quick, options.compile, options.tune)
        except Exception as error:
            row = {"name": name, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print("ROW " + json.dumps(row), flush=True)
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            os._exit(1)


def _measure_all(names: list[str], flags: list[str]):
    """Yields a row for every name, and the bandwidth of a copy; replaces workers that crash."""
    left, bandwidth = list(names), None
    while left:
        command = [sys.executable, __file__, "--worker", json.dumps(left), *flags]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = lines_of(worker.stdout)
        while left:
            try:
                line = lines.get(timeout=ROW_SECONDS)
                reason = "the worker process ended"
            except queue.Empty:
                line, reason = None, f"no result within {ROW_SECONDS} s"
            if line is None:
                yield {"name": left.pop(0), "error": reason}, None
                break
            if line.startswith("COPY "):
                bandwidth = json.loads(line[5:])
            elif line.startswith("ROW "):
                row = json.loads(line[4:])
                left.remove(row["name"])
                yield row, bandwidth
        worker.kill()
        worker.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="one or two rows of each family")
    parser.add_argument("--only", default="", help="this family, or rows whose name contains this")
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--tune", action="store_true", help="ours with autotune=True as well")
    parser.add_argument("--list", action="store_true", help="say which rows there are")
    parser.add_argument("--resume", action="store_true", help="leave out rows that are measured")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    from cases import all_cases

    chosen = [
        case
        for case in all_cases(options.quick)
        if options.only == case.family or options.only in case.name
    ]
    if options.list:
        print("\n".join(f"{case.family}: {case.name}" for case in chosen))
        return
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/run.py measures on a GPU and there is none here")
    if options.worker:
        _worker(options)
        return
    with tempfile.TemporaryDirectory() as cache:
        os.environ["TRITON_CACHE_DIR"] = cache
        _run([case.name for case in chosen], options)


def _earlier(results: Path, machine: str) -> tuple[list[dict], float | None]:
    """The rows that an earlier run on this machine has measured, and the bandwidth of a copy."""
    if not results.exists():
        return [], None
    document = json.loads(results.read_text())
    if document["machine"] != machine:
        raise SystemExit(f"{results} is of {document['machine']}, and this is {machine}")
    return document["rows"], document["copy"]


def _run(names: list[str], options) -> None:
    """Measure rows in workers, and write the tables after each row."""
    import triton

    switches = ("quick", "compile", "tune")
    flags = [f"--{switch}" for switch in switches if getattr(options, switch)]
    options.output.mkdir(parents=True, exist_ok=True)
    machine = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    machine += f", Triton {triton.__version__}"
    results = options.output / "results.json"
    rows, bandwidth = _earlier(results, machine) if options.resume else ([], None)
    measured = {row["name"] for row in rows}
    for row, seen in _measure_all([name for name in names if name not in measured], flags):
        rows.append(row)
        bandwidth = seen or bandwidth
        ours = row.get("ours", row)
        print(row["name"], ours.get("us") or ours.get("error"), sep="\t", flush=True)
        # Written after every row, so that an interrupted run keeps its results.
        document = {"machine": machine, "copy": bandwidth, "rows": rows}
        results.write_text(json.dumps(document, indent=1))
        (options.output / "results.md").write_text(markdown(rows, machine, bandwidth))
    print(markdown(rows, machine, bandwidth))


if __name__ == "__main__":
    main()
