"""flash-linear-attention: attention to pairs, and parts of layers, `fla.ops`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..case import F32, Case, applied, attribute, called, packed
from .fla_recurrences import HALF, MODULES, PACKAGES, beta, case, heads, per_head, starts

DIMENSIONS = {
    "small": {
        **{"batch": 2, "time": 100, "heads": 3, "keys": 32, "values": 32, "few": 16},
        **{"width": 96, "block": 16},
    },
    "users": {
        **{"batch": 4, "time": 2048, "heads": 16, "keys": 64, "values": 64, "few": 16},
        **{"width": 2048, "block": 64},
    },
}
EXCLUDED = {
    "deltaformer_attn, parallel_moba": "they call flash-attn; deltaformer's own part is a case",
    "parallel_wall_attn_decode, attn_decoding": "for decoding: they have no backward",
    "dsa": "PyTorch, no kernel",
    "backends": "not Triton, or for other hardware",
}
__all__ = ["DIMENSIONS", "EXCLUDED", "MODULES", "PACKAGES", "cases"]


# --------------------------------------------------------------------------------------------
# References
# --------------------------------------------------------------------------------------------


def taylor(q, k, v):
    """Attention by the Taylor series of exp, with its sums of weights."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q * q.shape[-1] ** -0.5 @ k.transpose(-2, -1)
    weights = (1 + scores + scores.square() / 2).tril()
    return (weights @ v / (weights.sum(-1, keepdim=True) + 1e-6)).transpose(1, 2)


def attention(q, k, v, window=None, g=None, sink=None):
    """Causal softmax attention; `g` are logarithms of decays, `sink` logits without values."""
    q, k, v = (x.transpose(1, 2) for x in (q, k, v))
    scores = q @ k.transpose(-2, -1) * q.shape[-1] ** -0.5
    if g is not None:
        total = g.transpose(1, 2).cumsum(-1)
        scores = scores + total[..., :, None] - total[..., None, :]
    place = torch.arange(q.shape[-2], device=q.device)
    distance = place[:, None] - place
    visible = (distance >= 0) & (distance < (window or len(place)))
    scores = scores.masked_fill(~visible, -torch.inf)
    if sink is None:
        return (scores.softmax(-1) @ v).transpose(1, 2)
    extra = sink[None, :, None, None].expand(*scores.shape[:-1], 1)
    weights = torch.cat((scores, extra), -1).softmax(-1)[..., :-1]
    return (weights @ v).transpose(1, 2)


# --------------------------------------------------------------------------------------------
# Cases
# --------------------------------------------------------------------------------------------


def softmaxes(family="attention"):
    """Attention that looks at all pairs, or chosen ones."""
    attn = "attn.parallel_attn"
    for window in (None, 20):
        yield case(
            "parallel_attn" + ("_window" if window else ""), family, attn, heads,
            lambda q, k, v, window=window: attention(q, k, v, window),
            options={"window_size": window},
        )  # fmt: skip
    yield case(
        "parallel_attn_sink", family, attn,
        lambda m: {**heads(m), "sink_bias": m.full(m.heads)},
        lambda q, k, v, sink: attention(q, k, v, sink=sink),
    )  # fmt: skip
    yield case(
        "parallel_attn_varlen", family, attn,
        lambda m: {**packed(heads(m)), "cu_seqlens": starts(m)},
    )  # fmt: skip
    yield case(
        "parallel_forgetting_attn", family, "forgetting_attn",
        lambda m: {**heads(m), "g": per_head(m)},
        lambda q, k, v, g: attention(q, k, v, g=g),
    )  # fmt: skip
    yield case(
        "parallel_forgetting_attn_window", family, "forgetting_attn.parallel_forgetting_attn",
        lambda m: {**heads(m), "g": per_head(m)},
        lambda q, k, v, g: attention(q, k, v, 20, g), options={"window_size": 20},
    )  # fmt: skip
    yield case(
        "parallel_wall_attn", family, "wall_attn",
        lambda m: {
            **heads(m),
            "g": (m.decay(m.batch, m.time, m.heads, m.keys).detach() * 0.1).requires_grad_(),
        },
    )  # fmt: skip
    yield case(
        "parallel_parallax", family, "parallax",
        lambda m: {**heads(m), "r": m(m.batch, m.time, m.heads, m.keys, scale=0.1)},
        dtypes=HALF,
    )  # fmt: skip
    yield case(
        "parallel_path_attn", family, "path_attn",
        lambda m: {
            **heads(m),
            "w": m.unit(m.batch, m.time, m.heads, m.keys, dtype=F32),
            "beta": beta(m, F32),
            "g": per_head(m),
        },
        lambda *inputs: attribute("fla.ops.path_attn.naive.naive_path_attn")(
            *inputs, inputs[0].shape[-1] ** -0.5
        ),
        roundings=100,  # a reflection for each position, one after the other
    )  # fmt: skip
    yield case("parallel_stickbreaking_attn", family, "stickbreaking_attn", heads)
    yield Case(
        "deltaformer", family,
        applied("fla.ops.deltaformer.parallel.ParallelDeltaformerFunction", 64, None),
        lambda m: {**heads(m), "beta": beta(m)},
    )  # fmt: skip
    yield from sparse(family)
    for kind in ("fused_chunk", "parallel"):
        yield case(
            f"{kind}_based", family, "based", lambda m: heads(m, keys=m.few), taylor
        )  # fmt: skip
    yield case("parallel_rebased", family, "rebased", lambda m: heads(m, keys=m.few))
    yield Case(
        "fused_attnres", family, called("fla.ops.attnres.fused_attnres"),
        lambda m: {
            "query": m(m.width, scale=0.1),
            "residuals": [m(m.batch, m.time, m.width) for _ in range(4)],
            "rms_weight": m(m.width),
        },
        residual_attention, gpu="its forward asks for CUDA tensors",
    )  # fmt: skip


