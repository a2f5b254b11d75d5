"""The marks with which models write calls of tools: a row of :data:`FORMS` for each form.

A row is read where its ``begin`` and ``call`` match: calls with their arguments, each up to its
``end``, and ``close`` after the last. Arguments are one JSON value, or, in a row with ``argument``,
text between tags. Such text cannot escape anything: it ends at the first closing tag behind which
the next argument or the end of the call stands, so that it may hold the form's marks elsewhere.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ..text.thought import without_end_tokens
from .call import Call
from .json_text import NotJson, json_end, read_json
from .python_calls import read_value
from .schema_cache import SchemaFault, schema_of

MAX_CALLS = 32
"""A reply with more makes none."""

_NAME = r"(?P<name>[\w.-]{1,128})"
_BESIDE = {"type", "id", "index", "call_id"}
_TYPES = {"type", "enum", "const", "anyOf", "oneOf", "allOf", "$ref"}


@dataclass(frozen=True, slots=True)
class Form:
    """A form of calls, in regular expressions; there may be white space between its parts.

    Attributes:
        way: the name by which it is asked for.
        begin: what stands before all calls.
        call: what stands before a call's arguments, with a group ``name`` unless JSON names it.
        end: what stands after a call; there is but one call if that is nothing.
        close: what stands after all calls.
        argument: one argument, with groups ``key`` and ``value``; ``None`` if they are JSON. A
            group ``string`` says whether the value is text; else the tool's schema does.
        literals: whether a value without a schema may be other than text.
    """

    way: str
    begin: str
    call: str
    end: str
    close: str
    argument: str | None = None
    literals: bool = False


FORMS = (
    # Hermes, Qwen
    Form("tags", "<tool_call>", r"(?=\{)", "", "</tool_call>"),
    # Granite 3.1, which closes nothing
    Form("tags", "<tool_call>", r"(?=\[)", "", r"\Z"),
    # Qwen3-Coder
    Form(
        "tags", "<tool_call>", rf"<function={_NAME}>", "", r"</function>\s*</tool_call>",
        r"<parameter=(?P<key>[^<>\n]+)>\n?(?P<value>.*?)\n?</parameter>"
        r"(?=\s*(?:<parameter=[^<>\n]+>|</function>\s*</tool_call>))",
    ),
    # GLM-4.5 and later
    Form(
        "tags", "<tool_call>", rf"{_NAME}(?=\s*(?:<arg_key>|</tool_call>))", "", "</tool_call>",
        r"<arg_key>(?P<key>[^<>]+)</arg_key>\s*<arg_value>(?P<value>.*?)</arg_value>"
        r"(?=\s*(?:<arg_key>[^<>]+</arg_key>\s*<arg_value>|</tool_call>))",
        literals=True,
    ),
    # DeepSeek V3 and R1
    Form(
        "deepseek", "<｜tool▁calls▁begin｜>",
        rf"<｜tool▁call▁begin｜>function<｜tool▁sep｜>{_NAME}\s*```json\n",
        "```\\s*<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
    ),
    # DeepSeek V3.1
    Form(
        "deepseek", "<｜tool▁calls▁begin｜>", rf"<｜tool▁call▁begin｜>{_NAME}<｜tool▁sep｜>",
        "<｜tool▁call▁end｜>", "<｜tool▁calls▁end｜>",
    ),
    # DeepSeek V3.2 and V4
    Form(
        "deepseek", "<｜DSML｜(?:function|tool)_calls>", rf'<｜DSML｜invoke name="{_NAME}">',
        "</｜DSML｜invoke>", "</｜DSML｜(?:function|tool)_calls>",
        r'<｜DSML｜parameter name="(?P<key>[^"<>]+)" string="(?P<string>true|false)">'
        r"(?P<value>.*?)</｜DSML｜parameter>(?=\s*(?:<｜DSML｜parameter name="
        r"|</｜DSML｜invoke>\s*(?:<｜DSML｜invoke name=|</｜DSML｜(?:function|tool)_calls>)))",
    ),
    # Kimi K2
    Form(
        "kimi", r"<\|tool_calls_section_begin\|>",
        rf"<\|tool_call_begin\|>\s*(?:functions\.)?{_NAME}:\d+\s*<\|tool_call_argument_begin\|>",
        r"<\|tool_call_end\|>", r"<\|tool_calls_section_end\|>",
    ),
    # MiniMax M2
    Form(
        "minimax", "<minimax:tool_call>", rf'<invoke name="{_NAME}">', "</invoke>",
        "</minimax:tool_call>",
        r'<parameter name="(?P<key>[^"<>]+)">(?P<value>.*?)</parameter>'
        r"(?=\s*(?:<parameter name=|</invoke>\s*(?:<invoke name=|</minimax:tool_call>)))",
    ),
    # Llama 3
    Form("python_tag", r"<\|python_tag\|>", r"(?=\[)", "", ""),
    Form(
        "python_tag", r"<\|python_tag\|>", r"(?=\{)",
        r"(?:;(?=\s*\{)|(?=\n\s*\{)|(?!\s*[;{]))", "",
    ),
    # Mistral before and since 2025
    Form("json", r"\[TOOL_CALLS\]", r"(?=\[\s*\{)", "", ""),
    Form("json", r"(?:\[TOOL_CALLS\])?", rf"{_NAME}(?:\[CALL_ID\]\w{{1,64}})?\[ARGS\]", "", ""),
    # Granite 3.0 and Phi-4-mini
    Form("json", r"<\|tool_call\|>|functools", r"(?=\[\s*\{)", "", r"(?:<\|/tool_call\|>)?"),
)  # fmt: skip

_ATTEMPTS = {  # what is no mention of a form: every row's begin and call begin so
    "tags": "</?tool_call>",
    "deepseek": r"(?:<｜tool▁calls▁begin｜>\s*)?<｜tool▁call▁begin｜>\s*\w"
    r"|(?:<｜DSML｜(?:function|tool)_calls>\s*)?<｜DSML｜invoke name=",
    "kimi": r"(?:<\|tool_calls_section_begin\|>\s*)?<\|tool_call_begin\|>\s*\w",
    "minimax": r"<minimax:tool_call>\s*<invoke name=",
    "python_tag": r"<\|python_tag\|>",
    "json": r"\[TOOL_CALLS\]\s*(?:\[\s*\{|[\w.-]{1,128}\[)|\A[\w.-]{1,128}\[ARGS\]"
    r"|(?:<\|tool_call\|>|\bfunctools)\s*\[\s*\{",
}
_HARMONY = re.compile(r"\s*+(?:<\|start\|>assistant)?\s*+(?:to=[\w.-]{1,128}\s*+)?<\|channel\|>")
_TO = re.compile(r"(?:<\|channel\|>\w{1,20}|<\|start\|>assistant|\A)\s*+to=")
_MESSAGE = re.compile(
    r"\s*+(?P<start><\|start\|>assistant)?\s*+(?:to=(?P<first>[\w.-]{1,128})\s*+)?"
    r"<\|channel\|>(?P<channel>analysis|commentary|final)\s*+(?:to=(?P<name>[\w.-]{1,128})\s*+)?"
    r"(?:(?:<\|constrain\|>)?(?:json|code)\s*+)?<\|message\|>"
)
_CONTENT_END = re.compile(r"<\|(?:end|call|return)\|>|(?=<\|start\|>)")


def is_harmony(reply: str) -> bool:
    """Return whether a reply begins as gpt-oss's do and calls something."""
    return _HARMONY.match(reply) is not None and _TO.search(reply) is not None


