"""Tensors that lie in memory which is watched: what is around them is poison, and stays as it is.

A kernel that reads beside its tensor gets NaN, and one that writes there is found. Such a tensor
has a storage of its own that ends where the tensor does: nothing about it tells that there is more.

Behind that, on both sides, lie bands of megabytes: whole rows of a matrix may be out of place. On a
CPU they are pages that may only be read, so they cost nothing: a write there ends the process
(SIGSEGV). On a GPU they are more of the same poison.
"""

from __future__ import annotations

import contextlib
import ctypes
import itertools
import mmap

import torch
from torch.utils._python_dispatch import TorchDispatchMode

# Elements on each side: as many bytes are a multiple of every alignment that kernels assume.
MARGIN = 4096
# Bytes of a band, and elements on a GPU.
BAND = 16 << 20
FAR_MARGIN = 1 << 21
# Of floats, an integer type of the same size, the bits of infinity, and how many bits below those
# say which NaN that does not survive arithmetic (a signalling one) it is.
NANS = {
    torch.float64: (torch.int64, 0x7FF << 52, 51),
    torch.float32: (torch.int32, 0xFF << 23, 22),
    torch.bfloat16: (torch.int16, 0xFF << 7, 6),
    torch.float16: (torch.int16, 0x1F << 10, 9),
}
_numbers = itertools.count(1)


def _between_bands(nbytes: int) -> tuple[mmap.mmap, int]:
    """Return memory in which so many bytes lie between two bands, and where they begin."""
    page = mmap.PAGESIZE
    length = -(-nbytes // page) * page
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | getattr(mmap, "MAP_NORESERVE", 0)
    memory = mmap.mmap(-1, 2 * BAND + length, flags=flags)
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    for band in (start, start + BAND + length):
        if _libc.mprotect(ctypes.c_void_p(band), ctypes.c_size_t(BAND), mmap.PROT_READ):
            raise OSError(ctypes.get_errno(), "mprotect")
    # What is written right behind an end is found there, not in the rest of the page.
    return memory, BAND + (length - nbytes) // 64 * 64


_libc = ctypes.CDLL(None, use_errno=True)


class Memory:
    """A tensor of its own storage, of `size` elements, and what is around it.

    Around it is NaN, another one for each tensor: what a kernel reads there it cannot write
    elsewhere without a trace, and whatever it computes with it has other bits.
    """

    def __init__(self, size: int, dtype: torch.dtype, device: torch.device):
        self.size = size
        self.margin = FAR_MARGIN if device.type == "cuda" else MARGIN
        count = size + 2 * self.margin
        if device.type == "cpu":
            memory, start = _between_bands(count * dtype.itemsize)
            self.block = torch.frombuffer(memory, dtype=dtype, count=count, offset=start)
        else:
            self.block = torch.empty(count, dtype=dtype, device=device)
        integer, infinity, bits = NANS.get(dtype, (torch.uint8, 0xFF, 0))
        # Numbers of other types are not NaN: all their bits are set.
        number = next(_numbers) % ((1 << bits) - 1) + 1 if bits else 0
        self.pattern = infinity + number
        self.bits = self.block.view(integer).fill_(self.pattern)
        # What goes through DLPack has a storage that is no larger than itself.
        part = self.block.view(torch.uint8)[self.margin * dtype.itemsize :]
        part = part[: size * dtype.itemsize]
        self.inside = torch.from_dlpack(torch.utils.dlpack.to_dlpack(part))

    def touched(self) -> str:
        """Say which elements around the tensor have changed."""
        margin = self.margin * self.block.itemsize // self.bits.itemsize
        changed = self.bits != self.pattern
        found = []
        for where, part in (("before", changed[:margin].flip(0)), ("behind", changed[-margin:])):
            places = part.nonzero().flatten()
            if len(places):
                first, last = places[0].item() + 1, places[-1].item() + 1
                found.append(f"{where} {self.size} elements, {first} to {last} from their end")
        return " and ".join(found)


def _extent(shape, strides) -> int:
    if 0 in shape:
        return 0
    return 1 + sum((n - 1) * stride for n, stride in zip(shape, strides, strict=True))


class Watch(TorchDispatchMode):
    """While it is active, new tensors lie in watched memory; what nobody wrote is poison."""

    EMPTY = ("empty", "empty_strided", "empty_like", "new_empty", "new_empty_strided")
    FILLED = ("zeros", "zeros_like", "new_zeros", "full", "full_like", "new_full", "clone")

    def __init__(self):
        super().__init__()
        self.memories: list[Memory] = []

    def empty(self, shape, strides, dtype, device) -> torch.Tensor:
        """Return a new tensor that holds poison."""
        size = _extent(shape, strides)
        if not size:
            return torch.empty_strided(shape, strides, dtype=dtype, device=device)
        memory = Memory(size, dtype, torch.device(device))
        self.memories.append(memory)
        made = torch.empty(0, dtype=dtype, device=device)
        return made.set_(memory.inside.untyped_storage(), 0, shape, strides)

    def copy(self, tensor: torch.Tensor) -> torch.Tensor:
        """Return a copy in watched memory."""
        like = tensor.detach()
        return self.empty(like.shape, like.stride(), like.dtype, like.device).copy_(like)

    supports_higher_order_operators = True

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **(kwargs or {}))
        if not hasattr(function, "_schema"):
            # Of a higher order, as launches are in graphs: what it makes is a copy.
            return result
        name = function._schema.name.removeprefix("aten::")
        strided = isinstance(result, torch.Tensor) and result.layout == torch.strided
        if not strided or result.device.type not in ("cpu", "cuda"):
            return result
        if name in self.EMPTY:
            shape, strides = result.shape, result.stride()
            return self.empty(shape, strides, result.dtype, result.device)
        return self.copy(result) if name in self.FILLED else result

    def touched(self) -> list[str]:
        """Say where memory around tensors was written to."""
        return [text for memory in self.memories if (text := memory.touched())]


@contextlib.contextmanager
def watched():
    """Keep new tensors in watched memory; a write beside one of them is an AssertionError."""
    watch = Watch()
    with watch:
        yield watch
    found = watch.touched()
    assert not found, f"memory beside a tensor was written: {'; '.join(found)}"
