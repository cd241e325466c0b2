"""Operations that PyTorch's counter counts in registered operators."""

import flash_attention_v2
import pytest
import torch
import torch.utils._triton
import triton
import triton.language as tl
from torch.autograd import forward_ad
from torch.utils.flop_counter import FlopCounterMode
from triton_autodiff import AutodiffError, autodiff, differentiable
from triton_autodiff.launching.higher import WithoutPlan
from triton_autodiff.launching.pure import PureLaunch

Tensor = torch.Tensor


@triton.jit
def matmul_kernel(a, b, c, M, N, K, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    i = tl.program_id(0) * BLOCK + k
    j = tl.program_id(1) * BLOCK + k
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        x = tl.load(a + i[:, None] * K + (start + k)[None, :])
        y = tl.load(b + (start + k)[:, None] * N + j[None, :])
        sums += tl.dot(x, y)
    tl.store(c + i[:, None] * N + j[None, :], sums)


@triton.jit
def causal_kernel(a, b, c, N, BLOCK: tl.constexpr):
    # Row block n is a sum over the blocks up to it.
    k = tl.arange(0, BLOCK)
    row = tl.program_id(0)
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for block in range(0, row + 1):
        x = tl.load(a + (row * BLOCK + k)[:, None] * N + (block * BLOCK + k)[None, :])
        y = tl.load(b + (block * BLOCK + k)[:, None] * BLOCK + k[None, :])
        sums += tl.dot(x, y)
    tl.store(c + (row * BLOCK + k)[:, None] * BLOCK + k[None, :], sums)


@triton.jit
def as_often_as_memory_says_kernel(a, count, c, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    place = k[:, None] * BLOCK + k[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tl.load(count)):
        x = tl.load(a + place)
        sums += tl.dot(x, x)
    tl.store(c + place, sums)


@triton.jit
def at_most_kernel(a, count, c, most, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    place = k[:, None] * BLOCK + k[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tl.cdiv(tl.minimum(tl.load(count), most), 2)):
        x = tl.load(a + place)
        sums += tl.dot(x, x)
    tl.store(c + place, sums)


@triton.jit
def in_groups_kernel(a, c, groups, BLOCK: tl.constexpr):
    # Without groups, nothing is computed, nor divided by their number.
    k = tl.arange(0, BLOCK)
    if groups > 0:
        place = (tl.program_id(0) % groups * BLOCK + k)[:, None] * BLOCK + k[None, :]
        x = tl.load(a + place)
        tl.store(c + place, tl.dot(x, x))


def matmul(kernel, a: Tensor, b: Tensor) -> Tensor:
    (m, k), n = a.shape, b.shape[1]
    c = torch.empty(m, n, device=a.device)
    kernel[(m // 32, n // 32)](a, b, c, m, n, k, BLOCK=32)
    return c


def causal(kernel, a: Tensor, b: Tensor) -> Tensor:
    c = torch.empty_like(b)
    kernel[(a.shape[0] // 32,)](a, b, c, a.shape[0], BLOCK=32)
    return c


def as_often(kernel, a: Tensor, count: Tensor) -> Tensor:
    c = torch.empty_like(a)
    kernel[(1,)](a, count, c, BLOCK=32)
    return c


def counted(function, *inputs):
    """The operations of a function, and of its gradients."""
    with FlopCounterMode(display=False) as forward:
        y = function(*inputs)
    with FlopCounterMode(display=False) as backward:
        y.sum().backward()
    return forward.get_total_flops(), backward.get_total_flops()


@pytest.mark.parametrize("wanted", [(True, True), (True, False), (False, True)])
def test_products_are_those_of_pytorch(device, wanted, operator_name):
    op = autodiff(matmul_kernel, matmul).register(operator_name("matmul"))
    shapes = (64, 96), (96, 128)
    inputs = [
        torch.randn(s, device=device, requires_grad=w) for s, w in zip(shapes, wanted, strict=True)
    ]
    forward, backward = counted(torch.mm, *inputs)
    assert counted(op, *inputs) == (forward, backward)


def test_loops_of_which_each_program_has_its_own_length(device, operator_name):
    op = autodiff(causal_kernel, causal).register(operator_name("causal"))
    a = torch.randn(128, 128, device=device, requires_grad=True)
    b = torch.randn(128, 32, device=device)
    blocks = 1 + 2 + 3 + 4
    assert counted(op, a, b)[0] == blocks * 2 * 32**3


def test_what_memory_decides_has_no_count(device, operator_name):
    op = autodiff(as_often_as_memory_says_kernel, as_often).register(operator_name("as_often"))
    a = torch.randn(32, 32, device=device)
    with FlopCounterMode(display=False), pytest.raises(AutodiffError, match="cannot be counted"):
        op(a, torch.ones(1, dtype=torch.int32, device=device))


def test_what_memory_decides_within_bounds(device, operator_name):
    def at_most(kernel, a: Tensor, count: Tensor, most: int) -> Tensor:
        c = torch.empty_like(a)
        kernel[(1,)](a, count, c, most, BLOCK=32)
        return c

    op = autodiff(at_most_kernel, at_most).register(operator_name("at_most"))
    a, count = torch.randn(32, 32, device=device), torch.ones(1, dtype=torch.int32, device=device)
    with FlopCounterMode(display=False) as counter, pytest.warns(UserWarning, match="upper bound"):
        op(a, count, 7)
    assert counter.get_total_flops() == 4 * 2 * 32**3


def test_stubs_that_launch_more_for_gradients(device, operator_name):
    """What is counted is what runs where a gradient is wanted, of intermediate results, too."""
    wants = []

    def once_more(kernel, a: Tensor, b: Tensor) -> Tensor:
        doubled = 2 * a
        wants.append(doubled.requires_grad)
        if doubled.requires_grad:
            matmul(kernel, doubled.detach(), b)
        return matmul(kernel, doubled, b)

    op = autodiff(matmul_kernel, once_more).register(operator_name("once_more"))
    a = torch.randn(32, 64, device=device, requires_grad=True)
    product = 2 * 32 * 64 * 96
    assert counted(op, a, torch.randn(64, 96, device=device)) == (2 * product, product)
    assert wants and all(wants)


def test_divisors_that_are_zero(device, operator_name, recwarn):
    """No warning of NumPy's for a division that does not run."""

    def in_groups(kernel, a: Tensor, groups: int) -> Tensor:
        c = torch.zeros_like(a)
        kernel[(2,)](a, c, groups, BLOCK=32)
        return c

    op = autodiff(in_groups_kernel, in_groups).register(operator_name("in_groups"))
    a = torch.randn(64, 32, device=device)
    for groups in (2, 0):
        with FlopCounterMode(display=False) as counter:
            op(a, groups)
        assert counter.get_total_flops() == groups * 2 * 32**3
    assert not [warning for warning in recwarn if warning.category is RuntimeWarning]


@pytest.mark.parametrize("causal", [False, True])
def test_flash_attention(device, causal, operator_name):
    """Two products forward; three more for keys and values, and queries, or four and three."""

    def attention(kernel, q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        return flash_attention_v2.attention(kernel, q, k, v, causal, 0.3)

    op = autodiff(flash_attention_v2.attention_kernel, attention)
    op = op.register(operator_name("attention"))
    shape = batches, heads, rows, dims = 2, 3, 256, 64
    q, k, v = (
        torch.randn(shape, device=device, dtype=torch.float16, requires_grad=True) for _ in range(3)
    )
    forward, backward = counted(op, q, k, v)
    product = 2 * batches * heads * rows * rows * dims
    # Of square blocks, those above the diagonal are left out.
    blocks = {False: [1], True: [(1 + b / rows) / 2 for b in (16, 32, 64, 128, 256)]}[causal]
    (share,) = (share for share in blocks if forward == 2 * share * product)
    assert backward in [products * share * product for products in (5, 7)]


@pytest.mark.parametrize("wanted", [True, False])
def test_eager_launches(device, wanted):
    """They are no operators, and are counted all the same, by kernel; nothing runs again."""
    kernel = differentiable(matmul_kernel)
    a, b = (torch.randn(s, device=device, requires_grad=wanted) for s in ((64, 96), (96, 128)))
    with FlopCounterMode(display=False) as counter:
        y = matmul(kernel, a, b)
        if wanted:
            y.sum().backward()
    product = 2 * 64 * 96 * 128
    expected = {"triton_autodiff.matmul_kernel": product}
    if wanted:
        expected["triton_autodiff.matmul_kernel_backward"] = 2 * product
    assert {str(k): n for k, n in counter.get_flop_counts()["Global"].items()} == expected


def test_eager_launches_without_a_count(device):
    a = torch.randn(32, 32, device=device)
    kernel = differentiable(as_often_as_memory_says_kernel)
    with FlopCounterMode(display=False), pytest.warns(UserWarning, match="cannot be counted"):
        as_often(kernel, a, torch.ones(1, dtype=torch.int32, device=device))


def test_operators_of_graphs(device):
    class Product(torch.nn.Module):
        def forward(self, a, b):
            return matmul(differentiable(matmul_kernel), a, b)

    a, b = (torch.randn(s, device=device, requires_grad=True) for s in ((64, 96), (96, 128)))
    graph = torch.export.export(Product(), (a, b)).module()
    product = 2 * 64 * 96 * 128
    with FlopCounterMode(display=False) as counter:
        y = graph(a, b)
    assert counter.get_total_flops() == product
    with FlopCounterMode(display=False) as counter:
        y.sum().backward()
    # The gradient runs the operator again.
    assert counter.get_total_flops() == 3 * product


PRODUCT = 2 * 64 * 96 * 128
NAME = "triton_autodiff.matmul_kernel"


def by_kernel(counter) -> dict:
    """What was counted, in products of the matrices below, by name."""
    counts = counter.get_flop_counts()["Global"].items()
    return {
        str(name).removeprefix(NAME): n / PRODUCT for name, n in counts if "autodiff" in str(name)
    }


def factors(device, grad=True):
    return [torch.randn(s, device=device, requires_grad=grad) for s in ((64, 96), (96, 128))]


@pytest.mark.parametrize("moving", [(0,), (1,), (0, 1)])
def test_launches_with_tangents(device, moving):
    """The value, and a product for each factor that has a tangent: one launch computes all."""
    both = factors(device, grad=False)
    kernel = differentiable(matmul_kernel)
    with forward_ad.dual_level(), FlopCounterMode(display=False) as counter:
        given = [
            forward_ad.make_dual(x, torch.randn_like(x)) if n in moving else x
            for n, x in enumerate(both)
        ]
        tangent = forward_ad.unpack_dual(matmul(kernel, *given)).tangent
    assert tangent is not None
    assert by_kernel(counter) == {"_jvp": 1 + len(moving)}


def test_gradients_of_launches_with_tangents(device):
    """Reverse over forward: the gradient of the kernel with tangents."""
    a, b = factors(device)
    kernel = differentiable(matmul_kernel)
    with forward_ad.dual_level():
        with FlopCounterMode(display=False) as counter:
            dual = matmul(kernel, forward_ad.make_dual(a, torch.randn_like(a)), b)
            tangent = forward_ad.unpack_dual(dual).tangent
        assert by_kernel(counter) == {"_jvp": 2}
    # Within the level, the gradient would have a tangent.
    with FlopCounterMode(display=False) as counter:
        torch.autograd.grad(tangent.sum(), b)
    # Of ȧ·b, by b.
    assert by_kernel(counter) == {"_jvp_backward": 1}


# What is differentiated again, and by what; and the products that this takes, by name, if it comes
# of the first plan, and of the kernel with tangents. Of d_a = u·bᵀ and d_b = aᵀ·u, the tangents are
# u·ḃᵀ and ȧᵀ·u; that by u is ȧ·b + a·ḃ. Values that nobody reads again are not computed.
SECOND = {
    "one": (("da",), ("b",), {"_backward_jvp": 1}, {"_jvp": 2, "_jvp_backward": 1}),
    "both": (("da", "db"), ("a", "b"), {"_backward_jvp": 2}, {"_jvp": 3, "_jvp_backward": 2}),
    "by upstream gradients": (
        *(("da", "db"), ("a", "b", "u")),
        *({"_jvp": 2, "_backward_jvp": 2}, {"_jvp": 3, "_jvp_backward": 2}),
    ),
}


def _refused(*_):
    raise WithoutPlan("the other way is tested")


@pytest.mark.parametrize("by_plan", [True, False])
@pytest.mark.parametrize("form", SECOND)
def test_second_derivatives(device, form, by_plan, monkeypatch):
    """Each launch counts once, when it runs, under the name of what it computes."""
    if not by_plan:
        monkeypatch.setattr(PureLaunch, "by_plan", _refused)
    kernel = differentiable(matmul_kernel)
    with FlopCounterMode(display=False) as counter:
        a, b = factors(device)
        y = matmul(kernel, a, b)
    assert by_kernel(counter) == {"": 1}
    of, by, *expected = SECOND[form]
    u = torch.randn_like(y).requires_grad_("u" in by)
    with FlopCounterMode(display=False) as counter:
        da, db = torch.autograd.grad(y, (a, b), u, create_graph=True)
    assert by_kernel(counter) == {"_backward": 2}
    given = {"a": a, "b": b, "u": u, "da": da, "db": db}
    with FlopCounterMode(display=False) as counter:
        along = [torch.randn_like(given[name]) for name in of]
        torch.autograd.grad([given[name] for name in of], [given[name] for name in by], along)
    assert by_kernel(counter) == expected[not by_plan]


def test_transforms(device):
    """A function of values and one of tangents: each is a launch under torch.func."""
    a, b = factors(device, grad=False)
    kernel = differentiable(matmul_kernel)

    def product(a):
        c = a.new_empty(64, 128)
        kernel[(2, 4)](a, b, c, 64, 128, 96, BLOCK=32)
        return c

    with FlopCounterMode(display=False) as counter:
        torch.func.jvp(product, (a,), (a,))
    assert by_kernel(counter) == {"": 1, "_jvp": 2}
    _, pushed = torch.func.linearize(product, a)
    with FlopCounterMode(display=False) as counter:
        pushed(a)
    counts = counter.get_flop_counts()["Global"]
    assert [str(name).endswith("_derivative") for name in counts] == [True]
    assert counter.get_total_flops() == 3 * PRODUCT
    with FlopCounterMode(display=False) as counter:
        torch.func.vmap(product)(a.expand(3, 64, 96))
    assert by_kernel(counter) == {"": 3}


def test_second_derivatives_without_a_count(device):
    """A warning says which kernel is missing."""
    a = torch.randn(32, 32, device=device, requires_grad=True)
    kernel = differentiable(as_often_as_memory_says_kernel)
    c = as_often(kernel, a, torch.full((1,), 2, dtype=torch.int32, device=device))
    (da,) = torch.autograd.grad(c.sum(), a, create_graph=True)
    with (
        FlopCounterMode(display=False),
        pytest.warns(UserWarning, match="_jvp.* cannot be counted"),
    ):
        da.sum().backward()
