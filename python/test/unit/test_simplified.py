"""Simplifications and normalization leave random kernels what they compute."""

import random

import hopper
import pytest
import shape_programs
import torch
import triton
from cpu_backend import on_cpu  # noqa: F401
from gradients import relative_error
from triton.backends.autodiff import _native
from triton.backends.autodiff.compiling.device_launch import launch
from triton.runtime.driver import driver

# Passes that change no result.
PASSES = (
    "canonicalize,cse,tt.func(autodiff-simplify),canonicalize",
    "autodiff-normalize,tt.func(autodiff-lower-swaps)",
    "autodiff-normalize,tt.func(autodiff-simplify,autodiff-lower-swaps)",
)


@pytest.mark.parametrize("passes", PASSES)
def test_random_moves(passes, tmp_path):
    """What passes make of a kernel computes what the kernel computes."""
    changed = False
    for index in range(64):
        if index >= 8 and changed:
            break
        program = shape_programs.generate(random.Random(random.getrandbits(32)))
        folder = tmp_path / str(index)
        folder.mkdir()
        kernel = program.load(folder)
        constants = {"A": program.shape[0], "B": program.shape[1], "SIZE": program.size}
        ttir = hopper.ttir(kernel, ["*fp64"] * 3 + ["i32"], constants)
        text = _native.run_pipeline(ttir, f"builtin.module({passes})")
        changed |= text != _native.run_pipeline(ttir)
        path = folder / "passes.ttir"
        path.write_text(text)
        compiled = triton.compile(str(path), target=driver.active.get_current_target())
        x = torch.randn(2, *program.shape, dtype=torch.float64)
        s = torch.randn(2, dtype=torch.float64)
        y = torch.zeros(2, program.size, dtype=torch.float64)
        launch(compiled, (2, 1, 1), (x, s, y, program.bound))
        print(program.source)
        assert relative_error(y, program.reference(x, s)) < 1e-10
    assert changed
