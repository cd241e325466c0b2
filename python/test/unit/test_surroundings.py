"""Kernels that read, or store, around the tensors that they are given, and beyond all memory."""

import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor
from torch.utils.checkpoint import checkpoint

pytestmark = pytest.mark.usefixtures("needs_gradients")

# Beyond the storage: what is read there leads to nothing that is stored.


def amid(tensor, before=0, behind=0):
    """A leaf with a storage of its own, and NaN around that, which may be read.

    It is allocated: a GPU does not read what is not, and the forward reads beyond the storage.
    """
    pool = tensor.new_full((before + tensor.numel() + behind,), float("nan"))
    part = pool[before:][: tensor.numel()].view(tensor.shape).copy_(tensor.detach())
    alone = torch.from_dlpack(part)
    assert alone.untyped_storage().nbytes() == tensor.numel() * tensor.element_size()
    return alone.requires_grad_()


@triton.jit
def tails_kernel(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    w = tl.load(w_ptr + tl.arange(0, BLOCK))
    tl.store(y_ptr + i, tl.where(i < n, x * w, 0), mask=i < n)


@triton.jit
def rows_kernel(x_ptr, b_ptr, y_ptr, rows, columns, stride, M: tl.constexpr, N: tl.constexpr):
    """A pointer that moves before it is used, in front of the tensor, too."""
    i = tl.program_id(0) * M + tl.arange(0, M)[:, None]
    j = tl.arange(0, N)[None, :]
    x_ptr += (tl.program_id(0) * M - 1) * stride
    x = tl.load(x_ptr + (tl.arange(0, M)[:, None] + 1) * stride + j)
    before = tl.load(x_ptr + tl.arange(0, M)[:, None] * stride + j)
    inside = (i < rows) & (j < columns)
    b = tl.load(b_ptr + j)
    y = tl.where(inside, x * b, 0) + tl.where(inside & (i > 0), before, 0)
    tl.store(y_ptr + i * columns + j, y, mask=inside)


@triton.jit
def summed_rows_kernel(x_ptr, y_ptr, rows, columns, N: tl.constexpr):
    """A loop of more iterations than there are rows."""
    j = tl.arange(0, N)
    total = tl.zeros((N,), tl.float32)
    for i in range(0, tl.cdiv(rows, 8) * 8):
        x = tl.load(x_ptr + i * columns + j)
        total += tl.where((i < rows) & (j < columns), x * x, 0)
    tl.store(y_ptr + j, total, mask=j < columns)


@triton.jit
def rows_of_table_kernel(x_ptr, index_ptr, y_ptr, columns, M: tl.constexpr, N: tl.constexpr):
    """Rows from anywhere, of which only those of the table count; tiles are wider than these."""
    i, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    index = tl.load(index_ptr + i)
    x = tl.load(x_ptr + index[:, None] * columns + j[None, :])
    counts = (index >= 0)[:, None] & (j < columns)[None, :]
    tl.store(y_ptr + i[:, None] * columns + j[None, :], tl.where(counts, x * x, 0),
             mask=(j < columns)[None, :])  # fmt: skip


@triton.jit
def elements_kernel(x_ptr, index_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    index = tl.load(index_ptr + i, mask=i < n, other=1 << 20)
    x = tl.load(x_ptr + index, mask=i < n)
    x = tl.where((index >= 0) & (index < 50), x, 0)
    tl.store(y_ptr + i, x * x * x, mask=i < n)


DTYPES = [torch.float32, torch.float16, torch.float64]
each_dtype = pytest.mark.parametrize("dtype", DTYPES, ids=str)


@each_dtype
@pytest.mark.parametrize("n, block", [(100, 4096), (100, 32), (1000, 128), (1, 16)])
def test_tails(device, differentiable, guarded, dtype, n, block):
    """Tiles that are longer than the tensor, which only the store's mask cuts off."""
    kernel = differentiable(tails_kernel)

    def op(x, w):
        y = torch.empty_like(x)
        kernel[(triton.cdiv(n, block),)](x, w, y, n, BLOCK=block)
        return y

    x, w = (random_tensor(n, device=device, dtype=dtype) for _ in range(2))
    # Garbage beyond the storage is never stored, but may be anything: it is put inside of one.
    pool = torch.full((3 * n + 8192,), float("nan"), device=device, dtype=dtype)
    x, w = (pool[64 + k * (n + 4096) :][:n].copy_(t.detach()) for k, t in enumerate((x, w)))
    x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
    before = pool.clone()
    place = torch.arange(n, device=device) % block
    assert_gradients_close(op, lambda x, w: x * w[place], (x, w), updates=n // block)
    torch.testing.assert_close(pool, before, equal_nan=True, rtol=0, atol=0)


@each_dtype
@pytest.mark.parametrize("rows, columns", [(5, 20), (16, 32), (33, 7)])
def test_rows(device, differentiable, guarded, dtype, rows, columns):
    kernel = differentiable(rows_kernel)

    def op(x, b):
        y = torch.empty(rows, columns, device=device, dtype=dtype)
        grid = (triton.cdiv(rows, 8),)
        kernel[grid](x, b, y, rows, columns, x.stride(0), M=8, N=32)
        return y

    def reference(x, b):
        return x * b + torch.cat([torch.zeros_like(x[:1]), x[:-1]])

    x, b = (
        random_tensor(*shape, device=device, dtype=dtype) for shape in [(rows, columns), (columns,)]
    )
    x, b = amid(x, before=columns, behind=8 * columns + 32), amid(b, behind=32)
    assert_gradients_close(op, reference, (x, b), updates=rows)


def test_rows_in_a_loop(device, differentiable, guarded):
    kernel = differentiable(summed_rows_kernel)

    def op(x):
        y = torch.empty(x.shape[1], device=device)
        kernel[(1,)](x, y, *x.shape, N=64)
        return y

    x = amid(random_tensor(13, 50, device=device), behind=3 * 50 + 64)
    assert_gradients_close(op, lambda x: (x * x).sum(0), (x,), roundings=16)


@each_dtype
@pytest.mark.parametrize("schedules", [None, []])
def test_rows_of_a_table(device, differentiable, guarded, dtype, schedules):
    options = {} if schedules is None else {"backward": {"schedules": schedules}}
    kernel = differentiable(rows_of_table_kernel, **options)

    def op(x, index):
        y = torch.empty(len(index), x.shape[1], device=device, dtype=dtype)
        kernel[(triton.cdiv(len(index), 8),)](x, index, y, x.shape[1], M=8, N=32)
        return y

    def reference(x, index):
        return torch.where(index[:, None] >= 0, x[index.clamp(min=0)] ** 2, 0)

    x = random_tensor(17, 21, device=device, dtype=dtype)
    x = amid(x, before=100_000 * 21, behind=32)
    index = torch.randint(0, 17, (40,), device=device)
    index[::5], index[7] = -100_000, 16
    assert_gradients_close(op, reference, (x, index), updates=40)


@each_dtype
def test_elements_from_anywhere(device, differentiable, guarded, dtype):
    """Each lane has an address of its own, 64 bits long."""
    kernel = differentiable(elements_kernel)

    def op(x, index):
        y = torch.empty(len(index), device=device, dtype=dtype)
        kernel[(triton.cdiv(len(index), 32),)](x, index, y, len(index), BLOCK=32)
        return y

    def reference(x, index):
        inside = (index >= 0) & (index < 50)
        return torch.where(inside, x[index.clamp(0, 49)] ** 3, 0)

    x = random_tensor(50, device=device, dtype=dtype)
    index = torch.randint(0, 50, (90,), device=device)
    # A forward may read there: it is inside of the memory of this process, or page, as it were.
    index[3::7], index[5::7] = -20, 70
    pool = torch.zeros(200, device=device, dtype=dtype)
    x = pool[100:150].copy_(x.detach()).detach().requires_grad_()
    assert_gradients_close(op, reference, (x, index), updates=90)


# Around a tensor, in the same storage.


@triton.jit
def reversed_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr - i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x, mask=i < n)


@triton.jit
def differences_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i, mask=mask)
    tl.store(y_ptr + i, x * x - tl.load(x_ptr + i - 1, mask=mask), mask=mask)


@triton.jit
def neighbours_kernel(x_ptr, y_ptr, n, stride, BLOCK: tl.constexpr):
    """The element behind each of a strided tensor."""
    i = tl.arange(0, BLOCK)
    mask = i < n
    x = tl.load(x_ptr + i * stride, mask=mask)
    tl.store(y_ptr + i, x * tl.load(x_ptr + i * stride + 1, mask=mask), mask=mask)


@triton.jit
def weighed_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    """What counts is told by a factor, not by a mask."""
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr, tl.sum(x * x * (i < n).to(tl.float32), 0))


