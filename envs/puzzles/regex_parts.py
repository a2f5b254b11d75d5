"""Parts of small languages, in words and as patterns, with strings that fit and near misses."""

from __future__ import annotations

import random
import re
import string
from dataclasses import dataclass
from typing import Protocol

_CHARACTERS = string.ascii_letters[::5] + string.digits[::3]


class Part(Protocol):
    """A part of every string of a language."""

    @property
    def words(self) -> str:
        """What it is, to follow "then"."""

    @property
    def pattern(self) -> str:
        """A regular expression of it."""

    def draw(self, rng: random.Random) -> str:
        """A string that fits."""

    def miss(self, rng: random.Random) -> str:
        """A string that nearly fits; now and then one that does."""


@dataclass(frozen=True)
class Counted:
    """Some characters of a kind.

    Attributes:
        kind: in words, one and several.
        characters: the pattern of one.
        members: all of them.
        low: how many at least.
        high: how many at most; ``None`` for any number.
    """

    kind: tuple[str, str]
    characters: str
    members: str
    low: int
    high: int | None

    @property
    def words(self) -> str:
        """How many of what."""
        if self.high is None:
            return f"{self.low} or more {self.kind[1]}"
        if self.low == self.high:
            return f"exactly {self.low} {self.kind[self.low > 1]}"
        return f"{self.low} to {self.high} {self.kind[1]}"

    @property
    def pattern(self) -> str:
        """The characters and how often."""
        if self.high == self.low:
            return self.characters + (f"{{{self.low}}}" if self.low > 1 else "")
        return f"{self.characters}{{{self.low},{'' if self.high is None else self.high}}}"

    def draw(self, rng: random.Random) -> str:
        """Often as short or as long as may be."""
        high = self.low + 4 if self.high is None else self.high
        count = (self.low, high, rng.randint(self.low, high))[rng.randrange(3)]
        return self._some(rng, count)

    def miss(self, rng: random.Random) -> str:
        """One too few or too many, or one of another kind."""
        way = rng.randrange(3)
        if way == 0:
            return self._some(rng, self.low - 1)
        if way == 1 and self.high is not None:
            return self._some(rng, self.high + 1)
        text = self.draw(rng)
        at = rng.randrange(len(text))
        ends = (min(self.members), max(self.members))
        near = [text[at].swapcase()] * 3 + [
            chr(ord(ends[0]) - 1),
            chr(ord(ends[1]) + 1),
            "_",
            "!",
            " ",
        ]
        others = [c for c in near + list(_CHARACTERS) if c not in self.members]
        return text[:at] + rng.choice(others) + text[at + 1 :]

    def _some(self, rng: random.Random, count: int) -> str:
        return "".join(rng.choice(self.members) for _ in range(count))


@dataclass(frozen=True)
class Literal:
    """A text as it stands."""

    text: str

    @property
    def words(self) -> str:
        """The text in quotes."""
        return f'"{self.text}"'

    @property
    def pattern(self) -> str:
        """The text, its signs escaped."""
        return re.escape(self.text)

    def draw(self, rng: random.Random) -> str:
        """The text."""
        return self.text

    def miss(self, rng: random.Random) -> str:
        """Nothing, the text twice, in other letters, or another sign."""
        return rng.choice(["", self.text * 2, self.text.swapcase(), "x", self.text[:-1] + "~"])


@dataclass(frozen=True)
class Choice:
    """One of some words."""

    options: tuple[str, ...]

    @property
    def words(self) -> str:
        """The words in quotes."""
        first = ", ".join(f'"{word}"' for word in self.options[:-1])
        return f'{first} or "{self.options[-1]}"'

    @property
    def pattern(self) -> str:
        """A group of them."""
        return f"(?:{'|'.join(map(re.escape, self.options))})"

    def draw(self, rng: random.Random) -> str:
        """One of them."""
        return rng.choice(self.options)

    def miss(self, rng: random.Random) -> str:
        """Two of them, one cut short, or one in other letters."""
        word = rng.choice(self.options)
        return rng.choice([word + rng.choice(self.options), word[:-1], word.upper(), ""])


@dataclass(frozen=True)
class Maybe:
    """Parts that may be left out together."""

    parts: tuple[Part, ...]

    @property
    def words(self) -> str:
        """The parts in brackets."""
        return f"optionally ({', then '.join(part.words for part in self.parts)})"

    @property
    def pattern(self) -> str:
        """An optional group."""
        return f"(?:{''.join(part.pattern for part in self.parts)})?"

    def draw(self, rng: random.Random) -> str:
        """The parts or nothing."""
        return "".join(p.draw(rng) for p in self.parts) if rng.random() < 0.6 else ""

    def miss(self, rng: random.Random) -> str:
        """One of the parts wrong or missing, or all of them twice."""
        whole = [part.draw(rng) for part in self.parts]
        if rng.random() < 0.15:
            return "".join(whole + [part.draw(rng) for part in self.parts])
        at = rng.randrange(len(whole))
        whole[at] = self.parts[at].miss(rng) if rng.random() < 0.8 else ""
        return "".join(whole)


@dataclass(frozen=True)
class Listed:
    """Several of a part, with a separator between them."""

    part: Part
    separator: str
    low: int
    high: int

    @property
    def words(self) -> str:
        """How many of what."""
        return (
            f"a list of {self.low} to {self.high} items separated by "
            f'"{self.separator}", each of them {self.part.words}'
        )

    @property
    def pattern(self) -> str:
        """One, then separators each with another."""
        one, sign = self.part.pattern, re.escape(self.separator)
        return f"{one}(?:{sign}{one}){{{self.low - 1},{self.high - 1}}}"

    def draw(self, rng: random.Random) -> str:
        """Often as few or as many as may be."""
        count = (self.low, self.high, rng.randint(self.low, self.high))
        return self._some(rng, count[rng.randrange(3)])

    def miss(self, rng: random.Random) -> str:
        """One that is wrong, too few or too many, or a separator at an end or doubled."""
        text = self.draw(rng)
        if rng.random() < 0.5:
            items = text.split(self.separator)
            items[rng.randrange(len(items))] = self.part.miss(rng)
            return self.separator.join(items)
        return rng.choice(
            [
                self._some(rng, self.low - 1),
                self._some(rng, self.high + 1),
                text + self.separator,
                self.separator + text,
                text.replace(self.separator, self.separator * 2, 1),
                text.replace(self.separator, "", 1),
            ],
        )

    def _some(self, rng: random.Random, count: int) -> str:
        return self.separator.join(self.part.draw(rng) for _ in range(count))
