"""Kernels with longer and shorter tiles: which run, and that gradients are right."""

import flash_attention_v2 as flash
import pytest
import torch
import triton
from gradients import FORWARD_ONLY, assert_gradients_close, differentiated, random_tensor
from kernels import large_tiles, tiles
from kernels import matmul as mm

pytestmark = pytest.mark.schedules

# Rows, columns and the sum's length; how many of the two kernels have longer tiles then.
SIZES = {
    "all even": ((256, 256, 128), 2),
    "one tile": ((100, 90, 30), 0),
    "odd rows": ((190, 256, 64), 2),
    "odd sums": ((250, 200, 70), 2),
    "all odd": ((130, 258, 70), 0),
    "nothing": ((128, 128, 0), 0),
}


@pytest.fixture(autouse=True)
def two_processors(monkeypatch):
    """Longer tiles are for grids that still fill the machine, whichever it is that tests run on."""
    if FORWARD_ONLY:
        return
    from triton.backends.autodiff.checking import facts

    count = facts.processors
    monkeypatch.setattr(facts, "processors", lambda d: 2 if d.type == "cpu" else count(d))


def widened(ran) -> int:
    return sum("_wide" in name for name in ran.names)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", SIZES)
def test_products(device, ran, name, dtype):
    (m, n, k), wide = SIZES[name]
    a, b = (
        random_tensor(m, k, device=device, dtype=dtype),
        random_tensor(k, n, device=device, dtype=dtype),
    )

    def launch(kernel, a, b):
        return mm.matmul(kernel, a, b, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32)

    assert_gradients_close(differentiated(mm.matmul_kernel, launch), torch.matmul, (a, b))
    if ran is not None and device == "cpu":
        assert widened(ran) == wide, ran.names


@pytest.mark.parametrize("transposed", ["a", "b", "both"])
def test_strides(device, transposed):
    """Strides other than one along the axis that becomes longer."""
    a, b = random_tensor(128, 64, device=device), random_tensor(64, 256, device=device)
    if transposed != "b":
        a = a.detach().t().contiguous().t().requires_grad_()
    if transposed != "a":
        b = b.detach().t().contiguous().t().requires_grad_()

    def launch(kernel, a, b):
        return mm.matmul(kernel, a, b, BLOCK_M=64, BLOCK_N=128, BLOCK_K=32)

    assert_gradients_close(differentiated(mm.matmul_kernel, launch), torch.matmul, (a, b))


@pytest.mark.parametrize("k", [128, 120, 96])
def test_values_of_the_index(device, ran, k):
    """What is computed from the index, or loaded there, belongs to the longer tile's index."""
    a, b = random_tensor(128, k, device=device), random_tensor(k, 130, device=device)
    s = random_tensor(k, device=device)
    op = differentiated(tiles.weighted_matmul_kernel, tiles.weighted_matmul)
    assert_gradients_close(op, tiles.weighted_matmul_reference, (a, b, s))
    if ran is not None and device == "cpu":
        assert widened(ran) >= 1, ran.names


@pytest.mark.parametrize("causal", [False, True])
def test_shorter_steps(device, causal):
    """The kernel for keys advances by less than the forward's 128 queries."""
    # On a GPU, products of float32 tiles would be rounded to tf32.
    q, k, v = (random_tensor(1, 2, 256, 32, device=device, dtype=torch.float16) for _ in range(3))

    def launch(kernel, q, k, v):
        return flash.attention(kernel, q, k, v, causal, 0.2, BLOCK_M=128, BLOCK_N=64)

    def reference(q, k, v):
        return flash.reference(q, k, v, causal, 0.2)

    assert_gradients_close(differentiated(flash.attention_kernel, launch), reference, (q, k, v))


# Large tiles, which programs go over in pieces.


def assert_in_pieces(op, *inputs):
    """The kernel has no loops, its backward has."""
    if not FORWARD_ONLY:
        assert "scf.for" in op.backward_ir(*inputs)


@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("shape", [(16, 2048), (11, 1500), (2048, 16), (1300, 9), (256, 128)])
def test_standardize(device, shape, axis):
    """Several stages of sums, over rows that are short or long, and with tails."""
    x, w = random_tensor(*shape, device=device), random_tensor(shape[0], device=device)
    op = differentiated(large_tiles.standardize_kernel, large_tiles.standardize)
    assert_gradients_close(op, large_tiles.standardize_reference, (x, w, axis))
    # Sums along the shorter axis alone leave the kernel whole.
    if axis == 2 or shape[axis] == max(shape):
        assert_in_pieces(op, x, w, axis)


