"""lit: the differentiation passes, tested as the dialect is."""

import os

config = globals()["config"]
lit_config = globals()["lit_config"]

here = os.path.dirname(os.path.abspath(__file__))
root = os.path.dirname(os.path.dirname(os.path.dirname(here)))
lit_config.load_config(config, os.path.join(root, "test", "lit.cfg.py"))

config.name = "Autodiff"
config.test_source_root = here
config.test_exec_root = os.path.join(config.test_exec_root, "autodiff")

# The pipeline of lib/Plan/Differentiate.cpp.
cleanup = "autodiff-simplify,canonicalize,cse"
passes = [
    "autodiff-normalize",
    "autodiff-link-rules",
    "autodiff-count-trips",
    "tt.func(autodiff-mark-residuals,autodiff-record-memory)",
    "autodiff-rescale-accumulators",
    "autodiff-drop-maxima",
    "autodiff-fold-normalizers",
    f"tt.func({cleanup})",
    "autodiff-reverse",
    f"tt.func({cleanup},autodiff-tape,{cleanup})",
    "autodiff-residuals",
    f"tt.func({cleanup})",
    "autodiff-save-records",
    f"tt.func({cleanup})",
    "autodiff-read-cotangents",
    f"tt.func({cleanup},loop-invariant-code-motion,autodiff-order-loops,{cleanup})",
    "autodiff-merge-contributions",
    f"tt.func({cleanup})",
    "autodiff-merge-gathered",
    f"tt.func({cleanup})",
    "autodiff-exchange",
    f"tt.func({cleanup},autodiff-orient-dots,{cleanup})",
    "autodiff-persist",
    f"tt.func({cleanup})",
    "autodiff-schedule",
    "autodiff-clear-touched",
    "autodiff-choose-tiles",
    f"tt.func({cleanup})",
    "autodiff-divide-tiles",
    "tt.func(autodiff-launch-options,autodiff-pipeline-loads,autodiff-lower-programs)",
    "autodiff-sizes",
    f"tt.func(autodiff-lower-swaps,{cleanup},loop-invariant-code-motion)",
]


def run_passes(names):
    return f"triton-autodiff-opt --pass-pipeline='builtin.module({','.join(names)})'"


exchanged = [*passes[: passes.index("autodiff-exchange") + 1], f"tt.func({cleanup})"]
merged = [*passes[: passes.index("autodiff-merge-contributions") + 1], f"tt.func({cleanup})"]
gathered = [*passes[: passes.index("autodiff-merge-gathered") + 1], f"tt.func({cleanup})"]
persistent = passes[: passes.index("autodiff-persist") + 2]
always_persistent = [
    "autodiff-persist{always=true}" if name == "autodiff-persist" else name for name in persistent
]
config.substitutions += [
    ("%differentiate", run_passes(passes)),
    ("%exchange", run_passes(exchanged)),
    ("%merge", run_passes(merged)),
    ("%gather", run_passes(gathered)),
    ("%persist-always", run_passes(always_persistent)),
    ("%persist", run_passes(persistent)),
]
