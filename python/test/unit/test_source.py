"""Kernels printed as Triton Python: Triton compiles them to the PTX of what they are printed from.

That is the TTIR of a kernel as Triton's own passes leave it: they run on Python, not on text.
"""

import ast
import re
import subprocess
import sys

import flash_attention_v2
import hopper
import printed
import pytest
import test_matrix_instructions as attention
import torch
import triton
import triton.language as tl
from kernels import (
    cross_entropy,
    descriptors,
    matmul,
    normalization,
    picking,
    softmax,
    through_memory,
)
from torch.autograd import forward_ad
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff import __main__ as command
from triton.backends.autodiff.plans.cache import kernel_with_tangents
from triton.backends.autodiff.plans.target import described
from triton.backends.autodiff.printing.constexprs import Constexprs, _numbers, _statements
from triton.backends.autodiff.printing.source import python_of
from triton.backends.autodiff.printing.tangent_names import (
    _results_of_branches,
    with_tangent_names,
)

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


@triton.jit
def made_descriptors_kernel(x_ptr, y_ptr, n, m, stride, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [n, m], [stride, 1], [BLOCK, BLOCK])
    y = tl.make_tensor_descriptor(y_ptr, [n, m], [stride, 1], [BLOCK, BLOCK], padding_option="nan")
    row = tl.program_id(0) * BLOCK
    for column in range(0, m, BLOCK):
        y.store([row, column], x.load([row, column]) + y.load([row, column]))
    y.atomic_add([row, 0], x.load([row, 64]))


