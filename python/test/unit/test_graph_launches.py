"""Launches in graphs that are unlike each other: gradients, what runs, what CUDA graphs hold."""

import types

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import assert_gradients_close, random_tensor
from kernels import odd_launches
from torch._dynamo.utils import counters
from torch.fx.experimental.proxy_tensor import make_fx
from triton.backends.autodiff import AutodiffError, differentiable
from triton.backends.autodiff.errors import ArgumentError
from triton.backends.autodiff.exporting.arguments import with_types
from triton.backends.autodiff.graphs import kept as graph_kept
from triton.backends.autodiff.graphs.kernels import refuse_long
from triton.tools.tensor_descriptor import TensorDescriptor
from wrapped import Bare

UNSAFE = torch.Tag.cudagraph_unsafe
OPAQUE = [name for name, (*_, is_inlined) in odd_launches.PROGRAMS.items() if not is_inlined]


@pytest.fixture(autouse=True)
def fresh(device, monkeypatch):
    """Dynamo as it is where there is a GPU, and nothing traced yet."""
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")
    monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    torch._dynamo.reset()
    counters.clear()
    if device == "cuda":
        triton.set_allocator(lambda size, *_: torch.empty(size, dtype=torch.int8, device="cuda"))


@pytest.fixture
def ran():
    """The names of kernels in the order of their launches."""
    names, hooks = [], triton.knobs.runtime.launch_enter_hook

    def note(launch):
        names.append(launch.get()["name"])

    hooks.add(note)
    yield names
    hooks.remove(note)


def in_one_graph(function, backend="aot_eager", **options):
    return torch.compile(function, backend=backend, fullgraph=True, **options)


@pytest.mark.parametrize("name", odd_launches.PROGRAMS)
def test_gradients_for_sizes(device, name):
    """Of one graph for all sizes, and of what comes after it."""
    program, reference, make, _ = odd_launches.PROGRAMS[name]
    compiled = in_one_graph(program, dynamic=True)
    for more in (0, 3, 1, 17):
        torch.manual_seed(more)
        assert_gradients_close(compiled, reference, make(more, device), roundings=32)


@pytest.mark.slow
@pytest.mark.parametrize("name", odd_launches.PROGRAMS)
def test_gradients_of_inductor(device, name):
    program, reference, make, _ = odd_launches.PROGRAMS[name]
    compiled = in_one_graph(program, "inductor")
    for more in (0, 3):
        torch.manual_seed(more)
        assert_gradients_close(compiled, reference, make(more, device), roundings=32)


@pytest.mark.parametrize("name", OPAQUE)
def test_forward_runs_once(device, name, ran):
    """Also where only the run knows the plan; and without a graph as often."""
    program, _, make, _ = odd_launches.PROGRAMS[name]

    def run(function):
        inputs = make(3, device)
        y = function(inputs[0], *inputs[1:])
        ran.clear()
        torch.autograd.grad(y.sum(), inputs[0])
        return list(ran)

    # The first may be measured.
    run(program)
    backward = run(program)
    assert run(in_one_graph(program)) == backward


def test_runs_are_told_apart(device):
    """Forwards whose plans differ, and then their backwards, in another order."""
    program, reference, make, _ = odd_launches.PROGRAMS["loops of data"]
    compiled = in_one_graph(program, dynamic=True)
    inputs = [make(k, device) for k in (0, 3, 8, 17)]
    losses = [compiled(*given).sum() for given in inputs]
    for loss, (x, ends) in reversed(list(zip(losses, inputs, strict=True))):
        exact = x.detach().double().requires_grad_()
        (truth,) = torch.autograd.grad(reference(exact, ends).sum(), exact)
        (found,) = torch.autograd.grad(loss, x)
        torch.testing.assert_close(found.double(), truth, rtol=1e-5, atol=1e-6)


def test_backwards_that_come_too_late(device, monkeypatch):
    monkeypatch.setattr(graph_kept, "_MOST", 2)
    program, _, make, _ = odd_launches.PROGRAMS["expanded"]
    compiled = in_one_graph(program, dynamic=True)
    inputs = [make(k, device) for k in (0, 1, 2, 3)]
    first, *_, last = (compiled(*given).sum() for given in inputs)
    last.backward()
    with pytest.raises(AutodiffError, match="'rows' has been launched in 2 other ways"):
        first.backward()


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_graphs_without_numbers_of_runs(device, mode):
    """There, the forward runs again."""
    program, reference, make, _ = odd_launches.PROGRAMS["loops of data"]
    x, ends = make(0, device)

    def gradient(x, ends):
        return torch.autograd.grad(program(x, ends).sum(), x)[0]

    graph = make_fx(gradient, tracing_mode=mode)(x, ends)
    exact = x.detach().double().requires_grad_()
    (truth,) = torch.autograd.grad(reference(exact, ends).sum(), exact)
    torch.testing.assert_close(graph(x, ends).double(), truth, rtol=1e-5, atol=1e-6)


