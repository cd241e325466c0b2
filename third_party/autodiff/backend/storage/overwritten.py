"""Says which launch overwrote a tensor that a backward reads again.

PyTorch finds that a saved tensor has changed, by its version, but not through which argument it
came, nor who changed it. So each launch notes what it writes, by address.
"""

from __future__ import annotations

import os
import re
import sys
from typing import NamedTuple

import torch

from ..entry_point import PACKAGE
from ..errors import AutodiffError

Tensor = torch.Tensor
_CHANGED = "modified by an inplace operation"
_VERSIONS = re.compile(r"is at version (\d+); expected version (\d+)")
_SHAPE = re.compile(r"Tensor \[[\d, ]*\]")
# Frames of these folders are not the user's.
_FOREIGN = (sys.modules[PACKAGE], torch)
_OURS = tuple(os.path.dirname(module.__file__) + os.sep for module in _FOREIGN)
# Notes of tensors that are gone are not found one by one.
MOST_WRITES = 4096


class Write(NamedTuple):
    """What a launch wrote last at an address: through which argument, where the launch is, if that
    is known, and the version of the tensor after it.
    """

    kernel: str
    argument: str
    place: tuple | None
    version: int

    def __str__(self):
        where = "" if self.place is None else f" at {self.place[0].co_filename}:{self.place[1]}"
        return (
            f"the launch of kernel {self.kernel!r}{where} wrote to its argument {self.argument!r}"
        )


# By address, the fields of a `Write`, those before the version as one: names, since a kernel's code
# goes with the kernel.
writes: dict[int, tuple] = {}
# Whether the frames of a file are the user's.
_is_user: dict[str, bool] = {}


def note(written, leaves) -> None:
    """Note that a launch has written to some of its arguments; `written` has pairs, `(argument,
    (kernel, name, None))`.
    """
    # Every launch comes here: where it is, which takes longest, is for tensors written before.
    place = None
    for j, described in written:
        tensor = leaves[j]
        if isinstance(tensor, Tensor) and not tensor.is_inference():
            if tensor._version > 1:
                place = place or _user_place()
                described = (*described[:2], place)
            note_write(described, tensor)


def note_write(described: tuple, tensor: Tensor) -> None:
    """Note that a launch has written to a tensor: its kernel, argument and place, if known."""
    if len(writes) > MOST_WRITES:
        writes.clear()
    writes[tensor.data_ptr()] = described, tensor._version


def _user_place():
    """Return the code and the line of the user's frame."""
    frame = sys._getframe(2)
    while frame is not None:
        name = frame.f_code.co_filename
        is_user = _is_user.get(name)
        if is_user is None:
            is_user = _is_user[name] = not name.startswith(_OURS)
        if is_user:
            return frame.f_code, frame.f_lineno
        frame = frame.f_back
    return None


def _last(storage, before: int, now: int) -> Write | None:
    """Return the last launch that wrote to some memory after a version."""
    begin = storage.data_ptr()
    inside = range(begin, begin + storage.nbytes())
    noted = [write for address, write in list(writes.items()) if address in inside]
    found = [Write(*described, version) for described, version in noted]
    found = [write for write in found if before < write.version <= now]
    return max(found, key=lambda write: write.version, default=None)


def checked_saved_tensors(ctx) -> tuple[Tensor, ...]:
    """Return what a launch has saved; an error names the argument that was overwritten, and by
    whom.
    """
    try:
        return ctx.saved_tensors
    except RuntimeError as error:
        if _CHANGED not in str(error):
            raise
        raise _explained(ctx, str(error)) from error


def _explained(ctx, message: str) -> AutodiffError:
    execution = ctx.execution
    spec = execution.state.spec
    versions = _VERSIONS.search(message)
    now, expected = map(int, versions.groups()) if versions else (0, 0)
    shape = [int(size) for size in re.findall(r"\d+", (_SHAPE.search(message) or [""])[0])]
    # The first one that PyTorch has found.
    names, changed = [], None
    saved = getattr(ctx, "_raw_saved_tensors", None) or ()
    for n, i in enumerate(execution.kept):
        held = getattr(saved[n], "data", None) if n < len(saved) else None
        sizes = execution.facts.tensors[i].shape if held is None else held.shape
        if [*sizes] != shape or (held is not None and held._version != now):
            continue
        names.append(spec.names[i])
        if held is not None:
            changed = held
            break
    what = " or ".join(map(repr, names)) or "that it reads"
    write = None if changed is None else _last(changed.untyped_storage(), expected, now)
    by = write or "an operation of PyTorch, or a launch that is not seen, wrote to its memory"
    return AutodiffError(
        f"argument {what} of kernel {spec.name!r} has been {_CHANGED} since the launch, and the "
        f"backward reads it again: {by}. Give each launch a tensor of its own to write to, made "
        "where it is launched (torch.empty_like in the loop, not before it), or pass a clone() to "
        f"the launch that has to keep it. PyTorch: {message.split('. Hint')[0]}"
    )
