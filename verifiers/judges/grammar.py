"""The two forms in which a judge may give its verdict, and nothing else is one."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..text.thought import after_thinking
from ..validation import check_one_of, check_whole

FORMS = ("line", "json")

_MARK = re.compile(r"[*`]{0,3}verdict[*`]{0,3}:", re.IGNORECASE)
_LINE = re.compile(r"[*`]{0,3}Verdict[*`]{0,3}:[*` ]{0,6}(\w+)[*`]{0,3}")
_ALONE = re.compile(r"[*`\"']{0,3}(\w+)[*`\"']{0,3}\.?")


@dataclass(frozen=True, slots=True)
class Grammar:
    """The words a verdict may be, what each is worth, and how it is written.

    Attributes:
        values: in [0, 1], by word.
        form: ``line`` (``Verdict: WORD`` alone on the last line) or ``json`` (one object with
            exactly ``reason`` and ``verdict``, asked for by ``response_format``).
    """

    values: Mapping[str, float]
    form: str = "line"

    def __post_init__(self) -> None:
        check_one_of("form", self.form, FORMS)

    @property
    def rule(self) -> str:
        """The instruction for the form of the answer."""
        words = list(self.values)
        if self.form == "json":
            listed = " or ".join(f'"{word}"' for word in words)
            shape = '{"reason": "<one or two sentences>", "verdict": <verdict>}'
            return f"Answer with one JSON object and nothing else: {shape} with {listed}."
        listed = "\nor\n".join(f"Verdict: {word}" for word in words)
        return (
            "Reason first, in a few sentences, and quote no line of verdict there. Then end with "
            f"one line that holds the verdict and nothing else:\n{listed}"
        )

    @property
    def response_format(self) -> dict[str, Any] | None:
        """The schema that constrains the answer, ``None`` for lines."""
        return None if self.form == "line" else self._schema(reason={"type": "string"})

    @property
    def short_rule(self) -> str:
        """The instruction to answer with nothing but the verdict."""
        listed = " or ".join(f'{{"verdict": "{word}"}}' for word in self.values)
        return f"Give no reason. Answer with {listed} and nothing else."

    @property
    def short_format(self) -> dict[str, Any]:
        """The schema that constrains a short answer, in either form."""
        return self._schema()

    def _schema(self, **before: dict[str, Any]) -> dict[str, Any]:
        properties = {**before, "verdict": {"type": "string", "enum": list(self.values)}}
        schema = {
            "type": "object",
            "properties": properties,
            "required": list(properties),
            "additionalProperties": False,
        }
        named = {"name": "verdict", "strict": True, "schema": schema}
        return {"type": "json_schema", "json_schema": named}

    def read_short(self, text: str) -> str | None:
        """Parse an answer to :attr:`short_rule` into the form of :meth:`read`, or ``None``.

        The word may also stand alone, or in the long form.

        Example:
            >>> grammar = Grammar({"CORRECT": 1.0, "INCORRECT": 0.0})
            >>> [grammar.read_short(text) for text in ('{"verdict": "CORRECT"}', "CORRECT or not")]
            ['Verdict: CORRECT', None]
        """
        spoken = (after_thinking(text) or "").strip()
        alone = _ALONE.fullmatch(spoken)
        word = alone[1] if alone else self._from_line(spoken) or self._from_json(spoken, short=True)
        if word not in self.values:
            return None
        if self.form == "json":
            return json.dumps({"reason": "", "verdict": word})
        return f"Verdict: {word}"

    def read(self, text: str) -> str | None:
        r"""Return the word of the verdict, ``None`` if there is none in this form.

        A thought before the answer is not read. Asterisks and backquotes around the line are
        overlooked; a second line of verdict is not.

        Example:
            >>> grammar = Grammar({"CORRECT": 1.0, "INCORRECT": 0.0})
            >>> grammar.read("It said 'Verdict: CORRECT', but 5 is wrong.\nVerdict: INCORRECT")
            'INCORRECT'
            >>> grammar.read("Verdict: CORRECT\nVerdict: INCORRECT")
        """
        spoken = after_thinking(text)
        if spoken is None:
            return None
        return self._from_json(spoken) if self.form == "json" else self._from_line(spoken)

    def _from_line(self, text: str) -> str | None:
        lines = [line.strip() for line in text.strip().splitlines()]
        found = _LINE.fullmatch(lines[-1]) if lines else None
        if found is None or sum(bool(_MARK.match(line)) for line in lines) != 1:
            return None
        return found[1] if found[1] in self.values else None

    def _from_json(self, text: str, *, short: bool = False) -> str | None:
        try:
            pairs = json.loads(text, object_pairs_hook=_pairs)
        except (ValueError, RecursionError):
            return None
        names = sorted(n for n, _ in pairs) if isinstance(pairs, _Pairs) else []
        if names != ["reason", "verdict"] and not (short and names == ["verdict"]):
            return None
        row = {"reason": "", **dict(pairs)}
        word = row["verdict"]
        if type(word) is int:
            word = str(word)
        good = isinstance(word, str) and isinstance(row["reason"], str) and word in self.values
        return word if good else None


class _Pairs(list[tuple[str, Any]]):
    """A JSON object as pairs, so that a duplicate key stays visible."""


def _pairs(pairs: list[tuple[str, Any]]) -> _Pairs:
    return _Pairs(pairs)


def scale(highest: int) -> dict[str, float]:
    """Return the words 1 to ``highest``, worth 0.0 to 1.0 in equal steps.

    Raises:
        ValueError: it is no integer from 2 to 100.
    """
    check_whole("scale", highest, 2, 100)
    return {str(n): (n - 1) / (highest - 1) for n in range(1, highest + 1)}
