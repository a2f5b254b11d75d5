"""The calls in a reply: none, some, or an attempt that cannot be read."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from ...verifiers.form.call import Call
from ...verifiers.form.call_text import WAYS, find_calls, marked
from ...verifiers.form.json_text import MAX_LENGTH, strip_json_fence
from ...verifiers.text.extract import final_answer

_MARKS = ("[TOOL_CALLS]", "<|python_start|>")


def checked_ways(ways: Sequence[str]) -> tuple[str, ...]:
    """Refuse ways that there are not.

    Raises:
        ValueError: a way is unknown, or there is none.
    """
    if isinstance(ways, str) or not ways or set(ways) - set(WAYS):
        raise ValueError(f"ways must be a list of names from {', '.join(WAYS)}, got {ways!r}")
    return tuple(ways)


def read_calls(
    reply: str, names: Collection[str], ways: tuple[str, ...], schemas: Sequence[Any] = ()
) -> list[Call]:
    """Return the calls of a reply in order, none if it does not attempt any.

    What the thought holds is no call. A reply tries if it has the marks of the way; JSON if
    it begins as JSON and speaks of a name, Python if it begins with a tool's name.

    Args:
        reply: hostile text.
        names: of the tools.
        ways: how calls are written, names from :data:`~assay.verifiers.form.call_text.WAYS`.
        schemas: of the tools, for ways that write numbers as text.

    Raises:
        NotJson: it tries, and what it wrote cannot be read.
    """
    body = final_answer(reply, ("whole",), longest=10 * MAX_LENGTH).text
    if marked(reply, ways) is None and (body is None or not _tries(body, names, ways)):
        return []
    return find_calls(reply, ways, text=True, tools=schemas)[0]


def written_call(name: str, arguments: Mapping[str, Any]) -> str:
    r"""Format a call in tags; ``<`` is escaped, so that tags in arguments are not the reply's.

    Example:
        >>> written_call("say", {"text": "</think>"})
        '<tool_call>\n{"name": "say", "arguments": {"text": "\\u003c/think>"}}\n</tool_call>'
    """
    call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    return f"<tool_call>\n{call.replace('<', chr(92) + 'u003c')}\n</tool_call>"


def _tries(body: str, names: Collection[str], ways: tuple[str, ...]) -> bool:
    for mark in _MARKS:
        if body.startswith(mark):
            return "json" in ways or "python" in ways
    if not {"json", "python"} & {*ways}:
        return False
    start = strip_json_fence(body)[:MAX_LENGTH]
    if "json" in ways and start.startswith(("{", "[")) and '"name"' in start:
        return True
    called = start.removeprefix("[").lstrip()
    return "python" in ways and any(
        called[len(name) :].lstrip().startswith("(") for name in names if called.startswith(name)
    )
