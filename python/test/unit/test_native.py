"""The compiler's Python face: text in, text out, errors with file and line."""

import os
import subprocess
import sys

import pytest
from triton.backends.autodiff import _native
from triton.backends.autodiff.errors import AutodiffError

pytestmark = pytest.mark.every_triton

KERNEL = """
#loc = loc("kernel.py":7:0)
module {
  tt.func public @copy(%x: !tt.ptr<f32> loc("x"(#loc)), %y: !tt.ptr<f32> loc("y"(#loc))) {
    %unused = arith.constant 1 : i32 loc(#loc)
    %v = tt.load %x : !tt.ptr<f32> loc("v"(#loc))
    tt.store %y, %v : !tt.ptr<f32> loc(#loc)
    tt.return loc(#loc)
  } loc(#loc)
} loc(#loc)
"""


def test_empty_pipeline_is_a_round_trip():
    printed = _native.run_pipeline(KERNEL)
    assert "tt.load %x" in printed
    assert 'loc("kernel.py":7:0)' in printed
    assert _native.run_pipeline(printed) == printed


@pytest.mark.parametrize("pipeline", ["canonicalize", "builtin.module(canonicalize)"])
def test_pipeline_runs_on_the_module(pipeline):
    assert "arith.constant" in _native.run_pipeline(KERNEL)
    assert "arith.constant" not in _native.run_pipeline(KERNEL, pipeline)


@pytest.mark.parametrize(
    "broken, place",
    [
        (KERNEL.replace("tt.load", "tt.unheard_of"), "k.ttir:6:"),
        (KERNEL.replace("module {", "module <", 1), "k.ttir:3:"),
        (KERNEL[: len(KERNEL) // 2], "k.ttir:"),
        (KERNEL.replace("tt.return", "@ tt.return"), "k.ttir:8:"),
    ],
)
def test_errors_name_file_and_line(broken, place):
    with pytest.raises(AutodiffError, match="error: ") as caught:
        _native.run_pipeline(broken, file_name="k.ttir")
    assert place in str(caught.value)


def test_unknown_pass():
    with pytest.raises(AutodiffError, match="no-such-pass"):
        _native.run_pipeline(KERNEL, "no-such-pass")


def test_differentiate_reports_at_the_users_line():
    """Errors about the kernel, not about its TTIR, are at the user's source line."""
    opaque = KERNEL.replace(
        "tt.store %y, %v",
        """%w = tt.elementwise_inline_asm "activemask.b32 $0; // $1" {constraints = "=r,r",
             packed_element = 1 : i32, pure = true} %v : f32 -> f32 loc("kernel.py":12:4)
           tt.store %y, %w""",
    )
    with pytest.raises(AutodiffError, match="elementwise_inline_asm") as caught:
        _native.differentiate(opaque, "{}", "k.ttir")
    assert "kernel.py:12:4: error: " in str(caught.value)


def test_malformed_request():
    with pytest.raises(AutodiffError):
        _native.differentiate(KERNEL, "not json", "k.ttir")


def test_what_was_derived_is_no_kernel():
    derived = KERNEL.replace(
        " {\n    %unused", ' attributes {autodiff.role = "backward"} {\n    %unused'
    )
    with pytest.raises(AutodiffError, match="differentiate the kernel that it comes from"):
        _native.differentiate(derived, "{}", "k.ttir")


@pytest.mark.parametrize(
    "value, dumps", [("1", True), ("copy", True), ("other", False), ("0", False)]
)
def test_dump(tmp_path, value, dumps):
    path = tmp_path / "dump.mlir"
    environment = os.environ | {"MLIR_ENABLE_DUMP": value, "MLIR_DUMP_PATH": str(path)}
    code = (
        "from triton.backends.autodiff import _native;"
        f"_native.run_pipeline({KERNEL!r}, 'canonicalize')"
    )
    subprocess.run([sys.executable, "-c", code], check=True, env=environment, cwd="/")
    text = path.read_text() if path.exists() else ""
    assert ("IR Dump Before Canonicalizer" in text) == dumps
    assert ("IR Dump After Canonicalizer" in text) == dumps


@pytest.mark.parametrize(
    "text, message",
    [
        ("tt.func @f() attributes {a = array<\n index: 1>} {tt.return}", "1:30.*arrays of index"),
        ("tt.func @f() attributes {a = " + 9999 * "[" + "}", "1:529: error: .*500 brackets"),
        ("tt.func @f(%x: " + 9999 * "tensor<4x" + "f32) {tt.return}", "500 brackets"),
    ],
)
def test_text_that_the_parser_would_not_survive(text, message):
    with pytest.raises(AutodiffError, match=message):
        _native.run_pipeline(text)
    harmless = 9999 * "<" + ">"
    _native.run_pipeline(f'// {harmless}\nmodule attributes {{tt.a = "\\"{harmless}"}} {{}}')


@pytest.mark.parametrize("shape", ["0", "2097152", "1024x2048", "9223372036854775807", "?"])
def test_tiles_that_triton_does_not_allow(shape):
    text = KERNEL.replace("arith.constant 1 : i32", f"ub.poison : tensor<{shape}xi32>")
    message = "kernel.py:7:0: error: 'ub.poison' op has a tile of type .* 1 to 1048576 elements"
    for use in (
        lambda: _native.differentiate(text, "{}", "k.ttir"),
        lambda: _native.compile_cpu(text, "", "k.ttir"),
    ):
        with pytest.raises(AutodiffError, match=message):
            use()


def test_operations_of_the_differentiation_are_not_compiled():
    text = KERNEL.replace("arith.constant 1 : i32", "autodiff.programs [#autodiff.expr<4>] : i32")
    with pytest.raises(AutodiffError, match="'autodiff.programs' which is not part of a kernel"):
        _native.run_pipeline(text, "triton-to-llvm")
