"""liger-kernel's forward kernels, differentiated by us, against liger-kernel's own backward."""

import packages
import pytest
import torch
import torch.nn.functional as F
from packages import assert_as_good_as_theirs, differentiated_launches

pytest.importorskip("liger_kernel")

FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16], ids=str)
FLOAT32 = torch.float32


def check(path, *args, **constants):
    """`packages.check` of a function below `liger_kernel.ops`."""
    packages.check(f"liger_kernel.ops.{path}", *args, **constants)


def labels(classes, *shape, device, ignored=None):
    """Random class indices; the places in `ignored` hold liger's default ignore_index."""
    value = torch.randint(classes, shape, device=device)
    if ignored is not None:
        value[ignored] = -100
    return value


# --------------------------------------------------------------------------------------------
# Normalizations
# --------------------------------------------------------------------------------------------


def rms(x, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


@FLOATS
@pytest.mark.parametrize("mode", ["llama", "gemma", "none"])
def test_rms_norm(random, mode, dtype):
    offset = 1.0 if mode == "gemma" else 0.0
    check(
        "rms_norm.LigerRMSNormFunction",
        lambda x, w: rms(x) * (w + offset),
        (random(3, 5, 200), random(200)),
        1e-6, offset, mode, False,
    )  # fmt: skip


@FLOATS
def test_rms_norm_without_weight(random, dtype):
    check(
        "rms_norm.LigerRMSNormFunction", lambda x, _: rms(x), (random(7, 130), None), 1e-6, 0.0,
        "llama", False,
    )  # fmt: skip


@FLOATS
def test_block_rms_norm(random, dtype):
    """Many short rows go through a kernel of their own."""
    check(
        "rms_norm.LigerRMSNormFunction",
        lambda x, w: rms(x) * w,
        (random(4096 * 8, 24), random(24)),
        1e-6, 0.0, "llama", False, False,
        # Sums in a thread, over a thread's lanes, a program's rows and partial sums.
        roundings=40,
    )  # fmt: skip


@FLOATS
def test_layer_norm(random, dtype):
    check(
        "layer_norm.LigerLayerNormFunction",
        lambda x, w, b: F.layer_norm(x, (300,), w, b, 1e-5),
        (random(4, 9, 300), random(300), random(300)),
        1e-5,
    )


def test_group_norm(random):
    check(
        "group_norm.LigerGroupNormFunction",
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
        (random(2, 12, 50, shift=0.5), random(12), random(12)),
        12, 3, 1e-5,
    )  # fmt: skip


@FLOATS
def test_fused_add_rms_norm(random, dtype):
    check(
        "fused_add_rms_norm.LigerFusedAddRMSNormFunction",
        lambda x, r, w: (rms(x + r) * w, x + r),
        (random(3, 5, 200), random(3, 5, 200), random(200)),
        1e-6, 0.0, "llama", False,
    )  # fmt: skip


@FLOATS
def test_modulated_rms_norm(random, dtype):
    check(
        "modulated_rms_norm.LigerModulatedRMSNormFunction",
        lambda x, w, s, h: rms(x) * w * (1 + s[:, None]) + h[:, None],
        (random(3, 5, 200), random(200), random(3, 200), random(3, 200)),
        1e-6, 0.0, "llama", False,
    )  # fmt: skip


@FLOATS
def test_poly_norm(random, dtype):
    check(
        "poly_norm.LigerPolyNormFunction",
        lambda x, w, b: w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b,
        (random(3, 5, 200), random(3), random(())),
        1e-6, False,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Elementwise
# --------------------------------------------------------------------------------------------


@FLOATS
def test_swiglu(random, dtype):
    check(
        "swiglu.LigerSiLUMulFunction",
        lambda a, b: F.silu(a * 1.5) * b * 0.5,
        (random(4, 6, 300), random(4, 6, 300)),
        1.5, 0.5,
    )  # fmt: skip


@FLOATS
def test_swiglu_fused_gate_up(random, dtype):
    check(
        "swiglu.LigerFusedGateUpSiLUMulFunction",
        lambda y: F.silu(y[:, :150]) * y[:, 150:],
        (random(11, 300),),
        False,
    )


@FLOATS
def test_geglu(random, dtype):
    check(
        "geglu.LigerGELUMulFunction",
        lambda a, b: F.gelu(a, approximate="tanh") * b,
        (random(4, 6, 300), random(4, 6, 300)),
    )


@FLOATS
def test_relu_squared(random, dtype):
    check("relu_squared.LigerReLUSquaredFunction", lambda x: F.relu(x) ** 2, (random(5, 6, 300),))


@FLOATS
def test_softmax(random, dtype):
    check("softmax.LigerSoftmaxFunction", lambda x: x.softmax(-1), (random(4, 6, 300),))


@FLOATS
def test_embedding(random, device, dtype):
    check(
        "experimental.embedding.LigerEmbeddingFunction",
        lambda table, index: table[index],
        (random(40, 100), labels(40, 5, 30, device=device)),
    )


@FLOATS
def test_swiglu_in_tiles(random, dtype, monkeypatch):
    """What newer GPUs use for wide rows."""
    from liger_kernel.ops import swiglu

    monkeypatch.setattr(swiglu, "_should_tile", lambda n: True)
    check(
        "swiglu.LigerSiLUMulFunction",
        lambda a, b: F.silu(a) * b,
        (random(3, 5, 3000), random(3, 5, 3000)),
    )


@FLOATS
def test_dyt(random, device, dtype):
    if device == "cpu":
        pytest.skip("the function asks for the GPU's multiprocessors")
    check(
        "dyt.LigerDyTFunction",
        lambda x, alpha, gamma, beta: torch.tanh(alpha * x) * gamma + beta,
        (random(4, 6, 1500), random(1), random(1500), random(1500)),
        roundings=40,  # one sum of all elements: in threads, over lanes, over programs
    )


# --------------------------------------------------------------------------------------------
# Positions
# --------------------------------------------------------------------------------------------


def rotated(x, cos, sin):
    """Rotate pairs (i, i + half); `cos` and `sin` hold one half."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


@FLOATS
def test_rope(random, dtype):
    """In place, on buffers with the heads next to each other."""
    cos, sin = random(1, 20, 24, grad=False), random(1, 20, 24, grad=False)
    check(
        "rope.LigerRopeFunction",
        lambda q, k, cos, sin: tuple(
            rotated(x, cos[:, None, :, :12], sin[:, None, :, :12]) for x in (q, k)
        ),
        (random(2, 6, 20, 24), random(2, 3, 20, 24), cos, sin),
    )


@FLOATS
def test_qwen2vl_mrope(random, dtype):
    sections = [3, 4, 5]
    cos, sin = random(3, 2, 20, 24, grad=False), random(3, 2, 20, 24, grad=False)

    def mixed(x):
        parts = x[..., :12].split(sections, -1)
        return torch.cat([part[i] for i, part in enumerate(parts)], -1)[:, None]

    check(
        "qwen2vl_mrope.LigerQwen2VLMRopeFunction",
        lambda q, k, cos, sin: tuple(rotated(x, mixed(cos), mixed(sin)) for x in (q, k)),
        (random(2, 6, 20, 24), random(2, 3, 20, 24), cos, sin),
        sections,
    )


@pytest.mark.parametrize("dtype", [torch.float32], ids=str)
def test_llama4_rope(random, device, dtype):
    angles = torch.rand(20, 12, device=device)
    frequencies = torch.polar(torch.ones_like(angles), angles)

    def turned(x, f):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * f[None, :, None]).flatten(-2)

    check(
        "llama4_rope.LigerLlama4RopeFunction",
        lambda q, k, f: (turned(q, f), turned(k, f)),
        (random(2, 20, 6, 24), random(2, 20, 3, 24), frequencies),
    )


# --------------------------------------------------------------------------------------------
# Losses
# --------------------------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy(random, device, reduction, dtype):
    target = labels(300, 9, device=device, ignored=4)
    check(
        "cross_entropy.LigerCrossEntropyFunction",
        lambda x, t: F.cross_entropy(x, t, reduction=reduction),
        (random(9, 300), target),
        None, -100, 0.0, 0.0, reduction,
        HAS_GRADIENTS=False,
    )  # fmt: skip


def test_cross_entropy_with_everything(random, device):
    """Class weights, label smoothing, soft capping and the squared log-sum-exp."""
    target = labels(300, 9, device=device)
    weight = torch.rand(300, device=device)

    def reference(x, t):
        x = 30 * torch.tanh(x / 30)
        loss = F.cross_entropy(x, t, weight.double(), label_smoothing=0.1)
        return loss + 1e-3 * x.logsumexp(-1).square().mean()

    check(
        "cross_entropy.LigerCrossEntropyFunction",
        reference,
        (random(9, 300, scale=5.0), target),
        weight, -100, 1e-3, 0.1, "mean", 30.0,
        HAS_GRADIENTS=False,
    )  # fmt: skip


@FLOATS
def test_cross_entropy_in_place(random, device, dtype):
    """The kernel overwrites the logits with a gradient of its own, which has no part in ours."""
    check(
        "cross_entropy.LigerCrossEntropyFunction",
        lambda x, t: F.cross_entropy(x, t),
        (random(9, 300), labels(300, 9, device=device)),
        None,
    )


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("log_target", [False, True])
@pytest.mark.parametrize("reduction", ["batchmean", "mean", "sum", "none"])
def test_kl_div(random, reduction, log_target):
    target = random(7, 300, grad=False).softmax(-1)
    check(
        "kl_div.LigerKLDivLossFunction",
        lambda y, t: F.kl_div(y, t, reduction=reduction, log_target=log_target),
        (random(7, 300), target.log() if log_target else target),
        reduction, log_target,
    )  # fmt: skip


@pytest.mark.parametrize("beta", [0.0, 0.3, 1.0])
def test_jsd(random, beta):
    def reference(x, y):
        q, p = x.exp(), y.exp()
        if beta == 0.0:
            return (p * (y - x)).sum() / len(x)
        if beta == 1.0:
            return (q * (x - y)).sum() / len(x)
        m = (beta * p + (1 - beta) * q).log()
        return (beta * p * (y - m) + (1 - beta) * q * (x - m)).sum() / len(x)

    logs = [random(7, 300, grad=False).log_softmax(-1) for _ in range(2)]
    check(
        "jsd.LigerJSDFunction", reference, (logs[0].requires_grad_(), logs[1]), None, beta
    )  # fmt: skip


@pytest.mark.parametrize("reduction", ["batchmean", "mean", "sum", "none"])
def test_tvd(random, reduction):
    def reference(p, q):
        distance = (p - q).abs() / 2
        if reduction == "none":
            return distance
        return distance.sum() / {"batchmean": 7, "mean": 7 * 300, "sum": 1}[reduction]

    p, q = (random(7, 300, grad=False).softmax(-1) for _ in range(2))
    check("tvd.LigerTVDLossFunction", reference, (p.requires_grad_(), q), None, reduction)


@FLOATS
def test_fused_ce_tvd(random, device, dtype):
    def reference(student, teacher, target):
        p, q = student.softmax(-1), teacher.softmax(-1)
        cross = F.cross_entropy(student, target, reduction="none")
        return cross, torch.where(target == -100, 0, (p - q).abs().sum(-1) / 2)

    check(
        "fused_ce_tvd.LigerFusedCETVDFunction",
        reference,
        (random(7, 300), random(7, 300, grad=False), labels(300, 7, device=device, ignored=2)),
        -100,
    )


@FLOATS
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_vocab_parallel_cross_entropy(random, device, smoothing, dtype):
    check(
        "vocab_parallel_cross_entropy.LigerVocabParallelCEFunction",
        lambda x, t: F.cross_entropy(
            x.flatten(0, 1), t.flatten(), reduction="none", label_smoothing=smoothing
        ).view_as(t),
        (random(5, 2, 300), labels(300, 5, 2, device=device)),
        None, -100, smoothing, "pytorch", "global",
    )  # fmt: skip


def test_fused_linear_kl_div(random):
    """In place, too; other dtypes write through `out=` on a GPU, which autograd refuses."""
    target = random(7, 300, grad=False).softmax(-1)
    check(
        "fused_linear_kl_div.LigerFusedLinearKLDivFunction",
        lambda x, w, t: F.kl_div((x @ w.t()).log_softmax(-1), t, reduction="batchmean"),
        (random(7, 32), random(300, 32, scale=0.3), target),
        None, "batchmean",
    )  # fmt: skip


@FLOATS
def test_fused_linear_cross_entropy(random, device, dtype):
    """The forward without the gradients that it else computes in the same pass."""
    from liger_kernel.ops import fused_linear_cross_entropy as fused

    def ours(x, w, t, b):
        with differentiated_launches():
            return fused.fused_linear_cross_entropy_forward(
                x, w, t, bias=b, compute_gradients=False
            )[0]

    assert_as_good_as_theirs(
        ours,
        lambda *args: fused.LigerFusedLinearCrossEntropyFunction.apply(*args)[0],
        lambda x, w, t, b: F.cross_entropy(x @ w.t() + b, t),
        (random(40, 32), random(300, 32, scale=0.3), labels(300, 40, device=device), random(300)),
    )


# --------------------------------------------------------------------------------------------
# Attention and mixtures
# --------------------------------------------------------------------------------------------


def sparsemax(x):
    """Martins and Astudillo: the projection of the rows onto the simplex."""
    ordered = x.sort(-1, descending=True).values
    ranks = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    size = (1 + ranks * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    tau = (ordered.cumsum(-1).gather(-1, size - 1) - 1) / size
    return (x - tau).clamp(min=0)


@FLOATS
def test_sparsemax(random, dtype):
    check("sparsemax.LigerSparsemaxFunction", sparsemax, (random(6, 300),), -1)


@pytest.mark.parametrize("sparse", [False, True])
def test_multi_token_attention(random, device, sparse):
    future = torch.ones(20, 20, dtype=torch.bool, device=device).triu(1)

    def reference(scores, weight, bias):
        scores = scores.masked_fill(future, -1e9)
        attention = sparsemax(scores) if sparse else scores.softmax(-1)
        return F.conv2d(attention, weight, bias, padding=1).masked_fill(future, 0)

    check(
        "multi_token_attention.LigerMultiTokenAttentionFunction",
        reference,
        (random(2, 3, 20, 20), random(4, 3, 3, 3), random(4)),
        1, 1, 1, 1, sparse,
    )  # fmt: skip


@FLOATS
def test_attn_res(random, dtype):
    def reference(v, query, norm):
        alpha = (rms(v) * norm @ query).softmax(0)
        return (alpha[..., None] * v).sum(0)

    check(
        "attn_res.LigerAttnResFunction",
        reference,
        (random(5, 2, 6, 100), random(100, scale=0.1), random(100)),
        1e-6,
    )
