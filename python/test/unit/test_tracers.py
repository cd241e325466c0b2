"""PyTorch's tracers: a launch is an operator in their graphs; those without any are refused."""

import contextlib
import gc
import re
import types
from pathlib import Path

import gradients
import pytest
import torch
import triton
import triton.language as tl
import triton_autodiff
from torch._subclasses.fake_tensor import FakeTensorMode
from torch._subclasses.functional_tensor import FunctionalTensor, FunctionalTensorMode
from torch.fx.experimental.proxy_tensor import make_fx
from torch.testing._internal.two_tensor import TwoTensor
from torch.utils.flop_counter import FlopCounterMode
from triton.backends.autodiff import AutodiffError, autodiff, differentiable
from triton.backends.autodiff.plans import cache

pytestmark = pytest.mark.every_triton


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


@pytest.fixture(autouse=True)
def cold(monkeypatch, tmp_path):
    """Nothing is compiled yet, by Triton, by us or by Dynamo."""
    monkeypatch.setenv("TRITON_CACHE_DIR", str(tmp_path))
    monkeypatch.setattr(cache, "_plans", {})
    torch._dynamo.reset()


@pytest.fixture
def dynamo(request, device, monkeypatch):
    """The device, with Dynamo as it is where there is a GPU: it knows kernels of Triton."""
    if getattr(request, "param", "knows Triton") == "knows Triton":
        monkeypatch.setattr("torch.utils._triton.has_triton", lambda: True)
    elif device == "cuda":
        pytest.skip("where there is a GPU, it knows Triton")
    return device


def make(wrap=lambda kernel: kernel):
    """A kernel that nobody has compiled: y = w · exp(x) of n elements."""

    @differentiable
    @wrap
    @triton.jit
    def scaled(x_ptr, w_ptr, y_ptr, n, BLOCK: tl.constexpr):
        i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + i, mask=i < n)
        tl.store(y_ptr + i, tl.load(w_ptr) * tl.exp(x), mask=i < n)

    return scaled


def quick(call, quantiles):
    call()
    return [1.0] * len(quantiles)


CONFIGS = [triton.Config({"BLOCK": block}) for block in (32, 64)]
KINDS = {
    "bare": lambda kernel: kernel,
    "autotuned": triton.autotune(CONFIGS, key=["n"], do_bench=quick),
    "heuristics": triton.heuristics({"BLOCK": lambda args: 32}),
}


def launched(kernel, constants):
    """The function of x and w that allocates and launches."""

    def scale(x, w):
        y = torch.empty_like(x)
        n = x.numel()
        kernel[lambda meta: (triton.cdiv(meta["n"], meta["BLOCK"]),)](x, w, y, n, **constants)
        return y

    return scale


def scaling(kind="bare"):
    return launched(make(KINDS[kind]), {"BLOCK": 32} if kind == "bare" else {})


def reference(x, w):
    return w * torch.exp(x)


def inputs(device, size=70, grad=True):
    x = torch.rand(size, device=device, dtype=torch.float64)
    w = torch.rand(1, device=device, dtype=torch.float64)
    return [t.float().requires_grad_(grad) for t in (x, w)]


def compare(found, expected, device, size=70):
    """Values and gradients of a function of x and w against float64."""
    leaves = inputs(device, size)
    y = found(*leaves)
    upstream = torch.randn_like(y)
    gradients = torch.autograd.grad(y, leaves, upstream)
    exact = [t.detach().double().requires_grad_() for t in leaves]
    truth = expected(*exact)
    torch.testing.assert_close(y.double(), truth, rtol=1e-5, atol=1e-5)
    truths = torch.autograd.grad(truth, exact, upstream.double())
    for gradient, right in zip(gradients, truths, strict=True):
        torch.testing.assert_close(gradient.double(), right, rtol=1e-4, atol=1e-4)


# --------------------------------------------------------------------------------- torch.compile


