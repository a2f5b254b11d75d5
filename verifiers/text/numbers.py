"""Read the last number or formula of a reply that marks no answer."""

from __future__ import annotations

import re

from ..maths.wording import read_count
from .answer import MAX_ANSWER, Answer
from .beside import unit_after
from .hedging import is_stated, left_open, stands_alone
from .markup import DELIMITERS, RULED_LINE, strip_bold, unwrap_text

_REACH = 160  # characters on either side of the number that are read
_NUMBER_CHARS = "0123456789.,/"
_ITEM = re.compile(r"^[ \t]*(\d{1,3})[.)]\s", re.MULTILINE)
_MONEY = frozenset("€£¥₹")  # no dollar, which may open a formula
_SPACING = re.compile(r"\\[,;:! ]|\\(?:left|right|displaystyle)(?![A-Za-z])|~|\xa0|\u2009|\u202f")
_FRACTION = re.compile(r"\\[dtc]?frac\s{0,2}(?:\{[^{}]{1,60}\}|\d)\s{0,2}(?:\{[^{}]{1,60}\}|\d)\Z")
_SCIENTIFIC = re.compile(r"(?<![\w.])\d[\d,]{0,30}(?:\.\d{1,30})?[eE][-+]?\Z")
_PART_OF_PAIR = re.compile(r",(?!\d{3}(?!\d))")  # (1,2) is no number
_WHOLE_BEFORE = re.compile(r"(?<![\w./,^_])(\d[\d,]{0,20})([ ]{0,2})\Z")
_GROUP = re.compile(r"(?<=[=$])\{\s?(?=-?\Z)|(?<=[=(])\s{0,3}\+\s{0,3}\Z")  # x={-5}, x=+5
_SIGN = re.compile(r"([-−⁻‐‑–—])(\s{0,3})([$€£¥]?)\Z")
_OPENS = re.compile(r"(?:[=≈(\[{$:>`\"“]|\\(?:approx|[Rr]ightarrow|implies|to)|→|⇒)\s{0,3}\Z")
_OPERAND = re.compile(r"(?:[\d)}\]*^/+·×÷−_|±\\-]|(?<![A-Za-z])[A-Za-z])\Z")
_SPOKEN_SIGN = re.compile(
    r"\bnegative\s{1,3}\Z"
    r"|(?:=|\b(?:is|was|be|are|equals|gives|get|gets|of|at|to|exactly|answer:))\s{1,3}minus\s{1,3}\Z",
    re.IGNORECASE,
)
_SPACED = re.compile(r"(?<=\d) / (?=\d{1,20}\Z)")
_MAGNITUDE = re.compile(r"\s{1,3}(?:hundred|thousand|million|billion|trillion)(?![A-Za-z])")
_SPOKEN = re.compile(r"\s?\(([A-Za-z -]{3,60})\)")
_DENIED_LAST = re.compile(r",? \(?not \$?-?\d[\d.,]*\$?\)?[.\s]*\Z")  # 17 (not 16)
_UNIT_POWER = re.compile(  # 42 cm^2
    r"(?:(?<=[\d}] (?:cm|mm|km|ft|in|yd|mi))|(?<=[\d}] m))\^\{?([23])\}?(?=[.$\s*]{0,6}\Z)"
)
_PERCENT = re.compile(r"\s?\\?%|\s{1,2}per\s?cent(?![A-Za-z])")


def last_number(text: str) -> Answer | None:
    r"""Return the last number with its sign, fraction, exponent and percent sign.

    The whole of what the reply writes is read, or nothing: a number that is only a part of a
    list or of a name ("Step 5"), and one that the words beside it hedge or deny, is no answer. If
    the number is a part of a formula that ends the reply ("So $f(x)=x^2+1$."), or there is none,
    that formula is read, or a reply that is nothing but a formula or a few words. A
    reply that is nothing but a set or a list with dots is read whole; if an option's letter and a
    number are the whole reply ("C. 12"), the letter is its label.
    """
    whole = text.strip().rstrip(".").strip("$") if len(text) < 200 else ""
    if _SET_OR_DOTS.fullmatch(whole):
        return Answer(whole)
    text = _UNIT_POWER.sub(lambda power: "²³"[power[1] == "3"], text)
    denied = _DENIED_LAST.search(text, max(0, len(text) - 40))
    found = _number(text[: denied.start()] if denied else text)
    if denied and found and found.text:
        return found._replace(text=found.text + denied[0].rstrip(". \n"))
    rounded = "approx" in text[-80:] or "≈" in text[-80:]  # $\sqrt{3} \approx 1.73$
    number = found is not None and found.text is not None
    formula = None if number and not rounded else _closing_formula(text)
    if found is not None and found.text is not None and formula is None:
        label = text.strip().removesuffix(".").removesuffix(found.text)
        return found._replace(label=label) if _OPTION_LABEL.fullmatch(label) else found
    return formula or _bare(text) or found


