"""Judges one variant of a case: both claims, a verdict on each gradient, and a test of the
judge.
"""

from __future__ import annotations

import torch

from .addresses import right_addresses_only
from .case import Case, Maker, Variant
from .judge import (
    AGREE,
    OURS_RIGHT,
    THEIRS_RIGHT,
    UNDECIDED,
    Finding,
    Judge,
    tolerance_of,
    worst,
)
from .problem import OURS, THEIRS, Claim, NoHistory, Problem, is_no_finding, told
from .spoil import spoilt
from .truth import distance, truths

SEED = 1


def make_problem(
    plugin, case: Case, variant: Variant, device: str, options=None, announce=None, seed: int = SEED
) -> Problem:
    """The case's inputs in a size and dtype; the same in every run on a device."""
    torch.manual_seed(seed)
    maker = Maker(plugin.DIMENSIONS[variant.size], getattr(torch, variant.dtype), device)
    return Problem(case, plugin.MODULES, case.inputs(maker), options, announce)


def _finite(claim: Claim) -> bool:
    values = [*claim.outputs, *(g for g in claim.gradients if g is not None)]
    return all(bool(x.isfinite().all()) for x in values)


class Trial:
    """Collects the results for one variant of a case as a row."""

    def __init__(self, problem: Problem, exact: str):
        self.problem = problem
        self.exact = exact
        self.row: dict = {"notes": []}
        self.claims: dict[str, Claim] = {}

    def note(self, text: str) -> None:
        """Add a note for readers of the results."""
        if text not in self.row["notes"]:
            self.row["notes"].append(text)

    def _claim_theirs(self) -> None:
        try:
            with right_addresses_only():
                claim = self.problem.claim(THEIRS)
            if not _finite(claim):
                plain = self.problem.claim(THEIRS, poisoned=False)
                if _finite(plain):
                    self.note(
                        "theirs reads memory that nobody wrote: NaN there reaches its results"
                    )
                    claim = plain
            self.claims[THEIRS] = claim
        except Exception as error:
            if is_no_finding(error):
                raise
            self.row["refused"] = told(error)

    def _claim_ours(self) -> None:
        self.claims[OURS] = self.problem.claim(OURS)

    def run(self) -> dict:
        """Compute claims and verdicts. Exceptions of our side go to the caller."""
        self._claim_theirs()
        self._claim_ours()
        theirs, ours = self.claims.get(THEIRS), self.claims[OURS]
        if theirs is not None:
            self.row["outputs"] = distance(ours.outputs, theirs.outputs)
        if not all(bool(y.isfinite().all()) for y in ours.outputs):
            self.note("outputs are not finite")
        self.findings = self._judged()
        self.row["verdict"] = worst(f.verdict for f in self.findings)
        self.row["gradients"] = [_entry(f) for f in self.findings]
        return self.row

    def _allowed(self):
        claim = self.claims[OURS]
        return tolerance_of([*self.problem.leaves, *claim.outputs])

    def _pairs(self):
        theirs, ours = self.claims.get(THEIRS), self.claims[OURS]
        names, leaves = self.problem.names, self.problem.leaves
        for index, (name, leaf) in enumerate(zip(names, leaves, strict=True)):
            mine = ours.gradients[index]
            yield index, name, mine if theirs is None else theirs.gradients[index], mine, leaf

    def _judges(self):
        """Yields a judge for each truth; a truth that is unsuitable is noted."""
        for truth, reason in truths(self.problem, self.claims[OURS], self.exact):
            if truth is None:
                self.note(reason)
            else:
                yield Judge(truth, self._allowed())

    def _judged(self) -> list[Finding]:
        """The verdicts of the first judge that decides; none is needed if all gradients are
        equal.
        """
        self.judge = Judge(None, self._allowed())
        alone = THEIRS not in self.claims
        found = [self.judge.finding(*pair, alone=alone) for pair in self._pairs()]
        if not alone and all(f.verdict != UNDECIDED for f in found):
            return found
        found = None
        for judge in self._judges():
            new = [judge.finding(*pair, alone=alone) for pair in self._pairs()]
            # A verdict of an earlier judge stays.
            found = [
                n if found is None or found[i].verdict == UNDECIDED else found[i]
                for i, n in enumerate(new)
            ]
            self.judge, self.row["judge"] = judge, judge.truth.name
            if worst(f.verdict for f in found) in (AGREE, OURS_RIGHT, THEIRS_RIGHT):
                break
        if found is None:
            raise NoHistory("nothing can judge this case: " + "; ".join(self.row["notes"]))
        return found

    def judge_the_judge(self) -> dict:
        """Which small mistakes, in either claim, were not found."""
        missed, made = [], 0
        if self.judge.truth is None:
            self.judge = next(self._judges())
            self.row["judge"] = self.judge.truth.name
        for index, name, theirs, ours, leaf in self._pairs():
            found = self.findings[index]
            for side, gradient in enumerate((theirs, ours)):
                if gradient is None or not gradient.isfinite().all() or found.wrong[side]:
                    continue
                for mistake, copy in spoilt(gradient):
                    pair = (theirs, copy) if side else (copy, ours)
                    named = self.judge.finding(index, name, *pair, leaf)
                    if not named.wrong[side] and found.wrong[1 - side]:
                        # Judged alone, since the other claim may have the same mistake.
                        named = self.judge.finding(index, name, copy, copy, leaf, alone=True)
                    made += 1
                    if not named.wrong[side]:
                        who = OURS if side else THEIRS
                        missed.append(f"{name} of {who}, {mistake}: {named.verdict}")
        return {"made": made, "missed": missed}


def _entry(found: Finding) -> dict:
    """A finding as part of a row."""
    entry = {
        "name": found.name,
        "verdict": found.verdict,
        "difference": found.difference,
        "slab": found.slab,
    }
    if found.evidence:
        entry["evidence"] = [list(e) for e in found.evidence]
    return entry


def judged(problem: Problem, exact: str, spoil=True):
    """The row of one variant of a case."""
    trial = Trial(problem, exact)
    try:
        row = trial.run()
        if spoil:
            row["spoilt"] = trial.judge_the_judge()
    except Exception as error:
        if is_no_finding(error):
            raise
        row = {**trial.row, "failed": told(error)}
    return row
