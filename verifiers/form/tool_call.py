"""ToolCall: does the reply call the tools that it should, and no others?"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..verdict import Verdict
from ..verifier import Verifier
from .call import Call, RequiredCall, all_made, share_made
from .call_forms import MAX_CALLS, function_of
from .call_text import WAYS, find_calls
from .json_text import NotJson, as_json
from .json_value import json_fault
from .schema_cache import SchemaFault, schema_of

_KEYS = {"name", "arguments", "alternatives", "optional"}


class ToolCall(Verifier):
    r"""Full marks for exactly the required tool calls.

    Calls may be written as models write them: ``<tool_call>`` tags (Hermes, Qwen, Qwen3-Coder,
    GLM), Llama's ``<|python_tag|>``, bare or fenced JSON, OpenAI's list with arguments as JSON in
    a string, ``[name(argument=1)]``, and the marks of gpt-oss, DeepSeek, Kimi, MiniMax, Mistral,
    Granite and Phi-4. Where such marks begin a call, it must be whole. A call has a name, and
    arguments if it takes any. It fails on a call too many or too few, an argument that is unknown,
    missing or different, JSON that is not strict, and words around the calls.
    ``1`` equals ``1.0``, but neither ``true`` nor ``"1"``. Calls in the thought do not count, and
    more than 32 calls count as none.

    Reference: ``{"calls": [{"name": "book", "arguments": {"city": "Oslo"}}]}``. A call may also
    have ``"alternatives": {"city": ["Kristiania"]}``, other values of an argument, and
    ``"optional": ["city"]``, optional arguments; one whose value is null is optional too. With
    ``"tools"``, a list of ``{"name", "parameters"}`` with a JSON Schema each, bare or under
    ``"function"``, known calls are validated when data is loaded; without ``"calls"``, one valid
    call of any tool passes. Qwen3-Coder, GLM and MiniMax write arguments as text, which these
    schemas make numbers. Without ``"tools"`` it stays text but for ``null``; GLM's is JSON or a
    Python literal where it reads so.

    Args:
        ways: how calls may be written: ``"tags"``, ``"python_tag"``, ``"json"`` (also Mistral,
            Granite, Phi-4), ``"python"``, ``"harmony"`` (gpt-oss), ``"deepseek"``, ``"kimi"``,
            ``"minimax"``.
        ordered: whether the order of calls counts.
        text: whether words may stand around tags, around a fence, or in a line before JSON; a call
            is made whatever they say of it.
        case: whether capitals count in the strings of arguments.
        graded: pay for the share of calls and arguments that are right, F1 over the arguments of
            each call whose name is right; else all or nothing.

    Raises:
        ValueError: a way is unknown.

    Example:
        >>> gold = {"calls": [{"name": "book", "arguments": {"city": "Oslo"}}]}
        >>> reply = '<tool_call>{"name": "book", "arguments": {"city": "Oslo"}}</tool_call>'
        >>> ToolCall().verify(reply, gold).score
        1.0
        >>> ToolCall().verify('[book(city="Bergen")]', gold).score
        0.0
    """

    def __init__(
        self,
        *,
        ways: Sequence[str] = WAYS,
        ordered: bool = False,
        text: bool = False,
        case: bool = True,
        graded: bool = False,
    ) -> None:
        if isinstance(ways, str) or not ways or set(ways) - set(WAYS):
            raise ValueError(f"ways must be a list of names from {', '.join(WAYS)}, got {ways!r}")
        self.ways, self.ordered, self.text = tuple(ways), ordered, text
        self.case, self.graded = case, graded

    def check_reference(self, reference: Any) -> str | None:
        """Require calls, tools, or calls that fit the tools."""
        fault = json_fault(reference, dict)
        if fault is not None:
            return fault
        unknown = set(reference) - {"calls", "tools"}
        if unknown or not reference:
            return f"expected calls, tools or both, got {sorted(reference)!r:.80}"
        tools = reference.get("tools")
        fault = None if tools is None else tools_fault(tools)
        if fault is not None or "calls" not in reference:
            return fault or (None if tools else "tools must name at least one")
        calls = reference["calls"]
        if not isinstance(calls, list) or not 1 <= len(calls) <= MAX_CALLS:
            return f"calls must be a list of 1 to {MAX_CALLS}, got {calls!r:.80}"
        return next(filter(None, (_call_fault(call, tools) for call in calls)), None)

    def oracle_reply(self, reference: Any) -> str | None:
        """Return the known calls in tags, after ``<|python_tag|>`` or in JSON, as the first way."""
        if "calls" not in reference:
            return None
        calls = [{"name": c["name"], "arguments": c["arguments"]} for c in reference["calls"]]
        texts = [json.dumps(call) for call in calls]
        if self.ways[0] == "tags":
            return "\n".join(f"<tool_call>\n{text}\n</tool_call>" for text in texts)
        if self.ways[0] not in ("python_tag", "json"):
            return None
        return ("<|python_tag|>" if self.ways[0] == "python_tag" else "") + f"[{', '.join(texts)}]"

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        try:
            tools = reference.get("tools") or ()
            made, read = find_calls(reply, self.ways, text=self.text, tools=tools)
        except NotJson as error:
            return Verdict.unparseable(str(error))
        if "calls" not in reference:
            return _any_tool(made, reference["tools"], read)
        wanted = [_wanted(call) for call in as_json(reference["calls"])]
        if all_made(wanted, made, self.ordered, self.case):
            return Verdict.correct("the calls that are asked for", extracted=read)
        share, names = share_made(wanted, made, self.ordered, self.case)
        reason = f"{len(made)} calls for {len(wanted)}, {share:.0%} of the arguments right"
        if not self.graded:
            return Verdict.wrong(reason, extracted=read)
        # a name is cheap to guess: it is shown, and pays only with its arguments
        verdict = Verdict.wrong(reason, score=share, extracted=read)
        return replace(verdict, parts={"names": names, "arguments": share})


def _any_tool(made: list[Call], tools: list[Any], read: str) -> Verdict:
    if len(made) != 1:
        return Verdict.wrong(f"makes {len(made)} calls, not one", extracted=read)
    fault = tool_fault(made[0], tools)
    if fault is not None:
        return Verdict.wrong(fault, extracted=read)
    return Verdict.correct("a valid call", extracted=read)


def _wanted(call: Mapping[str, Any]) -> RequiredCall:
    # A table, as of Parquet, gives each call every argument of any, null if it has none.
    null = {name for name, value in call["arguments"].items() if value is None}
    optional = null.union(call.get("optional") or ())
    alternatives = call.get("alternatives") or {}
    return RequiredCall(call["name"], call["arguments"], alternatives, frozenset(optional))


def _call_fault(call: Any, tools: Any) -> str | None:
    if not isinstance(call, dict) or {"name", "arguments"} - set(call) or set(call) - _KEYS:
        return f"a call has name and arguments, alternatives and optional, got {call!r:.80}"
    name, arguments = call["name"], call["arguments"]
    if not isinstance(name, str) or not name or not isinstance(arguments, dict):
        return f"a call has a name and an object of arguments, got {call!r:.80}"
    others, optional = call.get("alternatives") or {}, call.get("optional") or []
    if not isinstance(others, dict) or not all(isinstance(v, list) for v in others.values()):
        return f"alternatives are lists by the argument's name, got {others!r:.80}"
    if not isinstance(optional, list) or not all(isinstance(n, str) for n in optional):
        return f"optional is a list of arguments, got {optional!r:.80}"
    unknown = ({*others} | {*optional}) - set(arguments)
    if unknown:
        return f"{min(unknown)!r:.80} is no argument of the call of {name!r:.80}"
    if tools is None:
        return None
    try:
        return tool_fault(Call(name, as_json(arguments)), tools)
    except SchemaFault as fault:
        return str(fault)


def tools_fault(tools: Any) -> str | None:
    """Say what is wrong with a list of tools, or ``None``.

    Each is ``{"name": ..., "parameters": {...}}``, bare or under ``"function"``.
    """
    if not isinstance(tools, list):
        return f"tools must be a list, got {tools!r:.80}"
    names = []
    for tool in map(function_of, tools):
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
    named = {tool["name"]: tool for tool in map(function_of, tools)}
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
