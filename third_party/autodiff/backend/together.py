"""Compilations side by side.

Most of a compilation is spent in processes (ptxas, a C compiler), or without the lock of the
interpreter. All threads end with the call that started them. So compilers find knobs, environment
and cache as the caller has them, a fork meets no compiler at work, and no program waits for one
when it ends.
"""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from triton.runtime.driver import driver

from .cache import dumps_passes


def together(calls) -> None:
    """Make calls side by side, the first one in this thread.

    When all have ended, the error of the first that has one is raised.
    """
    # What passes print is to be read in one piece.
    if len(calls) < 2 or dumps_passes():
        for call in calls:
            call()
        return
    device = driver.active.get_current_device()

    def call_here(call):
        # Threads start on the first device.
        driver.active.set_current_device(device)
        call()

    with ThreadPoolExecutor() as pool:
        running = [pool.submit(call_here, call) for call in calls[1:]]
        calls[0]()
    for call in running:
        call.result()


def compile_all(kernels) -> None:
    """Compile side by side what has not been `compiled`; raises the error of the first with one."""
    together([kernel.compile for kernel in dict.fromkeys(kernels) if kernel.compiled is None])
