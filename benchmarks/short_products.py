"""Times both ways to compute products that sum over few elements, on this GPU.

autodiff-fit-products computes such products in float32 without the matrix unit, or with the matrix
unit and zeros between the elements. Each is timed in a loop that sums products, and in one where a
second product takes the first one's result, as attention's backward does. The last column is the
fastest. A product of 16 elements, which needs neither, is timed for comparison.

    python benchmarks/short_products.py [--quick]
"""

import argparse
import itertools
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import torch
import triton
from triton.runtime.driver import driver
from triton_autodiff import _native
from triton_autodiff.plans.target import name_of

ITERATIONS, PROGRAMS = 512, 4
DTYPES = {"bf16": torch.bfloat16, "f16": torch.float16, "f32": torch.float32}
FORMS = {"float32": 1 << 40, "zeros": 0}

# A tile of pointers, with the types of the tile, its pointers and its offsets.
_TILE = """
    %{x}row = tt.make_range {{end = {rows} : i32, start = 0 : i32}} : tensor<{rows}xi32>
    %{x}column = tt.make_range {{end = {columns} : i32, start = 0 : i32}} : tensor<{columns}xi32>
    %{x}rows = tt.expand_dims %{x}row {{axis = 1 : i32}}
      : tensor<{rows}xi32> -> !{x}rows
    %{x}columns = tt.expand_dims %{x}column {{axis = 0 : i32}}
      : tensor<{columns}xi32> -> !{x}columns
    %{x}width = arith.constant dense<{columns}> : !{x}rows
    %{x}starts = arith.muli %{x}rows, %{x}width : !{x}rows
    %{x}down = tt.broadcast %{x}starts : !{x}rows -> !{x}offsets
    %{x}across = tt.broadcast %{x}columns : !{x}columns -> !{x}offsets
    %{x}offsets = arith.addi %{x}down, %{x}across : !{x}offsets
    %{x}splat = tt.splat %{base} : !tt.ptr<{t}> -> !{x}pointers
    %{x}pointers = tt.addptr %{x}splat, %{x}offsets : !{x}pointers, !{x}offsets
"""
_TYPES = """
!{x} = tensor<{rows}x{columns}x{t}>
!{x}rows = tensor<{rows}x1xi32>
!{x}columns = tensor<1x{columns}xi32>
!{x}offsets = tensor<{rows}x{columns}xi32>
!{x}pointers = tensor<{rows}x{columns}x!tt.ptr<{t}>>
"""
_LOOP = """
module {{
  tt.func public @product(
      %a: !tt.ptr<{t}> {{tt.divisibility = 16 : i32}},
      %b: !tt.ptr<{t}> {{tt.divisibility = 16 : i32}},
      %o: !tt.ptr<f32> {{tt.divisibility = 16 : i32}},
      %n: i32) attributes {{autodiff.role = "backward"}} {{
    %zero = arith.constant dense<0.0> : !o
    %start = arith.constant 0 : i32
    %step = arith.constant 1 : i32
    %stepa = arith.constant dense<{step_a}> : !aoffsets
    %stepb = arith.constant dense<{step_b}> : !boffsets
{tiles}
    %r:3 = scf.for %i = %start to %n step %step
        iter_args(%acc = %zero, %pa = %apointers, %pb = %bpointers)
        -> (!o, !apointers, !bpointers) : i32 {{
      %x = tt.load %pa : !apointers
      %y = tt.load %pb : !bpointers
{body}
      %na = tt.addptr %pa, %stepa : !apointers, !aoffsets
      %nb = tt.addptr %pb, %stepb : !bpointers, !boffsets
      scf.yield %next, %na, %nb : !o, !apointers, !bpointers
    }}
    tt.store %opointers, %r#0 : !opointers
    tt.return
  }}
}}
"""
_SUM = "      %next = tt.dot %x, %y, %acc, inputPrecision = tf32 : !a * !b -> !o"
# The second product takes a value that is computed from the first one's result.
_BETWEEN = """
      %d = tt.dot %x, %y, %zero, inputPrecision = tf32 : !a * !b -> !o
      %e = math.exp2 %d : !o
      %h = {narrow}
      %l = tt.load %lpointers : !lpointers
      %next = tt.dot %h, %l, %acc, inputPrecision = tf32 : !h * !l -> !o
"""


