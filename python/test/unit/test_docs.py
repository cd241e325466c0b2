"""What the documentation says is what the code does."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
import torch

ROOT = Path(__file__).resolve().parents[3]


def test_rules_are_the_compilers():
    generated = subprocess.run(
        [sys.executable, ROOT / "scripts" / "rules.py"], check=True, capture_output=True, text=True
    )
    assert (ROOT / "docs" / "rules.md").read_text() == generated.stdout, "run `make docs`"


def test_readme_example(tmp_path, device):
    if device == "cpu" and torch.cuda.is_available():
        pytest.skip("the example runs where Triton's active driver does: on the GPU")
    (example,) = re.findall(r"```python\n(.*?)```", (ROOT / "README.md").read_text(), re.DOTALL)
    program = tmp_path / "example.py"
    program.write_text(
        f"import torch\ntorch.set_default_device('{device}')\n"
        + example
        + "torch.testing.assert_close(x.grad, w.detach() * x.detach().exp())\n"
        + "torch.testing.assert_close(w.grad, x.detach().exp().sum()[None])\n"
    )
    subprocess.run([sys.executable, program], check=True)


def test_examples_of_own_rules(tmp_path, device):
    if device == "cpu" and torch.cuda.is_available():
        pytest.skip("the examples run where Triton's active driver does: on the GPU")
    text = (ROOT / "docs" / "python.md").read_text()
    (section,) = re.findall(r"## Your own rules\n(.*?)\n## ", text, re.DOTALL)
    examples = re.findall(r"```python\n(.*?)```", section, re.DOTALL)
    assert len(examples) == 2
    for index, example in enumerate(examples):
        program = tmp_path / f"example{index}.py"
        program.write_text(f"import torch\ntorch.set_default_device('{device}')\n{example}")
        subprocess.run([sys.executable, program], check=True)
