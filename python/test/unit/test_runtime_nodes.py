"""Launches as autograd nodes: the runtime alone, with plans and kernels written by hand.

The "compiled kernels" here are Python functions over raw memory, so that these tests need neither
the native library nor a driver, and can look at everything that a kernel is given.
"""

import ctypes
import gc
import types
import weakref

import numpy
import pytest
import torch
from triton.backends.autodiff.checking.checks import DistinctCheck
from triton.backends.autodiff.compiling.executable import Executable
from triton.backends.autodiff.errors import ArgumentError, AutodiffError, PlanError
from triton.backends.autodiff.launching import duals, nodes, state
from triton.backends.autodiff.launching.options import Options
from triton.backends.autodiff.launching.specialize import CompiledLaunch
from triton.backends.autodiff.plans import plan as plans
from triton.runtime.driver import driver


def memory(address, count):
    """The floats at an address."""
    assert address % 16 == 0
    return numpy.ctypeslib.as_array((ctypes.c_float * count).from_address(address))


def address(pointer):
    """The address that a launcher would pass for an argument."""
    return pointer.data_ptr() if isinstance(pointer, torch.Tensor) else pointer


class FakeCompiledKernel:
    """What the runtime needs of Triton's CompiledKernel, around a Python function."""

    def __init__(self, function, signature):
        target = types.SimpleNamespace(backend="cpu")
        self.function, self.packed_metadata = function, ()
        self.asm = {"ttir": function.__name__}
        self.metadata = types.SimpleNamespace(target=target, num_warps=4)
        self.src = types.SimpleNamespace(signature=signature)

    def _run(self, gx, gy, gz, stream, function, packed, metadata, enter, leave, *args):
        function((gx, gy, gz), *map(address, args))

    # As that of Triton's class.
    run = property(lambda self: self._run)


class FakeResolver:
    """Resolves every launch to one fake kernel."""

    options = Options()

    def __init__(self, function, signature):
        self.kernel = FakeCompiledKernel(function, signature)
        self.function = types.SimpleNamespace(__name__=function.__name__, arg_names=list(signature))

    def resolve(self, args, kwargs, grid):
        return CompiledLaunch(self.function, self.kernel, grid, list(args))


class Scenario:
    """A fake kernel, the backward functions by name, and the plans that requests receive."""

    def __init__(self, monkeypatch, forward, signature, make_plan, backward):
        self.requests = []
        self.resolver = FakeResolver(forward, signature)

        def plan_for(ttir, request, name):
            self.requests.append(request)
            return make_plan(request)

        def compile_(executable):
            function = backward[executable.kernel.name]
            return FakeCompiledKernel(function, {})

        monkeypatch.setattr(state, "plan_for", plan_for)
        monkeypatch.setattr(Executable, "_compile", compile_)

    def launch(self, *args, grid=(1, 1, 1)):
        launch = self.resolver.resolve(args, {}, grid)
        state = nodes.state_of(launch, self.resolver.options)
        return state, nodes.start(launch, state)


@pytest.fixture(autouse=True)
def fake_driver(monkeypatch):
    active = types.SimpleNamespace(
        get_current_device=lambda: 0,
        set_current_device=lambda device: None,
        get_current_stream=lambda device: 0,
    )
    monkeypatch.setattr(driver, "_active", active)


def operand(kind, index):
    return (kind, index)


def backward_kernel(name, *operands):
    return plans.Kernel(name, name, None, operands)


def gradient(argument, init="zero", accumulate="atomic", checks=()):
    return plans.Gradient(argument, "f32", init, accumulate, tuple(checks))


