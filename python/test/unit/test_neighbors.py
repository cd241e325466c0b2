"""Arguments that are parts of one tensor, and kernels that read or store around them."""

import pytest
import torch
import triton
import triton.language as tl
from exporting import module_at
from gradients import random_tensor
from torch.autograd.graph import saved_tensors_hooks
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton_autodiff.checking.accesses import in_one_storage
from triton_autodiff.errors import ArgumentError

pytestmark = pytest.mark.usefixtures("needs_gradients")
N = 16


@triton.jit
def reads_behind_kernel(x_ptr, w_ptr, y_ptr, far, B: tl.constexpr):
    i = tl.arange(0, B)
    product = tl.load(x_ptr + i) * tl.load(x_ptr + far + i)
    tl.store(y_ptr + i, tl.load(w_ptr + i) * tl.sin(product))


@triton.jit
def doubled_kernel(x_ptr, w_ptr, y_ptr, far, B: tl.constexpr):
    i = tl.arange(0, B)
    w = tl.load(w_ptr + i)
    tl.store(y_ptr + i, w * w * tl.sin(tl.load(x_ptr + i) * tl.load(x_ptr + far + i)))


@triton.jit
def branches_kernel(x_ptr, w_ptr, y_ptr, rows, B: tl.constexpr):
    """The last program reads no row of its own, and none behind the tensor."""
    row, i = tl.program_id(0), tl.arange(0, B)
    x = tl.load(w_ptr + i) * 0
    if row < rows:
        x = tl.load(x_ptr + row * B + i)
    tl.store(y_ptr + row * B + i, tl.load(w_ptr + i) * tl.sin(x))


@triton.jit
def steps_kernel(h_ptr, w_ptr, y_ptr, steps, n, B: tl.constexpr):
    """Each step reads what the one before it has stored, if y lies behind h."""
    i = tl.arange(0, B)
    for t in range(steps):
        h = tl.load(h_ptr + t * n + i)
        tl.store(y_ptr + t * n + i, tl.load(w_ptr + i) * tl.sin(h))


@triton.jit
def stores_behind_kernel(x_ptr, w_ptr, y_ptr, far, B: tl.constexpr):
    i = tl.arange(0, B)
    a, w = tl.load(x_ptr + i), tl.load(w_ptr + i)
    tl.store(y_ptr + i, w * tl.sin(a))
    tl.store(y_ptr + far + i, w * 0)


@triton.jit
def two_outputs_kernel(x_ptr, y_ptr, z_ptr, far, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)
    tl.store(y_ptr + far + i, x)
    tl.store(z_ptr + i, x * x * x)


@triton.jit
def in_place_kernel(x_ptr, w_ptr, far, B: tl.constexpr):
    i = tl.arange(0, B)
    product = tl.load(x_ptr + i) * tl.load(x_ptr + far + i)
    tl.store(x_ptr + i, tl.load(w_ptr + i) * tl.sin(product))


def close(found, right):
    for ours, theirs in zip(found, right, strict=True):
        torch.testing.assert_close(ours, theirs)


def upstream(tensor):
    return torch.randn(tensor.shape, device=tensor.device)


@pytest.mark.parametrize("whole", [False, True])
def test_an_output_where_an_input_is_read_around(device, whole):
    x, w = (random_tensor(n, device=device) for n in (2 * N, N))
    base = x * 1
    differentiable(reads_behind_kernel)[(1,)](base if whole else base[:N], w, base[N:], N, B=N)
    u = upstream(base)
    right = torch.cat([x[:N], w * torch.sin(x[:N] * x[N:])])
    close(torch.autograd.grad((base * u).sum(), (w, x)), torch.autograd.grad(right, (w, x), u))


