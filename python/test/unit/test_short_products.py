"""Products over few elements: what a GPU's matrix unit does not take becomes something else.

On the CPU backend, which takes everything, plans are those for a GPU.
"""

import json
import re
import types
import warnings

import hopper
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, differentiated, random_tensor, relative_error
from kernels import rejected
from kernels import short_products as sp
from triton.backends.autodiff import AutodiffError, _native
from triton.backends.autodiff.compiling import executable
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.faults.assembler import assembled
from triton.backends.autodiff.faults.omitted import (
    _NOTHING,
    omits_products,
    warn_of_omitted,
    with_all_products,
)
from triton.backends.autodiff.faults.short_products import warn_of_miscomputed
from triton.backends.autodiff.faults.table import fault
from triton.backends.autodiff.inspecting import corpus
from triton.backends.autodiff.launching import blame, state
from triton.backends.autodiff.plans.plan import Kernel
from triton.backends.autodiff.plans.target import (
    described,
    name_of,
    other_form,
    verify,
)
from triton.backends.compiler import GPUTarget

DTYPES = [torch.bfloat16, torch.float16, torch.float32, torch.float64]
# Rows and columns. Products of 64 rows and columns are large.
SHAPES = [(64, 1), (64, 2), (16, 4), (64, 8), (64, 16), (1, 32), (4, 64), (1, 1)]
TARGETS = ["cuda:80", "cuda:89", "cuda:90", "cuda:100", "cuda:120", "hip:gfx942"]


@pytest.fixture(params=["sm_90", "sm_120"])
def plans(request, monkeypatch, device):
    """Plans for a GPU that is not there; on one, those for itself."""
    if device == "cpu":
        request_for = {"target": request.param, "triton": triton.__version__}
        monkeypatch.setattr(state, "described", lambda target: request_for)
    elif request.param != "sm_90":
        pytest.skip("plans are for the GPU")


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_gradients(device, plans, shape, dtype):
    """Errors are relative: of factors around 1, sums do not cancel, not that of one element."""
    a = random_tensor(shape[0], 64, device=device, dtype=dtype, shift=1.0)
    b = random_tensor(64, shape[1], device=device, dtype=dtype, shift=1.0)
    assert_gradients_close(differentiated(sp.product_kernel, sp.product), torch.matmul, (a, b))


@pytest.mark.parametrize("precision", ["tf32", "tf32x3", "bf16x3"])
@pytest.mark.parametrize("columns", [1, 4, 8])
def test_precisions(device, plans, columns, precision):
    """Of float32 rounded to less. A sum that is too large would be so by half at least."""
    a = random_tensor(64, 32, device=device)
    b = random_tensor(32, columns, device=device)
    c = differentiated(sp.product_kernel, sp.product)(a, b, precision)
    upstream = torch.randn_like(c)
    found = torch.autograd.grad(c, (a, b), upstream)
    x, y, u = (t.detach().double() for t in (a, b, upstream))
    for gradient, truth in zip(found, (u @ y.t(), x.t() @ u), strict=True):
        assert relative_error(gradient, truth) < 2e-3


@pytest.mark.parametrize("bytes_are", [torch.uint8, torch.float8_e5m2, torch.float16], ids=str)
@pytest.mark.parametrize("type", [tl.float32, tl.float16, tl.bfloat16], ids=str)
@pytest.mark.parametrize("shape", [(16, 8), (8, 16), (16, 16), (64, 16), (16, 1)], ids=str)
def test_narrow_elements(device, plans, shape, type, bytes_are):
    """Triton lets each thread take as many neighbours as 32 bits hold of what was loaded."""
    m, n = shape
    a, b = random_tensor(m, 16, device=device), random_tensor(16, n, device=device)
    kept = torch.randint(0, 3, (m, 16), device=device).to(bytes_are)
    c = differentiated(sp.narrow_kernel, sp.narrow)(a, kept, b, type)
    upstream = torch.randn_like(c)
    found = torch.autograd.grad(c, (a, b), upstream)
    x, y, u, k = (t.detach().double() for t in (a, b, upstream, kept))
    assert relative_error(c, (x * k) @ y * k[:, :n]) < 1e-2
    u = u * k[:, :n]
    for gradient, truth in zip(found, ((u @ y.t()) * k, (x * k).t() @ u), strict=True):
        assert relative_error(gradient, truth) < 1e-2


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float64], ids=str)
@pytest.mark.parametrize("shape", [(32, 1), (2, 16)], ids=str)
def test_batches(device, plans, shape, dtype):
    a = random_tensor(2, shape[0], 32, device=device, dtype=dtype)
    b = random_tensor(2, 32, shape[1], device=device, dtype=dtype)
    assert_gradients_close(differentiated(sp.batched_kernel, sp.product), torch.matmul, (a, b))