def residual_attention(query, residuals, weight):
    v = torch.stack(residuals)
    keys = v * torch.rsqrt(v.square().mean(-1, keepdim=True) + 1e-6) * weight
    return ((keys @ query).softmax(0)[..., None] * v).sum(0)


def sparse(family):
    """Sixteen queries share keys and values, of which some blocks are chosen."""

    def grouped(m):
        return {
            "q": m(m.batch, m.time, 16, m.keys),
            "k": m(m.batch, m.time, 1, m.keys),
            "v": m(m.batch, m.time, 1, m.values),
        }

    def chosen(m):
        blocks = torch.arange(m.time, device=m.device) // m.block
        first = torch.zeros_like(blocks)
        before = (blocks - 1).clamp(min=0)
        indices = torch.stack((first, before, blocks), -1)[None, :, None]
        return indices.expand(m.batch, -1, -1, -1).contiguous()

    yield Case(
        "parallel_nsa", family,
        lambda block_size, **inputs: attribute("fla.ops.nsa.parallel_nsa")(
            **inputs, block_counts=3, block_size=len(block_size)
        ),
        lambda m: {
            **grouped(m),
            "g_slc": m.gate(m.batch, m.time, 16),
            "block_indices": chosen(m),
            "block_size": torch.empty(m.block, dtype=torch.bool),
        },
    )  # fmt: skip
    yield Case(
        "parallel_nsa_compression", family,
        lambda block_size, q, k, v: attribute("fla.ops.nsa.compression.parallel_nsa_compression")(
            q, k, v, q.shape[1], len(block_size)
        ),
        lambda m: {
            "q": m(m.batch, m.time, 16, m.keys),
            "k": m(m.batch, -(-m.time // m.block), 1, m.keys),
            "v": m(m.batch, -(-m.time // m.block), 1, m.values),
            "block_size": torch.empty(m.block, dtype=torch.bool),
        },
        # The log-sum-exps are for the choice of blocks, and have no gradient.
        outputs=(0,),
    )  # fmt: skip


def parts(family="gates and parts"):
    """What layers need beside."""
    yield case(
        "mean_pooling", family, "utils.pooling.mean_pooling",
        lambda m: {"x": m(m.batch, m.time, m.heads, m.values)},
        lambda x: torch.stack([part.mean(1) for part in x.split(32, 1)], 1),
        options={"chunk_size": 32},
    )  # fmt: skip
    yield case(
        "sinkhorn", family, "utils.sinkhorn.sinkhorn",
        lambda m: {"logits": m.full(m.batch, m.time, 4, 4)}, options={"num_iters": 20},
        dtypes=(F32,), gpu="its forward asks for CUDA tensors",
    )  # fmt: skip
    yield case(
        "pack_sequence", family, "utils.pack.pack_sequence",
        lambda m: {"x": m(3, m.batch * m.time, m.width), "cu_seqlens": starts(m)},
    )  # fmt: skip
    yield Case(
        "unpack_sequence", family,
        lambda x, cu_seqlens: attribute("fla.ops.utils.pack.unpack_sequence")(
            x, cu_seqlens, desired_shape=(3, x.shape[0], x.shape[1])
        ),
        lambda m: {"x": m(m.batch * m.time, m.width), "cu_seqlens": starts(m)},
    )  # fmt: skip
    yield case(
        "fused_additive_gate", family, "gsa.gate.fused_additive_gate",
        lambda m: {"x": m(m.batch, m.time, m.heads, m.keys)}, additive_gate,
    )  # fmt: skip
    yield case(
        "fused_beta_sigmoid", family, "common.gate.fused_beta_sigmoid",
        lambda m: {"x": m(m.batch, m.time, m.width)}, lambda x: 2 * x.sigmoid(),
        options={"scale": 2.0},
    )  # fmt: skip
    yield case(
        "fused_kda_gate", family, "kda.gate.fused_kda_gate",
        lambda m: {
            "g": m(m.batch, m.time, m.heads, m.keys),
            "A_log": m.full(m.heads),
            "dt_bias": m.full(m.heads * m.keys),
        },
        lambda g, a, b: -a.exp()[:, None] * F.softplus(g + b.view(g.shape[-2:])),
    )  # fmt: skip
    yield case(
        "fused_gdn_gate", family, "gated_delta_rule.gate.fused_gdn_gate",
        lambda m: {
            "g": m(m.batch, m.time, m.heads),
            "A_log": m.full(m.heads),
            "dt_bias": m.full(m.heads),
        },
        lambda g, a, b: -a.exp() * F.softplus(g + b),
    )  # fmt: skip
    yield from rwkv(family)


def additive_gate(x):
    """Cumulative softmax: the share of the newest element, and what the others keep."""
    sums = x.logcumsumexp(1)
    kept = F.pad(sums[:, :-1] - sums[:, 1:], (0, 0, 0, 0, 1, 0))
    return (x - sums).exp(), kept, sums[:, -1:]


def rwkv(family):
    """Parts of RWKV-7."""

    def row(m):
        return m(m.batch, m.time, m.width)

    yield case(
        "fused_addcmul_rwkv7", family, "rwkv7.fused_addcmul.fused_addcmul_rwkv7",
        lambda m: {
            "hidden_states": row(m),
            "delta": row(m),
            **{f"x{name}": m(1, 1, m.width) for name in "rwkvag"},
        },
        lambda x, delta, *mixes: tuple(x + delta * mix for mix in mixes),
    )  # fmt: skip
    yield case(
        "fused_k_rwkv7", family, "rwkv7.fused_k_update.fused_k_rwkv7",
        lambda m: {"k": row(m), "a": row(m), "ka": m(m.width)},
        lambda k, a, ka: k + k * (a - 1) * ka,
    )  # fmt: skip
    yield case(
        "gate_output_correction", family, "rwkv7.gate_output_correction.gate_output_correction",
        lambda m: {
            "o": m(m.batch, m.time, m.heads * m.keys),
            "r": m(m.batch, m.time, m.heads, m.keys),
            "k": m(m.batch, m.time, m.heads, m.keys),
            "r_k": m(m.heads, m.keys),
            "v": m(m.batch, m.time, m.heads, m.keys),
            "g": m(m.batch, m.time, m.heads * m.keys),
        },
        lambda o, r, k, r_k, v, g: (
            o + ((r * k * r_k).sum(-1, keepdim=True) * v).reshape(o.shape)
        ) * g,
    )  # fmt: skip
    yield case(
        "channel_mixing_rwkv7", family, "rwkv7.channel_mixing.channel_mixing_rwkv7",
        lambda m: {
            "x": row(m),
            "x_prev": m(m.batch, m.width),
            "x_k": m(m.width),
            "key_weight": m(m.width, 2 * m.width, scale=m.width**-0.5),
            "value_weight": m(2 * m.width, m.width, scale=m.width**-0.5),
        },
        options={"inplace": False}, outputs=(0,),
    )  # fmt: skip


def cases() -> list[Case]:
    """The other differentiable wrappers of `fla.ops`."""
    return [*softmaxes(), *parts()]