def steps_of(arguments, gradients, backward, buffers):
    """What the host does for these kernels, as the compiler would list it (ListSteps.cpp)."""
    read = {operand for kernel in backward for operand in kernel.operands}
    of = [g.argument for g in gradients]
    given = {i for kind, i in read if kind == "cotangent"}
    given |= {g.argument for g in gradients if g.init == "cotangent"}
    saved = [n for n, buffer in enumerate(buffers) if buffer.kind == "saved"]
    own = [n for n, buffer in enumerate(buffers) if buffer.kind != "saved"]

    def each(kind, numbers):
        return [(kind, (number,)) for number in numbers]

    def together(kind, numbers):
        return [(kind, tuple(numbers))] if numbers else []

    pointers = [
        i for i, t in enumerate(arguments) if t.startswith("ptr") and ("argument", i) in read
    ]
    return {
        "forward": (
            *each("copy", pointers), *each("allocate", saved), ("launch_forward", ()),
            *together("keep", pointers), *together("save", saved),
        ),
        "prepare": (
            *each("lay_out", sorted(given)), *each("allocate", own), *each("make", of),
        ),
        "launch": tuple(each("launch", range(len(backward)))),
        "finish": (*each("convert", of), *together("return", of)),
    }  # fmt: skip


def make(
    arguments, inputs, outputs, gradients, backward, snapshots=(), buffers=(), forward=None,
    checks=(), steps=(),
):  # fmt: skip
    floats = [j for j, t in enumerate(arguments) if t.startswith("ptr<f")]
    return plans.Plan(
        "k",
        tuple(plans.Argument(t) for t in arguments),
        tuple(inputs),
        tuple(outputs),
        {j: frozenset(floats) for j in outputs if j in floats},
        tuple(snapshots),
        tuple(buffers),
        tuple(gradients),
        forward,
        tuple(backward),
        {},
        steps_of(arguments, gradients, backward, buffers),
        tuple(checks),
        next=tuple(steps),
    )


@pytest.fixture
def square(monkeypatch):
    """y = x² over n floats."""

    def forward(grid, x, y, n):
        memory(y, n)[:] = memory(x, n) ** 2

    def bwd(grid, x, dy, dx, n):
        memory(dx, n)[:] += 2 * memory(x, n) * memory(dy, n)

    def plan(request):
        overwrite = 1 in request["wanted"]
        return make(
            ["ptr<f32>", "ptr<f32>", "i32"],
            request["wanted"],
            [1],
            [gradient(0)] + [gradient(1, "cotangent")] * overwrite,
            [
                backward_kernel(
                    "bwd", ("argument", 0), ("cotangent", 1), ("gradient", 0), ("argument", 2)
                )
            ]
            + [backward_kernel("clear", ("gradient", 1), ("argument", 2))] * overwrite,
        )

    def clear(grid, dy, n):
        memory(dy, n)[:] = 0

    signature = {"x": "*fp32", "y": "*fp32", "n": "i32"}
    return Scenario(monkeypatch, forward, signature, plan, {"bwd": bwd, "clear": clear})


def test_the_callers_own_tensor_gets_a_gradient_function(square):
    x = torch.randn(8, requires_grad=True)
    y = torch.empty(8)
    square.launch(x, y, 8)
    assert y.requires_grad and y.grad_fn is not None
    (y * torch.arange(8.0)).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach() * torch.arange(8.0))


@pytest.mark.parametrize("upstream", ["expanded", "transposed", "offset", "none"])
def test_upstream_gradients_of_any_layout(square, upstream):
    x = torch.randn(4, 4, requires_grad=True)
    y = torch.empty(4, 4)
    square.launch(x, y, 16)
    g = {
        "expanded": torch.tensor(3.0).expand(4, 4),
        "transposed": torch.randn(4, 4).t(),
        "offset": torch.randn(17)[1:].view(4, 4),
        "none": torch.ones(4, 4),
    }[upstream]
    y.backward(g)
    torch.testing.assert_close(x.grad, 2 * x.detach() * g)


def test_views_of_a_buffer_as_outputs(square):
    x = torch.randn(4, requires_grad=True)
    buffer = torch.zeros(12)
    square.launch(x, buffer[4:8], 4)
    (buffer * torch.arange(12.0)).sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach() * torch.arange(4.0, 8.0))


