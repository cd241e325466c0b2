"""Generated kernels: TTIR text, compiled by Triton for the forward's target and launched."""

from __future__ import annotations

import threading

from triton import knobs
from triton.compiler import compile as triton_compile
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources

from .cache import write_ttir
from .errors import AutodiffError
from .plan import Kernel

# What the backward inherits from the forward's compilation. A register limit is not among them:
# it was tuned for another kernel.
_INHERITED = (
    "num_warps",
    "num_ctas",
    "num_stages",
    "warp_size",
    "enable_fp_fusion",
    "default_dot_input_precision",
    "debug",
    "waves_per_eu",
    "matrix_instr_nonkdim",
    "kpack",
)


_loading = threading.Lock()


def inherited_options(metadata) -> dict:
    """Return the compile options that a generated kernel takes from the forward's metadata."""
    found = {name: getattr(metadata, name, None) for name in _INHERITED}
    return {name: value for name, value in found.items() if value is not None}


def _active(hook):
    """Return a launch hook, None in place of a chain without hooks, which costs time to call."""
    return hook if getattr(hook, "calls", True) else None


def launch(kernel, grid, args) -> None:
    """Launch a `CompiledKernel` on three grid extents, on the current device and stream."""
    if grid[0] * grid[1] * grid[2] == 0:
        return
    active = driver.active
    stream = active.get_current_stream(active.get_current_device())
    enter, leave = _active(knobs.runtime.launch_enter_hook), _active(knobs.runtime.launch_exit_hook)
    if kernel.function is None:
        # Triton shows a launcher to other threads before the function is loaded.
        with _loading:
            kernel._init_handles()
    run = kernel.run
    metadata = None if enter is None else kernel.launch_metadata(grid, stream, *args)
    run(*grid, stream, kernel.function, kernel.packed_metadata, metadata, enter, leave, *args)


class Executable:
    """A generated kernel, compiled on its first launch."""

    def __init__(self, kernel: Kernel, target, options: dict):
        self.kernel = kernel
        self.target = target
        self.options = {**options, **dict(kernel.options)}
        self.compiled = None
        self.variants = tuple(Executable(v, target, options) for v in kernel.variants)

    def suited(self, facts) -> Executable:
        """Return the variant to launch for these facts, or this."""
        return next((v for v in self.variants if facts.evaluate(v.kernel.when)), self)

    def launch(self, grid, args) -> None:
        """Launch on three grid extents; `args` are the values of the TTIR function's arguments."""
        if self.compiled is None:
            self.compiled = self._compile()
        launch(self.compiled, grid, args)

    def _compile(self):
        path = write_ttir(self.kernel.ttir, self.kernel.name)
        options = dict(self.options)
        while True:
            try:
                compiled = triton_compile(path, target=self.target, options=options)
                compiled._init_handles()
                # Triton would keep the parsed module for as long as the kernel lives.
                compiled.src.module = None
                return compiled
            except OutOfResources as error:
                # Pipelining multiplies shared memory, and the backward holds more tiles.
                if options.get("num_stages", 1) <= 1:
                    raise AutodiffError(
                        f"the generated kernel {self.kernel.name!r} keeps more on chip than there "
                        f"is room for: {error}. Launch the kernel with smaller tiles"
                    ) from error
                options["num_stages"] -= 1
            except (RuntimeError, ValueError) as error:
                raise AutodiffError(
                    f"Triton rejects the generated kernel {self.kernel.name!r} ({path}), unless a "
                    f"file of its cache is damaged (delete {knobs.cache.dir}): {error}"
                ) from error