def attempt(text: str, ways: Sequence[str], at: int = 0) -> re.Match[str] | None:
    """Find the first place where a text begins a form of these ways, well or badly."""
    marks = [_ATTEMPTS[way] for way in ways if way in _ATTEMPTS]
    return re.compile("|".join(marks)).search(text, at) if marks else None


def read_forms(text: str, ways: Sequence[str], tools: Sequence[Any]) -> tuple[list[Call], str]:
    """Return the calls of a text in order, and the words around them.

    Raises:
        NotJson: a form begins that cannot be read to its end.
    """
    calls: list[Call] = []
    words, at = "", 0
    while (found := attempt(text, ways, at)) and len(calls) <= MAX_CALLS:
        words += text[at : found.start()]
        at = _read(text, found.start(), ways, tools, calls)
    return calls, words + without_end_tokens(text[at:])


def read_harmony(reply: str) -> tuple[list[Call], str]:
    """Return the calls among the messages of gpt-oss, and its words outside ``analysis``.

    Raises:
        NotJson: the reply is anything but messages, or one to a tool cannot be read.
    """
    calls: list[Call] = []
    words, at, reply = "", 0, without_end_tokens(reply)  # <|call|> ends what was sampled
    while at < len(reply) and len(calls) <= MAX_CALLS:
        message = _MESSAGE.match(reply, at)
        if message is None or (at and message["start"] is None):
            raise NotJson(f"no message begins at {reply[at : at + 60]!r}")
        first, name, at = message["first"], message["name"], message.end()
        if first or name:
            if (first and name) or message["channel"] == "final":
                raise NotJson(f"a message to two tools, or a final one to a tool: {message[0]!r}")
            value, at = _json_at(reply, at)
            calls.append(call_of((first or name).removeprefix("functions."), value))
            at = _expect(r"<\|(?:call|end|return)\|>|\Z", reply, at)
            continue
        end = _CONTENT_END.search(reply, at)
        words += "" if message["channel"] == "analysis" or end is None else reply[at : end.start()]
        at = len(reply) if end is None else end.end()
    return calls, words


