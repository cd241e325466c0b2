"""The CPU backend, a GPU and Triton's interpreter agree on what the test kernels compute."""

import os
import subprocess
import sys
from pathlib import Path

import agreement
import pytest
import torch
from gradients import differentiated, relative_error

pytestmark = pytest.mark.every_triton

ROOT = Path(__file__).resolve().parents[1]
# Of values, and of slopes by central differences.
TOLERANCES = {torch.float32: (1e-5, 1e-4), torch.float64: (1e-12, 1e-7)}
CASES = pytest.mark.parametrize("name", agreement.CASES)


def _driver(name):
    """Make a device's driver the active one."""
    from triton.backends import backends
    from triton.runtime import driver

    driver.set_active(backends["autodiff" if name == "cpu" else "nvidia"].driver())


def _run(name, inputs, upstreams, device):
    """Outputs and gradients on a device, both on the CPU."""
    kernel, stub, _ = agreement.CASES[name]
    _driver(device)
    inputs = agreement.moved(inputs, device)
    wanted = [x for x in inputs if isinstance(x, torch.Tensor) and x.requires_grad]
    outputs = agreement.outputs_of(
        lambda _, *args: differentiated(kernel, stub)(*args), None, inputs
    )
    if upstreams is None:
        upstreams = [torch.randn_like(y) for y in outputs]
    gradients = torch.autograd.grad(outputs, wanted, [g.to(device) for g in upstreams])
    return [y.detach().cpu() for y in outputs], [g.cpu() for g in gradients], upstreams


@pytest.fixture(scope="module")
def restored_driver():
    """The driver that was active before is active again afterwards."""
    from triton.runtime import driver

    before = driver._active
    yield
    driver._active = before


@pytest.fixture(scope="module")
def on_cpu(restored_driver):
    """Every case's inputs, and what the CPU backend makes of them."""
    if os.environ.get("TRITON_INTERPRET") == "1":
        pytest.skip("kernels are interpreted")
    torch.manual_seed(0)
    results = {}
    for name, (_, _, make) in agreement.CASES.items():
        inputs = make()
        results[name] = (inputs, *_run(name, inputs, None, "cpu"))
    return results


@pytest.fixture(scope="module")
def interpreted(on_cpu, tmp_path_factory):
    """What the interpreter makes of the same inputs, with the slopes' directions."""
    folder = tmp_path_factory.mktemp("agreement")
    cases = {}
    for name, (inputs, _, gradients, upstreams) in on_cpu.items():
        cases[name] = (inputs, upstreams, [torch.randn_like(g) for g in gradients])
    torch.save(cases, folder / "cases")
    environment = {**os.environ, "TRITON_INTERPRET": "1", "CUDA_VISIBLE_DEVICES": ""}
    command = [sys.executable, ROOT / "agreement.py", folder / "cases", folder / "results"]
    subprocess.run(command, check=True, env=environment)
    return cases, torch.load(folder / "results")


@pytest.mark.cpu
@CASES
def test_interpreter_and_cpu_agree(name, on_cpu, interpreted):
    _, outputs, gradients, _ = on_cpu[name]
    cases, results = interpreted
    values, slope = results[name]
    for_values, for_slopes = TOLERANCES[outputs[0].dtype]
    for ours, theirs in zip(outputs, values, strict=True):
        assert relative_error(ours, theirs) < for_values
    direction = cases[name][2]
    ours = sum((g * d).sum() for g, d in zip(gradients, direction, strict=True)).item()
    length = sum(g.norm() * d.norm() for g, d in zip(gradients, direction, strict=True)).item()
    assert abs(ours - slope) < for_slopes * max(length, 1.0)


@CASES
def test_gpu_and_cpu_agree(name, on_cpu, cuda):
    inputs, outputs, gradients, upstreams = on_cpu[name]
    values, theirs, _ = _run(name, inputs, upstreams, cuda)
    for ours, other in zip((*outputs, *gradients), (*values, *theirs), strict=True):
        assert relative_error(ours, other) < TOLERANCES[ours.dtype][0]
