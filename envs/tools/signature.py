"""The JSON schema of a function, from its signature and docstring.

The schema is the one that ``transformers.utils.get_json_schema`` makes of the same function, so
that chat templates and other trainers get schemas in the usual form.
"""

from __future__ import annotations

import inspect
import re
import types
from collections.abc import Callable, Mapping
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

_NAMES = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}
_KINDS = "int, float, str, bool, list[...], dict[str, ...], Literal, Any, and unions of these"
_ARGUMENT = re.compile(r"([ \t]*)(\w+):[ \t]*(.*)")


class BadTool(TypeError):
    """A function cannot be a tool. The message names it, the rule and the remedy."""


def described(function: Callable[..., Any], hidden: tuple[type, ...] = ()) -> dict[str, Any]:
    """Return the JSON schema of a function.

    Args:
        function: with a type and a description in a Google docstring for each argument.
        hidden: parameters of these types are not the caller's to fill, and left out.

    Raises:
        BadTool: it has no docstring, an argument lacks its type or its description, a type has no
            JSON, or an argument cannot be given by name.
    """
    name = getattr(function, "__name__", "")
    if not name.isidentifier():
        raise BadTool(f"a tool must be a function with a name, got {function!r:.80}: use def")
    about, descriptions, returns = _read_docstring((inspect.getdoc(function) or "").strip())
    if not about:
        raise BadTool(
            f"{name} has no docstring: say what it does, and describe each argument under 'Args:'"
        )
    properties, required = {}, []
    for argument, (hint, optional) in parameters(function, hidden).items():
        if not descriptions.get(argument):
            raise BadTool(
                f"{name}: the docstring does not describe {argument!r}: add a line "
                f"'{argument}: what it is' under 'Args:', without a type in brackets"
            )
        if re.search(r"\(choices:.*\)\s*$", descriptions[argument], re.IGNORECASE):
            raise BadTool(f"{name}: choices of {argument!r} belong in its type: use Literal")
        schema = _schema(hint, f"{name}: the type of {argument!r}")
        properties[argument] = schema | {"description": descriptions[argument]}
        if not optional:
            required.append(argument)
    arguments: dict[str, Any] = {"type": "object", "properties": properties}
    if required:
        arguments["required"] = required
    tool = {"name": name, "description": about, "parameters": arguments}
    result = _result(function)
    if result is not None:
        tool["return"] = result if returns is None else result | {"description": returns}
    return {"type": "function", "function": tool}


def parameters(
    function: Callable[..., Any], hidden: tuple[type, ...] = ()
) -> dict[str, tuple[Any, bool]]:
    """Return the type of each visible argument, and whether it is optional.

    Raises:
        BadTool: an argument has no type, or cannot be given by name.
    """
    hints, found = _hints(function), {}
    for name, parameter in _signature(function).items():
        if parameter.kind not in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            raise BadTool(
                f"{function.__name__}: {str(parameter)!r} cannot be given by name: "
                "give each argument a name of its own, without * and /"
            )
        if name not in hints:
            raise BadTool(f"{function.__name__}: {name!r} has no type: write {name}: str, or int")
        if hints[name] not in hidden:
            found[name] = (hints[name], parameter.default is not parameter.empty)
    return found


def hidden_parameter(function: Callable[..., Any], hidden: type) -> str | None:
    """Return the name of the parameter of a type, or ``None``."""
    hints = _hints(function)
    return next((n for n in _signature(function) if hints.get(n) is hidden), None)


def _signature(function: Callable[..., Any]) -> Mapping[str, inspect.Parameter]:
    found = dict(inspect.signature(function).parameters)
    first = next(iter(found), None)
    if first in ("self", "cls") and found[first].annotation is inspect.Parameter.empty:
        del found[first]
    return found


def _hints(function: Callable[..., Any]) -> dict[str, Any]:
    try:
        return get_type_hints(function)
    except (NameError, TypeError, AttributeError) as error:
        raise BadTool(
            f"{function.__name__}: its types cannot be looked up ({error}): "
            "import them at the top of the module, or define them there"
        ) from error


def _result(function: Callable[..., Any]) -> dict[str, Any] | None:
    """Return the schema of the result, ``None`` without a type or for one that JSON lacks."""
    hints = _hints(function)
    if "return" not in hints:
        return None
    try:
        return _schema(hints["return"], "the result")
    except BadTool:
        return None


def _schema(hint: Any, what: str) -> dict[str, Any]:
    origin, inside = get_origin(hint), get_args(hint)
    if hint is Any:
        return {}
    if hint in _NAMES:
        return {"type": _NAMES[hint]}
    if hint is list or origin is list:
        return {"type": "array"} | ({"items": _schema(inside[0], what)} if inside else {})
    if hint is dict or origin is dict:
        if inside and inside[0] is not str:
            raise BadTool(f"{what}: keys of JSON objects are strings: use dict[str, ...]")
        more = {"additionalProperties": _schema(inside[1], what)} if inside else {}
        return {"type": "object"} | more
    if origin is Literal:
        return _one_of(list(inside), what)
    if origin is Union or origin is types.UnionType:
        return _union(inside, what)
    raise BadTool(f"{what} is {hint!r}, of which JSON has no kind: use {_KINDS}")


def _one_of(values: list[Any], what: str) -> dict[str, Any]:
    if any(type(value) not in _NAMES for value in values):
        raise BadTool(f"{what}: a Literal must hold strings, numbers, booleans or None")
    names = list(dict.fromkeys(_NAMES[type(value)] for value in values))
    return {"type": names[0] if len(names) == 1 else names, "enum": values}


def _union(hints: tuple[Any, ...], what: str) -> dict[str, Any]:
    parts = [_schema(hint, what) for hint in hints if hint is not type(None)]
    if len(parts) == 1:
        found = parts[0]
    elif all(set(part) == {"type"} for part in parts):
        names = sorted({part["type"] for part in parts})
        found = {"type": names[0] if len(names) == 1 else names}
    else:
        found = {"anyOf": parts}
    return found | ({"nullable": True} if type(None) in hints else {})


def _read_docstring(doc: str) -> tuple[str, dict[str, str], str | None]:
    """Return the description of the function, of each argument, and of the result."""
    sections: dict[str, list[str]] = {"": []}
    lines = sections[""]
    for line in doc.split("\n"):
        title = line.strip()
        if title in ("Args:", "Returns:", "Raises:") and title not in sections:
            lines = sections[title] = []
        else:
            lines.append(line)
    returns = "\n".join(sections.get("Returns:", [])).strip() or None
    return "\n".join(sections[""]).strip(), _arguments(sections.get("Args:", [])), returns


def _arguments(lines: list[str]) -> dict[str, str]:
    """Return descriptions by name; further-indented or unnamed lines continue one."""
    found: dict[str, list[str]] = {}
    indent, name = "", ""
    for line in filter(str.strip, lines):
        named = _ARGUMENT.match(line)
        further = name and line.startswith((indent + " ", indent + "\t"))
        if named and not further:
            indent, name = named[1], named[2]
            found[name] = [named[3].strip()]
        elif name:
            found[name].append(line.strip())
    return {name: " ".join(filter(None, parts)) for name, parts in found.items()}