def test_the_same_launch_elsewhere(device):
    """All but a number, or the distance of the tensors, is as it was before."""
    kernel = differentiable(reads_behind_kernel)
    for far, place in ((2 * N, N), (N, N), (N, 2 * N), (N, N), (2 * N, 2 * N)):
        x, w = random_tensor(3 * N, device=device), random_tensor(N, device=device)
        base = x * 1
        kernel[(1,)](base[:N], w, base[place:][:N], far, B=N)
        u = upstream(base)
        right = x.clone()
        right[place:][:N] = w * torch.sin(x[:N] * x[far:][:N])
        close(torch.autograd.grad((base * u).sum(), (w, x)), torch.autograd.grad(right, (w, x), u))


def test_what_is_stored_where_it_is_read_later(device):
    steps = 5
    w, buffer = random_tensor(N, device=device), torch.zeros(steps + 1, N, device=device)
    with pytest.raises(ArgumentError, match="'y_ptr' and 'h_ptr'.* share memory"):
        differentiable(steps_kernel)[(1,)](buffer[0], w, buffer[1:], steps, N, B=N)
    apart = torch.zeros(2 * steps, N, device=device)
    h = apart[:steps].normal_().clone()
    differentiable(steps_kernel)[(1,)](apart[:steps], w, apart[steps:], steps, N, B=N)
    u = upstream(apart)
    found = torch.autograd.grad(apart, w, u)
    close(found, torch.autograd.grad(w * torch.sin(h), w, u[steps:]))


def test_an_input_where_an_output_is_stored_around(device):
    base, w = torch.randn(2 * N, device=device), random_tensor(N, device=device)
    x = base[N:].clone()
    y = base[:N]
    differentiable(stores_behind_kernel)[(1,)](base[N:], w, y, N, B=N)
    close(torch.autograd.grad(y.sum(), w), (torch.sin(x),))


def test_an_output_where_another_one_is_stored_around(device):
    x = random_tensor(N, device=device)
    base = torch.zeros(3 * N, device=device)
    with pytest.raises(ArgumentError, match="share memory, and the kernel writes to both"):
        differentiable(two_outputs_kernel)[(1,)](x, base[:N], base[N:], N, B=N)
    y, z = base[:N], base[2 * N :]
    differentiable(two_outputs_kernel)[(1,)](x, y, z, N, B=N)
    close(torch.autograd.grad(z.sum(), x), (3 * x * x,))


def test_rows_that_a_branch_leaves_out(device):
    """No program reads behind the tensor, so that nothing is stored where it is read."""
    w, base = random_tensor(N, device=device), torch.randn(5 * N, device=device)
    x = base[: 2 * N].clone().view(2, N)
    y = base[2 * N :]
    differentiable(branches_kernel)[(3,)](base[: 2 * N], w, y, 2, B=N)
    right = w * torch.sin(torch.cat([x, x.new_zeros(1, N)]))
    u = upstream(y)
    close(torch.autograd.grad(y, w, u), torch.autograd.grad(right.view(-1), w, u))


COPIES = {"none": lambda t: t, "clone": lambda t: t.clone(), "double": lambda t: t.double()}


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("before", [0, 1, 3])
def test_hooks_where_it_is_read_around(device, copy, before):
    """What autograd saves has all that is read."""
    base, w = torch.randn(4 * N, device=device), random_tensor(N, device=device)
    x, y = base[before:][:N], torch.empty(N, device=device)
    for far in (N, N + 5):
        with saved_tensors_hooks(copy, lambda t: t):
            differentiable(reads_behind_kernel)[(1,)](x, w, y.detach_(), far, B=N)
        product = x * base[before + far :][:N]
        close(torch.autograd.grad(y.sum(), w), (torch.sin(product),))


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("before", [0, 1])
def test_hooks_where_it_is_read_around_and_overwritten(device, copy, before):
    w, x = (random_tensor(n, device=device) for n in (N, before + 2 * N))
    base = x * 1
    with saved_tensors_hooks(copy, lambda t: t):
        differentiable(in_place_kernel)[(1,)](base[before:][:N], w, N, B=N)
    u = upstream(base)[before:][:N]
    right = w * torch.sin(x[before:][:N] * x[before + N :])
    found = torch.autograd.grad((base[before:][:N] * u).sum(), (w, x))
    close(found, torch.autograd.grad((right * u).sum(), (w, x)))