def kernel(where, m, n, k, t):
    """The TTIR of a loop of products, as in an adjoint."""
    tiles = {"a": (m, k, t, "a"), "b": (k, n, t, "b"), "o": (m, n, "f32", "o")}
    body = _SUM
    if where == "between":
        # Its other operand is the same in all iterations.
        tiles |= {"l": (n, n, t, "b"), "h": (m, n, t, "a")}
        same = "arith.addf %e, %zero : !o"
        body = _BETWEEN.format(narrow=same if t == "f32" else "arith.truncf %e : !o to !h")
    fields = [
        {"x": x, "rows": rows, "columns": columns, "t": element, "base": base}
        for x, (rows, columns, element, base) in tiles.items()
    ]
    types = "".join(_TYPES.format(**f) for f in fields)
    text = "".join(_TILE.format(**f) for f in fields if f["x"] != "h")
    return types + _LOOP.format(tiles=text, body=body, t=t, step_a=m * k, step_b=k * n)


def compiled(text, form, target):
    """A kernel whose short products are computed in one way; None if Triton refuses it."""
    options = f"target={name_of(target)} most-multiply-adds={FORMS[form]}"
    passes = f"builtin.module(tt.func(autodiff-fit-products{{{options}}},canonicalize,cse))"
    text = _native.run_pipeline(text, passes, "product.ttir")
    text = text.replace('attributes {autodiff.role = "backward"}', "")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "product.ttir"
        path.write_text(text)
        try:
            return triton.compile(str(path), target=target, options={"num_warps": 4})
        except RuntimeError as error:
            print(f"  {form}: {error}")
            return None


def time_of(run, quick):
    """Nanoseconds of one iteration of all programs, for each processor."""
    warmup, rep = (5, 20) if quick else (20, 100)
    milliseconds = triton.testing.do_bench(run, warmup=warmup, rep=rep, return_mode="median")
    return milliseconds * 1e6 / ITERATIONS / PROGRAMS


def measure(where, m, n, k, t, form, target, quick):
    """The time and relative error of one way, compared with products in float64."""
    function = compiled(kernel(where, m, n, k, t), form, target)
    if function is None:
        return float("nan"), float("nan")
    dtype = DTYPES[t]
    torch.manual_seed(0)
    a = torch.randn(ITERATIONS, m, k, device="cuda").to(dtype)
    b = torch.randn(ITERATIONS, k, n, device="cuda").to(dtype)
    o = torch.empty(m, n, device="cuda")
    processors = torch.cuda.get_device_properties(0).multi_processor_count
    run = lambda: function[(PROGRAMS * processors, 1, 1)](a, b, o, ITERATIONS)  # noqa: E731
    run()
    error = float("nan")
    if where == "sum":
        expected = (a.double() @ b.double()).sum(0)
        error = ((o.double() - expected).norm() / expected.norm()).item()
    return time_of(run, quick), error


def chosen(quick):
    """Everything that is measured: where, the product's axes, and its type."""
    squares = [(16, 16), (64, 64), (128, 128)]
    if not quick:
        squares += [(32, 32), (64, 32), (128, 64)]
    for where, t, (m, n) in itertools.product(("sum", "between"), DTYPES, squares):
        # TF32 needs no padding for eight.
        yield where, t, m, n, [k for k in (1, 2, 4, 8) if (t, k) != ("f32", 8)]


def compile_all(quick, target):
    """Compile in threads what is measured later, so that it is in Triton's cache."""

    def make(where, m, n, k, t, form):
        compiled(kernel(where, m, n, k, t), form, target)

    with ThreadPoolExecutor() as pool:
        for where, t, m, n, lengths in chosen(quick):
            pool.submit(make, where, m, n, 16, t, "zeros")
            for k in lengths:
                for form in FORMS:
                    pool.submit(make, where, m, n, k, t, form)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer shapes and repetitions")
    quick = parser.parse_args().quick
    target = driver.active.get_current_target()
    print(f"{torch.cuda.get_device_name()}, Triton {triton.__version__}, target {name_of(target)}")
    print("ns of an iteration of a processor; relative error of sums in brackets")
    print("where    type  M×N      K | float32          zeros            16 elements | fastest")
    compile_all(quick, target)
    for where, t, m, n, lengths in chosen(quick):
        full = measure(where, m, n, 16, t, "zeros", target, quick)[0]
        for k in lengths:
            found = {f: measure(where, m, n, k, t, f, target, quick) for f in FORMS}
            cells = "  ".join(f"{time:7.1f} ({e:.0e})" for time, e in found.values())
            best = min(found, key=lambda form: found[form][0])
            print(f"{where:8} {t:5} {m:3}×{n:<3}  {k:2} | {cells}  {full:7.1f} | {best}")


if __name__ == "__main__":
    main()
