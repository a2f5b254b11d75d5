"""Regex synthesis: write the regular expression of a language that is told and shown."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import re2

from ...verifiers import RegexSynthesis as RegexSynthesisVerifier
from .family import Family, Puzzle
from .regex_parts import Choice, Counted, Listed, Literal, Maybe, Part

_KINDS = (
    (("digit", "digits"), "[0-9]", "0123456789"),
    (("small letter from a to f", "small letters from a to f"), "[a-f]", "abcdef"),
    (("capital letter from A to Z", "capital letters from A to Z"), "[A-Z]",
     "ABCDEFGHIJKLMNOPQRSTUVWXYZ"),
    (("vowel (a, e, i, o, u)", "vowels (a, e, i, o, u)"), "[aeiou]", "aeiou"),
    (("small letter from k to z", "small letters from k to z"), "[k-z]", "klmnopqrstuvwxyz"),
    (("odd digit", "odd digits"), "[13579]", "13579"),
    (("capital X or Y", "letters that are capital X or Y"), "[XY]", "XY"),
)  # fmt: skip
_LITERALS = ("-", "_", ".", ":", "+", "(", "#", "id", "no.", "=>", "$", "*")
_SEPARATORS = (",", ";", "|", "/")
_WORDS = ("cat", "dog", "emu", "fox", "gnu", "hen", "car", "cart", "do", "doe")
_SHOWN, _HIDDEN_POSITIVE, _HIDDEN_NEGATIVE = 5, 15, 30


class RegexSynthesis(Family):
    """Write a regular expression that matches exactly the strings of a described language.

    Levels: fixed counts; ranges and signs; words to choose from; parts that may be left out; lists.
    The language is told in words, so strings that are not shown can be judged as well.

    Observation: the language, strings of it and strings that are not. Action: the reply.
    Reward: 1.0 for any expression that tells them and the hidden strings apart. With ``think``, a
    sixth of it is paid for the format.
    End: after one step. Every task can be solved.

    Args:
        level: difficulty, from 1 to 5.
        split: a problem is in ``train`` or in ``test``, never in both.
        seed: another seed puts other problems.
        think: ask for ``<think>`` and ``<answer>`` and pay for them.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        ValueError: there is no such level.
    """

    verifier = RegexSynthesisVerifier

    @classmethod
    def puzzle(cls, rng: np.random.Generator, level: int) -> Puzzle:
        """Draw a language until it has strings enough."""
        while True:
            parts = _language(rng, level)
            pattern = "".join(part.pattern for part in parts)
            good = _strings(rng, parts, pattern, _SHOWN + _HIDDEN_POSITIVE, right=True)
            bad = _strings(rng, parts, pattern, _SHOWN + _HIDDEN_NEGATIVE, right=False)
            if len(good) > _SHOWN and len(bad) > _SHOWN:
                break
        listed = ", then ".join(part.words for part in parts)
        shown = [" ".join(f'"{s}"' for s in strings[:_SHOWN]) for strings in (good, bad)]
        return Puzzle(
            text="Write one regular expression that matches a whole string exactly where it "
            f"consists of: {listed}.\nSuch strings: {shown[0]}\nNo such strings: {shown[1]}\n"
            "It is read by RE2: no lookaround and no backreferences.",
            reference={
                "positive": good[:_SHOWN],
                "negative": bad[:_SHOWN],
                "hidden_positive": good[_SHOWN:],
                "hidden_negative": bad[_SHOWN:],
                "pattern": pattern,
            },
            answer=pattern,
        )


def _language(rng: np.random.Generator, level: int) -> list[Part]:
    if level == 1:
        return [_counted(rng, fixed=True), _counted(rng, fixed=True)]
    parts: list[Part] = [_counted(rng), _literal(rng), _counted(rng)]
    if level >= 3:
        words = rng.choice(len(_WORDS), size=3, replace=False)
        choice = Choice(tuple(_WORDS[int(k)] for k in words))
        parts.insert(int(rng.integers(4)), choice)
    if level >= 4:
        parts.insert(int(rng.integers(5)), Maybe((_literal(rng), _counted(rng))))
    if level >= 5:
        low = int(rng.integers(1, 3))
        sign = _SEPARATORS[int(rng.integers(len(_SEPARATORS)))]
        item = Counted(*_KINDS[int(rng.integers(len(_KINDS)))], 1, int(rng.integers(1, 4)))
        parts.insert(int(rng.integers(6)), Listed(item, sign, low, low + 2))
    return parts


def _counted(rng: np.random.Generator, *, fixed: bool = False) -> Counted:
    kind = _KINDS[int(rng.integers(len(_KINDS)))]
    low = int(rng.integers(1, 5))
    if fixed:
        return Counted(*kind, low, low)
    return Counted(*kind, low, None if rng.random() < 0.3 else low + int(rng.integers(1, 3)))


def _literal(rng: np.random.Generator) -> Literal:
    return Literal(_LITERALS[int(rng.integers(len(_LITERALS)))])


def _strings(
    rng: np.random.Generator, parts: list[Part], pattern: str, count: int, *, right: bool
) -> list[str]:
    """Different strings that match, or that nearly do; shorter than 80 characters."""
    matches: Callable[[str], object] = re2.compile(pattern).fullmatch
    found: dict[str, None] = {}
    for place in range(6 * count):
        wrong = -1 if right else place % len(parts)
        text = "".join(
            part.miss(rng) if k == wrong else part.draw(rng) for k, part in enumerate(parts)
        )
        if bool(matches(text)) == right and len(text) < 80:
            found[text] = None
        if len(found) == count:
            break
    return list(found)
