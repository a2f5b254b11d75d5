"""Values of the standard library that travel whole, beside those of :mod:`wire`.

They arrive as instances of the standard class, made here of plain values, so their comparisons
are the standard library's.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import UTC, timezone
from typing import Any

from .arrays import decode_library, encode_library
from .wire import read_zone

_Convert = Callable[[Any], Any]

_BY_ITEMS = {"Counter", "OrderedDict"}
_PATHS = {"PosixPath", "PurePosixPath", "PurePath", "Path", "PureWindowsPath"}
_VIEWS = {"dict_keys": "keys", "dict_values": "values", "dict_items": "items"}
_OVERRIDES = frozenset(
    f"__{name}__"
    for name in (
        *("add", "radd", "sub", "rsub", "mul", "rmul", "truediv", "floordiv", "mod", "pow"),
        *("matmul", "and", "or", "xor", "neg", "abs", "eq", "ne", "lt", "le", "gt", "ge", "hash"),
        *("len", "bool", "iter", "getitem", "contains", "call", "enter", "await"),
    )
)
PROGRAMS = ("candidate", "__main__")
"""Modules of the program's own classes."""


def encode_standard(value: Any, kind: type, encode: _Convert) -> Any:
    """Turn such a value into JSON; None if it is no such value."""
    module, name = kind.__module__, kind.__name__
    if module == "collections":
        if name == "deque":
            return {"deque": [encode(list(value)), value.maxlen]}
        if name in _BY_ITEMS:
            return {name: _pairs(value, encode)}
        if name == "defaultdict":
            return {name: [encode(value.default_factory), _pairs(value, encode)]}
    elif module == "builtins":
        if name == "slice":
            return {name: [encode(value.start), encode(value.stop), encode(value.step)]}
        if name in ("ellipsis", "NotImplementedType"):
            return {"constant": repr(value)}
        if name in _VIEWS:
            items = [tuple(item) for item in value] if name == "dict_items" else list(value)
            return {name: encode(items)}
    elif module.partition(".")[0] == "pathlib" and name in _PATHS:
        return {"path": [name, str(value)]}
    elif kind is timezone:
        return {name: [encode(value.utcoffset(None)), value.tzname(None)]}
    elif module == "zoneinfo" and name == "ZoneInfo" and value.key is not None:
        return {name: value.key}
    elif module == "uuid" and name == "UUID":
        return {"UUID": value.hex}
    elif module == "array" and name == "array":
        return {"array": [value.typecode, encode(value.tolist())]}
    return encode_library(value, kind, encode)


def decode_standard(tag: str, data: Any, decode: _Convert) -> Any:
    """Turn the JSON of :func:`encode_standard` back into the value.

    Raises:
        ValueError, TypeError, LookupError: it is none.
    """
    if tag == "slice":
        return slice(*[decode(bound) for bound in data])
    if tag == "constant":
        return {"Ellipsis": Ellipsis, "NotImplemented": NotImplemented}[data]
    if tag in _VIEWS:
        items = decode(data)
        if tag == "dict_values":
            return dict(enumerate(items)).values()
        return dict.fromkeys(items).keys() if tag == "dict_keys" else dict(items).items()
    if tag == "path" and data[0] in _PATHS:
        return getattr(importlib.import_module("pathlib"), data[0])(str(data[1]))
    if tag == "timezone":
        return UTC if data[1] == "UTC" else timezone(decode(data[0]), str(data[1]))
    if tag == "ZoneInfo":
        return read_zone(data)
    if tag == "UUID":
        return importlib.import_module("uuid").UUID(hex=str(data))
    if tag == "array":
        return importlib.import_module("array").array(str(data[0]), decode(data[1]))
    collections = importlib.import_module("collections")
    if tag == "deque":
        return collections.deque(decode(data[0]), data[1])
    if tag in _BY_ITEMS:
        return getattr(collections, tag)(_items(data, decode))
    if tag == "defaultdict":
        return collections.defaultdict(decode(data[0]), _items(data[1], decode))
    return decode_library(tag, data, decode)


def _pairs(value: Any, encode: _Convert) -> list[Any]:
    return [[encode(key), encode(item)] for key, item in value.items()]


def _items(data: Any, decode: _Convert) -> dict[Any, Any]:
    return {decode(key): decode(item) for key, item in data}


def stays(kind: type, plain: Any) -> bool:
    """Return whether an instance of a plain type's subclass is an object rather than a value.

    Args:
        kind: its class.
        plain: its content.
    """
    written = [c for c in kind.__mro__ if c.__module__ in PROGRAMS]
    if is_kin(plain):
        return any(not _OVERRIDES.isdisjoint(vars(c)) for c in written)
    return any(callable(member) for c in written for member in vars(c).values())


def is_kin(plain: Any) -> bool:
    """Return whether content cannot change, so that a copy of it serves for ever."""
    return type(plain) in (int, str, float, tuple)
