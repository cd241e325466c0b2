"""Reductions that Triton 3.6 and 3.7 lower wrongly: found, mended, and warned of.

What Triton makes of a kernel for a GPU is looked at without one. That the numbers are right where a
reduction was found and mended, and wrong where it was not, only a GPU shows.
"""

import itertools
import re
import warnings
from pathlib import Path

import hopper
import pytest
import torch
from gradients import assert_gradients_close, differentiated
from kernels import reshaped
from triton.backends.autodiff import AutodiffError
from triton.backends.autodiff.faults import miscompiled

pytestmark = pytest.mark.every_triton

affected = pytest.mark.skipif(not miscompiled.AFFECTED, reason="this Triton reduces all layouts")

# The forms of `sum_kernel`, by number of warps, that an H100 computes wrongly, or rightly by luck:
# what is read there of shared memory has not been written. All are loaded along columns.
WRONG = {
    1: [((8, 4, 4, 8), 1), ((4, 8, 8, 4), 0), ((16, 8, 8, 16), 1), ((16, 16, 8, 32), 1)],
    2: [((16, 8, 8, 16), 1), ((16, 16, 8, 32), 1)],
    4: [((16, 8, 8, 16), 1), ((16, 16, 8, 32), 1)],
    8: [((16, 16, 8, 32), 1)],
}
FORMS = list(itertools.product(reshaped.SHAPES, (0, 1)))


def _constants(form, axis, columns):
    return {**dict(zip("ABCD", form, strict=True)), "AXIS": axis, "COLUMNS": columns}


def assembly_of(kernel, form, axis, warps, columns=True, types=("*fp32", "*fp32")):
    """What Triton compiles a kernel to for Hopper, stage by stage."""
    constants = _constants(form, axis, columns)
    return hopper.assembly(kernel, types, constants, num_warps=warps)


@affected
@pytest.mark.parametrize("warps", WRONG)
def test_forms(warps):
    for columns in (False, True):
        wrong = [
            (form, axis)
            for form, axis in FORMS
            if miscompiled.find_wrong(
                assembly_of(reshaped.sum_kernel, form, axis, warps, columns)["ttgir"]
            )
        ]
        assert wrong == (WRONG[warps] if columns else [])


def combined_lanes(ptx):
    """The bits by which lanes differ that are combined with one another."""
    return {int(bit) for bit in re.findall(r"shfl\.sync\.bfly\.b32 .*, (\d+), 31, -1", ptx)}


def lanes_along(ttgir, axis):
    """The bits of lanes along an axis of the layout that the last reduction is of."""
    layouts = re.findall(r"#ttg\.linear<\{register.*?block = \[.*?\]\}>", ttgir)
    lanes = re.search(r"lane = (\[.*?\]), warp", layouts[-1])[1]
    steps = re.findall(r"\[(\d+), (\d+)\]", lanes)
    return {1 << bit for bit, step in enumerate(steps) if int(step[axis])}


@affected
def test_lanes_that_are_combined():
    """Within a warp, other lanes are combined than those along the axis; mended, just these."""
    for form, axis in WRONG[1]:
        asm = assembly_of(reshaped.sum_kernel, form, axis, 1)
        assert combined_lanes(asm["ptx"]) != lanes_along(asm["ttgir"], axis)
        mended = miscompiled.mended(asm["ttgir"])
        assert combined_lanes(hopper.compiled_text(mended, "ttgir").asm["ptx"]) == lanes_along(
            mended, axis
        )


@affected
@pytest.mark.parametrize("warps", WRONG)
def test_pairs_and_numbers(warps):
    """Several operands, in a loop, too, and sums of all elements."""
    for form, axis in WRONG[warps]:
        ttgir = assembly_of(reshaped.extremum_kernel, form, axis, warps)["ttgir"]
        wrong = miscompiled.find_wrong(ttgir)
        assert len(wrong) >= 2 and all("reshaped.py:" in position for position in wrong)
        mended = miscompiled.mended(ttgir)
        assert not miscompiled.find_wrong(mended)
        assert hopper.compiled_text(mended, "ttgir").asm["ptx"]


