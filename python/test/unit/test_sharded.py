"""Registered operations of DTensors, with gloo on CPUs, or with NCCL on GPUs."""

import pytest
import ranks
import torch
import torch.distributed as dist
import torch.utils._triton
import triton
import triton.language as tl
from torch.distributed.tensor import (
    DTensor,
    Partial,
    Replicate,
    Shard,
    distribute_tensor,
    init_device_mesh,
)
from triton_autodiff import AutodiffError, autodiff, check

Tensor = torch.Tensor
pytestmark = [
    pytest.mark.skipif(not dist.is_available(), reason="needs torch.distributed"),
    pytest.mark.usefixtures("needs_gradients"),
]


@triton.jit
def rms_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * n + i, mask=i < n, other=0.0)
    w = tl.load(w_ptr + i, mask=i < n, other=0.0)
    r = 1 / tl.sqrt(tl.sum(x * x, axis=0) / n + 1e-5)
    tl.store(y_ptr + row * n + i, x * r * w, mask=i < n)


def rms(kernel, x: Tensor, w: Tensor) -> Tensor:
    y = torch.empty_like(x)
    kernel[(x.shape[0],)](x, w, y, x.shape[1], BLOCK=triton.next_power_of_2(x.shape[1]))
    return y


def reference(x, w):
    return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-5) * w


@triton.jit
def product_kernel(a_ptr, b_ptr, c_ptr, M, N, K, BLOCK: tl.constexpr):
    k = tl.arange(0, BLOCK)
    i = (tl.program_id(0) * BLOCK + k)[:, None]
    j = (tl.program_id(1) * BLOCK + k)[None, :]
    sums = tl.zeros((BLOCK, BLOCK), tl.float32)
    for start in range(0, K, BLOCK):
        at = start + k
        a = tl.load(a_ptr + i * K + at[None, :], mask=(i < M) & (at < K)[None, :], other=0.0)
        b = tl.load(b_ptr + at[:, None] * N + j, mask=(at < K)[:, None] & (j < N), other=0.0)
        sums += tl.dot(a, b, input_precision="ieee")
    tl.store(c_ptr + i * N + j, sums, mask=(i < M) & (j < N))


