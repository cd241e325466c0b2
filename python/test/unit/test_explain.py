"""explain(): what it says is what the compiler decided, with the user's names and lines."""

import inspect
import re
from pathlib import Path

import gradients
import pytest
import torch
import triton
import triton.language as tl
from gradients import differentiated, random_tensor
from kernels import cross_entropy as ce
from kernels import derivatives as dv
from kernels import elementwise as ew
from kernels import gather, loops, whiles
from kernels import matmul as mm
from kernels import normalization as norm
from kernels import schedules as sch
from kernels import softmax as sm
from torch.autograd import forward_ad
from triton.backends.autodiff import autodiff
from triton.backends.autodiff.errors import NoTangents
from triton.backends.autodiff.programs import dual


@pytest.fixture(autouse=True)
def needs_gradients():
    if gradients.FORWARD_ONLY:
        pytest.skip("nothing to see in the forward pass")


def _line(kernel, text):
    """The line of a kernel's file that holds `text`, as reports name it."""
    file = Path(inspect.getsourcefile(kernel.fn))
    start = inspect.getsourcelines(kernel.fn)[1]
    lines = file.read_text(encoding="utf-8").splitlines()
    number = next(n for n, line in enumerate(lines, 1) if n >= start and text in line)
    return f"{file.name}:{number}"


def _gradient(text, name):
    """The lines about one argument's gradient."""
    return re.search(rf"  gradient of {name}: .*(\n    .*)*", text).group()


def test_matmul(device):
    op = differentiated(mm.matmul_kernel, mm.matmul)
    op(random_tensor(64, 64, device=device), random_tensor(64, 96, device=device))
    text = op.explain()
    a, b = _gradient(text, "a_ptr"), _gradient(text, "b_ptr")
    loop, load = _line(mm._tile_product, " in range("), _line(mm._tile_product, "tl.load(a_ptrs")
    assert f"loaded at {load}, 32×32 at a time" in a
    assert f"iteration of the loop at {loop}" in a and "program_id(0)" in a
    for gradient, summed in ((a, 1), (b, 0)):
        assert "plain stores" in gradient
        assert f"yes: each iteration of the loop at {loop} is a program of " in gradient
        assert f", which sums over program_id({summed})" in gradient
    assert f"_interchanged0, whose programs are iterations of the loop at {loop}" in text
    assert f"reads again: a_ptr (as at {load})" in text and "handed over" not in text


def test_shared_operand(device):
    """An expanded operand fails the check of the stores, and is added atomically."""
    op = differentiated(mm.batched_matmul_kernel, mm.batched_matmul)
    b = random_tensor(50, 40, device=device)
    op(random_tensor(3, 64, 50, device=device), b.expand(3, -1, -1))
    text = _gradient(op.explain(), "b_ptr")
    assert "atomic adds in f32" in text
    assert "plain-stores: no: a check of the addresses fails: " in text


def test_epilogue(device):
    op = differentiated(mm.bias_activation_kernel, mm.bias_activation)
    shapes = ((50, 33), (33, 70), (70,))
    op(*(random_tensor(*shape, device=device) for shape in shapes), "gelu")
    text = op.explain()
    where = _line(mm.bias_activation_kernel, "acc = 0.5 * acc")
    assert len(re.findall("handed over: ", text)) == 1
    assert re.search(
        rf"handed over: (\w+)_bwd leaves the value of 'd_acc' at {where}, 32×32 f32 a program, "
        r"24 KiB, for \1_bwd_interchanged0 and \1_bwd_interchanged1", text
    )  # fmt: skip


def test_who_reads_what_is_handed_over(device):
    """Two loops become two kernels, and each reads what it needs itself."""
    op = differentiated(sch.window_and_triangle_kernel, sch.window_and_triangle)
    op(*(random_tensor(4, 8, device=device) for _ in range(2)), 3)
    text = op.explain()
    for n, name in enumerate(("near", "before")):
        assert re.search(
            rf"handed over: (\w+)_bwd leaves the value of 'd_{name}' .*, for "
            rf"\1_bwd_interchanged{n}\n", text
        )  # fmt: skip


def test_counter_of_a_loop(device):
    """A start that depends on the program: the address is the counter itself."""
    op = differentiated(sch.band_kernel, sch.band)
    op(random_tensor(2, 45, device=device), random_tensor(2, 3, 8, device=device), "rest")
    loop = _line(sch.band_kernel, " in range(")
    assert f"+ counter of the loop at {loop}" in _gradient(op.explain(), "x_ptr")


def test_layer_norm(device):
    op = differentiated(norm.layer_norm_kernel, norm.layer_norm)
    op(*(random_tensor(*s, device=device) for s in ((8, 100), (100,), (100,))))
    text = op.explain()
    assert "plain stores" in _gradient(text, "x_ptr")
    assert "yes: each element is loaded once" in _gradient(text, "x_ptr")
    w = _gradient(text, "w_ptr")
    assert "partial sums in f32" in w and "and sum over program_id(0) in registers" in w
    assert "_persistent, whose programs each do the work of several" in text
    where = _line(norm.layer_norm_kernel, "mean =")
    assert f"saved: a reduction of 'mean' at {where}, 1 f32 a program, 32 bytes" in text
    assert "layer_norm_kernel_fwd, which saves" in text


