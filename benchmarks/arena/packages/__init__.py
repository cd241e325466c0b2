"""The packages of the arena: a plug-in for each, or several where one file would be too long.

A plug-in is a module here, named after the package, with

- `PACKAGES`: what is installed, by distribution, and `MODULES`: the names to import;
- `DIMENSIONS`: for each size, what a `Maker` has as attributes;
- `cases()`: the cases, in the order of the table;
- `EXCLUDED`: wrappers that are no cases, by name, and why.

Other packages join through the environment variable ARENA_PLUGINS, which names modules.
"""

from __future__ import annotations

import importlib
import importlib.util
import os
import pkgutil

# Names of further plug-in modules, separated by commas.
MORE = "ARENA_PLUGINS"


def plugins() -> dict:
    """All plug-ins, by name: those here, and those that the environment names."""
    names = sorted(module.name for module in pkgutil.iter_modules(__path__))
    found = {name: importlib.import_module(f".{name}", __name__) for name in names}
    more = filter(None, os.environ.get(MORE, "").split(","))
    return {**found, **{name: importlib.import_module(name) for name in more}}


def installed(plugin) -> bool:
    """Whether a plug-in's package is installed."""
    return all(importlib.util.find_spec(module) for module in plugin.MODULES)
