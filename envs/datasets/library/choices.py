"""Options in the layouts that public data sets give them, and which of them is right."""

from __future__ import annotations

from collections.abc import Sequence
from string import ascii_uppercase
from typing import Any


def options_of(value: Any, field: str = "choices") -> tuple[list[str], list[str]]:
    """Return the texts of the options, and their labels if they have any.

    Args:
        value: a list of texts, ``{"text": [...], "label": [...]}`` as ARC has it, or texts by
            label.
        field: its field, for errors.

    Raises:
        ValueError: it is none of these, has not from 2 to 26 options, or one of them says nothing.
    """
    labels: Sequence[Any] = ()
    texts: Any = value
    if isinstance(value, dict):
        arc = set(value) >= {"text", "label"} and isinstance(value["text"], list)
        texts, labels = (
            (value["text"], value["label"]) if arc else (list(value.values()), list(value))
        )
    if not isinstance(texts, list) or not 2 <= len(texts) <= len(ascii_uppercase):
        raise ValueError(f"{field!r} must have from 2 to 26 options, got {value!r:.80}")
    if labels and (not isinstance(labels, list) or len(labels) != len(texts)):
        raise ValueError(f"{field!r} must have a label for each option, got {value!r:.80}")
    for text in texts:
        if not isinstance(text, str | int | float) or text != text or not str(text).strip():
            raise ValueError(f"{field!r} must have options of text or numbers, got {text!r:.80}")
    return [str(text).strip() for text in texts], [str(label) for label in labels]


def right_letter(
    answer: Any, options: Sequence[str], labels: Sequence[str] = (), field: str = "answer"
) -> str:
    """Return the letter of the correct option.

    Args:
        answer: a label, if the options have labels; else an index from 0 or a letter; or the
            text of an option.
        options: their texts.
        labels: of the data's own, such as ``1`` to ``4``; the prompt shows letters instead.
        field: the answer's field, for errors.

    Raises:
        ValueError: it names no option.
    """
    letters = ascii_uppercase[: len(options)]
    place = None
    if labels and str(answer) in labels:
        place = list(labels).index(str(answer))
    elif not labels and isinstance(answer, int) and not isinstance(answer, bool):
        place = answer if 0 <= answer < len(options) else None
    elif not labels and isinstance(answer, str) and answer.strip() in [*letters]:
        place = letters.index(answer.strip())
    elif isinstance(answer, str) and answer.strip() in options:
        place = list(options).index(answer.strip())
    if place is None:
        known = ", ".join(labels) if labels else f"an index from 0, a letter to {letters[-1]}"
        raise ValueError(f"{field!r} must name an option ({known}), got {answer!r:.80}")
    return letters[place]


def shown(options: Sequence[str]) -> str:
    """Render options for a prompt: one per line, each with its letter."""
    rows = zip(ascii_uppercase, options, strict=False)
    return "\n".join(f"{letter}) {text}" for letter, text in rows)