@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
@pytest.mark.parametrize("shape", [(64, 4), (4, 64), (128, 8)], ids=str)
def test_loops(device, plans, shape, dtype):
    a = random_tensor(3, shape[0], 32, device=device, dtype=dtype)
    b = random_tensor(32, shape[1], device=device, dtype=dtype)
    op = differentiated(sp.powers_kernel, sp.powers)
    assert_gradients_close(op, sp.powers_reference, (a, b))


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", [torch.float16, torch.float32], ids=str)
def test_sums(device, plans, dtype, axis):
    """Triton would take some of the adjoint's sums for products, in TF32, or of other axes."""
    a = random_tensor(16, 16, device=device, dtype=dtype)
    b = random_tensor(16, 16, device=device, dtype=dtype)
    op = differentiated(sp.sum_kernel, sp.sums)
    assert_gradients_close(op, sp.sums_reference, (a, b, axis))


# What Triton makes of it, without a GPU.


def _plan(text, target):
    return json.loads(_native.differentiate(text, corpus.request_for(target), "kernel.ttir"))


def _kernels(plan):
    return [k for k in (plan["forward"], *plan["backward"]) if k]


def _types(dtype, count=3):
    short = {"bf16": "*bf16", "fp16": "*fp16", "fp32": "*fp32", "fp64": "*fp64"}[dtype]
    wide = "*fp64" if dtype == "fp64" else "*fp32"
    return [short, short, wide][:count]


def _assert_instructions_full(asm):
    """No matrix instruction sums over more than its product does, which is not one of float32."""
    lengths = [
        int(length)
        for precision, length, element in re.findall(
            r"tt\.dot (.*) : tensor<\d+x(\d+)x(\w+)> \*", asm["ttir"]
        )
        if "inputPrecision" in precision or element != "f32"
    ]
    for name, depth in re.findall(r"\b(\w*mma\w*(?:\.\w+)*\.m\d+n\d+k(\d+))", asm.get("ptx", "")):
        assert int(depth) <= min(lengths), name


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("dtype", ["bf16", "fp32", "fp64"])
@pytest.mark.parametrize("columns", [1, 8])
def test_instructions(target, dtype, columns):
    target = corpus.parse_target(target)
    constants = {"M": 64, "N": columns, "K": 64, "PRECISION": "ieee" if dtype == "fp64" else "tf32"}
    text = hopper.ttir(sp.product_kernel, _types(dtype), constants)
    for kernel in _kernels(_plan(text, target)):
        asm = corpus.compile_ttir(kernel["ttir"], target, False)
        verify(asm["ttir"], kernel["name"], target)
        _assert_instructions_full(asm)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
def test_sums_stay_what_they_are(axis, dtype):
    types_ = [f"*{dtype}"] * 3
    constants = {"M": 16, "N": 16, "K": 16, "AXIS": axis}
    text = hopper.ttir(sp.sum_kernel, types_, constants)
    for kernel in _kernels(_plan(text, hopper.TARGET)):
        ttir = corpus.compile_ttir(kernel["ttir"], hopper.TARGET, False)["ttir"]
        assert "inputPrecision = tf32" not in ttir
        assert ttir.count("tt.dot") == kernel["ttir"].count("tt.dot")


_SHORT = """
tt.func public @k(%p: tensor<16x4x!tt.ptr<f32>>, %q: tensor<4x16x!tt.ptr<f32>>,
                  %r: tensor<16x16x!tt.ptr<f32>>) {
  %c = arith.constant dense<0.0> : tensor<16x16xf32>
  %a = tt.load %p : tensor<16x4x!tt.ptr<f32>>
  %b = tt.load %q : tensor<4x16x!tt.ptr<f32>>
  %d = tt.dot %a, %b, %c, inputPrecision = tf32 : tensor<16x4xf32> * tensor<4x16xf32>
    -> tensor<16x16xf32>
  tt.store %r, %d : tensor<16x16x!tt.ptr<f32>>
  tt.return
}
"""


