"""Checks ELF files of compiled kernels: a GPU's driver does not check them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from ..plans.cache import unusable

# In a 64-bit file: offsets of the section table's position, entry size and count.
_OFFSET, _COUNTS = 0x28, 0x3A
_ENTRY = 64
# The same for segments.
_SEGMENTS, _SEGMENT_COUNTS = 0x20, 0x36
_NOT_IN_FILE = 8  # a section's kind
_EXECUTABLE = 4  # of its flags


class Section(NamedTuple):
    """A section as the file describes it; offsets and sizes in bytes."""

    kind: int
    flags: int
    start: int
    size: int

    @property
    def is_code(self) -> bool:
        return bool(self.flags & _EXECUTABLE)

    @property
    def end(self) -> int:
        """The end of the section in the file."""
        return self.start if self.kind == _NOT_IN_FILE else self.start + self.size


def sections(data: bytes) -> Iterator[Section]:
    """Yield the sections of a 64-bit ELF file; raises `struct.error` if the file is too short."""
    (table,) = struct.unpack_from("<Q", data, _OFFSET)
    size, count = struct.unpack_from("<HH", data, _COUNTS)
    if size != _ENTRY:
        raise struct.error(f"an entry of {size} bytes")
    for at in range(table, table + size * count, size):
        _, kind, flags, _, start, length, *_ = struct.unpack_from("<IIQQQQIIQQ", data, at)
        yield Section(kind, flags, start, length)


def is_whole(data: bytes) -> bool:
    """Return whether this is a 64-bit ELF file with all that its headers refer to."""
    if data[:5] != b"\x7fELF\x02":
        return False
    try:
        (segments,) = struct.unpack_from("<Q", data, _SEGMENTS)
        size, count = struct.unpack_from("<HH", data, _SEGMENT_COUNTS)
        ends = [segments + size * count, *(section.end for section in sections(data))]
    except struct.error:
        return False
    return max(ends) <= len(data)


def check_whole(compiled) -> None:
    """Raise an `AutodiffError` if a file that Triton read from its cache was truncated."""
    for form in ("cubin", "hsaco"):
        if form in compiled.asm and not is_whole(compiled.asm[form]):
            raise unusable(f"the {form} of kernel {compiled.metadata.name!r} was cut off")
