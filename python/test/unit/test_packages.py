"""Kernels of public packages, differentiated by us: the arena's cases, at its small size.

The arena (`benchmarks/arena`) has the cases and the judge. Here ours must also be as near to
float64 PyTorch as the authors' own gradients, wherever there is a reference.
"""

import zlib

import pytest
import torch
from arena.case import Case, Variant
from arena.packages import installed, plugins
from arena.problem import OURS, THEIRS, leaf, mapped, told
from arena.trial import Trial, make_problem
from arena.truth import Gradients, reference_gradients
from gradients import TF32, assert_close, relative_error

# The CPU takes longest to compile these (half a minute and more): there they need --slow. Others of
# their families run.
LONG = {
    "chunk_dplr_delta_rule",
    "chunk_gdn2",
    "chunk_gla",
    "chunk_gla_varlen",
    "chunk_gsa",
    "chunk_kda",
    "chunk_linear_attn",
    "chunk_precond_kda",
    "chunk_retention",
    "chunk_rwkv6",
    "chunk_rwkv7",
    "chunk_simple_gla",
    "parallel_wall_attn",
}


def dtype_of(case: Case) -> torch.dtype:
    """One of a case's dtypes. It follows from the name: other cases do not change it."""
    return case.dtypes[zlib.crc32(case.name.encode()) % len(case.dtypes)]


def cases():
    """Each case that the CPU has time for, in one dtype."""
    found = []
    for package, plugin in plugins().items():
        if not installed(plugin):
            continue
        for case in plugin.cases():
            if case.slow:
                continue
            dtype = dtype_of(case)
            name = f"{package}-{case.name}-{str(dtype)[6:]}"
            found.append(pytest.param(plugin, case, dtype, id=name))
    return found


@pytest.mark.filterwarnings("ignore:reduction:UserWarning")
@pytest.mark.parametrize("plugin, case, dtype", cases())
def test_gradients(plugin, case, dtype, device, pytestconfig):
    if device == "cpu" and case.name in LONG and not pytestconfig.getoption("--slow"):
        pytest.skip("--slow")
    if device == "cpu" and (case.gpu or torch.cuda.is_available()):
        pytest.skip(case.gpu or "packages choose their kernels for the GPU that is there")
    problem = make_problem(plugin, case, Variant("small", str(dtype)[6:]), device)
    trial = Trial(problem, exact="first")
    try:
        row = trial.run()
    except Exception as error:
        if trial.row.get("refused") != told(error):
            raise
        pytest.skip(f"the package itself refuses this: {told(error)}")
    found = "\n".join(map(str, [*row["notes"], *trial.findings]))
    assert row["verdict"] in ("agree", "ours"), found
    # Where theirs is refused on a GPU, nothing says how near is near: products are tf32.
    if case.reference is not None and (THEIRS in trial.claims or device == "cpu"):
        assert_as_good_as_theirs(trial)


def assert_as_good_as_theirs(trial) -> None:
    """Our outputs and gradients are as near to float64 as the authors' own, times a factor.

    Where the package refuses its own backward, plain PyTorch takes its place.
    """
    problem, ours = trial.problem, trial.claims[OURS]
    truth, theirs = Gradients(problem, ours), trial.claims.get(THEIRS)
    if theirs is None:
        outputs, gradients = plain(problem)
    else:
        outputs, gradients = theirs.outputs, theirs.gradients
    names = [f"output {i}" for i in problem.used] + [f"gradient of {n}" for n in problem.names]
    values = [*ours.outputs, *ours.gradients]
    baselines, truths = [*outputs, *gradients], [*truth.outputs, *truth.gradients]
    truths = [exact.view(value.shape) for exact, value in zip(truths, values, strict=True)]
    baselines = [
        exact.to(value.dtype) if base is None else base.cpu()
        for base, value, exact in zip(baselines, values, truths, strict=True)
    ]
    # Where products are tf32, authors may ask for exact ones in one place of their backward, which
    # the forward does not (fla's chunk_gla, for v): what they are satisfied with elsewhere will do.
    may_be_tf32 = values[0].is_cuda and values[0].dtype == torch.float32
    widest = max(map(relative_error, baselines, truths)) if may_be_tf32 else 0.0
    roundings = problem.case.roundings
    for name, value, base, exact in zip(names, values, baselines, truths, strict=True):
        assert_close(name, value.cpu(), base, exact, roundings, theirs=min(widest, TF32))


def plain(problem):
    """What plain PyTorch makes of it, all in the precision of the first leaf."""
    dtype = problem.leaves[0].dtype

    def same(x):
        return (
            leaf(x.to(dtype).detach().requires_grad_(x.requires_grad))
            if x.is_floating_point()
            else x
        )

    outputs, gradients = reference_gradients(problem, mapped(same, problem.inputs))
    claimed = zip(problem.leaves, gradients, strict=True)
    return outputs, [gradient.to(x.dtype) for x, gradient in claimed]
