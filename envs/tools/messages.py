"""Messages to a policy: descriptions of its tools, and their results."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..datasets.source import Generated, Mapped, Rows, Source
from ..task import Task

_HERMES = """\
You may call the tools listed within <tools></tools>, as JSON, one to a line:
<tools>
{tools}
</tools>
To call a tool, write its name and arguments as a JSON object within <tool_call></tool_call>:
<tool_call>
{{"name": ..., "arguments": {{...}}}}
</tool_call>
What it answers comes in the next message."""


def hermes(schemas: Sequence[Mapping[str, Any]]) -> str:
    """Return a system message in the form of Hermes' and Qwen's chat templates."""
    return _HERMES.format(tools="\n".join(json.dumps(s, ensure_ascii=False) for s in schemas))


def with_system(task: Task, text: str) -> Task:
    """Return the task with a system message, after its own if it begins with one."""
    first, rest = task.messages[0], task.messages[1:]
    if first["role"] == "system":
        return replace(task, prompt=[{**first, "content": f"{first['content']}\n\n{text}"}, *rest])
    return replace(task, prompt=[{"role": "system", "content": text}, first, *rest])


def prompted(source: Source, text: str) -> Source:
    """Return a source whose tasks all have a system message."""
    if isinstance(source, Rows):
        rows = Rows([with_system(task, text) for task in source.tasks], source.split)
        rows.bad_rows = source.bad_rows
        return rows
    if type(source) is Generated:  # stays one: an audit knows how to hold it to its splits
        return source.altered(make=partial(_made, source.make, text))
    return Mapped(source, partial(with_system, text=text))


def _made(make: Callable[[np.random.Generator], Task], text: str, rng: np.random.Generator) -> Task:
    return with_system(make(rng), text)


def as_text(answer: Any) -> str:
    """Convert a tool's result to text: JSON if it is not text already."""
    if isinstance(answer, str):
        return answer
    try:
        return json.dumps(answer, ensure_ascii=False)
    except (TypeError, ValueError, RecursionError):
        return str(answer)


def shortened(text: str, longest: int) -> str:
    r"""Shorten a text to about ``longest`` characters: its head and tail, and the omission.

    Example:
        >>> shortened("a" * 100, 10)
        'aaaaa\n[... 90 characters left out ...]\naaaaa'
    """
    if len(text) <= longest:
        return text
    head, tail = text[: longest // 2], text[len(text) - (longest + 1) // 2 :]
    return f"{head}\n[... {len(text) - longest} characters left out ...]\n{tail}"
