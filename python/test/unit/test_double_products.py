"""Products in float64: ptxas computes some wrongly (lost_sums.py), it leaves out others
(uniform_operands.py), and Triton rejects some.

What ptxas and Triton make of kernels is looked at without a GPU.
"""

import contextlib
import types

import hopper
import pytest
import torch
import triton
from exporting import exported
from gradients import assert_gradients_close, differentiated, random_tensor
from kernels import double_products as dp
from kernels import double_ptx
from triton.backends.autodiff import AutodiffError
from triton.backends.autodiff.compiling import executable
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.exporting import launcher as export_launcher
from triton.backends.autodiff.exporting.exported import require_triton
from triton.backends.autodiff.faults import (
    double_products,
    lost_sums,
    miscompiled,
    uniform_operands,
)
from triton.backends.autodiff.faults.table import fault, numbers
from triton.backends.autodiff.faults.unexamined import doubts
from triton.backends.autodiff.graphs import kernels as graph_kernels
from triton.backends.autodiff.graphs import operator as graph_operator
from triton.backends.autodiff.inspecting import corpus
from triton.backends.autodiff.plans.plan import Kernel
from triton.backends.compiler import GPUTarget
from triton.runtime.errors import PTXASError

pytestmark = pytest.mark.every_triton

DOUBLE = "*fp64"
TARGETS = ["cuda:80", "cuda:90", "cuda:100", "cuda:120"]
TAKES_16X8X16 = numbers(triton.__version__) < numbers(fault("lost-sums").avoided)
NARROW = {torch.float16: "*fp16", torch.int8: "*i8", torch.bool: "*i1", torch.float32: "*fp32"}


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path / "cache"))


def _square(device, *shape):
    return random_tensor(*shape, device=device, dtype=torch.float64)


@pytest.mark.parametrize("size", [16, 32, 64])
def test_stored_by_values(device, size):
    x, w = (_square(device, size, size) for _ in range(2))
    assert_gradients_close(differentiated(dp.stored_kernel, dp.stored), dp.stored_truth, (x, w))


@pytest.mark.parametrize("batch", [(), (2,)], ids=["", "batched"])
@pytest.mark.parametrize("dtype", NARROW, ids=str)
def test_narrow_elements(device, dtype, batch):
    x, w = (_square(device, *batch, 16, 16) for _ in range(2))
    kept = (torch.randn(*batch, 16, 16, device=device) * 2).to(dtype)
    assert_gradients_close(
        differentiated(dp.narrow_kernel, dp.narrow), dp.narrow_truth, (x, kept, w)
    )


@pytest.mark.parametrize("dtype", [*NARROW, torch.float64], ids=str)
def test_joined_tiles(device, dtype):
    x, w = (_square(device, 16, 16) for _ in range(2))
    kept = (torch.randn(16, 16, device=device) * 2).to(dtype)
    assert_gradients_close(
        differentiated(dp.joined_kernel, dp.joined), dp.joined_truth, (x, kept, w)
    )


@pytest.mark.parametrize("shape", [(16, 16), (38, 9), (7, 16)], ids=str)
def test_added_to_another(device, shape):
    x, c = _square(device, *shape), _square(device, 1)
    assert_gradients_close(differentiated(dp.added_kernel, dp.added), dp.added_truth, (x, c))


def _texts():
    yield "stored", hopper.ttir(dp.stored_kernel, [DOUBLE] * 3, {"N": 16}, True)
    added = hopper.ttir(dp.added_kernel, [DOUBLE] * 3 + ["i32"] * 2, {"N": 16}, True)
    yield "added", added
    for dtype, type_ in NARROW.items():
        given = [DOUBLE, type_, DOUBLE, DOUBLE]
        yield f"joined {dtype}", hopper.ttir(dp.joined_kernel, given, {"N": 16}, True)
        for batch in (1, 2):
            constants = {"B": batch, "N": 16}
            yield f"{dtype} {batch}", hopper.ttir(dp.narrow_kernel, given, constants, True)


