"""References of judges: the question, the known answer, the rubric."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from typing import Any

from ..text.thought import UNCLOSED, after_thinking, without_end_tokens
from ..text.words import has_content, replace_surrogates


@dataclass(frozen=True, slots=True)
class JudgeReference:
    """A reference as judges read it.

    Attributes:
        messages: the conversation that the reply answers, as ``(role, content)``; may be empty.
        answer: the known answer, or the reply to compare with; empty if there is none.
        rubric: what to look at; empty if the reference says nothing.
    """

    messages: tuple[tuple[str, str], ...] = ()
    answer: str = ""
    rubric: str = ""

    @property
    def question(self) -> str:
        """The conversation as one text; a single question has no role."""
        if len(self.messages) == 1:
            return self.messages[0][1]
        return "\n\n".join(f"{role}: {content}" for role, content in self.messages)


def read_judge_reference(reference: Any) -> JudgeReference:
    """Read a reference.

    Args:
        reference: an answer (a string or a number), ``None``, or
            ``{"question": ..., "answer": ..., "rubric": ...}`` in which each may be missing. The
            question may be a list of chat messages, the rubric a list of strings. Other keys
            are left to other verifiers.

    Raises:
        ValueError: it is none of these.
    """
    if not isinstance(reference, dict):
        return JudgeReference(answer=_text("the reference", reference))
    question = reference.get("messages", reference.get("question"))
    rubric = reference.get("rubric")
    points = rubric if isinstance(rubric, list) else [rubric]
    return JudgeReference(
        _messages(question),
        _text('"answer"', reference.get("answer")),
        "\n".join(_text('"rubric"', point) for point in points),
    )


def _messages(question: Any) -> tuple[tuple[str, str], ...]:
    if not isinstance(question, list):
        text = _text('"question"', question)
        return (("user", text),) if text else ()
    good = [m for m in question if isinstance(m, dict) and _speaks(m)]
    if len(good) != len(question):
        raise ValueError('"messages" must be a list of {"role": text, "content": text}')
    return tuple((m["role"], m["content"]) for m in good)


def _speaks(message: dict[Any, Any]) -> bool:
    return isinstance(message.get("role"), str) and isinstance(message.get("content"), str)


def _text(name: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, str):
        return value.strip()
    if isinstance(value, int | float) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"{name} must be a text or a number, got a {type(value).__name__}")


def shown_part(reply: str, *, thoughts: bool, longest: int) -> str:
    """Return the part of a reply that a judge sees, without end tokens that a decoder kept.

    Raises:
        ValueError: there is nothing to judge, or too much; the message says which.
    """
    reply = without_end_tokens(reply)
    text = after_thinking(reply)
    if text is None:
        raise ValueError(UNCLOSED)
    if not (has_content(replace_surrogates(text)) or any(map(_is_symbol, text))):
        raise ValueError("the reply says nothing")
    shown = (reply if thoughts else text).strip()
    if len(shown) > longest:
        raise ValueError(f"the reply is longer than {longest} characters")
    return shown


def _is_symbol(character: str) -> bool:
    """Return whether a character is a symbol beyond ASCII, such as ≤ or an emoji."""
    return character > "\x7f" and unicodedata.category(character) in ("Sm", "So")
