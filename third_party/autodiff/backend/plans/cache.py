"""Plans by kernel text and request: in memory, and in Triton's cache directory."""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import threading
import traceback
from dataclasses import replace
from typing import NamedTuple

import triton
from triton import knobs
from triton.compiler import CompiledKernel
from triton.runtime.cache import FileCacheManager, get_cache_manager, get_dump_manager

from ..errors import AutodiffError, NoTangents, PlanError
from ..library import native
from ..support.waiting import work
from . import recording
from .plan import VERSION, Plan, load
from .remarks import refusal

_plans: dict[tuple[str, str], Plan] = {}
_replacing = threading.Lock()
_CACHE_CODE = {
    function.__code__
    for function in (
        CompiledKernel.__init__,
        FileCacheManager.__init__,
        FileCacheManager.get_group,
        FileCacheManager.put,
    )
}

# How the compiler says that an operation has no tangent. Other errors are faults.
_NO_TANGENTS = re.compile(
    r"no forward-mode rule|no derivative rule|derivative lost|has a derivative of its own"
    r"|is differentiated again here"
    r"|its gradient has nowhere to go|derivatives do not go from program to program"
)
_UNREADABLE = (
    "This TTIR was printed by Triton {}. If it is newer than the releases that this package "
    "supports, update the package; if not, the text may be a damaged file of Triton's cache: "
    "delete {}"
)


def dumps_passes() -> bool:
    """Return whether IR is dumped between passes."""
    return os.environ.get("MLIR_ENABLE_DUMP", "0") not in ("", "0")


def reads_disk() -> bool:
    """Return whether cache files are to be used."""
    # With a cached plan, no pass would run that could be dumped.
    return not (knobs.compilation.always_compile or dumps_passes())


def unusable(reason) -> AutodiffError:
    """Return the error for a file that cannot be read or written, or is damaged."""
    return AutodiffError(
        f"Triton's cache in {knobs.cache.dir} cannot be used ({reason}): "
        "delete the folder if it is damaged, make room, or set TRITON_CACHE_DIR to one that can be "
        "written to"
    )


def is_of_cache(error) -> bool:
    """Return whether an error was raised where Triton reads its cache or writes to it."""
    return comes_from(error, _CACHE_CODE)


def comes_from(error, codes) -> bool:
    """Return whether an error passed through one of some code objects."""
    return any(f.f_code in codes for f, _ in traceback.walk_tb(error.__traceback__))


def manager_for(key: str):
    """Return the manager of the cache folder for a key."""
    try:
        return get_cache_manager(key)
    except OSError as error:
        raise unusable(repr(error)) from error


@contextlib.contextmanager
def replacing_entries():
    """Make Triton compile a kernel even if it is in the cache, and overwrite the entry."""
    with _replacing:
        # Within the lock: another thread's own class must not outlive it.
        own = knobs.cache.manager_class
        chosen = vars(knobs.cache).get("manager_class")

        class Blank(own or FileCacheManager):
            def get_group(self, filename):
                return None

        knobs.cache.manager_class = Blank
        try:
            yield
        finally:
            del knobs.cache.manager_class
            if chosen is not None:
                knobs.cache.manager_class = chosen


def read_bytes(manager, filename: str) -> bytes | None:
    """Return what is in a cache file, None if it is not there, or not to be used."""
    path = manager.get_file(filename) if reads_disk() else None
    if path is None:
        return None
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError:
        return None


def read_text(manager, filename: str) -> str | None:
    """Return the text of a cache file, None if it is not there, not text, or not to be used."""
    data = read_bytes(manager, filename)
    try:
        return None if data is None else data.decode()
    except UnicodeDecodeError:
        return None


def _read(manager, filename: str, read_answer):
    """Return what is in a cache file, None if there is none or it is damaged."""
    text = read_text(manager, filename)
    try:
        return None if text is None else read_answer(text)
    except PlanError:
        return None


class Pushed(NamedTuple):
    """A kernel that computes tangents beside its values: its name and TTIR.

    Its last arguments are the tangents of the arguments `tangents`, in their order.
    `differentiated` is the same with what users say of derivatives. To the arguments `later` go
    atomic maxima, minima and exchanges: another kernel computes the tangents of what they leave.
    `left` are arguments that it does not store to, since they hold what it would store. `options`
    are a kernel's, as in a plan.
    """

    name: str
    ttir: str
    tangents: tuple[int, ...]
    differentiated: str
    later: tuple[int, ...]
    left: tuple[int, ...]
    options: tuple[tuple[str, int], ...]


