"""The arena: public kernels, their authors' backwards, ours, and a judge.

    PYTHONPATH=benchmarks python -m arena judge --out FOLDER
    PYTHONPATH=benchmarks python -m arena time --out FOLDER
    PYTHONPATH=benchmarks python -m arena report FOLDER ...

`case.py` says what a case is, `packages/` has the cases of each package, `launches.py` how one
wrapper is differentiated by its authors and by us. `judge.py` compares the two by slopes of the
forward (`slopes.py`, `truth.py`), and `spoil.py` judges the judge.
"""

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
# The tests' helpers: poisoned memory, and tolerances.
sys.path[:0] = [str(ROOT / "benchmarks"), str(ROOT / "python" / "test")]

# cuBLAS needs this in deterministic mode, which fills memory.
os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
# fla would otherwise use other languages than Triton where it can.
os.environ.setdefault("FLA_DISABLE_BACKEND_DISPATCH", "1")