def test_verification():
    with pytest.raises(AutodiffError, match="'k_bwd'.*wrong on this device.*sums over 4 elements"):
        verify(_SHORT, "k_bwd", hopper.TARGET)
    verify(_SHORT.replace("tf32", "ieee"), "k_bwd", hopper.TARGET)
    verify(_SHORT, "k_bwd", GPUTarget("cpu", "x86_64", 1))


def _short_forward():
    """What Triton 3.6 makes of tl.sum(a[:, :, None] * b[None, :, :], 1)."""
    constants = {"M": 16, "N": 16, "K": 4, "PRECISION": "tf32"}
    names = [x for x in sp.product_kernel.arg_names if x not in constants]
    signature = {**dict.fromkeys(names, "*fp32"), **dict.fromkeys(constants, "constexpr")}
    source = triton.compiler.ASTSource(sp.product_kernel, signature, constants)
    return triton.compile(source, target=GPUTarget("cpu", "x86_64", 1)).asm["ttir"]


def test_forward_that_triton_gets_wrong():
    """It is derived, too, and the user is told."""
    text = _short_forward()
    plan = _plan(text, hopper.TARGET)
    assert plan["forward"] and len(plan["report"]["miscomputed"]) == 1
    assert "short_products.py" in plan["report"]["miscomputed"][0]
    host = _plan(text, GPUTarget("cpu", "x86_64", 1))
    assert not host["forward"] and not host["report"]["miscomputed"]
    with pytest.warns(UserWarning, match=r"kernel 'k', .*short_products.py:.* product wrong"):
        warn_of_miscomputed("k", types.SimpleNamespace(report=plan["report"]))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warn_of_miscomputed("k", types.SimpleNamespace(report=host["report"]))


def test_forward_that_triton_rejects():
    resolver = types.SimpleNamespace(function=sp.sum_kernel)
    with pytest.raises(AutodiffError, match="Triton's own passes fail for kernel 'sum_kernel'"):
        blame.blame(resolver, (), {}, RuntimeError("PassManager::run failed"))


def _forms(text):
    """The forms of a kernel that are tried one after the other, if Triton rejects each."""
    while text is not None:
        yield text
        text = other_form(text)


def test_another_form():
    other = other_form(rejected.BRANCH)
    assert "scf.if" not in other and "scf.if" not in (other_form(other) or "")
    for target in ("cuda:80", "cuda:90"):
        corpus.compile_ttir(other, corpus.parse_target(target), False)


def test_another_form_for_blackwell():
    """Triton 3.6 ends where the sum of a product is a scalar, also in a kernel of a user's."""
    text = hopper.ttir(rejected.total_kernel, ["*fp32", "*fp32"], {"N": 64}, multiples_of_16=True)
    other = other_form(text)
    assert "tt.unsplat" in other
    *_, last = _forms(other)
    assert last.count("tt.unsplat") == other.count("tt.unsplat")
    for target in ("cuda:80", "cuda:90", "cuda:100"):
        corpus.compile_ttir(other, corpus.parse_target(target), False)


@pytest.mark.parametrize("type_", rejected.TYPES)
@pytest.mark.parametrize("first", rejected.FIRST)
def test_another_form_of_what_blocks_share(first, type_):
    text = rejected.SHARED.format(first=rejected.FIRST[first], type=type_, **rejected.TYPES[type_])
    *_, last = _forms(text)
    assert text.count("math.exp") == 1 and last.count("math.exp") == 2
    for target in ("cuda:80", "cuda:90", "cuda:100"):
        corpus.compile_ttir(last, corpus.parse_target(target), False)
    if fault("shared-conversions").affects(triton.__version__):
        with pytest.raises(RuntimeError):
            corpus.compile_ttir(text, corpus.parse_target("cuda:90"), False)


def test_another_form_of_rows_that_become_tiles():
    *_, last = _forms(rejected.ROW)
    for target in ("cuda:80", "cuda:90", "cuda:100"):
        corpus.compile_ttir(last, corpus.parse_target(target), False)
    if fault("rows-as-tiles").affects(triton.__version__):
        with pytest.raises(RuntimeError):
            corpus.compile_ttir(rejected.ROW, corpus.parse_target("cuda:90"), False)


