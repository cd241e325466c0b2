"""Hands compiled kernels to Triton's driver, which launches them on the device."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable

from triton import knobs
from triton.runtime.driver import driver

from ..faults.elf import check_whole
from ..kernels.wrappers import of_thread, plain_run

_loading = threading.Lock()


def has_hooks() -> bool:
    """Whether Triton has hooks at launches; chains without hooks would be called for nothing."""
    for hook in (knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook):
        if hook is not None and not (type(hook) is knobs.HookChain and not hook.calls):
            return True
    return False


def load(kernel) -> None:
    """Prepare a `CompiledKernel` to be launched."""
    if kernel.function is None:
        # Other threads can see Triton's launcher before the function is loaded.
        with _loading:
            check_whole(kernel)
            kernel._init_handles()


def launch(kernel, grid, args, run=None, device: int | None = None) -> None:
    """Launch a `CompiledKernel` on three grid extents, on the current device and stream.

    `run` is the launch function, if it is not the kernel's own, and `device` the number of the
    current device, where it is known.
    """
    if grid[0] * grid[1] * grid[2] == 0:
        return
    active = driver.active
    stream = active.get_current_stream(active.get_current_device() if device is None else device)
    enter, leave = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
    if not has_hooks():
        enter = leave = None
    if kernel.function is None:
        load(kernel)
    run = run or kernel.run
    metadata = None if enter is None else kernel.launch_metadata(grid, stream, *args)
    run(*grid, stream, kernel.function, kernel.packed_metadata, metadata, enter, leave, *args)


def prepared_launch(kernel, grid, device) -> Callable[[Iterable], None]:
    """Return a function of arguments that does as `launch` does, and has looked up what stays.

    The current device has to be `device` then.
    """
    if grid[0] * grid[1] * grid[2] == 0:
        return lambda args: None
    load(kernel)
    run, function, metadata = plain_run(kernel), kernel.function, kernel.packed_metadata
    number, (x, y, z) = device.index, grid
    hooks, chain = knobs.runtime, knobs.HookChain

    def start(args):
        # As `has_hooks`, without the time that a call takes.
        enter, leave = hooks.launch_enter_hook, hooks.launch_exit_hook
        if (
            (enter is not None and (type(enter) is not chain or enter.calls))
            or (leave is not None and (type(leave) is not chain or leave.calls))
            or of_thread.handle is not None
        ):
            return launch(kernel, grid, args)
        stream = driver.active.get_current_stream(number)
        run(x, y, z, stream, function, metadata, None, None, None, *args)

    return start
