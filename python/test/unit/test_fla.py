"""flash-linear-attention's forward kernels, differentiated, against their hand-written backward."""

import packages
import pytest
import torch
import torch.nn.functional as F
import triton
import triton.language as tl
from triton.backends.autodiff import register_vjp, user_rules
from triton.runtime.autotuner import Autotuner

pytest.importorskip("fla.ops", exc_type=ImportError)

FLOATS = pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
FLOAT32 = torch.float32


@pytest.fixture(autouse=True)
def first_configuration(monkeypatch):
    """Tuning is not what is tested."""
    prune = Autotuner.prune_configs
    monkeypatch.setattr(Autotuner, "prune_configs", lambda self, args: prune(self, args)[:1])


def check(path, *args, **constants):
    """`packages.check` of a function of `fla`."""
    packages.check(f"fla.{path}", *args, **constants)


# --------------------------------------------------------------------------------------------
# Activations
# --------------------------------------------------------------------------------------------

ACTIVATIONS = {
    "SigmoidFunction": (torch.sigmoid, ()),
    "SwishFunction": (F.silu, ()),
    "ELUPlusOneFunction": (lambda x: F.elu(x) + 1, ()),
    "LogSigmoidFunction": (lambda x: F.logsigmoid(x) / 2, (2.0,)),
}


@FLOATS
@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation(random, name, dtype):
    reference, options = ACTIVATIONS[name]
    check(f"modules.activations.ops.{name}", reference, (random(3, 7, 100),), *options)


def power_gate(x, y, power=3.0):
    positive = x.clamp(min=1e-30)
    return torch.where(x > 0, positive ** (power / (positive.sqrt() + 1)), x) * x.sigmoid() * y


GATES = {
    "SwiGLUFunction": (lambda x, y: F.silu(x) * y, ()),
    "SigmoidGLUFunction": (lambda x, y: x.sigmoid() * y, ()),
    "PowGLUFunction": (power_gate, (3.0,)),
}


@FLOATS
@pytest.mark.parametrize("name", GATES)
def test_gate(random, name, dtype):
    reference, options = GATES[name]
    inputs = (random(3, 7, 100), random(3, 7, 100))
    check(f"modules.activations.ops.{name}", reference, inputs, *options)


# --------------------------------------------------------------------------------------------
# Normalizations
# --------------------------------------------------------------------------------------------


def rms(x, eps=1e-5):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


@FLOATS
@pytest.mark.parametrize("width", [200, 1200])
def test_layer_norm(random, width, dtype):
    """A kernel for short rows, another one for long ones."""
    check(
        "modules.norm.layernorm.LayerNormFunction",
        lambda x, w, b: F.layer_norm(x, (width,), w, b),
        (random(3, 7, width), random(width), random(width)),
    )


@FLOATS
def test_rms_norm_with_residual(random, dtype):
    check(
        "modules.norm.layernorm.LayerNormFunction",
        lambda x, w, _, r: (rms(x + r) * w, x + r),
        (random(3, 7, 200), random(200), None, random(3, 7, 200)),
        1e-5, True, False, True,
    )  # fmt: skip


@FLOATS
def test_group_norm(random, dtype):
    check(
        "modules.norm.layernorm.LayerNormFunction",
        lambda x, w, b: F.group_norm(x.flatten(0, 1), 4, w, b).view_as(x),
        (random(3, 7, 200), random(200), random(200)),
        None, 1e-5, False, False, False, 4,
    )  # fmt: skip


@FLOATS
@pytest.mark.parametrize("width", [64, 1000])
def test_l2_norm(random, width, dtype):
    check(
        "modules.norm.l2norm.L2NormFunction",
        lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6),
        (random(2, 9, 3, width),),
    )


@FLOATS
@pytest.mark.parametrize("activation", ["swish", "sigmoid"])
def test_gated_layer_norm(random, activation, dtype):
    gate = F.silu if activation == "swish" else torch.sigmoid
    check(
        "modules.norm.fused_norm_gate.LayerNormGatedFunction",
        lambda x, g, w, b: F.layer_norm(x, (200,), w, b, 1e-6) * gate(g),
        (random(3, 7, 200), random(3, 7, 200), random(200), random(200)),
        activation,
    )