@triton.jit
def given_descriptors_kernel(x, y, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    for column in range(0, x.shape[1], BLOCK):
        y.store([row, column], x.load([row, column]) * 2)


@triton.jit
def chosen_descriptors_kernel(x, z, y, n, BLOCK: tl.constexpr):
    row = tl.program_id(0) * BLOCK
    chosen = x
    if n > 0:
        chosen = z
    for column in range(0, chosen.shape[1], BLOCK):
        y.store([row, column], chosen.load([row, column]))


@triton.jit
def scaled_products_kernel(
    a_ptr, a_scale_ptr, b_ptr, b_scale_ptr, y_ptr, M: tl.constexpr, K: tl.constexpr
):
    i, k, group = tl.arange(0, M), tl.arange(0, K), tl.arange(0, K // 32)
    a = tl.load(a_ptr + i[:, None] * K + k[None, :])
    b = tl.load(b_ptr + k[:, None] * M + i[None, :])
    a_scale = tl.load(a_scale_ptr + i[:, None] * (K // 32) + group[None, :])
    b_scale = tl.load(b_scale_ptr + i[:, None] * (K // 32) + group[None, :])
    y = tl.dot_scaled(a, a_scale, "e4m3", b, b_scale, "e5m2")
    y = tl.dot_scaled(a, a_scale, "e4m3", b, None, "e5m2", y)
    tl.store(y_ptr + i[:, None] * M + i[None, :], y)


@triton.jit(noinline=True)
def scaled(x, n, scale: tl.constexpr):
    if n > 4:
        return x * scale, n
    return x, n + 1


@triton.jit(noinline=True)
def stored(y_ptr, y, factor):
    tl.store(y_ptr, y * (scaled(y, 5, 3)[0] + factor))


@triton.jit
def calls_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    total, m = scaled(tl.sum(x), n, 2)
    tl.store(y_ptr + i, x * total)
    stored(y_ptr + m, total, tl.program_id(0).to(tl.float32))


@triton.jit
def hints_kernel(x_ptr, y_ptr, n, m, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    i = tl.max_contiguous(tl.multiple_of(i % n, BLOCK), BLOCK)
    j = tl.max_constancy(tl.arange(0, BLOCK) // m, [16])
    at = tl.multiple_of(i[:, None] * n + j[None, :], (1, 16))
    tl.store(y_ptr + at, tl.load(x_ptr + at))


@triton.jit
def literals_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    """Both values of a choice are literals, not of 32 bits."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    one = tl.full([BLOCK], 1.1, x.dtype)
    y = tl.where(x > 0, one, tl.full([BLOCK], -0.1, x.dtype))
    m = tl.where(x > 1, tl.full([BLOCK], 3, tl.int16), tl.full([BLOCK], -5, tl.int16))
    tl.store(y_ptr + i, tl.sum(y) + tl.sum(m.to(tl.int64)).to(x.dtype))


# What derived kernels do not have.
FORWARDS = {
    "maxima in memory": (
        through_memory.extremum_kernel,
        ["*fp32", "*fp32", "i32", "i32"],
        {"BLOCK": 64, "MINIMUM": False},
    ),
    "hints": (hints_kernel, ["*fp32", "*fp32", "i32", "i32"], {"BLOCK": 64}),
    "literals": (literals_kernel, ["*fp64", "*fp64"], {"BLOCK": 64}),
    "short literals": (literals_kernel, ["*fp16", "*fp16"], {"BLOCK": 64}),
    "maps": (picking.map_kernel, ["*fp32"] * 3 + ["i32"], {"BLOCK": 64}),
    "descriptors made": (
        made_descriptors_kernel,
        ["*fp16", "*fp16", "i32", "i32", "i64"],
        {"BLOCK": 64},
    ),
    "descriptors given": (
        given_descriptors_kernel,
        ["tensordesc<fp16[64, 64]>"] * 2,
        {"BLOCK": 64},
    ),
    "descriptors chosen": (
        chosen_descriptors_kernel,
        ["tensordesc<fp16[64, 64]>"] * 3 + ["i32"],
        {"BLOCK": 64},
    ),
    "descriptors in turns": (
        descriptors.chosen_kernel,
        ["*fp16"] * 3 + ["i32"] * 2 + ["i64", "i32"],
        {"BM": 64, "BN": 64},
    ),
    "scaled products": (
        scaled_products_kernel,
        ["*fp8e4nv", "*u8", "*fp8e5", "*u8", "*fp32"],
        {"M": 128, "K": 128},
    ),
    "calls": (calls_kernel, ["*fp32", "*fp32", "i32"], {"BLOCK": 64}),
    "products of 8-bit floats": (
        matmul.float8_dot_kernel,
        ["*fp16", "*fp16", "*fp32"],
        {"M": 64, "N": 64, "K": 64, "E5M2": False},
    ),
}


@pytest.mark.parametrize("form", FORWARDS)
def test_same_ptx_of_forward(form):
    ttir = printed.made_ttir(hopper.ttir(*FORWARDS[form]))
    source = python_of(ttir)
    assert printed.ptx_of_python(source, ttir) == printed.ptx_of_text(ttir), source


@pytest.mark.parametrize("form", KERNELS)
def test_format(form, tmp_path):
    pytest.importorskip("ruff")
    text = hopper.ttir(*KERNELS[form], multiples_of_16=True)
    plan = hopper.plan_of(text)
    kernels = [text, *(kernel["ttir"] for kernel in (*plan["backward"], plan["forward"]) if kernel)]
    path = tmp_path / "printed.py"
    path.write_text(python_of(kernels), "utf-8")
    ruff = [sys.executable, "-m", "ruff"]
    subprocess.run([*ruff, "check", "--isolated", path], check=True)
    subprocess.run([*ruff, "format", "--isolated", "--line-length=100", "--diff", path], check=True)


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


@triton.jit
def scaled_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    w = tl.load(w_ptr)
    tl.store(y_ptr + i, w * tl.exp(x), mask=i < n)


def scaled_twice(kernel, x, w):
    y, z = torch.empty_like(x), torch.empty_like(x)
    grid = (triton.cdiv(x.numel(), 32),)
    kernel[grid](x, w, y, x.numel(), BLOCK=32)
    kernel[grid](y, w, z, x.numel(), BLOCK=64)
    return z


@triton.jit
def constants_kernel(
    x_ptr, y_ptr, n, BLOCK: tl.constexpr, ROWS: tl.constexpr, EPS: tl.constexpr, LEAST: tl.constexpr
):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    rows = tl.arange(0, ROWS)[:, None]
    x = tl.load(x_ptr + rows * n + i, mask=i < n)
    y = tl.exp(x * 64 + BLOCK // 2) / (x * max(BLOCK, LEAST) + EPS)
    tl.store(y_ptr + rows * n + i, y, mask=i < n)


def _launched(device, rows):
    """The kernel above after a launch in which several constexprs are 64."""
    kernel = differentiable(constants_kernel)
    x = torch.randn(rows, 50, device=device, requires_grad=True)
    y = torch.empty_like(x)
    kernel[(1,)](x, y, 50, BLOCK=64, ROWS=rows, EPS=1e-5, LEAST=64)
    return kernel


def test_names_of_constexprs(device):
    """One alone explains the number: not half of it, not another one of the same value."""
    source = _launched(device, 32).backward_source()
    for text in (
        "BLOCK: tl.constexpr = 64\n",
        "ROWS: tl.constexpr = 32\n",
        "EPS: tl.constexpr = 1e-05\n",
        "tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)",
        "tl.arange(0, ROWS)",
        " + EPS",
        " * 64.0",
        " + 32.0",
    ):
        assert text in source, (text, source)
    assert "LEAST:" not in source, "it does not decide"
    assert "tl.arange(0, 64)" in _launched(device, 64).backward_source(), "of two, equal ones"


def test_names_of_constexprs_change_nothing(device):
    for state, plan, _ in _launched(device, 32)._plans((), {}):
        for kernel in plan.backward:
            named = python_of(kernel.ttir, origins=[(Constexprs(state.spec, plan), kernel)])
            plain = python_of(kernel.ttir)
            assert named != plain
            expected = printed.ptx_of_python(plain, kernel.ttir)
            assert printed.ptx_of_python(named, kernel.ttir) == expected


def test_numbers_stay_where_their_results_are_used_otherwise():
    """Another trace with other statements says nothing about what these have in common."""
    own = "def kernel(x, y):\n    i, m = 3 * x, y\n    k = i + 64\n    j = x + 7\n"
    others = own.replace("3", "5").replace("64", "9").replace("7", "8")

    def numbers(text):
        found = _numbers(_statements(own), lambda ttir: text, "")
        return [(token.string, other) for token, other in found]

    assert numbers(others) == [("3", "5"), ("64", "9"), ("7", "8")]
    # A statement more changes none of the others.
    more = others.replace("    j =", "    z = m - 1\n    j =")
    assert numbers(more) == [("3", "5"), ("64", "9"), ("7", "8")]
    assert numbers(others.replace("k = i + 9", "k = i << 9")) == [("7", "8")]


def _defined(source):
    """The functions that a printed module has, by their names."""
    found = {}
    with printed.as_module(source) as module:
        for name, value in vars(module).items():
            if isinstance(value, triton.JITFunction):
                found[name] = value
    return found


def test_backward_source_of_an_operation(device):
    """Its names are the user's; gradients, and what they come from, have those of variables."""
    op = autodiff(scaled_kernel, scaled_twice)
    x, w = torch.randn(50, device=device, requires_grad=True), torch.randn(1, device=device)
    w.requires_grad_()
    source = op.backward_source(x, w)
    kernels = _defined(source)
    assert len(kernels) == 2, "the second kernel has a name of its own"
    for kernel in kernels.values():
        # The second launch's x is the first one's y, of which it gives the gradient.
        arguments = kernel.arg_names
        assert {"x_ptr", "w_ptr", "d_y_ptr", "d_x_ptr", "d_w_ptr"} <= set(arguments)
    assert not x.grad_fn and x.is_leaf
    assert "d_x = " in source
    assert "%d_x" in op.backward_ir(x, w) or '"d_x"' in op.backward_ir(x, w)


def test_backward_source_of_a_launch(device):
    kernel = differentiable(scaled_kernel)
    x, w = torch.randn(50, device=device, requires_grad=True), torch.randn(1, device=device)
    with pytest.raises(AutodiffError, match="launch it once"):
        kernel.backward_source()
    with pytest.raises(AutodiffError, match="give the grid of this launch.*grid="):
        kernel.backward_source(x, w, torch.empty_like(x), 50, BLOCK=64)
    given = kernel.backward_source(x, w, torch.empty_like(x), 50, BLOCK=64, grid=(1,))
    y = torch.empty_like(x)
    kernel[(1,)](x, w, y, 50, BLOCK=64)
    assert kernel.backward_source() == given
    assert list(_defined(given)) == ["scaled_kernel_bwd"]


def test_docstrings_say_what_kernels_do(device):
    """What each computes, who its programs are, and what it leaves to which other."""
    q, k, v = (
        torch.randn(1, 2, 128, 64, device=device, dtype=torch.float16, requires_grad=True)
        for _ in range(3)
    )
    op = autodiff(flash_attention_v2.attention_kernel, flash_attention_v2.attention)
    parsed = ast.parse(op.backward_source(q, k, v, True, 0.125)).body
    functions = {node.name: node for node in parsed if isinstance(node, ast.FunctionDef)}
    docs = {name: " ".join(ast.get_docstring(node).split()) for name, node in functions.items()}
    first, second = (docs[f"attention_kernel_bwd{suffix}"] for suffix in ("", "_interchanged0"))
    assert "It computes `d_q_ptr`, from" in first
    assert "one program of the forward" in first
    assert "`handover_log_row_sum` to `attention_kernel_bwd_interchanged0`" in first
    assert "computes `d_k_ptr` and `d_v_ptr`" in second
    assert "iteration of the loop at flash_attention_v2.py:" in second
    assert "which `attention_kernel_bwd` has left" in second
    assert "- n_programs: grid[0]" in first and "- n_iterations: max(" in second
    parameters = [argument.arg for argument in functions["attention_kernel_bwd"].args.args]
    assert {"n_programs", "zero"} <= {*parameters}


def test_what_a_forward_leaves_that_is_not_printed(device):
    """The backward reads what an augmented forward saves; the user's kernel is not printed."""
    x, w, b = (torch.randn(*s, device=device, requires_grad=True) for s in ((3, 50), (50,), (50,)))
    kernel = differentiable(normalization.layer_norm_kernel)
    kernel[(3,)](x, w, b, torch.empty_like(x), 50, 50, 50, 1e-5, BLOCK=64)
    ((_, plan, _),) = kernel._plans((), {})
    assert plan.forward is not None
    source = kernel.backward_source()
    said = " ".join(source.split())
    assert re.search(r"It reads `saved_\w+`[^.]*, which the augmented forward has left\.", said)
    assert list(kernel.backward_kernels()) == list(_defined(source))


def _pushed(text):
    """The kernel of some TTIR that computes tangents, too, from those of all floats in memory."""
    arguments = re.search(r"tt\.func public @\w+\((.*)", text)[1]
    types = re.findall(r"%[\w.$-]+: (!tt\.\w+<[^ ,)]*>|\w+)", arguments)
    floats = [n for n, type_ in enumerate(types) if re.search(r"ptr<(f|bf)\d", type_)]
    request = {"tangents": floats, "rules": [], **described(hopper.TARGET)}
    return kernel_with_tangents(text, request, "kernel")


@pytest.mark.parametrize("form", [*KERNELS, *FORWARDS])
def test_same_ptx_with_tangents(form):
    """Also with names of tangents: they change nothing."""
    text = hopper.ttir(*{**KERNELS, **FORWARDS}[form])
    if form == "maxima in memory":
        with pytest.raises(AutodiffError, match="no forward-mode rule for 'tl.atomic_max'"):
            _pushed(text)
        return
    pushed = _pushed(text)
    ttir = printed.made_ttir(pushed.ttir)
    source = python_of(ttir)
    *others, kernel = source.split("\n\n\n")
    renamed = "\n\n\n".join([*others, with_tangent_names(kernel, len(pushed.tangents))])
    assert renamed != source and "t_" in renamed
    for text in (source, renamed):
        assert printed.ptx_of_python(text, ttir) == printed.ptx_of_text(ttir), text


def test_jvp_source_of_a_launch(device):
    """Of the arguments that have tangents; if none has, of those whose gradient is wanted."""
    kernel = differentiable(triton.jit(scaled_kernel.fn))
    x, w = torch.randn(50, device=device), torch.randn(1, device=device)
    with pytest.raises(AutodiffError, match="launch it once"):
        kernel.jvp_source()
    with pytest.raises(AutodiffError, match="give the grid of this launch.*grid="):
        kernel.jvp_source(x, w, torch.empty_like(x), 50, BLOCK=64)

    def moving(source):
        (function,) = _defined(source).values()
        return {name for name in function.arg_names if name.startswith("t_")}

    def given(x, w, y=None):
        y = torch.empty_like(x) if y is None else y
        return kernel.jvp_source(x, w, y, 50, BLOCK=64, grid=(1,))

    every = {"t_x_ptr", "t_w_ptr", "t_y_ptr"}
    assert moving(given(x, w)) == every, "no gradient is wanted, nor is there a tangent"
    w.requires_grad_()
    assert moving(given(x, w)) == {"t_w_ptr", "t_y_ptr"}
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, torch.ones_like(x))
        source = given(dual, w)
        kernel[(1,)](dual, w, torch.empty_like(x), 50, BLOCK=64)
    assert moving(source) == {"t_x_ptr", "t_y_ptr"} and kernel.jvp_source() == source
    assert list(_defined(source)) == ["scaled_kernel_jvp"]
    kernel[(1,)](x, w, torch.empty_like(x), 50, BLOCK=64)
    assert moving(kernel.jvp_source()) == {"t_w_ptr", "t_y_ptr"}, "the last one had no tangent"


def test_jvp_source_of_an_operation(device):
    op = autodiff(triton.jit(scaled_kernel.fn), scaled_twice)
    x, w = torch.randn(50, device=device, requires_grad=True), torch.randn(1, device=device)
    source = op.jvp_source(x, w)
    assert list(_defined(source)) == ["scaled_kernel_jvp", "scaled_kernel_jvp_0"]
    assert "BLOCK: tl.constexpr = 32\n" in source and "BLOCK: tl.constexpr = 64\n" in source
    said = " ".join(source.split())
    assert "`scaled_kernel`, which computes tangents, too." in said
    assert "It computes `t_y_ptr`, from `t_x_ptr`." in said
    assert "t_x = tl.load(t_x_ptrs, mask, 0.0)" in source
    torch.func.jvp(lambda w: op(x.detach(), w), (w,), (w,))
    pushed = op.jvp_source()
    assert "It computes `t_y_ptr`, from `t_w_ptr`." in pushed, "the first launch"


def test_jvp_source_computes_tangents(device):
    """What is printed, launched by hand."""
    op = autodiff(scaled_kernel, scaled_twice)
    x, w = (torch.rand(n, device=device).requires_grad_() for n in (50, 1))
    with printed.as_module(op.jvp_source(x, w)) as module:
        y, t_y = torch.empty_like(x), torch.empty_like(x)
        t_x, t_w = torch.randn_like(x), torch.randn_like(w)
        given = (t.detach() for t in (x, w, y))
        module.scaled_kernel_jvp[(2,)](*given, 50, t_x, t_w, t_y)
    truth = torch.func.jvp(lambda x, w: w * x.exp(), (x.detach(), w.detach()), (t_x, t_w))
    torch.testing.assert_close((y.detach(), t_y), truth)


def test_jvp_source_of_what_has_no_tangents(device):
    """The compiler's error, with the line."""
    kernel = differentiable(through_memory.extremum_kernel)
    x, y = torch.randn(64, device=device), torch.zeros(64, device=device)
    x.requires_grad_()
    with pytest.raises(AutodiffError, match=r"through_memory.py:\d+.*'tl.atomic_max'"):
        kernel.jvp_source(x, y, 64, 1, BLOCK=64, MINIMUM=False, grid=(1,))


@triton.jit
def branch_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    t_x = tl.load(x_ptr + i)
    if n > 4:
        t_x = t_x * t_x
        z = t_x + 1
    else:
        z = t_x
    tl.store(y_ptr + i, z * t_x)


def test_names_of_tangents():
    """A value that the user calls t_x has a tangent t_t_x. Results of branches keep their order,
    by which Triton sorts them.
    """
    ttir = printed.made_ttir(hopper.ttir(branch_kernel, ["*fp32", "*fp32", "i32"], {"BLOCK": 64}))
    pushed = _pushed(ttir)
    *others, kernel = python_of(printed.made_ttir(pushed.ttir)).split("\n\n\n")
    renamed = with_tangent_names(kernel, len(pushed.tangents))
    (results,) = _results_of_branches(ast.parse(renamed).body[0])
    assert results == sorted(results)
    own = [re.sub(r"(_\d+)+$", "", name) for name in results]
    # The tangents of both are one value.
    assert own == ["a_t_x", "b_t_t_x", "c_z"], renamed


def _code(source):
    """Printed lines that are no comments."""
    return [line for line in source.splitlines() if not line.lstrip().startswith("#")]


def test_comments_are_the_user_s_lines():
    """Above the adjoint of a statement, with the formulas of its rules; each once."""
    plan = hopper.plan_of(hopper.ttir(*KERNELS["softmax"]))
    source = python_of(kernel["ttir"] for kernel in plan["backward"])
    statement = "    # numerator = tl.exp(x - tl.max(x, axis=0))  (softmax.py:16)\n"
    assert source.count(f"{statement}    #     exp: x̄ += ȳ·y\n") == 1
    assert "(softmax.py" not in python_of(hopper.ttir(*KERNELS["softmax"])), "no rule made these"


def test_names_of_adjoints():
    """Of the layer norm's backward: what is saved, summed and stored is called by what it is."""
    plan = hopper.plan_of(hopper.ttir(*KERNELS["layer norm"], multiples_of_16=True))
    (kernel,) = plan["backward"]
    source = python_of(kernel["ttir"])
    assert len(_code(source)) < 75
    for text in (
        "saved_mean_part",
        "n_programs",
        "rstd = 1.0 / tl.sqrt(",
        "tl.load(d_y_ptr + ",
        "d_centred = ",
        "tl.store(d_x_ptrs",
        "tl.sum(",
    ):
        assert text in source, text
    for name in ("saved_mean_part", "n_programs", "d_x_ptr", "d_w_ptr"):
        assert f"%{name}: " in kernel["ttir"], name
    function = source[source.index("def layer_norm_kernel_bwd") :]
    assert len(_code(function)) < 60


def test_attention_is_read():
    """Its two backward kernels, with the types of their arguments, on five pages."""
    plan = hopper.plan_of(hopper.ttir(*KERNELS["attention"], multiples_of_16=True))
    source = python_of(kernel["ttir"] for kernel in plan["backward"])
    assert len(_code(source)) < 280
    for text in ("d_q = ", "d_k", "d_v", "tl.store(d_k_ptrs", "handover_log_row_sum", "zero"):
        assert text in source, text
    assert "in range(start, stop):" in source and "in range(n_iterations):" in source
    assert not re.search(r"^ +x(_\d+)? = ", source, re.MULTILINE), "what has no name is an adjoint"


@triton.jit
def counted_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.device_print("x", x, n)
    tl.device_assert(n > 0, "nothing to count")
    tl.store(y_ptr + i, tl.histogram(x, BLOCK))


@pytest.mark.parametrize("debug", [False, True])
def test_debugging(debug):
    text = hopper.ttir(counted_kernel, ["*i32", "*i32", "i32"], {"BLOCK": 32}, True)
    ttir = printed.made_ttir(text)
    source, options = python_of(ttir), {"debug": debug}
    assert printed.ptx_of_python(source, ttir, **options) == printed.ptx_of_text(ttir, **options)