@pytest.mark.parametrize("target", TARGETS)
def test_triton_compiles(target):
    """Before Triton 3.9, what is computed from 16 bits or fewer, or from 32 and joined, is no
    operand of a product.
    """
    target = corpus.parse_target(target)
    for name, text in _texts():
        plan = hopper.plan_of(text, target)
        for kernel in [*filter(None, [plan["forward"]]), *plan["backward"]]:
            assert corpus.compile_ttir(kernel["ttir"], target)["cubin"], name


@pytest.fixture
def assemble():
    """Return a function that makes a kernel of PTX."""
    return hopper.assembled_ptx


@pytest.fixture
def compiled(assemble):
    """Return a kernel of products whose summand is chosen by a number, as it should not be."""
    return lambda chosen=True: assemble(double_ptx.added(chosen))


def test_lost_sums_are_found_and_mended(compiled, monkeypatch):
    wrong = compiled()
    assert lost_sums.has_lost_sums(wrong), "ptxas is right by now"
    with pytest.warns(UserWarning, match="float64 products of kernel 'k' wrongly"):
        lost_sums.warn_of_lost_sums(wrong, "k")
    right = lost_sums.ensure_sums(wrong)
    assert not lost_sums.has_lost_sums(right)
    assert right.kernel == right.asm["cubin"] and uniform_operands.products(right.kernel) == 2
    assert lost_sums.ensure_sums(right) is right
    # It is there the next time.
    monkeypatch.setattr(lost_sums, "assembled", None)
    assert lost_sums.ensure_sums(compiled()).kernel == right.kernel


def test_what_cannot_be_mended_is_refused(compiled, monkeypatch):
    wrong = compiled()
    monkeypatch.setattr(lost_sums, "assembled", lambda ptx, kernel: wrong.kernel)
    with pytest.raises(AutodiffError, match="wrongly.*TRITON_PTXAS_PATH"):
        lost_sums.ensure_sums(compiled())


def test_sums_that_are_right_stay(compiled, recwarn):
    right = compiled(chosen=False)
    code = right.kernel
    assert uniform_operands.products(code) == 2 and lost_sums.ensure_sums(right).kernel is code
    lost_sums.warn_of_lost_sums(right, "k")
    assert not [w for w in recwarn if "float64 products" in str(w.message)]


@pytest.mark.skipif(not TAKES_16X8X16, reason="Triton takes smaller products")
@pytest.mark.parametrize(
    "kernel", [dp.chosen_kernel, dp.started_again_kernel], ids=lambda k: k.__name__
)
def test_own_kernels_are_warned_of(kernel):
    text = hopper.ttir(kernel, [DOUBLE] * 3 + ["i32"], {}, True)
    wrong = hopper.compiled_text(text, assemble=True, num_warps=4)
    with pytest.warns(UserWarning, match="float64 products of kernel 'k' wrongly"):
        lost_sums.warn_of_lost_sums(wrong, "k")


@pytest.mark.skipif(not TAKES_16X8X16, reason="Triton takes smaller products")
def test_an_adjoint_is_mended():
    """Of two products that are added, the first counts only where some row and column does."""
    text = hopper.ttir(dp.added_kernel, [DOUBLE] * 3 + ["i32"] * 2, {"N": 16}, True)
    (kernel,) = hopper.plan_of(text)["backward"]
    wrong = hopper.compiled_text(kernel["ttir"], assemble=True, num_warps=4)
    assert lost_sums.has_lost_sums(wrong)
    assert not lost_sums.has_lost_sums(lost_sums.ensure_sums(wrong))


def _as_on(monkeypatch, capability):
    """Export for a GPU that is not there."""
    monkeypatch.setattr(export_launcher, "_capability", lambda device: capability)


