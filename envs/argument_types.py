"""Type checks of arguments from the command line and from files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from typing import Any

from ..sandbox.redaction import redact

_PLAIN = {int: "a whole number", float: "a number", str: "text", bool: "true or false"}


def refuse_types(name: str, function: Callable[..., Any], values: Mapping[str, Any]) -> None:
    """Refuse values that do not match a plain type annotation of their parameter.

    Args:
        name: what the function is called in the error.
        function: what the values are for; it takes each of them.
        values: by parameter.

    Raises:
        ValueError: a value is of another type.
    """
    try:
        parameters = inspect.signature(function, eval_str=True).parameters
    except (NameError, TypeError):  # annotations that only a type checker can follow
        return
    for key, value in values.items():
        if key not in parameters:  # one of ``**kwargs``
            continue
        hint = parameters[key].annotation
        if not isinstance(hint, type) or hint not in _PLAIN:
            continue
        allowed = (int, float) if hint is float else hint
        if not isinstance(value, allowed) or (isinstance(value, bool) and hint is not bool):
            raise ValueError(f"{name}: {key} must be {_PLAIN[hint]}, got {redact(value, key)!r}")