def test_targets(device):
    """What is gathered is added where everything is stored."""
    op = differentiated(ce.cross_entropy_kernel, ce.cross_entropy)
    op(random_tensor(7, 33, device=device), torch.randint(33, (7,), device=device))
    text = _gradient(op.explain(), "logits_ptr")
    where = _line(ce.cross_entropy_kernel, "picked =")
    assert "plain stores" in text and f"merge-gathered at {where}: yes: lanes at " in text
    assert "a kernel behind this one where its index is none of theirs" in text


def test_softmax(device):
    op = differentiated(sm.softmax_kernel, sm.rowwise)
    op(random_tensor(7, 33, device=device, dtype=torch.float16))
    text = op.explain()
    assert "gradients of x_ptr; writes y_ptr" in text
    assert "stride_x·program_id(0) + (0 … 63)" in _gradient(text, "x_ptr")
    assert len(re.findall("  saved: a reduction of .* 28 bytes", text)) == 2


def test_gather(device):
    op = differentiated(gather.embedding_kernel, gather.embedding)
    index = torch.randint(0, 17, (40,), device=device)
    op(index, random_tensor(17, 33, device=device))
    text = op.explain()
    where = _line(gather.embedding_kernel, "tl.load(index_ptr")
    assert f"it depends on what is loaded at {where}" in text
    assert "no gradient of index_ptr: it holds integers" in text
    assert "forward: the kernel itself" in text and "saved" not in text


def test_tape_and_what_was_not_asked_for(device):
    op = differentiated(loops.rnn_kernel, loops.rnn)
    x, w = random_tensor(2, 7, 20, device=device), random_tensor(20, device=device)
    op(x, w, random_tensor(2, 20, device=device, grad=False))
    text = op.explain()
    # 2 × 2 programs, 7 iterations, 16 floats.
    where = _line(loops.rnn_kernel, " in range(")
    assert re.search(rf"taped: each value .*at {where}, 16 f32 an iteration, 1792 bytes", text)
    assert "no gradient of h0_ptr: none was asked for" in text


def test_update_in_place(device):
    """What the kernel loads, it stores to as well."""
    op = differentiated(ew.square_inplace_kernel, ew.inplace)
    op(random_tensor(100, device=device))
    text = op.explain()
    assert "gradient of x_ptr: plain stores, each element once" in text
    assert "yes: read from the caller's tensor, where each element is stored to once" in text
    assert "x_ptr is copied before the launch, which overwrites it" in text


def test_before_the_first_call(device):
    op = differentiated(mm.matmul_kernel, mm.matmul)
    a, b = random_tensor(64, 64, device=device), random_tensor(64, 96, device=device)
    assert "sums over program_id(1)" in op.explain(a, b)