def test_view_of_a_buffer_with_history(square):
    x = torch.randn(4, requires_grad=True)
    base = torch.randn(12, requires_grad=True)
    buffer = base * 3
    square.launch(x, buffer[4:8], 4)
    buffer.backward(torch.arange(12.0))
    expected = 3 * torch.arange(12.0)
    expected[4:8] = 0
    torch.testing.assert_close(base.grad, expected)
    torch.testing.assert_close(x.grad, 2 * x.detach() * torch.arange(4.0, 8.0))


def test_output_with_history_is_an_input(square):
    x = torch.randn(4, requires_grad=True)
    old = torch.randn(4, requires_grad=True)
    y = old * 2
    square.launch(x, y, 4)
    y.sum().backward()
    torch.testing.assert_close(x.grad, 2 * x.detach())
    torch.testing.assert_close(old.grad, torch.zeros(4))


@pytest.mark.parametrize("alias", ["itself", "view", "detached"])
def test_in_place_over_an_alias_keeps_a_copy(square, alias):
    leaf = torch.randn(4, requires_grad=True)
    x = leaf * 1
    before = x.detach().clone()
    if alias == "detached":
        # Autograd does not see this change of x, but the launch must not lose its input.
        y = x.detach()
    else:
        y = x if alias == "itself" else x[:]
    square.launch(x, y, 4)
    torch.testing.assert_close(y.detach(), before**2)
    (y if alias == "detached" else x).sum().backward()
    torch.testing.assert_close(leaf.grad, 2 * before)


def test_expanded_and_overlapping_inputs(square):
    leaf = torch.randn(1, requires_grad=True)

    def forward(grid, x, y, n):
        memory(y, n)[:] = memory(x, 1) ** 2

    def bwd(grid, x, dy, dx, n):
        memory(dx, 1)[:] += (2 * memory(x, 1) * memory(dy, n)).sum()

    square.resolver.kernel.function = forward
    x = leaf.expand(4)
    y = torch.empty(4)
    monkey = Executable._compile
    try:
        Executable._compile = lambda self: FakeCompiledKernel(bwd, {})
        square.launch(x, y, 4)
        y.backward(torch.arange(4.0))
    finally:
        Executable._compile = monkey
    torch.testing.assert_close(leaf.grad, 2 * leaf.detach() * 6)


def test_expanded_output_is_refused(square):
    x = torch.randn(4, requires_grad=True)
    with pytest.raises(ArgumentError, match="'y'.*share memory"):
        square.launch(x, torch.zeros(1).expand(4), 4)


def test_leaves_are_refused_before_the_launch(square):
    x, y = torch.randn(4, requires_grad=True), torch.zeros(4, requires_grad=True)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad.*'y'"):
        square.launch(x, y, 4)
    with pytest.raises(RuntimeError, match="a view of a leaf Variable"):
        square.launch(x, y[:], 4)
    assert not y.any()


def test_saved_tensor_changed_before_backward(square):
    x = torch.randn(4, requires_grad=True)
    doubled, y = x * 2, torch.empty(4)
    square.launch(doubled, y, 4)
    doubled.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_plain_launch_counts_as_a_change(square):
    x = torch.randn(4, requires_grad=True)
    doubled, y = x * 2, torch.empty(4)
    square.launch(doubled, y, 4)
    with torch.no_grad():
        square.launch(torch.ones(4), doubled, 4)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()


def test_nothing_wanted_makes_no_node(square):
    x, y = torch.randn(4), torch.empty(4)
    square.launch(x, y, 4)
    assert not y.requires_grad and not square.requests
    with torch.no_grad():
        square.launch(x.requires_grad_(), y, 4)
    with torch.inference_mode():
        square.launch(x, torch.empty(4), 4)
    assert not y.requires_grad and not square.requests


def test_known_outputs_and_inference_tensors(square):
    x = torch.randn(4, requires_grad=True)
    square.launch(x, torch.empty(4), 4)
    plain = torch.empty(4)
    with torch.inference_mode():
        square.launch(x, torch.empty(4), 4)
        square.launch(x, plain, 4)
    assert plain._version == 1