@affected
def test_derived_kernels():
    """Some backward kernels have such sums; what is launched has none."""
    found = 0
    for form, axis in WRONG[1]:
        constants = _constants(form, axis, columns=True)
        plan = hopper.plan_of(hopper.ttir(reshaped.scale_kernel, ["*fp32"] * 3, constants))
        for kernel in plan["backward"]:
            ttgir = hopper.compiled_text(kernel["ttir"], num_warps=1).asm["ttgir"]
            found += bool(miscompiled.find_wrong(ttgir))
            assert not miscompiled.find_wrong(miscompiled.mended(ttgir))
    assert found


class Compiled:
    """What Triton has compiled a kernel to."""

    class metadata:
        name = "kernel_bwd"

    def __init__(self, ttgir):
        self.asm = {"ttgir": ttgir}


@affected
def test_what_is_launched():
    ttgir = assembly_of(reshaped.sum_kernel, *WRONG[4][0], 4)["ttgir"]

    def translate(path):
        with open(path, encoding="utf-8") as file:
            return Compiled(file.read())

    right = miscompiled.ensure_right(Compiled(ttgir), translate)
    assert right.asm["ttgir"] == miscompiled.mended(ttgir)
    # What is right is compiled once.
    assert miscompiled.ensure_right(right, None) is right
    with pytest.raises(AutodiffError, match=r"kernel_bwd.*reshaped\.py:\d+.*Triton 3\.8"):
        miscompiled.ensure_right(Compiled(ttgir), lambda path: Compiled(ttgir))


@affected
def test_warning():
    ttgir = assembly_of(reshaped.sum_kernel, *WRONG[4][0], 4)["ttgir"]
    lines = Path(reshaped.__file__).read_text().splitlines()
    line = next(i for i, text in enumerate(lines, 1) if "tl.sum(x, AXIS))" in text)
    with pytest.warns(UserWarning, match=rf"'sum_kernel' wrongly, at .*reshaped\.py:{line}:"):
        miscompiled.warn_of_wrong(Compiled(ttgir), "sum_kernel")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        miscompiled.warn_of_wrong(Compiled(miscompiled.mended(ttgir)), "sum_kernel")


@pytest.mark.parametrize("columns", [False, True])
@pytest.mark.parametrize("form", reshaped.SHAPES, ids=str)
def test_gradients(device, form, columns):
    operation = differentiated(reshaped.scale_kernel, reshaped.scale)
    for axis, warps in itertools.product((0, 1), WRONG):
        x = reshaped.sample(form, device).requires_grad_()
        w = torch.randn(reshaped.vector(form, axis), device=device, requires_grad=True)

        def launch(*args, warps=warps):
            return operation(*args, num_warps=warps)

        assert_gradients_close(launch, reshaped.scale_reference, (x, w, form, axis, columns))


@pytest.mark.parametrize("name", ["sum", "extremum"])
def test_mended_on_the_device(name):
    """Mended TTGIR computes what is written."""
    if not torch.cuda.is_available():
        pytest.skip("no CUDA device on this machine")
    kernel = getattr(reshaped, f"{name}_kernel")
    reference = getattr(reshaped, f"{name}_reference")
    for warps, columns in itertools.product(WRONG, (False, True)):
        for form, axis in FORMS:
            x = reshaped.sample(form, "cuda")
            y = torch.full((reshaped.vector(form, axis),), float("nan"), device="cuda")
            ttgir = assembly_of(kernel, form, axis, warps, columns)["ttgir"]
            compiled = hopper.compiled_text(miscompiled.mended(ttgir), "ttgir", assemble=True)
            compiled[(1, 1, 1)](x, y)
            torch.testing.assert_close(
                y.double(), reference(x.double(), form, axis, columns), rtol=1e-4, atol=1e-4
            )