def in_one_graph(function, backend="aot_eager", **options):
    return torch.compile(function, backend=backend, fullgraph=True, **options)


@pytest.mark.parametrize("warm", [False, True])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dynamo", ["knows Triton", "has no GPU"], indirect=True)
def test_compile(dynamo, kind, warm):
    scale = scaling(kind)
    if warm:
        compare(scale, reference, dynamo)
    compiled = in_one_graph(lambda x, w: scale(x.sin(), w).cos())
    for _ in range(2):
        compare(compiled, lambda x, w: reference(x.sin(), w).cos(), dynamo)


@pytest.mark.slow
def test_compile_with_inductor(dynamo):
    scale = scaling()
    compare(
        in_one_graph(lambda x, w: scale(x.sin(), w).cos(), "inductor"),
        lambda x, w: reference(x.sin(), w).cos(),
        dynamo,
    )


def test_compile_an_operation(dynamo):
    """Torch code of the stub runs as without torch.compile."""

    def stub(kernel, x, w):
        return launched(kernel, {"BLOCK": 32})(x * 2, w) / 2

    op = autodiff(make(), stub)
    compiled = in_one_graph(lambda x, w: op(x.cos(), w) + 1)
    compare(compiled, lambda x, w: reference(2 * x.cos(), w) / 2 + 1, dynamo)


def test_compile_several_kernels(dynamo):
    first, second = scaling("autotuned"), scaling()

    def chained(first, second):
        return lambda x, w: second(first(x, w).sin(), w * w) + first(-x, w)

    compiled = in_one_graph(chained(first, second))
    compare(compiled, chained(reference, reference), dynamo)


def test_compile_in_place_outputs(dynamo):
    """Into a part of a buffer, over what a graph has made, and over the kernel's own input."""
    kernel = make()

    def program(x, w):
        buffer = torch.cat([x, x * 2])
        n = x.numel()
        kernel[(3,)](buffer[n:], w, buffer[n:], n, BLOCK=32)
        z = x + 1
        kernel[(3,)](z, w, z, n, BLOCK=32)
        return buffer.sin() + torch.cat([z, x])

    def expected(x, w):
        return torch.cat([x, w * (2 * x).exp()]).sin() + torch.cat([w * (x + 1).exp(), x])

    compare(in_one_graph(program), expected, dynamo)


def test_compile_a_module(dynamo):
    """Three steps of training."""

    class Layer(torch.nn.Module):
        def __init__(self, scale):
            super().__init__()
            self.linear = torch.nn.Linear(20, 33)
            self.weight = torch.nn.Parameter(torch.tensor([0.5]))
            self.scale = scale

        def forward(self, x):
            return self.scale(self.linear(x).tanh(), self.weight).mean(1)

    torch.manual_seed(1)
    ours = Layer(scaling()).to(dynamo)
    theirs = Layer(reference).to(dynamo)
    theirs.load_state_dict(ours.state_dict())
    compiled = in_one_graph(ours)
    for _ in range(3):
        x = torch.randn(5, 20, device=dynamo)
        for model, call in ((ours, compiled), (theirs, theirs)):
            optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
            optimizer.zero_grad()
            (call(x) ** 2).mean().backward()
            optimizer.step()
    for a, b in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(a, b, rtol=1e-4, atol=1e-5)


def test_compile_without_gradients(dynamo):
    scale = scaling()
    compiled = in_one_graph(lambda x, w: scale(x, w) + 1)
    for grad in (True, False):
        x, w = inputs(dynamo, grad=grad)
        with torch.no_grad() if grad else contextlib.nullcontext():
            y = compiled(x, w)
        assert not y.requires_grad
        torch.testing.assert_close(y, (reference(x, w) + 1).detach(), rtol=1e-5, atol=1e-5)
    compare(compiled, lambda x, w: reference(x, w) + 1, dynamo)


