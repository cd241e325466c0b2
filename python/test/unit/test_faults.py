"""Faults of others, without what we do about them: each is there exactly where the table says so.

The table is `faults.json`. What only a GPU shows is not here: see the table's `test`. For all of
this, no GPU is needed. A fault that is gone fails here, and the message says what to do.
"""

import functools
import os
import platform
import subprocess
import sys

import hopper
import numpy
import pytest
import triton
import triton.language as tl
from kernels import double_products, double_ptx, raveled, rejected, reshaped, short_products
from kernels.rejected import TYPES
from test_launchers import load
from test_misaddressed import of_vector_registers
from test_miscompiled import WRONG, assembly_of, combined_lanes, lanes_along
from triton import knobs
from triton.backends.autodiff.faults import (
    elf,
    lost_sums,
    misaddressed,
    omitted,
    reordered,
    table,
    uniform_operands,
)
from triton.backends.autodiff.inspecting import corpus
from triton.runtime import build
from triton.runtime.errors import PTXASError

pytestmark = pytest.mark.every_triton


@functools.cache
def _versions():
    return {
        "Triton": triton.__version__,
        "ptxas": hopper.ptxas_version(),
        "CPython": platform.python_version(),
    }


def compare(name, is_there):
    """Fail if a fault is not where the table says, in words that say what to do."""
    fault = table.fault(name)
    version = _versions()[fault.of]
    if is_there and not fault.affects(version):
        pytest.fail(
            f"fault {name} is there with {fault.of} {version}, which the table takes for right: "
            f"correct `from` ({fault.since}) and `right` ({fault.right}) in faults.json"
        )
    if not is_there and fault.affects(version):
        pytest.fail(
            f"fault {name} is gone with {fault.of} {version}: write that into faults.json "
            f"(`right`). {', '.join(fault.where)} may be removed {fault.goes}"
        )


def test_compare():
    """It fails for what is gone, and for what is there again."""
    compare("wrong-addresses", table.fault("wrong-addresses").affects(hopper.ptxas_version()))
    gone = "fault rejected-branches is gone with Triton .*: write that into faults.json"
    with pytest.raises(pytest.fail.Exception, match=gone):
        compare("rejected-branches", False)
    right = next(f for f in table.faults() if f.of == "Triton" and f.right == "3.8")
    new = table.numbers(triton.__version__) >= (3, 8)
    with pytest.raises(pytest.fail.Exception, match="is there with" if new else "is gone with"):
        compare(right.name, new)


def test_versions():
    fault = table.fault("reduced-lanes")
    assert fault.right == "3.8" and fault.affects("3.7.1+git") and fault.affects((3, 6))
    assert not fault.affects("3.8.0") and not fault.affects("3.10") and not fault.affects((4, 0))
    met = table.fault("lost-sums").is_met
    assert met({"Triton": "3.7.0", "ptxas": "12.8"}) and met(
        {"Triton": "3.7", "ptxas": "13"}, "sm_90"
    )
    assert not met({"Triton": "3.8.0", "ptxas": "12.8"}) and not met({"Triton": "3.7.0"})
    assert not met({"Triton": "3.7.0", "ptxas": "12.8"}, "sm_80")
    assert table.numbers("2.13.0+cpu") == (2, 13) and table.numbers("3.10rc1") == (3, 10)


def test_every_fault_that_needs_no_gpu_is_here():
    shown = [f.name for f in table.faults() if f.shown in ("compiling", "ptxas", "python")]
    assert {f"test_{name.replace('-', '_')}" for name in shown} <= set(globals())


# --- compiling ------------------------------------------------------------------------------------


def is_rejected(text, target="cuda:90"):
    """Whether Triton's passes fail for TTIR."""
    try:
        corpus.compile_ttir(text, corpus.parse_target(target), False)
    except RuntimeError as error:
        assert "PassManager::run failed" in str(error) or "Parse MLIR file failed" in str(error)
        return True
    return False


def test_reduced_lanes():
    form, axis = WRONG[1][0]
    asm = assembly_of(reshaped.sum_kernel, form, axis, 1)
    compare("reduced-lanes", combined_lanes(asm["ptx"]) != lanes_along(asm["ttgir"], axis))