def behind(kernel, base, w):
    """Store behind what is read."""
    y = base[2 * N :]
    kernel[(1,)](base[:N], w, y, N, B=N)
    return y


def alone(kernel, base, w):
    y = torch.empty_like(w)
    kernel[(1,)](base, w, y, N, B=N)
    return y


def test_exported_modules(device, tmp_path):
    """They know of no storage: a launch of parts is no launch of others."""
    base, w = torch.randn(3 * N, device=device), random_tensor(N, device=device)
    with pytest.raises(AutodiffError, match="around a tensor that is a part of another one"):
        autodiff(reads_behind_kernel, behind).export(tmp_path / "no.py", base, w)
    path = autodiff(reads_behind_kernel, alone).export(tmp_path / "alone.py", base, w)
    launch = module_at(path).reads_behind_kernel
    with pytest.raises(AssertionError, match="parts of one tensor"):
        launch[(1,)](base[:N], w, base[N:], N, B=N)


def beside(kernel, base, w):
    y = base[2 * N :]
    kernel[(2,)](base[: 2 * N], w, y, 2, B=N)
    return y


def test_exported_modules_of_parts(device, tmp_path):
    base, w = torch.randn(5 * N, device=device), random_tensor(N, device=device)
    path = autodiff(branches_kernel, beside).export(tmp_path / "beside.py", base, w)
    x = base[: 2 * N].clone().view(2, N)
    y = module_at(path).beside(base, w)
    u = upstream(y)[: 2 * N]
    close(
        torch.autograd.grad(y[: 2 * N], w, u),
        torch.autograd.grad((w * torch.sin(x)).view(-1), w, u),
    )


def test_what_begins_apart_is_not_exported(device, tmp_path):
    """A module asserts that tensors which share memory begin together."""

    def apart(kernel, x):
        base = torch.zeros(4 * N, device=x.device)
        kernel[(1,)](base[: 2 * N], x, base[N : 3 * N], 1, B=N)
        return base

    op = autodiff(reads_behind_kernel, apart)
    with pytest.raises(AutodiffError, match="and y_ptr share memory, .* do not begin together"):
        op.export(tmp_path / "apart.py", random_tensor(N, device=device))
    assert not list(tmp_path.iterdir())


@triton.jit
def counting_kernel(x_ptr, place_ptr, count_ptr, y_ptr, B: tl.constexpr):
    p = tl.program_id(0)
    place = tl.load(place_ptr + p)
    tl.store(count_ptr + p, place + 1)
    lanes = p * B + tl.arange(0, B)
    x = tl.load(x_ptr + lanes)
    tl.store(y_ptr + lanes, place.to(x.dtype) * x * x)


def counting(kernel, x):
    places, counts = torch.arange(2 * len(x), dtype=torch.int32, device=x.device).chunk(2)
    y = torch.empty_like(x)
    kernel[(len(x),)](x, places, counts, y, B=x.shape[1])
    return y, counts


