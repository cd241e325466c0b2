"""Which outputs have a history in autograd, and zeros for inputs without influence.

PyTorch is the truth: `requires_grad` of the results, and gradients.
"""

import pytest
import torch
import triton
from exporting import exported
from kernels import histories as kernels
from torch._dynamo import compiled_autograd
from torch.fx.experimental.proxy_tensor import make_fx
from triton.backends.autodiff import (
    AutodiffError,
    autodiff,
    custom_vjp,
    differentiable,
    stop_gradient,
)

N = kernels.N
Tensor = torch.Tensor


@pytest.fixture(autouse=True)
def needs_a_gradient(needs_gradients):
    """The forward alone has no history."""


def random(device, *shape, wants=True):
    return torch.randn(*(shape or (N,)), device=device, requires_grad=wants)


def applied(flow, x):
    y = torch.empty(N, device=x.device)
    differentiable(kernels.elementwise)[(1,)](x, y, F=flow)
    return y


@pytest.mark.parametrize("name", kernels.FLOWS)
def test_flows(device, name):
    """As PyTorch says; values, too, and gradients."""
    flow, reference = kernels.FLOWS[name]
    x = random(device)
    y = applied(flow, x)
    if reference is None:
        assert not y.requires_grad
        return
    copy = x.detach().cpu().requires_grad_()
    expected = reference(copy)
    torch.testing.assert_close(y.cpu(), expected)
    assert y.requires_grad == expected.requires_grad
    if y.requires_grad:
        # PyTorch rounds a gradient where the forward has rounded.
        upstream = torch.randn(N).half().float()
        y.backward(upstream.to(device))
        expected.backward(upstream)
        torch.testing.assert_close(x.grad.cpu(), copy.grad)


@triton.jit
def _stopped(x, i):
    return stop_gradient(x) * 2


@custom_vjp
@triton.jit
def _straight_through(x):
    return (x > 0).to(x.dtype)


@_straight_through.defvjp
@triton.jit
def _straight_through_vjp(dy, x, y):
    return dy


@triton.jit
def _counted_straight(x, i):
    return _straight_through(x)


def test_detached_and_derivatives_of_ones_own(device):
    """As `detach`, and as an `autograd.Function`."""
    assert not applied(_stopped, random(device)).requires_grad
    x = random(device)
    y = applied(_counted_straight, x)
    assert y.requires_grad and torch.equal(y, (x > 0).float())
    y.sum().backward()
    assert torch.equal(x.grad, torch.ones_like(x))


@pytest.mark.parametrize("how", ["value", "mask", "atomic mask", "atomic value", "address"])
def test_through_memory(device, how):
    has_history = how.endswith("value")
    x, y, scratch = random(device), torch.empty(N, device=device), torch.zeros(2 * N, device=device)
    differentiable(kernels.through_memory)[(1,)](x, scratch, y, HOW=how)
    assert y.requires_grad == scratch.requires_grad == has_history
    if has_history:
        (y.sum() + scratch.sum()).backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 3))


def test_an_index_has_no_influence(device):
    """The table gets a gradient, the indices get zeros; without a table there is no history."""
    x, table = random(device), random(device)
    kernel = differentiable(kernels.looked_up)
    y = torch.empty(N, device=device)
    kernel[(1,)](x, table.detach(), y)
    assert not y.requires_grad
    kernel[(1,)](x, table, y)
    y.sum().backward()
    assert torch.equal(x.grad, torch.zeros_like(x))
    places = x.detach().abs().int().long() % N
    torch.testing.assert_close(table.grad, torch.bincount(places, minlength=N).float())


def test_zeros_for_any_output(device):
    """Also if the gradient comes of an output that only another input reaches."""
    for asked in (0, 1):
        x, w = random(device), random(device)
        outputs = torch.empty(2, N, device=device).unbind()
        outputs = [y.clone() for y in outputs]
        differentiable(kernels.parts)[(1,)](x, w, *outputs)
        assert all(y.requires_grad for y in outputs)
        outputs[asked].sum().backward()
        influential, other = (x, w) if asked == 0 else (w, x)
        assert influential.grad.abs().min() > 0 or asked == 0
        assert torch.equal(other.grad, torch.zeros_like(other))


@pytest.mark.parametrize("wanted", ["x", "w", "xw"])
def test_histories_are_those_of_the_inputs(device, wanted):
    x, w = random(device, wants="x" in wanted), random(device, wants="w" in wanted)
    y, z = torch.empty(N, device=device), torch.empty(N, device=device)
    differentiable(kernels.parts)[(1,)](x, w, y, z)
    assert (y.requires_grad, z.requires_grad) == ("x" in wanted, "w" in wanted)


