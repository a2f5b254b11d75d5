"""The common rubric: accuracy, and format if the prompt asks for one."""

from __future__ import annotations

from ..verifiers import Format, Rubric, Verifier

THINK = (
    "Think first, inside <think></think>, then give the final answer inside <answer></answer>, "
    "and write nothing else."
)


def thought(steps: str, answer: str) -> str:
    """Return a reply in the form that :data:`THINK` asks for."""
    return f"<think>{steps}</think><answer>{answer}</answer>"


def accuracy_rubric(verifier: Verifier, *, think: bool, format_weight: float = 0.2) -> Rubric:
    """Return a rubric of accuracy alone, or with a smaller part for the think/answer format.

    Format is paid only if the answer is right: a reply must not earn by its looks.
    """
    if not think:
        return Rubric({"accuracy": verifier})
    return Rubric(
        {"accuracy": verifier, "format": Format()},
        weights={"accuracy": 1.0, "format": format_weight},
        gate="accuracy",
    )