def _differences(kernel, x):
    y = torch.empty_like(x)
    kernel[(triton.cdiv(len(x), 16),)](x, y, len(x), BLOCK=16)
    return y


def _true_differences(x):
    return x[1:] ** 2 - x[:-1]


@each_dtype
def test_in_front_of_a_view(device, differentiable, dtype):
    kernel = differentiable(differences_kernel)
    base = random_tensor(51, device=device, dtype=dtype)
    assert_gradients_close(
        lambda b: _differences(kernel, b[1:]), _true_differences, (base,), updates=1
    )


def test_backwards_from_the_last_element(device, differentiable):
    kernel = differentiable(reversed_kernel)

    def op(base):
        y = torch.empty(50, device=device)
        kernel[(1,)](base[99:], y, 50, BLOCK=64)
        return y

    base = random_tensor(100, device=device)
    assert_gradients_close(op, lambda b: b[50:].flip(0) ** 2, (base,))


def test_between_the_elements_of_a_view(device, differentiable):
    kernel = differentiable(neighbours_kernel)

    def op(base):
        y = torch.empty(20, device=device)
        kernel[(1,)](base[:, 0], y, 20, 3, BLOCK=32)
        return y

    base = random_tensor(20, 3, device=device)
    assert_gradients_close(op, lambda b: b[:, 0] * b[:, 1], (base,))


