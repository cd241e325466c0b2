"""The examples run and their own checks pass."""

import re
from pathlib import Path

import export
import forked
import pytest
import torch
import triton

pytestmark = pytest.mark.every_triton

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


RUN = ["quickstart", "layer_norm", "flash_attention_v2", "device_function", "parallel"]
HIGHER = ["gradient_penalty", "force_field", "mean_flow", "ensemble"]


@pytest.mark.parametrize("name", RUN + HIGHER)
def test_example(name, request):
    if request.config.getoption("--forward-only"):
        pytest.skip("nothing to see in the forward pass")
    run = forked.run(EXAMPLES / f"{name}.py")
    assert run.returncode == 0, run.stdout + run.stderr


@pytest.mark.skipif(torch.cuda.is_available(), reason="they are exported for a CPU")
@pytest.mark.parametrize("name", export.OPERATIONS)
def test_exported(name, request, tmp_path):
    """The modules that are there are those that the command makes."""
    if request.config.getoption("--forward-only"):
        pytest.skip("nothing is exported without a backward")
    there = (EXAMPLES / "exported" / f"{name}.py").read_text("utf-8")
    version = re.search(r"Triton (\d[\d.]*\d) for", there.replace("\n", " "))[1]
    made = export.export(name, tmp_path).read_text("utf-8")
    if version != triton.__version__:
        pytest.skip(f"they were made with Triton {version}")
    assert made == there
