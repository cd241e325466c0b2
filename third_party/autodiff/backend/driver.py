"""The CPU backend's driver: loading and launching native kernels.

Triton imports this module with itself: it must not import torch or the native library.
"""

import functools
import hashlib
import os
import time

from triton.backends.compiler import GPUTarget
from triton.backends.driver import DriverBase

from .errors import AutodiffError
from .kernels.grid import checked_grid
from .library import native

# Triton keeps compiled kernels by device; CUDA's numbers start at 0.
DEVICE = -1


@functools.lru_cache
def host_arch() -> str:
    """Return a name for this machine's instruction set."""
    machine = os.uname().machine
    try:
        with open("/proc/cpuinfo") as info:
            lines = info.read(16384).splitlines()
    except OSError:
        return machine
    names = ("model name", "flags", "Features", "CPU part", "CPU implementer")
    seen = {}
    for line in lines:
        name, _, value = line.partition(":")
        if name.strip() in names:
            seen.setdefault(name.strip(), value.strip())
    digest = hashlib.sha256(repr(sorted(seen.items())).encode()).hexdigest()
    return f"{machine}-{digest[:16]}"


class CPUUtils:
    """Triton's interface for loading binaries and for properties of devices."""

    def load_binary(self, name, binary, shared, device):
        """Return module, function, number of registers, of spills, and the most threads."""
        try:
            kernel = native().load_cpu(binary, name)
        except AutodiffError as error:
            from .plans.cache import unusable

            raise unusable(f"kernel {name!r}: {error}") from error
        return kernel, kernel, 0, 0, 2**31 - 1

    def unload_module(self, module):
        """Do nothing: a kernel is unloaded with its last reference."""

    def get_device_properties(self, device):
        return {
            "max_shared_mem": 2**31 - 1,
            "max_num_regs": 2**31 - 1,
            "multiprocessor_count": os.cpu_count() or 1,
            "warpSize": 1,
            "sm_clock_rate": 0,
            "mem_clock_rate": 0,
            "mem_bus_width": 0,
        }


def _decompose_descriptor(descriptor):
    """Return the arguments that autodiff-lower-descriptors makes of a descriptor."""
    if getattr(descriptor, "round_f32_to_tf32", False):
        raise ValueError("tensor descriptors that round to tf32 exist only on NVIDIA GPUs")
    isnan = descriptor.padding == "nan"
    return [descriptor.base, isnan, *descriptor.shape, *descriptor.strides]


def _select(signature, args, selected):
    """Append the arguments of the compiled function, which are leaves of `args`."""
    for kind, arg in zip(signature, args, strict=True):
        if isinstance(kind, tuple):
            _select(kind, arg, selected)
        elif kind.startswith("tensordesc"):
            selected.extend(_decompose_descriptor(arg))
        elif kind != "constexpr":
            selected.append(arg)


def _check_device(arg):
    # NumPy's numbers say where they are in words.
    device = getattr(getattr(arg, "device", None), "type", "cpu")
    if device != "cpu":
        raise ValueError(
            f"Pointer argument cannot be accessed from Triton (a tensor on {arg.device}?): "
            "the CPU driver is active"
        )


class CPULauncher:
    """Launches one compiled kernel."""

    def __init__(self, src, metadata):
        self.signature = tuple(src.signature.values())
        self.grid = functools.partial(checked_grid, kernel=metadata.name, backend="cpu")
        leaves = [kind for kind in self.signature]
        self.is_flat = not any(
            isinstance(kind, tuple) or kind.startswith("tensordesc") for kind in leaves
        )
        self.positions = [i for i, kind in enumerate(leaves) if kind != "constexpr"]

    def __call__(
        self, gx, gy, gz, stream, function, packed_metadata, launch_metadata, enter, leave, *args
    ):
        if self.is_flat:
            selected = [args[i] for i in self.positions]
        else:
            selected = []
            _select(self.signature, args, selected)
        for arg in selected:
            # Tensors have this attribute; other objects are checked in another way.
            if type(arg) is not int and not getattr(arg, "is_cpu", False):
                _check_device(arg)
        grid = self.grid((gx, gy, gz))
        if enter is not None:
            enter(launch_metadata)
        function.launch(*grid, tuple(selected), 0)
        if leave is not None:
            leave(launch_metadata)


class CPUEvent:
    """A point in time, with the interface of `torch.cuda.Event`."""

    def __init__(self, enable_timing=False, **kwargs):
        self.time = None

    def record(self, stream=None):
        self.time = time.perf_counter()

    def elapsed_time(self, end) -> float:
        """Return the milliseconds until `end`."""
        return (end.time - self.time) * 1e3

    def synchronize(self):
        pass

    def query(self) -> bool:
        return True


class CPUInterface:
    """A device module like `torch.cuda`; all calls are synchronous."""

    Event = CPUEvent

    @staticmethod
    def synchronize(device=None):
        pass

    @staticmethod
    def current_device() -> int:
        return DEVICE

    @staticmethod
    def current_stream(device=None):
        return None

    @staticmethod
    def device_count() -> int:
        return 1

    @staticmethod
    def is_available() -> bool:
        return True


class CPUDriver(DriverBase):
    """Runs kernels on tensors in host memory, on all cores."""

    def __init__(self):
        self.utils = CPUUtils()
        self.launcher_cls = CPULauncher

    @staticmethod
    def is_active() -> bool:
        """Whether no other installed backend has a device, or this one was asked for."""
        if os.environ.get("TRITON_DEFAULT_BACKEND") == "autodiff":
            return True
        from triton.backends import backends

        others = (backend.driver for backend in backends.values())
        return not any(driver.is_active() for driver in others if driver is not CPUDriver)

    def map_python_to_cpp_type(self, ty: str) -> str:
        if ty.startswith("*"):
            return "void *"
        if ty == "i1":
            return "int8_t"
        if ty == "u1":
            return "uint8_t"
        if ty[0] in "iu" and ty[1:].isdigit():
            return f"{'u' if ty[0] == 'u' else ''}int{ty[1:]}_t"
        return {"fp16": "double", "bf16": "double", "fp32": "double", "f32": "double"}.get(
            ty, "double"
        )

    def get_current_target(self) -> GPUTarget:
        return GPUTarget("cpu", host_arch(), 1)

    def get_current_device(self) -> int:
        return DEVICE

    def set_current_device(self, device):
        pass

    def get_current_stream(self, device=None) -> int:
        return 0

    def get_device_interface(self):
        return CPUInterface

    def get_active_torch_device(self):
        import torch

        return torch.device("cpu")

    def get_benchmarker(self):
        from triton.testing import do_bench

        return do_bench

    def get_empty_cache_for_benchmark(self):
        """Return a buffer that is large enough to evict other data from the caches."""
        import torch

        return torch.empty(64 << 20, dtype=torch.int8, device="cpu")

    def clear_cache(self, cache):
        cache.zero_()