@FLOATS
@pytest.mark.parametrize("before", [True, False])
def test_grouped_norm_with_gate(random, before, dtype):
    def reference(x, w, _, z):
        x = x if before else x * F.silu(z)
        y = rms(x.unflatten(-1, (2, 64)), 1e-6).flatten(-2) * w
        return y * F.silu(z) if before else y

    check(
        "modules.norm.layernorm_gated.LayerNormFn",
        reference,
        (random(3, 7, 128), random(128), None, random(3, 7, 128)),
        1e-6, 64, before, True,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Sequences
# --------------------------------------------------------------------------------------------


@FLOATS
@pytest.mark.parametrize("interleaved", [False, True])
def test_rotary(random, interleaved, dtype):
    def reference(x, cos, sin):
        cos, sin = cos[:, None], sin[:, None]
        if interleaved:
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    angles = [random(40, 16, grad=False) for _ in range(2)]
    check(
        "modules.rotary.ops.RotaryEmbeddingFunction",
        reference,
        (random(2, 40, 3, 32), *angles),
        interleaved,
    )


@FLOATS
def test_token_shift(random, dtype):
    check(
        "modules.token_shift.TokenShift",
        lambda x: F.pad(x, (0, 0, 1, -1)) - x,
        (random(2, 30, 100),),
    )


@FLOATS
@pytest.mark.parametrize("activation", [None, "silu"])
def test_causal_convolution(random, activation, dtype):
    def reference(x, w, b, residual):
        padded = F.pad(x.transpose(1, 2), (3, 0))
        y = F.conv1d(padded, w[:, None], b, groups=len(w)).transpose(1, 2)
        return (F.silu(y) if activation else y) + residual

    check(
        "modules.causal_conv1d.ops.CausalConv1dFunction",
        reference,
        (random(2, 70, 96), random(96, 4), random(96), random(2, 70, 96)),
        None, False, activation,
    )  # fmt: skip


@FLOATS
def test_mean_pooling(random, dtype):
    def reference(x):
        parts = x.split(32, 1)
        return torch.stack([part.mean(1) for part in parts], 1)

    check("ops.utils.pooling.MeanPoolingFunction", reference, (random(2, 70, 3, 64),), 32)


@FLOATS
def test_cross_entropy(random, device, dtype):
    target = torch.randint(500, (9,), device=device)
    target[3] = -100
    check(
        "modules.fused_cross_entropy.ops.FusedCrossEntropyFunction",
        lambda x, t: F.cross_entropy(x * 0.5, t, reduction="none", label_smoothing=0.1),
        (random(9, 500), target),
        0.1, 0.5,
    )  # fmt: skip


@FLOATS
def test_rwkv7_mix(random, dtype):
    check(
        "ops.rwkv7.fused_addcmul.Rwkv7FusedAddcmul",
        lambda x, delta, *mixes: tuple(x + delta * mix for mix in mixes),
        (random(2, 30, 100), random(2, 30, 100), *(random(1, 1, 100) for _ in range(6))),
    )


@FLOATS
def test_rwkv7_key_update(random, dtype):
    check(
        "ops.rwkv7.fused_k_update.KUpdateFunction",
        lambda k, a, ka: k + k * (a - 1) * ka,
        (random(2, 30, 100), random(2, 30, 100), random(100)),
    )


@triton.jit
def softplus_vjp(dy, x, y):
    return dy * tl.sigmoid(x)


@FLOATS
def test_kda_gate(device, random, dtype, monkeypatch):
    from fla.ops.utils.softplus import s_softplus

    # On machines with a GPU by NVIDIA softplus is several instructions of assembly.
    if device == "cpu" and torch.cuda.is_available():
        pytest.skip("fla chose assembly for the GPU, which the CPU cannot run")
    monkeypatch.setattr(user_rules, "_rules", dict(user_rules._rules))
    register_vjp(softplus_vjp, asm=s_softplus.value)
    check(
        "ops.kda.gate.KDAGateFunction",
        lambda g, a, b: -a.exp()[:, None] * F.softplus(g + b.view(3, 64)),
        (random(2, 30, 3, 64), random(3, dtype=FLOAT32), random(3 * 64, dtype=FLOAT32)),
    )


# --------------------------------------------------------------------------------------------
# Recurrences
# --------------------------------------------------------------------------------------------


def recurrence(q, k, v, step, state=None):
    """o_t = q_t · h_t for h_t = step(h, t) + k_t ⊗ v_t, over heads of (B, T, H, K) tensors."""
    b, t, h, d = q.shape
    if state is None:
        state = q.new_zeros(b, h, d, v.shape[-1])
    outputs = []
    for i in range(t):
        state = step(state, i)
        if k is not None:
            state = state + k[:, i, ..., None] * v[:, i, :, None]
        outputs.append((q[:, i, ..., None] * state).sum(-2))
    return torch.stack(outputs, 1), state


def heads(random, *, keys=16, values=32, steps=20):
    return (
        random(2, steps, 3, keys),
        random(2, steps, 3, keys, scale=0.3),
        random(2, steps, 3, values),
    )


def decay(random, *shape):
    """Logarithms of factors between 0 and 1."""
    value = F.logsigmoid(random(*shape, grad=False, dtype=FLOAT32))
    return value.requires_grad_()


@FLOATS
@pytest.mark.parametrize("gate", ["none", "heads", "keys", "values"])
def test_fused_recurrent(random, gate, dtype):
    q, k, v = heads(random)
    g = gk = gv = None
    if gate == "heads":
        g = decay(random, 2, 20, 3)
    elif gate == "keys":
        gk = decay(random, 2, 20, 3, 16)
    elif gate == "values":
        gv = decay(random, 2, 20, 3, 32)

    def reference(q, k, v, g, _, gk, gv, scale, state):
        def step(h, i):
            if g is not None:
                return h * g[:, i, :, None, None].exp()
            if gk is not None:
                return h * gk[:, i, ..., None].exp()
            return h if gv is None else h * gv[:, i, :, None].exp()

        return recurrence(q * scale, k, v, step, state)

    state = random(2, 3, 16, 32, dtype=FLOAT32)
    check(
        "ops.common.fused_recurrent.FusedRecurrentFunction",
        reference,
        (q, k, v, g, None, gk, gv, 0.25, state),
        True,
    )


@FLOATS
def test_fused_recurrent_delta_rule(random, dtype):
    q, k, v = heads(random)
    beta = random(2, 20, 3, grad=False).sigmoid().requires_grad_()

    def reference(q, k, v, beta, scale, state):
        def step(h, i):
            old = (k[:, i, ..., None] * h).sum(-2)
            new = (v[:, i] - old) * beta[:, i, :, None]
            return h + k[:, i, ..., None] * new[..., None, :]

        return recurrence(q * scale, None, v, step, state)

    check(
        "ops.delta_rule.fused_recurrent.FusedRecurrentFunction",
        reference,
        (q, k, v, beta, 0.25, random(2, 3, 16, 32, dtype=FLOAT32)),
        True,
    )


@FLOATS
def test_fused_recurrent_iplr(random, dtype):
    q, k, v = heads(random)
    a, b = random(2, 20, 3, 16, scale=0.3), random(2, 20, 3, 16, scale=0.3)

    def reference(q, k, v, a, b):
        def step(h, i):
            return h + b[:, i, ..., None] * (a[:, i, ..., None] * h).sum(-2, keepdim=True)

        return recurrence(q * 0.25, k, v, step)[0]

    check(
        "ops.generalized_delta_rule.iplr.fused_recurrent.FusedRecurrentIPLRDeltaRuleFunction",
        reference,
        (q, k, v, a, b),
        0.25,
    )


@FLOATS
def test_fused_recurrent_hgrn(random, dtype):
    def reference(x, g, state):
        outputs = []
        for i in range(x.shape[1]):
            state = g[:, i].exp() * state + x[:, i]
            outputs.append(state)
        return torch.stack(outputs, 1), state

    g = F.logsigmoid(random(2, 30, 96, grad=False)).requires_grad_()
    check(
        "ops.hgrn.fused_recurrent.FusedRecurrentHGRNFunction",
        reference,
        (random(2, 30, 96), g, random(2, 96, dtype=FLOAT32)),
        True,
    )


@FLOATS
def test_fused_recurrent_rwkv6(random, dtype):
    q, k, v = heads(random)
    w = decay(random, 2, 20, 3, 16)

    def reference(q, k, v, w, u, scale, state):
        outputs = []
        for i in range(q.shape[1]):
            new = k[:, i, ..., None] * v[:, i, :, None]
            outputs.append(((state + u[..., None] * new) * q[:, i, ..., None]).sum(-2) * scale)
            state = state * w[:, i, ..., None].exp() + new
        return torch.stack(outputs, 1), state

    check(
        "ops.rwkv6.fused_recurrent.FusedRecurrentRWKV6Function",
        reference,
        (q, k, v, w, random(3, 16), 0.25, random(2, 3, 16, 32, dtype=FLOAT32)),
        True,
    )


# --------------------------------------------------------------------------------------------
# Chunks and attention
# --------------------------------------------------------------------------------------------


# fla may refuse its own backward here, whatever the device: Triton would miscompile it.
HOPPER = torch.cuda.is_available() and torch.cuda.get_device_capability()[0] == 9


@pytest.fixture
def has_measure(device, dtype):
    """Skips where products are rounded to tf32, and no other backward says how near is near."""
    if HOPPER and device == "cuda" and dtype == FLOAT32:
        pytest.skip("fla refuses its own backward on Hopper")


@FLOATS
@pytest.mark.usefixtures("has_measure")
def test_chunk_simple_gla(random, dtype):
    q, k, v = heads(random, keys=32, steps=100)
    g = decay(random, 2, 100, 3)

    def reference(q, k, v, g, _, scale, state):
        return recurrence(q * scale, k, v, lambda h, i: h * g[:, i, :, None, None].exp(), state)

    check(
        "ops.simple_gla.chunk.ChunkSimpleGLAFunction",
        reference,
        (q, k, v, g, None, 0.25, random(2, 3, 32, 32, dtype=FLOAT32)),
        # PyTorch goes step by step; in a chunk, 64 decays are added up.
        True, False, None, None, refused=HOPPER, roundings=64 if HOPPER else 8,
    )  # fmt: skip


@FLOATS
@pytest.mark.usefixtures("has_measure")
def test_chunk_gla(random, dtype):
    q, k, v = heads(random, keys=32, steps=100)
    g = decay(random, 2, 100, 3, 32)

    def reference(q, k, v, g, scale, state):
        return recurrence(q * scale, k, v, lambda h, i: h * g[:, i, ..., None].exp(), state)

    check(
        "ops.gla.chunk.ChunkGLAFunction",
        reference,
        (q, k, v, g, 0.25, random(2, 3, 32, 32, dtype=FLOAT32)),
        True, False, None, None,
    )  # fmt: skip


@FLOATS
def test_parallel_simple_gla(random, dtype):
    q, k, v = heads(random, keys=32, steps=140)
    g = decay(random, 2, 140, 3)

    def reference(q, k, v, g, scale):
        return recurrence(q * scale, k, v, lambda h, i: h * g[:, i, :, None, None].exp())[0]

    check(
        "ops.simple_gla.parallel.ParallelSimpleGLAFunction",
        reference,
        (q, k, v, g, 0.25),
        False, None, None,
    )  # fmt: skip


@FLOATS
def test_parallel_based(random, dtype):
    """Attention by the Taylor series of exp."""

    def reference(q, k, v, scale):
        scores = q * scale @ k.transpose(-2, -1)
        weights = (1 + scores + scores.square() / 2).tril()
        return weights @ v, weights.sum(-1)

    check(
        "ops.based.parallel.ParallelBasedFunction",
        reference,
        (random(2, 3, 150, 16), random(2, 3, 150, 16), random(2, 3, 150, 32), 0.25),
    )


@FLOATS
@pytest.mark.parametrize("window", [None, 20])
def test_parallel_attention(random, window, dtype):
    def reference(q, k, v):
        q, k, v = (x.transpose(1, 2) for x in (q, k, v))
        scores = q @ k.transpose(-2, -1) / 4
        distance = torch.arange(150, device=q.device)
        distance = distance[:, None] - distance
        visible = (distance >= 0) & (distance < (window or 150))
        return (scores.masked_fill(~visible, -torch.inf).softmax(-1) @ v).transpose(1, 2)

    check(
        "ops.attn.parallel.ParallelAttentionFunction",
        reference,
        (random(2, 150, 4, 16), random(2, 150, 4, 16), random(2, 150, 4, 32)),
        None, None, 0.25, window, None,
    )  # fmt: skip


@FLOATS
def test_attention_residuals(random, device, dtype):
    if device == "cpu":
        pytest.skip("the function insists on a GPU")

    def reference(query, w, _, eps, scale, weights, level, *residuals):
        v = torch.stack(residuals)
        return ((rms(v, 1e-6) * w @ query).softmax(0)[..., None] * v).sum(0)

    check(
        "ops.attnres.fused.FusedAttnresFunction",
        reference,
        (
            random(128, scale=0.1),
            random(128),
            None, 1e-6, 1.0, False, 0,
            *(random(2, 30, 128) for _ in range(3)),
        ),
    )  # fmt: skip
