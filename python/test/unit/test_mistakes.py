"""What a newcomer gets wrong is an error that names it, where it is, and the way out.

Stubs that lose what their kernel wrote, kernels that do nothing, decorators in the wrong order,
options in the wrong place, numbers for tensors. `test_bad_input.py` has what is not one's own.
"""

import gc

import gradients
import pytest
import torch
import torch.masked
import triton
import triton.language as tl
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.testing._internal.two_tensor import TwoTensor
from triton.backends.autodiff import AutodiffError, autodiff, custom_vjp, differentiable
from triton.backends.autodiff.errors import ArgumentError, KernelTypeError
from triton.backends.autodiff.launching import duals


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@triton.jit
def square(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i)
    tl.store(y_ptr + i, x * x)


@triton.jit
def weighted(x_ptr, y_ptr, w, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.load(x_ptr + i) * w)


@triton.jit
def forgetful(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, BLOCK))
    total = tl.sum(x * x, 0)
    for j in range(n):
        total += tl.load(x_ptr + j)


@triton.jit
def returning(x_ptr, y_ptr, BLOCK: tl.constexpr):
    return tl.load(x_ptr + tl.arange(0, BLOCK)) * 2


@triton.jit
def printing(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.device_print("x", tl.load(x_ptr + tl.arange(0, BLOCK)))


@triton.jit
def calling_torch(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, torch.exp(tl.load(x_ptr + i)))


@differentiable
@triton.jit
def helper(x):
    return x * x


@triton.jit
def calling_a_kernel(x_ptr, y_ptr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, helper(tl.load(x_ptr + i)))


def leaf(device, grad=True):
    return torch.randn(8, device=device, requires_grad=grad)


def written(kernel, x):
    y = torch.empty(8, device=x.device)
    kernel[(1,)](x, y, BLOCK=8)
    return y


# -------------------------------------------------------------------------- what stubs return


def copied(kernel, x):
    return written(kernel, torch.tensor(x.tolist(), device=x.device))


def into_a_detached_one(kernel, x):
    y = torch.empty_like(x, requires_grad=False)
    kernel[(1,)](x, y.detach(), BLOCK=8)
    return y


LOST = {
    "nothing": (lambda k, x: (written(k, x), None)[1], "returned nothing"),
    "another tensor": (lambda k, x: torch.zeros_like(written(k, x)), "without a history"),
    "its input": (lambda k, x: (written(k, x), x)[1], "a tensor that it was given"),
    "detached": (lambda k, x: written(k, x).detach(), "without a history"),
    "data": (lambda k, x: written(k, x).data, "without a history"),
    "detached output": (into_a_detached_one, "without a history"),
    "in a tuple": (lambda k, x: (written(k, x).detach(), 3), "without a history"),
    "number": (lambda k, x: written(k, x).sum().item(), "returned float"),
    "integer": (lambda k, x: (written(k, x), 3)[1], "returned int 3"),
    "array": (lambda k, x: written(k, x).detach().cpu().numpy(), "returned ndarray"),
    "list": (lambda k, x: written(k, x).tolist(), "returned list"),
    "what a launch returns": (
        lambda k, x: k[(1,)](x, torch.empty(8, device=x.device), BLOCK=8),
        "returned CompiledKernel",
    ),
}


@pytest.mark.parametrize("name", LOST)
def test_stub_that_loses_what_was_written(device, name):
    stub, message = LOST[name]
    where = r"stub .*test_mistakes.py:\d+.*"
    way_out = ".*'square' wrote to 'y_ptr'.* Return that tensor.*no_grad"
    op = autodiff(square, stub)
    with pytest.raises(AutodiffError, match=where + message + way_out):
        op(leaf(device))
    # Where no gradient is wanted, none is lost.
    with torch.no_grad():
        op(leaf(device))
    op(leaf(device, grad=False))


def under_no_grad(kernel, x):
    with torch.no_grad():
        return written(kernel, x)


DETACHED = {
    "detach": lambda k, x: written(k, x.detach()),
    "data": lambda k, x: written(k, x.data),
    "copy": copied,
    "no_grad": under_no_grad,
}


@pytest.mark.parametrize("name", DETACHED)
def test_stub_that_launches_with_detached_tensors(device, name):
    op = autodiff(square, DETACHED[name])
    message = r"test_mistakes.py:\d+.*launched kernel 'square' without a gradient.*detach\(\)"
    with pytest.raises(AutodiffError, match=message):
        op(leaf(device))
    with torch.no_grad():
        op(leaf(device))
    op(leaf(device, grad=False))


class Holder:
    """Any object whatever."""


def held(kernel, x):
    result = Holder()
    result.deep = {"y": [written(kernel, x)]}
    return result


def kept_by_the_caller(keeper):
    def stub(kernel, x):
        keeper.append(written(kernel, x))

    return stub


def differentiated_inside(kernel, x):
    return torch.autograd.grad(written(kernel, x).sum(), x)[0]


def statistic(kernel, x):
    return x / written(kernel, x).detach()


def test_stubs_that_lose_nothing(device):
    """What can still be reached may be anywhere; what PyTorch computes is its own affair."""
    x = leaf(device)
    (g,) = torch.autograd.grad(autodiff(square, held)(x).deep["y"][0].sum(), x)
    torch.testing.assert_close(g, 2 * x.detach())
    keeper = []
    assert autodiff(square, kept_by_the_caller(keeper))(x) is None
    (g,) = torch.autograd.grad(keeper[0].sum(), x)
    torch.testing.assert_close(g, 2 * x.detach())
    torch.testing.assert_close(autodiff(square, differentiated_inside)(x), 2 * x.detach())
    (g,) = torch.autograd.grad(autodiff(square, statistic)(x).sum(), x)
    torch.testing.assert_close(g, 1 / x.detach() ** 2)
    assert not autodiff(square, lambda k, x: written(k, x).argmax())(x).requires_grad
    both = autodiff(square, lambda k, x: (written(k, x), written(k, x).detach()))(x)
    assert both[0].requires_grad and not both[1].requires_grad


def test_stub_of_a_stub(device):
    """An inner operation's launch is seen by the outer one."""
    inner = autodiff(square, written)
    x = leaf(device)
    autodiff(square, lambda kernel, x: inner(x).sin())(x).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach() * (x.detach() ** 2).cos())
    with pytest.raises(AutodiffError, match="'square' wrote to 'y_ptr' is lost"):
        autodiff(square, lambda kernel, x: inner(x).detach())(leaf(device))


