r"""Read units after a number: ``cm^2``, ``miles per hour``, ``\mathrm{m/s}``, ``apples``.

A known unit has a size, so ``150 min`` is ``2.5 hours``. Other words name what is counted. They may
be left out of an answer or added to it only if they cannot change the value: see
:func:`may_be_added`, which lists what is allowed and refuses the rest.
"""

from __future__ import annotations

import functools
import re
from fractions import Fraction

from .number_words import is_number_word

# Each name: how many of which units it is. Symbols count by case: MW is not mW.
_SYMBOLS = {
    "g": "1/1000 kg", "Hz": "s^-1", "N": "kg m s^-2", "Pa": "kg m^-1 s^-2", "J": "kg m^2 s^-2",
    "W": "kg m^2 s^-3", "V": "kg m^2 s^-3 A^-1", "Ω": "kg m^2 s^-3 A^-2", "L": "1/1000 m^3",
    "l": "1/1000 m^3", "t": "1000 kg", "eV": "eV", "h": "3600 s", "cal": "cal", "m": "m", "s": "s",
    "A": "A", "K": "K", "mol": "mol", "C": "A s", "F": "fahrenheit", "°C": "celsius",
    "°F": "fahrenheit", "°": "degree", "¢": "1/100 dollar", "GB": "GB", "MB": "MB", "KB": "KB",
    "kB": "KB", "TB": "TB", "B": "byte", "pc": "pc",
    "AU": "149597870700 m", "Å": "1/10000000000 m", "dB": "dB", "bar": "100000 kg m^-1 s^-2",
    "M": "1000 mol m^-3", "Nm": "kg m^2 s^-2",
    "T": "kg s^-2 A^-1",
}  # fmt: skip
_WORDS = {
    "inch": "127/5000 m", "in": "127/5000 m", "foot": "381/1250 m", "ft": "381/1250 m",
    "yard": "1143/1250 m", "yd": "1143/1250 m", "mile": "201168/125 m", "mi": "201168/125 m",
    "minute": "60 s", "min": "60 s", "hour": "3600 s", "hr": "3600 s", "day": "86400 s",
    "week": "604800 s", "month": "month", "year": "12 month", "yr": "12 month", "sec": "s",
    "second": "s", "mph": "201168/450000 m s^-1", "kph": "5/18 m s^-1", "kmh": "5/18 m s^-1",
    "metre": "m", "meter": "m", "gram": "1/1000 kg", "litre": "1/1000 m^3", "tonne": "1000 kg",
    "liter": "1/1000 m^3", "cc": "1/1000000 m^3", "hectare": "10000 m^2", "newton": "kg m s^-2",
    "joule": "kg m^2 s^-2", "watt": "kg m^2 s^-3", "volt": "kg m^2 s^-3 A^-1", "pascal": "Pa",
    "ohm": "kg m^2 s^-3 A^-2", "hertz": "s^-1", "amp": "A", "ampere": "A", "kelvin": "K",
    "coulomb": "A s",
    "mole": "mol", "kwh": "3600000 kg m^2 s^-2", "celsius": "celsius", "calorie": "cal",
    "fahrenheit": "fahrenheit", "degree": "degree", "deg": "degree", "radian": "radian",
    "rad": "radian", "ton": "ton", "gallon": "gallon", "gal": "gallon", "quart": "1/4 gallon",
    "pint": "1/8 gallon", "cup": "1/16 gallon", "pound": "pound", "lb": "pound",
    "ounce": "1/16 pound", "oz": "1/16 pound", "dollar": "dollar", "usd": "dollar",
    "buck": "dollar", "cent": "1/100 dollar", "euro": "euro", "eur": "euro", "gbp": "pound",
    "pence": "1/100 pound", "yen": "yen", "jpy": "yen", "yuan": "yuan", "cny": "yuan",
    "rmb": "yuan", "rupee": "rupee", "rs": "rupee", "inr": "rupee", "peso": "peso",
    "franc": "franc", "unit": "unit", "byte": "byte", "bit": "bit", "acre": "acre",
    "erg": "1/10000000 kg m^2 s^-2", "dyne": "1/100000 kg m s^-2", "parsec": "pc", "rpm": "rpm",
    "atm": "101325 kg m^-1 s^-2", "psi": "psi", "hp": "hp", "gauss": "1/10000 kg s^-2 A^-1",
    "tesla": "kg s^-2 A^-1", "angstrom": "1/10000000000 m", "atmosphere": "101325 kg m^-1 s^-2",
}  # fmt: skip
_PREFIXES = {"n": -9, "μ": -6, "m": -3, "k": 3, "M": 6, "G": 9, "c": -2, "d": -1}
_PREFIXED = frozenset((
    "m", "g", "s", "L", "l", "N", "J", "W", "V", "A", "Hz", "Pa", "Ω", "eV", "mol", "cal",
    "pc", "bar", "M", "C",
))  # fmt: skip
_PREFIX_WORDS = {
    "nano": -9,
    "micro": -6,
    "milli": -3,
    "centi": -2,
    "deci": -1,
    "kilo": 3,
    "mega": 6,
}
_CURRENCIES = {"$": "dollar", "€": "euro", "£": "pound", "¥": "yen", "₹": "rupee"}
MONEY = frozenset((*_CURRENCIES.values(), "yuan", "peso", "franc"))
PERCENT_WORDS = frozenset(
    ("percent", "percentage", "pct", "per cent", "percentage points", "percentage point")
)
CODES = ("USD", "EUR", "GBP", "JPY", "CNY", "RMB", "INR", "Rs")
"""Currency codes, which may stand before the amount."""