def test_exported_modules_of_integers_in_one_storage(device, tmp_path):
    """They have no gradient, but their layouts are asserted."""
    op = autodiff(counting_kernel, counting)
    x = random_tensor(5, 8, device=device)
    path = op.export(tmp_path / "counting.py", x)
    y, counts = module_at(path).counting(x)
    (found,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(found, 2 * torch.arange(5, device=device)[:, None] * x)
    assert counts.tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("before", [0, 1])
def test_data_of_another_tensor_that_is_set(device, before):
    """What is around a tensor that stays where it was is read as before."""
    base, w = torch.randn(4 * N, device=device), random_tensor(N, device=device)
    x, y = base[before:][:N], torch.empty(N, device=device)
    with torch.no_grad():
        other = w.clone()
    differentiable(doubled_kernel)[(1,)](x, w, y, N, B=N)
    w.data = other
    product = x * base[before + N :][:N]
    close(torch.autograd.grad(y.sum(), w), (2 * w * torch.sin(product),))


def read_behind(kernel, base, w, before: int):
    y = torch.empty_like(w)
    kernel[(1,)](base[before:][:N], w, y, N, B=N)
    return y


@pytest.mark.parametrize("before", [0, 1, 4])
def test_exported_modules_read_around_parts(device, tmp_path, before):
    """Whatever the alignment; hooks that keep only the part are noticed."""
    base, w = torch.randn(4 * N, device=device), random_tensor(N, device=device)
    op = autodiff(reads_behind_kernel, read_behind)
    function = module_at(op.export(tmp_path / "behind.py", base, w, before)).read_behind
    product = base[before:][:N] * base[before + N :][:N]
    close(torch.autograd.grad(function(base, w, before).sum(), w), (torch.sin(product),))
    with saved_tensors_hooks(torch.clone, lambda t: t):
        y = function(base, w, before)
    with pytest.raises(AssertionError, match="keeps what is around a tensor"):
        y.sum().backward()


@triton.jit
def rows_in_place_kernel(x_ptr, w_ptr, stride, N: tl.constexpr):
    row, i = tl.program_id(0) * stride, tl.arange(0, N)
    x = tl.load(x_ptr + row + i)
    tl.store(x_ptr + row + i, tl.load(w_ptr + i) * tl.sin(x))


def rows_in_place(kernel, x, w):
    kernel[(len(x),)](x, w, x.stride(0), N=N)
    return x


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
@pytest.mark.parametrize("first", [0, 3])
def test_hooks_on_rows_that_are_overwritten(device, tmp_path, copy, first):
    """A copy of what was overwritten has gaps; a hook's copy of that has none."""
    op = autodiff(rows_in_place_kernel, rows_in_place)
    base, w = torch.randn(4, 2 * N, device=device), random_tensor(N, device=device)

    def part():
        return (base.clone().requires_grad_() * 1)[:, first:][:, :N]

    module = module_at(op.export(tmp_path / "rows.py", part(), w)).rows_in_place
    right = torch.sin(base[:, first:][:, :N]).sum(0)
    for function in (op, module):
        with saved_tensors_hooks(copy, lambda t: t):
            y = function(part(), w)
        close(torch.autograd.grad(y.sum(), w), (right,))


@triton.jit
def padded_kernel(x_ptr, length_ptr, y_ptr, z_ptr, n, B: tl.constexpr):
    """Rows of which only the first elements count, as memory says."""
    row, i = tl.program_id(0), tl.arange(0, B)
    inside = i < tl.load(length_ptr + row)
    x = tl.load(x_ptr + row * n + i, mask=inside, other=0.0)
    tl.store(y_ptr + row * n + i, x * x, mask=inside)
    tl.store(z_ptr + row * n + i, x * x * x, mask=inside)


def test_bounds_that_are_not_reached(device):
    """Tiles go beyond the parts, and what is stored does not."""
    x, buffer = random_tensor(30, device=device), torch.zeros(60, device=device)
    lengths = torch.tensor([10, 7, 10], dtype=torch.int32, device=device)
    differentiable(padded_kernel)[(3,)](x, lengths, buffer[:30], buffer[30:], 10, B=16)
    u = upstream(buffer)
    inside = (torch.arange(10, device=device) < lengths[:, None]).flatten()
    right = torch.cat([x * x * inside, x * x * x * inside])
    close(torch.autograd.grad(buffer, x, u), torch.autograd.grad(right, x, u))


def test_empty_tensors_lie_in_no_storage(device):
    one, other = (torch.empty(0, device=device) for _ in range(2))
    assert not in_one_storage(one, other)


@triton.jit
def lookup_kernel(x_ptr, index_ptr, w_ptr, y_ptr, B: tl.constexpr):
    i = tl.arange(0, B)
    x = tl.load(x_ptr + tl.load(index_ptr + i))
    tl.store(y_ptr + i, tl.load(w_ptr + i) * tl.sin(x))


def lookup(kernel, x, index, w):
    y = torch.empty_like(w)
    kernel[(1,)](x, index, w, y, B=N)
    return y


@pytest.mark.parametrize("copy", COPIES.values(), ids=COPIES)
def test_hooks_on_what_is_looked_up(device, tmp_path, copy):
    """Indices are inside of the part."""
    base, w = torch.randn(3 * N, device=device), random_tensor(N, device=device)
    x, index = base[N:][:N], torch.randperm(N, device=device)
    op = autodiff(lookup_kernel, lookup)
    module = module_at(op.export(tmp_path / "lookup.py", x, index, w)).lookup
    for function in (op, module):
        with saved_tensors_hooks(copy, lambda t: t):
            y = function(x, index, w)
        close(torch.autograd.grad(y.sum(), w), (torch.sin(x[index]),))


@triton.jit
def strided_kernel(x_ptr, w_ptr, y_ptr, stride, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y_ptr + i, tl.load(w_ptr + i) * tl.sin(tl.load(x_ptr + i * stride)))


def strided(kernel, x, w):
    y = torch.empty_like(w)
    kernel[(1,)](x, w, y, x.stride(0), B=N)
    return y


def test_hooks_that_return_negatives(device, tmp_path):
    """Numbers count: memory may hold their negatives."""
    x = torch.randn(N, dtype=torch.complex64, device=device).imag
    w = random_tensor(N, device=device)
    op = autodiff(strided_kernel, strided)
    module = module_at(op.export(tmp_path / "strided.py", x, w)).strided

    def pack(tensor):
        return torch.complex(tensor, -tensor) if tensor.stride() == x.stride() else tensor

    def unpack(packed):
        return packed.conj().imag if packed.is_complex() else packed

    assert unpack(pack(x)).is_neg()
    for function in (op, module):
        with saved_tensors_hooks(pack, unpack):
            y = function(x, w)
        close(torch.autograd.grad(y.sum(), w), (torch.sin(x),))


def test_hooks_that_return_a_transposed_tensor(device):
    """Of the same memory, while another tensor has moved."""
    x, w = torch.randn(4, 4, device=device), random_tensor(N, device=device)
    y = torch.empty(N, device=device)

    def unpack(tensor):
        return tensor.t() if tensor.dim() == 2 else tensor.clone()

    with saved_tensors_hooks(lambda t: t, unpack):
        differentiable(strided_kernel)[(1,)](x, w, y, 1, B=N)
    close(torch.autograd.grad(y.sum(), w), (torch.sin(x.t().reshape(-1)),))


def part_in_part(kernel, base, w):
    kernel[(1,)](base[:N], w, base[N:][:N], 2 * N, B=N)
    return base[N:][:N] * 1


def in_place(kernel, base, w):
    kernel[(1,)](base[:N], w, 2 * N, B=N)
    return base[:N] * 1


@pytest.mark.parametrize(
    "kernel, stub", [(reads_behind_kernel, part_in_part), (in_place_kernel, in_place)]
)
def test_graphs_that_read_around_a_part(device, kernel, stub):
    """A graph copies what is read where it writes, with nothing around."""
    base, w = torch.randn(3 * N, device=device), random_tensor(N, device=device)
    op = autodiff(kernel, stub)
    close((op(base.clone(), w),), (w * torch.sin(base[:N] * base[2 * N :]),))
    torch._dynamo.reset()
    compiled = torch.compile(lambda *args: op(*args), backend="aot_eager", fullgraph=True)
    with pytest.raises(Exception, match="it reads around argument 'x_ptr'"):
        compiled(base.clone(), w)
