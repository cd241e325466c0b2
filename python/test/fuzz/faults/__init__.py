"""Small programs whose gradients were wrong once, and the kinds of random programs they stand for.

Now they are right, or refused for a stated reason.
"""

from . import control, memory, poison, sums, values
from .fault import Fault, written

__all__ = ["FOUND", "Fault", "written"]

_KINDS = control, memory, poison, sums, values
FOUND = {name: fault for kind in _KINDS for name, fault in kind.FOUND.items()}
assert len(FOUND) == sum(len(kind.FOUND) for kind in _KINDS), "two faults of one name"
