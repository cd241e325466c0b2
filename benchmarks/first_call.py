"""The first forward and backward of a process, with empty caches, ours beside hand-written ones.

    python benchmarks/first_call.py [--only NAME] [--repeat N] [--small]

Each call has a process and a cache of its own; what is imported, and what PyTorch does for the
first gradient of a process, is not measured. Of several calls the quickest counts. `--small` does
it at sizes that a CPU can do, too, where its backend compiles both.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import torch

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))

SECONDS = 300
# The author of the other backward of each row.
ROWS = {
    "layer norm": "handwritten",
    "softmax": "liger",
    "attention": "handwritten",
    "cross-entropy": "liger",
    "matmul": "handwritten",
}


def _cases(small: bool) -> dict:
    from cases import attention, losses, norms, products

    heads = (1, 2, 128, 16) if small else (4, 32, 4096, 64)
    tiles = {"tiles": {"BLOCK_M": 64, "BLOCK_N": 32}} if small else {}
    half = torch.bfloat16
    made = [
        norms.layer_norm(*((12, 100) if small else (4096, 4096))),
        norms.row_softmax("softmax", *((12, 100) if small else (16384, 4096))),
        attention.attention(*heads, False, half, tuned=False, **tiles),
        losses.loss(*((6, 300, 128) if small else (4096, 32000))),
        products.product(64, 32, 96, tiles={f"BLOCK_{axis}": 32 for axis in "MNK"})
        if small
        else products.product(4096, 4096, 4096),
    ]
    return dict(zip(ROWS, made, strict=True))


def _product_by_hand(case):
    """The case's own product, in forward and backward: two more launches of the kernel."""

    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, a, b):
            ctx.save_for_backward(a, b)
            return case.stub(case.kernel, a, b)

        @staticmethod
        def backward(ctx, upstream):
            a, b = ctx.saved_tensors
            return case.stub(case.kernel, upstream, b.t()), case.stub(case.kernel, a.t(), upstream)

    return Product.apply


def _contender(who: str, name: str, case):
    from triton_autodiff import autodiff

    if who == "ours":
        return autodiff(case.kernel, case.stub)
    return _product_by_hand(case) if name == "matmul" else case.rivals[who]()


def _measure(name: str, who: str, small: bool) -> dict:
    """Milliseconds of the first forward, the first backward, and Triton's compiler."""
    from cases.common import DEVICE
    from timing import Compilations, synchronize

    x = torch.ones(1, device=DEVICE, requires_grad=True)
    torch.autograd.grad([2 * x], [x], [torch.ones_like(x)])
    case = _cases(small)[name]
    inputs = case.inputs()
    leaves = [t for t in inputs if isinstance(t, torch.Tensor) and t.requires_grad]
    function = _contender(who, name, case)
    synchronize()
    with Compilations() as compiler:
        start = time.perf_counter()
        output = function(*inputs)
        synchronize()
        middle = time.perf_counter()
        torch.autograd.grad(output, leaves, torch.ones_like(output))
        synchronize()
        end = time.perf_counter()
    seconds = {"forward": middle - start, "backward": end - middle, "both": end - start}
    return {**{k: 1e3 * s for k, s in seconds.items()}, "compiler": compiler.milliseconds()}


def _first(name: str, who: str, small: bool) -> dict:
    """Measure in a process; returns its results, or the `error` that ended it."""
    command = [sys.executable, __file__, "--only", name, "--who", who, *["--small"] * small]
    with tempfile.TemporaryDirectory() as cache:
        env = {**os.environ, "TRITON_CACHE_DIR": cache}
        try:
            done = subprocess.run(command, env=env, capture_output=True, text=True, timeout=SECONDS)
        except subprocess.TimeoutExpired:
            return {"error": f"no result within {SECONDS} s"}
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["no reason given"])[-1]}
    return json.loads(done.stdout.splitlines()[-1])


def _best(name: str, who: str, options) -> dict:
    runs = [_first(name, who, options.small) for _ in range(options.repeat)]
    good = [run for run in runs if "error" not in run]
    return min(good, key=lambda run: run["both"]) if good else runs[0]


def _shown(entry: dict) -> str:
    if "error" in entry:
        return entry["error"]
    parts = ("forward", "backward", "both", "compiler")
    return " | ".join(f"{entry[part]:.0f}" for part in parts)


def main(arguments=None) -> None:
    """Print the rows of a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=ROWS, help="one row")
    parser.add_argument("--repeat", type=int, default=1, help="processes for each figure")
    parser.add_argument("--small", action="store_true", help="small tensors, also on a CPU")
    parser.add_argument("--who", help=argparse.SUPPRESS)
    options = parser.parse_args(arguments)
    if not (options.small or torch.cuda.is_available()):
        raise SystemExit("first calls are measured on a GPU and there is none here: try --small")
    if options.who:
        print(json.dumps(_measure(options.only, options.who, options.small)))
        return
    print("milliseconds | forward | backward | both | of which Triton compiles | ratio of both")
    print("-|-|-|-|-|-", flush=True)
    for name, who in ROWS.items():
        if options.only in (None, name):
            ours, other = (_best(name, each, options) for each in ("ours", who))
            known = "both" in ours and "both" in other
            ratio = f"{ours['both'] / other['both']:.2f}" if known else ""
            print(f"{name}, ours | {_shown(ours)} | {ratio}")
            print(f"{name}, {who} | {_shown(other)} | ", flush=True)


if __name__ == "__main__":
    main()