def test_compile_for_dynamic_sizes(dynamo):
    scale = scaling()
    compiled = in_one_graph(lambda x, w: scale(x * 2, w).sum(0, keepdim=True), dynamic=True)
    for size in (70, 1, 16, 333, 70):
        compare(compiled, lambda x, w: reference(x * 2, w).sum(0, keepdim=True), dynamo, size)


def test_compile_after_an_exception(dynamo):
    scale, state = scaling(), {"fails": True}

    def program(x, w):
        y = scale(x, w)
        if state["fails"]:
            raise ValueError("no")
        return y + 1

    compiled = torch.compile(program, backend="aot_eager")
    with pytest.raises(ValueError, match="no"):
        compiled(*inputs(dynamo))
    state["fails"] = False
    compare(compiled, lambda x, w: reference(x, w) + 1, dynamo)
    wrong = torch.compile(lambda x, w: scale(x, "w"), backend="aot_eager")
    with pytest.raises(Exception):  # noqa: B017 whatever Triton says of a string
        wrong(*inputs(dynamo))
    compare(compiled, lambda x, w: reference(x, w) + 1, dynamo)


def test_backward_within_what_is_compiled(dynamo):
    scale = scaling()

    def program(x, w):
        x, w = x.detach().requires_grad_(), w.detach().requires_grad_()
        return torch.autograd.grad(scale(x.sin(), w).sum(), (x, w))

    x, w = inputs(dynamo)
    found = torch.compile(program, backend="aot_eager")(x, w)
    truths = torch.autograd.grad(reference(x.sin(), w).sum(), (x, w))
    for gradient, truth in zip(found, truths, strict=True):
        torch.testing.assert_close(gradient, truth, rtol=1e-4, atol=1e-4)


def test_checkpoint_within_what_is_compiled(dynamo):
    scale = scaling()

    def program(x, w):
        run = torch.utils.checkpoint.checkpoint
        return run(lambda x, w: scale(x.sin(), w).cos(), x, w, use_reentrant=False)

    compare(in_one_graph(program), lambda x, w: reference(x.sin(), w).cos(), dynamo)


def test_compiled_autograd(dynamo):
    """The node of an eager launch is an operator in the graph of the backward."""
    scale = scaling()
    x, w = inputs(dynamo)
    loss = scale(x.sin(), w).sum()
    enable = torch._dynamo.compiled_autograd._enable
    with enable(torch.compile(backend="aot_eager", fullgraph=True)):
        loss.backward()
    truths = torch.autograd.grad(reference(x.sin(), w).sum(), (x, w))
    for leaf, truth in zip((x, w), truths, strict=True):
        torch.testing.assert_close(leaf.grad, truth, rtol=1e-4, atol=1e-4)


# --------------------------------------------------------------------------------- other tracers


class Module(torch.nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, *args):
        return self.function(*args)


def aot(function, *args):
    from torch._functorch.aot_autograd import aot_function

    return aot_function(function, lambda graph, _: graph)(*args)


def exported(function, args, **options):
    return torch.export.export(Module(function), args, **options).module()


def gradient_of(function):
    return lambda *args: torch.autograd.grad(function(*args).sum(), args)


@contextlib.contextmanager
def nothing_launched():
    """Nothing gets as far as a launcher, which on a GPU takes what the one for the CPU refuses."""
    seen, hooks = [], triton.knobs.runtime.launch_enter_hook
    hooks.add(seen.append)
    try:
        yield
    finally:
        hooks.remove(seen.append)
    assert not seen


