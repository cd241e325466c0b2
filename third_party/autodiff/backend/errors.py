"""Exceptions of the package. Everything it raises on purpose is an `AutodiffError`."""


class AutodiffError(RuntimeError):
    """A kernel, a launch or a plan cannot be differentiated; the message says why and where."""


class ArgumentError(AutodiffError, ValueError):
    """An argument of a launch is of a kind that has no gradient; the message names it."""


class PlanError(AutodiffError):
    """A plan is malformed: the compiler and this runtime disagree about its format."""


class BoundsError(AutodiffError):
    """A derived kernel left its memory, seen by TRITON_AUTODIFF_CHECK=1; the message says where."""


class CheckError(AutodiffError):
    """A host expression of a plan has no value for this launch (say, a division by zero)."""