@triton.jit
def odd_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + 1 + 2 * i, i < n)
    tl.store(y_ptr + i, x * x, i < n)


def test_between_the_elements_of_a_repeated_view(device, differentiable):
    """Of the rows, which are all one, it reads what is between the elements."""

    def op(x):
        y = x.new_empty(3)
        differentiable(odd_kernel)[(1,)](x[::2].unsqueeze(0).expand(3, 4), y, 3, BLOCK=4)
        return y

    x = random_tensor(8, device=device)
    assert_gradients_close(lambda x: op(x * 1), lambda x: x[1:6:2] ** 2, (x,))


def test_view_of_a_view_that_has_changed(device, differentiable):
    """The gradient goes to what the base was when the kernel read it, and on from there."""
    kernel = differentiable(differences_kernel)
    leaf = random_tensor(60, device=device)

    def build(leaf, differences):
        base = leaf * 3
        view = base[4:][2:50]
        base[5:20].mul_(2)
        return differences(base, view)

    def reference(leaf):
        return build(leaf, lambda base, view: _true_differences(base[5:54]))

    assert_gradients_close(
        lambda x: build(x, lambda base, view: _differences(kernel, view)), reference, (leaf,)
    )


def test_what_else_a_view_is_used_for(device, differentiable):
    """Hooks of the view see its gradient, and it may be what a gradient is asked for."""
    kernel = differentiable(differences_kernel)
    base = random_tensor(40, device=device)
    view, seen = base[1:], []
    view.register_hook(seen.append)
    y = _differences(kernel, view)
    upstream = torch.randn_like(y)
    (own,) = torch.autograd.grad(y, view, upstream, retain_graph=True)
    expected = 2 * view.detach() * upstream
    expected[:-1] -= upstream[1:]
    torch.testing.assert_close(own, expected)
    y.backward(upstream)
    torch.testing.assert_close(seen[-1], expected)
    expected = torch.cat([-upstream[:1], expected])
    torch.testing.assert_close(base.grad, expected)


@pytest.mark.parametrize("kind", ["save_on_cpu", "checkpoint", "two views"])
def test_around_a_view_under_hooks(device, differentiable, kind):
    kernel = differentiable(differences_kernel)
    base = random_tensor(40, device=device)

    def op(base):
        if kind == "save_on_cpu":
            with torch.autograd.graph.save_on_cpu():
                return _differences(kernel, base[1:])
        if kind == "checkpoint":
            return checkpoint(lambda b: _differences(kernel, b[1:]), base, use_reentrant=False)
        return _differences(kernel, base[1:]) + _differences(kernel, (base * 2)[1:])

    def reference(base):
        if kind == "two views":
            return _true_differences(base) + _true_differences(2 * base)
        return _true_differences(base)

    assert_gradients_close(op, reference, (base,))


@pytest.mark.parametrize("kind", ["detached", "leaf"])
def test_no_tensor_to_give_it_to(device, differentiable, kind):
    from triton.backends.autodiff import AutodiffError

    kernel = differentiable(differences_kernel)
    base = torch.randn(40, device=device)
    view = base[1:].requires_grad_() if kind == "leaf" else base[1:].detach().requires_grad_()
    y = _differences(kernel, view)
    with pytest.raises(AutodiffError, match=r"'x_ptr'.*reads around it.* elements -1 to -1"):
        y.sum().backward()


