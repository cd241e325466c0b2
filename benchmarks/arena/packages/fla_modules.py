"""flash-linear-attention: what its layers are made of, `fla.modules`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..case import F32, Case, applied, attribute, called

PACKAGES = ("flash-linear-attention", "fla-core")
MODULES = ("fla",)
DIMENSIONS = {
    "small": {
        **{"batch": 2, "time": 70, "width": 200, "long": 1200, "channels": 96, "vocab": 500},
        **{"rows": 9, "heads": 3, "head": 32, "groups": 4, "group": 64, "inner": 48},
    },
    "users": {
        **{"batch": 4, "time": 2048, "width": 2048, "long": 4096, "channels": 2048},
        **{"vocab": 32000, "rows": 2048, "heads": 16, "head": 64, "groups": 16, "group": 128},
        "inner": 2048,
    },
}
EXCLUDED = {
    "layer_norm_linear_quant": "not a derivative: its backward passes through the rounding",
    "causal_conv1d_update": "for decoding: it has no backward",
    "causal_conv1d, CUDA": "not Triton",
    "causal_conv1d_cp, token_shift_cp": "for several GPUs",
    "fused_linear_cross_entropy, fused_kl_div": (
        "their forward makes the gradients, in kernels that overwrite the logits, chunk by chunk"
    ),
    "l2warp": "no kernel, and not a derivative: its forward returns another function's value",
    "GeLUFunction": "PyTorch, no kernel",
}


def case(name, family, path, inputs, reference=None, options=(), **more) -> Case:
    """A case of the Function at a path below `fla.modules`."""
    return Case(name, family, applied(f"fla.modules.{path}", *options), inputs, reference, **more)


def rms(x, eps=1e-5):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


# --------------------------------------------------------------------------------------------
# Activations
# --------------------------------------------------------------------------------------------


def power_gate(x, y, power=3.0):
    positive = x.clamp(min=1e-30)
    return torch.where(x > 0, positive ** (power / (positive.sqrt() + 1)), x) * x.sigmoid() * y


def activations():
    family, path = "elementwise", "activations.ops."

    def one(m):
        return {"x": m(m.batch, m.time, m.width)}

    def two(m):
        return {**one(m), "y": m(m.batch, m.time, m.width)}

    def linear(m):
        return {
            **two(m),
            "w": m(m.inner, m.width, scale=m.width**-0.5),
            "b": m(m.inner),
        }

    alone = {
        "SigmoidFunction": (torch.sigmoid, ()),
        "SwishFunction": (F.silu, ()),
        "ELUPlusOneFunction": (lambda x: F.elu(x) + 1, ()),
        "LogSigmoidFunction": (lambda x: F.logsigmoid(x) / 2, (2.0,)),
        "SquaredReLUFunction": (lambda x: F.relu(x) ** 2, ()),
        "FastGeLUFunction": (lambda x: F.gelu(x, approximate="tanh"), ()),
    }
    for name, (reference, options) in alone.items():
        yield case(name, family, path + name, one, reference, options)
    gates = {
        "SwiGLUFunction": (lambda x, y: F.silu(x) * y, ()),
        "SigmoidGLUFunction": (lambda x, y: x.sigmoid() * y, ()),
        "PowGLUFunction": (power_gate, (3.0,)),
    }
    for name, (reference, options) in gates.items():
        yield case(name, family, path + name, two, reference, options)
        yield case(
            name.replace("Function", "LinearFunction"), family,
            path + name.replace("Function", "LinearFunction"), linear,
            lambda x, y, w, b, gate=reference: F.linear(gate(x, y), w, b), options,
        )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Normalizations
# --------------------------------------------------------------------------------------------


def norms():
    family, layer = "norms", "norm.layernorm.LayerNormFunction"

    def rows(m, width):
        return {"x": m(m.batch, m.time, width), "w": m(width), "b": m(width)}

    for name, axis in (("layer_norm", "width"), ("layer_norm_long", "long")):
        # A kernel for short rows, another one for long ones.
        yield case(
            name, family, layer, lambda m, axis=axis: rows(m, getattr(m, axis)),
            lambda x, w, b: F.layer_norm(x, w.shape, w, b),
        )  # fmt: skip
    yield case(
        "rms_norm", family, layer, lambda m: {**rows(m, m.width), "b": None},
        lambda x, w, _: rms(x) * w, (None, 1e-5, False, False, True),
    )  # fmt: skip
    yield case(
        "rms_norm_residual", family, layer,
        lambda m: {**rows(m, m.width), "b": None, "r": m(m.batch, m.time, m.width)},
        lambda x, w, _, r: (rms(x + r) * w, x + r), (1e-5, True, False, True),
    )  # fmt: skip
    yield case(
        "layer_norm_residual", family, layer,
        lambda m: {**rows(m, m.width), "r": m(m.batch, m.time, m.width)},
        lambda x, w, b, r: (F.layer_norm(x + r, w.shape, w, b), x + r), (1e-5, True),
    )  # fmt: skip
    yield Case(
        "group_norm", family,
        called("fla.modules.norm.layernorm.group_norm", num_groups=4),
        lambda m: {
            "x": m(m.batch, m.time, m.width), "weight": m(m.width), "bias": m(m.width)
        },
        lambda x, w, b: F.group_norm(x.flatten(0, 1), 4, w, b).view_as(x),
    )  # fmt: skip
    yield case(
        "layer_norm_linear", family, "norm.layernorm.LayerNormLinearFunction",
        lambda m: {
            **rows(m, m.width),
            "lw": m(m.inner, m.width, scale=m.width**-0.5),
            "lb": m(m.inner),
        },
        lambda x, w, b, lw, lb: F.linear(F.layer_norm(x, w.shape, w, b), lw, lb),
    )  # fmt: skip
    for name, shape in (
        ("l2_norm", lambda m: (m.batch, m.time, m.heads, m.head)),
        ("l2_norm_long", lambda m: (m.batch, m.time, m.long)),
    ):
        yield case(
            name, family, "norm.l2norm.L2NormFunction",
            lambda m, shape=shape: {"x": m(*shape(m))},
            lambda x: x * torch.rsqrt(x.square().sum(-1, keepdim=True) + 1e-6),
        )  # fmt: skip
    yield from gated_norms(family)


def gated_norms(family):
    """A norm, and a gate before or after it."""
    path = "norm.fused_norm_gate.LayerNormGatedFunction"

    def gated(m, width=None):
        width = width or m.width
        return {
            "x": m(m.batch, m.time, width),
            "g": m(m.batch, m.time, width),
            "w": m(width),
            "b": m(width),
        }

    for activation, gate in (("swish", F.silu), ("sigmoid", torch.sigmoid)):
        yield case(
            f"layer_norm_gated_{activation}", family, path, gated,
            lambda x, g, w, b, gate=gate: F.layer_norm(x, w.shape, w, b, 1e-6) * gate(g),
            (activation,),
        )  # fmt: skip
    without_bias = lambda m, width=None: {**gated(m, width), "b": None}  # noqa: E731
    for name, width in (("rms_norm_gated", "width"), ("rms_norm_gated_long", "long")):
        yield case(
            name, family, path, lambda m, width=width: without_bias(m, getattr(m, width)),
            lambda x, g, w, _: rms(x, 1e-6) * w * F.silu(g),
            ("swish", None, False, False, 1e-6, True),
        )  # fmt: skip
    yield Case(
        "rms_norm_gated_residual", family,
        called(
            "fla.modules.norm.fused_norm_gate.rms_norm_gated",
            bias=None, activation="sigmoid", prenorm=True,
        ),
        lambda m: {
            "x": m(m.batch, m.time, m.width),
            "g": m(m.batch, m.time, m.width),
            "weight": m(m.width),
            "residual": m(m.batch, m.time, m.width),
        },
        lambda x, g, w, r: (rms(x + r, 1e-6) * w * g.sigmoid(), x + r),
    )  # fmt: skip
    yield Case(
        "rms_norm_swish_gate_linear", family,
        called(
            "fla.modules.norm.fused_norm_gate.rms_norm_swish_gate_linear",
            norm_bias=None, linear_bias=None,
        ),
        lambda m: {
            "x": m(m.batch, m.time, m.width),
            "g": m(m.batch, m.time, m.width),
            "norm_weight": m(m.width),
            "linear_weight": m(m.inner, m.width, scale=m.width**-0.5),
        },
        lambda x, g, w, lw: F.linear(rms(x, 1e-6) * w * F.silu(g), lw),
    )  # fmt: skip

    def by_groups(x, w, _, z, group, before):
        x = x if before else x * F.silu(z)
        y = rms(x.unflatten(-1, (-1, group)), 1e-6).flatten(-2) * w
        return y * F.silu(z) if before else y

    for before in (True, False):
        yield Case(
            f"grouped_norm_gate_{'after' if before else 'before'}", family,
            lambda x, w, b, z, before=before: attribute(
                "fla.modules.norm.layernorm_gated.LayerNormFn"
            ).apply(x, w, b, z, 1e-6, len(w) // 2, before, True),
            lambda m: {
                "x": m(m.batch, m.time, 2 * m.group),
                "w": m(2 * m.group),
                "b": None,
                "z": m(m.batch, m.time, 2 * m.group),
            },
            lambda x, w, _, z, before=before: by_groups(x, w, _, z, len(w) // 2, before),
        )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Sequences
# --------------------------------------------------------------------------------------------


def sequences():
    family = "sequences"

    def angles(m):
        return {"cos": m.normal(m.time, m.head // 2), "sin": m.normal(m.time, m.head // 2)}

    def turned(x, cos, sin, interleaved):
        cos, sin = cos[:, None], sin[:, None]
        if interleaved:
            a, b = x[..., ::2], x[..., 1::2]
            return torch.stack((a * cos - b * sin, b * cos + a * sin), -1).flatten(-2)
        a, b = x.chunk(2, -1)
        return torch.cat((a * cos - b * sin, b * cos + a * sin), -1)

    for interleaved in (False, True):
        yield case(
            "rotary" + ("_interleaved" if interleaved else ""), family,
            "rotary.ops.RotaryEmbeddingFunction",
            lambda m: {"x": m(m.batch, m.time, m.heads, m.head), **angles(m)},
            lambda *inputs, interleaved=interleaved: turned(*inputs, interleaved), (interleaved,),
        )  # fmt: skip
    yield case(
        "token_shift", family, "token_shift.TokenShift",
        lambda m: {"x": m(m.batch, m.time, m.channels)},
        lambda x: F.pad(x, (0, 0, 1, -1)) - x,
    )  # fmt: skip

    def shifted(x, starts):
        before = F.pad(x, (0, 0, 1, -1))
        first = torch.zeros(x.shape[1], 1, dtype=torch.bool, device=x.device)
        first[starts[:-1].long()] = True
        return before.masked_fill(first, 0.0) - x

    yield Case(
        "token_shift_varlen", family, called("fla.modules.token_shift.token_shift"),
        lambda m: {
            "x": m(1, m.batch * m.time, m.channels), "cu_seqlens": m.starts(m.batch * m.time)
        },
        shifted,
    )  # fmt: skip
    convolution = "causal_conv1d.ops.CausalConv1dFunction"
    for activation in (None, "silu"):
        yield case(
            f"causal_conv1d_{activation or 'linear'}", family, convolution,
            lambda m: {
                "x": m(m.batch, m.time, m.channels),
                "w": m(m.channels, 4),
                "b": m(m.channels),
                "residual": m(m.batch, m.time, m.channels),
            },
            lambda *inputs, activation=activation: convolved(*inputs, activation),
            (None, False, activation),
        )  # fmt: skip
    yield Case(
        "causal_conv1d_states", family,
        called(
            "fla.modules.causal_conv1d.ops.causal_conv1d",
            activation="silu", output_final_state=True,
        ),
        lambda m: {
            "x": m(m.batch, m.time, m.channels),
            "weight": m(m.channels, 4),
            "bias": m(m.channels),
            "initial_state": m(m.batch, m.channels, 4),
        },
        lambda x, w, b, state: (
            convolved(x, w, b, None, "silu", state),
            torch.cat((state, x.transpose(1, 2)), -1)[..., -4:],
        ),
    )  # fmt: skip
    yield Case(
        "causal_conv1d_varlen", family, called("fla.modules.causal_conv1d.ops.causal_conv1d"),
        lambda m: {
            "x": m(1, m.batch * m.time, m.channels),
            "weight": m(m.channels, 4),
            "cu_seqlens": m.starts(m.batch * m.time),
        },
        lambda x, w, starts: torch.cat(
            [
                convolved(x[:, begin:end], w, None, None, None)
                for begin, end in zip(starts.tolist(), starts.tolist()[1:])  # noqa: B905
            ],
            1,
        ),
    )  # fmt: skip


def convolved(x, w, b, residual, activation, state=None):
    """A causal convolution along time, for each channel."""
    x = x.transpose(1, 2)
    padded = F.pad(x, (3, 0)) if state is None else torch.cat((state[..., 1:], x), -1)
    y = F.conv1d(padded, w[:, None], b, groups=len(w)).transpose(1, 2)
    y = F.silu(y) if activation else y
    return y if residual is None else y + residual


# --------------------------------------------------------------------------------------------
# Losses
# --------------------------------------------------------------------------------------------


def losses():
    family, path = "losses", "fused_cross_entropy.ops.FusedCrossEntropyFunction"

    def logits(m):
        return {"x": m(m.rows, m.vocab), "t": m.indices(m.vocab, m.rows, ignored=3)}

    yield case(
        "fused_cross_entropy", family, path, logits,
        lambda x, t: F.cross_entropy(x, t, reduction="none"), whole=True,
    )  # fmt: skip
    yield case(
        "fused_cross_entropy_smooth", family, path, logits,
        lambda x, t: F.cross_entropy(x * 0.5, t, reduction="none", label_smoothing=0.1),
        (0.1, 0.5), whole=True,
    )  # fmt: skip

    def policy(m):
        time = m.rows // 3
        likely = -torch.tensor(float(m.vocab), device=m.device).log() - 0.5
        return {
            "logits": m(3, time + 1, m.vocab),
            "ref_logp": likely + m.normal(3, time, scale=0.3, dtype=F32),
            "input_ids": m.indices(m.vocab, 3, time + 5),
            "advantages": m.normal(3, dtype=F32),
        }

    yield Case(
        "fused_grpo_loss", family,
        called("fla.modules.grpo.fused_grpo_loss", beta=0.1), policy,
    )  # fmt: skip


def cases() -> list[Case]:
    """Every differentiable wrapper of `fla.modules`."""
    return [*activations(), *norms(), *sequences(), *losses()]
