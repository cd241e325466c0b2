"""Backward kernels written by hand by an expert, to compare derived ones with."""
