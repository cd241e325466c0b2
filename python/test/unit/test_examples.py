"""The examples run and their own checks pass."""

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[2] / "examples"


@pytest.mark.parametrize(
    "name", ["quickstart", "layer_norm", "flash_attention_v2", "device_function"]
)
def test_example(name, request):
    if request.config.getoption("--forward-only"):
        pytest.skip("nothing to see in the forward pass")
    run = subprocess.run(
        [sys.executable, EXAMPLES / f"{name}.py"], capture_output=True, text=True, timeout=300
    )
    assert run.returncode == 0, run.stdout + run.stderr
