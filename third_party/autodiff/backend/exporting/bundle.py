"""Functions as text, with everything that they need: other functions, constants, imports.

Names in a function are looked up where Python would. Installed modules are imported. Everything
else is written out: functions and values of the user's module, and captured variables.
"""

from __future__ import annotations

import ast
import importlib.util
import inspect
import site
import sys
import sysconfig
import textwrap
import types
from pathlib import Path

import torch
import triton.language as tl
from triton.runtime.jit import JITFunction

from ..entry_point import PACKAGE
from ..errors import AutodiffError
from ..kernels.order import Outermost
from ..support.places import place_of

# What this package needs is there, also where it was not installed but put on the path.
_NEEDED = ("torch", "triton")
_LITERALS = (int, float, complex, bool, str, bytes, type(None), type(Ellipsis))


def _installed_at() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    found = [paths[name] for name in ("stdlib", "platstdlib", "purelib", "platlib")]
    found += [site.getusersitepackages(), *site.getsitepackages()]
    return tuple(Path(path).resolve() for path in found)


def is_installed(module: str) -> bool:
    """Return whether a module comes with Python or a package; if not, it is the user's file."""
    root = module.partition(".")[0]
    if root in (*_NEEDED, *sys.builtin_module_names) or root in sys.stdlib_module_names:
        return True
    try:
        spec = importlib.util.find_spec(root)
    except (ImportError, ValueError):
        return False
    places = [spec.origin, *(spec.submodule_search_locations or ())] if spec else []
    files = [Path(place).resolve() for place in places if place]
    return any(file.is_relative_to(path) for file in files for path in _installed_at())


def names_of(tree: ast.AST) -> list[str]:
    """Return the names that a piece of Python reads, in order, each once."""
    found = (n.id for n in ast.walk(tree) if isinstance(n, ast.Name) and type(n.ctx) is ast.Load)
    return list(dict.fromkeys(found))


def text_of(function) -> str:
    """Return the source of a function or class, dedented.

    Raises an `AutodiffError` if it is not available, or is no definition (a lambda, say).
    """
    try:
        text = textwrap.dedent(inspect.getsource(function))
        definition = ast.parse(text).body[0]
    except (OSError, TypeError, SyntaxError) as error:
        raise AutodiffError(
            f"the source of {function!r} is not to be had ({error}): write it to a file, with def"
        ) from error
    if not isinstance(definition, (ast.FunctionDef, ast.ClassDef)):
        raise AutodiffError(
            f"{function!r} ({place_of(function)}) is no definition of its own: write it with def"
        )
    return text.rstrip()


def renamed(text: str, names: dict[str, str]) -> str:
    """Return Python text in which variables and definitions are renamed, but not attributes."""
    lines = text.split("\n")
    places = []
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Name) and node.id in names:
            places.append((node.lineno, node.col_offset, node.id))
        elif isinstance(node, (ast.FunctionDef, ast.ClassDef)) and node.name in names:
            line = lines[node.lineno - 1].encode()
            places.append((node.lineno, line.index(node.name.encode()), node.name))
    for number, column, name in sorted(set(places), reverse=True):
        line = lines[number - 1].encode()
        end = column + len(name.encode())
        lines[number - 1] = (line[:column] + names[name].encode() + line[end:]).decode()
    return "\n".join(lines)


def private(name: str) -> str:
    """Return the name of a function of this package in a module: one that users do not take."""
    return f"_{name.lstrip('_')}"


