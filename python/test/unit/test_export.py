"""Exported modules: the same gradients as ours without us, or an AssertionError."""

import ast
import re
import sys
import types

import flash_attention_v2
import layer_norm
import pytest
import quickstart
import torch
import triton
import triton.language as tl
from exporting import (
    assert_other_layouts,
    assert_other_sizes,
    compare,
    exported,
    module_at,
    passes_ruff,
    run,
    tensors,
)
from kernels import cross_entropy, in_place, matmul, picking, short_products, softmax
from torch.autograd import forward_ad
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.exporting import launch as export_launch
from triton.backends.autodiff.exporting.checks import Assertions
from triton.backends.autodiff.printing.python_text import laid_out

pytestmark = pytest.mark.every_triton


def rows(dtype, device, m, n):
    return tensors((m, n), dtype=dtype, device=device)


def rows_and_weights(dtype, device, m, n):
    return tensors((m, n), (n,), (n,), dtype=dtype, device=device)


def factors(dtype, device, m, n, k):
    return tensors((m, k), (k, n), dtype=dtype, device=device)


def logits(dtype, device, m, n):
    return [*rows(dtype, device, m, n), torch.randint(0, n, (m,), device=device)]


def heads(dtype, device, b, h, n):
    return [*tensors(*[(b, h, n, 64)] * 3, dtype=dtype, device=device), True, 0.125]


def added(dtype, device, m, n):
    return tensors((m, n), (m, n), (n,), dtype=dtype, device=device)


half, single = torch.float16, torch.float32
# Operation, what makes its arguments, their dtype, sizes, the first of which is exported, and
# whether equal launches give equal bits.
FORMS = {
    "gated": (
        autodiff(quickstart.gated_layer_kernel, quickstart.gated_layer),
        (rows_and_weights, single),
        [(100, 30), (33, 31), (1, 17), (257, 20), (64, 32), (32, 19)],
        False,
    ),
    "layer norm": (
        autodiff(layer_norm.layer_norm_kernel, layer_norm.layer_norm),
        (rows_and_weights, half),
        [(70, 300), (3, 257), (129, 511), (1, 400), (66, 512), (200, 301)],
        True,
    ),
    "softmax": (
        autodiff(softmax.softmax_kernel, softmax.rowwise),
        (rows, single),
        [(7, 100), (1, 65), (40, 127), (3, 128), (9, 101), (300, 99)],
        True,
    ),
    "matmul": (
        autodiff(matmul.matmul_kernel, matmul.matmul),
        (factors, half),
        [(50, 70, 33), (64, 64, 64), (31, 100, 65), (129, 33, 47), (2, 3, 5), (96, 50, 70)],
        True,
    ),
    "attention": (
        autodiff(flash_attention_v2.attention_kernel, flash_attention_v2.attention),
        (heads, half),
        [(1, 2, 192), (2, 3, 64), (1, 1, 320), (3, 2, 128), (2, 5, 192), (1, 4, 256)],
        True,
    ),
    "cross-entropy": (
        autodiff(cross_entropy.cross_entropy_kernel, cross_entropy.cross_entropy),
        (logits, single),
        [(9, 300), (1, 129), (33, 257), (64, 1000), (2, 301), (17, 700)],
        True,
    ),
    "in place": (
        autodiff(in_place.add_rms_norm_kernel, in_place.add_rms_norm),
        (added, single),
        [(9, 100), (1, 65), (33, 127), (40, 128), (2, 99), (17, 77)],
        False,
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_other_sizes(form, device, tmp_path):
    op, (make, dtype), sizes, exact = FORMS[form]
    assert_other_sizes(op, tmp_path, (make(dtype, device, *size) for size in sizes), exact)


@pytest.mark.parametrize("form", FORMS)
def test_other_types(form, device, tmp_path):
    op, (make, dtype), (first, *_), _ = FORMS[form]
    twin = exported(op, tmp_path, *make(dtype, device, *first))
    for other in {torch.float16, torch.bfloat16, torch.float32, torch.float64} - {dtype}:
        with pytest.raises(AssertionError, match=f"was of {dtype}, it is of {other}"):
            run(twin, make(other, device, *first))


# Those that take strides.
@pytest.mark.parametrize("form", ["softmax", "matmul"])
def test_other_layouts(form, device, tmp_path):
    """Transposed, strided, at an odd place, expanded: equal, or refused."""
    op, (make, dtype), (first, *_), _ = FORMS[form]
    args = make(dtype, device, *first)
    twin = exported(op, tmp_path, *args)
    x = args[0].detach()
    wide = torch.randn(*x.shape[:-1], 2 * x.shape[-1], dtype=dtype, device=device)
    flat = torch.randn(x.numel() + 1, dtype=dtype, device=device)
    others = (
        x.transpose(-1, -2).contiguous().transpose(-1, -2),
        wide[..., ::2],
        wide[..., : x.shape[-1]],
        flat[1:].view(x.shape),
        x[..., :1].expand(x.shape),
    )
    assert_other_layouts(op, twin, others, *args[1:])


@pytest.mark.parametrize("size", [(16, 4), (64, 8), (4, 1), (64, 64)], ids=str)
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64], ids=str)
def test_short_products(dtype, size, device, tmp_path):
    """A GPU's `tl.dot` refuses sums over fewer than 16 elements, which adjoints may have."""
    m, n = size
    op = autodiff(short_products.product_kernel, short_products.product)
    pairs = (tensors((m, 32), (32, n), dtype=dtype, device=device) for _ in range(4))
    assert_other_sizes(op, tmp_path, pairs, False)


