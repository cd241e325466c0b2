"""Kernels as Triton Python, expressions as Python, and a plan in words."""
