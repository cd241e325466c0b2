"""Exceptions of the package. Everything it raises on purpose is an `AutodiffError`."""

import pickle


class AutodiffError(RuntimeError):
    """A kernel, a launch or a plan cannot be differentiated; the message says why and where."""


class ArgumentError(AutodiffError, ValueError):
    """An argument of a launch is of a kind that has no gradient; the message names it."""


class KernelTypeError(AutodiffError, TypeError):
    """What should be a kernel, or the stub of one, is none; the message says what it is."""


class PickleError(AutodiffError, pickle.PickleError):
    """A kernel cannot be pickled, or a pickle is not for this process; the message says why."""


class NoTangents(AutodiffError):
    """A kernel has gradients, but no tangents; the message names the operation that has none."""


class NoHistory(AutodiffError):
    """No gradient of a launch goes to what an `argument` held before, which it writes to."""

    argument = -1


class PlanError(AutodiffError):
    """A plan is malformed: the compiler and this runtime disagree about its format."""


class DoesNotFit(AutodiffError):
    """A generated kernel needs more of a processor than there is; the message says of what."""


class Miscompiled(AutodiffError):
    """Triton or ptxas compiles a generated kernel wrongly, and no other way helps; it says how."""


class BoundsError(AutodiffError):
    """A derived kernel left its memory, seen by TRITON_AUTODIFF_CHECK=1; the message says where."""


class RaceError(AutodiffError):
    """Programs store different values to one element; the message says where."""


class GradientCheckError(AutodiffError):
    """Gradients that `check` found to be wrong; `report` holds what it compared."""

    def __init__(self, report):
        super().__init__(str(report))
        self.report = report


class CheckError(AutodiffError):
    """An expression of a plan is undefined for this launch (a division by zero, say)."""