# A row of a product as a vector.
_UNIT = """
module {
  tt.func public @k(%x: !tt.ptr<f64> {tt.divisibility = 16 : i32}) {
    %i = tt.make_range {start = 0 : i32, end = 16 : i32} : tensor<16xi32>
    %xs = tt.splat %x : !tt.ptr<f64> -> tensor<16x!tt.ptr<f64>>
    %xp = tt.addptr %xs, %i : tensor<16x!tt.ptr<f64>>, tensor<16xi32>
    %v = tt.load %xp : tensor<16x!tt.ptr<f64>>
    %row = tt.expand_dims %v {axis = 0 : i32} : tensor<16xf64> -> tensor<1x16xf64>
    %square = arith.mulf %row, %row : tensor<1x16xf64>
    %y = tt.reshape %square : tensor<1x16xf64> -> tensor<16xf64>
    tt.store %xp, %y : tensor<16x!tt.ptr<f64>>
    tt.return
  }
}
"""


@pytest.mark.parametrize("device", ["cpu"], indirect=True)
def test_another_form_of_a_single_row(device):
    other = next(form for form in _forms(_UNIT) if "tt.reshape" not in form)
    for target in ("cuda:80", "cuda:90"):
        corpus.compile_ttir(other, corpus.parse_target(target), False)
    x = torch.randn(16, dtype=torch.float64)
    right = x * x
    made = Executable(Kernel("k", other, None, ()), corpus.parse_target("cpu"), {})
    made.launch((1, 1, 1), (x,))
    torch.testing.assert_close(x, right, rtol=0, atol=0)


@pytest.mark.parametrize("shape", [(64, 16, 64), (64, 16, 16)], ids=str)
@pytest.mark.parametrize("iterations", [4, 8])
def test_no_product_is_omitted(shape, iterations):
    """What ptxas drops of loops that it unrolls; in a kernel that it gets right, nothing is."""
    constants = dict(zip("MNK", shape, strict=True), COUNT=iterations)
    text = hopper.ttir(sp.exponentials_kernel, _types("bf16"), constants, True)

    def translate(options):
        tried.append(options)
        return hopper.compiled_text(text, assemble=True, **options)

    tried = []
    assert omits_products(hopper.compiled_text(text, assemble=True)), "ptxas is right by now"
    compiled = with_all_products(translate, {"num_warps": 4})
    assert not omits_products(compiled) and len(tried) == 2
    compiled.asm["cubin"] = hopper.compiled_text(text, assemble=True).asm["cubin"]
    with pytest.warns(UserWarning, match="ptxas leaves out products of kernel 'k'"):
        warn_of_omitted(compiled, "k")
    with pytest.raises(AutodiffError, match="ptxas leaves out products"):
        with_all_products(lambda options: compiled, {})


@pytest.mark.parametrize("dtype", ["bf16", "fp32"])
@pytest.mark.parametrize("shape", [(64, 16, 64), (128, 64, 64)], ids=str)
def test_what_nothing_reads_may_be_omitted(shape, dtype):
    """Of a loop whose products are not read, ptxas leaves a group that does nothing."""
    constants = dict(zip("MNK", shape, strict=True), COUNT=4)
    text = hopper.ttir(sp.unread_kernel, [*_types(dtype), "i32"], constants, True)
    for options in ({}, {"ptx_options": "-O1"}):
        compiled = hopper.compiled_text(text, assemble=True, **options)
        assert _NOTHING in compiled.asm["cubin"] and not omits_products(compiled)


def _with_unread_product(compiled):
    """Return a kernel that takes its first product once more at its end, where nothing reads it."""
    ptx = compiled.asm["ptx"]
    end = "wgmma.wait_group.sync.aligned 0;"
    group = ptx[ptx.index("wgmma.fence") : ptx.index(end) + len(end)]
    results = re.search(r"wgmma\.mma_async\S+ \{([^}]*)\}", group)[1].split(",")
    for place, register in enumerate(results):
        group = re.sub(rf"{register}\b", f"%unread{place}", group)
    lines = [line for line in group.splitlines() if not re.match(r"\s*(\$L|\.loc)", line)]
    ptx = ptx.replace("\tret;", "\n".join((*lines, "\tret;")))
    ptx = ptx.replace("\t.reg ", f"\t.reg .b32 %unread<{len(results)}>;\n\t.reg ", 1)
    asm = {"ptx": ptx, "cubin": assembled(ptx, compiled)}
    return types.SimpleNamespace(asm=asm, metadata=compiled.metadata)


