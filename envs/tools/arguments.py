"""Arguments from a model, converted to a function's types."""

from __future__ import annotations

import json
import sys
import types
from typing import Any, Literal, Union, get_args, get_origin

_NAMES = {
    int: "a whole number",
    float: "a number",
    str: "a string",
    bool: "true or false",
    type(None): "null",
}


class Misfit(ValueError):
    """A value does not have the required type; with its location."""


def fitted(hint: Any, value: Any, place: str) -> Any:
    """Convert a JSON value to the type: ``2`` for a float is ``2.0``, and ``2.0`` for an int ``2``.

    Args:
        hint: the type of an argument, of those that a tool may have.
        value: plain JSON.
        place: its location, for the message.

    Raises:
        Misfit: it is of another type. Nothing is read out of strings, and true is no number.

    Example:
        >>> fitted(list[float], [1, 2.5], "numbers")
        [1.0, 2.5]
    """
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return value
    if hint in _NAMES:
        return _plain(hint, value, place)
    if hint is list or origin is list:
        return _list(inside, value, place)
    if hint is dict or origin is dict:
        return _dict(inside, value, place)
    if origin is Literal:
        return _one_of(inside, value, place)
    if origin is Union or origin is types.UnionType:
        return _any_of(inside, value, place)
    raise TypeError(f"no tool may have an argument of type {hint!r}")


def _plain(hint: Any, value: Any, place: str) -> Any:
    kind = type(value)
    if hint is int and kind is float and value.is_integer():
        return int(value)
    if hint is float and kind is int and abs(value) <= sys.float_info.max:
        return float(value)
    if kind is not hint:
        raise Misfit(f"{place} must be {_NAMES[hint]}, got {_shown(value)}")
    return value


def _list(inside: tuple[Any, ...], value: Any, place: str) -> list[Any]:
    if not isinstance(value, list):
        raise Misfit(f"{place} must be a list, got {_shown(value)}")
    hint = inside[0] if inside else Any
    return [fitted(hint, item, f"{place}[{i}]") for i, item in enumerate(value)]


def _dict(inside: tuple[Any, ...], value: Any, place: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise Misfit(f"{place} must be an object, got {_shown(value)}")
    hint = inside[1] if inside else Any
    return {key: fitted(hint, item, f"{place}.{key:.40}") for key, item in value.items()}


def _one_of(values: tuple[Any, ...], value: Any, place: str) -> Any:
    for allowed in values:
        same = type(value) is type(allowed) or {type(value), type(allowed)} == {int, float}
        if same and value == allowed:
            return allowed
    raise Misfit(f"{place} must be one of {', '.join(map(_shown, values))}, got {_shown(value)}")


def _any_of(hints: tuple[Any, ...], value: Any, place: str) -> Any:
    # 2 for int | float is the int: its own type comes first, but for null, whose misfit says least
    for hint in sorted(hints, key=lambda hint: (hint is not type(None), hint is not type(value))):
        try:
            return fitted(hint, value, place)
        except Misfit as misfit:
            last = misfit
    if len([hint for hint in hints if hint is not type(None)]) == 1:
        raise last
    names = " or ".join(_NAMES.get(hint, str(hint)) for hint in hints)
    raise Misfit(f"{place} must be {names}, got {_shown(value)}")


def _shown(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
