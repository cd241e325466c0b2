"""flash-linear-attention: linear attention and delta rules, `fla.ops`."""

from __future__ import annotations

import torch

from ..case import BF16, F16, F32, Case, called, packed

PACKAGES = ("flash-linear-attention", "fla-core")
MODULES = ("fla",)
DIMENSIONS = {
    "small": {
        **{"batch": 2, "time": 100, "heads": 3, "keys": 32, "values": 32, "width": 96},
        **{"slots": 32, "levels": 8},
    },
    "users": {
        **{"batch": 4, "time": 2048, "heads": 16, "keys": 64, "values": 64, "width": 2048},
        **{"slots": 64, "levels": 12},
    },
}
EXCLUDED = {
    "fused_chunk_gla, fused_chunk_delta_rule": "withdrawn: they raise",
    "parallel_delta_rule": "not differentiable: its backward raises NotImplementedError",
    "chunk_mesa_net": "not a derivative: its backward is that of the exact solution",
    "cp, intracard_cp": "for several GPUs",
    "titans": "PyTorch, no kernel",
    "chunk_momentum_delta_rule, fused_recurrent_momentum_delta_rule": (
        "PyTorch, no kernel but that of l2_norm, which is a case"
    ),
    "fused_recurrent_cyfa": "for inference: its backward raises NotImplementedError",
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
    """The same with keys of length 1, for delta rules."""
    return {**heads(m), "k": m.unit(m.batch, m.time, m.heads, m.keys)}


def state(m):
    """The initial state of a recurrence."""
    return m.full(m.batch, m.heads, m.keys, m.values)


def per_head(m):
    """A decay for each head."""
    return m.decay(m.batch, m.time, m.heads)


def per_key(m):
    """A decay for each key."""
    return m.decay(m.batch, m.time, m.heads, m.keys)


def beta(m, dtype=None):
    """The share of a value that is written."""
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
    """The value that is written is the difference from the one found by the key."""

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
        lambda m: {**heads(m), **{n: m.gate(m.batch, m.time, m.heads, m.keys) for n in "qk"}},
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
    """The starts of packed sequences, which replace a batch."""
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
        "chunk_lightnet", family, "lightnet",
        lambda m: {**heads(m), "k": m(m.batch, m.time, m.heads, m.keys)},
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
        dtypes=(F32, BF16),  # Triton refuses its kernel in float16
    )  # fmt: skip


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
    # In bfloat16, the gradient of `delta` depends on how gradients are added up: it is a sum over
    # time, in which those of `write` nearly cancel. PyTorch adds those of four launches in
    # bfloat16, with an error of 4 %. The authors' two kernels add in float32: 2 %.
    yield case(
        "chunk_cyfa", family, "cyfa",
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
    """Vectors of a rank-one product that is subtracted from the state."""
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


def cases() -> list[Case]:
    """Every differentiable wrapper of `fla.ops` that goes from state to state."""
    return [*simple(), *gated_linear(), *delta_rules()]
