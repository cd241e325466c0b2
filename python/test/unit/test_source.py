"""Kernels printed as Triton Python: Triton compiles them to the PTX of what they are printed from.

That is the TTIR of a kernel as Triton's own passes leave it: they run on Python, not on text.
"""

import hopper
import printed
import pytest
import test_matrix_instructions as attention
from kernels import cross_entropy, matmul, normalization, softmax
from triton.backends.autodiff import AutodiffError
from triton.backends.autodiff import __main__ as command
from triton.backends.autodiff.source import python_of

TILE = {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "PRECISION": "tf32"}
# Kernel, types of its arguments, constants.
KERNELS = {
    "layer norm": (
        normalization.layer_norm_kernel,
        ["*bf16"] * 4 + ["i32"] * 3 + ["fp32"],
        {"BLOCK": 1024},
    ),
    "softmax": (softmax.softmax_kernel, ["*fp16"] * 2 + ["i32"] * 3, {"BLOCK": 1024}),
    "cross-entropy": (
        cross_entropy.cross_entropy_kernel,
        ["*bf16", "*i64"] + ["*fp32"] * 2 + ["i32"] * 2,
        {"BLOCK": 1024},
    ),
    "matmul": (matmul.matmul_kernel, ["*fp16"] * 3 + ["i32"] * 9, TILE),
    "attention": attention._attention(64, True),
}


@pytest.mark.parametrize("form", KERNELS)
def test_same_ptx(form):
    """Of a kernel, and of all that is derived from it."""
    text = hopper.ttir(*KERNELS[form], multiples_of_16=True)
    plan = hopper.plan_of(text)
    kernels = [text, *(kernel["ttir"] for kernel in (*plan["backward"], plan["forward"]) if kernel)]
    for ttir in map(printed.made_ttir, kernels):
        source = python_of(ttir)
        assert printed.ptx_of_python(source, ttir) == printed.ptx_of_text(ttir), source


def test_a_changed_kernel_is_told():
    ttir = printed.made_ttir(hopper.ttir(*KERNELS["softmax"]))
    source = python_of(ttir).replace("tl.exp(", "tl.exp2(")
    assert printed.ptx_of_python(source, ttir) != printed.ptx_of_text(ttir)


def test_names_are_the_user_s():
    source = python_of(hopper.ttir(*KERNELS["softmax"]))
    for name in ("row", "columns", "mask", "numerator"):
        assert f"    {name} = " in source


def test_command(tmp_path, capsys):
    file = tmp_path / "softmax.ttir"
    file.write_text(hopper.ttir(*KERNELS["softmax"]), encoding="utf-8")
    assert command.main(["source", str(file)]) == 0
    assert (
        "def softmax_kernel(y_ptr, x_ptr, stride_x, stride_y, n_columns):"
        in capsys.readouterr().out
    )


def test_what_has_no_form():
    text = """
tt.func public @k(%p: !tt.ptr<f16>, %x: f16) {
  %y = arith.divf %x, %x : f16
  tt.store %p, %y : !tt.ptr<f16>
  tt.return
}"""
    with pytest.raises(AutodiffError, match=r"k.ttir:3:8.*no form in Python for 'arith.divf'"):
        python_of(text, "k.ttir")
