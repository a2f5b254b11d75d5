"""Puzzles made on demand, each with levels; the rules are in the verifiers' file of the same name.

Every environment in a file here is registered as ``assay/<class>-v1``.
"""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

from ..text_env import TextEnv


def puzzle_classes() -> list[type[TextEnv]]:
    """Return the environments of this folder, by name."""
    modules = [import_module(f"{__name__}.{module.name}") for module in iter_modules(__path__)]
    found = [
        kind
        for module in modules
        for kind in vars(module).values()
        if isinstance(kind, type)
        and issubclass(kind, TextEnv)
        and kind.__module__ == module.__name__
    ]
    return sorted(found, key=lambda kind: kind.__name__)