def stages(x, first, second):
    """Return a variance in two stages, and the numbers of elements."""
    n, blocks = x.numel(), triton.cdiv(x.numel(), 16)
    mean, m2, count = (torch.empty(blocks, device=x.device) for _ in range(3))
    y, total = (torch.empty(1, device=x.device) for _ in range(2))
    first[(blocks,)](x, mean, m2, count, n, 16)
    second[(1,)](mean, m2, count, y, total, blocks, n, 8)
    return y, mean, count, total


def check_stages(found, x):
    y, mean, count, total = found
    assert y.requires_grad and mean.requires_grad
    assert not count.requires_grad and not total.requires_grad
    assert total.item() == x.numel()
    expected = x.detach().var(unbiased=False)
    torch.testing.assert_close(y[0], expected)
    (found,) = torch.autograd.grad(y.sum(), x)
    n = x.numel()
    torch.testing.assert_close(found, 2 * (x - x.mean()).detach() / n, atol=1e-6, rtol=1e-4)


def test_a_count_is_no_input_of_the_next_kernel(device):
    """The second kernel merges moments, which has no derivative by the counts."""
    x = random(device, 83)
    check_stages(stages(x, *map(differentiable, (kernels.moments, kernels.variance))), x)


# ------------------------------------------------------------------------------- in place


@pytest.mark.parametrize("fully", [True, False])
@pytest.mark.parametrize("has_one", [True, False])
@pytest.mark.parametrize("is_view", [True, False])
def test_in_place(device, fully, has_one, is_view):
    """What was there before, and its history, stay; constants add none."""
    x, before = random(device), random(device, 2 * N, wants=has_one)
    buffer = before * 3
    z = buffer[N:] if is_view else buffer
    differentiable(kernels.update)[(1,)](x, z, FULLY=fully)
    assert z.requires_grad == buffer.requires_grad == has_one
    mask = torch.ones_like(x, dtype=torch.bool) if fully else x > 0
    reference = before.detach().clone().requires_grad_(has_one)
    expected = reference * 3
    (expected[N:] if is_view else expected)[:N][mask] = 7.0
    torch.testing.assert_close(buffer, expected)
    if has_one:
        upstream = torch.randn(2 * N, device=device)
        grads = torch.autograd.grad(buffer, [before, x], upstream, allow_unused=True)
        (wanted,) = torch.autograd.grad(expected, reference, upstream)
        torch.testing.assert_close(grads[0], wanted)
        assert torch.equal(grads[1], torch.zeros_like(x))


@pytest.mark.parametrize("rounds", [1, 2])
def test_what_turns_out_to_stay(device, rounds):
    """No store happens: the upstream gradient is that of what was there before."""
    x, held = random(device, 4), random(device, 4)
    y, start = held.clone(), torch.full((1,), 3, dtype=torch.int32, device=device)
    differentiable(kernels.never)[(4,)](x, y, start, ROUNDS=rounds)
    upstream = torch.randn_like(y)
    found = torch.autograd.grad(y, (x, held), upstream)
    assert torch.equal(found[0], torch.zeros_like(x))
    assert torch.equal(found[1], upstream)


def test_a_leaf_may_hold_a_count(device):
    """It is written as by PyTorch under no_grad; a leaf that wants a gradient is refused."""
    x = random(device)
    kernel = differentiable(kernels.elementwise)
    y = torch.empty(N, device=device)
    version = y._version
    kernel[(1,)](x, y, F=kernels.FLOWS["a count"][0])
    assert y.is_leaf and y._version > version
    with pytest.raises(RuntimeError, match="leaf"):
        kernel[(1,)](x, y.requires_grad_(), F=kernels.FLOWS["a count"][0])


def test_views_beside_each_other(device):
    """Rows of one buffer: that of the counts takes no part in the gradient."""
    x, w = random(device, 40), random(device, 1)
    buffer = torch.zeros(2, 3, device=device)
    differentiable(kernels.statistics)[(3,)](x, w, buffer[0], buffer[1], 40, B=16)
    assert buffer.requires_grad
    buffer.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 1 / 16))
    assert torch.equal(w.grad, torch.zeros_like(w))


# ----------------------------------------------------------------------- other executors


def counted(kernel, x, w):
    """Means of blocks, and counts of positive elements, with a sign that w says."""
    blocks = triton.cdiv(x.numel(), 16)
    mean, count = torch.empty(blocks, device=x.device), torch.empty(blocks, device=x.device)
    kernel[(blocks,)](x, w, mean, count, x.numel(), B=16)
    return mean, count


