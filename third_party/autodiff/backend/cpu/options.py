"""The options of the CPU backend's compiler."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass

from . import TARGET

LEVELS = range(3)
_LEVEL = "TRITON_AUTODIFF_CPU_LEVEL"


def default_level() -> int:
    """Return the level at which kernels are compiled that are given none."""
    text = os.environ.get(_LEVEL, "2")
    if text not in map(str, LEVELS):
        raise ValueError(f"{_LEVEL} is {text!r}, and has to be 0, 1 or 2")
    return int(text)


@dataclass(frozen=True)
class CPUOptions:
    """Options of a CPU kernel. Those for GPUs are accepted without effect."""

    backend_name: str = TARGET
    arch: str | None = None
    num_warps: int = 4
    num_ctas: int = 1
    num_stages: int = 3
    warp_size: int = 1
    maxnreg: int | None = None
    cluster_dims: tuple = (1, 1, 1)
    ir_override: str | None = None
    # Without effect: each operation is rounded by itself.
    enable_fp_fusion: bool = False
    launch_cooperative_grid: bool = False
    launch_pdl: bool = False
    supported_fp8_dtypes: tuple[str, ...] = ("fp8e4b8", "fp8e4nv", "fp8e5", "fp8e5b16")
    deprecated_fp8_dot_operand_dtypes: tuple[str, ...] = ()
    default_dot_input_precision: str = "ieee"
    allowed_dot_input_precisions: tuple[str, ...] = (
        "ieee",
        "tf32",
        "tf32x3",
        "bf16x3",
        "bf16x6",
    )
    max_num_imprecise_acc_default: int = 0
    extern_libs: tuple = ()
    debug: bool = False
    sanitize_overflow: bool = True
    instrumentation_mode: str = ""
    fpsan_homomorphic_casts: bool = False
    # Of LLVM's optimizer and code generator; see `default_level`.
    opt_level: int = 2

    def __post_init__(self):
        if self.opt_level not in LEVELS:
            raise ValueError(f"opt_level is {self.opt_level!r}, and has to be 0, 1 or 2")
        libraries = self.extern_libs or ()
        if isinstance(libraries, dict):
            libraries = tuple(libraries.items())
        object.__setattr__(self, "extern_libs", tuple(libraries))
        if self.num_warps <= 0 or self.num_warps & (self.num_warps - 1):
            raise ValueError("num_warps must be a power of 2")

    def hash(self) -> str:
        """Return a digest of all options."""
        key = "_".join(f"{name}-{value}" for name, value in sorted(self.__dict__.items()))
        return hashlib.sha256(key.encode()).hexdigest()
