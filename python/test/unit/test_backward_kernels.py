"""Derived kernels in other tools: functions of Triton, names and lines as debuggers see them."""

import re

import hopper
import pytest
import torch
import triton
import triton.language as tl
from kernels import matmul, normalization, softmax
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.runtime.jit import JITFunction


@triton.jit
def weighed_kernel(x_ptr, w_ptr, y_ptr, n, scale, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.exp(x) * tl.load(w_ptr) * scale, mask=i < n)


def weighed(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, w, y, x.numel(), 0.5, BLOCK=32)
    return y


@pytest.mark.parametrize("n", [100, 96])
def test_tuned_by_hand(n, device):
    """An autotuner runs a derived kernel: the gradients are those of the launch."""
    x = torch.randn(n, device=device, requires_grad=True)
    w = torch.randn(1, device=device, requires_grad=True)
    op = autodiff(weighed_kernel, weighed, backward={"schedules": []})
    mine = torch.autograd.grad(op(x, w).sum(), (x, w))
    kernels = op.backward_kernels()
    assert list(kernels) == ["weighed_kernel_bwd"]
    configs = [triton.Config({}, num_warps=warps) for warps in (1, 2)]
    tuned = triton.autotune(configs, key=["n"], reset_to_zero=["d_w_ptr"])(
        kernels["weighed_kernel_bwd"]
    )
    given = {
        "x_ptr": x.detach(),
        "w_ptr": w.detach(),
        "n": n,
        "scale": 0.5,
        "d_y_ptr": torch.ones_like(x),
        "d_x_ptr": torch.empty_like(x),
        "d_w_ptr": torch.zeros_like(w),
    }
    tuned[(triton.cdiv(n, 32),)](*(given[name] for name in tuned.arg_names))
    assert tuned.best_config in configs
    for gradient, name in zip(mine, ("d_x_ptr", "d_w_ptr"), strict=True):
        torch.testing.assert_close(given[name], gradient)


def test_of_a_launch(device):
    """By name, in the order of the source; of a launch that is given, too."""
    kernel = differentiable(weighed_kernel)
    with pytest.raises(AutodiffError, match="has not been launched"):
        kernel.backward_kernels()
    x, w = (torch.randn(n, device=device, requires_grad=True) for n in (100, 1))
    args = x, w, torch.empty_like(x), 100, 0.5
    kernels = kernel.backward_kernels(*args, BLOCK=32, grid=(4,))
    source = kernel.backward_source(*args, BLOCK=32, grid=(4,))
    assert list(kernels) == re.findall(r"^def (\w+_bwd\w*)\(", source, re.MULTILINE)
    for name, function in kernels.items():
        assert isinstance(function, JITFunction) and function.__name__ == name


FORMS = {
    "layer norm": (
        normalization.layer_norm_kernel,
        ["*bf16"] * 4 + ["i32"] * 3 + ["fp32"],
        {"BLOCK": 1024},
    ),
    "softmax": (softmax.softmax_kernel, ["*fp16"] * 2 + ["i32"] * 3, {"BLOCK": 1024}),
    "matmul": (
        matmul.matmul_kernel,
        ["*fp16"] * 3 + ["i32"] * 9,
        {"BLOCK_M": 64, "BLOCK_N": 64, "BLOCK_K": 32, "PRECISION": "tf32"},
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_what_debuggers_see(form):
    """PTX has the names that plans have, and the lines of the user's file."""
    user = FORMS[form][0]
    text = hopper.ttir(*FORMS[form], multiples_of_16=True)
    known: dict[str, list[int]] = {}
    for file, line in re.findall(r'"([^"]+)":(\d+)', text):
        known.setdefault(file, []).append(int(line))
    plan = hopper.plan_of(text)
    for kernel in (*plan["backward"], plan["forward"]):
        if kernel is None:
            continue
        compiled = hopper.compiled_text(kernel["ttir"])
        ptx = compiled.asm["ptx"]
        assert compiled.metadata.name == kernel["name"]
        assert re.findall(r"\.entry (\w+)\(", ptx) == [kernel["name"]]
        assert kernel["name"].startswith(user.__name__)
        files = dict(re.findall(r'^\s*\.file\s+(\d+) "(.*)"', ptx, re.MULTILINE))
        places = re.findall(r"^\s*\.loc\s+(\d+) (\d+)", ptx, re.MULTILINE)
        # Of instructions that it merges, LLVM forgets the line, or has that of what is around them.
        found = {(files[file], int(line)) for file, line in places if line != "0"}
        own = [(file, line) for file, line in found if "site-packages" not in file]
        assert len(own) > 5
        assert all(min(known[file]) <= line <= max(known[file]) for file, line in own), found
