"""Whether a compiled kernel is whole: a GPU's driver trusts what its file says of itself."""

from __future__ import annotations

import struct

from .cache import unusable

# Where a 64-bit ELF file says how it goes on: of its sections, the offset, size and number.
_HEADER, _OFFSET, _COUNTS = 64, 0x28, 0x3A
# Of a section's header: its kind, and the offset and size of what it is about.
_KIND, _PLACE = 4, 0x18
_NOT_IN_FILE = 8


def is_whole(data: bytes) -> bool:
    """Return whether an ELF file holds all that its headers name; true of other formats."""
    if data[:5] != b"\x7fELF\x02":
        return True
    if len(data) < _HEADER:
        return False
    (table,) = struct.unpack_from("<Q", data, _OFFSET)
    size, count = struct.unpack_from("<HH", data, _COUNTS)
    if table + size * count > len(data):
        return False
    for section in range(table, table + size * count, size):
        (kind,) = struct.unpack_from("<I", data, section + _KIND)
        start, length = struct.unpack_from("<QQ", data, section + _PLACE)
        if kind != _NOT_IN_FILE and start + length > len(data):
            return False
    return True


def check_whole(compiled) -> None:
    """Raise an `AutodiffError` if what Triton has read from its cache was cut off."""
    for form in ("cubin", "hsaco"):
        if not is_whole(compiled.asm.get(form, b"")):
            raise unusable(f"the {form} of kernel {compiled.metadata.name!r} was cut off")