Dimension = tuple[tuple[str, int], ...]
_WRITTEN = re.compile(
    r"\\(?:text|mathrm)\{((?:[^{}]|\{[^{}]*\}){0,80})\}(?=([A-Za-z]|\\(?:text|mathrm))?)"
)
_FIGURE_AFTER = re.compile(r"\} ?\d")
_FRACTION = re.compile(r"\\frac\{([^{}]{1,40})\}\{([^{}]{1,40})\}")
_SPELLINGS = (
    (re.compile(r"\^\{?(-?\d)\}?"), r"^\1 "), (re.compile(r"\\Omega(?![A-Za-z])"), "Ω"),
    (re.compile(r"\\mu(?![A-Za-z]) ?|µ"), "μ"), (re.compile(r"\.(?=[A-Za-z])"), " "),
    (re.compile(r"\\(?:cdot|times) ?|·|\*"), " "), (re.compile(r"^\((.*)\)$"), r"\1"),
    (re.compile(r"(?<=[a-z]) squared(?![a-z])"), "^2"),
    (re.compile(r"(?<=[a-z]) cubed(?![a-z])"), "^3"),
    (re.compile(r"(?<=[a-z]) ?/ ?(?=[a-z])"), "/"), (re.compile(r"\\[,; ]|~"), " "),
)  # fmt: skip
_NAME = re.compile(r"([A-Za-zμΩ°¢Å]+)\.?(?:\^?(-?[1-9]))?")
_PER = re.compile(r"(?<![A-Za-z])per(?![A-Za-z])")
_SCALED = re.compile("degrees? ([A-Za-z]+)")
_POWERS = {"square": 2, "sq": 2, "cubic": 3, "cu": 3}
_SHORT_UNITS = frozenset((
    "cm", "mm", "km", "kg", "mg", "ml", "mL", "lb", "lbs", "oz", "ft", "in", "mi", "yd", "sq", "hr",
    "hrs", "min", "sec", "deg", "day", "cup", "men", "mph", "kph", "usd", "eur", "USD", "EUR",
    "GBP", "pct", "per", "m/s", "kWh", "km/h", "Hz", "kHz", "kW", "MW", "kJ", "Pa", "kPa", "mol",
    "of", "gal", "bar", "Nm", "g/cm", "g/mL", "g/L", "g/mol", "J/mol", "J/kg", "N/m", "mol/L",
))  # fmt: skip
# Words that are no part of a name: they join, compare, compute, hedge or deny.
_OPERATING = frozenset((
    "and", "any", "are", "at", "but", "either", "except", "i", "if", "is", "isn't", "it",
    "maybe", "neither", "nor", "not", "or", "other", "otherwise", "perhaps", "possibly",
    "probably", "than", "to", "wrong", "incorrect", "when", "where", "with", "false", "true",
    "no", "nope", "yes", "never", "guess", "actually", "unless", "instead", "x", "y", "z", "e",
    "pi", "sin", "cos", "tan", "log", "ln", "exp", "mod", "modulo", "choose", "base", "plus",
    "minus", "times", "over", "divided", "by", "negative", "positive", "below", "under",
    "above", "factorial", "squared", "cubed", "root", "remainder", "so", "ish", "about",
    "roughly", "approximately", "approx", "almost", "nearly", "both", "between", "within",
    "less", "more", "fewer", "greater", "vs", "versus", "point", "tripled",
    "doubled", "halved", "multiplied", "raised", "inverse", "reciprocal", "opposite", "power",
    "give", "take", "least", "most", "up", "down", "max", "min", "maximum", "minimum",
    "off", "out", "anything", "something", "everything", "whatever", "always", "sometimes",
    "besides", "thus", "its", "his", "theirs", "ours", "yours", "unlikely", "untrue", "as",
    "was", "has", "this", "us", "nevertheless", "upwards", "downwards", "backwards", "towards",
    "else", "without", "again", "excluding", "including", "basis",
))  # fmt: skip
_IRREGULAR = frozenset((
    "people", "men", "women", "children", "feet", "teeth", "mice", "geese", "fish", "sheep",
    "deer", "dice", "oxen", "vertices", "matrices", "indices", "radii", "criteria", "formulae",
    "money", "water", "milk", "sugar", "flour", "rice", "paint", "profit", "interest",
    "homework", "work", "fuel", "gas", "staff", "salmon", "trout", "shrimp", "furniture",
    "luggage", "bacteria", "data",
))  # fmt: skip
_GROUPS = frozenset(("pair", "pairs", "couple", "couples", "quarter", "quarters"))
"""May be left out of a reference that counts them, but not added to a number."""
_TAIL = re.compile(
    r" (?:total|altogether|in total|in all|each|remaining|left|apart|tall|wide|high|long|deep|old|"
    r"(?:per|of|in|for|from|on|on the|in the|of the|for the|from the|a|an) [a-z]+(?: [a-z]+)?)"
)
_SHARE = re.compile(r"of (?:the|a|an|his|her|its|their|my|your|our) (?=[a-z])")


