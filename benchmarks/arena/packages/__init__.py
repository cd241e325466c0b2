"""The packages of the arena, a plug-in each.

A plug-in is a module here with

- `PACKAGES`: what is installed, by distribution, and `MODULES`: the names to import;
- `DIMENSIONS`: for each size, what a `Maker` has as attributes;
- `cases()`: the cases, in the order of the table;
- `EXCLUDED`: wrappers that are no cases, by name, and why.
"""

from __future__ import annotations

import importlib
import importlib.util
import pkgutil


def plugins() -> dict:
    """All plug-ins, by name."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    return {name: importlib.import_module(f".{name}", __name__) for name in names}


def installed(plugin) -> bool:
    """Whether a plug-in's package is there."""
    return all(importlib.util.find_spec(module) for module in plugin.MODULES)