@pytest.mark.parametrize("capability", [None, (8, 0), (9, 0)], ids=str)
def test_modules_know_which_tritons_are_right(capability, tmp_path, monkeypatch, device):
    if device != "cpu" and capability != (9, 0):
        pytest.skip("the GPU is what it is")
    if device != "cpu" and miscompiled.AFFECTED:
        pytest.skip("what is mended after this Triton is not exported")
    _as_on(monkeypatch, capability)
    x, w = (_square(device, 16, 16).requires_grad_() for _ in range(2))
    op = differentiated(dp.stored_kernel, dp.stored)
    twin = exported(op, tmp_path, x, w)
    asserted = "products in float64" in (tmp_path / "exported.py").read_text()
    assert asserted == (capability == (9, 0))
    if asserted:
        monkeypatch.setattr(triton, "__version__", "3.5.1")
        words = r"'stored_kernel' has products in float64, .*3\.5\.1 may .*Use Triton 3\.8 or newer"
        with pytest.raises(AssertionError, match=words):
            twin(x, w)


@pytest.mark.parametrize(
    ("here", "made", "right"),
    [
        ("3.6.0", (3, 6), True),
        ("3.7.1", (3, 6), False),
        ("3.7.0+git1", (3, 9), False),
        ("3.8.0", (3, 9), True),
        ("3.10.0", (3, 6), True),
        ("4.0.0", (3, 9), True),
    ],
)
def test_tritons_of_modules(here, made, right, monkeypatch):
    """Right are the one that was looked at, and new ones."""
    monkeypatch.setattr(triton, "__version__", here)
    require_triton.cache_clear()
    with contextlib.nullcontext() if right else pytest.raises(AssertionError, match="export it"):
        require_triton("k", "products in float64", made, (3, 8))


def test_doubts():
    """Of each fault that this package mends behind Triton, where it may be."""
    double = hopper.ttir(dp.chosen_kernel, [DOUBLE] * 3 + ["i32"], {}, True)
    single = double.replace("f64", "f32")
    turned = '%t = tt.trans %x\n %s = "tt.reduce"(%t)'
    assert doubts([single, double], (9, 0)) == {"products in float64": (3, 8)}
    assert not doubts([double], (8, 0)) and not doubts([single], (9, 0))
    assert list(doubts([turned], (8, 0))) == ["reductions of tiles that are reshaped or transposed"]


def test_graphs_leave_doubtful_products_to_launches(device, monkeypatch):
    """PyTorch compiles kernels of its graphs again, and looks at no machine code."""
    found, plain = [], graph_operator.LaunchOperator.inlined

    def inlined(self, wanted, *args):
        result = plain(self, wanted, *args)
        found.extend([result is not None] if wanted else [])
        return result

    monkeypatch.setattr(graph_operator.LaunchOperator, "inlined", inlined)
    ptx = double_ptx.added(True)
    of_hopper = types.SimpleNamespace(asm={"ptx": ptx})
    assert double_products.has_products(of_hopper)
    monkeypatch.setattr(graph_kernels, "has_products", lambda kernel: True)
    op = differentiated(dp.stored_kernel, dp.stored)
    graph = torch.compile(lambda *args: op(*args), backend="aot_eager", fullgraph=True)
    x, w = (_square(device, 16, 16) for _ in range(2))
    assert_gradients_close(graph, dp.stored_truth, (x, w))
    assert found and not any(found)


def test_what_is_mended_is_not_exported(device, tmp_path, monkeypatch):
    """No derived kernel, the forward included, nor one that is right with other options only."""
    x, w = (_square(device, 16, 16).requires_grad_() for _ in range(2))
    mended = property(lambda self: self.kernel.grid is None, lambda self, value: None)
    monkeypatch.setattr(Executable, "is_mended", mended, raising=False)
    op = differentiated(dp.stored_kernel, dp.stored)
    with pytest.raises(AutodiffError, match="compiles 'stored_kernel_fwd' wrongly"):
        op.export(tmp_path / "exported.py", x, w)


def test_other_options_are_remembered(monkeypatch):
    """What is right with other options only is mended, too."""
    made = Executable(Kernel("k", "", None, ()), GPUTarget("cpu", "x86_64", 1), {})
    monkeypatch.setattr(executable, "triton_compile", lambda path, target, options: options)

    def other(translate, options):
        translate(options)
        return translate({**options, "ptx_options": "-O1"})

    monkeypatch.setattr(
        executable, "with_all_products", lambda translate, options: translate(options)
    )
    made._translate("k.ttir")
    assert not made.is_mended
    monkeypatch.setattr(executable, "with_all_products", other)
    made._translate("k.ttir")
    assert made.is_mended


