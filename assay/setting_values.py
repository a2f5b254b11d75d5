"""Values of settings: of the type that the dataclass says, from a file or from the command line."""

from __future__ import annotations

import json
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal, Union, get_args, get_origin

_PLAIN = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}
_NONE = ("none", "null")


class WrongValue(ValueError):
    """A value is not what its setting takes. The text says what it takes, and what came."""


def read_value(hint: Any, value: Any) -> Any:
    """Convert a value from a file strictly to its type; an int is accepted as a float.

    Raises:
        WrongValue: it is of another type. A number in quotes is text.
    """
    if hint is Any:
        return value
    if _is_union(hint):
        return _first(hint, value)
    origin = get_origin(hint)
    if hint is type(None) and value is None:
        return None
    if hint is float and type(value) in (int, float):
        return float(value)
    if hint in (int, str, bool) and type(value) is hint:  # True is an int, and not meant as one
        return value
    if origin is Literal and value in get_args(hint):
        return value
    if _is_mapping(origin) and isinstance(value, Mapping):
        kinds = get_args(hint)
        return {read_value(kinds[0], k): read_value(kinds[1], v) for k, v in value.items()}
    if _is_list(origin) and isinstance(value, Sequence) and not isinstance(value, str):
        return tuple(read_value(get_args(hint)[0], each) for each in value)
    raise WrongValue(f"must be {told(hint)}, got {value!r}{_quoted(hint, value)}")


def parse_value(hint: Any, text: str) -> Any:
    """Parse a value from the command line; ``none`` is None, lists and mappings are JSON.

    Raises:
        WrongValue: it is of another type.
    """
    kinds = _kinds(hint)
    if type(None) in kinds and text.lower() in _NONE:
        return None
    for kind in (int, float):
        if kind in kinds:
            try:
                return kind(text)
            except ValueError:
                continue
    if any(_is_mapping(get_origin(k)) or _is_list(get_origin(k)) for k in kinds):
        try:
            return read_value(hint, json.loads(text))
        except json.JSONDecodeError as error:
            if str not in kinds:
                raise WrongValue(f"must be {told(hint)}, as JSON, got {text!r}") from error
    return read_value(hint, text)


def told(hint: Any) -> str:
    """Describe a type in words.

    Raises:
        TypeError: settings have no such type.
    """
    if hint in _PLAIN:
        return _PLAIN[hint]
    if hint is Any:
        return "any value"
    if hint is type(None):
        return "none"
    origin = get_origin(hint)
    if _is_union(hint):
        return " or ".join(told(kind) for kind in _kinds(hint))
    if origin is Literal:
        return f"one of {', '.join(map(str, get_args(hint)))}"
    if _is_mapping(origin):
        return f"a mapping of names to {told(get_args(hint)[1])}"
    if _is_list(origin):
        return f"a list, each {told(get_args(hint)[0])}"
    raise TypeError(f"no setting can be {hint!r}")


def placeholder(hint: Any) -> str:
    """Return the placeholder for a value in the help, such as ``NUMBER``."""
    words = {int: "INTEGER", float: "NUMBER", str: "TEXT"}
    first = next(kind for kind in _kinds(hint) if kind is not type(None))
    return "WORD" if get_origin(first) is Literal else words.get(first, "JSON")


def choices(hint: Any) -> tuple[str, ...]:
    """Return the values that a setting accepts, if it has a choice."""
    return tuple(map(str, get_args(hint))) if get_origin(hint) is Literal else ()


def _kinds(hint: Any) -> tuple[Any, ...]:
    return get_args(hint) if _is_union(hint) else (hint,)


def _is_union(hint: Any) -> bool:
    return get_origin(hint) in (Union, types.UnionType)


def _is_mapping(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Mapping)


def _is_list(origin: Any) -> bool:
    return isinstance(origin, type) and issubclass(origin, Sequence)


def _first(hint: Any, value: Any) -> Any:
    for kind in get_args(hint):
        try:
            return read_value(kind, value)
        except WrongValue:
            continue
    raise WrongValue(f"must be {told(hint)}, got {value!r}{_quoted(hint, value)}")


def _quoted(hint: Any, value: Any) -> str:
    """Return the remedy for a quoted number."""
    if isinstance(value, str) and any(kind in (int, float) for kind in _kinds(hint)):
        try:
            float(value)
        except ValueError:
            return ""
        return ": write it without quotes"
    return ""