class Bundle:
    """Collects definitions for one module; what they need comes before them."""

    def __init__(self, taken=()):
        self._taken = set(taken)
        self._values: dict[str, object] = {}
        self._imports: dict[str, str] = {}
        self.constants: list[str] = []
        self.definitions: list[str] = []

    @property
    def imports(self) -> list[str]:
        """The import statements."""
        return list(self._imports.values())

    def add(self, function, text: str | None = None, known=()) -> str:
        """Add a function (or a class), and all that it needs; returns its name in the module.

        `text` replaces its source. `known` are names that the module defines anyway. Raises an
        `AutodiffError` for what cannot be written out.
        """
        source = _below(function)
        is_ours = _is_ours(source)
        name = private(source.__name__) if is_ours else source.__name__
        if self._is_there(name, source):
            return name
        if text is None:
            text = _text_of_ours(function) if is_ours else text_of(source)
        own = {source.__name__, *known, *getattr(_code_of(source), "co_varnames", ())}
        scope = _scope_of(source)
        names = {source.__name__: name}
        for needed in names_of(ast.parse(text)):
            if needed in scope and needed not in own:
                names[needed] = self._need(needed, scope[needed], name, is_ours)
        self.definitions.append(renamed(text, names) if is_ours else text)
        return name

    def need(self, module: types.ModuleType, name: str | None = None) -> None:
        """Import an installed module."""
        self._import(name or module.__name__, module.__name__, None, "the module")

    def _is_there(self, name: str, value) -> bool:
        if name not in self._values and name not in self._taken:
            self._values[name] = value
            return False
        known = self._values.get(name)
        if known is not value and (type(known) is not type(value) or known != value):
            raise AutodiffError(f"two things are called {name!r} in one module: rename one")
        return True

    def _need(self, name: str, value, by: str, is_ours: bool) -> str:
        """Define a name in the module with the meaning that it has in a function.

        Returns its name in the module.
        """
        if isinstance(value, types.ModuleType):
            self._import(name, value.__name__, None, by)
            return name
        source = _below(value)
        if isinstance(source, (types.FunctionType, type)):
            if not _is_ours(source) and is_installed(source.__module__):
                self._import(name, source.__module__, source.__qualname__, by)
                return name
            if source.__name__ != name:
                raise AutodiffError(
                    f"{by!r} calls {source.__name__!r} by another name, {name!r}: use its own"
                )
            return self.add(value)
        if isinstance(value, Outermost):
            raise AutodiffError(
                f"{by!r} uses {name!r}, an operation that this package makes: export that, too, "
                "and call what is exported"
            )
        name = private(name) if is_ours else name
        self._constant(name, value, by)
        return name

    def _import(self, name: str, module: str, attribute: str | None, by: str) -> None:
        if not is_installed(module):
            raise AutodiffError(
                f"{by!r} uses the module {module!r}, which is not installed: import from it what "
                f"{by!r} needs by name, so that it can be written out"
            )
        if attribute is None:
            line = f"import {module}" if name == module else f"import {module} as {name}"
            parent, _, last = module.rpartition(".")
            if parent and name == last:
                line = f"from {parent} import {last}"
        else:
            line = f"from {module} import {attribute}"
            line += "" if attribute == name else f" as {name}"
        if not self._is_there(name, line):
            self._imports[name] = line

    def _constant(self, name: str, value, by: str) -> None:
        text = literal(value)
        if text is None:
            raise AutodiffError(
                f"{by!r} uses {name!r}, a {type(value).__name__}, which cannot be written as "
                "Python: pass it as an argument"
            )
        if self._is_there(name, value):
            return
        self.constants.append(f"{name} = {text}")
        if "torch." in text:
            self.need(torch)
        if "tl." in text:
            self.need(tl, "tl")


def _below(value):
    """Return the function under a kernel, or under a cache decorator."""
    return inspect.unwrap(value.fn if isinstance(value, JITFunction) else value)


def _is_ours(source) -> bool:
    return getattr(source, "__module__", "").partition(".")[0] == PACKAGE


def _code_of(source):
    return getattr(source, "__code__", None)


def _text_of_ours(function) -> str:
    """Return the source of a function of this package, whose kernels have other decorators."""
    if isinstance(function, JITFunction):
        return f"@triton.jit\n{function.src.rstrip()}"
    return text_of(function)


def literal(value) -> str | None:
    """Return a value as a Python literal; None if it has none."""
    if isinstance(value, float) and value != value or value in (float("inf"), float("-inf")):
        return f'float("{value}")'
    if isinstance(value, (torch.dtype, tl.dtype)):
        return str(value) if isinstance(value, torch.dtype) else f"tl.{_language_name(value)}"
    if isinstance(value, torch.device):
        return f'torch.device("{value}")'
    if isinstance(value, tl.constexpr):
        inner = literal(value.value)
        return None if inner is None else f"tl.constexpr({inner})"
    if isinstance(value, (tuple, list)) and type(value) in (tuple, list):
        parts = [literal(part) for part in value]
        if None in parts:
            return None
        comma = "," if len(parts) == 1 and isinstance(value, tuple) else ""
        inner = ", ".join(parts) + comma
        return f"({inner})" if isinstance(value, tuple) else f"[{inner}]"
    if isinstance(value, dict):
        pairs = [(literal(key), literal(item)) for key, item in value.items()]
        if any(None in pair for pair in pairs):
            return None
        return "{" + ", ".join(f"{key}: {item}" for key, item in pairs) + "}"
    return _quoted(value) if type(value) in _LITERALS else None


def _quoted(value) -> str:
    text = repr(value)
    if isinstance(value, str) and '"' not in value:
        return '"' + text[1:-1].replace('"', '\\"') + '"'
    return text


def _language_name(dtype) -> str:
    """Return the name in `triton.language` of an element type."""
    for name in dir(tl):
        if getattr(tl, name) is dtype:
            return name
    return str(dtype)


def _scope_of(function) -> dict[str, object]:
    """Return the values of the names that a function uses and does not define."""
    if isinstance(function, type):
        return vars(sys.modules[function.__module__])
    cells = zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
    enclosed = {}
    for name, cell in cells:
        try:
            enclosed[name] = cell.cell_contents
        except ValueError:
            continue
    return {**function.__globals__, **enclosed}
