"""Forward Triton kernels, one file per family: the kernel, its stub and its PyTorch reference.

A stub takes the kernel as its first argument, as ``autodiff(kernel, stub)`` wants it. References
are plain PyTorch and run in any precision; tests run them in float64.
"""
