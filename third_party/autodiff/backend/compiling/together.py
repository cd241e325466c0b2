"""Runs compilations in parallel.

Most of a compilation is spent in other processes (ptxas, a C compiler), or without Python's global
lock. All threads end with the call that started them. So compilers find the caller's knobs,
environment and cache, a fork never happens during a compilation, and no program waits for one at
its end.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from triton.runtime.driver import driver

from ..plans.cache import dumps_passes


def together(calls) -> None:
    """Make calls in parallel, the first one in this thread.

    After all have ended, raises the first call's error that there is.
    """
    # Dumps of passes must not be interleaved.
    if len(calls) < 2 or dumps_passes():
        for call in calls:
            call()
        return
    device = driver.active.get_current_device()

    def call_here(call):
        # New threads start on the first device.
        driver.active.set_current_device(device)
        call()

    with ThreadPoolExecutor() as pool:
        running = [pool.submit(call_here, call) for call in calls[1:]]
        calls[0]()
    for call in running:
        call.result()


def compile_all(kernels) -> None:
    """Compile in parallel those that are not `compiled`; raises the first error that there is."""
    together([kernel.compile for kernel in dict.fromkeys(kernels) if kernel.compiled is None])