def test_empty_grid(square):
    x = torch.randn(4, requires_grad=True)
    y = torch.full((4,), 5.0)
    square.launch(x, y, 4, grid=(0, 1, 1))
    y.sum().backward()
    assert (y == 5).all() and not x.grad.any()


def test_retain_graph_and_double_backward(square):
    x = torch.randn(4, requires_grad=True)
    y = torch.empty(4)
    square.launch(x, y, 4)
    y.sum().backward(retain_graph=True)
    first = x.grad.clone()
    y.sum().backward(retain_graph=True)
    torch.testing.assert_close(x.grad, 2 * first)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    torch.testing.assert_close(g.detach(), first)
    # There is no TTIR here that tangents could be derived from.
    with pytest.raises(AutodiffError, match="cannot differentiate kernel 'forward'"):
        (g**2).sum().backward()


def test_one_launch_many_times_in_one_graph(square):
    x = torch.rand(4, requires_grad=True)
    value = x
    for _ in range(3):
        y = torch.empty(4)
        square.launch(value, y, 4)
        value = y
    value.sum().backward()
    torch.testing.assert_close(x.grad, 8 * x.detach() ** 7)


def test_checkpoint(square):
    def section(x):
        y = torch.empty(4)
        square.launch(x * 2, y, 4)
        return y

    x = torch.randn(4, requires_grad=True)
    for reentrant in (False, True):
        x.grad = None
        out = torch.utils.checkpoint.checkpoint(section, x, use_reentrant=reentrant)
        out.sum().backward()
        torch.testing.assert_close(x.grad, 8 * x.detach())


def test_no_reference_cycle(square):
    gc.collect()
    gc.disable()
    try:
        for make_output in (lambda: torch.empty(4), lambda: torch.empty(8)[4:]):
            output = make_output()
            x = torch.randn(4, requires_grad=True) * 1
            watched = weakref.ref(x)
            square.launch(x, output, 4)
            del x, output
            assert watched() is None
    finally:
        gc.enable()


def test_padding_around_a_gradient_is_not_written(square):
    """A kernel that strays over the storage stays inside of its gradient buffer."""
    x = torch.randn(16, requires_grad=True)
    y = torch.empty(16)[4:8]

    def stray(grid, x, dy, dx, n):
        whole = memory(dx - 16, 16)
        assert not whole.any()
        whole += 1

    monkey = Executable._compile
    try:
        Executable._compile = lambda self: FakeCompiledKernel(stray, {})
        square.launch(x[4:8], y, 4)
        y.sum().backward()
    finally:
        Executable._compile = monkey
    expected = torch.zeros(16)
    expected[4:8] = 1
    torch.testing.assert_close(x.grad, expected)


@pytest.mark.parametrize(
    "bad, message",
    [
        (lambda: torch.randn(4, device="meta"), "on meta"),
        (lambda: torch.randn(4, dtype=torch.complex64), "real.*complex64"),
    ],
)
def test_bad_arguments_are_named(square, bad, message):
    x = torch.randn(4, requires_grad=True)
    with pytest.raises(ArgumentError, match=f"'y'.*{message}"):
        square.launch(x, bad(), 4)


@pytest.mark.parametrize("name", ["base", "_base"])
def test_wrapped_tensor_that_requires_a_gradient(square, name):
    wrapper = types.SimpleNamespace(**{name: torch.randn(4, requires_grad=True)})
    with pytest.raises(ArgumentError, match="'x'.*SimpleNamespace for a tensor that requires"):
        square.launch(wrapper, torch.empty(4), 4)


# Two outputs, y = a·x and z = b·x, with what a plan can ask of the runtime.


