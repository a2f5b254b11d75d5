"""Knights and knaves: does an assignment make every knight truthful and every knave a liar?"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from ..text.markup import strip_layout
from ..validation import safe_repr
from .puzzle import BadReference, GridVerifier, check_list, fields
from .reading import Unreadable
from .statements import allowed, check_statement, fitting

_WORD = re.compile(r"[^\W\d_]+")
_ROLES = {
    **dict.fromkeys(("knight", "knights"), True),
    **dict.fromkeys(("knave", "knaves", "liar", "liars"), False),
}
_TRUTH_TELLER = re.compile(r"\btruth[- ]?tellers?\b", re.IGNORECASE)
_BESIDE = frozenset(
    _WORD.findall(
        "is are a an the and both all while whereas but so therefore thus hence answer solution "
        "here final name person role type identity must be conclusion"
    )
)
_TICKS = frozenset("✓✔☑✅✗✘☒❌")
_MOST = 12


class KnightsAndKnaves(GridVerifier):
    r"""Accept any assignment under which knights say what is true and knaves what is false.

    The assignment names each person once, with a role: ``Ann is a knight, Bob is a knave``,
    ``Ann: knight``, ``Ann and Bob are knights``, ``Knights: Ann, Bob``, a table or JSON. It is all
    that stands in the last ``<answer>``, else the last ``\boxed{}``, else the last fenced block,
    else the last paragraph or the whole reply. Somebody left out or named twice fails, as does any
    other word, such as "or" and "not".

    Reference: ``{"people": ["Ann", "Bob"], "statements": [["says", 0, ["knave", 1]], ...]}``, with
    people numbered from 0. What is said is ``["knight", i]``, ``["knave", i]``, ``["exactly", k]``
    (k knights among all), ``["not", s]``, ``["and", s, ...]``, ``["or", s, ...]``, ``["if", s, s]``
    or ``["iff", s, s]``, where ``s`` is such a list again.
    """

    def check(self, reference: Any) -> None:
        """Check that some assignments fit the statements, and not all."""
        people, statements = fields(reference, "people", "statements")
        check_list("people", people, 1, _MOST, "names")
        for name in people:
            if not isinstance(name, str) or len(name) > 40 or not _WORD.fullmatch(name):
                raise BadReference(f"a name must be one word of letters, got {safe_repr(name)}")
            if name.casefold() in _BESIDE - {"a"} or name.casefold() in _ROLES:
                raise BadReference(f"a name must not be a word that is used beside one: {name!r}")
        if len({name.casefold() for name in people}) < len(people):
            raise BadReference(f"names must differ, got {safe_repr(people)}")
        if not isinstance(statements, list) or not statements:
            raise BadReference(
                f"statements must be a list of one or more, got {safe_repr(statements)}"
            )
        for statement in statements:
            check_statement(statement, len(people))
        fits = fitting(statements, len(people))
        if not fits:
            raise BadReference("no assignment fits the statements: nobody could answer")
        if fits.bit_count() == 1 << len(people):
            raise BadReference("every assignment fits the statements: nothing is asked")

    def oracle_reply(self, reference: Any) -> str | None:
        people = reference["people"]
        fits = fitting(reference["statements"], len(people))
        world = (fits & -fits).bit_length() - 1
        roles = ("knight" if world >> i & 1 else "knave" for i in range(len(people)))
        return "\n".join(f"{name}: {role}" for name, role in zip(people, roles, strict=True))

    def fault(self, text: str, reference: Any) -> str | None:
        people = reference["people"]
        roles = _read(text, people)
        world = sum(1 << i for i, knight in enumerate(roles) if knight)
        for _, speaker, said in reference["statements"]:
            if not allowed(speaker, said, len(people)) >> world & 1:
                would = "false" if roles[speaker] else "true"
                return f"{people[speaker]} would say what is {would}"
        return None


def _read(text: str, people: Sequence[str]) -> list[bool]:
    """Return for each person whether it is called a knight."""
    if "?" in text:
        raise Unreadable("a question is no answer")
    marks = _marks(text, people)
    role_first = bool(marks) and isinstance(marks[0], bool)  # Knights: Ann. Knaves: Bob
    if role_first and _TICKS.intersection(text):
        raise Unreadable("a tick below a role is not read")
    found: dict[int, bool] = {}
    waiting: list[int] = []
    role: bool | None = None
    for mark in marks:
        if isinstance(mark, bool):
            if not role_first and not waiting:
                raise Unreadable("a role has no name beside it")
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
    """Return persons by number and roles (a bool), in order of occurrence."""
    exact = {name: i for i, name in enumerate(people)}
    loose = {name.casefold(): i for i, name in enumerate(people)}
    marks: list[int | bool] = []
    for word in _WORD.findall(_TRUTH_TELLER.sub("knight", strip_layout(text))):
        low = word.casefold()
        if word in exact:
            marks.append(exact[word])
        elif low in _ROLES:
            marks.append(_ROLES[low])
        elif low in loose and low not in _BESIDE:
            marks.append(loose[low])
        elif low not in _BESIDE and not (low == "none" and marks and isinstance(marks[-1], bool)):
            raise Unreadable(f"unexpected {safe_repr(word)}")
    return marks