_FUNCTION = re.compile(r"\\[A-Za-z]+|(?<![A-Za-z])(?:sin|cos|tan|log|ln|exp|sqrt|pi)(?![A-Za-z])")
_PAIR = re.compile(r"\s*(?:\\left\s*)?(?:[(\[][^()\[\]]+,[^()\[\]]+[)\]]|\\\{[^{}]+\\\})\s*")
_OPTION_LABEL = re.compile(r"(?:\([A-Z]\)|[A-Z][.)])\s{1,3}")
_SET_OR_DOTS = re.compile(r"\\\{[^{}?]+\\\}|[-\d ,]+\\[lc]?dots[-\d ,]*")
_FEW_WORDS = re.compile(r"[(*_\s]{0,4}[A-Za-z]+(?:[ '-][A-Za-z]+){0,2}[.)*_\s]{0,4}")


def _closing_formula(text: str) -> Answer | None:
    """Return the formula that ends the reply, if its words state it; a bare number is none."""
    body = text.rstrip(" \t\r\n.。*")
    for left, right in DELIMITERS:
        begin = _last_mark(body, left, len(body) - len(right)) if body.endswith(right) else -1
        if begin < 0 or begin + len(left) > len(body) - len(right):
            continue
        content = body[begin + len(left) : len(body) - len(right)]
        before = body[:begin].replace("*", "")
        if (_LETTER.search(content) or _PAIR.fullmatch(content)) and is_stated(before):
            return None if left_open(body, begin, len(body)) else Answer(content)
    return None


def _bare(text: str) -> Answer | None:
    """Return a reply of one line that is nothing but a formula with a variable, or a few words."""
    line = strip_bold(text.strip())
    if "\n" in line or len(line) > 120:
        return None
    if _FEW_WORDS.fullmatch(line):
        return Answer(line.strip("*_ ."))
    said = _NAMED.sub("", line, count=1)
    letters = _FUNCTION.sub(" ", said)
    formula = _LETTER.search(letters) and not _TWO_LETTERS.search(letters)
    amount = any(sign in said for sign in "^+-*/\\(√²") and not _RELATION.search(said)
    return Answer(line.rstrip(".")) if formula and amount else None


_RELATION = re.compile(r"[$%=<>?]|\\(?:neq?|leq?|geq?|approx|sim|in)(?![A-Za-z])")
_NAMED = re.compile(r"[A-Za-zθ](?:'|_?\w)?(?:\([a-z]\))? ?= ?")  # f(x) = x^2
_LETTER = re.compile("[A-Za-zπ√]")
_TWO_LETTERS = re.compile("[A-Za-z]{2}|[^\x00-\x7fπ√²³−·×]")


def _number(text: str) -> Answer | None:
    """Return the last number, a refusal of it, or ``None`` if there is none."""
    end = len(text)
    while end and not ("0" <= text[end - 1] <= "9"):
        end -= 1
    if not end:
        return None
    close = end + len(text[end : end + 2]) - len(text[end : end + 2].lstrip("}"))
    known = text[max(0, end - MAX_ANSWER) : end]
    reach = _REACH + len(known) - len(known.rstrip(_NUMBER_CHARS))
    before = _SPACED.sub("/", _plain(text[max(0, end - reach) : close]).rstrip())
    after = text[close : close + _REACH]
    fraction = _FRACTION.search(before) or _FRACTION.search(before, 0, len(before) - 1)
    if fraction:
        number, before = fraction[0], before[: fraction.start()]
    else:
        before, after = before.rstrip("} "), text[end : close + _REACH]
        start = len(before)
        while start and before[start - 1] in _NUMBER_CHARS:
            start -= 1
        number = before[start:].lstrip(",/")
        before = before[: len(before) - len(number)]
        if exponent := _SCIENTIFIC.search(before):
            number, before = exponent[0] + number, before[: exponent.start()]
    after = _plain(after)
    mixed = _WHOLE_BEFORE.search(before) if fraction or "/" in number else None
    if mixed and (fraction or mixed[2]):  # 2\frac{1}{3}, 2 1/3
        number, before = mixed[0] + number, before[: mixed.start()]
    last = _ITEM.findall(before) if after.strip() in {".", ")"} and before[-1:] == "\n" else None
    if last and number == str(int(last[-1]) + 1):
        return _refused()  # the mark of a list's next item
    before = RULED_LINE.sub("\n", _GROUP.sub("", before))
    money = before[-1:] if before[-1:] in _MONEY else ""
    signed = _signed(before, alone=end <= _REACH and not after.strip(" .\n"))
    if signed is None:
        return _refused()
    sign, before = signed
    before = _without_repeats(before, sign + number)
    if not stands_alone(before, after) or (before.endswith("(") and _PART_OF_PAIR.search(number)):
        return _refused()
    spoken = _SPOKEN.match(after)
    if spoken and read_count(spoken[1]):  # 17 (seventeen)
        return Answer(sign + number + spoken[0])
    magnitude, percent = _MAGNITUDE.match(after), _PERCENT.match(after)
    if percent and not stands_alone(before, after[percent.end() :]):  # 5% x
        return _refused()
    unit = magnitude.group() if magnitude else "%" if percent else ""
    return Answer(sign + money + number + unit, unit="" if unit else unit_after(after, 0))