def test_maps(device, tmp_path):
    op = autodiff(picking.map_kernel, picking.map_elementwise)
    sizes = (100, 65, 128, 99, 127)
    pairs = ([torch.rand(n, device=device, requires_grad=True) for _ in "xw"] for n in sizes)
    assert_other_sizes(op, tmp_path, pairs)


def test_against_float64(device, tmp_path):
    op, (make, dtype), (first, *_), _ = FORMS["layer norm"]
    args = make(dtype, device, *first)
    theirs = run(exported(op, tmp_path, *args), args)
    truth = run(layer_norm.reference, [a.detach().double().requires_grad_() for a in args])
    for mine, exact in zip(theirs, truth, strict=True):
        assert (mine - exact).norm() / exact.norm() < 2e-3


@pytest.mark.parametrize("form", FORMS)
def test_needs_nothing_of_ours(form, device, tmp_path):
    op, (make, dtype), (first, *_), _ = FORMS[form]
    text = op.export(tmp_path / "exported.py", *make(dtype, device, *first)).read_text("utf-8")
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            imported.add(node.module)
    packages = {name.partition(".")[0] for name in imported}
    assert packages <= {"torch", "triton", *sys.stdlib_module_names}
    # Names in the module are the user's, or private.
    assert "autodiff" not in text.split('"""', 2)[2].lower()


@pytest.mark.parametrize("form", FORMS)
def test_ruff(form, device, tmp_path):
    pytest.importorskip("ruff")
    op, (make, dtype), (first, *_), _ = FORMS[form]
    path = op.export(tmp_path / "exported.py", *make(dtype, device, *first))
    passes_ruff(path)


LONG = "a_name_of_some_length"
BROKEN = {
    "empty brackets behind arguments": f"""
{LONG} = {LONG}.{LONG}(
    first_argument, other
).restored()""",
    "empty brackets among arguments": f"""
{LONG} = {LONG}(
    first_argument, second_argument, third_argument, {LONG}()
)""",
    "a loop of short terms": f"""
{LONG} = all(
    {LONG} >= first and {LONG} >= second
    for number in range({LONG})
)""",
    "a loop of long terms": f"""
{LONG} = all(
    {LONG}[number] >= 0
    and {LONG}[number + 1] >= {LONG}[number]
    for number in range({LONG})
)""",
    "terms": f"""
{LONG} = (
    {LONG} * first_factor
    + {LONG} * second_factor
    - {LONG}
)""",
}


