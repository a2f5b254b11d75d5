"""Functions of the standard library that look into an object, done where the object is."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
from collections.abc import Callable
from typing import Any

from .remote import KIN, Remote, parts

_NAMES = {
    "dataclasses": ("asdict", "astuple", "fields", "is_dataclass", "replace"),
    "inspect": (
        *("getdoc", "isabstract", "isasyncgenfunction", "isclass", "iscoroutinefunction"),
        *("isfunction", "isgenerator", "isgeneratorfunction", "signature"),
    ),
}
LIBRARY: dict[tuple[str, str], Callable[..., Any]] = {
    (module.__name__, name): getattr(module, name)
    for module in (dataclasses, inspect)
    for name in _NAMES[module.__name__]
}


def forward() -> None:
    """Make these functions ask the other process about its objects."""
    for (module, name), function in LIBRARY.items():
        setattr(importlib.import_module(module), name, _forwarded(module, name, function))


def compare_sizes() -> None:
    """Make ``numpy.allclose`` false of ``[]`` and numbers: broadcast, none differs."""
    numpy: Any = importlib.import_module("numpy")
    allclose = numpy.allclose

    def both(a: Any, b: Any, *args: Any, **options: Any) -> bool:
        a, b = numpy.asarray(a), numpy.asarray(b)
        return bool(a.size) == bool(b.size) and bool(allclose(a, b, *args, **options))

    numpy.allclose = both


def _forwarded(module: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def ask(*args: Any, **options: Any) -> Any:
        if not args or not isinstance(args[0], Remote):
            return function(*args, **options)
        target, *rest = args
        return parts(target)[0].ask("library", target, module, name, rest, options)

    return ask


def class_of(value: Any, declared: bool = False) -> Any:
    """Return a value's class for the tests: the program's, if it is an object of the program.

    Args:
        value: any value.
        declared: the tests wrote ``value.__class__`` and not ``type(value)``.
    """
    remote = value._assay_remote if type(value) in KIN.values() else value
    found = parts(remote)[0].ask("class", remote) if isinstance(remote, Remote) else None
    if isinstance(found, Remote):
        return found
    return value.__class__ if declared else type(value)
