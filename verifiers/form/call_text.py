"""Find the tool calls in a reply, in the syntaxes of models."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..text.extract import final_answer
from ..text.thought import without_thought
from .call import Call
from .call_forms import MAX_CALLS, attempt, calls_of, is_harmony, read_forms, read_harmony
from .json_text import MAX_LENGTH, NotJson, find_json, json_end, read_json, strip_json_fence
from .python_calls import read_calls

WAYS = ("tags", "python_tag", "json", "python", "harmony", "deepseek", "kimi", "minimax")
"""``tags``: ``<tool_call>{"name": ..., "arguments": {...}}</tool_call>``, as Hermes and Qwen, or
with ``<function=name>`` as Qwen3-Coder or ``<arg_key>`` as GLM, in the tags.
``python_tag``: ``<|python_tag|>{"name": ..., "parameters": {...}}``, as Llama 3.
``json``: such an object, several in a list or, as Llama has them, with ``;`` or line feeds between,
or OpenAI's ``[{"type": "function", "function": {...}}]``.
``python``: ``[name(argument=1), ...]``.
``harmony``: ``<|channel|>commentary to=functions.name<|message|>{...}<|call|>``, as gpt-oss.
``deepseek``, ``kimi``, ``minimax``: as DeepSeek V3, R1, V3.1 and V3.2, Kimi K2 and MiniMax M2.
Before ``json`` and ``python`` there may be Mistral's ``[TOOL_CALLS]`` or Llama 4's
``<|python_start|>``; ``[TOOL_CALLS]name[ARGS]{...}`` is ``json`` too, and so are lists after
Granite's and Phi-4's ``<|tool_call|>`` and ``functools``."""

_MARKS = ("[TOOL_CALLS]", "<|python_start|>")
_BETWEEN = re.compile(r"[ \t]*+[;\n][ \t\n]*+")
_PYTHON_START = re.compile(r"\[?\s{0,99}[^\W\d][\w.]{0,999}\s{0,9}\(")


def marked(reply: str, ways: Sequence[str]) -> str | None:
    """Return the text of a reply in which calls stand in a form's marks, ``None`` if none does."""
    if "harmony" in ways and is_harmony(reply):
        return reply
    rest = (without_thought(reply) or "").removeprefix("\ufeff").strip()
    return rest if attempt(rest, ways) else None


def find_calls(
    reply: str, ways: tuple[str, ...], *, text: bool, tools: Sequence[Any] = ()
) -> tuple[list[Call], str]:
    """Return the calls of a reply in order, and their source text.

    Args:
        reply: the whole reply; what its thought holds is no call.
        ways: names from :data:`WAYS`.
        text: whether words may stand around the calls.
        tools: with schemas, by which text becomes numbers in the forms whose arguments are text.

    Raises:
        NotJson: it makes no call that can be read, makes more than :data:`MAX_CALLS`, or has
            words around them that it may not have.
    """
    body = marked(reply, ways)
    if body is not None and "harmony" in ways and is_harmony(reply):
        calls = _among_words(*read_harmony(reply), text)
    else:
        found = final_answer(reply, ("whole",), longest=10 * MAX_LENGTH)
        if found.text is None:
            raise NotJson(found.reason)
        if len(found.text) > MAX_LENGTH:
            raise NotJson(f"longer than {MAX_LENGTH} characters")
        try:  # first, since its strings may hold the marks of a form
            calls = _unmarked(found.text, ways, text and body is None)
        except NotJson:
            if body is None:
                raise
            calls = _among_words(*read_forms(body, ways, tools), text)
    if len(calls) > MAX_CALLS:
        raise NotJson(f"makes {len(calls)} calls, more than {MAX_CALLS}")
    return calls, body or str(found.text)


def _among_words(calls: list[Call], words: str, text: bool) -> list[Call]:
    if not calls:
        raise NotJson("makes no call")
    if words.strip() and not text:
        raise NotJson(f"text around the calls: {words.strip()!r:.60}")
    return calls


def _unmarked(body: str, ways: Sequence[str], text: bool) -> list[Call]:
    for mark in _MARKS:
        body = body.removeprefix(mark).lstrip()
    if "python" in ways and _PYTHON_START.match(inside := strip_json_fence(body)):
        return read_calls(inside)
    if "json" not in ways:
        raise NotJson("makes no call")
    if not text:
        return calls_of(_several(strip_json_fence(body)))
    found = find_json(body)
    if found.text is None:
        raise NotJson(found.reason)
    return calls_of(found.value)


def _several(text: str) -> Any:
    """Parse JSON, or objects that semicolons or line feeds separate, as a list."""
    try:
        return read_json(text)
    except NotJson as error:
        values, at = [], 0
        while text[at : at + 1] == "{":
            end = json_end(text, at)
            values.append(read_json(text[at:end]))
            if end == len(text):
                return values
            between = _BETWEEN.match(text, end)
            at = between.end() if between else len(text)
        raise error