@triton.jit
def shared_by_three_kernel(x_ptr, y_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + i // 3, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


@pytest.mark.parametrize("n", [999, 1000])
def test_why_positions_are_not_taken_apart(device, n):
    """What a launch breaks that the offered plan assumes is said, with the user's names."""

    def shared(kernel, x):
        y = torch.empty(n, device=device)
        kernel[(triton.cdiv(n, 128),)](x, y, n, BLOCK=128)
        return y

    op = differentiated(shared_by_three_kernel, shared)
    op(random_tensor(334, device=device))
    text, load = op.explain(), _line(shared_by_three_kernel, "tl.load")
    if n % 3:
        said = f"positions: not taken apart, as at {load}: for that, n has to be a multiple of 3"
        assert said in text and "atomic adds" in _gradient(text, "x_ptr")
    else:
        assert f"positions: taken apart, as at {load}" in text
        assert "plain stores" in _gradient(text, "x_ptr")


@triton.jit
def far_kernel(x_ptr, y_ptr, a, b, c, d, e, f, g, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    row = (a * b * 3 + c * d * 5 + e * f * 7 + g * a * 11 + b * c * 13 + d * e * 17) * (a + c * e)
    x = tl.load(x_ptr + (row + a * d + b * e + c * f + d * g) * n + i, mask=i < n)
    tl.store(y_ptr + i, x * x, mask=i < n)


def test_long_addresses_are_cut(device):
    from triton.backends.autodiff import differentiable

    kernel = differentiable(far_kernel)
    x = torch.randn(50, device=device, requires_grad=True)
    kernel[(1,)](x, torch.empty_like(x), *[0] * 7, 50, BLOCK=64)
    text = kernel.explain(verbose=True)
    assert any(" at a time: element " in line and line.endswith("…") for line in text.splitlines())
    assert all(len(line) < 400 for line in text.splitlines()), text


# ---- tangents and second derivatives


def _fresh(kernel, stub):
    """An operation of which nothing has run: what other tests have compiled is not its own."""
    return autodiff(triton.jit(kernel.fn), stub)


def _curved(device):
    op = _fresh(dv.curved_kernel, dv.curved)
    return op, *(random_tensor(37, device=device).requires_grad_() for _ in range(2))


def _slope(op, x, *others):
    """The gradient by x, to be differentiated."""
    return torch.autograd.grad(op(x, *others).sum(), x, create_graph=True)[0]


def _told(text):
    """The lines about what ran for other derivatives than the first."""
    return re.findall(r"^  (tangents of .*|second derivatives by .*)$", text, re.M)


def test_tangents(device):
    """Those that came, what computes them, and how the gradient of that is computed, if it was."""
    op, x, w = _curved(device)
    op(x, w)
    assert not _told(op.explain()), "nothing ran"
    with forward_ad.dual_level(), torch.no_grad():
        op(forward_ad.make_dual(x, torch.ones_like(x)), w)
    line = (
        "tangents of y_ptr, from those of {}: curved_kernel_jvp, which computes values and tangents"
    )
    assert _told(op.explain()) == [line.format("x_ptr")]
    assert "kernel curved_kernel_jvp: " not in op.explain(), "nobody wanted its gradient"
    with forward_ad.dual_level():
        y = op(x, forward_ad.make_dual(w, torch.ones_like(w)))
        tangent = forward_ad.unpack_dual(y).tangent
    tangent.sum().backward()
    assert _told(op.explain()) == [line.format("x_ptr"), line.format("w_ptr")]
    _, behind = op.explain(verbose=True).split("kernel curved_kernel_jvp: gradients of ")
    assert behind.startswith("x_ptr, w_ptr; writes y_ptr, tangent of y_ptr\n")
    assert "reads again: tangent of w_ptr (as at " in behind and "what was tried:" in behind


def test_tangents_under_transforms(device):
    op, x, w = _curved(device)
    torch.func.jvp(op, (x.detach(), w.detach()), (x.detach(), w.detach()))
    (line,) = _told(op.explain())
    assert line.startswith("tangents of y_ptr, from those of x_ptr, w_ptr: curved_kernel_jvp")


def test_second_derivatives_by_the_plan(device):
    op, x, w = _curved(device)
    slope = _slope(op, x, w)
    assert not _told(op.explain()), "nothing has been differentiated again"
    slope.sum().backward()
    assert _told(op.explain()) == [
        "second derivatives by x_ptr, w_ptr, along x_ptr: by the plan of the gradient, whose "
        "kernels compute tangents, too: curved_kernel_bwd_jvp"
    ]


def test_second_derivatives_with_a_forward(device):
    """What the forward saves for the backward has tangents, too: it runs again."""
    op = _fresh(norm.layer_norm_kernel, norm.layer_norm)
    shapes = ((3, 50), (50,), (50,))
    x, w, b = (random_tensor(*shape, device=device).requires_grad_() for shape in shapes)
    _slope(lambda x: op(x, w, b).square(), x).sum().backward()
    (line,) = (line for line in _told(op.explain()) if line.startswith("second"))
    names = line.rsplit(": ", 1)[1]
    assert names == "layer_norm_kernel_fwd_jvp, layer_norm_kernel_bwd_persistent_jvp"


def test_third_derivatives(device):
    """Of the kernel with tangents, the same is told."""
    op, x, w = _curved(device)
    _slope(lambda x: _slope(op, x, w).square(), x).sum().backward()
    own, behind = op.explain().split(
        "\nkernel curved_kernel_jvp, which computes values and tangents\n"
    )
    assert len(_told(own)) == 1
    assert any(", along x_ptr: by the plan" in line for line in _told(behind))
    assert "curved_kernel_jvp_bwd_jvp" in behind


def _refused(text):
    """The reason why a second derivative did not come of the plan, and what is told of its own."""
    (line,) = _told(text)
    how = "by the gradient of (\\w+)_jvp; not by the plan of the gradient: (.*)"
    name, reason = re.search(how, line).groups()
    assert f"\nkernel {name}_jvp: gradients of " in text
    assert f"\n  backward kernel: {name}_jvp_bwd" in text
    return reason


def test_why_not_by_the_plan_counted_loops(device):
    op = _fresh(whiles.newton_kernel, whiles.newton)
    x = (1 + torch.rand(16, device=device)).requires_grad_()
    _slope(op, x, 1e-3).sum().backward()
    assert "loops have to be counted" in _refused(op.explain())


def test_why_not_by_the_plan_checked(device, monkeypatch):
    monkeypatch.setenv("TRITON_AUTODIFF_CHECK", "1")
    op, x, w = _curved(device)
    _slope(op, x, w).sum().backward()
    assert _refused(op.explain()) == "its accesses are checked"


def test_why_not_by_the_plan_without_a_tangent(device, monkeypatch):
    """The compiler's reason."""

    def refuse(*_):
        raise NoTangents("k.py:3: no tangent")

    monkeypatch.setattr(dual, "kernel_with_tangents", refuse)
    op, x, w = _curved(device)
    _slope(op, x, w).sum().backward()
    assert _refused(op.explain()) == "k.py:3: no tangent"