def test_what_a_kernel_only_writes_is_not_copied(device):
    """Nor kept for its gradient: what it held before is of no use."""
    x, program = random_tensor(40, device=device), scaled_by(lambda kernel: kernel)
    graph = make_fx(lambda x: torch.autograd.grad(program(x).sum(), x)[0])(x)
    assert torch.ops.aten.clone.default not in [node.target for node in graph.graph.nodes]
    assert torch.equal(graph(x), torch.full_like(x, 6))


# ------------------------------------------------------------------------------------ CUDA graphs


@pytest.mark.parametrize(
    ("name", "kernel"),
    [
        ("loops of data", odd_launches.products),
        ("overlapping", odd_launches.rows),
        ("tuned with integers", odd_launches.counted),
        ("descriptors", odd_launches.described),
    ],
)
def test_what_stays_out_of_cuda_graphs(device, name, kernel):
    """Gradients of a launch whose plan the host chooses when it runs; nothing else."""
    program, _, make, _ = odd_launches.PROGRAMS[name]
    x, *rest = make(0, device)
    in_one_graph(program)(x, *rest).sum().backward()
    assert kernel._operators
    for operator in kernel._operators.values():
        assert not {*operator.operator.tags, *operator.launch.tags} & {UNSAFE}
        assert UNSAFE in operator.keep.tags
        assert UNSAFE in operator.gradient.tags


@pytest.mark.parametrize("name", odd_launches.PROGRAMS)
def test_cuda_graphs(device, name):
    if device != "cuda":
        pytest.skip("needs a GPU")
    program, reference, make, _ = odd_launches.PROGRAMS[name]
    compiled = in_one_graph(program, "inductor", mode="reduce-overhead")
    for _ in range(4):
        torch.compiler.cudagraph_mark_step_begin()
        inputs = make(3, device)
        assert_gradients_close(compiled, reference, inputs, roundings=32, watches=False)


# ------------------------------------------------------------------------------------ descriptors


@differentiable
@triton.jit
def padded(x, y_ptr, BLOCK: tl.constexpr):
    tile = x.load([0, 0])
    tile = tl.where(tile == tile, tile * tile, 7.0)
    tl.store(y_ptr + tl.arange(0, BLOCK), tl.sum(tile, 1))


MADE = {
    "by hand": lambda x: TensorDescriptor(x, x.shape, x.stride(), [16, 16], padding="nan"),
    "of a tensor": lambda x: TensorDescriptor.from_tensor(x, [16, 16], "nan"),
    "by name": lambda x: TensorDescriptor.from_tensor(x, block_shape=[16, 16], padding="nan"),
}


@pytest.mark.parametrize("has_descriptors", [False, True])
@pytest.mark.parametrize("how", MADE)
def test_padding_of_descriptors(device, how, has_descriptors, monkeypatch):
    """Also where there is a GPU for which Dynamo knows descriptors, and forgets their padding."""
    host = "torch.utils._triton.has_triton_tensor_descriptor_host_tma"
    monkeypatch.setattr(host, lambda: has_descriptors)

    def program(x):
        y = torch.empty(16, device=x.device)
        padded[(1,)](MADE[how](x), y, BLOCK=16)
        return y

    def reference(x):
        return torch.cat([(x * x).sum(1), x.new_full((16 - x.shape[0],), 7.0 * 16)])

    compiled = in_one_graph(program, dynamic=True)
    for size in (10, 12):
        x = random_tensor(size, 16, device=device)
        assert_gradients_close(compiled, reference, [x], roundings=32)