def test_between_the_elements_of_a_leaf(device, differentiable):
    """Nothing is in front of its first element, or behind its last; so with a base and without."""
    from triton.backends.autodiff import AutodiffError

    kernel = differentiable(neighbours_kernel)
    base = random_tensor(20, 3, device=device)
    for _ in range(2):
        lonely, y = base.detach()[:, 0].requires_grad_(), torch.empty(19, device=device)
        kernel[(1,)](lonely, y, 19, 3, BLOCK=32)
        with pytest.raises(AutodiffError, match="'x_ptr'.*reads around it.* elements 1 to 55"):
            y.sum().backward()
        y = torch.empty(19, device=device)
        kernel[(1,)](base[:, 0], y, 19, 3, BLOCK=32)
        (gradient,) = torch.autograd.grad(y.sum(), base)
        expected = torch.zeros_like(base)
        expected[:19, :2] = base.detach()[:19, :2].flip(1)
        torch.testing.assert_close(gradient, expected)


def test_what_counts_for_nothing(device, differentiable):
    """Whether there is a gradient around the tensor, the numbers say."""
    kernel = differentiable(weighed_kernel)
    pool = torch.randn(64, device=device)
    x, y = pool[:40].detach().requires_grad_(), torch.empty(1, device=device)
    kernel[(1,)](x, y, 40, BLOCK=64)
    y.backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())


def test_shape_that_is_known_from_before(device, differentiable):
    """Launches that differ in what the argument is a view of, or whether, are told apart."""
    from triton.backends.autodiff import AutodiffError

    kernel = differentiable(differences_kernel)
    for size in (40, 60, 40):
        base = random_tensor(size, device=device)
        _differences(kernel, base[1:33]).sum().backward()
        expected = 2 * base.detach() - 1
        expected[0], expected[32], expected[33:] = -1, 2 * base.detach()[32], 0
        torch.testing.assert_close(base.grad, expected)
        lonely = torch.randn(size, device=device)[1:33].requires_grad_()
        with pytest.raises(AutodiffError, match="x_ptr"):
            _differences(kernel, lonely).sum().backward()


@triton.jit
def store_behind_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i + 1, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)


def test_stores_around_a_view(device, differentiable):
    from triton.backends.autodiff import AutodiffError

    kernel = differentiable(store_behind_kernel)
    x, buffer = random_tensor(20, device=device), torch.zeros(40, device=device)
    kernel[(1,)](x, buffer[10:30], 20, BLOCK=32)
    # What is not asked for is not missing, and there is no gradient of what nobody has stored.
    expected = torch.full_like(x, 2)
    expected[19] = 0
    for output in (buffer[10:30], buffer[:30], torch.cat([buffer[:30], buffer[31:]])):
        (gradient,) = torch.autograd.grad(output.sum(), x, retain_graph=True)
        torch.testing.assert_close(gradient, expected)
    with pytest.raises(AutodiffError, match=r"'y_ptr'.*stores around it at .*elements 1 to 20"):
        buffer.sum().backward()
    buffer = torch.zeros(40, device=device)
    kernel[(1,)](x, buffer, 20, BLOCK=32)
    buffer.sum().backward()
    torch.testing.assert_close(x.grad, torch.full_like(x, 2))


@triton.jit
def picked_kernel(x_ptr, index_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + tl.load(index_ptr + i)) * 3)


@pytest.mark.parametrize("inside", [True, False])
def test_loaded_addresses_around_a_view(device, differentiable, monkeypatch, inside):
    """Only a run that checks accesses can tell."""
    from triton.backends.autodiff.errors import BoundsError
    from triton.backends.autodiff.launching import state

    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    monkeypatch.setattr(state, "_ATTRIBUTE", "_surroundings_state")
    kernel = differentiable(picked_kernel)
    base = random_tensor(40, device=device)
    index = torch.randint(0, 20, (16,), device=device)
    index[4] = 5 if inside else -3
    y = torch.empty(16, device=device)
    kernel[(1,)](base[10:30], index, y, BLOCK=16)
    if inside:
        y.sum().backward()
        expected = torch.zeros(40, device=device).index_add_(
            0, index + 10, torch.full((16,), 3.0).to(device)
        )
        torch.testing.assert_close(base.grad, expected)
    else:
        with pytest.raises(BoundsError, match="'x_ptr'.*elements -3 to -3"):
            y.sum().backward()
