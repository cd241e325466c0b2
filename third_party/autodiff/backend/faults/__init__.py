"""What is done because of faults of Triton, ptxas and CPython."""
