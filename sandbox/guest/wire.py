"""Plain values as JSON: what may travel between a program, its tests and the host.

Only exact built-in types come out of :func:`decode`, so a value that arrives cannot bring its
own ``__eq__``. None, bool, str, list, small ints and floats are themselves in JSON (a float's
repr reads back to the same bits); every other type is an object with one key, its tag.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from fractions import Fraction
from typing import Any

MAX_DEPTH = 150
"""Nesting that is carried; deeper values are refused, as json's own recursion ends near 1,000."""

Export = Callable[[Any], Any]
"""Turns a value that is not plain into JSON (a handle), or raises TypeError."""

Import = Callable[[str, Any], Any]
"""Turns a tag that is not plain, and its content, back into a value, or raises ValueError."""

LIBRARIES: set[str] = set()
"""Which of NumPy and pandas both ends use: their values stay what they are (:mod:`.arrays`)."""

_LARGE = 1 << 63
_TYPES: dict[str, type] = {
    t.__name__: t
    for t in (bool, bytes, complex, dict, float, frozenset, int, list, object, set, str, tuple)
}


def _no_export(value: Any) -> Any:
    raise TypeError(f"only plain built-in values can be passed, got {type(value).__name__}")


def _no_import(tag: str, content: Any) -> Any:
    raise ValueError(f"unknown tag {tag!r}")


def encode(value: Any, export: Export = _no_export, depth: int = 0) -> Any:
    """Turn a value into JSON.

    Args:
        value: any value. Without ``export``, or unless both ends use NumPy, its values are sent as
            what their ``tolist`` gives; without it, a subclass of a plain type as its content.
        export: called for values that are not plain.
        depth: nesting so far.

    Raises:
        TypeError: the value, or one inside it, is not plain and ``export`` refuses it.
        ValueError: it nests more than MAX_DEPTH deep.
    """
    kind = type(value)
    if value is None or kind is bool or kind is str or kind is float:
        return value
    if kind is int:
        return value if -_LARGE < value < _LARGE else {"int": hex(value)}
    if depth > MAX_DEPTH:
        raise ValueError(f"a value may nest {MAX_DEPTH} deep")
    if kind in (list, tuple, set, frozenset):
        items = [encode(item, export, depth + 1) for item in value]
        return items if kind is list else {kind.__name__: items}
    if kind is dict:
        return {
            "dict": [
                [encode(k, export, depth + 1), encode(v, export, depth + 1)]
                for k, v in value.items()
            ]
        }
    return _encode_rare(value, kind, export, depth)


def _encode_rare(value: Any, kind: type, export: Export, depth: int) -> Any:
    for known, encoder in _ENCODERS.items():
        if kind is known:  # by identity: a class may have no hash, or one of the program's
            return {kind.__name__: encoder(value)}
    if isinstance(value, type) and _TYPES.get(value.__name__) is value:
        return {"type": value.__name__}
    lists = export is _no_export or "numpy" not in LIBRARIES
    if lists and kind.__module__.partition(".")[0] == "numpy" and hasattr(value, "tolist"):
        plain = value.tolist()
        if type(plain) is not kind:
            return encode(plain, export, depth + 1)
    if export is not _no_export:
        return export(value)
    plain = content(value)
    return export(value) if plain is NotImplemented else encode(plain, export, depth + 1)


def content(value: Any) -> Any:
    """Copy the content of an instance of a plain type's subclass; NotImplemented of any other."""
    if isinstance(value, str):
        return str.__str__(value)
    if isinstance(value, int):
        return int.__int__(value)
    if isinstance(value, float):
        return float.__float__(value)
    if isinstance(value, tuple):
        return tuple(tuple.__iter__(value))
    for base in (list, dict, set, frozenset):
        if isinstance(value, base):
            return base(value)
    return NotImplemented


def decode(data: Any, restore: Import = _no_import) -> Any:
    """Turn JSON back into the value. The inverse of :func:`encode`.

    Raises:
        ValueError: the JSON is not what :func:`encode` makes. Untrusted data may also make it
            raise TypeError (an unhashable key) or RecursionError.
    """
    if type(data) is list:
        return [decode(item, restore) for item in data]
    if type(data) is not dict:
        return data
    if len(data) != 1:
        raise ValueError("an object must have one key, its tag")
    ((tag, content),) = data.items()
    if tag == "tuple":
        return tuple([decode(item, restore) for item in content])
    if tag == "set":
        return {decode(item, restore) for item in content}
    if tag == "dict":
        return {decode(k, restore): decode(v, restore) for k, v in content}
    if tag == "frozenset":
        return frozenset([decode(item, restore) for item in content])
    if tag == "int":
        return int(content, 16)
    return _DECODERS[tag](content) if tag in _DECODERS else restore(tag, content)


def _moment(value: datetime) -> Any:
    key = getattr(value.tzinfo, "key", None)  # a zone's name, which ISO's form lacks
    return [value.isoformat(), value.fold, key] if key or value.fold else value.isoformat()


def _read_moment(data: Any) -> datetime:
    text, fold, key = (data, 0, None) if type(data) is str else data
    moment = datetime.fromisoformat(text).replace(fold=fold)
    return moment if key is None else moment.replace(tzinfo=read_zone(key))


def read_zone(key: Any) -> Any:
    """Return the ZoneInfo of a name.

    Raises:
        ValueError, LookupError: there is none.
    """
    try:
        return importlib.import_module("zoneinfo").ZoneInfo(str(key))
    except OSError as error:  # the name of a folder
        raise ValueError(f"no time zone {key!r}") from error


_ENCODERS: dict[type, Callable[[Any], Any]] = {
    bytes: bytes.hex,
    bytearray: bytearray.hex,
    complex: lambda value: [value.real, value.imag],
    range: lambda value: [encode(n) for n in (value.start, value.stop, value.step)],
    Decimal: str,
    Fraction: lambda value: [encode(value.numerator), encode(value.denominator)],
    timedelta: lambda value: [value.days, value.seconds, value.microseconds],
    date: date.isoformat,
    time: time.isoformat,
    datetime: lambda value: _moment(value),
}
_DECODERS: dict[str, Callable[[Any], Any]] = {
    "bytes": bytes.fromhex,
    "bytearray": bytearray.fromhex,
    "complex": lambda data: complex(float(data[0]), float(data[1])),
    "range": lambda data: range(*[int(decode(n)) for n in data]),
    "Decimal": Decimal,
    "Fraction": lambda data: Fraction(int(decode(data[0])), int(decode(data[1]))),
    "timedelta": lambda data: timedelta(*data),
    "date": date.fromisoformat,
    "time": time.fromisoformat,
    "datetime": lambda data: _read_moment(data),
    "type": lambda data: _TYPES[data],
}
