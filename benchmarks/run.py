"""Times of derived backward kernels beside PyTorch's and hand-written ones, on a GPU.

    python benchmarks/run.py [--quick] [--only SUBSTRING] [--compile] [--output FOLDER]

writes results.json and results.md. Rows run in a worker process: one that fails, hangs or breaks
the CUDA context is reported with its reason and the next row starts in a fresh worker.
"""

from __future__ import annotations

import argparse
import json
import os
import queue
import subprocess
import sys
import threading
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

from report import markdown  # noqa: E402

ROW_SECONDS = 180


def _worker(names: list[str], quick: bool, compile_reference: bool) -> None:
    """Measures rows and prints each as a line of JSON."""
    from cases import all_cases
    from measure import measure

    cases = {case.name: case for case in all_cases()}
    for name in names:
        try:
            row = measure(cases[name], quick, compile_reference)
        except Exception as error:
            row = {"name": name, "error": f"{type(error).__name__}: {error}".splitlines()[0]}
        print("ROW " + json.dumps(row), flush=True)
        try:
            torch.cuda.synchronize()
            torch.cuda.empty_cache()
        except RuntimeError:
            os._exit(1)


def _lines(stream) -> queue.Queue:
    """The stream's lines as they come, then None."""
    lines: queue.Queue = queue.Queue()

    def read():
        for line in stream:
            lines.put(line)
        lines.put(None)

    threading.Thread(target=read, daemon=True).start()
    return lines


def _measure_all(names: list[str], flags: list[str]):
    """Yields a row for every name, restarting the worker where one breaks."""
    left = list(names)
    while left:
        command = [sys.executable, __file__, "--worker", json.dumps(left), *flags]
        worker = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        lines = _lines(worker.stdout)
        while left:
            try:
                line = lines.get(timeout=ROW_SECONDS)
                reason = "the worker process ended"
            except queue.Empty:
                line, reason = None, f"no result within {ROW_SECONDS} s"
            if line is None:
                yield {"name": left.pop(0), "error": reason}
                break
            if line.startswith("ROW "):
                row = json.loads(line[4:])
                left.remove(row["name"])
                yield row
        worker.kill()
        worker.wait()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="short measurements")
    parser.add_argument("--only", default="", help="rows whose name contains this")
    parser.add_argument("--compile", action="store_true", help="torch.compile as well")
    parser.add_argument("--output", type=Path, default=HERE / "results")
    parser.add_argument("--worker", type=json.loads, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("benchmarks/run.py measures on a GPU and there is none here")
    if options.worker:
        _worker(options.worker, options.quick, options.compile)
        return
    from cases import all_cases

    names = [case.name for case in all_cases() if options.only in case.name]
    flags = ["--quick"] * options.quick + ["--compile"] * options.compile
    options.output.mkdir(parents=True, exist_ok=True)
    import triton

    machine = f"{torch.cuda.get_device_name()}, PyTorch {torch.__version__}"
    machine += f", Triton {triton.__version__}"
    rows = []
    for row in _measure_all(names, flags):
        rows.append(row)
        ours = row.get("ours", row)
        print(row["name"], ours.get("us") or ours.get("error"), sep="\t", flush=True)
        # Written after every row, so that an interrupted run leaves what it has.
        document = {"machine": machine, "rows": rows}
        (options.output / "results.json").write_text(json.dumps(document, indent=1))
        (options.output / "results.md").write_text(markdown(rows, machine))
    print(markdown(rows, machine))


if __name__ == "__main__":
    main()
