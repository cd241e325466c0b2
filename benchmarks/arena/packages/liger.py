"""liger-kernel: the default Triton implementations, `liger_kernel.ops.<module>`."""

from __future__ import annotations

import contextlib
import importlib

import torch
import torch.nn.functional as F

from ..case import BF16, F16, F32, Case, applied, attribute

PACKAGES = ("liger-kernel",)
MODULES = ("liger_kernel",)
DIMENSIONS = {
    "small": {
        **{"batch": 3, "time": 5, "width": 200, "hidden": 300, "vocab": 300, "rows": 9},
        **{"sequence": 20, "heads": 6, "few": 3, "head": 24, "blocks": 4096 * 8, "groups": 12},
        **{"inner": 32, "layers": 5, "experts": 4, "image": 13, "wide": 3000},
    },
    "users": {
        **{"batch": 8, "time": 2048, "width": 2048, "hidden": 4096, "vocab": 32000, "rows": 4096},
        **{"sequence": 2048, "heads": 16, "few": 4, "head": 128, "blocks": 65536, "groups": 321},
        **{"inner": 2048, "layers": 4, "experts": 8, "image": 64, "wide": 65536},
    },
}
EXCLUDED = {
    "softmax, rows of several tiles": "its kernel calls `tl.float32`, which Triton refuses",
    "tiled_mlp": "no kernel of its own: it calls a module again in its backward",
    "mm_int8int2": "products of integers have no gradient",
    "cute, cutedsl, cutile, backends": "not Triton, or for other hardware",
}
ROUNDED_OFTEN = 40  # sums in a thread, over a thread's lanes, a program's rows and partial sums


def rms(x, eps=1e-6):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps)


@contextlib.contextmanager
def instead(module: str, **functions):
    """Replaces functions of a module of liger during the context, by those it uses on other
    devices.
    """
    module = importlib.import_module(f"liger_kernel.ops.{module}")
    before = {name: getattr(module, name) for name in functions}
    vars(module).update(functions)
    try:
        yield
    finally:
        vars(module).update(before)


def below(name: str) -> str:
    return f"liger_kernel.ops.{name}"


def case(name, family, path, inputs, reference=None, options=(), **more) -> Case:
    """A case of the Function at a path below `liger_kernel.ops`."""
    return Case(name, family, applied(below(path), *options), inputs, reference, **more)


# --------------------------------------------------------------------------------------------
# Normalizations
# --------------------------------------------------------------------------------------------


