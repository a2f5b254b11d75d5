"""Parts of small languages, in words and as patterns, with strings that fit and near misses."""

from __future__ import annotations

import re
import string
from collections.abc import Callable
from random import Random
from typing import NamedTuple

_CHARACTERS = string.ascii_letters[::5] + string.digits[::3]


class Part(NamedTuple):
    """A part of every string of a language.

    Attributes:
        words: what it is, to follow "then".
        pattern: a regular expression of it.
        draw: a string that fits.
        miss: a string that nearly fits; now and then one that does.
    """

    words: str
    pattern: str
    draw: Callable[[Random], str]
    miss: Callable[[Random], str]


def counted(
    kind: tuple[str, str], characters: str, members: str, low: int, high: int | None
) -> Part:
    """Return so many characters of a kind."""
    if high == low:
        words = f"exactly {low} {kind[low > 1]}"
        pattern = characters + (f"{{{low}}}" if low > 1 else "")
    else:
        words = f"{low} {'or more' if high is None else f'to {high}'} {kind[1]}"
        pattern = f"{characters}{{{low},{'' if high is None else high}}}"

    def some(rng: Random, count: int) -> str:
        return "".join(rng.choice(members) for _ in range(count))

    def draw(rng: Random) -> str:  # often as short or as long as may be
        most = low + 4 if high is None else high
        return some(rng, (low, most, rng.randint(low, most))[rng.randrange(3)])

    def miss(rng: Random) -> str:
        way = rng.randrange(3)
        if way == 0:
            return some(rng, low - 1)
        if way == 1 and high is not None:
            return some(rng, high + 1)
        text = draw(rng)
        at = rng.randrange(len(text))
        beyond = chr(ord(min(members)) - 1) + chr(ord(max(members)) + 1)
        near = [text[at].swapcase()] * 3 + list(beyond + "_! " + _CHARACTERS)
        return text[:at] + rng.choice([c for c in near if c not in members]) + text[at + 1 :]

    return Part(words, pattern, draw, miss)


def literal(text: str) -> Part:
    """Return a text unchanged."""
    near = ["", text * 2, text.swapcase(), "x", text[:-1] + "~"]
    return Part(f'"{text}"', re.escape(text), lambda _: text, lambda rng: rng.choice(near))


def choice(options: tuple[str, ...]) -> Part:
    """Return one of some words."""

    def miss(rng: Random) -> str:
        word = rng.choice(options)
        return rng.choice([word + rng.choice(options), word[:-1], word.upper(), ""])

    quoted = [f'"{word}"' for word in options]
    words = f"{', '.join(quoted[:-1])} or {quoted[-1]}"
    pattern = f"(?:{'|'.join(map(re.escape, options))})"
    return Part(words, pattern, lambda rng: rng.choice(options), miss)


def maybe(parts: tuple[Part, ...]) -> Part:
    """Return parts that may be left out together."""

    def draw(rng: Random) -> str:
        return "".join(p.draw(rng) for p in parts) if rng.random() < 0.6 else ""

    def miss(rng: Random) -> str:
        whole = [part.draw(rng) for part in parts]
        if rng.random() < 0.15:
            return "".join(whole + [part.draw(rng) for part in parts])
        at = rng.randrange(len(whole))
        whole[at] = parts[at].miss(rng) if rng.random() < 0.8 else ""
        return "".join(whole)

    words = f"optionally ({', then '.join(part.words for part in parts)})"
    return Part(words, f"(?:{''.join(part.pattern for part in parts)})?", draw, miss)


def listed(part: Part, separator: str, low: int, high: int) -> Part:
    """Return several of a part, with a separator between them."""

    def some(rng: Random, count: int) -> str:
        return separator.join(part.draw(rng) for _ in range(count))

    def draw(rng: Random) -> str:  # often as few or as many as may be
        return some(rng, (low, high, rng.randint(low, high))[rng.randrange(3)])

    def miss(rng: Random) -> str:
        text = draw(rng)
        if rng.random() < 0.5:
            items = text.split(separator)
            items[rng.randrange(len(items))] = part.miss(rng)
            return separator.join(items)
        return rng.choice(
            [
                some(rng, low - 1),
                some(rng, high + 1),
                text + separator,
                separator + text,
                text.replace(separator, separator * 2, 1),
                text.replace(separator, "", 1),
            ]
        )

    words = f'a list of {low} to {high} items separated by "{separator}", each of them {part.words}'
    sign = re.escape(separator)
    return Part(
        words, f"{part.pattern}(?:{sign}{part.pattern}){{{low - 1},{high - 1}}}", draw, miss
    )
