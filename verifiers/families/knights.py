"""Knights and knaves: does an assignment make every knight truthful and every knave a liar?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..verdict import Status, Verdict
from ..verifier import Verifier
from .answer import BLOCK, read_answer
from .plain import Unreadable, plain

_WORD = re.compile(r"[^\W\d_]+")
_ROLES = {"knight": True, "knights": True, "knave": False, "knaves": False}
_BESIDE = frozenset(
    _WORD.findall(
        "is are a an the and both all while whereas but so therefore thus hence answer solution "
        "final name person role type identity"
    )
)
_DEEPEST = 8


class KnightsAndKnaves(Verifier):
    r"""Accept any assignment under which knights say what is true and knaves what is false.

    The assignment is all that stands in the last ``<answer>``, else the last ``\boxed{}``, else the
    last fenced block, else the last paragraph. It names each person once, with a role: ``Ann is a
    knight, Bob is a knave``, ``Ann: knight``, ``Ann and Bob are knights``, ``Knights: Ann, Bob``, a
    table or JSON. Somebody left out or named twice loses, as does any other word, such as "or"
    and "not".

    Reference: ``{"people": ["Ann", "Bob"], "statements": [["says", 0, ["knave", 1]], ...]}``, with
    people numbered from 0. What is said is ``["knight", i]``, ``["knave", i]``, ``["exactly", k]``
    (k knights among all), ``["not", s]``, ``["and", s, ...]``, ``["or", s, ...]``, ``["if", s, s]``
    or ``["iff", s, s]``, where ``s`` is such a list again.

    Example:
        >>> puzzle = {"people": ["Ann", "Bob"], "statements": [["says", 0, ["knave", 0]]]}
        >>> KnightsAndKnaves().verify("Ann: knight, Bob: knave", puzzle).reason
        'Ann would say what is false'
    """

    def check_reference(self, reference: Any) -> str | None:
        """A reference has people with names of one word, and statements about them."""
        if not isinstance(reference, dict) or {"people", "statements"} - set(reference):
            return f"expected people and statements, got {reference!r:.80}"
        people, statements = reference["people"], reference["statements"]
        if not isinstance(people, list) or not 1 <= len(people) <= 26:
            return f"people must be a list of 1 to 26 names, got {people!r:.80}"
        for name in people:
            if not isinstance(name, str) or len(name) > 40 or not _WORD.fullmatch(name):
                return f"a name must be one word of letters, got {name!r:.80}"
            if name in _BESIDE or name.casefold() in _ROLES:
                return f"a name must not be a word that stands beside names, got {name!r}"
        if len({name.casefold() for name in people}) < len(people):
            return f"names must differ, got {people!r:.80}"
        if not isinstance(statements, list) or not statements:
            return f"statements must be a list with at least one, got {statements!r:.80}"
        faults = (_bad_statement(statement, len(people)) for statement in statements)
        return next((fault for fault in faults if fault is not None), None)

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Read who is what, hold it against each statement."""
        people = reference["people"]
        found = read_answer(reply, BLOCK, longest=4000)
        if found.text is None:
            return Verdict.wrong(found.reason, status=Status.UNPARSEABLE)
        try:
            knights = _read(found.text, people)
        except Unreadable as error:
            return Verdict.wrong(str(error), status=Status.UNPARSEABLE, extracted=found.text)
        for _, speaker, said in reference["statements"]:
            if truth(said, knights) != knights[speaker]:
                would = "true" if truth(said, knights) else "false"
                fault = f"{people[speaker]} would say what is {would}"
                return Verdict.wrong(fault, extracted=found.text)
        return Verdict.correct("fits what everybody says", extracted=found.text)


def truth(said: Any, knights: Sequence[bool]) -> bool:
    """Whether what is said is true, where ``knights[i]`` says that person i is a knight."""
    kind, *parts = said
    if kind in ("knight", "knave"):
        return knights[parts[0]] == (kind == "knight")
    if kind == "exactly":
        return bool(sum(knights) == parts[0])
    values = [truth(part, knights) for part in parts]
    if kind == "not":
        return not values[0]
    if kind == "if":
        return values[1] or not values[0]
    if kind == "iff":
        return values[0] == values[1]
    return all(values) if kind == "and" else any(values)


_PARTS = {"not": (1, 1), "and": (2, 26), "or": (2, 26), "if": (2, 2), "iff": (2, 2)}


def _bad_statement(statement: Any, people: int) -> str | None:
    if not isinstance(statement, list) or len(statement) != 3 or statement[0] != "says":
        return f"a statement must be ['says', person, what], got {statement!r:.80}"
    speaker = statement[1]
    if type(speaker) is not int or not 0 <= speaker < people:
        return f"a person must be a number from 0 to {people - 1}, got {speaker!r:.40}"
    return _bad_formula(statement[2], people, 1)


def _bad_formula(said: Any, people: int, depth: int) -> str | None:
    if not isinstance(said, list) or not said or not isinstance(said[0], str):
        return f"what is said must be a list such as ['knight', 0], got {said!r:.80}"
    kind, parts = said[0], said[1:]
    if kind in ("knight", "knave", "exactly"):
        most = people if kind == "exactly" else people - 1
        if len(parts) == 1 and type(parts[0]) is int and 0 <= parts[0] <= most:
            return None
        return f"{kind} must be followed by one number from 0 to {most}, got {said!r:.80}"
    if kind not in _PARTS:
        kinds = ", ".join(["knight", "knave", "exactly", *_PARTS])
        return f"what is said must be one of {kinds}, got {kind!r:.40}"
    least, most = _PARTS[kind]
    if not least <= len(parts) <= most:
        return f"{kind} joins {least} to {most} statements, got {len(parts)}"
    if depth == _DEEPEST:
        return f"what is said must be at most {_DEEPEST} deep"
    faults = (_bad_formula(part, people, depth + 1) for part in parts)
    return next((fault for fault in faults if fault is not None), None)


# -- replies -----------------------------------------------------------------------------------


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
    for token in _WORD.finditer(plain(text)):
        word = token.group()
        low = word.casefold()
        if word in exact:
            marks.append(exact[word])
        elif low in _ROLES:
            marks.append(_ROLES[low])
        elif low in loose and low not in _BESIDE:
            marks.append(loose[low])
        elif low not in _BESIDE and not (low == "none" and marks and isinstance(marks[-1], bool)):
            raise Unreadable(f"unexpected {word!r:.40}")
    return marks
