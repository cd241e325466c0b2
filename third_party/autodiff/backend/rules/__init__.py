"""Derivatives that users define, and gradients of functions inside of kernels."""
