"""flash-linear-attention: attention and recurrences, `fla.ops`."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from ..case import BF16, F16, F32, Case, applied, attribute, called, packed

PACKAGES = ("flash-linear-attention", "fla-core")
MODULES = ("fla",)
DIMENSIONS = {
    "small": {
        **{"batch": 2, "time": 100, "heads": 3, "keys": 32, "values": 32, "few": 16},
        **{"width": 96, "slots": 32, "block": 16, "levels": 8},
    },
    "users": {
        **{"batch": 4, "time": 2048, "heads": 16, "keys": 64, "values": 64, "few": 16},
        **{"width": 2048, "slots": 64, "block": 64, "levels": 12},
    },
}
EXCLUDED = {
    "fused_chunk_gla, fused_chunk_delta_rule": "withdrawn: they raise",
    "chunk_mesa_net": "not a derivative: its backward is that of the exact solution",
    "deltaformer_attn, parallel_moba": "they call flash-attn; deltaformer's own part is a case",
    "parallel_wall_attn_decode, attn_decoding": "for decoding: they have no backward",
    "cp, intracard_cp": "for several GPUs",
    "dsa, titans": "PyTorch, no kernel",
    "backends": "not Triton, or for other hardware",
}
HALF = (BF16, F16)


def case(name, family, path, inputs, reference=None, *, options=None, **more) -> Case:
    """A case of the function at a path below `fla.ops`, by default the one that has the name."""
    function = called(
        f"fla.ops.{path}" if "." in path else f"fla.ops.{path}.{name}", **options or {}
    )
    return Case(name, family, function, inputs, reference, **more)


# --------------------------------------------------------------------------------------------
# Inputs
# --------------------------------------------------------------------------------------------


def heads(m, keys=None, values=None):
    """Queries, keys and values, by time and head."""
    keys, values = keys or m.keys, values or m.values
    return {
        "q": m(m.batch, m.time, m.heads, keys),
        "k": m(m.batch, m.time, m.heads, keys, scale=0.3),
        "v": m(m.batch, m.time, m.heads, values),
    }


def short(m):
    """The same with keys of length 1, as rules that write along keys want them."""
    return {**heads(m), "k": m.unit(m.batch, m.time, m.heads, m.keys)}


def state(m):
    """What a recurrence begins with."""
    return m.full(m.batch, m.heads, m.keys, m.values)


def per_head(m):
    """A decay for each head."""
    return m.decay(m.batch, m.time, m.heads)


def per_key(m):
    """A decay for each key."""
    return m.decay(m.batch, m.time, m.heads, m.keys)


def beta(m, dtype=None):
    """How much of a value is written."""
    return m.gate(m.batch, m.time, m.heads, dtype=dtype)


# --------------------------------------------------------------------------------------------
# References
# --------------------------------------------------------------------------------------------


def recurrence(q, k, v, step, state=None):
    """o_t = q_t · h_t for h_t = step(h, t) + k_t ⊗ v_t, and the last h."""
    if state is None:
        state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[-1])
    outputs = []
    for i in range(q.shape[1]):
        state = step(state, i)
        if k is not None:
            state = state + k[:, i, ..., None] * v[:, i, :, None]
        outputs.append((q[:, i, ..., None] * state).sum(-2))
    return torch.stack(outputs, 1), state


def linear(q, k, v, state=None):
    """A sum of everything so far."""
    return recurrence(q * q.shape[-1] ** -0.5, k, v, lambda h, i: h, state)


def gated(q, k, v, g, state=None):
    """A decay for each head, or each key."""
    g = g if g.dim() == 4 else g[..., None]
    return recurrence(
        q * q.shape[-1] ** -0.5, k, v, lambda h, i: h * g[:, i, ..., None].exp(), state
    )


def gated_by_value(q, k, v, g):
    return recurrence(q * q.shape[-1] ** -0.5, k, v, lambda h, i: h * g[:, i, :, None].exp())


def delta(q, k, v, beta, state=None):
    """What is written is the difference from what the key finds."""

    def step(h, i):
        new = (v[:, i] - (k[:, i, ..., None] * h).sum(-2)) * beta[:, i, :, None]
        return h + k[:, i, ..., None] * new[..., None, :]

    return recurrence(q * q.shape[-1] ** -0.5, None, v, step, state)


def low_rank(q, k, v, a, b):
    """The identity and a product of two vectors act on the state."""

    def step(h, i):
        return h + b[:, i, ..., None] * (a[:, i, ..., None] * h).sum(-2, keepdim=True)

    return recurrence(q * q.shape[-1] ** -0.5, k, v, step)


def hgrn(x, g, state=None):
    """h_t = exp(g_t) h_{t-1} + x_t."""
    state = torch.zeros_like(x[:, 0]) if state is None else state
    outputs = []
    for i in range(x.shape[1]):
        state = g[:, i].exp() * state + x[:, i]
        outputs.append(state)
    return torch.stack(outputs, 1), state


def rwkv6(q, k, v, w, u, state=None):
    """The newest key and value count by `u`, the others by their decays."""
    state = q.new_zeros(q.shape[0], q.shape[2], q.shape[3], v.shape[-1]) if state is None else state
    outputs = []
    for i in range(q.shape[1]):
        new = k[:, i, ..., None] * v[:, i, :, None]
        outputs.append(((state + u[..., None] * new) * q[:, i, ..., None]).sum(-2))
        state = state * w[:, i, ..., None].exp() + new
    return torch.stack(outputs, 1) * q.shape[-1] ** -0.5, state


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

FINAL = {"output_final_state": True}


def simple(family="linear attention"):
    """Decays that depend on nothing, or on the time."""
    for kind in ("chunk", "fused_chunk", "fused_recurrent"):
        yield case(
            f"{kind}_linear_attn", family, "linear_attn", heads, options={"normalize": False}
        )
        yield case(f"{kind}_retention", family, "retention", heads)
        yield case(
            f"{kind}_simple_gla", family, "simple_gla",
            lambda m: {**heads(m), "g": per_head(m), "initial_state": state(m)}, gated,
            options=FINAL,
        )  # fmt: skip
    yield case(
        "chunk_linear_attn_normalized", family, "linear_attn.chunk_linear_attn",
        lambda m: {**heads(m), "q": m.gate(*heads(m)["q"].shape), "k": m.gate(*heads(m)["k"].shape)},
    )  # fmt: skip
    for kind in ("chunk", "fused_recurrent"):
        yield case(
            f"{kind}_lightning_attn", family, "lightning_attn", heads,
            options={"layer_idx": 1, "num_layers": 8},
        )  # fmt: skip
    yield case("parallel_retention", family, "retention", heads)
    yield case(
        "parallel_simple_gla", family, "simple_gla", lambda m: {**heads(m), "g": per_head(m)},
        lambda *inputs: gated(*inputs)[0],
    )  # fmt: skip
    yield case(
        "chunk_simple_gla_varlen", family, "simple_gla.chunk_simple_gla",
        lambda m: {**packed({**heads(m), "g": per_head(m)}), "cu_seqlens": starts(m)},
    )  # fmt: skip


def starts(m):
    """Where the sequences begin that take the place of a batch."""
    return m.starts(m.batch * m.time, dtype=torch.long)


def gated_linear(family="linear attention"):
    """Decays of each key, value or slot."""
    yield case(
        "chunk_gla", family, "gla",
        lambda m: {**heads(m), "g": per_key(m), "initial_state": state(m)}, gated, options=FINAL,
    )  # fmt: skip
    yield case(
        "chunk_gla_varlen", family, "gla.chunk_gla",
        lambda m: {**packed({**heads(m), "g": per_key(m)}), "cu_seqlens": starts(m)},
    )  # fmt: skip
    yield case(
        "fused_recurrent_gla", family, "gla",
        lambda m: {**heads(m), "gk": per_key(m), "initial_state": state(m)}, gated, options=FINAL,
    )  # fmt: skip
    yield case(
        "fused_recurrent_gla_values", family, "gla.fused_recurrent_gla",
        lambda m: {**heads(m), "gv": m.decay(m.batch, m.time, m.heads, m.values)},
        gated_by_value,
    )  # fmt: skip
    slots = lambda m: {  # noqa: E731
        **heads(m),
        "s": m(m.batch, m.time, m.heads, m.slots),
        "g": m.decay(m.batch, m.time, m.heads, m.slots),
    }
    yield case("chunk_gsa", family, "gsa", slots, options=FINAL)
    yield case("fused_recurrent_gsa", family, "gsa", slots, options=FINAL)
    yield case(
        "chunk_abc", family, "abc",
        lambda m: {**heads(m), "s": m(m.batch, m.time, m.heads, m.slots)}, options=FINAL,
    )  # fmt: skip
    yield case(
        "chunk_lightnet", family, "lightnet", lambda m: {**heads(m), "k": m(*heads(m)["k"].shape)}
    )  # fmt: skip
    for kind in ("chunk", "fused_recurrent"):
        yield case(
            f"{kind}_rwkv6", family, "rwkv6",
            lambda m: {
                **{("r" if n == "q" else n): x for n, x in heads(m).items()},
                "w": per_key(m),
                "u": m.full(m.heads, m.keys),
                "initial_state": state(m),
            },
            rwkv6, options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_hgrn", family, "hgrn.chunk.chunk_hgrn" if kind == "chunk" else "hgrn",
            lambda m: {
                "x": m(m.batch, m.time, m.width),
                "g": m.decay(m.batch, m.time, m.width, dtype=m.dtype),
                "initial_state": m.full(m.batch, m.width),
            },
            hgrn, options=FINAL,
        )  # fmt: skip
    yield Case(
        "fused_recurrent_rwkv4", family,
        called("fla.ops.rwkv4.fused_recurrent_rwkv4"),
        lambda m: {
            "w": m.full(m.width),
            "u": m.full(m.width),
            "k": m.full(m.batch, m.time, m.width),
            "v": m.full(m.batch, m.time, m.width),
            "state": m.full(m.batch, 3, 1, m.width),
        },
        dtypes=(F32,),
    )  # fmt: skip
    yield case(
        "chunk_log_linear_attn", family, "log_linear_attn",
        lambda m: {
            "q": m(m.batch, m.time, 1, 64),
            "k": m(m.batch, m.time, 1, 64, scale=0.3),
            "v": m(m.batch, m.time, m.heads, 64),
            "g": per_head(m),
            "level_scales": m.gate(m.batch, m.time, m.heads, m.levels, dtype=F32),
        },
    )  # fmt: skip
    for kind in ("fused_chunk", "parallel"):
        yield case(
            f"{kind}_based", family, "based", lambda m: heads(m, keys=m.few), taylor
        )  # fmt: skip
    yield case("parallel_rebased", family, "rebased", lambda m: heads(m, keys=m.few))


def delta_rules(family="delta rules"):
    """What is written depends on what is there."""
    ruled = lambda m: {**short(m), "beta": beta(m)}  # noqa: E731
    with_decay = lambda m: {**short(m), "g": per_head(m), "beta": beta(m)}  # noqa: E731
    yield case(
        "chunk_delta_rule", family, "delta_rule",
        lambda m: {**ruled(m), "initial_state": state(m)}, delta, options=FINAL, dtypes=HALF,
    )  # fmt: skip
    yield case(
        "chunk_delta_rule_varlen", family, "delta_rule.chunk_delta_rule",
        lambda m: {**packed(ruled(m)), "cu_seqlens": starts(m)}, dtypes=HALF,
    )  # fmt: skip
    yield case(
        "fused_recurrent_delta_rule", family, "delta_rule",
        lambda m: {**ruled(m), "initial_state": state(m)}, delta, options=FINAL,
    )  # fmt: skip
    for kind in ("chunk", "fused_recurrent"):
        yield case(
            f"{kind}_gated_delta_rule", family, "gated_delta_rule", with_decay, options=FINAL
        )
        yield case(
            f"{kind}_comba", family, "comba",
            lambda m: {**with_decay(m), "p": m.unit(m.batch, m.time, m.heads, m.keys)},
            options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_gated_oja_rule", family,
            f"gated_oja_rule.{kind}_gated_oja_rule",
            lambda m: {
                **short(m),
                "v": m.unit(m.batch, m.time, m.heads, m.values),
                "gv": m.decay(m.batch, m.time, m.heads, m.values),
                "beta": beta(m),
            },
            options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_kda", family, "kda",
            lambda m: {**short(m), "g": per_key(m), "beta": beta(m)}, options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_iplr_delta_rule", family, "generalized_delta_rule",
            lambda m: {**short(m), **pair(m)},
            lambda *inputs: low_rank(*inputs)[0],
        )  # fmt: skip
        yield case(
            f"{kind}_dplr_delta_rule", family, "generalized_delta_rule",
            lambda m: {**short(m), **pair(m), "gk": per_key(m)}, options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_rwkv7", family, "rwkv7",
            lambda m: {
                **{("r" if n == "q" else n): x for n, x in short(m).items()},
                **pair(m),
                "w": bounded(m),
            },
            options={"scale": 1.0, **FINAL},
        )  # fmt: skip
        yield case(
            f"{kind}_momentum_delta_rule", family, "momentum_delta_rule",
            lambda m: {
                **short(m),
                "log_alpha": per_head(m),
                "log_mu": per_head(m),
                "p": m.unit(m.batch, m.time, m.heads, m.keys),
                "beta": beta(m),
                "eta": beta(m),
            },
            options={"use_qk_l2norm_in_kernel": False, **FINAL}, dtypes=HALF,
        )  # fmt: skip
        yield case(
            f"{kind}_precond_gated_delta_rule", family, "precond_gated_delta_rule",
            lambda m: {
                **with_decay(m), "g_atk": per_head(m), "beta_atk": beta(m)
            },
            options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_precond_kda", family, "precond_kda",
            lambda m: {
                **short(m),
                "g": per_key(m),
                "g_atk": per_head(m),
                "beta_atk": beta(m),
                "beta": beta(m),
            },
            options=FINAL,
        )  # fmt: skip
        yield case(
            f"{kind}_cyfa", family, "cyfa",
            lambda m: {
                **heads(m),
                "g": per_head(m),
                "delta": beta(m, F32),
                "beta": beta(m, F32),
                "readout": m.full(m.heads, 7, 7),
                "q_norm_weight": m.full(m.keys, shift=1.0, scale=0.1),
                "k_norm_weight": m.full(m.keys, shift=1.0, scale=0.1),
            },
            options={"q_norm_eps": 1e-6, "k_norm_eps": 1e-6},
            gpu="its forward asks for CUDA tensors",
        )  # fmt: skip
    yield from more_delta_rules(family)


def pair(m):
    """Vectors of a product of rank one that takes away from the state."""
    a = m.unit(m.batch, m.time, m.heads, m.keys)
    with torch.no_grad():
        b = -a * torch.rand(m.batch, m.time, m.heads, 1, device=m.device).to(a.dtype)
    return {"a": a, "b": b.requires_grad_()}


def bounded(m):
    """Decays as RWKV-7 makes them, above exp(-0.6)."""
    value = m.normal(m.batch, m.time, m.heads, m.keys, dtype=F32)
    return (-0.606531 * value.sigmoid()).to(m.dtype).requires_grad_()


def more_delta_rules(family):
    """Rules with gates of their own."""
    yield case(
        "chunk_kda_safe_gate", family, "kda.chunk_kda",
        lambda m: {
            **short(m),
            "g": m(m.batch, m.time, m.heads, m.keys),
            "beta": beta(m),
            "A_log": m.full(m.heads, scale=0.5),
            "dt_bias": m.full(m.heads * m.keys),
        },
        options={
            "use_gate_in_kernel": True, "safe_gate": True, "lower_bound": -5.0, **FINAL,
        },
    )  # fmt: skip
    yield case(
        "chunk_gdn2", family, "gdn2.chunk_gdn2",
        lambda m: {
            **short(m),
            "g": per_key(m),
            "b": m.gate(m.batch, m.time, m.heads, m.keys),
            "w": m.gate(m.batch, m.time, m.heads, m.values),
        },
        options=FINAL,
    )  # fmt: skip

    def reflections(m):
        twice = {
            "k": m.unit(m.batch, 2 * m.time, m.heads, m.keys),
            "v": m(m.batch, 2 * m.time, m.heads, m.values),
        }
        return {
            "q": m(m.batch, m.time, m.heads, m.keys),
            **twice,
            "g": per_head(m),
            "beta": m.gate(m.batch, 2 * m.time, m.heads),
        }

    yield case(
        "chunk_gated_delta_product", family, "gated_delta_product.chunk_gated_delta_product",
        reflections, options={"num_householder": 2, **FINAL}, dtypes=HALF,
    )  # fmt: skip

    def learner(m):
        time = m.time // 16 * 16
        return {
            "q": m(m.batch, time, m.heads, m.keys),
            "k": m.unit(m.batch, time, m.heads, m.keys),
            "v": m(m.batch, time, m.heads, m.keys),
            "w": m(m.heads, m.keys, shift=1.0, scale=0.1),
            "b": m(m.heads, m.keys, scale=0.1),
            "eta": (m.normal(m.batch, time, m.heads, 1).sigmoid() * 5e-2).requires_grad_(),
        }

    for kind in ("chunk", "fused_chunk"):
        yield case(
            f"{kind}_ttt_linear", family, f"ttt.{kind}_ttt_linear", learner,
            options={"chunk_size": 16, **FINAL},
        )  # fmt: skip


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
    )  # fmt: skip
    yield case(
        "parallel_path_attn", family, "path_attn",
        lambda m: {
            **heads(m),
            "w": m.unit(m.batch, m.time, m.heads, m.keys),
            "beta": beta(m),
            "g": per_head(m),
        },
    )  # fmt: skip
    yield case("parallel_stickbreaking_attn", family, "stickbreaking_attn", heads)
    yield Case(
        "deltaformer", family,
        applied("fla.ops.deltaformer.parallel.ParallelDeltaformerFunction", 64, None),
        lambda m: {**heads(m), "beta": beta(m)},
    )  # fmt: skip
    yield from sparse(family)
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
        dtypes=(F32,),
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
        lambda m: {"x": m(m.batch, m.time, m.heads, m.keys)},
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
    """Every differentiable wrapper of `fla.ops`."""
    return [*simple(), *gated_linear(), *delta_rules(), *softmaxes(), *parts()]