def _read(
    text: str, start: int, ways: Sequence[str], tools: Sequence[Any], calls: list[Call]
) -> int:
    """Read the calls of the form that begins there into ``calls``, and return where they end."""
    for form in FORMS:
        at = _after(form.begin, text, start) if form.way in ways else None
        call = re.compile(rf"\s*(?:{form.call})")
        if at is None or not call.match(text, at):
            continue
        while (begun := call.match(text, at)) and len(calls) <= MAX_CALLS:
            name, at = begun.groupdict().get("name"), begun.end()
            if form.argument is None:
                value, at = _json_at(text, at)
                calls += calls_of(value) if name is None else [call_of(name, value)]
            else:
                arguments, at = _arguments(text, at, form, str(name), tools)
                calls.append(Call(str(name), arguments))
            if not form.end:
                break
            at = _expect(form.end, text, at)
        return _expect(form.close, text, at)
    raise NotJson(f"no call begins at {text[start : start + 60]!r}")


def _arguments(
    text: str, at: int, form: Form, tool: str, tools: Sequence[Any]
) -> tuple[dict[str, Any], int]:
    """Read arguments between tags, and return where they end."""
    arguments: dict[str, Any] = {}
    one = re.compile(rf"\s*{form.argument}", re.DOTALL)
    while found := one.match(text, at):
        key, value, at = found["key"], found["value"], found.end()
        if key in arguments:
            raise NotJson(f"the argument {key!r:.80} occurs twice")
        is_text = found.groupdict().get("string")
        if is_text is None:
            arguments[key] = _typed(value, _schema(tool, key, tools), form.literals)
        else:
            arguments[key] = value if is_text == "true" else read_json(value)
    return arguments, at


def _typed(text: str, schema: dict[str, Any] | None, literals: bool) -> Any:
    """Convert a text to what the schema asks for; one that cannot be stays text."""
    if schema is None:  # as the models' own parsers do
        return _literal(text) if literals else None if text.lower() == "null" else text
    if schema.get("nullable") and text.lower() in ("null", "none"):  # as tools' schemas have it
        return None
    if schema.get("type") == "string":
        return text
    value = _literal(text)
    try:
        checked = schema_of(schema)
    except SchemaFault:
        return value
    return value if checked.fault(value) is None or checked.fault(text) is not None else text


def _literal(text: str) -> Any:
    for read in (read_json, read_value):
        try:
            return read(text)
        except NotJson:
            pass
    return text


def _schema(tool: str, key: str, tools: Sequence[Any]) -> dict[str, Any] | None:
    """Return the schema of an argument, with what it may refer to; ``None`` if it says no type."""
    for each in map(function_of, tools):
        whole = each.get("parameters")
        if each.get("name") == tool and isinstance(whole, dict):
            found = whole.get("properties", {}).get(key)
            if not isinstance(found, dict) or not _TYPES & set(found):
                return None
            return {k: v for k, v in whole.items() if k in ("$defs", "definitions")} | found
    return None


def _after(pattern: str, text: str, at: int) -> int | None:
    """Return where a pattern ends that stands there, after white space."""
    found = re.compile(rf"\s*(?:{pattern})").match(text, at)
    return None if found is None else found.end()


def _expect(pattern: str, text: str, at: int) -> int:
    end = _after(pattern, text, at)
    if end is None:
        raise NotJson(f"a call is not closed at {text[at : at + 60]!r}")
    return end


def _json_at(text: str, at: int) -> tuple[Any, int]:
    end = json_end(text, at := _expect("", text, at))
    return read_json(text[at:end]), end


def function_of(tool: Any) -> Any:
    """Return a tool's name and parameters, bare or under ``function``."""
    return tool["function"] if isinstance(tool, dict) and "function" in tool else tool


def calls_of(value: Any) -> list[Call]:
    """Parse one call, a list of them, or OpenAI's message that has them."""
    if isinstance(value, dict) and isinstance(value.get("tool_calls"), list):
        if set(value) - {"tool_calls", "role", "content"} or value.get("content"):
            raise NotJson("a message with more in it than tool_calls")
        value = value["tool_calls"]
    return [_named(each) for each in (value if isinstance(value, list) else [value])]


def _named(value: Any) -> Call:
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
    return call_of(value["name"], value.get("arguments", value.get("parameters", {})))


def call_of(name: str, arguments: Any) -> Call:
    """Make a call of arguments, an object or its JSON."""
    if isinstance(arguments, str):  # OpenAI gives them as JSON within JSON
        arguments = read_json(arguments) if arguments.strip() else {}
    if not isinstance(arguments, dict):
        raise NotJson(f"arguments must be an object, got {arguments!r:.60}")
    return Call(name, arguments)
