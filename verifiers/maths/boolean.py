r"""Formulas of logic and of sets: ``\neg p \vee q`` is ``p \to q``, ``A - B`` ``A \cap B^c``.

Two are the same if their truth tables are; a table is one integer with a bit for each row.
"""

from __future__ import annotations

import functools
import re

from .formula import UnreadError

_MOST_LETTERS, _MOST_TOKENS = 6, 100
_TOKEN = re.compile(
    r"(?:\s|\\(?:left|right)(?![A-Za-z]))*"
    r"(\\[A-Za-z]+|<->|<=>|->|=>|[A-Za-z](?:_\{?\d\}?)?|[(){}^'~¬∧∨→⇒↔⇔∩∪-])\s*"
)
_LOGIC = {
    **dict.fromkeys(("\\wedge", "\\land", "∧"), "and"),
    **dict.fromkeys(("\\vee", "\\lor", "∨"), "or"),
    **dict.fromkeys(("\\neg", "\\lnot", "\\sim", "¬", "~"), "not"),
    **dict.fromkeys(("\\to", "\\rightarrow", "\\Rightarrow", "\\implies"), "to"),
    **dict.fromkeys(("->", "=>", "→", "⇒"), "to"),
    **dict.fromkeys(("\\leftrightarrow", "\\Leftrightarrow", "\\iff"), "iff"),
    **dict.fromkeys(("<->", "<=>", "↔", "⇔"), "iff"),
}
_SETS = {
    **dict.fromkeys(("\\cap", "∩"), "and"),
    **dict.fromkeys(("\\cup", "∪"), "or"),
    **dict.fromkeys(("\\setminus", "\\backslash", "-"), "minus"),
    **dict.fromkeys(("\\complement", "\\prime", "'"), "c"),
    **dict.fromkeys(("\\overline", "\\bar"), "over"),
}
_OF_ALGEBRA = frozenset(("-", "'", "\\prime", "\\overline", "\\bar"))  # A - B may be a number
_PROBABILITY = re.compile(
    r"(?:(?<![A-Za-z\\])(?:P|Pr)|\\Pr|\\mathbb ?\{?P\}?|\\(?:text|mathrm)\{Pr?\}) ?(?:\\left ?)?"
    r"\((?![I-Z]\))([^()]*(?:\([^()]*\)[^()]*)*)\)"
)
_BRACKETS = {"(": ")", "{": "}"}


def same_table(gold: str, answer: str) -> bool | None:
    """Return whether two formulas of logic, or of sets, say the same; ``None`` if one is none."""
    for signs in (_LOGIC, _SETS):
        left = _tokens(gold, signs)
        if left is None or not any(sign in gold for sign in signs if sign not in _OF_ALGEBRA):
            continue
        right = _tokens(answer, signs)
        letters = sorted({token for token in [*left, *(right or ())] if token[:1] == "@"})
        if right is None or len(letters) > _MOST_LETTERS:
            return None
        tables = _tables(letters)
        try:
            return _Reader(left, tables).all() == _Reader(right, tables).all()
        except UnreadError:
            return None
    return None


def with_events(text: str) -> str:
    r"""Replace each ``P(A \cap B)`` of events by a variable, the same if the events are."""
    return _PROBABILITY.sub(_event, text)


def _event(found: re.Match[str]) -> str:
    parts = [_tokens(part, _SETS) or [] for part in re.split(r"\||\\mid(?![A-Za-z])|,", found[1])]
    letters = sorted({token for part in parts for token in part if token[:1] == "@"})
    if not all(parts) or not letters or len(letters) > _MOST_LETTERS:
        return found[0]
    tables = _tables(letters)
    try:
        values = [_Reader(part, tables).all() for part in parts]
    except UnreadError:
        return found[0]
    if "," in found[0] and "|" not in found[0]:
        values = [functools.reduce(int.__and__, values)]
    return f"P_{{{''.join(letters).replace('@', '')}{'g'.join(map(str, values))}}}"


def _tables(letters: list[str]) -> dict[str, int]:
    rows = range(2 ** len(letters))
    return {x: sum((row >> k & 1) << row for row in rows) for k, x in enumerate(letters)}


def _tokens(text: str, signs: dict[str, str]) -> list[str] | None:
    """Return the signs by name and the letters, each after an ``@``."""
    found: list[str] = []
    at = 0
    while at < len(text):
        token = _TOKEN.match(text, at)
        if token is None or len(found) >= _MOST_TOKENS:
            return None
        at, name = token.end(), token[1]
        raised = found[-1:] == ["^"] or found[-2:] == ["^", "{"]
        if name in signs or (signs is _SETS and raised and name in "cC"):
            found.append(signs.get(name, "c"))
        elif name in "(){}^":
            found.append(name)
        elif name[0] == "\\" or (signs is _SETS and name[0].islower()):
            return None
        else:
            found.append("@" + name.replace("{", "").replace("}", ""))
    return found


class _Reader:
    """Read tokens from the left, weakest sign first; chains without brackets are of one sign."""

    def __init__(self, tokens: list[str], tables: dict[str, int]) -> None:
        self.tokens, self.at, self.tables = [*tokens, ""], 0, tables
        self.full: int = (1 << 2 ** len(tables)) - 1

    def peek(self) -> str:
        return self.tokens[self.at]

    def take(self, *wanted: str) -> str:
        if self.peek() not in wanted:
            raise UnreadError(f"expected {wanted}")
        self.at += 1
        return self.tokens[self.at - 1]

    def all(self) -> int:
        found = self.implied()
        if self.peek():
            raise UnreadError(self.peek())
        return found

    def implied(self) -> int:
        left = self.chain()
        if self.peek() not in {"to", "iff"}:
            return left
        sign, right = self.take("to", "iff"), self.chain()
        return self.full & (~left | right if sign == "to" else ~(left ^ right))

    def chain(self) -> int:
        found, sign = self.negated(), self.peek()
        while sign in {"and", "or", "minus"} and self.peek() == sign:
            self.take(sign)
            right = self.negated()
            found = found | right if sign == "or" else found & (right ^ -(sign == "minus"))
        return found

    def negated(self) -> int:
        if self.peek() in {"not", "over"}:
            over = self.take("not", "over") == "over"
            return self.full ^ (self.atom() if over else self.negated())
        found = self.atom()
        while self.peek() in {"c", "^"}:
            if self.take("c", "^") == "^":
                braced = self.peek() == "{" and self.take("{")
                self.take("c")
                if braced:
                    self.take("}")
            found ^= self.full
        return found

    def atom(self) -> int:
        if self.peek() in _BRACKETS:
            closing = _BRACKETS[self.take("(", "{")]
            found = self.implied()
            self.take(closing)
            return found
        return self.tables[self.take(*self.tables)]
