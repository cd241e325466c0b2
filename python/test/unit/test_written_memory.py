"""What a derived kernel writes lies inside of the memory for it, wherever the forward reads."""

import pytest
import torch
from exporting import exported
from gradients import assert_close, assert_gradients_close, differentiated, random_tensor
from kernels import unmasked_rows as rows
from watched import Watch, watched

# Rows past the end are near the tensor, or so far away that there is a mask instead of memory.
SHAPES = [(33, 43, 70), (33, 35, 4096), (32, 64, 64)]


def _spans(op) -> dict:
    """The plan's gradients and the memory for each, by argument."""
    ((_, _, execution),) = op.kernel._plans((), {})
    facts = execution.backward.facts
    return {g.argument: (g, facts.span(g.argument)) for g in execution.backward.plan.gradients}


# In a snake, contributions meet in atomics.
ORDERS = [(order, None) for order in rows.ORDERS] + [(order, True) for order in rows.ORDERS[:-1]]


@pytest.mark.parametrize("order, deterministic", ORDERS)
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_product(device, shape, order, deterministic):
    M, N, K = shape
    a, b = (random_tensor(n, K, device=device) for n in (M, N))
    op = differentiated(rows.product_kernel, rows.product, deterministic=deterministic)
    assert_gradients_close(op, rows.product_reference, (a, b, order), roundings=64)


@pytest.mark.parametrize("order, deterministic", ORDERS)
@pytest.mark.parametrize("M, K", [(33, 70), (33, 4096), (64, 64)])
def test_product_with_itself(device, M, K, order, deterministic):
    """Contributions take turns."""
    x = random_tensor(M, K, device=device)
    op = differentiated(rows.square_kernel, rows.square, deterministic=deterministic)
    assert_gradients_close(op, rows.square_reference, (x, order), roundings=64)


@pytest.mark.parametrize("M, K", [(33, 70), (65, 4096), (64, 64)])
def test_rows_before_the_first(device, M, K):
    x = random_tensor(M, K, device=device)
    op = differentiated(rows.scaled_rows_kernel, rows.scaled_rows)
    assert_gradients_close(op, rows.scaled_rows_reference, (x,))


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_what_keeps_writes_inside(device):
    """A check where all rows are there, room where some are not, a mask where these are many."""
    for (M, N, K), inside in zip(SHAPES, ("room", "mask", "check"), strict=True):
        op = differentiated(rows.product_kernel, rows.product)
        op(*(random_tensor(n, K, device=device) for n in (M, N)))
        for gradient, span in _spans(op).values():
            assert {gradient.keeps_inside("check")} <= {"room", "check"}
            held = (M, N)[gradient.argument] * K
            assert (span.total > held) == (inside != "check")
            assert (gradient.confined == "all") == (inside == "mask")
        text = op.explain(verbose=True)
        said = {
            "room": "computes how far they reach",
            "mask": "a mask leaves out what is beyond",
            "check": "the launch checks that these are its elements",
        }
        assert [name for name, words in said.items() if words in text] == [inside]


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_exported(device, tmp_path, shape):
    M, N, K = shape
    a, b = (random_tensor(n, K, device=device) for n in (M, N))
    op = differentiated(rows.product_kernel, rows.product)
    twin = exported(op, tmp_path, a, b)
    # Of other sizes, too, unless they are refused.
    others = [(M, N, K), (M + 1, N, K), (M, N + 2, K), (M, N, K + 7)]
    taken = 0
    for M, N, K in others:
        a, b = (random_tensor(n, K, device=device) for n in (M, N))
        try:
            c = twin(a, b)
        except AssertionError:
            continue
        taken += 1
        with watched():
            found = torch.autograd.grad(c.sum(), (a, b))
        truths = (b.double().sum(0).expand(M, K), a.double().sum(0).expand(N, K))
        for gradient, truth in zip(found, truths, strict=True):
            assert_close("gradient", gradient, truth.float(), truth, roundings=64)
    assert taken > 0


@pytest.mark.skipif("config.getoption('--forward-only')", reason="about backwards")
def test_compiled(device):
    """In a graph, the same memory is made."""
    op = differentiated(rows.product_kernel, rows.product)
    a, b = (random_tensor(n, 70, device=device) for n in (33, 43))
    compiled = torch.compile(lambda a, b: op(a, b).sin(), backend="aot_eager", fullgraph=True)
    y = compiled(a, b)
    upstream = torch.randn_like(y)
    with watched():
        found = torch.autograd.grad(y, (a, b), upstream)
    expected = torch.autograd.grad(op(a, b).sin(), (a, b), upstream)
    for mine, other in zip(found, expected, strict=True):
        torch.testing.assert_close(mine, other)


def test_bands_are_watched(device):
    """A write megabytes away from a tensor is seen: on a CPU, it would end the process."""
    watch = Watch()
    x = watch.copy(torch.zeros(8, device=device))
    (memory,) = watch.memories
    distance = 1 << 20
    if device == "cuda":
        memory.bits[memory.margin + distance] = 0
        assert f"behind 8 elements, {distance - 7}" in watch.touched()[0]
        return
    with open("/proc/self/maps") as maps:
        ranges = [line.split()[:2] for line in maps]
    for address in (x.data_ptr() - 4 * distance, x.data_ptr() + 4 * distance):
        for where, rights in ranges:
            first, last = (int(end, 16) for end in where.split("-"))
            if first <= address < last:
                assert rights.startswith("r--")
                break
        else:
            pytest.fail("nothing is mapped there")