@pytest.mark.parametrize("name", BROKEN)
def test_long_lines(name):
    """They are broken as ruff breaks them."""
    broken = BROKEN[name].removeprefix("\n")
    parts = [line.strip() for line in broken.splitlines()]
    whole = " ".join(parts)
    if parts[0].endswith("= ("):
        whole = whole.removesuffix(" )").replace("= (", "=")
    whole = whole.replace("( ", "(").replace(" )", ")")
    assert len(whole) > 100 and laid_out([whole]) == broken


@triton.jit
def scale_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n).to(tl.float32)
    w = tl.load(w_ptr)
    tl.store(y_ptr + i, w * tl.exp(x), mask=i < n)


def launched(kernel, x, w):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, w, y, x.numel(), BLOCK=32)
    return y


def twice(kernel, x, w):
    """Two launches, of which the second is of another dtype."""
    y = launched(kernel, x, w)
    return launched(kernel, (0.1 * y).half(), w.half())


def test_kernel(device, tmp_path):
    """A kernel alone is launched as it was."""
    kernel = differentiable(scale_kernel)
    x, w = tensors((100,), (1,), device=device)
    y = torch.empty_like(x)
    kernel[(4,)](x, w, y, 100, BLOCK=32)
    module = module_at(kernel.export(tmp_path / "scale.py"))
    path = kernel.export(tmp_path / "again.py", x, w, torch.empty_like(x), 100, BLOCK=32, grid=(4,))
    assert path.read_text() == (tmp_path / "scale.py").read_text()
    for n in (100, 1, 33, 77):
        x, w = tensors((n,), (1,), device=device)
        results = []
        for function in (kernel, module.scale_kernel):
            y = torch.empty_like(x)
            function[(triton.cdiv(n, 32),)](x, w, y, n, BLOCK=32)
            results.append([y, *torch.autograd.grad(y.square().sum(), (x, w))])
        for mine, theirs in zip(*results, strict=True):
            torch.testing.assert_close(theirs, mine)
    with pytest.raises(AssertionError, match="BLOCK was 32, it is 64"):
        module.scale_kernel[(2,)](x, w, y, n, BLOCK=64)