@pytest.fixture
def pair(monkeypatch):
    """y = 2x and z = 3x over 4 floats, with one plan per set of cotangents."""

    def forward(grid, x, y, z):
        memory(y, 4)[:] = 2 * memory(x, 4)
        memory(z, 4)[:] = 3 * memory(x, 4)

    def both(grid, dy, dz, dx):
        memory(dx, 4)[:] = 2 * memory(dy, 4) + 3 * memory(dz, 4)

    def only_y(grid, dy, dx):
        memory(dx, 4)[:] = 2 * memory(dy, 4)

    def only_z(grid, dz, dx):
        memory(dx, 4)[:] = 3 * memory(dz, 4)

    def augmented(grid, x, y, z, saved):
        forward(grid, x, y, z)
        memory(saved, 4)[:] = 7

    def from_saved(grid, dy, dz, dx, saved):
        assert (memory(saved, 4) == 7).all()
        both(grid, dy, dz, dx)

    setup = types.SimpleNamespace(saves=False)

    def plan(request):
        live = request["cotangents"] or [1, 2]
        operands = [("cotangent", j) for j in live] + [("gradient", 0)]
        name = {(1,): "only_y", (2,): "only_z", (1, 2): "both"}[tuple(live)]
        kernel, buffers = None, ()
        if setup.saves and len(live) == 2 and request["save"]:
            buffers = (plans.Buffer("saved0", "saved", "f32", 4),)
            arguments = [("argument", i) for i in range(3)]
            kernel = backward_kernel("augmented", *arguments, ("buffer", 0))
            name, operands = "from_saved", [*operands, ("buffer", 0)]
        return make(
            ["ptr<f32>"] * 3,
            [0],
            [1, 2],
            [gradient(0)],
            [backward_kernel(name, *operands)],
            buffers=buffers,
            forward=kernel,
        )

    functions = {f.__name__: f for f in (both, only_y, only_z, augmented, from_saved)}
    signature = {"x": "*fp32", "y": "*fp32", "z": "*fp32"}
    scenario = Scenario(monkeypatch, forward, signature, plan, functions)
    scenario.setup = setup
    return scenario


@pytest.mark.parametrize("saves", [False, True])
@pytest.mark.parametrize("used", [(1,), (2,), (1, 2)])
def test_outputs_without_a_gradient(pair, saves, used):
    pair.setup.saves = saves
    x = torch.randn(4, requires_grad=True)
    for _ in range(2):
        y, z = torch.empty(4), torch.empty(4)
        pair.launch(x, y, z)
        x.grad = None
        loss = sum({1: y, 2: z}[j].sum() for j in used)
        loss.backward()
        expected = sum({1: 2.0, 2: 3.0}[j] for j in used)
        torch.testing.assert_close(x.grad, torch.full((4,), expected))
    asked = [tuple(r["cotangents"]) for r in pair.requests if r["cotangents"]]
    assert asked == ([] if used == (1, 2) else [used])


@pytest.fixture(params=[False, True])
def dual_graphs(request, monkeypatch):
    """Whether a graph has had tangents before: then every backward looks for some."""
    monkeypatch.setattr(duals, "_are_in_graphs", request.param)


@pytest.mark.usefixtures("dual_graphs")
def test_gradients_that_were_not_expected(pair):
    """The third launch saves nothing, as the second one needed nothing for y alone."""
    pair.setup.saves = True
    x = torch.randn(4, requires_grad=True)
    for used in ((1,), (1,), (1, 2), (2,), (1,)):
        y, z = torch.empty(4), torch.empty(4)
        pair.launch(x, y, z)
        loss = sum({1: y, 2: z}[j].sum() for j in used)
        (gradient,) = torch.autograd.grad(loss, x)
        expected = sum({1: 2.0, 2: 3.0}[j] for j in used)
        torch.testing.assert_close(gradient, torch.full((4,), expected))
    saving = [r["save"] for r in pair.requests]
    assert saving == [True, True, False, True, True], pair.requests