def check_counted(function, device):
    for n in (40, 83):
        x, w = random(device, n), random(device, 1)
        mean, count = function(x, w)
        assert mean.requires_grad and not count.requires_grad
        padded = torch.nn.functional.pad(x.detach(), (0, -n % 16)).view(-1, 16)
        torch.testing.assert_close(count, (padded > 0).sum(1) * w.detach().sign())
        mean.sum().backward()
        torch.testing.assert_close(x.grad, torch.full_like(x, 1 / 16))
        assert torch.equal(w.grad, torch.zeros_like(w))


def test_operations(device):
    op = autodiff(kernels.statistics, counted)
    check_counted(op, device)
    # What is returned alone has no history, which is no mistake of the stub.
    count = autodiff(kernels.statistics, lambda k, x, w: counted(k, x, w)[1])
    assert not count(random(device), random(device, 1)).requires_grad


@pytest.mark.parametrize("backend", ["aot_eager", pytest.param("inductor", marks=pytest.mark.slow)])
@pytest.mark.parametrize("dynamic", [True, False])
def test_compiled(device, monkeypatch, backend, dynamic):
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()
    op = autodiff(kernels.statistics, counted)
    compiled = torch.compile(op, backend=backend, fullgraph=True, dynamic=dynamic)
    check_counted(compiled, device)


def test_compiled_stages(device, monkeypatch):
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()
    both = [differentiable(k) for k in (kernels.moments, kernels.variance)]
    x = random(device, 83)
    compiled = torch.compile(lambda x: stages(x, *both), backend="aot_eager", fullgraph=True)
    check_stages(compiled(x), x)


@pytest.mark.parametrize("name", ["a count", "floor", "zero times"])
def test_compiled_without_gradients(device, monkeypatch, name):
    """Kernels of which nothing has a gradient other than zero."""
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()
    kernel = differentiable(kernels.steady)

    def program(x):
        y = torch.empty_like(x)
        kernel[(1,)](x, y, HOW=name)
        return y + x.detach()

    x = random(device)
    expected, found = program(x), torch.compile(program, backend="aot_eager", fullgraph=True)(x)
    torch.testing.assert_close(found, expected)
    assert found.requires_grad == expected.requires_grad == (name != "a count")
    if found.requires_grad:
        found.sum().backward()
        assert torch.equal(x.grad, torch.zeros_like(x))


def test_compiled_autograd(device):
    """The backward of an eager launch in a graph."""
    torch._dynamo.reset()
    op = autodiff(kernels.statistics, counted)
    x, w = random(device, 40), random(device, 1)
    mean, _ = op(x, w)
    with compiled_autograd._enable(torch.compile(backend="aot_eager", fullgraph=True)):
        mean.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 1 / 16))
    assert torch.equal(w.grad, torch.zeros_like(w))


def test_exported(device, tmp_path):
    op = autodiff(kernels.statistics, counted)
    twin = exported(op, tmp_path, random(device, 40), random(device, 1))
    check_counted(twin, device)
    assert ".zeros()" in (tmp_path / "exported.py").read_text()


def test_said(device):
    """`explain` names outputs without a history."""
    op = autodiff(kernels.statistics, counted)
    op(random(device, 40), random(device, 1))
    assert "count has no history" in op.explain()
    assert "mean has no history" not in op.explain()


# ------------------------------------------------------------------- registered operations