def _pushed(answer: str) -> Pushed:
    """Read the compiler's answer to a request for tangents."""
    try:
        found = json.loads(answer)
        name, ttir = found["name"], found["ttir"]
        tangents, differentiated = tuple(found["tangents"]), found.get("differentiated", ttir)
        later, left = (tuple(found.get(key, ())) for key in ("later", "left"))
        options = tuple(dict(found.get("options") or {}).items())
        return Pushed(name, ttir, tangents, differentiated, later, left, options)
    except (ValueError, KeyError, TypeError) as error:
        raise PlanError(f"no kernel with tangents: {error!r}") from error


def plan_for(ttir: str, request: dict, name: str) -> Plan:
    """Return the plan for `request` and a kernel, from the cache or the compiler."""
    recording.note(ttir, request, name)
    text = json.dumps(request, sort_keys=True)
    plan = _plans.get((ttir, text))
    if plan is not None:
        return plan
    try:
        plan, answer, key = _answered(ttir, text, name, "plan", load)
    except AutodiffError as error:
        if not request.get("deterministic"):
            raise
        raise type(error)(str(error).rstrip() + refusal((ttir, text, name))) from None
    if answer is not None and knobs.compilation.dump_ir:
        _dump(plan, answer, key)
    plan = _plans[ttir, text] = replace(plan, asked=(ttir, text, name))
    return plan


def kernel_with_tangents(ttir: str, request: dict, name: str) -> Pushed:
    """Return a kernel that computes tangents, too, from the cache or the compiler.

    `request` says of which arguments: `tangents` (docs/plan.md). Raises `NoTangents` if what the
    kernel does has none.
    """
    try:
        return _answered(ttir, json.dumps(request, sort_keys=True), name, "jvp", _pushed)[0]
    except AutodiffError as error:
        if type(error) is AutodiffError and _NO_TANGENTS.search(str(error)):
            raise NoTangents(str(error)) from None
        raise


def _answered(ttir: str, text: str, name: str, kind: str, read_answer):
    """Return what `read_answer` makes of the compiler's answer, the answer if it is new, and its
    key in the cache.
    """
    library = native()
    parts = (str(VERSION), library.version(), text, ttir)
    key = hashlib.sha256("\0".join(parts).encode()).hexdigest()
    manager = manager_for(key)
    filename = f"{name[:150]}.{kind}.json"
    found = _read(manager, filename, read_answer)
    if found is not None:
        return found, None, key
    try:
        with work(f"differentiating kernel {name!r}"):
            answer = library.differentiate(ttir, text, file_name=f"<ttir of {name}>")
    except AutodiffError as error:
        message = f"cannot differentiate kernel {name!r}: {error}"
        # Errors have a location in the user's file, except for text that cannot be parsed.
        if str(error).startswith("<ttir of"):
            message += _UNREADABLE.format(triton.__version__, knobs.cache.dir)
        raise type(error)(message) from None
    found = read_answer(answer)
    put(manager, answer, filename)
    return found, answer, key


def put(manager, data: str | bytes, filename: str) -> str:
    """Write a file of the cache and return its path."""
    try:
        return manager.put(data, filename, binary=isinstance(data, bytes))
    except OSError as error:
        raise unusable(repr(error)) from error


def _dump(plan: Plan, text: str, key: str) -> None:
    manager = get_dump_manager(key)
    manager.put(text, f"{plan.kernel[:150]}.plan.json", binary=False)
    for kernel in plan.kernels:
        manager.put(kernel.ttir, f"{kernel.name[:150]}.ttir", binary=False)


def _place(ttir: str):
    """Return the manager of the folder in which a generated kernel is kept."""
    return manager_for(hashlib.sha256(ttir.encode()).hexdigest())


def _form_name(target) -> str:
    parts = (triton.__version__, native().version(), str(target))
    return hashlib.sha256("\0".join(parts).encode()).hexdigest() + ".accepted.ttir"


def accepted_form(ttir: str, target) -> str | None:
    """Return the form of a generated kernel that Triton accepted before; None if not known."""
    return read_text(_place(ttir), _form_name(target))


def accepted_file(ttir: str, target, form: str) -> str | None:
    """Return the path of the file that holds a generated kernel in this form, if it was noted."""
    manager, filename = _place(ttir), _form_name(target)
    return manager.get_file(filename) if read_text(manager, filename) == form else None


def note_accepted(ttir: str, target, form: str) -> None:
    """Remember in which form Triton accepted a generated kernel."""
    put(_place(ttir), form, _form_name(target))


def write_ir(text: str, name: str, stage: str = "ttir") -> str:
    """Write a generated kernel into Triton's cache directory and return its path.

    `stage` is the stage of Triton's compiler that the text belongs to.
    """
    manager, filename = _place(text), f"{name[:150]}.{stage}"
    # The cache may be full or read-only, and have the file already.
    if read_text(manager, filename) == text:
        return manager.get_file(filename)
    return put(manager, text, filename)