def test_stub_is_not_held(device):
    """That nothing is lost is seen without keeping anything alive."""
    gc.collect()
    y = autodiff(square, written)(leaf(device))
    node, y = y.grad_fn, None
    assert node is not None
    with pytest.raises(AutodiffError):
        autodiff(square, LOST["nothing"][0])(leaf(device))


@pytest.mark.parametrize(
    "stub, args",
    [(lambda: None, 0), (lambda x: x, 1), (written, 2), (lambda kernel, *, x: x, 1)],
)
def test_stub_with_other_parameters(device, stub, args):
    message = r"stub .*test_mistakes.py:\d+.*positional.*kernel first"
    with pytest.raises(KernelTypeError, match=message):
        autodiff(square, stub)(*[leaf(device)] * args)


def test_type_error_of_a_stub_is_its_own(device):
    def stub(kernel, x):
        return len(3)

    with pytest.raises(TypeError, match="has no len") as caught:
        autodiff(square, stub)(leaf(device))
    assert not isinstance(caught.value, AutodiffError)


# ----------------------------------------------------------------------------- what kernels do


@pytest.fixture(params=["differentiable", "autodiff"])
def launch(request, device):
    """Launches a kernel in one of the two ways, with a gradient wanted or not."""

    def call(kernel, grad, x=None, y=None, **more):
        x = leaf(device, grad) if x is None else x
        y = torch.empty(8, device=device) if y is None else y
        constants = {"BLOCK": 8, **more}
        if request.param == "differentiable":
            differentiable(kernel)[(1,)](x, y, **constants)
            return y

        def stub(kernel, x, y):
            kernel[(1,)](x, y, **constants)
            return y

        return autodiff(kernel, stub)(x, y)

    return call


