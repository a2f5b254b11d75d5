"""Markdown: does the reply have the headings, lists, tables, code and bold that are required?"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..text.fences import unfenced
from ..text.thought import UNCLOSED, after_thinking
from ..text.words import canonical, has_content
from ..verdict import Status, Verdict
from ..verifier import Verifier
from .document import Document, normalize_heading

Count = int | Sequence[int | None]
_LARGEST = 10_000
_LEVEL = re.compile(r"(#{0,6})(?:[ \t]+|$)|")


class MarkdownStructure(Verifier):
    r"""Full marks for a reply that has, after its thought, all the required structure.

    Empty parts do not count: each heading, item, row, bold text and block of code needs a letter or
    a digit. The content of a code fence is code, not structure; an unclosed fence fails, and one
    around the whole reply is ignored if its language is ``markdown``. HTML comments are ignored.

    Reference: an object of rules, such as ``{"headings": ["## Plan", "Result"], "bullets": 3}``,
    or ``None`` if rules are given here. A reference's rule overrides one of the same name.

    Args:
        headings: in this order, with others before, between and after. ``"## Plan"`` has that
            text and that level, ``"Plan"`` that text, ``"##"`` that level. One given by its text
            stands exactly once. Case, emphasis and a colon at the end make no difference.
        bullets: how many different bullets there are, of all lists; those within another bullet
            do not count. A number is exact; ``[3, None]`` is three or more, ``[3, 5]`` a range.
        numbers: the same for numbered items.
        table: the texts of the head's cells, or how many columns; in one table with at least one
            row, every row of as many cells.
        code: the language of a code fence.
        bold: how many different texts are bold, counted as bullets are.
        graded: pay the share of the rules that are kept.

    Raises:
        ValueError: a rule cannot be used.

    Example:
        >>> report = MarkdownStructure(headings=["# Plan", "# Result"], bullets=[2, None])
        >>> report.verify("# Plan\n- add\n- check\n# Result\nIt is 42.", None).score
        1.0
        >>> report.verify("# Plan\n- add\n- check\n# Result", None).reason
        "headings: there is nothing under 'result'"
    """

    judges_form = True

    def __init__(
        self,
        *,
        headings: Sequence[str] | None = None,
        bullets: Count | None = None,
        numbers: Count | None = None,
        table: Sequence[str] | int | None = None,
        code: str | None = None,
        bold: Count | None = None,
        graded: bool = False,
    ) -> None:
        self.headings = headings
        self.bullets = bullets
        self.numbers = numbers
        self.table = table
        self.code = code
        self.bold = bold
        self.graded = graded
        fault = _fault(self._own())
        if fault:
            raise ValueError(fault)

    def _own(self) -> dict[str, Any]:
        own = {name: getattr(self, name) for name in _RULES}
        return {name: value for name, value in own.items() if value is not None}

    def check_reference(self, reference: Any) -> str | None:
        """Say which rule cannot be used, or that there is none."""
        if reference is not None and not isinstance(reference, Mapping):
            return f"the reference must be an object of rules or null, got {reference!r:.99}"
        rules = {**self._own(), **(reference or {})}
        return _fault(rules) if rules else f"give at least one rule of {', '.join(_RULES)}"

    def oracle_reply(self, reference: Any) -> str | None:
        """Return everything that is required, in order."""
        rules = {**self._own(), **(reference or {})}
        return "\n\n".join(r.minimal(rules[name]) for name, r in _RULES.items() if name in rules)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply in one pass over its lines."""
        text = after_thinking(reply)
        if text is None:
            return _wrong(UNCLOSED, {})
        rules = {**self._own(), **(reference or {})}
        document = Document(unfenced(text, ("markdown", "md")))
        if document.unclosed:
            return _wrong("a code fence is never closed", dict.fromkeys(rules, 0.0))
        faults = {n: r.fault(document, rules[n]) for n, r in _RULES.items() if n in rules}
        parts = {name: float(not fault) for name, fault in faults.items()}
        reason = "; ".join(f"{name}: {fault}" for name, fault in faults.items() if fault)
        if not reason:
            return Verdict(Status.CORRECT, 1.0, "well formed", parts=parts)
        return _wrong(reason, parts, score=sum(parts.values()) / len(parts) if self.graded else 0.0)


def _headings(document: Document, wanted: Sequence[str]) -> str:
    """Return what is wrong with the headings, empty if nothing. So do all rules below."""
    left = iter(document.headings)
    stands = Counter(heading.text for heading in document.headings)
    for heading in wanted:
        level, text = _heading(heading)
        if text and stands[text] > 1:
            return f"{text!r} occurs {stands[text]} times"
        found = next((h for h in left if level in (0, h.level) and text in ("", h.text)), None)
        if found is None:
            return f"{heading!r} is missing or out of order"
        if not found.says:
            return f"there is nothing under {found.text!r}"
        if not found.text:
            return f"a heading of level {level} has no text"
    return ""