def test_two_views_of_one_buffer(pair):
    x = torch.randn(4, requires_grad=True)
    buffer = torch.zeros(2, 4)
    pair.launch(x, buffer[0], buffer[1])
    buffer.backward(torch.tensor([[1.0], [10.0]]).expand(2, 4))
    torch.testing.assert_close(x.grad, torch.full((4,), 32.0))


@pytest.mark.parametrize("other", [0, 2, 3])
def test_outputs_that_share_memory_are_refused(pair, other):
    x = torch.randn(4, requires_grad=True)
    buffer = torch.empty(8)
    with pytest.raises(ArgumentError, match="'y' and 'z'.*share memory"):
        pair.launch(x, buffer[:4], buffer[other : other + 4])


@pytest.mark.usefixtures("dual_graphs")
def test_facts_grow_without_recomputing(pair):
    x = torch.randn(4, requires_grad=True)
    for _ in range(3):
        y, z = torch.empty(4), torch.empty(4)
        pair.launch(x, y, z)
        (y + z).sum().backward()
    assert len(pair.requests) == 1


@pytest.fixture
def scatter(monkeypatch):
    """Program p stores x[p] to y[p·s] over 4 floats, which is one place if s is zero."""

    def forward(grid, x, y, s):
        for p in range(grid[0]):
            memory(y, 4)[p * s] = memory(x, 4)[p]

    def read(grid, dy, dx, s):
        memory(dx, 4)[:] = memory(dy, 4)[numpy.arange(grid[0]) * s]

    def exchange(grid, dy, dx, s):
        for p in reversed(range(grid[0])):
            memory(dx, 4)[p], memory(dy, 4)[p * s] = memory(dy, 4)[p * s], 0

    def plan(request):
        dim = {"stride": ["arg", 2], "digits": [[1, ["pids", ["pid", 0]]]], "bound": None}
        check = {"kind": "distinct", "argument": 1, "offset": 0, "dims": [dim]}
        repeated = request["repeated"] == [1]
        kind, name = ("gradient", "exchange") if repeated else ("cotangent", "read")
        taken = plans.Gradient(1, "f32", "cotangent", "atomic", (), returned=False)
        return make(
            ["ptr<f32>", "ptr<f32>", "i32"],
            [0],
            [1],
            [gradient(0), *([taken] if repeated else [])],
            [backward_kernel(name, (kind, 1), ("gradient", 0), ("argument", 2))],
            checks=() if repeated else (DistinctCheck.from_json(check, 3),),
            steps=() if repeated else ([plans.Next((), "output", 1, "repeated", (1,))],),
        )

    signature = {"x": "*fp32", "y": "*fp32", "s": "i32"}
    return Scenario(monkeypatch, forward, signature, plan, {"read": read, "exchange": exchange})


@pytest.mark.parametrize("strides", [(0, 1, 0), (1, 0, 1)])
def test_stores_to_one_place_take_the_upstream_gradient_once(scatter, strides):
    x = torch.arange(4.0, requires_grad=True)
    upstream = torch.tensor([1.0, 2.0, 3.0, 4.0])
    for s in strides:
        y = torch.zeros(4)
        x.grad = None
        _, execution = scatter.launch(x, y, s, grid=(4, 1, 1))
        assert execution.request.repeated == ((1,) if s == 0 else ())
        y.backward(upstream)
        expected = upstream if s == 1 else torch.tensor([0.0, 0.0, 0.0, 1.0])
        torch.testing.assert_close(x.grad, expected)
        assert upstream.tolist() == [1, 2, 3, 4]
    assert [r["repeated"] for r in scatter.requests] == [[], [1]]


def test_a_plan_that_repeats_a_failed_check_is_refused(scatter, monkeypatch):
    plan_for = state.plan_for
    monkeypatch.setattr(
        state,
        "plan_for",
        lambda ttir, request, name: plan_for(ttir, {**request, "repeated": []}, name),
    )
    with pytest.raises(PlanError, match="to ask for what was asked before"):
        scatter.launch(torch.ones(4, requires_grad=True), torch.zeros(4), 0, grid=(4, 1, 1))