KERNELS = {
    "no store": (
        forgetful,
        {"n": 3},
        r"'forgetful' \(test_mistakes.py:\d+\) stores nothing.*tl.st",
    ),
    "result": (returning, {}, "'returning' returns a value.*tl.store it"),
    "torch": (calling_torch, {}, r"'calling_torch' \(test_mistakes.py:\d+\).*exp.*triton.language"),
    "kernel": (calling_a_kernel, {}, r"\(test_mistakes.py:\d+\) calls 'helper'.*@triton.jit alone"),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", KERNELS)
def test_kernel(launch, name, grad, request):
    kernel, more, message = KERNELS[name]
    if name == "result" and request.getfixturevalue("device") == "cuda":
        pytest.skip("Triton has its own word for it")
    fresh = triton.jit(kernel.fn)
    # Triton looks through what a kernel calls only once.
    for _ in range(1 if name == "torch" else 2):
        with pytest.raises(AutodiffError, match=message):
            launch(fresh, grad, **more)


@pytest.mark.parametrize("grad", [True, False])
def test_kernel_that_prints_only(device, grad):
    differentiable(printing)[(1,)](leaf(device, grad), torch.empty(8, device=device), BLOCK=8)


OPTIONS = {
    "backward": {"backward": {"num_warps": 4}},
    "deterministic": {"deterministic": True},
    "autotune": {"autotune": False},
    "tape_limit": {"tape_limit": 100},
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", OPTIONS)
def test_option_at_the_launch(launch, name, grad):
    message = f"kernel 'square': '{name}' is an option.*differentiable\\(kernel, {name}="
    with pytest.raises(ArgumentError, match=message):
        launch(square, grad, **OPTIONS[name])


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize(
    "more, message",
    [
        ({"schedules": []}, r"differentiable\(kernel, backward={'schedules': \[\]}"),
        ({"num_wraps": 4}, "no parameter 'num_wraps'; did you mean 'num_warps'"),
        ({"BLOK": 8}, "no parameter 'BLOK'; did you mean 'BLOCK'"),
        ({"num_warps": "4"}, "num_warps should be an integer, got '4'"),
    ],
)
def test_keyword(launch, more, message, grad):
    with pytest.raises(ArgumentError, match=f"kernel 'square': .*{message}"):
        launch(square, grad, **more)


def test_grid_twice(device):
    with pytest.raises(KernelTypeError, match="'square' has a grid in brackets, and another"):
        differentiable(square)[(2,)](leaf(device), leaf(device), BLOCK=8, grid=(1,))


def scalar(shape, grad):
    return lambda device: torch.ones(shape, device=device, requires_grad=grad)


NUMBERS = {
    "wanted": (scalar((), True), "'w'.*without dimensions.*tl.load it.*item.. has no gradient"),
    "parameter": (lambda d: torch.nn.Parameter(torch.ones((), device=d)), "'w'.*tl.load it"),
    "not wanted": (scalar((), False), r"'w'.*without dimensions.*pass its item\(\), or tl.load it"),
    "one element": (scalar(1, True), "'w'.*of one element.*tl.load it.*no gradient"),
    "NumPy's": (lambda d: torch.ones(1).numpy()[0], r"'w'.*got float32.*pass its item\(\)"),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("name", NUMBERS)
def test_tensor_for_a_number(launch, device, name, grad):
    make, message = NUMBERS[name]
    with pytest.raises(ArgumentError, match=message):
        launch(weighted, grad, w=make(device))


@pytest.mark.parametrize("grad", [True, False])
def test_number_for_a_tensor(launch, grad):
    with pytest.raises(ArgumentError, match="'y_ptr'.*is the number 0,.*pass a tensor"):
        launch(square, grad, y=0)


# ------------------------------------------------------------------- what tensors are made of


class Wrapper(torch.Tensor):
    """A subclass that holds a tensor, as `torch.Tensor._make_wrapper_subclass` makes it."""

    @staticmethod
    def __new__(cls, held):
        return torch.Tensor._make_wrapper_subclass(
            cls, held.shape, dtype=held.dtype, device=held.device, requires_grad=held.requires_grad
        )

    def __init__(self, held):
        self.held = held

    @classmethod
    def __torch_dispatch__(cls, function, types, args=(), kwargs=None):
        raise NotImplementedError


class Looking(torch.Tensor):
    """A subclass with memory of its own, and a say in what functions do."""

    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        return super().__torch_function__(function, types, args, kwargs or {})


@pytest.fixture(scope="module")
def mesh(tmp_path_factory):
    """One process that stands for many."""
    distributed = pytest.importorskip("torch.distributed.tensor")
    store = tmp_path_factory.mktemp("distributed") / "store"
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{store}", rank=0, world_size=1
    )
    yield distributed.init_device_mesh("cpu", (1,))
    torch.distributed.destroy_process_group()


def masked(x):
    return torch.masked.masked_tensor(x, torch.ones_like(x, dtype=torch.bool))


def nested(layout):
    def make(x):
        return torch.nested.nested_tensor([x[:3], x[3:]], layout=layout)

    return make


TENSORS = {
    "wrapper": (Wrapper, "is a Wrapper.*pass what it holds"),
    "two": (lambda x: TwoTensor(x, x), r"is a TwoTensor.*pass what it holds \(a, b\)"),
    "fake": (FakeTensorMode().from_tensor, "is a FakeTensor.*real tensors"),
    "meta": (lambda x: x.to("meta"), "on meta: make it on a real device"),
    "masked": (masked, r"is a MaskedTensor.*get_data\(\)"),
    "nested": (nested(torch.strided), r"nested tensor.*values\(\)"),
    "jagged": (nested(torch.jagged), r"nested tensor.*values\(\)"),
    "sparse": (lambda x: x.to_sparse(), r"sparse_coo.*to_dense\(\)"),
    "sparse rows": (lambda x: x.view(2, 4).to_sparse_csr(), r"sparse_csr.*to_dense\(\)"),
    "quantized": (
        lambda x: torch.quantize_per_tensor(x.cpu(), 0.1, 0, torch.qint8),
        r"quantized tensor of qint8.*dequantize\(\)",
    ),
    "complex": (lambda x: torch.complex(x, x), r"complex64.*view_as_real\(\)"),
    "uninitialized": (
        lambda x: torch.nn.parameter.UninitializedParameter(requires_grad=False),
        "UninitializedParameter.*lazy module",
    ),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("place", ["x", "y"])
@pytest.mark.parametrize("name", TENSORS)
@pytest.mark.parametrize("dual", [False, True])
def test_tensor_that_no_kernel_takes(launch, device, dual, name, place, grad, monkeypatch):
    # Once a graph has had tangents, every launch looks for some.
    monkeypatch.setattr(duals, "_are_in_graphs", dual)
    make, message = TENSORS[name]
    odd = make(torch.randn(8, device=device))
    if grad and place == "x" and odd.dtype.is_floating_point and name != "uninitialized":
        odd.requires_grad_()
    with pytest.raises(
        ArgumentError, match=f"argument '{place}_ptr' of kernel 'square' .*{message}"
    ):
        launch(square, grad, **{place: odd})


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("place", ["x", "y"])
def test_distributed_tensor(launch, mesh, place, grad):
    from torch.distributed.tensor import Replicate, Shard, distribute_tensor

    for placement in (Replicate(), Shard(0)):
        odd = distribute_tensor(torch.randn(8), mesh, [placement])
        if place == "x":
            odd.requires_grad_(grad)
        message = rf"'{place}_ptr' of kernel 'square' is a DTensor.*to_local\(\).*local_map"
        with pytest.raises(ArgumentError, match=message):
            launch(square, grad, **{place: odd})


def test_ways_out_for_distributed_tensors(mesh, device):
    if device != "cpu":
        pytest.skip("the mesh is one of CPUs")
    from torch.distributed.tensor import Shard, distribute_tensor
    from torch.distributed.tensor.experimental import local_map

    op = autodiff(square, written)
    for call in (
        lambda x: op(x.to_local()),
        lambda x: local_map(op, [Shard(0)], device_mesh=mesh)(x).to_local(),
    ):
        x = distribute_tensor(torch.randn(8), mesh, [Shard(0)]).requires_grad_()
        call(x).sum().backward()
        torch.testing.assert_close(x.grad.to_local(), 2 * x.detach().to_local())


@pytest.mark.parametrize(
    "make", [torch.nn.Parameter, torch.nn.Buffer, lambda t: t.as_subclass(Looking)]
)
def test_subclasses_with_memory(launch, device, make):
    x = make(torch.randn(8, device=device)).requires_grad_()
    launch(square, True, x=x).sum().backward()
    torch.testing.assert_close(x.grad.as_subclass(torch.Tensor), 2 * x.detach().data)


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("place", ["x", "y"])
def test_tensor_on_the_host(cuda, place, grad):
    tensors = {"x": leaf(cuda, grad), "y": torch.empty(8, device=cuda), place: torch.empty(8)}
    with pytest.raises(ArgumentError, match=f"'{place}_ptr' of kernel 'square' is on cpu, but the"):
        differentiable(square)[(1,)](tensors["x"], tensors["y"], BLOCK=8)


def test_memory_that_is_freed_before_the_backward(device):
    x = leaf(device)
    loss = written(differentiable(square), x).sum()
    x.untyped_storage().resize_(0)
    with pytest.raises(ArgumentError, match="'x_ptr' of kernel 'square' has lost its memory"):
        loss.backward()


# ---------------------------------------------------------------------- what goes over what


def plain(x_ptr, y_ptr, BLOCK: tl.constexpr):
    tl.store(y_ptr, tl.load(x_ptr))


tuned = triton.autotune([triton.Config({"BLOCK": 8})], key=[])
chosen = triton.heuristics({"BLOCK": lambda arguments: 8})
OVER = "applied to '{}', which is differentiable already: .*over all decorators"


@pytest.mark.parametrize(
    "decorator, name", [(triton.jit, "jit"), (tuned, "autotune"), (chosen, "heuristics")]
)
@pytest.mark.parametrize("kind", ["kernel", "operation"])
def test_decorators_over_us(decorator, name, kind):
    inner = differentiable(square) if kind == "kernel" else autodiff(square, written)
    what = OVER.format("square" if kind == "kernel" else "written")
    with pytest.raises(KernelTypeError, match=f"@triton.{name} is {what}"):
        decorator(inner)


def test_decorators_under_us(device):
    """Their order is theirs."""
    x = leaf(device)
    for wrap in (tuned, chosen):
        y = torch.empty(8, device=device)
        kernel = differentiable(wrap(square))
        kernel[(1,)](x, y)
        (g,) = torch.autograd.grad(y.sum(), x)
        torch.testing.assert_close(g, 2 * x.detach())
        assert list(kernel.arg_names) == square.arg_names


operation = autodiff(square, written)
NO_KERNELS = {
    "plain": (lambda: differentiable(plain), r"'plain' \(test_mistakes.py:\d+\).*@triton.jit goes"),
    "with a grid": (lambda: differentiable(square[(1,)]), "differentiate the kernel itself"),
    "operation": (lambda: differentiable(operation), "an operation already"),
    "stub of one": (lambda: autodiff(operation, written), "an operation already"),
    "no stub": (lambda: autodiff(square), r"needs a stub.*def stub\(kernel, x\)"),
    "swapped": (lambda: autodiff(written, square), "the kernel comes first"),
    "class": (lambda: autodiff(square, torch.nn.Linear), "stub should be a function"),
    "brackets": (lambda: operation[(1,)], "'written' is an operation: it is called without a grid"),
}


@pytest.mark.parametrize("name", NO_KERNELS)
def test_what_is_no_kernel(name):
    make, message = NO_KERNELS[name]
    with pytest.raises(KernelTypeError, match=message):
        make()


def test_no_brackets(device):
    with pytest.raises(AutodiffError, match=r"'square' is launched as kernel\[grid\]"):
        differentiable(square)(leaf(device), leaf(device), BLOCK=8)


def test_function_of_a_kernel_is_no_kernel():
    with pytest.raises(TypeError, match="@triton.jit, got DifferentiableKernel"):
        custom_vjp(differentiable(square))


@triton.jit
def bits_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    y = x
    for _ in range(n):
        y = y + x
    tl.atomic_max(y_ptr + i, y, mask=i < n)
    tl.atomic_add(y_ptr + i, x, mask=i < n)


@triton.jit
def averaged(a, b):
    return (a + b) / 2


@triton.jit
def average_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i, mask=i < n, other=0.0)
    tl.store(y_ptr, tl.reduce(x, 0, averaged))


def _refused(kernel, device, *grid):
    x = torch.randn(50, device=device, requires_grad=True)
    with pytest.raises(AutodiffError) as caught:
        differentiable(kernel)[grid or (1,)](x, torch.zeros(50, device=device), 50)
    return str(caught.value)


def _with_block(kernel, *sizes):
    return triton.autotune([triton.Config({"BLOCK": size}) for size in sizes], key=[])(kernel)


def test_what_the_user_wrote_is_named(device):
    """Of floats, tl.atomic_max becomes two atomic operations of integers."""
    said = _refused(_with_block(bits_kernel, 64), device)
    assert "no derivative rule for 'tl.atomic_max' on a differentiated tensor" in said
    assert "umin" not in said.split("note:")[0] and "test_mistakes.py:" in said


def test_notes_show_no_regions(device):
    """The combine function of a reduction is a region: a note is the first line, and not long."""
    said = _refused(_with_block(average_kernel, 64), device)
    notes = [line for line in said.splitlines() if "note: see current operation" in line]
    lines = said.splitlines()
    assert notes and all(len(note.split("note: ")[1]) < 300 for note in notes)
    assert not any(line.startswith(("^bb", "}", "  ")) for line in lines), said
    assert not any(line.rstrip().endswith("({") for line in lines), said


def test_the_configuration_of_an_autotuner_is_named(device):
    said = _refused(_with_block(average_kernel, 64, 128), device)
    assert "the configuration BLOCK=" in said and "which the autotuner chose of 2" in said
    assert "autotuner" not in _refused(_with_block(average_kernel, 64), device)