RECORDED = {
    "make_fx": lambda f, *args: make_fx(f)(*args),
    "make_fx of fake tensors": lambda f, *args: make_fx(f, tracing_mode="fake")(*args),
    "make_fx of symbols": lambda f, *args: make_fx(f, tracing_mode="symbolic")(*args),
    "make_fx before dispatch": lambda f, *args: make_fx(f, pre_dispatch=True)(*args),
    "make_fx of a function's": lambda f, *args: make_fx(torch.func.functionalize(f))(*args),
    "export": lambda f, *args: exported(f, args, strict=False),
    "strict export": lambda f, *args: exported(f, args, strict=True),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", RECORDED)
def test_recorded(device, name, kind):
    """What a graph returns for other inputs than those that it was made with."""
    scale = scaling(kind)
    graph = RECORDED[name](scale, *inputs(device, grad=False))
    x, w = inputs(device, grad=False)
    torch.testing.assert_close(graph(x, w), reference(x, w), rtol=1e-5, atol=1e-5)
    code = graph.graph if hasattr(graph, "graph") else graph
    assert "scaled" in str(code)


@pytest.mark.parametrize("mode", ["real", "fake", "symbolic"])
def test_recorded_gradients(device, mode):
    scale = scaling()
    graph = make_fx(gradient_of(scale), tracing_mode=mode)(*inputs(device))
    x, w = inputs(device)
    truths = torch.autograd.grad(reference(x, w).sum(), (x, w))
    for gradient, truth in zip(graph(x, w), truths, strict=True):
        torch.testing.assert_close(gradient, truth, rtol=1e-4, atol=1e-4)


def test_exported_for_sizes(device):
    size = torch.export.Dim("size", min=3, max=1000)
    for strict in (False, True):
        sizes = {"dynamic_shapes": (({0: size}, None),)}
        graph = exported(scaling(), tuple(inputs(device, grad=False)), strict=strict, **sizes)
        x, w = inputs(device, 333, grad=False)
        torch.testing.assert_close(graph(x, w), reference(x, w), rtol=1e-5, atol=1e-5)


def test_saved_graphs(device, tmp_path):
    """A graph that was saved finds the operator where the kernel has been traced."""
    x, w = inputs(device, grad=False)
    program = torch.export.export(Module(scaling()), (x, w))
    torch.export.save(program, tmp_path / "graph.pt2")
    loaded = torch.export.load(tmp_path / "graph.pt2").module()
    torch.testing.assert_close(loaded(x + 1, w), reference(x + 1, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_functionalize(device, kind):
    x, w = inputs(device, grad=False)
    found = torch.func.functionalize(scaling(kind))(x, w)
    torch.testing.assert_close(found, reference(x, w), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_aot_function(device, kind):
    scale = scaling(kind)
    compare(lambda x, w: aot(scale, x, w), reference, device)


@pytest.mark.parametrize("kind", KINDS)
def test_fake_tensors(device, kind):
    """They get the layout of what is written, and nothing runs."""
    scale = scaling(kind)
    with nothing_launched(), FakeTensorMode() as mode:
        x, w = map(mode.from_tensor, inputs(device))
        y = scale(x, w)
        assert (y.shape, y.dtype, y.device, y.requires_grad) == (x.shape, x.dtype, x.device, True)
        for gradient, leaf in zip(torch.autograd.grad(y.sum(), (x, w)), (x, w), strict=True):
            assert gradient.shape == leaf.shape


REFUSED = {
    "jit.trace": lambda f, *args: torch.jit.trace(f, [a.detach() for a in args]),
    "fx": lambda f, *args: torch.fx.symbolic_trace(f),
}


@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("kind", ["bare", "heuristics"])
@pytest.mark.parametrize("name", REFUSED)
def test_refused(device, name, kind, grad):
    scale = scaling(kind)
    with nothing_launched(), pytest.raises(AutodiffError, match="'scaled'"):
        REFUSED[name](scale, *inputs(device, grad=grad))
    compare(scale, reference, device)


def faked(tensor):
    with FakeTensorMode() as mode:
        return mode.from_tensor(tensor)


def functional(tensor):
    with FunctionalTensorMode():
        return FunctionalTensor.to_functional(tensor)


def emptied(tensor):
    tensor.untyped_storage().resize_(0)
    return tensor


TRACED = {
    "fake": faked,
    "FunctionalTensor": functional,
    "functional": torch._to_functional_tensor,
    "two": lambda tensor: TwoTensor(tensor, tensor),
    "meta": lambda tensor: tensor.to("meta"),
    "emptied": emptied,
}


@pytest.mark.filterwarnings("ignore:Accessing the data pointer of FakeTensor")
@pytest.mark.parametrize("grad", [True, False])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", TRACED)
def test_tensors_without_memory(device, name, kind, grad):
    """They have left the mode that made them; there is nothing else to know them by."""
    scale = scaling(kind)
    x, w = inputs(device, grad=grad)
    with nothing_launched(), pytest.raises(AutodiffError, match="'w_ptr' of kernel 'scaled'"):
        scale(x, TRACED[name](w.detach()))
    compare(scale, reference, device)


def test_modes_that_only_look_on(device):
    scale = scaling()
    with FlopCounterMode(display=False):
        compare(scale, reference, device)


@pytest.mark.parametrize("kind", KINDS)
def test_torch_code_of_a_stub_within_a_custom_operator(device, kind, operator_name):
    """Its implementation runs without histories; those of the stub are recorded all the same."""
    constants = {"BLOCK": 32} if kind == "bare" else {}

    def stub(kernel, x, w):
        return launched(kernel, constants)(x.reshape(-1).sin(), w * 2).cos()

    op = autodiff(make(KINDS[kind]), stub)
    name = operator_name(kind)

    @torch.library.custom_op(name, mutates_args=())
    def forward(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
        return op(x, w)

    @torch.library.custom_op(f"{name}_backward", mutates_args=())
    def backward(
        upstream: torch.Tensor, x: torch.Tensor, w: torch.Tensor
    ) -> tuple[torch.Tensor, torch.Tensor]:
        with torch.enable_grad():
            leaves = [t.detach().requires_grad_() for t in (x, w)]
            return torch.autograd.grad(op(*leaves), leaves, upstream)

    def keep(ctx, inputs, output):
        ctx.save_for_backward(*inputs)

    forward.register_autograd(
        lambda ctx, upstream: backward(upstream, *ctx.saved_tensors), setup_context=keep
    )
    for _ in range(2):
        compare(forward, lambda x, w: reference(x.sin(), 2 * w).cos(), device)


def test_compile_leaves_our_code_alone(dynamo):
    """Dynamo compiles the frames around a launch, none of this package."""
    scale = scaling()

    def program(x, w):
        return scale(x.sin(), w).cos()

    compare(in_one_graph(program), lambda x, w: reference(x.sin(), w).cos(), dynamo)
    entries = torch._dynamo.eval_frame._debug_get_cache_entry_list
    assert entries(program.__code__), "nothing has been compiled"
    ours = str(Path(triton_autodiff.__file__).parent)
    found = [thing.__code__ for thing in gc.get_objects() if type(thing) is types.FunctionType]
    assert [c for c in found if c.co_filename.startswith(ours) and entries(c)] == []


@pytest.mark.parametrize(
    "run", [lambda function: function, in_one_graph], ids=["eager", "compiled"]
)
@pytest.mark.parametrize("inside", [True, False])
def test_wrap_triton(dynamo, inside, run):
    """PyTorch's wrapper is not needed, and may be there; the other way round it takes no kernel."""
    plain = make()._kernel
    scale = launched(differentiable(torch.library.wrap_triton(plain)), {"BLOCK": 32})
    with pytest.raises(RuntimeError, match="wrap_triton only works on"):
        torch.library.wrap_triton(differentiable(plain))
    call = scale
    if inside:

        @torch.library.triton_op(f"tracers::wrapped_{run.__name__.strip('<>')}", mutates_args=())
        def call(x: torch.Tensor, w: torch.Tensor) -> torch.Tensor:
            return scale(x, w)

        def gradient(ctx, upstream):
            with torch.enable_grad():
                leaves = [t.detach().requires_grad_() for t in ctx.saved_tensors]
                return torch.autograd.grad(scale(*leaves), leaves, upstream)

        call.register_autograd(
            gradient, setup_context=lambda ctx, inputs, output: ctx.save_for_backward(*inputs)
        )
    compare(run(lambda x, w: call(x.sin(), w)), lambda x, w: reference(x.sin(), w), dynamo)


# ----------------------------------------------------------------------------------- forward mode


@triton.jit
def exponential_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(y_ptr + i, tl.exp(tl.load(x_ptr + i, mask=i < n)), mask=i < n)


def exponential(kernel, x: torch.Tensor) -> torch.Tensor:
    y = torch.empty_like(x)
    kernel[(1,)](x, y, x.numel(), 16)
    return y


def of_duals(function, x, t):
    with torch.autograd.forward_ad.dual_level():
        dual = torch.autograd.forward_ad.make_dual(x, t)
        return torch.autograd.forward_ad.unpack_dual(function(dual)).tangent


def without_grad(function, x, t):
    with torch.no_grad():
        return torch.func.jvp(function, (x,), (t,))[1]


EXPONENTIALS = {
    "launch": lambda x: exponential(differentiable_exponential, x),
    "operation": autodiff(exponential_kernel, exponential),
    "registered": autodiff(exponential_kernel, exponential).register("autodiff_test::tangents"),
}
differentiable_exponential = differentiable(exponential_kernel)
FORWARD_MODES = {
    "jvp": lambda f, x, t: torch.func.jvp(f, (x,), (t,))[1],
    "jvp beside PyTorch": lambda f, x, t: torch.func.jvp(lambda a: f(a) + a * a, (x,), (t,))[1],
    "jvp without grad": without_grad,
    "jacfwd": lambda f, x, t: torch.func.jacfwd(f)(x),
    "hessian": lambda f, x, t: torch.func.hessian(lambda a: f(a).sum())(x),
    "linearize": lambda f, x, t: torch.func.linearize(f, x)[1](t),
    "duals": of_duals,
    "by two gradients": lambda f, x, t: torch.autograd.functional.jvp(f, x, t)[1],
    "a batch": lambda f, x, t: torch.func.vmap(lambda t: torch.func.jvp(f, (x,), (t,))[1])(t[None]),
}
RECORDERS = {
    "eager": lambda f, *args: f,
    "compiled": lambda f, *args: torch.compile(f, backend="aot_eager"),
    "read by Dynamo": lambda f, *args: torch.compile(f, backend="eager"),
    "make_fx": lambda f, *args: make_fx(f)(*args),
}


@pytest.mark.parametrize("recorder", RECORDERS)
@pytest.mark.parametrize("mode", FORWARD_MODES)
@pytest.mark.parametrize("kind", EXPONENTIALS)
def test_forward_mode(dynamo, kind, mode, recorder):
    """Nowhere is a tangent lost without an error; operations by themselves have all."""
    operation, x, t = EXPONENTIALS[kind], *(torch.randn(9, device=dynamo) for _ in range(2))

    def tangent(x, t):
        return FORWARD_MODES[mode](operation, x, t)

    try:
        found = RECORDERS[recorder](tangent, x, t)(x, t)
    except (AutodiffError, RuntimeError) as error:
        # PyTorch has no double backward through compiled code either.
        assert mode == "by two gradients" and recorder != "eager", error
        assert re.search("differentiated again|double backward", str(error)), error
    else:
        X, T = x.double(), t.double()
        truth = X.exp() * T
        if mode == "jvp beside PyTorch":
            truth = truth + 2 * X * T
        truth = {"jacfwd": X.exp().diag(), "hessian": X.exp().diag(), "a batch": truth[None]}.get(
            mode, truth
        )
        torch.testing.assert_close(found.double(), truth, rtol=1e-5, atol=1e-5)
    torch.testing.assert_close(operation(x), x.exp())
