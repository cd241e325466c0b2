"""Backward kernels as an expert writes them by hand: what the derived ones are measured against."""
