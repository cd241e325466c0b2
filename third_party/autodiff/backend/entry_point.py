"""How Triton finds this package, and the package's second name.

Triton imports our modules `compiler` and `driver` when it is imported, since an entry point (in
pyproject.toml) names them. An exception there would break `import triton`. So it is caught and kept
in `faults`, and a backend without devices replaces the module. The exception is raised when
somebody uses this package.

The second name is `triton.backends.autodiff`, where Triton's backends usually are. Both names give
the same modules. Our files are not in Triton's folder: another Triton may hide that, such as one in
a virtual environment hides the system's.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader

PACKAGE = __name__.rpartition(".")[0]
ALIAS = "triton.backends.autodiff"
# What Triton expects in a module: a class with this base, and the method it calls first.
_WANTED = {
    f"{PACKAGE}.compiler": ("triton.backends.compiler", "BaseBackend", "supports_target"),
    f"{PACKAGE}.driver": ("triton.backends.driver", "DriverBase", "is_active"),
}

# The exception because of which a module was replaced by a backend without devices.
faults: dict[str, Exception] = {}


class _SecondName:
    """Loads a module under its second name: it is the module of the first name."""

    def __init__(self, name: str):
        self._first = name

    def create_module(self, spec):
        """Let Python create the module."""

    def exec_module(self, module):
        """Replace `module`, which nobody has used yet, by the module of the first name."""
        sys.modules[module.__name__] = importlib.import_module(self._first)

    def get_code(self, name):
        """Return the code for `python -m`."""
        return importlib.util.find_spec(self._first).loader.get_code(self._first)


class _Guarded(SourceFileLoader):
    """Loads one of the modules that Triton imports; never fails."""

    def exec_module(self, module):
        """Run the module, or if it fails, put in a backend without devices."""
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
    """Return the classes of a module that Triton would use."""
    base = _base(module.__name__)
    classes = [value for value in vars(module).values() if isinstance(value, type)]
    return [c for c in classes if issubclass(c, base) and not inspect.isabstract(c)]


def _absent(module: str) -> type:
    """Return a compiler or driver class of a backend without devices."""
    base, question = _base(module), _WANTED[module][2]
    members = dict.fromkeys(base.__abstractmethods__)
    members[question] = staticmethod(lambda *_: False)
    return type("Absent", (base,), members)


class _Finder:
    """Finds this package's modules under their second names, and the guarded ones."""

    @staticmethod
    def find_spec(name, path=None, target=None):
        """Return how to load a module, None for modules of others."""
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


def register() -> None:
    """Make this package a backend of Triton, and give it its second name."""
    # In front of other finders: an older version may have left a folder of that name.
    sys.meta_path.insert(0, _Finder)
    try:
        # Triton has to be imported first, since it imports modules of this package.
        home = importlib.import_module("triton.backends")
    except Exception:
        return  # Whatever needs Triton says so again.
    importlib.import_module(ALIAS)
    # Triton may not look for entry points; if it does, it may not have got to this one yet.
    known = getattr(home, "backends", None)
    if known is not None and "autodiff" not in known:
        parts = (importlib.import_module(module) for module in _WANTED)
        known["autodiff"] = home.Backend(*(_backends(part)[0] for part in parts))


def require_sound() -> None:
    """Raise the exception that was kept from Triton."""
    for module, fault in faults.items():
        raise ImportError(
            f"{module} cannot be used ({type(fault).__name__}: {fault}); "
            f"`python -m {PACKAGE} doctor` says more"
        ) from fault