def currency(sign: str) -> str:
    """Return the unit of a currency sign or code, or an empty string."""
    return _CURRENCIES.get(sign, "") or (_WORDS[sign.lower()] if sign in CODES else "")


def price_unit(money: str, words: str) -> str | None:
    """Return the unit of an amount with a sign and with words: ``$5 per hour``, ``$5 profit``.

    ``None`` if the words are other money, as in ``$5 cents``.
    """
    if unit_ratio(money, words) == 1:
        return money  # $5 dollars
    if any(known and set(dict(known[1])) & MONEY for known in map(_known, words.split())):
        return None
    if words.startswith(("per ", "a ", "an ", "/")):
        return f"{money} {words}"
    return money if may_be_added(words, Fraction(2)) else None


def read_unit(text: str) -> str | None:
    """Read a unit in canonical form, empty for none, or ``None`` if the text cannot be one."""
    text = text.strip(" .")
    if not text:
        return ""
    if text in _CURRENCIES:
        return _CURRENCIES[text]
    if _written(text).strip().lower() in PERCENT_WORDS:
        return "percent"
    bare = "\\" not in text.replace("\\Omega", "").replace("\\mu", "")
    if not bare and _FIGURE_AFTER.search(text):
        return None  # 7\text{ cm }8
    if not bare:
        text = _FRACTION.sub(r"\1/\2", _written(text))
    name = re.sub(" {2,}", " ", text)
    for pattern, spelling in _SPELLINGS:
        name = pattern.sub(spelling, name.strip(" .,"))
    if not 0 < len(name) <= 80 or "\\" in name or "{" in name or name.startswith("/ "):
        return None
    first = name.split()[0].rstrip(".")
    first = first.split("^")[0]
    signed = bool(re.search(r"[°ΩμÅ¢]|\^-", name)) and _known(name) is not None
    first = first.lower() if first.isupper() and first.lower() in _SHORT_UNITS else first
    head, _, below = first.partition("/")
    ratio = below and head in _SHORT_UNITS and _known(name) is not None  # km/s
    if bare and len(head) < 4 and first not in _SHORT_UNITS and not signed and not ratio:
        return None  # 5xy is five times x times y
    if _known(name) is not None:
        return name
    words = re.sub("(?: in)? total$", "", name.lower()).replace("/", " per ").split()
    allowed = text[0] != "," and all(map(str.isalpha, words))
    stated = [word for word in words if word not in _GROUPS]
    return " ".join(words) if allowed and len(words) <= 6 and not _operates(stated) else None


def is_known_unit(name: str) -> bool:
    """Return whether a name is that of a unit with a size or a kind of its own."""
    unit = read_unit(f"\\text{{{name}}}")
    return bool(unit) and _known(unit or "") is not None


def _written(text: str) -> str:
    r"""Remove ``\text{}``; a comma at its start joins, so ``\text{, or more}`` is no unit."""
    return _WRITTEN.sub(
        lambda found: ",," if found[1].lstrip()[:1] == "," else found[1] + " " * bool(found[2]),
        text,
    )


def _operates(words: list[str]) -> bool:
    operating = not _OPERATING.isdisjoint(words) and words != ["times"]  # 7 times
    return operating or any(is_number_word(word) and _known(word) is None for word in words)


