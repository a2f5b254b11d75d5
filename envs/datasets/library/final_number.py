"""Base of the mathematical data sets: prompts and solutions."""

from __future__ import annotations

from ...accuracy import THINK

BOXED = "Solve the problem step by step, then put the final number in \\boxed{}."
BOXED_ANSWER = "Solve the problem step by step, then put the final answer in \\boxed{}."


def asked(problem: str, how: str, *, think: bool) -> str:
    """Return a prompt: the problem, and how to answer it."""
    return f"{problem.strip()}\n\n{THINK if think else how}"


def solved(steps: str, answer: str, *, think: bool) -> str:
    """Return a reply that earns full marks: the steps, then the answer in the expected place."""
    if think:
        return f"<think>{steps or 'I work it out.'}</think><answer>{answer}</answer>"
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
