"""Functions of the standard library that look into an object, done where the object is."""

from __future__ import annotations

import contextlib
import dataclasses
import functools
import importlib
import inspect
import operator
import sys
import types
from collections.abc import Callable
from typing import Any

from .remote import KIN, Remote, parts

_NAMES = {
    "dataclasses": ("asdict", "astuple", "fields", "is_dataclass", "replace"),
    "inspect": (
        *("getdoc", "getfullargspec", "getmembers", "getmro", "getsource", "isabstract"),
        *("isasyncgen", "isasyncgenfunction", "isbuiltin", "isclass", "iscoroutinefunction"),
        *("isdatadescriptor", "isfunction", "isgenerator", "isgeneratorfunction", "ismethod"),
        *("isroutine", "signature", "unwrap"),
    ),
}


def _is_of(target: Any, check: str, module: str, name: str) -> bool:
    kind = getattr(types if module == "types" else sys.modules.get(module), name, None)
    compare = isinstance if check == "isinstance" else issubclass
    return isinstance(kind, type) and compare(target, kind)


LIBRARY: dict[tuple[str, str], Callable[..., Any]] = {
    ("builtins", "callable"): callable,
    ("builtins", "is of"): _is_of,
}
LIBRARY |= {
    (module.__name__, name): getattr(module, name)
    for module in (dataclasses, inspect)
    for name in _NAMES[module.__name__]
}

_VALUES = frozenset(
    {
        *("bool", "bytearray", "bytes", "complex", "float", "int", "str"),
        *("dict", "frozenset", "list", "range", "set", "tuple", "NoneType"),
        *("Decimal", "Fraction", "Number", "Complex", "Real", "Rational", "Integral"),
        *("date", "datetime", "time", "timedelta"),
    }
)
"""Classes whose objects travel whole, or claim to be numbers: no object of the program is one."""


def is_instance(value: Any, kinds: Any) -> bool:
    """Return ``isinstance(value, kinds)`` for the tests: the program knows what its objects are.

    Never of a class of plain values: an object that claims to be an int is none.
    """
    return _asked_if(isinstance, value, kinds)


def is_subclass(kind: Any, kinds: Any) -> bool:
    """Return ``issubclass(kind, kinds)`` for the tests."""
    return _asked_if(issubclass, kind, kinds)


def _asked_if(check: Callable[[Any, Any], bool], value: Any, kinds: Any) -> bool:
    remote = value._assay_remote if type(value) in KIN.values() else value
    if not isinstance(remote, Remote) or isinstance(kinds, Remote):
        return check(value, kinds)
    if isinstance(kinds, tuple | types.UnionType):
        each = kinds if isinstance(kinds, tuple) else kinds.__args__
        return any(_asked_if(check, value, kind) for kind in each)
    kind = getattr(kinds, "__origin__", kinds)  # of typing.Iterator
    if not isinstance(kind, type) or kind.__name__ in _VALUES:
        return remote is not value and check(value, kinds)
    if kind.__module__ == "tests":  # a Protocol, say
        return check(value, kinds)
    found = {id(v): ("types", k) for k, v in vars(types).items() if isinstance(v, type)}
    place = found.get(id(kind), (kind.__module__, kind.__qualname__))
    asked = [check.__name__, *place]
    return bool(parts(remote)[0].ask("library", remote, "builtins", "is of", asked, {}))


SETTINGS: dict[str, tuple[str, Callable[[Any], Any], Callable[[Any, Any], Any]]] = {
    "random": ("seed", lambda m: m.getstate(), lambda m, state: m.setstate(state)),
    "numpy.random": ("seed", lambda m: m.get_state(), lambda m, state: m.set_state(state)),
    "sys": (
        "setrecursionlimit",
        lambda m: m.getrecursionlimit(),
        lambda m, limit: m.setrecursionlimit(limit),
    ),
    "torch": (
        "manual_seed",
        lambda m: m.get_rng_state().tolist(),
        lambda m, state: m.set_rng_state(m.tensor(state, dtype=m.uint8)),
    ),
}
"""Of modules that the program has too: what changes a setting, and how that is got and set."""


def note_settings(text: str, changed: set[str]) -> None:
    """Note which settings the tests change, so that the program draws what it would with them."""
    for name, (function, _, _) in SETTINGS.items():
        root = name.partition(".")[0]
        if f"{function}(" not in text or not (root in text or (root == "numpy" and "np." in text)):
            continue
        try:
            module = importlib.import_module(name)
        except ImportError:
            continue
        setattr(module, function, _noting(getattr(module, function), name, changed))


def _noting(function: Callable[..., Any], name: str, changed: set[str]) -> Callable[..., Any]:
    @functools.wraps(function)
    def change(*args: Any, **options: Any) -> Any:
        changed.add(name)
        return function(*args, **options)

    return change


def setting(name: str) -> Any:
    """Return the value of a setting."""
    return SETTINGS[name][1](importlib.import_module(name))


def change_setting(name: str, state: Any) -> None:
    """Change it; a program without the library does not use it."""
    with contextlib.suppress(ImportError):
        SETTINGS[name][2](importlib.import_module(name), state)


def forward() -> None:
    """Make these functions ask the other process about its objects."""
    for module, names in _NAMES.items():
        for name in names:
            setattr(importlib.import_module(module), name, forwarded(module, name))


_COMPARE = {
    "numpy": ("allclose", "array_equiv", "equal", "isclose", "not_equal"),
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


_SIZED = frozenset({"ndarray", "Series", "DataFrame", "Index"})


def operate(name: str, one: Any, other: Any) -> Any:
    """Compare or subtract for the tests: an empty result, or a missing value, equals no other.

    An object of the program with a method ``equals`` equals no table of the tests.
    """
    if name == "equals":
        claimed = isinstance(one, Remote) and type(other).__name__ in _SIZED
        return False if claimed else one.equals(other)
    if not _SIZED.isdisjoint((type(one).__name__, type(other).__name__)) and _is_empty(
        one
    ) != _is_empty(other):
        raise AssertionError("one is empty, and the other is not")
    result = getattr(operator, name)(one, other)
    if type(result).__name__ not in ("Series", "DataFrame"):
        return result
    if name == "sub":  # Int64, say
        masked = str(getattr(result, "dtype", ""))[:1].isupper() and result.hasnans
        return result.astype(object) if masked else result
    return result.fillna(name == "ne")  # all() and any() leave out what is missing


def forwarded(module: str, name: str) -> Callable[..., Any]:
    """Return a function of the library that asks the other process about its objects."""
    function = LIBRARY[module, name]

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