def _heading(wanted: str) -> tuple[int, str]:
    """Parse a level (0 for any) and a text (empty for any)."""
    signs = _LEVEL.match(wanted.strip())
    level = len(signs[1] or "") if signs else 0
    return level, normalize_heading(wanted.strip()[level:])


def _counted(found: Sequence[str], wanted: Count, what: str) -> str:
    least, most = _range(wanted)
    number = len(
        {canonical(normalize_heading(text)).rstrip(" .,;!") for text in found if has_content(text)}
    )
    if least <= number and (most is None or number <= most):
        return ""
    asked = f"{least}" if least == most else f"{least} to {most}" if most else f"{least} or more"
    return f"{number} {what}, not {asked}"


def _range(count: Count) -> tuple[int, int | None]:
    if isinstance(count, int):
        return count, count
    least, most = count
    return least or 1, most


def _table(document: Document, wanted: Sequence[str] | int) -> str:
    columns = None if isinstance(wanted, int) else [normalize_heading(text) for text in wanted]
    number = wanted if isinstance(wanted, int) else len(wanted)
    fitting = [
        t
        for t in document.tables
        if len(t.columns) == number and (columns is None or t.columns == columns)
    ]
    if not fitting:
        return "no table has these columns"
    if any(_full(t.rows, number) for t in fitting):
        return ""
    return "the table has no row, a row without content, or one of another length"


def _full(rows: list[list[str]], columns: int) -> bool:
    full = all(len(row) == columns and any(map(has_content, row)) for row in rows)
    return bool(rows) and full


def _code(document: Document, language: str) -> str:
    if any(f.language == language.lower() and f.says for f in document.fences):
        return ""
    return f"no closed fence of {language} holds code"


def _section(wanted: str) -> str:
    level, text = _heading(wanted)
    return f"{'#' * (level or 2)} {text or 'part'}\nsome text"


def _grid(wanted: Sequence[str] | int) -> str:
    columns = [f"c{n}" for n in range(wanted)] if isinstance(wanted, int) else list(wanted)
    rows = (columns, ["---"] * len(columns), ["42"] * len(columns))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _fault(rules: Mapping[str, Any]) -> str | None:
    for name, value in rules.items():
        if name not in _RULES:
            return f"there is no rule {name!r:.60}; the rules are {', '.join(_RULES)}"
        if not _RULES[name].usable(value):
            return f"{name} must be {_RULES[name].remedy}, got {value!r:.99}"
    return None


def _texts(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and 1 <= len(value) <= 100
        and all(isinstance(text, str) and text.strip() for text in value)
    )


def _is_headings(value: Any) -> bool:
    return _texts(value) and all(any(_heading(text)) for text in value)


def _whole(value: Any) -> bool:
    return type(value) is int and 1 <= value <= _LARGEST


def _is_count(value: Any) -> bool:
    if not isinstance(value, list | tuple):
        return _whole(value)
    if len(value) != 2 or not _whole(value[0]):
        return False
    return value[1] is None or (_whole(value[1]) and value[0] <= value[1])


def _is_table(value: Any) -> bool:
    return _whole(value) or (_texts(value) and all(normalize_heading(text) for text in value))


def _is_word(value: Any) -> bool:
    return isinstance(value, str) and len(value.split()) == 1 and value == value.strip()


@dataclass(frozen=True)
class _Rule:
    """One rule.

    Attributes:
        fault: what is wrong with a document, empty if nothing.
        minimal: the least text that keeps the rule.
        usable: whether a value can be used.
        remedy: the values that can, in words.
    """

    fault: Callable[[Document, Any], str]
    minimal: Callable[[Any], str]
    usable: Callable[[Any], bool]
    remedy: str


def _of_number(part: str, what: str, form: str) -> _Rule:
    return _Rule(
        lambda document, wanted: _counted(getattr(document, part), wanted, what),
        lambda wanted: "\n".join(form % n for n in range(1, _range(wanted)[0] + 1)),
        _is_count,
        f"a whole number from 1 to {_LARGEST}, or two such as [3, 5] or [3, null]",
    )


_RULES = {
    "headings": _Rule(
        _headings,
        lambda wanted: "\n".join(map(_section, wanted)),
        _is_headings,
        "a list of texts, of levels such as '##', or of both such as '## Plan'",
    ),
    "bullets": _of_number("bullets", "bullets", "- point %d"),
    "numbers": _of_number("numbers", "numbered items", "1. step %d"),
    "table": _Rule(
        _table, _grid, _is_table, "a list of the columns' texts, or how many columns there are"
    ),
    "code": _Rule(
        _code, lambda wanted: f"```{wanted}\n42\n```", _is_word, "one word, such as 'python'"
    ),
    "bold": _of_number("bold", "bold texts", "**word %d**"),
}


def _wrong(reason: str, parts: dict[str, float], score: float = 0.0) -> Verdict:
    return Verdict(Status.UNPARSEABLE, score, reason, parts=parts)
