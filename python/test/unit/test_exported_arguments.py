"""Exported modules whose launches take tuples and tensor descriptors."""

import pytest
import torch
import triton
import triton.language as tl
from exporting import (
    assert_other_layouts,
    assert_other_sizes,
    exported,
    passes_ruff,
    run,
    tensors,
)
from triton.backends.autodiff import autodiff
from triton.tools.tensor_descriptor import TensorDescriptor


@triton.jit
def tuple_kernel(given, y_ptr, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    inside = i < given[1][0]
    x = tl.load(given[0][0] + i, inside)
    w = tl.load(given[0][1] + i, inside)
    tl.store(y_ptr + i, x * w + given[1][1] * x, inside)


def in_tuples(kernel, x, w, scale):
    """Nested, with a number, and with a constant."""
    y = torch.empty_like(x)
    n = x.numel()
    kernel[(triton.cdiv(n, 32),)](((x, w), (n, scale), None), y, BLOCK=32)
    return y


@triton.jit
def multiply_kernel(a_desc, b_desc, c_desc, K, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    total = tl.zeros([M, N], tl.float32)
    for k in range(0, K, D):
        total += tl.dot(a_desc.load([row, k]), b_desc.load([k, column]))
    c_desc.store([row, column], total.to(c_desc.dtype))


def multiply(kernel, a, b):
    """A product by descriptors from the host, the part at the end of K padded with zeros."""
    (m, k), n = a.shape, b.shape[1]
    c = a.new_empty(m, n)
    blocks = [(a, [32, 16]), (b, [16, 32]), (c, [32, 32])]
    described = [TensorDescriptor.from_tensor(tensor, block) for tensor, block in blocks]
    kernel[(triton.cdiv(m, 32), triton.cdiv(n, 32))](*described, k, M=32, N=32, D=16)
    return c


@triton.jit
def weigh_kernel(x_desc, w_desc, y_desc, M: tl.constexpr, N: tl.constexpr):
    row, column = tl.program_id(0) * M, tl.program_id(1) * N
    w = w_desc.load([0, column])
    y_desc.store([row, column], tl.exp(x_desc.load([row, column])) * w)


def weigh(kernel, x, w):
    """One of them has a single row, and the gradient of it is added up."""
    y = torch.empty_like(x)
    blocks = [(x, [16, 32]), (w.unsqueeze(0), [1, 32]), (y, [16, 32])]
    described = [TensorDescriptor.from_tensor(tensor, block) for tensor, block in blocks]
    grid = triton.cdiv(x.shape[0], 16), triton.cdiv(x.shape[1], 32)
    kernel[grid](*described, M=16, N=32)
    return y


@triton.jit
def own_kernel(x_ptr, y_ptr, m, n, M: tl.constexpr, N: tl.constexpr):
    x_desc = tl.make_tensor_descriptor(x_ptr, [m, n], [n, 1], [M, N])
    y_desc = tl.make_tensor_descriptor(y_ptr, [m, n], [n, 1], [M, N])
    row = tl.program_id(0) * M
    for i in range(0, n, N):
        y_desc.store([row, i], tl.exp(x_desc.load([row, i])))


def own(kernel, x):
    """Descriptors that the kernel makes."""
    y = torch.empty_like(x)
    kernel[(triton.cdiv(x.shape[0], 16),)](x, y, *x.shape, M=16, N=32)
    return y


@triton.jit
def turns_kernel(x_desc, z_desc, y_desc, which, M: tl.constexpr, N: tl.constexpr):
    """Descriptors that a branch chooses, and a loop swaps."""
    now, then = x_desc, z_desc
    if which > 1:
        now, then = z_desc, x_desc
    row = tl.program_id(0) * M
    for i in range(0, now.shape[1], N):
        x = now.load([row, i])
        y_desc.store([row, i], x * x)
        now, then = then, now


def turns(kernel, x, z, which):
    y = torch.empty_like(x)
    described = [TensorDescriptor.from_tensor(tensor, [16, 32]) for tensor in (x, z, y)]
    kernel[(triton.cdiv(x.shape[0], 16),)](*described, which, M=16, N=32)
    return y


def two_and_a_number(dtype, device, m, n, number):
    return [*tensors((m, n), (m, n), dtype=dtype, device=device), number]


def pairs(dtype, device, n):
    return [*tensors((n,), (n,), dtype=dtype, device=device), 0.5]


def factors(dtype, device, m, k, n):
    return tensors((m, k), (k, n), dtype=dtype, device=device)


def weights(dtype, device, m, n):
    return tensors((m, n), (n,), dtype=dtype, device=device)


def rows(dtype, device, m, n):
    return tensors((m, n), dtype=dtype, device=device)


half, single = torch.float16, torch.float32
# As in test_export.py. Rows of descriptors begin at multiples of 16 bytes.
FORMS = {
    "tuples": (
        autodiff(tuple_kernel, in_tuples),
        (pairs, single),
        [(100,), (33,), (1,), (36,), (257,), (500,)],
    ),
    "product": (
        autodiff(multiply_kernel, multiply),
        (factors, half),
        [(40, 24, 56), (64, 40, 24), (9, 8, 40), (100, 56, 88), (33, 24, 24), (31, 104, 40)],
    ),
    "weights": (
        autodiff(weigh_kernel, weigh),
        (weights, single),
        [(50, 36), (1, 44), (33, 60), (17, 4), (100, 76), (16, 52)],
    ),
    "in turns": (
        autodiff(turns_kernel, turns),
        (two_and_a_number, single),
        [(50, 36, 2), (2, 44, 3), (33, 60, 0), (17, 4, 2), (100, 76, -1), (19, 100, 7)],
    ),
    "its own": (
        autodiff(own_kernel, own),
        (rows, single),
        [(50, 36), (2, 44), (33, 60), (17, 4), (100, 76), (19, 52)],
    ),
}


@pytest.fixture(autouse=True)
def memory_for_descriptors(device):
    if device == "cuda":
        triton.set_allocator(lambda size, _, __: torch.empty(size, dtype=torch.int8, device="cuda"))


@pytest.mark.parametrize("form", FORMS)
def test_other_sizes(form, device, tmp_path):
    op, (make, dtype), sizes = FORMS[form]
    arguments = (make(dtype, device, *size) for size in sizes)
    # Programs add to the gradient of the weights in any order.
    assert_other_sizes(op, tmp_path, arguments, exact=form != "weights")


@pytest.mark.parametrize("form", FORMS)
def test_other_types(form, device, tmp_path):
    op, (make, dtype), (first, *_) = FORMS[form]
    twin = exported(op, tmp_path, *make(dtype, device, *first))
    other = torch.bfloat16 if dtype == half else torch.float64
    with pytest.raises(AssertionError, match=f"was of {dtype}, it is of {other}"):
        run(twin, make(other, device, *first))


@pytest.mark.parametrize("form", FORMS)
def test_ruff(form, device, tmp_path):
    pytest.importorskip("ruff")
    op, (make, dtype), (first, *_) = FORMS[form]
    passes_ruff(op.export(tmp_path / "exported.py", *make(dtype, device, *first)))


def test_other_layouts(device, tmp_path):
    """Parts of wider tensors: equal, or refused."""
    op, (make, dtype), (first, *_) = FORMS["product"]
    a, b = make(dtype, device, *first)
    twin = exported(op, tmp_path, a, b)
    wide = torch.randn(a.shape[0], 2 * a.shape[1], dtype=dtype, device=device)
    assert_other_layouts(op, twin, (wide[:, : a.shape[1]], wide[:, a.shape[1] :]), b)


def test_other_parts(device, tmp_path):
    """What else Triton compiles for, and what plans know, is asserted."""
    x, w, scale = pairs(single, device, 100)
    twin = exported(FORMS["tuples"][0], tmp_path, x, w, scale)
    kernel = twin.__globals__["tuple_kernel"]
    y = torch.empty_like(x)
    for given, words in (
        ((x, w), r"given was a tuple of 3"),
        (((x, w, x), (100, 0.5), None), r"given\[0\] was a tuple of 2"),
        (((x, w), (100, 0.5), 1), r"given\[2\] was None, it is 1"),
        (((x, w), (100, 1), None), r"given\[1\]\[1\] was a float"),
        (((x, w), (96, 0.5), None), "the kernel reached each element of"),
    ):
        with pytest.raises(AssertionError, match=words):
            kernel[(4,)](given, y, BLOCK=32)


def test_other_descriptors(device, tmp_path):
    x, w = weights(single, device, 50, 36)
    twin = exported(FORMS["weights"][0], tmp_path, x, w)
    kernel = twin.__globals__["weigh_kernel"]
    y = torch.empty_like(x)

    def launch(*, block=(16, 32), padding="zero", given=x):
        describe = TensorDescriptor.from_tensor
        first = given if given is not x else describe(x, list(block), padding)
        w_desc = describe(w.unsqueeze(0), [1, 32])
        kernel[(4, 2)](first, w_desc, describe(y, [16, 32]), M=16, N=32)

    launch()
    for words, other in (
        (r"x_desc.block_shape was \[16, 32\], it is \[32, 32\]", {"block": (32, 32)}),
        ("x_desc.is_nan was False, it is True", {"padding": "nan"}),
        ("x_desc was a TensorDescriptor, it is", {"given": w}),
    ):
        with pytest.raises(AssertionError, match=words):
            launch(**other)


def test_how_many_integers_are_read():
    from triton.backends.autodiff.exporting.exported import integers_of

    assert integers_of(torch.arange(4096)) == tuple(range(4096))
    with pytest.raises(AssertionError, match="4097 integers are too many"):
        integers_of(torch.arange(4097))


@pytest.mark.parametrize("pair", ["ab", "ac", "bc"])
@pytest.mark.parametrize("written", ["a", "b", "c"])
def test_tensors_that_share_memory(pair, written):
    """Any two, of which one is written, share memory if they did before, from its first element."""
    from triton.backends.autodiff.exporting.exported import require_meetings

    def required(offset, meetings):
        tensors = {name: torch.zeros(8) for name in "abc"}
        tensors[pair[1]] = torch.as_strided(tensors[pair[0]], (4,), (1,), offset)
        require_meetings(tensors, (written,), meetings)

    if written not in pair:
        return required(2, ())
    required(0, (tuple(pair),))
    for offset, meetings in [(0, ()), (2, ()), (2, (tuple(pair),))]:
        with pytest.raises(AssertionError, match=f"{pair[0]} and {pair[1]} share memory"):
            required(offset, meetings)
    # What met before is apart now.
    with pytest.raises(AssertionError, match="shared memory: not as before"):
        require_meetings({name: torch.zeros(8) for name in "abc"}, (written,), (tuple(pair),))
