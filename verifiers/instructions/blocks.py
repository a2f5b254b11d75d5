"""Larger pieces of a reply: paragraphs, lines, bullet points, what a fence encloses."""

from __future__ import annotations

import re

from ..text.words import has_content

_STARS = re.compile(r"(?:^|(?<=\s))\*[ \t]?\*[ \t]?\*(?=\s|$)")
_BULLET = re.compile(r"[ \t]*(?:(\*)(?!\*)|-(?![->\d])|\+(?=[ \t])|•)(.*)")


def lines(text: str) -> list[str]:
    """Return the non-blank lines, unchanged."""
    return [line for line in re.split(r"\r\n|\r|\n", text) if line.strip()]


def starred(text: str) -> list[str] | None:
    """Return paragraphs between ``***`` dividers, or ``None`` if one in the middle is empty.

    A divider before the first or after the last does no harm.
    """
    return _inner(_STARS.split(text))


def parts(text: str, divider: str) -> list[str] | None:
    """Return the parts between dividers, likewise."""
    return _inner(text.split(divider))


def _inner(pieces: list[str]) -> list[str] | None:
    if len(pieces) > 1 and not pieces[0].strip():
        pieces = pieces[1:]
    if len(pieces) > 1 and not pieces[-1].strip():
        pieces = pieces[:-1]
    return [p.strip() for p in pieces] if all(map(has_content, pieces)) else None


def spaced(text: str) -> list[str]:
    """Return paragraphs between blank lines; those without a letter or digit do not count."""
    found = re.split(r"\n[ \t\r]*\n", text.replace("\r\n", "\n"))
    return [p.strip() for p in found if has_content(p)]


def bullets(text: str) -> list[str]:
    """Return the text of bullets: lines after ``*``, ``-``, ``+`` or ``•``, not blank.

    Bold or italic text at the start of a line, a rule (``---``) and a negative number are none.
    """
    found = []
    for line in lines(text):
        bullet = _BULLET.match(line)
        if bullet and has_content(bullet.group(2)):
            star, item = bullet.groups()
            if not (star and not item[0].isspace() and "*" in item):
                found.append(item.strip())
    return found
