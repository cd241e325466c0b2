"""liger-kernel: its losses."""

from __future__ import annotations

import importlib

import torch
import torch.nn.functional as F

from ..case import F32, SIZES, Case, attribute
from .liger import MODULES, PACKAGES, below, case, instead

DIMENSIONS = {
    "small": {"rows": 9, "few": 3, "vocab": 300, "inner": 32},
    "users": {"rows": 2048, "few": 4, "vocab": 32000, "inner": 2048},
}
EXCLUDED = {
    "fused_linear_scaled_cross_entropy": "no Triton kernel: PyTorch, or CuTe",
    "fused_linear_jsd": "its forward overwrites in PyTorch what PyTorch needs for the gradient",
    "grpo_loss, cispo": "not a derivative, by design: the weight of the ratio is held",
}
# Reductions that differ by a constant: only one is run at users' sizes.
ELSE_SMALL = {"mean": ("small",), "sum": ("small",)}
__all__ = ["DIMENSIONS", "EXCLUDED", "MODULES", "PACKAGES", "cases"]


def cross_entropies():
    family, path = "losses", "cross_entropy.LigerCrossEntropyFunction"

    def logits(m, scale=1.0, ignored=2):
        target = m.indices(m.vocab, m.rows, ignored=ignored)
        return {"x": m(m.rows, m.vocab, scale=scale), "t": target}

    def loss(reduction):
        return lambda x, t: F.cross_entropy(x, t, reduction=reduction)

    # The kernel overwrites the logits with a gradient of its own; for us, that is no output.
    yield case("cross_entropy", family, path, logits, loss("mean"), (None,), whole=True)
    for reduction in ("mean", "sum", "none"):
        yield case(
            f"cross_entropy_forward_{reduction}", family, path, logits, loss(reduction),
            (None, -100, 0.0, 0.0, reduction), whole=True, constants={"HAS_GRADIENTS": False},
            sizes=ELSE_SMALL["sum"] if reduction == "sum" else SIZES,
        )  # fmt: skip

    def everything(x, w, t):
        """Class weights, label smoothing, soft capping and the squared log-sum-exp."""
        return attribute(below(path)).apply(x, t, w, -100, 1e-3, 0.1, "mean", 30.0)

    def everything_plainly(x, w, t):
        x = 30 * torch.tanh(x / 30)
        smooth = F.cross_entropy(x, t, w, label_smoothing=0.1)
        return smooth + 1e-3 * x.logsumexp(-1).square().mean()

    yield Case(
        "cross_entropy_everything", family, everything,
        lambda m: {
            "x": m(m.rows, m.vocab, scale=5.0),
            "w": m.normal(m.vocab, dtype=F32).sigmoid(),
            "t": m.indices(m.vocab, m.rows),
        },
        everything_plainly, whole=True, constants={"HAS_GRADIENTS": False},
    )  # fmt: skip

    def fused(**inputs):
        """Without the gradients that it would compute in the same pass."""
        module = importlib.import_module("liger_kernel.ops.fused_linear_cross_entropy")
        return module.fused_linear_cross_entropy_forward(**inputs, compute_gradients=False)[0]

    def fused_theirs(_input, weight, target, bias):
        function = attribute(
            below("fused_linear_cross_entropy.LigerFusedLinearCrossEntropyFunction")
        )
        return function.apply(_input, weight, target, bias)[0]

    yield Case(
        "fused_linear_cross_entropy", family, fused_theirs,
        lambda m: {
            "_input": m(m.rows, m.inner),
            "weight": m(m.vocab, m.inner, scale=m.inner**-0.5),
            "target": m.indices(m.vocab, m.rows),
            "bias": m(m.vocab),
        },
        lambda x, w, t, b: F.cross_entropy(x @ w.t() + b, t),
        ours=fused, whole=True,
    )  # fmt: skip
    yield case(
        "fused_ce_tvd", family, "fused_ce_tvd.LigerFusedCETVDFunction",
        lambda m: {
            "s": m(m.rows, m.vocab),
            "te": m.normal(m.rows, m.vocab),
            "t": m.indices(m.vocab, m.rows, ignored=2),
        },
        cross_entropy_and_variation, (-100,), whole=True,
    )  # fmt: skip
    for smoothing in (0.0, 0.1):
        yield case(
            "vocab_parallel_ce" + ("_smooth" if smoothing else ""), family,
            "vocab_parallel_cross_entropy.LigerVocabParallelCEFunction",
            lambda m: {
                "x": m(m.rows // 2, 2, m.vocab), "t": m.indices(m.vocab, m.rows // 2, 2)
            },
            lambda x, t, smoothing=smoothing: F.cross_entropy(
                x.flatten(0, 1), t.flatten(), reduction="none", label_smoothing=smoothing
            ).view_as(t),
            (None, -100, smoothing, "pytorch", "global"), whole=True,
        )  # fmt: skip


def cross_entropy_and_variation(student, teacher, target):
    p, q = student.softmax(-1), teacher.softmax(-1)
    cross = F.cross_entropy(student, target, reduction="none")
    return cross, torch.where(target == -100, 0, (p - q).abs().sum(-1) / 2)


def divergences():
    family = "losses"

    def logs(m, log_target=True):
        target = m.probabilities(m.rows, m.vocab)
        return {
            "y": m.normal(m.rows, m.vocab).log_softmax(-1).requires_grad_(),
            "t": target.log() if log_target else target,
        }

    for reduction in ("batchmean", "mean", "sum", "none"):
        for log_target in (False, True):
            yield case(
                f"kl_div_{reduction}_{'log' if log_target else 'prob'}", family,
                "kl_div.LigerKLDivLossFunction",
                lambda m, log_target=log_target: logs(m, log_target),
                lambda y, t, reduction=reduction, log_target=log_target: F.kl_div(
                    y, t, reduction=reduction, log_target=log_target
                ),
                (reduction, log_target), dtypes=(F32,), sizes=ELSE_SMALL.get(reduction, SIZES),
            )  # fmt: skip
    for beta in (0.0, 0.3, 1.0):
        yield case(
            f"jsd_{beta}", family, "jsd.LigerJSDFunction", logs,
            lambda x, y, beta=beta: jensen_shannon(x, y, beta), (None, beta),
            dtypes=(F32,), whole=True,
        )  # fmt: skip

    def variation(p, q, reduction):
        apart = (p - q).abs() / 2
        if reduction == "none":
            return apart
        return apart.sum() / {"batchmean": len(p), "mean": p.numel(), "sum": 1}[reduction]

    for reduction in ("batchmean", "mean", "sum", "none"):
        yield case(
            f"tvd_{reduction}", family, "tvd.LigerTVDLossFunction",
            lambda m: {
                "p": m.probabilities(m.rows, m.vocab).requires_grad_(),
                "q": m.probabilities(m.rows, m.vocab),
            },
            lambda p, q, reduction=reduction: variation(p, q, reduction), (None, reduction),
            dtypes=(F32,), whole=True, sizes=ELSE_SMALL.get(reduction, SIZES),
        )  # fmt: skip
    yield case(
        # In other dtypes, products write to `out=` on a GPU, which autograd refuses.
        "fused_linear_kl_div", family, "fused_linear_kl_div.LigerFusedLinearKLDivFunction",
        lambda m: {
            "x": m(m.rows, m.inner),
            "w": m(m.vocab, m.inner, scale=m.inner**-0.5),
            "t": m.probabilities(m.rows, m.vocab),
        },
        lambda x, w, t: F.kl_div((x @ w.t()).log_softmax(-1), t, reduction="batchmean"),
        (None, "batchmean"), dtypes=(F32,), whole=True,
    )  # fmt: skip


def jensen_shannon(x, y, beta):
    q, p = x.exp(), y.exp()
    if beta == 0.0:
        return (p * (y - x)).sum() / len(x)
    if beta == 1.0:
        return (q * (x - y)).sum() / len(x)
    m = (beta * p + (1 - beta) * q).log()
    return (beta * p * (y - m) + (1 - beta) * q * (x - m)).sum() / len(x)


def policies():
    """Losses of reinforcement learning; the gradient of the divergence that they report is left
    out.
    """
    path = "grpo_loss.GrpoLossFunction"

    def inputs(m):
        time = m.rows // m.few
        log = m.normal(m.few, time, scale=0.3, dtype=F32)
        likely = -torch.tensor(float(m.vocab), device=m.device).log()
        mask = torch.ones(m.few, time, device=m.device)
        mask[1, time // 2 :] = 0
        return {
            "logits": m(m.few, time + 1, m.vocab),
            "old_logp": likely - 0.5 + log,
            "ref_logp": likely - 0.5 + log.flip(0),
            "completion_ids": m.indices(m.vocab, m.few, time),
            "advantages": m.normal(m.few, dtype=F32),
            "completion_mask": mask,
        }

    common = (0.9, 0.04, 0.2, 0.4, False)
    for kind in ("grpo", "bnpo", "dr_grpo", "dapo", "sapo", "luspo"):
        yield case(f"grpo_loss_{kind}", "losses", path, inputs, None, (*common, kind), outputs=(0,))

    def by_sequence(**inputs):
        return attribute(below(path)).apply(
            *inputs.values(), *common, "grpo", None, True, "sequence"
        )

    def by_sequence_with_history(**inputs):
        """Logarithms come from a kernel that the forward launches under `no_grad`.

        That does nothing inside of a Function, but would cut the graph here.
        """
        logarithms = attribute(below("grpo_loss.fused_selective_log_softmax")).__wrapped__
        with instead("grpo_loss", fused_selective_log_softmax=logarithms):
            return by_sequence(**inputs)

    yield Case(
        "grpo_loss_sequence", "losses", by_sequence, inputs, outputs=(0,),
        ours=by_sequence_with_history,
    )  # fmt: skip
    yield case(
        "grpo_loss_delta_bias", "losses", path, inputs, None,
        (*common, "grpo", None, True, "token", 1.0, 1.05, None, 2.0, True), outputs=(0,),
    )  # fmt: skip
    yield Case(
        "grpo_loss_vespo", "losses",
        lambda advantages, **rest: attribute(below(path)).apply(
            *list(rest.values())[:4], advantages, rest["completion_mask"], *common, "vespo",
            None, True, "token", 1.0, 1.05, None, None, False, None, advantages.sigmoid(),
        ),
        inputs, outputs=(0,),
    )  # fmt: skip


def cases() -> list[Case]:
    """Every differentiable loss of liger-kernel."""
    return [*cross_entropies(), *divergences(), *policies()]
