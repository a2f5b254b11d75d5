"""Knights and knaves: does an assignment make every knight truthful and every knave a liar?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..shown import shown
from ..text.markup import strip_layout
from .answer import Unreadable
from .solution import Solution
from .statements import bad_statement, fitting, truth

_WORD = re.compile(r"[^\W\d_]+")
_ROLES = {
    **dict.fromkeys(("knight", "knights"), True),
    **dict.fromkeys(("knave", "knaves", "liar", "liars"), False),
}
_TRUTH_TELLER = re.compile(r"\btruth[- ]?tellers?\b", re.IGNORECASE)
_BESIDE = frozenset(
    _WORD.findall(
        "is are a an the and both all while whereas but so therefore thus hence answer solution "
        "here final name person role type identity"
    )
)
_MOST = 12


class KnightsAndKnaves(Solution):
    r"""Accept any assignment under which knights say what is true and knaves what is false.

    The assignment is all that stands in the last ``<answer>``, else the last ``\boxed{}``, else the
    last fenced block, else the last paragraph, or the whole reply. It names each person once, with
    a role: ``Ann is a knight, Bob is a knave``, ``Ann: knight``, ``Ann and Bob are knights``,
    ``Knights: Ann, Bob``, a table or JSON. Somebody left out or named twice loses, as does any
    other word, such as "or" and "not".

    Reference: ``{"people": ["Ann", "Bob"], "statements": [["says", 0, ["knave", 1]], ...]}``, with
    people numbered from 0. What is said is ``["knight", i]``, ``["knave", i]``, ``["exactly", k]``
    (k knights among all), ``["not", s]``, ``["and", s, ...]``, ``["or", s, ...]``, ``["if", s, s]``
    or ``["iff", s, s]``, where ``s`` is such a list again.

    Example:
        >>> puzzle = {"people": ["Ann", "Bob"], "statements": [["says", 0, ["knave", 1]]]}
        >>> KnightsAndKnaves().verify("Ann: knave, Bob: knight", puzzle).score
        1.0
        >>> KnightsAndKnaves().verify("Ann: knave, Bob: knave", puzzle).reason
        'Ann would say what is true'
    """

    def check_reference(self, reference: Any) -> str | None:
        """A reference has people with names of one word, and statements about them."""
        if not isinstance(reference, dict) or {"people", "statements"} - set(reference):
            return f"expected people and statements, got {shown(reference)}"
        people, statements = reference["people"], reference["statements"]
        if not isinstance(people, list) or not 1 <= len(people) <= _MOST:
            return f"people must be a list of 1 to {_MOST} names, got {shown(people)}"
        for name in people:
            if not isinstance(name, str) or len(name) > 40 or not _WORD.fullmatch(name):
                return f"a name must be one word of letters, got {shown(name)}"
            if name.casefold() in _BESIDE - {"a"} or name.casefold() in _ROLES:
                return f"a name must not be a word that stands beside names, got {name!r}"
        if len({name.casefold() for name in people}) < len(people):
            return f"names must differ, got {shown(people)}"
        if not isinstance(statements, list) or not statements:
            return f"statements must be a list with at least one, got {shown(statements)}"
        faults = (bad_statement(statement, len(people)) for statement in statements)
        fault = next((fault for fault in faults if fault is not None), None)
        if fault is not None:
            return fault
        fits = fitting(statements, len(people))
        if not fits:
            return "no assignment fits the statements: nobody could answer"
        everything = fits.bit_count() == 1 << len(people)
        return "every assignment fits the statements: nothing is asked" if everything else None

    def winning_reply(self, reference: Any) -> str | None:
        """The first assignment that fits."""
        if self.check_reference(reference) is not None:
            return None
        people = reference["people"]
        fits = fitting(reference["statements"], len(people))
        world = (fits & -fits).bit_length() - 1
        roles = ("knight" if world >> i & 1 else "knave" for i in range(len(people)))
        return "\n".join(f"{name}: {role}" for name, role in zip(people, roles, strict=True))

    def read(self, text: str, reference: Any) -> list[bool]:
        """For each person, whether it is called a knight."""
        return _read(text, reference["people"])

    def broken(self, solution: list[bool], reference: Any) -> str | None:
        """The first whose statement is true of a knave's mouth, or false of a knight's."""
        for _, speaker, said in reference["statements"]:
            if truth(said, solution) != solution[speaker]:
                would = "false" if solution[speaker] else "true"
                return f"{reference['people'][speaker]} would say what is {would}"
        return None


def _read(text: str, people: Sequence[str]) -> list[bool]:
    """For each person, whether it is called a knight."""
    marks = _marks(text, people)
    role_first = bool(marks) and isinstance(marks[0], bool)  # Knights: Ann. Knaves: Bob
    found: dict[int, bool] = {}
    waiting: list[int] = []
    role: bool | None = None
    for mark in marks:
        if isinstance(mark, bool):
            if not role_first and not waiting:
                raise Unreadable("a role stands beside no name")
            found.update(dict.fromkeys(waiting, mark))
            role, waiting = mark, []
        elif mark in found or mark in waiting:
            raise Unreadable(f"{people[mark]} is named twice")
        elif role_first and role is not None:
            found[mark] = role
        else:
            waiting.append(mark)
    missing = [name for i, name in enumerate(people) if i not in found]
    if missing:
        raise Unreadable(f"{', '.join(missing)} must be a knight or a knave")
    return [found[i] for i in range(len(people))]


def _marks(text: str, people: Sequence[str]) -> list[int | bool]:
    """Persons by number and roles (a bool), in the order in which they stand."""
    exact = {name: i for i, name in enumerate(people)}
    loose = {name.casefold(): i for i, name in enumerate(people)}
    marks: list[int | bool] = []
    for token in _WORD.finditer(_TRUTH_TELLER.sub("knight", strip_layout(text))):
        word = token.group()
        low = word.casefold()
        if word in exact:
            marks.append(exact[word])
        elif low in _ROLES:
            marks.append(_ROLES[low])
        elif low in loose and low not in _BESIDE:
            marks.append(loose[low])
        elif low not in _BESIDE and not (low == "none" and marks and isinstance(marks[-1], bool)):
            raise Unreadable(f"unexpected {shown(word)}")
    return marks
