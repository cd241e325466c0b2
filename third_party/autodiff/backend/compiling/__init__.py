"""Derived kernels: compiled, several at a time, and tuned."""