def product(kernel, a: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty(m, n)
    kernel[(triton.cdiv(m, 16), triton.cdiv(n, 16))](a, b, c, m, n, k, BLOCK=16)
    return c, c.sum(0)


def product_reference(a, b):
    return a @ b, (a @ b).sum(0)


def with_whole_result(kernel, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor]:
    return rms(kernel, x, w), w.sin()


def with_whole_reference(x, w):
    return reference(x, w), w.sin()


def _examples(device):
    return [
        tuple(torch.empty(shape, device=device) for shape in shapes)
        for shapes in (((4, 24), (24,)), ((6, 8), (8, 12)))
    ]


def compare(op, expected, mesh, tensors, layouts):
    """With tensors laid out so, the operation does what it does to whole ones; returns results."""
    tensors = [t.to(mesh.device_type) for t in tensors]
    for tensor in tensors:
        dist.broadcast(tensor, 0)
    leaves = []
    for tensor, layout in zip(tensors, layouts, strict=True):
        whole = [Replicate() if p.is_partial() else p for p in layout]
        made = distribute_tensor(tensor, mesh, whole)
        if whole != list(layout):
            (parts,) = [mesh.size(n) for n, p in enumerate(layout) if p.is_partial()]
            given = {"shape": tensor.shape, "stride": tensor.stride(), "run_check": False}
            made = DTensor.from_local(made.to_local() / parts, mesh, layout, **given)
        leaves.append(made.detach().requires_grad_())
    wholes = [t.double().requires_grad_() for t in tensors]
    found, truths = op(*leaves), expected(*wholes)
    if isinstance(found, DTensor):
        found, truths = (found,), (truths,)
    sum((y.full_tensor() ** 2).sum() for y in found).backward()
    sum((z**2).sum() for z in truths).backward()
    for y, z in zip(found, truths, strict=True):
        torch.testing.assert_close(y.full_tensor(), z.float(), rtol=1e-4, atol=1e-4)
    for leaf, whole in zip(leaves, wholes, strict=True):
        gradient = leaf.grad.full_tensor()
        torch.testing.assert_close(gradient, whole.grad.float(), rtol=1e-4, atol=1e-4)
    return found, leaves


def registered(device):
    """The operations with their references: by a rule, by all that can be found, and by several."""
    rows, products = _examples(device)
    normalize = autodiff(rms_kernel, rms)
    multiply = autodiff(product_kernel, product)
    both = autodiff(rms_kernel, with_whole_result)
    rule = {"x": -2, "w": None, "result": (0, None)}
    return {
        "rows": normalize.register(
            "autodiff_test::sharded_rms", shard={"x": 0, "result": 0}, example=rows
        ),
        "product": multiply.register("autodiff_test::sharded_mm", shard=True, example=products),
        "whole result": both.register("autodiff_test::sharded_both", shard=rule, example=rows),
    }


def on_a_line(device):
    torch.utils._triton.has_triton = lambda: True
    mesh = init_device_mesh(device, (ranks.COUNT,))
    ops = registered(device)
    whole = Replicate()
    op = ops["rows"]
    for rows, layouts in ((6, (Shard(0), Shard(1), whole, Partial())), (5, (Shard(0),)),
                          (1, (Shard(0),))):  # fmt: skip
        x, w = torch.randn(rows, 40), torch.randn(40)
        for layout in layouts:
            (y,), (_, w_leaf) = compare(op, reference, mesh, (x, w), ([layout], [whole]))
            assert y.placements == ((Shard(0) if layout == Shard(0) else whole),)
            assert w_leaf.grad.placements[0].is_partial() == (layout == Shard(0))
    compare(ops["whole result"], with_whole_reference, mesh, (x.repeat(6, 1), w),
            ([Shard(0)], [whole]))  # fmt: skip
    lonely = (distribute_tensor(t.to(device), mesh, [p]) for t, p in ((x, Shard(0)), (w, whole)))
    with pytest.raises(AutodiffError, match="may have no part"):
        ops["whole result"](*lonely)

    a, b = torch.randn(10, 7), torch.randn(7, 5)
    compiled = torch.compile(ops["product"], backend="aot_eager", fullgraph=True)
    for layouts, results, runs in (
        (([Shard(0)], [whole]), (Shard(0), Partial()), (ops["product"], compiled)),
        (([Shard(1)], [Shard(0)]), (Partial(), Partial()), (ops["product"], compiled)),
        (([Shard(1)], [whole]), (Partial(), Partial()), (ops["product"],)),
        (([whole], [Shard(1)]), (Shard(1), Shard(0)), (ops["product"],)),
    ):
        for op in runs:
            found, _ = compare(op, product_reference, mesh, (a, b), layouts)
            assert tuple(y.placements[0] for y in found) == results


def on_a_square(device):
    """Data parallel in one dimension of the mesh, and tensor parallel in the other."""
    mesh = init_device_mesh(device, (2, 2))
    ops = registered(device)
    whole, part = Replicate(), Shard(0)
    for rows in (8, 5):
        x, w = torch.randn(rows, 40), torch.randn(40)
        for layout in ([part, whole], [part, part], [part, Shard(1)], [whole, Partial()]):
            compare(ops["rows"], reference, mesh, (x, w), (layout, [whole, whole]))
    a, b = torch.randn(10, 6), torch.randn(6, 5)
    for layouts, result in (
        (([part, Shard(1)], [whole, part]), [part, Partial()]),
        (([part, whole], [whole, Shard(1)]), [part, Shard(1)]),
        (([part, Partial()], [whole, Shard(1)]), [part, Shard(1)]),
    ):
        (c, _), _ = compare(ops["product"], product_reference, mesh, (a, b), layouts)
        assert list(c.placements) == result


def test_two_devices(device):
    ranks.run(on_a_line, device)


def test_four_devices(device):
    ranks.run(on_a_square, device, count=4)


@pytest.mark.parametrize(
    ("shard", "message"),
    [
        ({"x": 1, "w": 0, "result": 1}, "do not give parts of results"),
        ({"x": 0, "result": Partial()}, "do not give parts of results"),
        ({"x": 0, "result": (0, 0)}, "of 2 results, and there are 1"),
        ({"x": 0}, "is to name 'result'"),
        ({"y": 0, "result": 0}, "names 'y', which is no parameter"),
        ({"x": 2, "result": 0}, "no two parts in dimension 2"),
        ({"w": None, "result": 0}, "divides no parameter"),
        ({"x": "rows", "w": 0, "result": 0}, "dimensions of parameters"),
        ({"x": 0, "result": "rows"}, "dimensions of 'result'"),
    ],
)
def test_rules_that_are_refused(shard, message, device, operator_name):
    (example, _), op = _examples(device), autodiff(rms_kernel, rms)
    with pytest.raises(AutodiffError, match=message):
        op.register(operator_name("wrong"), shard=shard, example=example)


def test_rules_want_an_example():
    with pytest.raises(AutodiffError, match="tried out"):
        autodiff(rms_kernel, rms).register("autodiff_test::wrong", shard={"x": 0, "result": 0})


def test_rules_that_are_found(device):
    rows, products = _examples(device)
    assert autodiff(rms_kernel, rms).shardings(*rows) == [{"x": 0, "result": 0}]
    assert autodiff(product_kernel, product).shardings(*products) == [
        {"a": 0, "result": (0, Partial())},
        {"a": 1, "b": 0, "result": (Partial(), Partial())},
        {"b": 1, "result": (1, 0)},
    ]


def of_few_rows(kernel, x: Tensor, w: Tensor) -> Tensor:
    """An operation that knows how many rows there are."""
    return rms(kernel, x, w) / max(1, x.shape[0] // 4)


def test_check_tries_rules_out(device, operator_name):
    """For other sizes than those of the example."""
    op, (example, _) = autodiff(rms_kernel, of_few_rows), _examples(device)
    op.register(operator_name("few"), shard={"x": 0, "result": 0}, example=example)
    w = torch.randn(24, device=device)
    assert check(op, (torch.randn(4, 24, device=device, requires_grad=True), w))
    with pytest.raises(AutodiffError, match="do not give parts of results"):
        check(op, (torch.randn(16, 24, device=device, requires_grad=True), w))


def test_no_rule_can_be_found(device):
    def centred(kernel, x: Tensor, w: Tensor) -> Tensor:
        return rms(kernel, x, w) - x.mean(0).square()

    with pytest.raises(AutodiffError, match="no rule can be found"):
        autodiff(rms_kernel, centred).register(
            "autodiff_test::none", shard=True, example=_examples(device)[0]
        )
