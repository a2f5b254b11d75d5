"""The variables that a text speaks of, without reading it as a formula."""

from __future__ import annotations

import re
from collections.abc import Mapping

_BOUND = re.compile(r"\\(?:sum|int|lim|prod|iint|oint|bigcup)")
_GREEK = re.compile(
    r"\\(?:[Gg]amma|[Ll]ambda|[Ss]igma|alpha|beta|[Dd]elta|zeta|eta|[Tt]heta|kappa|mu|nu|rho|"
    r"tau|[Pp]hi|chi|[Pp]si|[Oo]mega|epsilon|[Uu]psilon|[Xx]i|Pi)(?![A-Za-z])"
)
_NOT_LETTERS = re.compile(
    r"\\(?:begin|end|text|operatorname|mathbb|mathcal)\{[^{}]*\}|\\[A-Za-z]+"
    r"|(?<![A-Za-z])(?:arc)?(?:sin|cos|tan|cot|sec|csc)h?"
    r"|(?<![A-Za-z])(?:log|lg|ln|exp|cis|max|min|lim|sqrt|gcd|lcm|mod)(?![a-z])|(?<![A-Za-z])ln"
)
_LETTER = re.compile(rf"({_NOT_LETTERS.pattern})|[A-Za-z](?:_(?:\{{\w\}}|\w))?")


def letters(text: str) -> frozenset[str]:
    """Return the variables of an expression, except the constants e and i."""
    latin = frozenset(re.findall(r"[A-Za-z]", _NOT_LETTERS.sub(" ", text))) - {"e", "i"}
    return latin | frozenset(_GREEK.findall(text))


def same_letters(gold: str, answer: str) -> bool:
    """Return whether two texts have the same variables; a bound one is no variable."""
    if _BOUND.search(gold) or _BOUND.search(answer):
        return True
    return letters(gold) == letters(answer)


def renamed(text: str, names: Mapping[str, str]) -> str:
    """Rename variables of a formula, all at once."""
    return _LETTER.sub(
        lambda found: found[0] if found[1] else names.get(found[0], _renamed(found[0], names)), text
    )


def _renamed(letter: str, names: Mapping[str, str]) -> str:
    return names.get(letter[0], letter[0]) + letter[1:]
