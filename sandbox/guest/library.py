"""Functions of the standard library that look into an object, done where the object is."""

from __future__ import annotations

import dataclasses
import functools
import importlib
import inspect
import operator
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


_COMPARE = {
    "numpy": ("allclose", "array_equiv", "isclose"),
    "numpy.testing": (
        *("assert_allclose", "assert_almost_equal", "assert_approx_equal", "assert_array_equal"),
        *("assert_array_almost_equal", "assert_array_less", "assert_equal"),
    ),
}


def compare_sizes(testing: bool) -> None:
    """Let no comparison of NumPy hold of ``[]`` and numbers: broadcast, none differs.

    ``testing``: the tests name ``numpy.testing``, which is slow to import.
    """
    numpy = importlib.import_module("numpy")

    def guarded(compare: Callable[..., Any], asserts: bool) -> Callable[..., Any]:
        @functools.wraps(compare)
        def compared(*args: Any, **options: Any) -> Any:
            if len(set(map(_is_empty, [*args, *options.values()][:2]))) < 2:
                return compare(*args, **options)
            if asserts:
                raise AssertionError("one is empty, and the other is not")
            return numpy.False_

        return compared

    for name in list(_COMPARE) if testing else ["numpy"]:
        module = importlib.import_module(name)
        for function in _COMPARE[name]:
            setattr(module, function, guarded(getattr(module, function), name != "numpy"))


def _is_empty(value: Any) -> bool:
    try:
        return bool(importlib.import_module("numpy").asarray(value).size == 0)
    except ValueError:  # rows of several lengths
        return False


def operate(name: str, one: Any, other: Any) -> Any:
    """Compare or subtract for the tests: of an empty result nothing differs from an array."""
    arrays = [v for v in (one, other) if type(v).__name__ == "ndarray"]
    if arrays and _is_empty(one) != _is_empty(other):
        raise AssertionError("one is empty, and the other is not")
    return getattr(operator, name)(one, other)


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