@triton.jit
def sum_of_products_kernel(a_ptr, b_ptr, c_ptr, N: tl.constexpr, K: tl.constexpr):
    n, k = tl.arange(0, N), tl.arange(0, K)
    a = tl.load(a_ptr + n[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * N + n[None, :])
    tl.store(c_ptr + n[:, None] * N + n[None, :], tl.sum(a[:, :, None] * b[None, :, :], 1))


def test_sums_as_products():
    constants = {"N": 16, "K": 4}
    asm = hopper.assembly(sum_of_products_kernel, ["*fp32"] * 3, constants)
    compare("sums-as-products", "tf32" in asm["ptx"])


def test_short_products():
    """Four threads take twice as many neighbours along the sum as there are elements."""
    constants = {"M": 16, "N": 8, "K": 16, "TYPE": tl.float16, "PRECISION": "ieee"}
    types = ["*fp32", "*u8", "*fp32", "*fp32"]
    ttgir = hopper.assembly(short_products.narrow_kernel, types, constants)["ttgir"]
    assert "tt.dot" in ttgir
    compare("short-products", "kWidth = 4" in ttgir)


def test_reordered_pairs():
    constants = {"A": 2, "B": 32, "HOW": "most"}
    types = ["*fp32", "*fp32", "*fp32", "*i32"]
    ttir = hopper.ttir(raveled.place_kernel, types, constants)
    compare("reordered-pairs", bool(reordered.pairs(ttir)))


def test_narrow_double_operands():
    text, wide = (
        hopper.ttir(rejected.widened_kernel, [type_, "*fp64", "*fp64"], {}, True)
        for type_ in ("*fp16", "*fp32")
    )
    assert not is_rejected(wide)
    compare("narrow-double-operands", is_rejected(text))


def test_shared_conversions():
    text = rejected.SHARED.format(first=rejected.FIRST["for"], type="f64", **TYPES["f64"])
    compare("shared-conversions", is_rejected(text))


def test_rows_as_tiles():
    compare("rows-as-tiles", is_rejected(rejected.ROW))


def test_never_run_loops():
    compare("never-run-loops", is_rejected(rejected.NEVER))


def test_rejected_branches():
    compare("rejected-branches", is_rejected(rejected.BRANCH))


def test_missing_barriers():
    text = hopper.EMPTY.replace("tt.return", "BARRIER\n    tt.return")
    assert not is_rejected(text.replace("BARRIER", "gpu.barrier"))
    compare("missing-barriers", is_rejected(text.replace("BARRIER", "ttg.barrier all")))


def test_scalars_of_products():
    types = ["*fp32", "*fp32"]
    text = hopper.ttir(rejected.total_kernel, types, {"N": 64}, multiples_of_16=True)
    assert not is_rejected(text)
    compare("scalars-of-products", is_rejected(text, "cuda:100"))


# --- ptxas ----------------------------------------------------------------------------------------


def test_wrong_addresses():
    compiled = hopper.compiled_text(of_vector_registers(), assemble=True, num_stages=3)
    compare("wrong-addresses", misaddressed.is_misaddressed(compiled))


def test_omitted_products():
    constants = {"M": 64, "N": 16, "K": 64, "COUNT": 4}
    types = ["*bf16", "*bf16", "*fp32"]
    text = hopper.ttir(short_products.exponentials_kernel, types, constants, True)
    compiled = hopper.compiled_text(text, assemble=True)
    compare("omitted-products", omitted.omits_products(compiled))


def test_lost_sums():
    compare("lost-sums", lost_sums.has_lost_sums(hopper.assembled_ptx(double_ptx.added(True))))


def test_uniform_operands():
    """Also a ptxas that ends with an error has not learnt to assemble them."""
    text = double_ptx.UNIFORM.format(product=double_ptx.LEFT_OUT["b"])
    try:
        count = uniform_operands.products(hopper.assembled_ptx(text).kernel)
    except PTXASError:
        count = 0
    compare("uniform-operands", count == 0)


@pytest.mark.parametrize("name", ["lost-sums", "uniform-operands"])
def test_products_that_avoid(name):
    """From some version on, Triton takes no float64 products that ptxas gets wrong."""
    types = ["*fp64"] * 3 + ["i32"]
    ptx = hopper.assembly(double_products.chosen_kernel, types, {}, True)["ptx"]
    avoided = table.fault(name).avoided
    assert ("m16n8k" in ptx) == (table.numbers(triton.__version__) < table.numbers(avoided))


# --- Python ---------------------------------------------------------------------------------------


def _loads_in_turn():
    """What functions of modules of one name return, each loaded again and again."""
    return [[module.launch() for module in [load(1), load(2), load(3)]] for _ in range(3)]


def test_modules_of_one_name(monkeypatch):
    monkeypatch.setattr(build, "_load_module_from_path", build._load_module_from_path.__wrapped__)
    compare("modules-of-one-name", _loads_in_turn() != [[1, 2, 3]] * 3)


def test_truncated_files(tmp_path):
    """Triton takes what is left of a file in its cache."""
    source = tmp_path / "k.ttir"
    source.write_text(hopper.EMPTY)
    found = []
    for _ in range(2):
        with knobs.cache.scope():
            knobs.cache.dir = str(tmp_path / "cache")
            compiled = triton.compile(str(source), target=hopper.TARGET)
        found.append(elf.is_whole(compiled.asm["cubin"]))
        (path,) = tmp_path.rglob("*.cubin")
        path.write_bytes(path.read_bytes()[:200])
    assert found[0]
    compare("truncated-files", not found[1])


_INTERPRETED = """
import torch, triton, triton.language as tl

@triton.jit
def sum_kernel(x_ptr, y_ptr):
    tl.store(y_ptr, tl.load(x_ptr) + tl.load(x_ptr))

@triton.jit
def count_kernel(y_ptr, n):
    for i in range(n):
        tl.store(y_ptr, i + 1.0)

x, y = (torch.ones(1, dtype=torch.{dtype}) for _ in range(2))
{launch}
print(y.item())
"""


@pytest.fixture
def interpreted(tmp_path):
    """Return a function for what a kernel stores under the interpreter; None if that fails."""

    def run(dtype, launch):
        program = tmp_path / "interpreted.py"
        program.write_text(_INTERPRETED.format(dtype=dtype, launch=launch))
        environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
        command = [sys.executable, str(program)]
        done = subprocess.run(command, env=environment, capture_output=True, text=True)
        return float(done.stdout) if done.returncode == 0 else None

    return run


def test_interpreted_bfloat16(interpreted):
    launch = "sum_kernel[(1,)](x, y)"
    assert interpreted("float32", launch) == 2
    compare("interpreted-bfloat16", interpreted("bfloat16", launch) != 2)


def test_interpreted_bounds(interpreted):
    if numpy.lib.NumpyVersion(numpy.__version__) < "2.4.0":
        pytest.skip("this NumPy converts an array of one element to a number")
    compare("interpreted-bounds", interpreted("float32", "count_kernel[(1,)](y, 3)") != 3)
