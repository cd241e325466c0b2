"""The device and the Triton version that kernels are derived for, as the compiler names them."""

from __future__ import annotations

import platform
import re

from ..errors import ArgumentError, AutodiffError
from ..library import native

# The length of a product's sum, in the type of its first operand.
_SUMMED = re.compile(r"tt\.dot .* : tensor<(?:\d+x)+?(\d+)x[a-z]\w*>")
# The longest sum that any device requires.
_LONGEST = 32


def name_of(target) -> str:
    """Return the compiler's name for a Triton target: sm_90, gfx942, cpu."""
    return {"cuda": "sm_", "hip": ""}.get(target.backend, "cpu") + (
        "" if target.backend == "cpu" else str(target.arch)
    )


def version() -> str:
    """Return Triton's version."""
    # Commands that do not need Triton work where it is broken.
    import triton

    return triton.__version__


def parse_target(text: str):
    """Return `cuda:90`, `hip:gfx942` or `cpu:x86_64` as Triton's GPUTarget."""
    from triton.backends.compiler import GPUTarget

    backend, _, arch = text.partition(":")
    if backend == "cuda" and (arch or "90").isdecimal():
        return GPUTarget("cuda", int(arch or 90), 32)
    if backend == "hip":
        return GPUTarget("hip", arch or "gfx942", 64)
    if backend == "cpu":
        return GPUTarget("cpu", arch or platform.machine(), 1)
    raise ArgumentError(f"unknown target {text!r}; examples: cuda:90, hip:gfx942, cpu")


def described(target) -> dict[str, str | bool]:
    """Return the keys of a request about the device and Triton."""
    return {
        "target": name_of(target),
        "triton": version(),
        # Only the CPU backend reduces in order.
        "anyOrder": target.backend != "cpu",
    }


def beyond_memory(shared: int, target) -> str:
    """Return why a kernel with so many bytes of shared memory cannot run; "" if it can."""
    options = f"target={name_of(target)} shared-memory={shared}"
    try:
        native().run_pipeline("module {}", f"builtin.module(autodiff-verify-target{{{options}}})")
    except AutodiffError as error:
        return str(error).splitlines()[0]
    return ""


def verify(ttir: str, kernel: str, target) -> None:
    """Raise an `AutodiffError` if Triton's passes result in something that the device
    cannot run.
    """
    if all(int(length) >= _LONGEST for length in _SUMMED.findall(ttir)):
        return
    passes = f"builtin.module(autodiff-verify-target{{target={name_of(target)}}})"
    try:
        native().run_pipeline(ttir, passes, f"<ttir of {kernel}>")
    except AutodiffError as error:
        raise AutodiffError(
            f"Triton {version()} has changed the generated kernel {kernel!r} to what "
            f"would be wrong on this device; please report this. {error}"
        ) from error


# Passes that rewrite operations which Triton may reject, and the operation; most likely first.
_OTHER_FORMS = {
    "autodiff-loop-branches": "scf.if",
    "autodiff-reduce-columns": '"tt.reduce"',
    "autodiff-copy-to-users": "scf.",
    "autodiff-advance-views": "tt.",
    "autodiff-sum-unit-axes": "tt.reshape",
    "autodiff-hide-operands": "tt.dot ",
}


def other_form(ttir: str) -> str | None:
    """Return another form of a kernel that Triton has rejected, None if there is none."""
    for name, changed in _OTHER_FORMS.items():
        if changed in ttir:
            after = _changed_by(name, ttir)
            if after is not None:
                return after
    return None


def smaller_form(ttir: str) -> str | None:
    """Return a form of a kernel that keeps less on chip at a time, None if there is none."""
    return _changed_by("autodiff-load-late", ttir) if "tt.dot " in ttir else None


def _changed_by(name: str, ttir: str) -> str | None:
    """Return a kernel after a pass over functions, None if the pass changes nothing."""
    passes = f"builtin.module(tt.func({name}))"
    before, after = (native().run_pipeline(ttir, p, "<ttir>") for p in ("", passes))
    return after if after != before else None
