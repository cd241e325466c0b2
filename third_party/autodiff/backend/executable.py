"""Generated kernels: TTIR text, compiled by Triton for the forward's target and launched."""

from __future__ import annotations

import threading

from triton import knobs
from triton.compiler import compile as triton_compile
from triton.runtime.driver import driver
from triton.runtime.errors import OutOfResources

from .cache import write_ttir
from .errors import AutodiffError, DoesNotFit
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
    """A generated kernel, compiled on its first launch.

    `options` are the forward's, which the plan's own go before; `chosen` are somebody's choice for
    this kernel, which nothing changes. The others give way where the kernel does not fit.
    """

    def __init__(self, kernel: Kernel, target, options: dict, chosen=None):
        self.kernel = kernel
        self.target = target
        self.inherited = options
        self.chosen = chosen or {}
        self.options = {**options, **dict(kernel.options), **self.chosen}
        self.compiled = None
        self.fits = True
        self.variants = tuple(Executable(v, target, options, chosen) for v in kernel.variants)

    def suitable(self, facts) -> tuple[Executable, ...]:
        """Return what may be launched for these facts, as far as is known: variants, and this.

        The compiler prefers the first.
        """
        suitable = (v for v in self.variants if v.fits and facts.evaluate(v.kernel.when))
        return (*suitable, self)

    def suited(self, facts) -> Executable:
        """Return what to launch for these facts."""
        return self.suitable(facts)[0]

    def launch(self, grid, args) -> None:
        """Launch on three grid extents; `args` are the values of the TTIR function's arguments."""
        self.compile()
        launch(self.compiled, grid, args)

    def compile(self) -> None:
        """Compile unless that has been done; raises an `AutodiffError` if it is impossible."""
        if self.compiled is None:
            self.compiled = self._compile()

    def _compile(self):
        path = write_ttir(self.kernel.ttir, self.kernel.name)
        while True:
            try:
                compiled = triton_compile(path, target=self.target, options=dict(self.options))
                compiled._init_handles()
                # Triton would keep the parsed module for as long as the kernel lives.
                compiled.src.module = None
                return compiled
            except OutOfResources as error:
                smaller = self._smaller(error)
                if smaller is None:
                    self.fits = False
                    raise DoesNotFit(self._does_not_fit(error)) from error
                self.options.update(smaller)
            except (RuntimeError, ValueError) as error:
                raise AutodiffError(
                    f"Triton rejects the generated kernel {self.kernel.name!r} ({path}), unless a "
                    f"file of its cache is damaged (delete {knobs.cache.dir}): {error}"
                ) from error

    def _smaller(self, error: OutOfResources) -> dict | None:
        """Return options with which a kernel that did not fit takes less, None if there are none.

        Pipelining multiplies shared memory, and the backward holds more tiles than the forward;
        warps share registers.
        """
        if error.name == "threads":
            name, value = "num_warps", self.options.get("num_warps", 1) // 2
        else:
            name, value = "num_stages", self.options.get("num_stages", 1) - 1
        return {name: value} if value >= 1 and name not in self.chosen else None

    def _does_not_fit(self, error: OutOfResources) -> str:
        chosen = ", ".join(f"{name}={value}" for name, value in self.chosen.items())
        way_out = f" without {chosen}, or" if chosen else ""
        return (
            f"the generated kernel {self.kernel.name!r} keeps more on chip than there is room "
            f"for: {error} Launch the kernel{way_out} with smaller tiles"
        )