@triton.jit
def normalized_kernel(x_ptr, y_ptr, norm_ptr, n, BLOCK: tl.constexpr):
    """A vector by its length, and the length, which mostly nobody differentiates."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n, 0.0)
    norm = tl.sqrt(tl.sum(x * x))
    tl.store(y_ptr + i, x / norm, i < n)
    tl.store(norm_ptr, norm)


def normalized(kernel, x):
    y, norm = torch.empty_like(x), x.new_empty(1)
    kernel[(1,)](x, y, norm, x.numel(), BLOCK=128)
    return y, norm


def test_outputs_with_gradients(device, tmp_path):
    """A module is for all outputs until gradients have come of some; then it refuses others."""

    def gradient(function, outputs):
        x = torch.randn(100, generator=torch.manual_seed(3)).to(device).requires_grad_()
        results = function(x)
        return torch.autograd.grad([(results[n] ** 3).sum() for n in outputs], x)[0]

    op = autodiff(normalized_kernel, normalized)
    of_all = exported(op, tmp_path, *tensors((100,), device=device))
    mine = gradient(op, (0,))
    of_one = exported(op, tmp_path, *tensors((100,), device=device))
    assert torch.equal(gradient(of_one, (0,)), mine)
    with pytest.raises(AssertionError, match="a gradient of norm_ptr came"):
        gradient(of_one, (0, 1))
    gradient(op, (1,))
    for module in (of_all, exported(op, tmp_path, *tensors((100,), device=device))):
        for outputs in ((0,), (1,), (0, 1)):
            torch.testing.assert_close(gradient(module, outputs), gradient(op, outputs))


@triton.jit
def far_apart_kernel(x_ptr, y_ptr, a, b, c, d, e, f, z_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * (a + b + c))
    tl.store(z_ptr + i, x * (d + e + f))


def test_the_head_names_outputs_in_their_order(device, tmp_path):
    """Those whose gradients come, by place among the arguments, of which the last is the ninth."""
    kernel = differentiable(far_apart_kernel)
    (x,) = tensors((64,), device=device)
    y, z = torch.empty_like(x), torch.empty_like(x)
    text = kernel.export(
        tmp_path / "far.py", x, y, *range(2, 8), z, BLOCK=64, grid=(1,)
    ).read_text()
    assert "- gradients of `x_ptr`, from those of `y_ptr`, `z_ptr`\n" in text


@pytest.mark.parametrize("form", ["layer norm", "matmul"])
def test_text_that_is_not_needed(form, device, tmp_path):
    """Grids end with the last axis that has programs; only integers of the user's may be a 1."""
    op, (make, dtype), (first, *_), _ = FORMS[form]
    op(*make(dtype, device, *first))
    text = op.export(tmp_path / "short.py").read_text()
    grids = re.findall(r"(?:blocks\w* = |_bwd\w*\[)(\(.*\))", text)
    assert grids and not [grid for grid in grids if grid.endswith(", 1)")]
    assert not re.search(r"\bsize\w* = tl\.cast", text)


def test_several_launches(device, tmp_path):
    op = autodiff(scale_kernel, twice)
    args = tensors((100,), (1,), device=device)
    twin = exported(op, tmp_path, *args)
    for n in (100, 33, 5):
        assert compare(op, twin, tensors((n,), (1,), device=device), exact=False)


def test_without_gradients(device, tmp_path):
    """Nothing is kept where no gradient is wanted; others than those exported are refused."""
    op = autodiff(scale_kernel, launched)
    x, w = tensors((100,), (1,), device=device)
    twin = exported(op, tmp_path, x, w.detach())
    with torch.no_grad():
        y = twin(x, w)
    assert not y.requires_grad
    torch.testing.assert_close(y, (w * x.exp()).detach())
    with pytest.raises(AssertionError, match="w_ptr did not require a gradient"):
        twin(x, w)


def test_shared_memory(device, tmp_path):
    """A tensor that is both read and written was not what was exported."""
    kernel = differentiable(scale_kernel)
    x, w = tensors((64,), (1,), device=device)
    path = tmp_path / "scale.py"
    kernel.export(path, x, w, torch.empty_like(x), 64, BLOCK=32, grid=(2,))
    with torch.no_grad(), pytest.raises(AssertionError, match="x_ptr and y_ptr share memory"):
        module_at(path).scale_kernel[(2,)](x, w, x, 64, BLOCK=32)


ONCE = "gradient of kernel 'cubes_kernel' cannot be differentiated again: this module has first"


@triton.jit
def cubes_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, tl.load(w_ptr) * x * x * x, mask=i < n)


def cubes(kernel, x, w):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.numel(), 32),)](x, w, y, x.numel(), BLOCK=32)
    return y


@pytest.fixture
def exported_cubes(device, tmp_path):
    """An exported operation, and its arguments."""
    args = tensors((100,), (1,), device=device)
    return exported(autodiff(cubes_kernel, cubes), tmp_path, *args), *args


def test_the_second_derivative(exported_cubes):
    """A gradient that comes of a constant depends on what the kernel read, all the same."""
    op, x, w = exported_cubes
    for loss in (torch.sum, lambda y: y.square().sum()):
        for inputs in ((x, w), (x,), (w,)):
            grads = torch.autograd.grad(loss(op(x, w)), inputs, create_graph=True)
            for grad in grads:
                for by in (x, w):
                    # Without the error, another path to `by` would hide what is missing.
                    with pytest.raises(RuntimeError, match=ONCE):
                        torch.autograd.grad((grad.sum() * by).sum(), by)
    with pytest.raises(RuntimeError, match=ONCE):
        torch.autograd.functional.hessian(lambda x: op(x, w).sum(), x)


