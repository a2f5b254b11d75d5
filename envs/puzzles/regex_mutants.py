"""Near-miss patterns, which a language's strings must distinguish."""

from __future__ import annotations

import re
from collections.abc import Iterator

_COUNT = re.compile(r"\{(\d+)(,?)(\d*)\}")
_CLASS = re.compile(r"\[[^]]*\]")
_CHANGES = (
    (re.compile(r"\\[^A-Za-z0-9]"), (".", "")),
    (re.compile(r"\)\?"), (")", ")*")),
    (re.compile(r"\|\w+"), ("",)),
    (re.compile(r"(?<=\(\?:)\w+\|"), ("",)),
)


def mutants(pattern: str) -> list[str]:
    """Return the pattern with one change each: a count, a class, an option, a sign.

    Example:
        >>> mutants("[a-f]{2}")[:3]
        ['[a-f]{1}', '[a-f]{3}', '[a-f]{1,2}']
    """
    made = []
    for place, changes in _places(pattern):
        made += [pattern[: place.start()] + new + pattern[place.end() :] for new in changes]
    return [m for m in dict.fromkeys(made) if m != pattern]


def _places(pattern: str) -> Iterator[tuple[re.Match[str], tuple[str, ...]]]:
    for place in _COUNT.finditer(pattern):
        yield place, tuple(_counts(place))
    for place in _CLASS.finditer(pattern):
        yield place, (".", r"\w", f"(?:{place.group()}?)", r"\S")
        if not place.group()[1].isdigit():  # whose case is one
            yield place, (f"(?i:{place.group()})",)
    for changed, changes in _CHANGES:
        for place in changed.finditer(pattern):
            yield place, changes


def _counts(place: re.Match[str]) -> Iterator[str]:
    """Yield counts one off, in braces; an upper end of none is infinite."""
    low = int(place[1])
    high = low if not place[2] else int(place[3]) if place[3] else None
    if low == high:
        yield from (f"{{{n}}}" for n in (low - 1, low + 1))
    for least, most in ((low - 1, high), (low + 1, high), (low, high and high - 1), (low, None)):
        if least >= 0 and (most is None or most >= least):
            yield f"{{{least},{'' if most is None else most}}}"
    if high is not None:
        yield f"{{{low},{high + 1}}}"
