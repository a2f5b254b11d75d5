"""Find the tool calls in a reply, in the syntaxes of models."""

from __future__ import annotations

import re
from typing import Any

from ..text.extract import final_answer
from .call import Call
from .json_text import MAX_LENGTH, NotJson, find_json, read_json, unfenced
from .python_calls import read_calls

MAX_CALLS = 32
"""A reply with more makes none."""

WAYS = ("tags", "python_tag", "json", "python")
"""``tags``: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, as Hermes and Qwen.
``python_tag``: ``<|python_tag|>{"name": ..., "parameters": {...}}``, as Llama 3.
``json``: such an object, several in a list or, as Llama has them, with ``;`` or line feeds between,
or OpenAI's ``[{"type": "function", "function": {...}}]``.
``python``: ``[name(argument=1), ...]``.
Before ``json`` and ``python`` there may be Mistral's ``[TOOL_CALLS]`` or Llama 4's
``<|python_start|>``; ``[TOOL_CALLS]name[ARGS]{...}`` is ``json`` too."""

_OPEN, _CLOSE, _PYTHON_TAG = "<tool_call>", "</tool_call>", "<|python_tag|>"
_MARKS = ("[TOOL_CALLS]", "<|python_start|>")
_ARGS = "[ARGS]"
_BETWEEN = re.compile(r"\}[ \t]*+[;\n][ \t\n]*+\{")
_NAMED = re.compile(r"[\w.-]{1,64}\[ARGS\]")
_PYTHON_START = re.compile(r"\[?\s{0,99}[^\W\d][\w.]{0,999}\s{0,9}\(")
_BESIDE = {"type", "id", "index", "call_id"}


def find_calls(reply: str, ways: tuple[str, ...], *, text: bool) -> tuple[list[Call], str]:
    """Return the calls of a reply in order, and their source text.

    Args:
        reply: the whole reply; what its thought holds is no call.
        ways: names from :data:`WAYS`.
        text: whether words may stand around the calls.

    Raises:
        NotJson: it makes no call that can be read, makes more than :data:`MAX_CALLS`, or has
            words around them that it may not have.
    """
    found = final_answer(reply, ("whole",), longest=10 * MAX_LENGTH)
    if found.text is None:
        raise NotJson(found.reason)
    body = found.text
    for mark in _MARKS:
        body = body.removeprefix(mark).lstrip()
    if len(body) > MAX_LENGTH:
        raise NotJson(f"longer than {MAX_LENGTH} characters")
    if "tags" in ways and (_OPEN in body or _CLOSE in body):
        calls = _tagged(body, text)
    elif "python_tag" in ways and _PYTHON_TAG in body:
        calls = _after_python_tag(body, text)
    elif "python" in ways and _PYTHON_START.match(inside := unfenced(body)):
        calls = read_calls(inside)
    elif "json" in ways:
        calls = _mistral(body) if _NAMED.match(body) else _json(body, text)
    else:
        raise NotJson("makes no call")
    if len(calls) > MAX_CALLS:
        raise NotJson(f"makes {len(calls)} calls, more than {MAX_CALLS}")
    return calls, body


def _tagged(body: str, text: bool) -> list[Call]:
    calls, at = [], 0
    while (start := body.find(_OPEN, at)) >= 0:
        _refuse_words(body[at:start], text)
        end = body.find(_CLOSE, start)
        if end < 0:
            raise NotJson(f"{_OPEN} is never closed")
        calls.append(_call(read_json(body[start + len(_OPEN) : end].strip())))
        at = end + len(_CLOSE)
        if len(calls) > MAX_CALLS:
            break
    _refuse_words(body[at:], text)
    return calls


def _after_python_tag(body: str, text: bool) -> list[Call]:
    before, _, after = body.partition(_PYTHON_TAG)
    _refuse_words(before, text)
    return _calls(_several(after.strip()))  # tokens that end a reply are gone by now


def _json(body: str, text: bool) -> list[Call]:
    if text:
        found = find_json(body)
        if found.text is None:
            raise NotJson(found.reason)
        return _calls(found.value)
    return _calls(_several(unfenced(body)))


def _several(text: str) -> Any:
    """Parse JSON, or objects that semicolons or line feeds separate, as a list."""
    try:
        return read_json(text)
    except NotJson:
        if not (text.endswith("}") and _BETWEEN.search(text)):
            raise
        return read_json(f"[{_BETWEEN.sub('},{', text)}]")


def _mistral(body: str) -> list[Call]:
    """Parse ``name[ARGS]{...}``, before further ones ``[TOOL_CALLS]``: Mistral's since 2025."""
    pairs = [each.partition(_ARGS)[::2] for each in body.split(_MARKS[0])]
    return [_call({"name": name.strip(), "arguments": value}) for name, value in pairs]


def _refuse_words(around: str, text: bool) -> None:
    if _CLOSE in around:
        raise NotJson(f"{_CLOSE} closes nothing")
    if around.strip() and not text:
        raise NotJson(f"text around the calls: {around.strip()!r:.60}")


def _calls(value: Any) -> list[Call]:
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        if set(value) - {"tool_calls", "role", "content"} or value.get("content"):
            raise NotJson("a message with more in it than tool_calls")
        value = value["tool_calls"]
    return [_call(each) for each in (value if isinstance(value, list) else [value])]


def _call(value: Any) -> Call:
    """Parse one call, ``{"name", "arguments" or "parameters"}``, bare or under ``function``."""
    if not isinstance(value, dict):
        raise NotJson(f"a call must be an object, got {value!r:.60}")
    if "function" in value and isinstance(value["function"], dict):
        if set(value) - _BESIDE - {"function"} or value.get("type", "function") != "function":
            raise NotJson("no call of a function")
        value = value["function"]
    odd = set(value) - _BESIDE - {"name", "arguments", "parameters"}
    if odd:
        raise NotJson(f"a call has no {min(odd)!r:.60}")
    if not isinstance(value.get("name"), str) or not value["name"]:
        raise NotJson("a call has no name")
    if "arguments" in value and "parameters" in value:
        raise NotJson("a call has both arguments and parameters")
    arguments = value.get("arguments", value.get("parameters", {}))
    if isinstance(arguments, str):  # OpenAI gives them as JSON within JSON
        arguments = read_json(arguments) if arguments.strip() else {}
    if not isinstance(arguments, dict):
        raise NotJson(f"arguments must be an object, got {arguments!r:.60}")
    return Call(value["name"], arguments)