def norms():
    family, rms_norm = "norms", "rms_norm.LigerRMSNormFunction"

    def rows(m):
        return {"x": m(m.batch, m.time, m.width), "w": m(m.width)}

    for mode in ("llama", "gemma", "none"):
        offset = 1.0 if mode == "gemma" else 0.0
        yield case(
            f"rms_norm_{mode}", family, rms_norm, rows,
            lambda x, w, offset=offset: rms(x) * (w + offset),
            (1e-6, offset, mode, False),
        )  # fmt: skip
    yield case(
        "rms_norm_noweight", family, rms_norm, lambda m: {**rows(m), "w": None},
        lambda x, _: rms(x), (1e-6, 0.0, "llama", False),
    )  # fmt: skip
    yield case(
        # Many short rows use another kernel.
        "rms_norm_block", family, rms_norm,
        lambda m: {"x": m(m.blocks, m.head), "w": m(m.head)},
        lambda x, w: rms(x) * w, (1e-6, 0.0, "llama", False, False), roundings=ROUNDED_OFTEN,
    )  # fmt: skip
    yield case(
        "layer_norm", family, "layer_norm.LigerLayerNormFunction",
        lambda m: {"x": m(m.batch, m.time, m.hidden), "w": m(m.hidden), "b": m(m.hidden)},
        lambda x, w, b: F.layer_norm(x, w.shape, w, b, 1e-5), (1e-5,),
    )  # fmt: skip

    def by_groups(x, w, b, width):
        function = attribute(below("group_norm.LigerGroupNormFunction"))
        return function.apply(x, w, b, len(w), len(w) // width, 1e-5)

    for width in (3, 1):
        yield Case(
            f"group_norm_{width}", family,
            lambda x, w, b, width=width: by_groups(x, w, b, width),
            lambda m: {
                "x": m(m.batch, m.groups, m.image, m.image, shift=0.5),
                "w": m(m.groups),
                "b": m(m.groups),
            },
            lambda x, w, b, width=width: F.group_norm(x, len(w) // width, w, b, 1e-5),
        )  # fmt: skip
    yield case(
        "fused_add_rms_norm", family, "fused_add_rms_norm.LigerFusedAddRMSNormFunction",
        lambda m: {
            "x": m(m.batch, m.time, m.width), "r": m(m.batch, m.time, m.width), "w": m(m.width)
        },
        lambda x, r, w: (rms(x + r) * w, x + r), (1e-6, 0.0, "llama", False),
    )  # fmt: skip
    yield case(
        "modulated_rms_norm", family, "modulated_rms_norm.LigerModulatedRMSNormFunction",
        lambda m: {**rows(m), "s": m(m.batch, m.width), "h": m(m.batch, m.width)},
        lambda x, w, s, h: rms(x) * w * (1 + s[:, None]) + h[:, None],
        (1e-6, 0.0, "llama", False),
    )  # fmt: skip
    yield case(
        "poly_norm", family, "poly_norm.LigerPolyNormFunction",
        lambda m: {"x": m(m.batch, m.time, m.width), "w": m(3), "b": m()},
        lambda x, w, b: w[0] * rms(x**3) + w[1] * rms(x**2) + w[2] * rms(x) + b,
        (1e-6, False),
    )  # fmt: skip
    yield case(
        "dyt", family, "dyt.LigerDyTFunction",
        lambda m: {
            "x": m(m.batch, m.time, m.width), "alpha": m(1), "gamma": m(m.width), "beta": m(m.width)
        },
        lambda x, alpha, gamma, beta: torch.tanh(alpha * x) * gamma + beta,
        roundings=ROUNDED_OFTEN,
    )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Elementwise
# --------------------------------------------------------------------------------------------


def elementwise():
    family = "elementwise"

    def pair(m):
        return {"a": m(m.batch, m.time, m.hidden), "b": m(m.batch, m.time, m.hidden)}

    swiglu = "swiglu.LigerSiLUMulFunction"
    yield case("swiglu", family, swiglu, pair, lambda a, b: F.silu(a) * b)
    yield case(
        "swiglu_mult", family, swiglu, pair, lambda a, b: F.silu(a * 1.5) * b * 0.5, (1.5, 0.5)
    )

    def tiled(a, b):
        """What newer GPUs use for wide rows."""
        with instead("swiglu", _should_tile=lambda n: True):
            y = attribute(below(swiglu)).apply(a, b)
        return y

    yield Case(
        "swiglu_tiled", family, tiled,
        lambda m: {"a": m(m.few, m.batch, m.wide), "b": m(m.few, m.batch, m.wide)},
        lambda a, b: F.silu(a) * b,
    )  # fmt: skip
    yield case(
        "swiglu_fused_gate_up", family, "swiglu.LigerFusedGateUpSiLUMulFunction",
        lambda m: {"y": m(m.rows, 2 * m.hidden)},
        lambda y: F.silu(y.chunk(2, -1)[0]) * y.chunk(2, -1)[1], (False,),
    )  # fmt: skip
    yield case(
        "geglu", family, "geglu.LigerGELUMulFunction", pair,
        lambda a, b: F.gelu(a, approximate="tanh") * b,
    )  # fmt: skip
    yield case(
        "relu_squared", family, "relu_squared.LigerReLUSquaredFunction",
        lambda m: {"x": m(m.batch, m.time, m.hidden)}, lambda x: F.relu(x) ** 2,
    )  # fmt: skip
    softmax = "softmax.LigerSoftmaxFunction"
    yield case(
        "softmax", family, softmax, lambda m: {"x": m(m.batch, m.time, m.width)},
        lambda x: x.softmax(-1),
    )  # fmt: skip
    yield case(
        "embedding", family, "experimental.embedding.LigerEmbeddingFunction",
        lambda m: {"e": m(m.vocab, m.inner), "i": m.indices(m.vocab, m.batch, m.time)},
        lambda table, index: table[index],
    )  # fmt: skip
    yield case(
        "sparsemax", family, "sparsemax.LigerSparsemaxFunction",
        lambda m: {"x": m(m.rows, m.hidden)}, sparsemax, (-1,),
    )  # fmt: skip


def sparsemax(x):
    """Martins and Astudillo: the projection of the rows onto the simplex."""
    ordered = x.sort(-1, descending=True).values
    ranks = torch.arange(1, x.shape[-1] + 1, device=x.device, dtype=x.dtype)
    size = (1 + ranks * ordered > ordered.cumsum(-1)).sum(-1, keepdim=True)
    tau = (ordered.cumsum(-1).gather(-1, size - 1) - 1) / size
    return (x - tau).clamp(min=0)


# --------------------------------------------------------------------------------------------
# Positions
# --------------------------------------------------------------------------------------------


def rotated(x, cos, sin):
    """Rotate pairs (i, i + half); `cos` and `sin` hold one half."""
    first, second = x.chunk(2, -1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), -1)


def positions():
    """In place, on buffers with the heads next to each other."""
    family = "positions"

    def heads(m):
        return {
            "q": m(m.few, m.heads, m.sequence, m.head),
            "k": m(m.few, m.heads // 2, m.sequence, m.head),
        }

    yield case(
        "rope", family, "rope.LigerRopeFunction",
        lambda m: {
            **heads(m),
            "cos": m.normal(1, m.sequence, m.head),
            "sin": m.normal(1, m.sequence, m.head),
        },
        lambda q, k, cos, sin: tuple(
            rotated(x, *(y[:, None, :, : x.shape[-1] // 2] for y in (cos, sin))) for x in (q, k)
        ),
    )  # fmt: skip

    def sections(head):
        """Consecutive parts of half a head."""
        return [head // 8, head // 8 + head // 24, head // 2 - 2 * (head // 8) - head // 24]

    def mixed(x):
        half = x.shape[-1] // 2
        parts = x[..., :half].split(sections(2 * half), -1)
        return torch.cat([part[i] for i, part in enumerate(parts)], -1)[:, None]

    yield Case(
        "qwen2vl_mrope", family,
        lambda q, **rest: attribute(below("qwen2vl_mrope.LigerQwen2VLMRopeFunction")).apply(
            q, *rest.values(), sections(q.shape[-1])
        ),
        lambda m: {
            **heads(m),
            "cos": m.normal(3, m.few, m.sequence, m.head),
            "sin": m.normal(3, m.few, m.sequence, m.head),
        },
        lambda q, k, cos, sin: tuple(rotated(x, mixed(cos), mixed(sin)) for x in (q, k)),
    )  # fmt: skip

    def angles(m):
        value = m.normal(m.sequence, m.head // 2, dtype=F32)
        return {
            "q": m(m.few, m.sequence, m.heads, m.head),
            "k": m(m.few, m.sequence, m.heads // 2, m.head),
            "f": torch.polar(torch.ones_like(value), value),
        }

    def turned(x, f):
        pairs = torch.view_as_complex(x.unflatten(-1, (-1, 2)))
        return torch.view_as_real(pairs * f[None, :, None]).flatten(-2)

    yield case(
        "llama4_rope", family, "llama4_rope.LigerLlama4RopeFunction", angles,
        lambda q, k, f: (turned(q, f), turned(k, f)), dtypes=(F32,),
    )  # fmt: skip


# --------------------------------------------------------------------------------------------
# Attention, mixtures and connections
# --------------------------------------------------------------------------------------------


def mixtures():
    family = "attention and mixtures"

    def scores(m, sparse):
        n = m.sequence
        return {
            "scores": m(2, m.few, n, n, dtype=F32 if sparse else None),
            "weight": m(4, m.few, 3, 3, dtype=F32 if sparse else None),
            "bias": m(4, dtype=F32 if sparse else None),
        }

    def convolved(scores, weight, bias, sparse):
        future = torch.ones_like(scores[0, 0], dtype=torch.bool).triu(1)
        scores = scores.masked_fill(future, -1e9)
        attention = sparsemax(scores) if sparse else scores.softmax(-1)
        return F.conv2d(attention, weight, bias, padding=1).masked_fill(future, 0)

    for sparse in (False, True):
        yield case(
            "multi_token_attention" + ("_sparse" if sparse else ""), family,
            "multi_token_attention.LigerMultiTokenAttentionFunction",
            lambda m, sparse=sparse: scores(m, sparse),
            lambda *inputs, sparse=sparse: convolved(*inputs, sparse),
            (1, 1, 1, 1, sparse), dtypes=(F32,) if sparse else (BF16, F16, F32),
        )  # fmt: skip
    yield case(
        "neighborhood_attention", family,
        "fused_neighborhood_attention.LigerFusedNeighborhoodAttentionFunction",
        lambda m: {
            name: m(2, m.few, m.sequence, m.head) for name in ("query", "key", "value")
        },
        neighborhood, (7, 1),
    )  # fmt: skip

    def residual(v, query, norm):
        alpha = (rms(v) * norm @ query).softmax(0)
        return (alpha[..., None] * v).sum(0)

    yield case(
        "attn_res", family, "attn_res.LigerAttnResFunction",
        lambda m: {
            "v": m(m.layers, m.few, m.time, m.width),
            "query": m(m.width, scale=0.1),
            "norm": m(m.width),
        },
        residual, (1e-6,),
    )  # fmt: skip

    def experts(m):
        tokens, wide, narrow = m.rows, m.inner, m.inner // 2
        scores = m.normal(tokens, m.experts, dtype=F32)
        weights, chosen = scores.softmax(-1).topk(2, -1)
        return {
            "x": m(tokens, wide),
            "gate_up_proj": m(m.experts, 2 * narrow, wide, scale=wide**-0.5),
            "down_proj": m(m.experts, wide, narrow, scale=narrow**-0.5),
            "top_k_index": chosen.int(),
            "top_k_weights": weights.to(m.dtype).requires_grad_(),
        }

    yield case(
        "fused_moe", family, "fused_moe.LigerFusedMoEFunction", experts, mixture_of_experts,
        slow=True,
    )  # fmt: skip
    yield case(
        "mlp", family, "mlp.LigerMLPFunction",
        lambda m: {
            "x": m(m.few, 16 * m.few if m.time < 100 else m.time, m.inner),
            "gate": m(m.hidden // 4 * 4, m.inner, scale=m.inner**-0.5),
            "up": m(m.hidden // 4 * 4, m.inner, scale=m.inner**-0.5),
            "down": m(m.inner, m.hidden // 4 * 4, scale=0.05),
        },
        lambda x, gate, up, down: (F.silu(x @ gate.t()) * (x @ up.t())) @ down.t(),
        dtypes=(BF16, F16), gpu="its forward asserts that its inputs are on a GPU",
    )  # fmt: skip
    yield from connections(family)


def neighborhood(query, key, value):
    """Attention to the keys at most three places away."""
    n, d = query.shape[-2:]
    place = torch.arange(n, device=query.device)
    near = (place[:, None] - place).abs() <= 3
    scores = query @ key.transpose(-2, -1) * d**-0.5
    return scores.masked_fill(~near, -torch.inf).softmax(-1) @ value


def mixture_of_experts(x, gate_up, down, index, weights):
    out = torch.zeros_like(x)
    for expert in range(len(gate_up)):
        gate, up = (x @ gate_up[expert].t()).chunk(2, -1)
        share = (weights * (index == expert)).sum(-1, keepdim=True)
        out = out + share * ((F.silu(gate) * up) @ down[expert].t())
    return out


def connections(family):
    """Hyper-connections: four streams, mixed by matrices that Sinkhorn's iterations balance."""
    streams = 4

    def coefficients(m):
        columns = streams * streams + 2 * streams
        return {
            "x": m(m.few, m.time, streams, m.width // 8 * 8),
            "phi": m(streams * (m.width // 8 * 8), columns, scale=0.02),
            "b": m.full(columns),
            **{f"alpha_{name}": m.full(shift=1.0) for name in ("pre", "post", "res")},
        }

    yield case(
        "mhc_coeffs", family, "mhc.LigerMHCCoeffsFunction", coefficients, balanced,
        (True, 20, 1e-6, 0.0, 1e-6, 2.0),
        roundings=100,  # alphas: sums of both signs over all positions, in the order of threads
    )  # fmt: skip
    yield case(
        "mhc_pre", family, "mhc.LigerMHCPreFunction",
        lambda m: {
            "x": m(m.few, m.time, streams, m.width),
            "h": m.full(m.few, m.time, streams),
        },
        lambda x, h: (h[..., None] * x).sum(-2),
    )  # fmt: skip
    yield case(
        "mhc_post_res", family, "mhc.LigerMHCPostResFunction",
        lambda m: {
            "x": m(m.few, m.time, streams, m.width),
            "f": m(m.few, m.time, m.width),
            "post": m.full(m.few, m.time, streams),
            "res": m.full(m.few, m.time, streams, streams),
        },
        lambda x, f, post, res: res @ x + post[..., None] * f[..., None, :],
    )  # fmt: skip


def balanced(x, phi, b, alpha_pre, alpha_post, alpha_res, eps=1e-6):
    """What `mhc_coeffs` computes: gates, and a matrix after twenty Sinkhorn iterations."""
    streams = x.shape[-2]
    mix = rms(x.flatten(-2)) @ phi
    alphas = (alpha_pre, alpha_post, alpha_res)
    pre, post, res = (
        mixed * alpha + bias
        for mixed, bias, alpha in zip(
            *(y.split([streams, streams, streams**2], -1) for y in (mix, b)), alphas, strict=True
        )
    )
    matrix = res.unflatten(-1, (streams, streams)).softmax(-1) + eps
    matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    for _ in range(19):
        matrix = matrix / (matrix.sum(-1, keepdim=True) + eps)
        matrix = matrix / (matrix.sum(-2, keepdim=True) + eps)
    return pre.sigmoid(), 2 * post.sigmoid(), matrix


def cases() -> list[Case]:
    """Every differentiable wrapper of liger-kernel but its losses."""
    return [*norms(), *elementwise(), *positions(), *mixtures()]
