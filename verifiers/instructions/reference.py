"""Read references: which constraints a reply must follow, with which arguments."""

# ruff: noqa: SIM905 # lists of words read best as text

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..text.words import canonical, collapse_spaces, folded_words, strip_comments
from . import (  # noqa: F401  # each registers its constraints when it is imported
    copying,
    counts,
    custom,
    formats,
    keywords,
    language,
    layout,
    lengths,
    ratios,
    word_patterns,
)
from .registry import CONSTRAINTS, Constraint

LEFT_OUT = {
    "words:start_verb": "needs a tagger of parts of speech",
    "words:odd_even_syllables": "needs a dictionary of syllables",
}
"""Public constraints that are not here, and why."""


KEYWORDS = frozenset(
    "keyword keywords keyword1 keyword2 keyword3 keyword4 keyword5 word first_word last_word "
    "end_phrase".split()
)
"""Arguments whose words a reply is to hold; by themselves they are no reply."""


@dataclass(frozen=True)
class Instruction:
    """A constraint with its arguments."""

    constraint: Constraint
    arguments: Mapping[str, Any]

    def followed_by(self, reply: str) -> bool:
        """Return whether a reply follows it, as written and without its HTML comments."""
        written = bool(self.constraint.check(reply, **self.arguments))
        if not written or self.constraint.whole or "-->" not in reply:
            return written
        return bool(self.constraint.check(strip_comments(reply), **self.arguments))

    @property
    def keywords(self) -> list[str]:
        """The words that a reply must contain."""
        return [
            word
            for name in KEYWORDS.intersection(self.arguments)
            for word in folded_words(" ".join(_texts(self.arguments[name])))
        ]


def read_instructions(reference: Any) -> list[Instruction]:
    """Read the instructions of a reference in either of its two forms.

    Raises:
        ValueError: there are none, one is not known, or its arguments do not fit; the message
            names the instruction, the argument and the rule.
    """
    pairs = _pairs(reference)
    if not pairs:
        raise ValueError("expected one instruction at least, got none")
    return [_instruction(name, arguments) for name, arguments in pairs]


def prompt_of(reference: Any) -> str:
    """Return the prompt of a public row as replies are compared with it, or an empty text."""
    prompt = reference.get("prompt") if isinstance(reference, Mapping) else None
    return collapse_spaces(canonical(prompt).replace("*", "")) if isinstance(prompt, str) else ""


def _pairs(reference: Any) -> list[tuple[Any, Any]]:
    if isinstance(reference, Mapping):
        row: Mapping[str, Any] = {"instruction_id_list": None, "kwargs": None, **reference}
        ids, arguments = row["instruction_id_list"], row["kwargs"]
        if not _is_list(ids) or not _is_list(arguments) or len(ids) != len(arguments):
            raise ValueError(
                "expected instruction_id_list and kwargs, lists of one length, "
                f"got {reference!r:.120}"
            )
        return list(zip(ids, arguments, strict=True))
    if not _is_list(reference) or not all(isinstance(i, Mapping) for i in reference):
        raise ValueError(
            'expected a list of instructions such as {"id": "punctuation:no_comma"}, or a public '
            f"row, got {reference!r:.80}"
        )
    return [(i.get("id"), {n: v for n, v in i.items() if n != "id"}) for i in reference]


def _texts(value: Any) -> list[str]:
    return value if isinstance(value, list) else [value]


def _is_list(value: Any) -> bool:
    return isinstance(value, Sequence) and not isinstance(value, str)


def _instruction(name: Any, arguments: Any) -> Instruction:
    if not isinstance(name, str) or name not in CONSTRAINTS:
        why = LEFT_OUT.get(name) if isinstance(name, str) else None
        raise ValueError(f"no constraint is called {name!r:.80}{f': it {why}' if why else ''}")
    arguments = {} if arguments is None else arguments  # as rows have it that take none
    if not isinstance(arguments, Mapping):
        raise ValueError(f"{name}: arguments must be an object, got {arguments!r:.80}")
    given = {str(n): _whole(v) for n, v in arguments.items() if v is not None}
    fault = CONSTRAINTS[name].fault(given)
    if fault is not None:
        raise ValueError(fault)
    return Instruction(CONSTRAINTS[name], given)


def _whole(value: Any) -> Any:
    """Convert arguments from tables of columns, which have 3.0 for 3 and arrays for lists."""
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return list(value) if isinstance(value, tuple) else value
