"""Prompts of data sets, and replies to them that earn full marks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...accuracy import THINK, thought

BOXED = "Solve the problem step by step, then put the final number in \\boxed{}."
BOXED_ANSWER = "Solve the problem step by step, then put the final answer in \\boxed{}."


def asked(problem: str, how: str, *, think: bool) -> str:
    """Return a prompt: the problem, and how to answer it."""
    return f"{problem.strip()}\n\n{THINK if think else how}"


def solved(steps: str, answer: str, *, think: bool) -> str:
    """Return a reply that earns full marks: the steps, then the answer in the expected place."""
    if think:
        return thought(steps or "I work it out.", answer)
    return f"{steps}\n\\boxed{{{answer}}}".lstrip()


def whole_number(value: object) -> int | None:
    """Parse an integer given as a number or as text: 25, 25.0, "25", "025", "25.0"."""
    if isinstance(value, bool):
        return None
    try:
        found = float(str(value).strip())
    except ValueError:
        return None
    return int(found) if found.is_integer() else None


_STDIO = "It reads standard input and writes standard output."


def program_prompt(question: str, starter: str, problem: Mapping[str, Any]) -> str:
    """Return the prompt of a programming problem, with starter code and the required form."""
    parts = [question.strip()]
    calls = problem.get("calls")
    form = _STDIO
    if calls is not None:
        owner, dot, name = calls["function"].rpartition(".")
        form = f"It defines the {'method' if dot else 'function'} {name}"
        form += f" of a class {owner}." if dot else "."
    if starter.strip():
        parts.append(f"Begin with:\n\n```python\n{starter.rstrip()}\n```")
    parts.append(f"Reply with a Python program in a ```python block. {form}")
    return "\n\n".join(parts)
