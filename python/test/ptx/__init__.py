"""What PTX instructions are, and how they are tested."""

from . import conversions, floats, integers, predicates  # noqa: F401
from .judge import mistakes, operands
from .launch import operation, skip_unless_capable
from .table import DTYPES, TABLE

__all__ = ["DTYPES", "TABLE", "mistakes", "operands", "operation", "skip_unless_capable"]
