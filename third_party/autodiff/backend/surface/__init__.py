"""What users hold: differentiable kernels, and operations."""
