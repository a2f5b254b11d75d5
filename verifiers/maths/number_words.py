"""Read numbers in words: ``twenty-five``, ``minus three``, ``two thirds``, ``3 million``."""

from __future__ import annotations

from fractions import Fraction

_ONES = (
    "zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten",
    "eleven", "twelve", "thirteen", "fourteen", "fifteen", "sixteen", "seventeen", "eighteen",
    "nineteen",
)  # fmt: skip
_TENS = (
    "twenty", "thirty", "forty", "fifty", "sixty", "seventy", "eighty", "ninety",
)  # fmt: skip
_SMALL = {word: k for k, word in enumerate(_ONES)}
_SMALL.update({word: 10 * k for k, word in enumerate(_TENS, 2)})
MAGNITUDES = {
    "dozen": 12, "hundred": 100, "thousand": 10**3, "lakh": 10**5, "million": 10**6, "mn": 10**6,
    "crore": 10**7, "billion": 10**9, "bn": 10**9, "trillion": 10**12, "quadrillion": 10**15,
    "quintillion": 10**18, "googol": 10**100,
}  # fmt: skip
"""Words that multiply the number before them."""

_ORDINALS = {
    "half": 2, "halve": 2, "third": 3, "quarter": 4, "fourth": 4, "fifth": 5, "eighth": 8,
    "ninth": 9, "twelfth": 12, "first": 1,
}  # fmt: skip
_COLLECTIVE = frozenset((
    "pair", "couple", "score", "gross", "brace", "trio", "duo", "quartet", "twin", "single",
    "double", "triple", "quadruple", "percent", "percentage", "permille", "mille", "myriad",
    "few", "several", "many", "nil", "naught", "nought", "null", "nothing", "k",
))  # fmt: skip


def is_number_word(word: str) -> bool:
    """Return True if a lower-case word states a number, a part or a multiple of one."""
    stem = word.removesuffix("s") if len(word) > 3 else word
    if {word, stem, word.removesuffix("es")} & (_SMALL.keys() | MAGNITUDES.keys() | _COLLECTIVE):
        return True
    return stem.endswith("illion") or _ordinal(stem) is not None or word.endswith(("fold", "tuple"))


def read_number_words(text: str) -> Fraction | None:
    """Read a number in words, or return ``None`` if the text is anything else.

    Example:
        >>> read_number_words("minus two hundred and five"), read_number_words("three fourths")
        (Fraction(-205, 1), Fraction(3, 4))
    """
    words = text.lower().replace("-", " ").split()
    if not 1 <= len(words) <= 12:
        return None
    sign = 1
    if words[0] in {"minus", "negative"}:
        words, sign = words[1:], -1
    found = _cardinal(words)
    if found is None and len(words) == 2:
        found = _fraction(*words)
    return None if found is None else sign * found


def _cardinal(words: list[str]) -> Fraction | None:
    total, group, below = 0, 0, 1000
    limit = 10**200
    for k, word in enumerate(words):
        if word == "and" and k and words[k - 1] in {"hundred", "thousand"} and k + 1 < len(words):
            continue
        value = _SMALL.get(word)
        if value is not None:
            digits = 10 if value >= 20 else 1
            if value >= below or (value == 0 and len(words) > 1) or (below == 10 and value > 9):
                return None
            group, below = group + value, 10 if digits == 10 else 0
        elif word == "hundred" and 0 < group < 10:
            group, below = 100 * group, 100
        elif group and 100 < MAGNITUDES.get(word, 0) < limit:
            limit = MAGNITUDES[word]
            total, group, below = total + group * limit, 0, 1000
        else:
            return None
    return Fraction(total + group) if words else None


def _fraction(above: str, below: str) -> Fraction | None:
    count = 1 if above == "a" else _SMALL.get(above, 0)
    parts = _ordinal(below.removesuffix("s"))
    if not count or not parts or parts < 2 or (count == 1) is below.endswith("s"):
        return None
    return Fraction(count, parts)


def _ordinal(stem: str) -> int | None:
    if stem in _ORDINALS:
        return _ORDINALS[stem]
    base = stem.removesuffix("th")
    if base == stem:
        return None
    base = f"{base[:-2]}y" if base.endswith("ie") else base
    return _SMALL.get(base) or MAGNITUDES.get(base)