@pytest.mark.parametrize("n", [-1, 0, 1, 5])
@pytest.mark.parametrize(
    "kernel", [dp.chosen_kernel, dp.started_again_kernel], ids=lambda k: k.__name__
)
def test_mended_code_is_right(cuda, kernel, n):
    """What is assembled anew, on a GPU."""
    x, w = (torch.randn(5, 16, 16, device=cuda, dtype=torch.float64) for _ in range(2))
    y = torch.zeros(16, 16, device=cuda, dtype=torch.float64)
    compiled = lost_sums.ensure_sums(kernel.warmup(x, w, y, n, grid=(1,)))
    compiled[(1, 1, 1)](x, w, y, n)
    if kernel is dp.chosen_kernel:
        truth = x[0] @ w[0] + (w[0] @ x[0] if n > 0 else 0.0)
    else:
        last = range(max(n - 1, 0) // 3 * 3, n)
        truth = sum((x[i] @ w[i] for i in last), torch.zeros_like(y))
    torch.testing.assert_close(y, truth, rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(not TAKES_16X8X16, reason="Triton takes smaller products")
@pytest.mark.parametrize("product", double_ptx.LEFT_OUT.values(), ids=double_ptx.LEFT_OUT)
def test_products_that_are_left_out(assemble, product, monkeypatch):
    """The same in all threads: a factor, or what is added."""
    count = product.count("mma")
    try:
        wrong = assemble(double_ptx.UNIFORM.format(product=product))
    except PTXASError as error:
        assert "Internal compiler error" in str(error)
        pytest.skip("ptxas does not compile such products")
    assert uniform_operands.products(wrong.kernel) == 0, "ptxas is right by now"
    with pytest.warns(UserWarning, match="leaves out float64 products of kernel 'k'"):
        uniform_operands.warn_of_uniform_operands(wrong, "k")
    right = uniform_operands.ensure_operands(wrong)
    assert uniform_operands.products(right.kernel) == count
    assert right.asm["cubin"] is right.kernel
    assert uniform_operands.ensure_operands(right) is right
    assert not lost_sums.has_lost_sums(right)
    # It is there the next time.
    monkeypatch.setattr(uniform_operands, "assembled", None)
    again = uniform_operands.ensure_operands(assemble(double_ptx.UNIFORM.format(product=product)))
    assert again.kernel == right.kernel


OWN = {
    "from shared memory": "ld.shared.b64 %z, [%r5]; " + double_ptx.product(b="%z, %z, %z, %z"),
    "a sum": "ld.shared.b64 %z, [%r5]; add.f64 %z, %z, %x; "
    + double_ptx.product(b="%z, %z, %z, %z"),
    "zeros": "mov.b64 %z, 0; " + double_ptx.product(c="%z, %z, %z, %z"),
}
# In another function, a register of the same name is another one.
_OTHER_FUNCTION = """
.func f(.param .u64 p)
{
.reg .b64 %a<8>, %b<4>, %z;
ld.param.b64 %a0, [p];
ld.param.b64 %b0, [p];
ld.param.b64 %z, [p];
ret;
}
"""


@pytest.mark.parametrize("product", OWN.values(), ids=OWN)
def test_products_that_are_right_stay(assemble, product, recwarn):
    loads = "mov.u32 %r5, %tid.x; " + "".join(
        f"ld.shared.b64 %{x}{i}, [%r5+{8 * i}]; " for x in "ab" for i in range(4)
    )
    kernel = assemble(double_ptx.UNIFORM.format(product=loads + product))
    code = kernel.kernel
    assert uniform_operands.products(code) == 1
    assert uniform_operands.ensure_operands(kernel).kernel is code
    uniform_operands.warn_of_uniform_operands(kernel, "k")
    assert not [w for w in recwarn if "float64 products" in str(w.message)]
    several = assemble(kernel.asm["ptx"] + _OTHER_FUNCTION)
    code = several.kernel
    assert uniform_operands.ensure_operands(several).kernel is code