@pytest.mark.parametrize("rows, columns", [(256, 128), (32, 1000)])
def test_repeated_rows(device, rows, columns):
    """Tiles that are added atomically, and sums that are stored in every piece."""
    x, s = random_tensor(7, columns, device=device), random_tensor(columns, device=device)
    at = torch.randint(7, (rows,), device=device)
    op = differentiated(large_tiles.gather_rows_kernel, large_tiles.gather_rows)
    assert_gradients_close(op, large_tiles.gather_rows_reference, (x, at, s))
    assert_in_pieces(op, x, at, s)


# Rows, keys, values, and values that a program takes, if not all.
CHUNKS = {
    "one program": (64, 128, 128, None),
    "masked": (64, 100, 120, None),
    "several programs": (64, 128, 300, 128),
    "few values": (64, 128, 32, None),
    "two axes": (64, 256, 256, None),
}
# Operands of halves are in shared memory once, and need larger tiles not to fit. The forward, which
# is as the user wrote it, has to fit on Hopper.
CHUNKS_OF_HALVES = {
    "one program": (128, 128, 256, None),
    "masked": (128, 100, 240, None),
    "several programs": (128, 128, 600, 256),
    "few values": (128, 128, 64, None),
    "two axes": (64, 256, 256, None),
}


def chunk_sizes(name, is_half):
    """Return what a list has for a name."""
    return (CHUNKS_OF_HALVES if is_half else CHUNKS)[name]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float16], ids=str)
@pytest.mark.parametrize("name", CHUNKS)
def test_products_of_large_tiles(device, name, dtype):
    """Operands of products that shared memory does not hold."""
    rows, keys, values, block = chunk_sizes(name, dtype == torch.float16)
    q, k = (random_tensor(rows, keys, device=device, dtype=dtype, scale=0.1) for _ in range(2))
    v = random_tensor(rows, values, device=device, dtype=dtype)
    h = random_tensor(keys, values, device=device, dtype=dtype, scale=0.1)
    w = random_tensor(rows, device=device, dtype=dtype)

    def launch(kernel, *inputs):
        return large_tiles.chunk(kernel, *inputs, block)

    op = differentiated(large_tiles.chunk_kernel, launch)
    assert_gradients_close(op, large_tiles.chunk_reference, (q, k, v, h, w))
    if name != "few values" and not FORWARD_ONLY:
        # The largest tile is nowhere whole.
        columns = block or triton.next_power_of_2(values)
        rows = triton.next_power_of_2(keys)
        assert f"tensor<{rows}x{columns}x" not in op.backward_ir(q, k, v, h, w)


@pytest.mark.parametrize("name", ["one program", "few values", "two axes"])
@pytest.mark.parametrize("dtype", ["fp32", "fp16"])
def test_large_tiles_fit_hopper(name, dtype):
    """With one pipeline stage, to which a launch falls back. The forward is not divided."""
    if (name, dtype) == ("two axes", "fp32"):
        pytest.skip("one of its tiles is larger than the shared memory")
    import hopper

    rows, keys, values, block = chunk_sizes(name, dtype == "fp16")
    constants = {
        "ROWS": rows,
        "KEYS": triton.next_power_of_2(keys),
        "VALUES": block or triton.next_power_of_2(values),
        "PRECISION": "tf32",
    }
    types = [f"*{dtype}"] * 6 + ["i32", "i32"]
    text = hopper.ttir(large_tiles.chunk_kernel, types, constants)
    assert hopper.compiled_text(text, num_stages=1).metadata.shared <= hopper.SHARED_MEMORY
    for kernel in hopper.plan_of(text)["backward"]:
        assert hopper.shared_memory(kernel) <= hopper.SHARED_MEMORY


def test_products_in_an_order_that_fits():
    """Where memory has an order, tiles are not divided: products come when it is there for them."""
    import hopper
    from triton.backends.autodiff.inspecting import corpus

    device, constants = corpus.parse_target("cuda:89"), {"ROWS": 64, "SIZE": 128}
    text = hopper.ttir(large_tiles.exchanged_product_kernel, ["*fp32"] * 3, constants, True)
    (kernel,) = hopper.plan_of(text, device)["backward"]
    for own in (text, kernel["ttir"]):
        options = {"num_warps": 8, "num_stages": 1}
        compiled = corpus.compiled_ttir(own, device, assemble=False, options=options)
        assert compiled.metadata.shared <= 99 * 1024