def test_gradients_with_a_graph_are_the_same(exported_cubes):
    op, x, w = exported_cubes
    for create_graph in (False, True):
        upstream = torch.randn_like(x)
        y = op(x.sin(), w)
        dx, dw = torch.autograd.grad(y, (x, w), upstream, create_graph=create_graph)
        truth = upstream * 3 * w * x.sin() ** 2 * x.cos()
        torch.testing.assert_close(dx.detach(), truth.detach())
        torch.testing.assert_close(dw.detach(), (upstream * x.sin() ** 3).sum().detach()[None])
        # PyTorch's part of the chain is differentiated if our gradient is a constant there.
        assert dx.requires_grad == create_graph


def test_tangents_are_refused(exported_cubes):
    op, x, w = exported_cubes
    y, ones = op(x, w), torch.ones_like(x)
    with forward_ad.dual_level():
        op(x, w)
        for given in (x, x.detach()):
            with pytest.raises(AssertionError, match="x_ptr has a tangent: this module has first"):
                op(forward_ad.make_dual(given, ones), w)
        with torch.no_grad(), pytest.raises(AssertionError, match="w_ptr has a tangent"):
            op(x, forward_ad.make_dual(w, torch.ones_like(w)))
        with pytest.raises(AssertionError, match="gradient of kernel 'cubes_kernel' has a tangent"):
            torch.autograd.grad(y, x, forward_ad.make_dual(ones, ones))


@pytest.mark.parametrize("transform", ["grad", "vjp", "jvp", "jacrev", "jacfwd", "hessian", "vmap"])
def test_transforms_are_refused(exported_cubes, transform):
    op, x, w = exported_cubes
    x, w = x.detach(), w.detach()
    calls = {
        "grad": lambda: torch.func.grad(lambda x: op(x, w).sum())(x),
        "vjp": lambda: torch.func.vjp(lambda x: op(x, w), x),
        "jvp": lambda: torch.func.jvp(lambda x: op(x, w), (x,), (x,)),
        "vmap": lambda: torch.func.vmap(lambda x: op(x, w))(x.expand(3, -1)),
    }
    calls |= {
        name: lambda: getattr(torch.func, transform)(lambda x: op(x, w))(x)
        for name in ("jacrev", "jacfwd", "hessian")
    }
    with pytest.raises(AssertionError, match="x_ptr is wrapped by a transform of torch.func"):
        calls[transform]()


def test_batches_of_gradients_are_refused(exported_cubes):
    op, x, w = exported_cubes
    upstream = torch.eye(100, device=x.device)
    with pytest.raises(
        AssertionError, match="upstream gradient of kernel 'cubes_kernel' is wrapped"
    ):
        torch.autograd.grad(op(x, w), x, upstream, is_grads_batched=True)


def lambda_stub():
    return autodiff(scale_kernel, lambda kernel, x, w: launched(kernel, x, w))


def uses_an_operation(kernel, x, w):
    return FORMS["softmax"][0](launched(kernel, x, w)[None])


@pytest.mark.parametrize(
    "op, words",
    [
        (lambda_stub, "write it with def"),
        (lambda: autodiff(scale_kernel, uses_an_operation), "FORMS"),
    ],
)
def test_stubs_that_cannot_be_written(op, words, device, tmp_path):
    with pytest.raises(AutodiffError, match=words):
        op().export(tmp_path / "exported.py", *tensors((8,), (1,), device=device))
    assert not list(tmp_path.iterdir())


@triton.jit
def skipping_kernel(x, y, start, N: tl.constexpr):
    for _ in range(start, 1, 3):
        tl.store(y + tl.arange(0, N), tl.load(x + tl.arange(0, N)))


