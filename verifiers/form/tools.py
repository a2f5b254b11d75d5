"""Tools as a model sees them, and whether a call fits one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .call import Call
from .schema_cache import SchemaFault, schema_of


def tools_fault(tools: Any) -> str | None:
    """Say what is wrong with a list of tools, or ``None``.

    Each is ``{"name": ..., "parameters": {...}}``, bare or under ``"function"``.
    """
    if not isinstance(tools, list):
        return f"tools must be a list, got {tools!r:.80}"
    names = []
    for tool in map(_function, tools):
        if not isinstance(tool, dict) or not isinstance(tool.get("name"), str) or not tool["name"]:
            return f"a tool must have a name, got {tool!r:.80}"
        names.append(tool["name"])
        parameters = tool.get("parameters")
        try:
            if parameters:
                schema_of(parameters)
        except SchemaFault as fault:
            return f"parameters of {tool['name']!r:.80}: {fault}"
    if len(set(names)) < len(names):
        return "two tools have one name"
    return None


def tool_fault(call: Call, tools: Sequence[Any]) -> str | None:
    """Return why a call fits none of the tools, or ``None`` if it fits one.

    Arguments that a tool does not name are refused, unless its schema speaks of them
    (``additionalProperties`` or ``patternProperties``).
    """
    named = {tool["name"]: tool for tool in map(_function, tools)}
    if call.name not in named:
        return f"there is no tool {call.name!r:.80}"
    parameters = named[call.name].get("parameters") or {}
    open_ended = {"additionalProperties", "patternProperties", "$ref", "allOf", "anyOf", "oneOf"}
    if not open_ended & set(parameters):
        unknown = set(call.arguments) - set(parameters.get("properties", {}))
        if unknown:
            return f"{call.name} takes no argument {min(unknown)!r:.80}"
    fault = schema_of(parameters).fault(dict(call.arguments)) if parameters else None
    return None if fault is None else f"{call.name}: {fault}"


def _function(tool: Any) -> Any:
    return tool["function"] if isinstance(tool, dict) and "function" in tool else tool
