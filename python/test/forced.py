"""Backwards under a schedule of the test's choice, in place of the compiler's."""

from __future__ import annotations

import contextlib
import itertools

import pytest

# The largest number of a variant of longer tiles that is tried.
VARIANTS = 8
# By name: the options of differentiable kernels.
OPTIONS = {
    "derived": {"backward": {"scheduled": False}},
    "atomics": {"backward": {"schedules": ()}},
    "batch": {"backward": {"schedules": ("batch",)}},
    "unravel": {"backward": {"schedules": ("unravel",)}},
    "merge": {"backward": {"schedules": ("merge",)}},
    "interchange": {"backward": {"schedules": ("interchange",)}},
    "persist": {"backward": {"schedules": ("persist",)}},
    "all": {"backward": {"schedules": ("merge", "interchange", "persist")}},
    "deterministic": {"deterministic": True},
    "forward's tiles": {"backward": {"widen": 1}},
    "longer tiles": {"backward": {"widen": 16}},
    "checks fail": {},
    **{f"variant {n}": {} for n in range(VARIANTS)},
}
REFUSALS = ("a deterministic backward was asked for", "not deterministic")
_numbers = itertools.count()


class Forced:
    """What ran under a schedule: whether it applies at all, and which kernels there were."""

    def __init__(self):
        self.applies = True
        self.ran = set()


@contextlib.contextmanager
def schedule(name: str):
    """Force a schedule on all kernels that are made differentiable meanwhile."""
    from triton.backends.autodiff import AutodiffError, api
    from triton.backends.autodiff.checking import checks, facts
    from triton.backends.autodiff.compiling.executable import Executable
    from triton.backends.autodiff.launching import state
    from triton.backends.autodiff.launching.options import DEFAULT, Options
    from triton.backends.autodiff.programs.backward import Backward

    forced = Forced()
    with pytest.MonkeyPatch.context() as patch:
        # Kernels keep what was found out under other schedules.
        patch.setattr(state, "_ATTRIBUTE", f"_states_{next(_numbers)}")
        patch.setattr(api, "DEFAULT", Options.checked(DEFAULT, **OPTIONS[name]))
        if name == "checks fail":
            for kind in (checks.BijectiveCheck, checks.DistinctCheck):
                patch.setattr(kind, "holds", lambda *_: False)
                patch.setattr(kind, "objection", lambda *_: "it was made to fail")
        if name == "longer tiles" or name.startswith("variant"):
            # There are never too few programs for longer tiles.
            patch.setattr(facts, "processors", lambda device: 1)
        if name.startswith("variant"):
            number = int(name.split()[1])
            forced.applies = False

            def suited(executable, launch):
                found = executable.suitable(launch)
                forced.applies |= number < len(found)
                return found[min(number, len(found) - 1)]

            patch.setattr(Executable, "suited", suited)
        run = Backward.run

        def note(backward, *args):
            gradients = run(backward, *args)
            kernels = (launch[0].kernel.digest for launch in backward.launches)
            forced.ran.add((*kernels, str(backward.plan.gradients)))
            return gradients

        patch.setattr(Backward, "run", note)
        try:
            yield forced
        except AutodiffError as error:
            if name != "deterministic" or not any(words in str(error) for words in REFUSALS):
                raise
            forced.applies = False