def test_launches_that_write_to_nothing(device, tmp_path):
    """Without iterations, for a constant of the launch, no store is left."""

    def stub(kernel, x, y, start):
        y = y.clone()
        kernel[(1,)](x, y, start, N=8)
        return y

    args = tensors((8,), (8,), device=device)
    op = autodiff(skipping_kernel, stub)
    op.export(tmp_path / "exported.py", *args, 0)
    with pytest.raises(AutodiffError, match="it writes to no tensor of floats"):
        op.export(tmp_path / "exported.py", *args, 1)


def test_where_it_cannot_be_written(device, tmp_path):
    op = autodiff(scale_kernel, launched)
    args = tensors((100,), (1,), device=device)
    with pytest.raises(AutodiffError, match="name is that of a module"):
        op.export(tmp_path / "no module.txt", *args)
    with pytest.raises(AutodiffError, match="cannot export to .*No such file"):
        op.export(tmp_path / "nowhere" / "exported.py", *args)
    (tmp_path / "taken.py").mkdir()
    with pytest.raises(AutodiffError, match="cannot export to .*directory"):
        op.export(tmp_path / "taken.py", *args)
    assert [path.name for path in tmp_path.iterdir()] == ["taken.py"]


def test_nothing_to_export(device, tmp_path):
    op = autodiff(scale_kernel, launched)
    x, w = tensors((100,), (1,), device=device)
    with pytest.raises(AutodiffError, match="no gradient was wanted"):
        op.export(tmp_path / "exported.py", x.detach(), w.detach())
    with pytest.raises(AutodiffError, match="has not been launched"):
        differentiable(scale_kernel).export(tmp_path / "exported.py")
    assert not list(tmp_path.iterdir())


@triton.autotune([triton.Config({"BLOCK": 64}), triton.Config({"BLOCK": 128})], key=["n"])
@triton.heuristics({"EVEN": lambda args: args["n"] % 64 == 0})
@triton.jit
def cube_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr, EVEN: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i) if EVEN else tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * x * x, mask=i < n)


def cube(kernel, x):
    y = torch.empty_like(x)
    kernel[lambda meta: (triton.cdiv(x.numel(), meta["BLOCK"]),)](x, y, x.numel())
    return y


