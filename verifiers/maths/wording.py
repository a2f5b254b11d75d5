r"""Answers that hold words: ``12\text{ R }3``, ``\angle ABC``, ``A \to B``, ``HHT``.

Words are compared as words, in their order, and the values between them as values. Letters are
factors of a product only if no word stands among them: ``HHT`` is not ``THH``, nor ``IV`` ``VI``.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

from ..text.markup import unwrap_text
from .comparison import Comparison
from .number import Number, read_respelled
from .number_words import is_number_word, read_chinese, read_number_words, read_roman
from .tokens import FUNCTIONS
from .unit import may_be_added, read_unit, unit_ratio

_GEOMETRY = "angle|triangle|overline|widehat|overrightarrow|parallel|perp|cong|odot|square"
_ARROWS = (
    "to|rightarrow|Rightarrow|longrightarrow|implies|mapsto|leftrightarrow|iff"
    "|subseteq|subset|supseteq|supset|nmid|sim"
)
_TOKEN = re.compile(
    r"(?P<index>_\{?\\text\{[^{}]*\}\}?|_\{[^{}]*\})|\\(?:text|mathrm)\{(?P<text>[^{}]*)\}"
    rf"|\\(?P<sign>{_GEOMETRY}|{_ARROWS})(?![A-Za-z])"
    r"|(?<=°)(?P<side>[NSEW])(?![A-Za-z])|(?P<command>\\[A-Za-z]+)|(?P<run>[A-Za-z]+)|(?P<rest>.)",
    re.DOTALL,
)
_SHAPED = re.compile(rf"\\(?:{_GEOMETRY})(?![A-Za-z])")
_SIGNS = re.compile(rf"\\(?:{_GEOMETRY}|{_ARROWS})(?![A-Za-z])|°[NSEW]")
_INDEX = re.compile(r"_\{[^{}]*\}")
_INSIDE = re.compile(r"[A-Za-z][A-Za-z'’-]*|[-+]?\$?\d[\d.,/:]*(?<![.,:])%?|[^\w\s.,;:()]")
_NOT_WORDS = frozenset((*FUNCTIONS, "gcd", "lcm", "max", "min", "lim", "det", "mod", "sqrt", "frac",
                        "pi", "dx", "dy", "dt", "begin", "end", "e"))  # fmt: skip
_FILLERS = frozenset((
    "a", "an", "the", "and", "is", "are", "of",
))  # fmt: skip
_SYNONYMS = {"r": "remainder", "rem": "remainder", "column": "col", "rightarrow": "to"}
_LABELS = frozenset((
    "so", "thus", "hence", "therefore", "the", "final", "correct", "answer", "ans", "result",
    "value", "total", "limit", "sum", "solution", "is", "are", "equals", "area", "volume",
    "probability", "number", "perimeter", "length", "point", "vertex", "center", "centre", "focus",
    "vector", "interval", "range", "domain", "coordinates", "minimum", "maximum", "ratio",
))  # fmt: skip
_PAIR = re.compile(r"\([^()]+[,;][^()]+\)")
_BETWEEN_DIGITS = re.compile(  # 2R3, but not 2ln3
    rf"(?<=[0-9])(?!(?:{'|'.join(FUNCTIONS)})[0-9])[A-Za-z]+(?=[0-9])"
)
_RUN = re.compile(r"(?<![\\A-Za-z{])[A-Za-z]{4,}")
_WORD_LIKE = re.compile("[A-Z]?[a-z]+|[A-Z]+")


def is_word(run: str) -> bool:
    """Return True if letters alone are a word or an arrangement, not a product.

    A product has lower-case letters without vowels, or in the order of the alphabet without e and
    o: ``mgh``, ``ab``. Other lower-case letters, such as ``no`` and ``apples``, capitals such as
    ``ABC``, and ``Ian`` are words; ``nRT`` is none.
    """
    if not _WORD_LIKE.fullmatch(run) or run in _NOT_WORDS:
        return False
    vowels = "eo" if len(run) < 4 else "eiou"  # ai may be a product, chip is none
    if not run.islower() or set(run) & set(vowels):
        return True
    return list(run) != sorted(run) and not set(run).isdisjoint("aeiouy")


def _is_long_word(run: str) -> bool:
    """Return True for letters that are a word in any place, also in a formula."""
    return len(run) > 3 and is_word(run) and not set(run.lower()).isdisjoint("aeiou")


def words_and_values(text: str) -> tuple[str, ...]:
    r"""Return the words, as ``\text{...}``, and the values between them; empty without words."""
    if not (
        "\\text" in text
        or _SIGNS.search(_INDEX.sub("", text))
        or _BETWEEN_DIGITS.search(text)
        or any(map(_is_long_word, _RUN.findall(text)))
    ):
        return ()
    shaped = _SHAPED.search(text) is not None
    found: list[str] = []
    value = ""
    for token in _TOKEN.finditer(text):
        kind, piece = token.lastgroup, token.group()
        words: Sequence[str] = ()
        if kind == "text":
            words = _INSIDE.findall(token["text"])
        elif kind in {"sign", "side"} or (
            kind == "run"
            and (shaped or _is_long_word(piece) or _BETWEEN_DIGITS.match(text, token.start()))
        ):
            words = (token[kind or 0],)
        else:
            value += piece
            continue
        found += [value, *(f"\\text{{{word}}}" if word[0].isalpha() else word for word in words)]
        value = ""
    parts = [part for part in map(_trimmed, [*found, value]) if part]
    for k, part in enumerate(parts[1:], 1):
        if parts[k - 1] == "\\text{angle}" and len(part) == 10:  # \angle CBA is \angle ABC
            parts[k] = min(part, f"\\text{{{part[-2:5:-1]}}}")
    return tuple(parts) if any(part.startswith("\\text") for part in parts) else ()


def _trimmed(part: str) -> str:
    part = part.strip(" ,;:")
    return part if _PAIR.fullmatch(part) else part.strip(" ,;:()")


def _word(part: str) -> str | None:
    return part[6:-1] if part.startswith("\\text{") else None


def _same_word(gold: str, answer: str) -> bool:
    if gold.isupper() and len(gold) > 1 and gold not in {"NO", "YES"}:
        return gold == answer
    one, other = (_SYNONYMS.get(w.lower(), w.lower()) for w in (gold, answer))
    return one == other or unit_ratio(one, other) == 1


def _without_fillers(parts: Sequence[str]) -> list[str]:
    return [part for part in parts if (_word(part) or "").lower() not in _FILLERS]


def same_wording(gold: Sequence[str], answer: Sequence[str], on: Comparison, depth: int) -> bool:
    """Return True if words and values agree in order, or as labelled values in any order."""
    left, right = _without_fillers(gold), _without_fillers(answer)
    if len(left) != len(right) or not left:
        return False
    if _same_order(left, right, on, depth):
        return True
    named, other = _labelled(left), _labelled(right)
    if named is None or other is None or named.keys() != other.keys():
        return False
    return all(on.same(named[label], other[label], depth + 1) is True for label in named)


def _same_order(left: Sequence[str], right: Sequence[str], on: Comparison, depth: int) -> bool:
    for one, other in zip(left, right, strict=True):
        word, given = _word(one), _word(other)
        if (word is None) is not (given is None):
            return False
        if word is not None and given is not None:
            if not _same_word(word, given):
                return False
        elif on.same(one, other, depth + 1) is not True:
            return False
    return True


def _labelled(parts: Sequence[str]) -> dict[str, str] | None:
    """Return values by label, ``row 2 column 6`` or ``3 boys 4 girls``, each label once."""
    words = [_word(part) for part in parts]
    first = words[0] is not None
    if len(parts) % 2 or any(
        (word is not None) is (first is (k % 2 == 1)) for k, word in enumerate(words)
    ):
        return None
    pairs = zip(words[1 - first :: 2], parts[first::2], strict=True)
    named = {(word or "").lower(): value for word, value in pairs}
    return named if len(named) == len(parts) // 2 else None


def labelled_value(parts: Sequence[str]) -> str | None:
    """Return the value of an answer such as ``The answer is 42`` or ``Total: 42``, or ``None``."""
    *label, value = parts
    if not label or _word(value) is not None or len(label) > 6:
        return None
    return value if all((_word(part) or "?").lower() in _LABELS for part in label) else None


def read_count(text: str) -> Number | None:
    """Read a number in words, with a unit or without: ``five``, ``twenty-five apples``."""
    plain = unwrap_text(text, " ").replace(" and a ", " and one ")
    plain = _PART_OF_ONE.sub(r"\1 ", plain)
    if not plain.replace("-", "").replace(" ", "").isalpha() or len(plain) > 120:
        return None
    if not plain.isascii():
        value = read_chinese(plain)
        return None if value is None else Number(value)
    words = plain.split()
    if words[-1:] == ["percent"] and (value := read_number_words(" ".join(words[:-1]))) is not None:
        return Number(value, percent=True)
    count = next((k for k, w in enumerate(words) if not _counts(w, k)), len(words))
    value = read_number_words(" ".join(words[:count])) if count else None
    unit = read_unit(f"\\text{{{' '.join(words[count:])}}}") if count < len(words) else ""
    if value is None or unit is None or (unit and not may_be_added(unit, value)):
        return None
    return Number(value, unit=unit)


_PART_OF_ONE = re.compile(r"\b(half|thirds?|quarters?)(?: of)? an? (?=[a-z])")  # half an hour
_GROUPED = re.compile(r"-?[1-9]\d{0,2}([._])\d{3}(?:\1\d{3})+", re.ASCII)
_THOUSANDS = re.compile(r"([-+]?\$?)(\d[\d,]{0,20}(?:\.\d{1,9})?) ?([kKMB])")
_POWERS = {"k": 10**3, "K": 10**3, "M": 10**6, "B": 10**9}


def in_short(text: str) -> Number | None:
    """Read ``7K``, ``$1.5M``, ``XLII`` and ``1.234.567``: numbers only if the reference is one."""
    text = unwrap_text(text)
    if grouped := _GROUPED.fullmatch(text):
        return read_respelled(text.replace(grouped[1], ""))
    thousands = _THOUSANDS.fullmatch(text)
    if thousands:
        amount = read_respelled(thousands[1] + thousands[2])
        value = amount.value * _POWERS[thousands[3]] if amount else None
        return replace(amount, value=value, digits=0) if amount and value is not None else None
    value = read_roman(text)
    return None if value is None else Number(value)


def _counts(word: str, place: int) -> bool:
    word = word.lower()
    if word in {"minus", "negative", "and", "a"}:
        return word == "and" or place < 2
    return all(is_number_word(part) for part in word.split("-"))


# -- several units -----------------------------------------------------------------------------

_PART = re.compile(r" *(\d+(?:\.\d+)?) *([A-Za-z]{1,12}\.?|°|''|'|″|′|\")[ ,]*", re.ASCII)
_MARKS = {"'": "foot", "′": "foot", "''": "inch", "″": "inch", '"': "inch"}
_ARC = {"foot": Fraction(1, 60), "inch": Fraction(1, 3600)}


def read_compound(text: str) -> Number | None:
    r"""Read ``2\text{ hours }30\text{ minutes}``, ``5'6''`` or ``22°30'`` as one quantity.

    Units of one kind, each smaller than the one before; ``None`` for the rest.
    """
    if len(text) > 200 or not text[:1].isdigit():
        return None
    flat = unwrap_text(text, " ")
    parts, at = [], 0
    while at < len(flat) and (part := _PART.match(flat, at)):
        parts.append((Fraction(part[1]), _MARKS.get(part[2], part[2].rstrip("."))))
        at = part.end()
    marked = len(parts) == 1 and flat[-1:] in _MARKS  # 5' is 5 feet
    if at < len(flat) or (len(parts) < 2 and not marked):
        return None
    if parts[0][1] == "°":
        if any(unit not in _ARC for _, unit in parts[1:]):
            return None
        total = sum((n * _ARC[unit] for n, unit in parts[1:]), parts[0][0])
        return Number(total, unit="degree", compound=True)
    smallest = parts[-1][1]
    sizes = [unit_ratio(unit, smallest) for _, unit in parts]
    if None in sizes:
        return None
    known = [size for size in sizes if size is not None]
    if any(a <= b for a, b in pairwise(known)):
        return None
    total = sum((n * size for (n, _), size in zip(parts, known, strict=True)), Fraction(0))
    return Number(total, unit=smallest, compound=True)
