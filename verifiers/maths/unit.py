r"""Tells a unit from what changes the value: ``25 cm`` and ``25 apples``, not ``25 million``."""

from __future__ import annotations

import re

MAGNITUDES = {"hundred": 2, "thousand": 3, "million": 6, "billion": 9, "trillion": 12}
"""Words that multiply the number before them by a power of ten."""

_UNIT = re.compile(
    r"\\text\{([A-Za-z °().,/'-]*[23]?)\}(?:\^\{?[23]\}?)?"
    r"|([A-Za-z][A-Za-z ./]{1,40})(?:\^\{?[23]\}?)?"
)
_NO_UNIT = frozenset((
    "a", "and", "any", "are", "at", "but", "either", "except", "i", "if", "is", "isn't", "it",
    "maybe", "neither", "nor", "not", "or", "other", "otherwise", "perhaps", "possibly",
    "probably", "than", "the", "to", "wrong", "incorrect", "when", "where", "with", "false",
    "true", "no", "nope", "none", "never", "guess", "actually", "unless", "instead",
    "x", "y", "z", "e", "pi", "sin", "cos", "tan", "log", "ln", "exp", "mod", "choose", "base",
    "plus", "minus", "times", "over", "divided", "negative", "positive", "below", "under",
    "above", "zero", "factorial", "squared", "cubed", "remainder", *MAGNITUDES,
    "tens", "hundreds", "thousands", "millions", "billions", "trillions", "halves", "thirds",
    "fourths", "fifths", "sixths", "sevenths", "eighths", "ninths", "tenths", "hundredths",
    "thousandths", "so", "ish", "about", "roughly", "approximately", "almost", "nearly", "both",
))  # fmt: skip
_SHORT_UNITS = frozenset((
    "cm", "mm", "km", "kg", "mg", "ml", "lb", "lbs", "oz", "ft", "in", "mi", "yd", "sq", "hr",
    "hrs", "min", "sec", "day", "cup", "men", "mph", "kph", "usd", "eur", "pct", "per", "m/s",
    "km/h",
))  # fmt: skip
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen"}
_SAME_UNIT = {
    "usd": "dollar", "buck": "dollar", "eur": "euro", "centimeter": "cm", "meter": "m",
    "metre": "m", "kilometer": "km", "foot": "ft", "feet": "ft", "inche": "inch", "in": "inch",
    "hr": "hour", "h": "hour", "min": "minute", "sec": "second", "s": "second", "kilogram": "kg",
    "gram": "g", "mile": "mi", "liter": "l", "litre": "l", "millimeter": "mm", "yard": "yd",
    "ounce": "oz", "newton": "n", "joule": "j", "watt": "w", "volt": "v", "celsius": "c",
    "fahrenheit": "f", "sq": "square",
}  # fmt: skip
_SAME_PHRASE = {
    "mph": "mi per hour", "kph": "km per hour", "km/h": "km per hour", "m/s": "m per second",
}  # fmt: skip
_POWERS = {"square": "2", "cubic": "3"}
_MONEY = frozenset(
    (*_CURRENCIES.values(), "cent", "penny", "pennie", "pence", "rupee", "peso", "franc")
)
_SHARE = re.compile(r"of (?:the|a|an|his|her|its|their|my|your|our) (?=[a-z])")


def priced(money: str, words: str) -> str | None:
    """The unit of an amount with a sign and with words: ``$5 per hour``, ``$5 profit``.

    ``None`` where the words are other money, as in ``$5 cents``.
    """
    if not _MONEY.isdisjoint(words.split()):
        return None
    return f"{money} {words}" if words.startswith("per ") else money


def currency(sign: str) -> str:
    """The unit that a sign such as ``$`` stands for; empty for none."""
    return _CURRENCIES.get(sign, "")


def read_unit(text: str) -> str | None:
    """The unit's name, empty for none, or ``None`` where the text is no unit."""
    text = text.strip(" .")
    if not text:
        return ""
    found = _UNIT.fullmatch(text)
    if found is None:
        return currency(text) or None
    bare = found.group(1) is None
    name = (found.group(2) if bare else found.group(1)).strip(" .,()").lower()
    power = text[found.end(2 if bare else 1) :].strip("^{} ")
    if name[-1:] in {"2", "3"}:
        name, power = name[:-1], name[-1]
    words = _SHARE.sub("", name, count=1).split() if name.startswith("of ") else name.split()
    if not bare and found.group(1).lstrip().startswith(","):
        return None  # what "\\text{ or more}" became: its comma joins
    if not words or len(words) > 4 or not _NO_UNIT.isdisjoint(words):
        return None
    if bare and len(words[0].rstrip(".")) < 4 and words[0].rstrip(".") not in _SHORT_UNITS:
        return None  # 5xy is five times x times y
    words = [_one(word) for word in words]
    if len(words) > 1 and words[0] in _POWERS:
        power = _POWERS[words.pop(0)]
    return _SAME_PHRASE.get(" ".join(words), " ".join(words)) + power


def same_unit(gold: str, answer: str) -> bool:
    """Whether two units are one; a degree may be of any scale."""
    return gold == answer or (
        "degree" in {gold, answer} and gold.startswith("degree") and answer.startswith("degree")
    )


def _one(word: str) -> str:
    """A word in the singular, by its usual name."""
    word = word.rstrip(".,")
    singular = word[:-1] if len(word) > 3 and word.endswith("s") else word
    return next((_SAME_UNIT[w] for w in (word, word[:-1]) if w in _SAME_UNIT), singular)
