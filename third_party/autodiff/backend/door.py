"""The door: how Triton finds this package, and the package's second name.

Triton imports `compiler` and `driver` of this package with itself, since an entry point (in
pyproject.toml) says so. An exception there would be one of `import triton`. So it is kept in
`faults`, a backend for no device takes the module's place, and who uses this package gets it.

The second name is `triton.backends.autodiff`, where backends are looked for. Both names give the
same modules. The files are not in Triton's folder: another Triton may hide that, as one in a
virtual environment hides the system's.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

PACKAGE = __name__.rpartition(".")[0]
ALIAS = "triton.backends.autodiff"
# What Triton wants of a module: a class with this base, and what it asks that class first.
_WANTED = {
    f"{PACKAGE}.compiler": ("triton.backends.compiler", "BaseBackend", "supports_target"),
    f"{PACKAGE}.driver": ("triton.backends.driver", "DriverBase", "is_active"),
}

# Why Triton has a backend for no device in place of ours, by module.
faults: dict[str, Exception] = {}


class _SecondName:
    """Loads what is the module of the first name already."""

    def __init__(self, name: str):
        self._first = name

    def create_module(self, spec):
        """Leave it to Python."""

    def exec_module(self, module):
        """Put the module of the first name in place of `module`, which nobody has seen yet."""
        sys.modules[module.__name__] = importlib.import_module(self._first)

    def get_code(self, name):
        """Return the code that `python -m` runs."""
        return importlib.util.find_spec(self._first).loader.get_code(self._first)


class _Guarded(SourceFileLoader):
    """Loads one of the modules that Triton imports with itself; does not fail."""

    def exec_module(self, module):
        """Run the module, or make it one with a backend for no device."""
        try:
            super().exec_module(module)
            if len(_backends(module)) != 1:
                import triton

                raise ImportError(
                    f"Triton {getattr(triton, '__version__', 'of this version')} wants of a "
                    f"backend what {module.__name__} does not have: install a version of "
                    "triton-autodiff that supports it"
                )
        except Exception as error:
            faults[module.__name__] = error
            for name in [name for name in vars(module) if not name.startswith("__")]:
                delattr(module, name)
            module.Absent = _absent(module.__name__)


def _base(module: str) -> type:
    home, name, _ = _WANTED[module]
    return getattr(importlib.import_module(home), name)


def _backends(module) -> list[type]:
    """Return the classes of a module that Triton would take."""
    base = _base(module.__name__)
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [c for c in classes if issubclass(c, base) and not inspect.isabstract(c)]


def _absent(module: str) -> type:
    """Return a backend's compiler or driver that is for no device."""
    base, question = _base(module), _WANTED[module][2]
    members = dict.fromkeys(base.__abstractmethods__)
    members[question] = staticmethod(lambda *_: False)
    return type("Absent", (base,), members)


class _Finder:
    """Finds the modules of this package under their second names, and the guarded ones."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return how a module is loaded, None if it is none of those."""
        if name in _WANTED:
            file = f"{path[0]}/{name.rpartition('.')[2]}.py"
            return importlib.util.spec_from_file_location(name, file, loader=_Guarded(name, file))
        if name != ALIAS and not name.startswith(f"{ALIAS}."):
            return None
        first = PACKAGE + name[len(ALIAS) :]
        spec = importlib.util.find_spec(first)
        if spec is None:
            return None
        is_package = spec.submodule_search_locations is not None
        return ModuleSpec(name, _SecondName(first), origin=spec.origin, is_package=is_package)


def open_door() -> None:
    """Make this package a backend of Triton, and give it its second name."""
    # Before all others: an older version may have left a folder of that name.
    sys.meta_path.insert(0, _Finder)
    try:
        # Triton comes first: what it imports of this package must not be half done.
        home = importlib.import_module("triton.backends")
    except Exception:
        return  # Whatever needs Triton says so again.
    importlib.import_module(ALIAS)
    # Triton looks for entry points only if it may, and has not come to the end if it did so.
    known = getattr(home, "backends", None)
    if known is not None and "autodiff" not in known:
        parts = (importlib.import_module(module) for module in _WANTED)
        known["autodiff"] = home.Backend(*(_backends(part)[0] for part in parts))


def require_open() -> None:
    """Raise what Triton was spared."""
    for module, fault in faults.items():
        raise ImportError(
            f"{module} cannot be used ({type(fault).__name__}: {fault}); "
            f"`python -m {PACKAGE} doctor` says more"
        ) from fault