def _without_repeats(before: str, number: str) -> str:
    """Drop the lines above a number's own that hold the same number and nothing else."""
    while True:
        above, line_end, own = before.rpartition("\n")
        head, _, last = above.rstrip().rpartition("\n")
        if own.strip() or not line_end or last.strip(" *$.%\\") != number:
            return before
        before = head + "\n"


def _plain(text: str) -> str:
    r"""Return a text without what only sets a number off: ``\text``, spacing, bold print."""
    if "\\" in text or "~" in text or not text.isascii():
        text = _SPACING.sub(" ", unwrap_text(text, " ").replace("\\$", "$"))
    return strip_bold(text)


def _signed(before: str, *, alone: bool) -> tuple[str, str] | None:
    """Return the sign of a number and what precedes it; ``None`` if a dash may be a sign or not.

    A hyphen or a minus that is glued to the number is its sign, and so is one after ``=``, an
    opening bracket or nothing. A dash after a word may be either.
    """
    found = _SIGN.search(before)
    if found is None:
        spoken = _SPOKEN_SIGN.search(before, max(0, len(before) - 24))
        if spoken is None:
            return "", before
        return "-", before[: spoken.start()] + re.split(r"(?i)negative|minus", spoken[0])[0]
    dash, space, _ = found.groups()
    rest = before[: found.start()]
    bare = rest.rstrip()
    bare = "" if "\n" in rest[len(bare) :] else bare
    if _OPENS.search(rest) or (not bare and alone):
        return "-", rest
    if _OPERAND.search(bare):
        return None  # 8 - 5
    if (
        rest
        and rest[-1].isspace()
        and "\n" not in rest[len(bare) :]
        and ((not space and dash != "—") or dash in "−⁻")
    ):
        return "-", rest
    if not space and dash in "-−⁻" and (not rest or "\n" in rest[len(bare) :]):
        return "-", rest
    return None


def _refused() -> Answer:
    return Answer(None, reason="the last number is hedged, taken back or part of something else")


def last_math(text: str) -> Answer | None:
    r"""Return the last ``$...$``, ``\(...\)`` or ``\[...\]``."""
    best: tuple[int, int, str] | None = None
    for left, right in DELIMITERS:
        close = _last_mark(text, right, len(text))
        begin = _last_mark(text, left, close) if close > 0 else -1
        if begin < 0 or close < begin + len(left):
            continue
        content = text[begin + len(left) : close]
        if content.strip() and (best is None or close > best[1]):
            best = (begin, close + len(right), content)
    if best is None:
        return None
    begin, end, content = best
    if left_open(text, begin, end):
        return Answer(None, reason="the last formula is hedged, denied or taken back")
    other = _FORMULA_OR.search(text[max(0, begin - 60) : begin])
    return Answer(f"{other.group(1)} , {content}" if other else content)


def _last_mark(text: str, mark: str, end: int) -> int:
    """Return the last index of a delimiter before ``end``; an escaped dollar is money."""
    at = text.rfind(mark, 0, end)
    while mark == "$" and at > 0 and text[at - 1] == "\\":
        at = text.rfind(mark, 0, at)
    return at


_FORMULA_OR = re.compile(r"(?:\$|\\\()([^$]{1,40}?)(?:\$|\\\)),?\s{1,3}or\s{1,3}\Z")