def counted_and_more(kernel, x: Tensor, w: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Also what PyTorch computes of both, and a position."""
    mean, count = counted(kernel, x, w)
    return mean, count, (x > 0).sum() * w.detach(), x.argmax()


def run_in(executor, op, *inputs, dynamic=False):
    """Run an operation in a graph, or not."""
    torch._dynamo.reset()
    if executor == "eager":
        return op(*inputs)
    if executor == "export":
        graph = torch.export.export(Module(op), inputs, strict=dynamic).module()
        return graph(*inputs)
    return torch.compile(op, backend=executor, fullgraph=True, dynamic=dynamic)(*inputs)


class Module(torch.nn.Module):
    def __init__(self, op):
        super().__init__()
        self.op = op

    def forward(self, *inputs):
        return self.op(*inputs)


EXECUTORS = ["eager", "aot_eager", pytest.param("inductor", marks=pytest.mark.slow), "export"]


@pytest.mark.parametrize("dynamic", [True, False])
@pytest.mark.parametrize("executor", EXECUTORS)
def test_registered(device, executor, dynamic, operator_name):
    """In graphs, too: a count of masks is no function of what is differentiated."""
    op = autodiff(kernels.statistics, counted_and_more).register(operator_name("counted"))
    x, w = random(device, 40), random(device, 1)
    results = run_in(executor, op, x, w, dynamic=dynamic)
    assert [y.requires_grad for y in results] == [True, False, False, False]
    for y, expected in zip(results, op(x, w), strict=True):
        torch.testing.assert_close(y, expected)
    found = torch.autograd.grad(results[0].sum(), (x, w))
    torch.testing.assert_close(found[0], torch.full_like(x, 1 / 16))
    assert torch.equal(found[1], torch.zeros_like(w))


def halves(kernel, given: list[Tensor]) -> list[Tensor]:
    y, z = torch.empty_like(given[0]), torch.empty_like(given[1])
    kernel[(1,)](*given, y, z)
    return [y, z, (y > 0).to(y.dtype), y.detach() * 2]


@pytest.mark.parametrize("executor", EXECUTORS)
@pytest.mark.parametrize("wanted", ["x", "w", "xw"])
def test_registered_with_some_inputs(device, executor, wanted, operator_name):
    """Each result has the history of its own inputs, in lists, too."""
    schema = "(Tensor[] given) -> Tensor[]"
    op = autodiff(kernels.parts, halves).register(operator_name("halves"), schema=schema)
    leaves = random(device, wants="x" in wanted), random(device, wants="w" in wanted)
    results = run_in(executor, lambda x, w: op([x, w]), *leaves)
    assert [y.requires_grad for y in results] == ["x" in wanted, "w" in wanted, False, False]
    truths = [(leaves[1] > 0) * (2 * leaves[0] - 1) + 1, leaves[1].exp()]
    for result, leaf, truth in zip(results, leaves, truths, strict=False):
        if leaf.requires_grad:
            (found,) = torch.autograd.grad(result.sum(), leaf, retain_graph=True)
            torch.testing.assert_close(found, truth.detach())


def both_stages(first, x: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """The second kernel is refused if a count has a history."""
    return stages(x, first, differentiable(kernels.variance))


@pytest.mark.parametrize("executor", EXECUTORS)
def test_registered_stages(device, executor, operator_name):
    op = autodiff(kernels.moments, both_stages).register(operator_name("stages"))
    x = random(device, 83)
    check_stages(run_in(executor, op, x), x)


def test_registered_for_meta_tensors(operator_name):
    op = autodiff(kernels.statistics, counted_and_more).register(operator_name("meta"))
    x, w = (torch.empty(n, device="meta", requires_grad=True) for n in (40, 1))
    assert [y.requires_grad for y in op(x, w)] == [True, False, False, False]


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_registered_and_traced_with_its_gradient(device, mode, operator_name):
    op = autodiff(kernels.statistics, counted_and_more).register(operator_name("traced"))
    told = []

    def gradient(x, w):
        results = op(x, w)
        told.append([y.requires_grad for y in results])
        return torch.autograd.grad(results[0].sum(), (x, w))

    x, w = random(device, 40), random(device, 1)
    found = make_fx(gradient, tracing_mode=mode)(x, w)(x, w)
    assert told == [[True, False, False, False]]
    torch.testing.assert_close(found[0], torch.full_like(x, 1 / 16))
    assert torch.equal(found[1], torch.zeros_like(w))


def test_what_a_graph_was_not_told_is_an_error(device, operator_name):
    """No gradient is lost if a stub does something else than when the graph was made."""
    detaches = True

    def fickle(kernel, x: Tensor) -> tuple[Tensor, Tensor]:
        y = torch.empty_like(x)
        kernel[(1,)](x, y, F=kernels.FLOWS["zero times"][0])
        return y + 0, (x.detach() if detaches else x) * 2

    op = autodiff(kernels.elementwise, fickle).register(operator_name("fickle"))
    x = random(device)
    torch._dynamo.reset()
    compiled = torch.compile(op, backend="aot_eager", fullgraph=True)
    assert [y.requires_grad for y in compiled(x)] == [True, False]
    detaches = False
    with pytest.raises(AutodiffError, match="result 1 of stub 'fickle'.*when the graph was made"):
        compiled(x)


def test_a_launch_that_no_graph_holds(device, operator_name):
    """Nothing is known before it runs, then: gradients are zeros."""

    class Wrapper:
        def __init__(self, fn):
            self.fn = fn

        def __getitem__(self, grid):
            return self.fn[grid]

    op = autodiff(Wrapper(kernels.statistics), counted).register(
        operator_name("wrapped"), schema="(Tensor x, Tensor w) -> (Tensor, Tensor)"
    )
    x, w = random(device, 40), random(device, 1)
    mean, count = run_in("aot_eager", op, x, w)
    found = torch.autograd.grad(mean.sum() + count.sum(), (x, w))
    torch.testing.assert_close(found[0], torch.full_like(x, 1 / 16))
    assert torch.equal(found[1], torch.zeros_like(w))