@pytest.mark.parametrize("iterations", [4, 8])
def test_what_is_read_is_missed_beside_what_is_not(iterations):
    """One group that does nothing may have its reason, and another one none."""
    constants = {"M": 64, "N": 16, "K": 64, "COUNT": iterations}
    text = hopper.ttir(sp.exponentials_kernel, _types("bf16"), constants, True)
    right = hopper.compiled_text(text, assemble=True, ptx_options="-O1")
    assert _NOTHING not in right.asm["cubin"]
    right = _with_unread_product(right)
    assert _NOTHING in right.asm["cubin"] and not omits_products(right)
    wrong = _with_unread_product(hopper.compiled_text(text, assemble=True))
    assert wrong.asm["cubin"].count(_NOTHING) == 2 and omits_products(wrong)


def test_rejected_kernels_take_another_form(monkeypatch, tmp_path):
    """It is remembered: a kernel is rejected once."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    tried = []

    def compile_(path, target, options):
        tried.append(open(path, encoding="utf-8").read())
        if "scf.if" in tried[-1]:
            raise RuntimeError("PassManager::run failed")
        source = types.SimpleNamespace(module=1)
        return types.SimpleNamespace(_init_handles=int, src=source, asm={})

    monkeypatch.setattr(executable, "triton_compile", compile_)
    made = Executable(Kernel("k", rejected.BRANCH, None, ()), GPUTarget("cpu", "x86_64", 1), {})
    made.compile()
    assert len(tried) == 2
    Executable(made.kernel, made.target, {}).compile()
    assert tried[2] == tried[1]
    with pytest.raises(AutodiffError, match="Triton rejects the generated kernel 'k'"):
        monkeypatch.setattr(executable, "other_form", lambda ttir: None)
        Executable(Kernel("k", rejected.BRANCH + "\n", None, ()), made.target, {}).compile()


def test_failed_kernels_are_not_those_that_are_loaded_next(monkeypatch, tmp_path):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))

    def compile_(path, target, options):
        raise RuntimeError("Triton Error [CUDA]: an illegal memory access was encountered")

    monkeypatch.setattr(executable, "triton_compile", compile_)
    next_one = Executable(Kernel("k", rejected.BRANCH, None, ()), GPUTarget("cpu", "x86_64", 1), {})
    with pytest.raises(AutodiffError, match="launched before has failed.*CUDA_LAUNCH_BLOCKING"):
        next_one.compile()


# Requests.


def test_barriers():
    """Those that Triton respects; a kernel with barriers runs in one CTA."""
    text = _short_forward().replace("tt.return", "gpu.barrier\n tt.return")
    for version, barrier in (("3.6.0", "gpu.barrier"), ("3.10.1+git", "ttg.barrier all")):
        request = {**corpus.REQUEST, "target": "sm_90", "triton": version, "save": False}
        plan = json.loads(_native.differentiate(text, json.dumps(request), "kernel.ttir"))
        assert barrier in plan["forward"]["ttir"]
        assert plan["forward"]["options"]["num_ctas"] == 1
    kernel = Kernel("k", "", None, (), (("num_ctas", 1),))
    for chosen in ({}, {"num_ctas": 2}):
        made = Executable(kernel, None, {"num_ctas": 2, "num_warps": 4}, chosen)
        assert made.options == {"num_ctas": 1, "num_warps": 4}


@pytest.mark.parametrize("key", ["target", "triton"])
@pytest.mark.parametrize("value", ["tpu", "", 3, None, [3, 9]])
def test_bad_requests(key, value):
    request = json.dumps({**corpus.REQUEST, key: value})
    with pytest.raises(AutodiffError, match=f"bad entry '{key}'"):
        _native.differentiate(_SHORT, request, "kernel.ttir")


def test_names():
    expected = {"target": "sm_90", "triton": triton.__version__, "anyOrder": True}
    assert described(hopper.TARGET) == expected
    assert name_of(GPUTarget("hip", "gfx942", 64)) == "gfx942"
    assert name_of(GPUTarget("cpu", "x86_64", 1)) == "cpu"