@differentiable
@triton.jit
def chosen(x_ptr, y_ptr, z_ptr, which, BLOCK: tl.constexpr):
    x = tl.make_tensor_descriptor(x_ptr, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    if which > 0:
        x = tl.make_tensor_descriptor(y_ptr, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    z = tl.make_tensor_descriptor(z_ptr, [BLOCK, BLOCK], [BLOCK, 1], [BLOCK, BLOCK])
    tile = x.load([0, 0])
    z.store([0, 0], tile * tile)


@pytest.mark.parametrize("which", [0, 2])
def test_descriptors_that_a_branch_chooses(device, which):
    def program(x, y):
        z = torch.empty_like(x)
        chosen[(1,)](x, y, z, which, BLOCK=16)
        return z + 0 * (x + y)

    def reference(x, y):
        return [x * x, y * y][which > 0] + 0 * (x + y)

    inputs = [random_tensor(16, 16, device=device) for _ in range(2)]
    assert_gradients_close(in_one_graph(program), reference, inputs)


# ------------------------------------------------------------------------------------- memory


@differentiable
@triton.jit
def shifted(x_ptr, z_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i, mask=i < n) * 2, mask=i < n)
    tl.store(z_ptr + i, tl.load(z_ptr + 16 + i, mask=i < n), mask=i < n)


@pytest.mark.parametrize(
    "name", ["float32", "bool", "uint8", "uint16", "uint32", "uint64", "float8_e5m2"]
)
def test_types_at_an_offset(device, name):
    dtype = getattr(torch, name)

    def program(x, z):
        z, y = z.clone(), torch.empty_like(x)
        shifted[(1,)](x, z[5:], y, 16, BLOCK=16)
        return y, z

    x = random_tensor(16, device=device)
    z = torch.tensor([n % 3 == 0 for n in range(60)], device=device).to(dtype)
    y, found = in_one_graph(program)(x, z)
    wanted = z.clone()
    wanted[5:21] = z[21:37]
    assert torch.equal(found.view(torch.uint8), wanted.view(torch.uint8))
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full_like(x, 2))


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
def test_addresses_that_are_not_aligned(device, backend):
    """What a graph was made with is no promise, though nothing but the address is another."""
    program, reference, _, _ = odd_launches.PROGRAMS["plain"]

    def placed(offset):
        # A tensor of its own, without an offset that PyTorch would know of.
        memory = torch.rand(70, device=device)
        bytes_of = memory.untyped_storage()[4 * offset :]
        return torch.tensor([], device=device).set_(bytes_of, 0, (48,), (1,)).requires_grad_()

    compiled = in_one_graph(program, backend)
    for offset in (0, 1, 3):
        assert_gradients_close(compiled, reference, [placed(offset), placed(offset)])


@differentiable
@triton.jit
def squared(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


@pytest.mark.parametrize("reads_view", [True, False])
def test_views_of_what_was_changed_since(device, reads_view):
    """A view still shares memory with its base, where functionalization has renewed only that."""

    def program(x):
        base = x * 1
        view = base.view(-1)
        base.mul_(2)
        squared[(2,)](*((view, base) if reads_view else (base, view)), x.numel(), BLOCK=32)
        return base * 1

    x = random_tensor(40, device=device)
    assert_gradients_close(in_one_graph(program), lambda x: (2 * x).square(), [x])


# ------------------------------------------------------------------------ what graphs cannot hold


def scaled_by(wrapper):
    @differentiable
    @wrapper
    @triton.jit
    def scaled(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        tl.store(y_ptr + i, 2 * tl.load(x_ptr + i, mask=i < n), mask=i < n)

    def program(x):
        y = torch.empty_like(x)
        scaled[(2,)](x, y, x.numel(), 32)
        return y * 3

    return program


def test_wrappers_that_may_launch_anything(device):
    """Between two graphs; where a graph has to be whole, the error says what to do."""
    x, program = random_tensor(40, device=device), scaled_by(Bare)
    y = torch.compile(program, backend="aot_eager")(x)
    assert torch.equal(torch.autograd.grad(y.sum(), x)[0], torch.full_like(x, 6))
    torch._dynamo.reset()
    with pytest.raises(Exception, match="Differentiate what the wrapper holds"):
        in_one_graph(program)(x)
    with pytest.raises(AutodiffError, match="'scaled' is launched in make_fx.*what the wrapper"):
        make_fx(program)(x)


def test_tracers_without_operators(device):
    program = scaled_by(lambda kernel: kernel)
    with pytest.raises(AutodiffError, match="'scaled' .* in whose graphs it is an operator"):
        torch.jit.trace(program, torch.randn(40, device=device))


def test_long_integers_that_are_taken_for_short_ones():
    """Those below -2³¹: Inductor knows that others are long, from 2³¹ on."""
    spec = types.SimpleNamespace(name="long_kernel", types=("i64", "i32"))
    refuse_long(spec, (2**31, -7))
    with pytest.raises(AutodiffError, match="'long_kernel'.*takes its integers for short ones"):
        refuse_long(spec, (-(2**31) - 1, 7))


def test_types_of_numbers_on_one_line():
    """PyTorch compiles a printed kernel for numbers of Python."""
    kernel = "import triton\n\n\n# x_ptr: tl.pointer_type(tl.float32)\n# n: tl.int32\n@triton.jit\n"
    found = with_types(f"{kernel}def one(x_ptr, n):\n    pass\n", {"one": None})
    assert found.endswith("def one(x_ptr, n):\n    n = tl.cast(n, tl.int32)\n    pass\n")


@triton.jit
def beside_kernel(x_ptr, y_ptr, first, n, SIZE: tl.constexpr):
    """y is x² for n elements of x, from one on that may lie before x."""
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + first + i, mask=i < n, other=0.0)
    tl.store(y_ptr + i, x * x, mask=i < n)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("start", [3, 4])
def test_reads_beside_a_tensor(device, backend, start, tmp_path, monkeypatch):
    """A graph does not know whose these elements are: their gradient is an error, not zero."""
    monkeypatch.setenv("TORCHINDUCTOR_CACHE_DIR", str(tmp_path))
    kernel = differentiable(beside_kernel)

    def launch(x, first, n):
        y = torch.empty(16, device=device)
        kernel[(1,)](x[start:], y, first, n, SIZE=16)
        return y[:n]

    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    for first, n in ((0, 12), (2, 9)):
        assert_gradients_close(compiled, launch, (random_tensor(20, device=device), first, n))
    for first, n in ((-start, 12), (-1, 1)):
        x = random_tensor(20, device=device)
        with pytest.raises(ArgumentError, match="reads around it"):
            compiled(x, first, n).sum().backward()
        (found,) = torch.autograd.grad(launch(x, first, n).sum(), x)
        places = slice(start + first, start + first + n)
        expected = torch.zeros_like(x)
        expected[places] = 2 * x.detach()[places]
        torch.testing.assert_close(found, expected)


@triton.jit
def stored_beside_kernel(x_ptr, y_ptr, first, SIZE: tl.constexpr):
    i = tl.arange(0, SIZE)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + first + i, x * x)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("wants", [True, False])