@triton.jit
def square_kernel(x_ptr, grid, ctx: tl.int64, BLOCK: tl.constexpr):
    """Of names that a module would give; in place."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < ctx)
    if grid:
        x = 2.0 * x
    tl.store(x_ptr + i, x * x + 1, mask=i < ctx)


def square(kernel, x, doubled=True):
    y = x * 1.0
    kernel[(triton.cdiv(x.numel(), 32),)](y, doubled, x.numel(), BLOCK=32)
    return y


def square_behind(kernel, x, doubled=True):
    """Of the second half of a tensor, which is a view."""
    y = torch.cat([x, x]) * 1.0
    kernel[(triton.cdiv(x.numel(), 32),)](y[x.numel() :], doubled, x.numel(), BLOCK=32)
    return y


@pytest.mark.parametrize(
    "op",
    [autodiff(cube_kernel, cube)] + [autodiff(square_kernel, s) for s in (square, square_behind)],
)
def test_other_kernels(op, device, tmp_path):
    """Constants of wrappers, numbers of one and of 64 bits, views, names that modules use."""
    twin = exported(op, tmp_path, *tensors((100,), device=device))
    taken = [compare(op, twin, tensors((n,), device=device)) for n in (100, 36, 4, 1)]
    assert sum(taken) >= 3, taken
    if op.stub is not cube:
        assert compare(op, twin, [*tensors((100,), device=device), False])


@triton.jit
def apart_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """Two stores that no check of addresses covers together."""
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, i < n)
    tl.store(y_ptr + i, x, i < n)
    tl.store(y_ptr + 2 * n + 3 * i, x * x, i < n)


def apart(kernel, x):
    n = x.numel()
    y = x.new_zeros(5 * n)
    kernel[(triton.cdiv(n, 64),)](x, y, n, BLOCK=64)
    return y


def test_stores_without_a_check(device, tmp_path):
    """A module is for the sizes that were seen."""
    op = autodiff(apart_kernel, apart)
    first, other = ([torch.randn(n, device=device, requires_grad=True)] for n in (100, 200))
    twin = exported(op, tmp_path, *first)
    assert compare(op, twin, first)
    with pytest.raises(AssertionError, match=r"the grid was \(2, 1, 1\), it is \(4, 1, 1\)"):
        run(twin, other)


def test_one_variant(device, tmp_path, monkeypatch):
    """A module with one variant of a kernel says so where that is not for a launch."""
    op, (make, dtype), (first, *_), _ = FORMS["matmul"]
    monkeypatch.setattr(export_launch, "_fits", lambda executable: executable.kernel.when != 1)
    twin = exported(op, tmp_path, *make(dtype, device, *first))
    # Wide tiles take several rows of programs: here is one.
    with pytest.raises(AssertionError, match="this variant of the kernels is for other sizes"):
        run(twin, make(dtype, device, 31, 100, 65))
    text = (tmp_path / "exported.py").read_text()
    assert text.count("this variant of the kernels") == 2, "each kernel has one"


@pytest.mark.parametrize("held, is_written", [(range(64), True), (range(65), False), (None, False)])
def test_pinned_integers(held, is_written):
    """Few integers in memory are written out; many, or unknown ones, are refused."""
    contents = None
    if held is not None:
        contents = types.SimpleNamespace(at=lambda places: torch.tensor(list(held))[list(places)])
    tensor = types.SimpleNamespace(
        own=types.SimpleNamespace(total=len(held or ())), shape=(1,), strides=(1,)
    )
    facts = types.SimpleNamespace(scalars=[contents], tensors=[tensor], grid=(1, 1, 1))
    of = types.SimpleNamespace(
        kernel_name="kernel",
        spec=types.SimpleNamespace(names=["index"]),
        layouts=["index_like"],
        variables=["index"],
        held="held({})".format,
        call=lambda function: f"_{function}",
        names=types.SimpleNamespace(give=None),
        facts=facts,
        programs="programs",
        knows_storage=True,
    )
    written = Assertions(of, None, "programs")
    if is_written:
        written.pin({0}, 0)
        assert f"held(0), {tuple(held)}" in " ".join("".join(written.lines).split())
    else:
        with pytest.raises(AutodiffError, match="it depends on what 'index' holds"):
            written.pin({0}, 0)


@triton.jit
def last_two_kernel(x_ptr, y_ptr, n, SIZE: tl.constexpr):
    """y = x[n - 2] + x[n - 1], rows of SIZE, as variables that follow one another in a loop."""
    i = tl.arange(0, SIZE)
    before = tl.zeros([SIZE], tl.float32)
    last = tl.zeros([SIZE], tl.float32)
    for k in range(n):
        before = last
        last = tl.load(x_ptr + k * SIZE + i)
    tl.store(y_ptr + i, before + last)


def last_two(kernel, x):
    y = torch.empty_like(x[0])
    kernel[(1,)](x, y, len(x), SIZE=x.shape[1])
    return y


def test_variables_that_begin_alike(device, tmp_path):
    """Both have the gradient of the sum first; Triton's frontend would take them for one."""
    op = autodiff(last_two_kernel, last_two)
    for rows in (1, 2, 5):
        (x,) = tensors((rows, 16), device=device)
        twin = exported(op, tmp_path, x)
        assert compare(op, twin, (x,))
        (found,) = torch.autograd.grad(twin(x).sum(), x)
        expected = torch.zeros_like(found)
        expected[-2:] = 1
        torch.testing.assert_close(found, expected)