def may_be_added(unit: str, value: Fraction) -> bool:
    """Return True if words after a number only name what it counts.

    They are a known unit, or a plural noun (a singular one after 1) with at most three plain words
    before it. A number word, a comparison, a computation or a lone adjective is none.
    """
    if _known(unit) is not None:
        return unit != "K"  # which may be thousands
    share = _SHARE.match(unit)
    name = unit[share.end() :] if share else unit
    for _ in range(2):
        tail = _TAIL.search(name)
        name = name[: tail.start()] if tail and tail.start() else name
    words = name.split()
    if not words or _known(name) is not None:
        return bool(words)
    *before, head = words
    if len(words) > 4 or _operates(unit.split()) or not unit.replace(" ", "").isalpha():
        return False
    if not {"the", "a", "an", "for", "among", "amongst", "who"}.isdisjoint(before):
        return False
    plural = head.endswith("s") and not head.endswith(("ss", "us", "is")) and len(head) > 3
    if plural or share or head in _IRREGULAR:
        return True
    return abs(value) == 1 and len(head) > 2 and not head.endswith(("ed", "ly", "ish", "th", "al"))


_EITHER = ({"degree", "celsius"}, {"degree", "fahrenheit"}, {"C", "celsius"}, {"C", "°C"})
"""A degree may be of any scale, and C a coulomb or a degree of Celsius's."""


def unit_ratio(one: str, other: str) -> Fraction | None:
    """Return how many of the second unit the first is, or ``None`` if they are incommensurable."""
    if one == other:
        return Fraction(1)
    a, b = _known(one), _known(other)
    if a is None and b is None:
        return Fraction(1) if _stems(one) == _stems(other) else None
    if a is None or b is None:
        return None
    if {one, other} in _EITHER:
        return Fraction(1)
    return a[0] / b[0] if a[1] == b[1] else None


def _stems(name: str) -> list[str]:
    name = _SHARE.sub("", name, count=1).replace("people", "person")
    return [re.sub(r"(?<=[^s])s$|(?<=[sxh])es$", "", word) for word in name.split()]


@functools.lru_cache(maxsize=2048)
def _known(name: str) -> tuple[Fraction, Dimension] | None:
    """Return the size and dimension of a known unit such as ``km/h``, ``sq ft`` or ``kg m^-3``."""
    scaled = _SCALED.fullmatch(name)
    name = {"C": "celsius"}.get(scaled[1], scaled[1]) if scaled else _PER.sub("/", name)
    factor, exponents = Fraction(1), dict[str, int]()
    for k, part in enumerate(name.split("/")):
        power = 1
        for token in part.split():
            if token.rstrip(".").lower() in _POWERS:
                power = _POWERS[token.rstrip(".").lower()]
                continue
            found = _NAME.fullmatch(token)
            one = None if found is None else _single(found[1])
            if found is None or one is None:
                return None
            exponent = (-1 if k else 1) * power * int(found[2] or 1)
            power = 1
            factor *= one[0] ** exponent
            for base, count in one[1]:
                exponents[base] = exponents.get(base, 0) + count * exponent
        if power != 1 or (k and not part.strip()):
            return None
    return factor, tuple(sorted((base, n) for base, n in exponents.items() if n))


@functools.lru_cache(maxsize=2048)
def _single(name: str) -> tuple[Fraction, Dimension] | None:
    definition, scale = _SYMBOLS.get(name), 0
    if (
        definition is None
        and name[:1] in _PREFIXES
        and name[1:] in _PREFIXED
        and (name[0] not in "cd" or name[1:] in {"m", "g", "L", "l"})
    ):
        definition, scale = _SYMBOLS[name[1:]], _PREFIXES[name[0]]
    if definition is None:
        definition, scale = _word(name.lower())
    if definition is None:
        return None
    first, *rest = definition.split()
    size = Fraction(first) if first[0].isdigit() else None
    parts = rest if size is not None else [first, *rest]
    made = tuple(
        (base, int(exponent or 1)) for base, _, exponent in (part.partition("^") for part in parts)
    )
    return (size or Fraction(1)) * Fraction(10) ** scale, made


def _word(name: str) -> tuple[str | None, int]:
    name = {"feet": "foot", "inches": "inch", "pennies": "cent", "penny": "cent"}.get(name, name)
    for word in (name, name.removesuffix("s")):
        if word in _WORDS:
            return _WORDS[word], 0
        if word == name and word in {"kg", "km", "cm", "mm", "ml", "mg", "khz", "kpa", "cl", "dl"}:
            symbol = {"khz": "Hz", "kpa": "Pa"}.get(word, word[1:])
            return _SYMBOLS[symbol], _PREFIXES[word[0]]
        for prefix, scale in _PREFIX_WORDS.items():
            rest = word.removeprefix(prefix)
            if rest != word and rest in _WORDS:
                return _WORDS[rest], scale
    return None, 0