def test_stores_beside_a_tensor(device, backend, wants):
    """A graph has nothing beside its copy of a tensor: memory of others would be overwritten."""
    kernel = differentiable(stored_beside_kernel)

    def launch(x, first):
        y = torch.zeros(64, device=device)
        kernel[(1,)](x, y[16:48], first, SIZE=16)
        return y

    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    x = torch.randn(16, device=device, requires_grad=wants)
    for first in (0, 5, 16):
        torch.testing.assert_close(compiled(x, first), launch(x, first))
    for first in (-1, 17, 1000):
        with pytest.raises(RuntimeError, match="stores around it"):
            compiled(x, first)


@triton.jit
def counted_kernel(x_ptr, w_ptr, y_ptr, z_ptr, n, N: tl.constexpr):
    """z = x w; y holds products of integers, some of them overwritten, if a loop runs."""
    p, i = tl.program_id(0), tl.arange(0, N)
    a = tl.load(x_ptr + p * N + i)
    if tl.load(x_ptr, mask=p < 0, other=0.0) > 0.6:
        k = 0
        while k < 3:
            for _ in range(0, k):
                v = (p * n).to(tl.float32) * 0.25 + tl.zeros([N, N], tl.float32)
                d = tl.dot(v, tl.trans(v), input_precision="ieee") * 0.75
                places = p * N * N + i[:, None] * n + i[None, :]
                tl.store(y_ptr + places, d, mask=v > d)
                tl.store(y_ptr + p * N * N, tl.sum(tl.reshape(d, [N * N]), 0))
                a += a
            k += 1
    tl.store(z_ptr + p * N + i, a * tl.load(w_ptr + i))


def test_outputs_without_history(device):
    """Nobody gives a gradient for them, from which the kernel's own would start."""
    kernel = differentiable(counted_kernel)

    def launch(x, w):
        y, z = torch.zeros(512, device=device), torch.empty_like(x)
        kernel[(2,)](x, w, y, z, 16, N=16)
        return z

    compiled = torch.compile(launch, backend="aot_eager", fullgraph=True)
    inputs = random_tensor(32, device=device), random_tensor(16, device=device)
    assert_gradients_close(compiled, lambda x, w: (x.view(2, 16) * w).view(-1), inputs)


@triton.jit
def late_kernel(x, y, z, start, N: tl.constexpr):
    i = tl.arange(0, N)
    v = tl.load(x + i)
    if y is not None:
        tl.store(y + i, v * v)
    for _ in range(start, 1, 3):
        tl.store(z + i, v)


@pytest.mark.parametrize("backend", ["aot_eager", "inductor"])
@pytest.mark.parametrize("start", [0, 1])
@pytest.mark.parametrize("writes_another", [False, True])
def test_what_some_launches_leave(device, backend, start, writes_another):
    """An output that only other launches of the kernel write to: 1 is a constant of this one, which
    its loop never runs with.
    """
    kernel = differentiable(late_kernel)

    def launch(x, z):
        y = torch.empty_like(x) if writes_another else None
        z = z.clone()
        kernel[(1,)](x, y, z, start, N=16)
        return (0 * x if y is None else y) + z

    def reference(x, z):
        return x * (x if writes_another else 0) + (z if start else x + 0 * z)

    inputs = [random_tensor(16, device=device) for _ in range(2)]
    assert_gradients_close(launch, reference, inputs)
    compiled = torch.compile(launch, backend=backend, fullgraph=True)
    assert_gradients_close(compiled, reference, inputs)
