"""Times the CPU backend against Triton's interpreter, same kernels, same machine, same run.

    python benchmarks/cpu_vs_interpreter.py [--quick]

Prints a table: kernel, interpreter, native, speed-up, and what PyTorch takes. The interpreter runs
in a second process, because Triton decides when kernels are decorated.
"""

import argparse
import json
import os
import subprocess
import sys
import time

import torch
import triton
import triton.language as tl

# Speed-ups that the project promises.
PROMISED = {"softmax": 50, "matmul": 20}


@triton.jit
def softmax_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=-float("inf"))
    e = tl.exp(x - tl.max(x, axis=0))
    tl.store(out_ptr + row * n + i, e / tl.sum(e, axis=0), mask=i < n)


@triton.jit
def matmul_kernel(
    a_ptr, b_ptr, c_ptr, M, N, K: tl.constexpr,
    BM: tl.constexpr, BN: tl.constexpr, BK: tl.constexpr,
):  # fmt: skip
    am = (tl.program_id(0) * BM + tl.arange(0, BM)) % M
    bn = (tl.program_id(1) * BN + tl.arange(0, BN)) % N
    k = tl.arange(0, BK)
    a_ptrs = a_ptr + am[:, None] * K + k[None, :]
    b_ptrs = b_ptr + k[:, None] * N + bn[None, :]
    acc = tl.zeros((BM, BN), dtype=tl.float32)
    for step in range(0, tl.cdiv(K, BK)):
        a = tl.load(a_ptrs, mask=k[None, :] < K - step * BK, other=0.0)
        b = tl.load(b_ptrs, mask=k[:, None] < K - step * BK, other=0.0)
        acc = tl.dot(a, b, acc)
        a_ptrs += BK
        b_ptrs += BK * N
    cm = tl.program_id(0) * BM + tl.arange(0, BM)
    cn = tl.program_id(1) * BN + tl.arange(0, BN)
    mask = (cm[:, None] < M) & (cn[None, :] < N)
    tl.store(c_ptr + cm[:, None] * N + cn[None, :], acc, mask=mask)


def softmax(rows, columns):
    """Row-wise softmax of a rows × columns matrix."""
    x = torch.randn(rows, columns)
    out = torch.empty_like(x)

    def run():
        softmax_kernel[(rows,)](x, out, columns, BLOCK=triton.next_power_of_2(columns))
        return out

    return run, lambda: x.softmax(1)


def matmul(size, dtype=torch.float32):
    """Product of two size × size matrices."""
    a, b = torch.randn(2, size, size).to(dtype)
    c = torch.empty(size, size)
    grid = (triton.cdiv(size, 64), triton.cdiv(size, 64))

    def run():
        matmul_kernel[grid](a, b, c, size, size, size, BM=64, BN=64, BK=32)
        return c

    return run, lambda: (a @ b).float()


def cases(quick):
    rows, size = (256, 128) if quick else (4096, 512)
    return {
        "softmax": (f"softmax {rows}×1024 f32", lambda: softmax(rows, 1024)),
        "matmul": (f"matmul {size}³ f32", lambda: matmul(size)),
        "matmul16": (f"matmul {size}³ f16", lambda: matmul(size, torch.float16)),
    }


def measure(run, seconds):
    """The best time of one call, in seconds, without the first call."""
    run()
    best, spent = float("inf"), 0.0
    while spent < seconds:
        start = time.perf_counter()
        run()
        elapsed = time.perf_counter() - start
        best, spent = min(best, elapsed), spent + elapsed
    return best


def measure_all(quick):
    times = {}
    for name, (_, make) in cases(quick).items():
        run, reference = make()
        torch.testing.assert_close(run(), reference(), rtol=1e-2, atol=1e-2)
        times[name] = measure(run, 0.2), measure(reference, 0.2)
    return times


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="small sizes")
    parser.add_argument("--json", action="store_true", help="print times only, for the parent")
    options = parser.parse_args()
    times = measure_all(options.quick)
    if options.json:
        print(json.dumps(times))
        return
    command = [sys.executable, __file__, "--json"] + ["--quick"] * options.quick
    environment = os.environ | {"TRITON_INTERPRET": "1"}
    output = subprocess.run(command, env=environment, check=True, capture_output=True).stdout
    interpreted = json.loads(output)
    print(f"{'kernel':<24}{'interpreter':>14}{'native':>12}{'speed-up':>11}{'PyTorch':>12}")
    missed = []
    for name, (title, _) in cases(options.quick).items():
        native, eager = times[name]
        slow = interpreted[name][0]
        print(
            f"{title:<24}{slow * 1e3:>11.1f} ms{native * 1e3:>9.2f} ms"
            f"{slow / native:>10.0f}×{eager * 1e3:>9.2f} ms"
        )
        if not options.quick and slow / native < PROMISED.get(name, 0):
            missed.append(title)
    if missed:
        sys.exit(f"slower than promised: {', '.join(missed)}")


if __name__ == "__main__":
    main()
