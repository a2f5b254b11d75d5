"""Read numbers in words: ``twenty-five``, ``minus three``, ``two thirds``, ``3 million``."""

from __future__ import annotations

import re
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
    if found is None and words == ["half"]:
        found = Fraction(1, 2)
    if found is None and len(words) == 2:
        found = _fraction(*words)
    if found is None and words[-3:-2] == ["and"]:  # two and one half
        whole, part = _cardinal(words[:-3]), _fraction(*words[-2:])
        found = None if whole is None or part is None else whole + part
    return None if found is None else sign * found


_CHINESE_DIGITS = {
    char: k // 2 for k, char in enumerate("零〇一壹二两三叁四肆五伍六陆七柒八捌九玖")
}
_CHINESE_UNITS = {"十": 10, "拾": 10, "百": 100, "佰": 100, "千": 1000, "仟": 1000}
_CHINESE_GROUPS = {"万": 10**4, "萬": 10**4, "亿": 10**8, "億": 10**8}
_SHORTENED = re.compile("[百佰千仟万萬亿億][^零〇十拾百佰千仟万萬亿億]$")  # 一百二 is 102 or 120


def read_chinese(text: str) -> Fraction | None:
    """Read a Chinese numeral: ``四十二``, ``负三``, ``四分之三``; ``None`` for anything else."""
    below, part, above = text.partition("分之")
    if part:
        top, bottom = read_chinese(above), read_chinese(below)
        return top / bottom if top is not None and bottom else None
    if text[:1] in {"负", "負"}:
        value = read_chinese(text[1:])
        return -value if value and value > 0 else None
    total, section, digit, unit = 0, 0, -1, 10**4
    for char in text:
        if char in _CHINESE_DIGITS and digit <= 0:
            digit = _CHINESE_DIGITS[char]
        elif _CHINESE_UNITS.get(char, unit) < unit and digit:
            unit = _CHINESE_UNITS[char]
            section, digit = section + abs(digit) * unit, -1
        elif char in _CHINESE_GROUPS and section + max(digit, 0):
            section += max(digit, 0)
            group = _CHINESE_GROUPS[char]
            total = total + section * group if group == 10**4 else (total + section) * group
            section, digit, unit = 0, -1, 10**4
        else:
            return None
    return (
        None if not text or _SHORTENED.search(text) else Fraction(total + section + max(digit, 0))
    )


_ROMAN = re.compile("M{0,3}(?:CM|CD|D?C{0,3})(?:XC|XL|L?X{0,3})(?:IX|IV|V?I{0,3})")
_ROMAN_VALUES = {"I": 1, "V": 5, "X": 10, "L": 50, "C": 100, "D": 500, "M": 1000}


def read_roman(text: str) -> Fraction | None:
    """Read a Roman numeral of two letters or more: one letter may be a variable or a choice."""
    if len(text) < 2 or not _ROMAN.fullmatch(text):
        return None
    values = [_ROMAN_VALUES[char] for char in text]
    return Fraction(sum(-n if n < m else n for n, m in zip(values, [*values[1:], 0], strict=True)))


def _cardinal(words: list[str]) -> Fraction | None:
    words = ["one", *words[1:]] if words[:1] == ["a"] and len(words) > 1 else words
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
