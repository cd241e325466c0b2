"""Assembly as an operation of tensors."""

import pytest
import torch
from gradients import differentiated
from kernels import assembly as kernels


def operation(text, *, pack=1, dtype=None, constrained=None):
    """Return the operation that assembly is, of one to three tensors of a type."""

    def stub(kernel, *operands):
        result = dtype or operands[0].dtype
        return kernels.run(kernel, text, result, *operands, pack=pack, constrained=constrained)

    return differentiated(kernels.assembly_kernel, stub)


def skip_unless_capable(device, capability):
    """Skip a test of what the GPU at hand has not."""
    if device == "cuda":
        major, minor = torch.cuda.get_device_capability()
        if 10 * major + minor < capability:
            pytest.skip(f"an instruction of compute capability {capability}")
