r"""Read the text beside a box: a sign or unit belongs to it, an operator hides the value."""

from __future__ import annotations

import re

from ..maths.unit import is_known_unit
from .markup import RULED_LINE, TEXT_COMMANDS, blank_text, unwrap_text

_REACH = 60
_LINE = 400  # characters before a box in which the start of its formula is looked for
_SPACE = r"(?:\s|~|\\[,;:! ]|\\(?:q?quad|displaystyle|left|hspace\{\w{1,8}\})(?![A-Za-z]))*"
_SPACE_BEFORE = re.compile(_SPACE + r"\Z")
_SPACE_AFTER = re.compile(_SPACE)
_STYLE = rf"\\(?:{'|'.join(TEXT_COMMANDS)}|(?:text)?color(?:box)?|f?colorbox)"
_STYLED = re.compile(
    rf"(?:{_STYLE}\*?\s{{0,2}}(?:\{{[A-Za-z0-9!]{{1,30}}\}}\s{{0,2}})?|(?<![\w}}^_]))\{{\Z"
)
_ARGUMENT = re.compile(
    rf"(?:{_STYLE}|\\(?:begin|end|tag|label|hspace|vspace))\*?(?:\{{[^{{}}]*\}}){{1,2}}\Z"
)
_COMMAND_BEFORE = re.compile(r"\\([A-Za-z]+)\*?\Z")
_WORDS = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{2,}(?=\s)")
_GOES_ON = frozenset("+-−*/^_×·÷<>±\\{")
_SIGN = re.compile(r"(?:[-−–+]|\\(?:pm|mp)(?![A-Za-z])|±)\Z")
_STARTS = re.compile(
    r"(?:\A|[=$(\[{,:&≈<>]|\\\\|\\(?:approx|[Rr]ightarrow|implies|iff|to|equiv|[(\[]))\Z"
)
_ARROW = re.compile(r"(?:[-=]+>|>>>?|</?\|?\w{1,20}\|?>|^[ \t>]*>)\Z", re.MULTILINE)
_MATHS_NAMES = """
cdot times div sqrt frac dfrac tfrac cfrac pi sin cos tan cot sec csc log ln exp choose over binom
ne neq le leq leqslant ge geq geqslant lt gt bmod mod ast sum prod int circ overline bar hat neg
lnot not sout cancel
"""
_MATHS = frozenset(_MATHS_NAMES.split())
_LINK_NAMES = """
approx implies iff Rightarrow rightarrow Longrightarrow to therefore because Leftrightarrow equiv
colon quad qquad displaystyle item hline left right big Big bigg Bigg bigl bigr Bigl Bigr end begin
checkmark square blacksquare qed Box tag label hfill newline nonumber notag par pmod degree text
centering hspace vspace medskip bigskip smallskip dots ldots cdots noindent Large large LARGE huge
Huge bf rm normalsize small boxed fbox
"""
_OPENING = frozenset(("in", "ge", "geq", "geqslant", "le", "leq", "leqslant"))
"""``x \\in \\boxed{[1,2]}`` and ``n \\ge \\boxed{5}`` box the answer; ``<`` may exclude it."""
LINKS = frozenset(_LINK_NAMES.split()).union(TEXT_COMMANDS)
_OPERATORS = frozenset("+/^_{<>≤≥≠×·⋅÷√±²³\\")
_DEGREES = re.compile(
    r"\^\s?(?:\{\s?(?:\\circ|°)\s?\}|\\circ(?![A-Za-z])|°|\{?\\?(?:text|mathrm)?\{?(?:st|nd|rd|th)\}{0,2})"
)
_CLOSED = re.compile(r"(?:\\right\s?)?[)\]]\s?(?:[\^!/\d]|\\(?:cdot|times)(?![A-Za-z]))")
_SHARE = re.compile(r"\\?%|\s?percent(?![A-Za-z])")
_MULTIPLIER = re.compile(
    r"\s{0,3}(?:(hundred|thousand|[bmtr]illion|quadrillion|lakh|crore)s?|(dozen))(?![A-Za-z])"
)


_MORE_DIGITS = re.compile(r"\{?,\}?\d{3}(?!\d)")  # \boxed{42},000
_UNIT = re.compile(
    r"[\s$}~]{0,4}(?:\\[)\],; ]\s?)?"
    r"((?:(?:square|cubic|sq)\.?\s)?(?!(?:in|units?)\b)(?:[A-Za-z]{2,12}|[mgsL](?=[/^²³]|[\s.$)]*(?:\Z|\n)))(?:\^\{?[23]\}?|[²³])?"
    r"(?:\s?/\s?[A-Za-z]{1,12}(?:\^\{?[23]\}?|[²³])?|\sper\s[a-z]{1,12})?)"
    r"(?![\w^/{²³·*'-]|\s(?:per|an?|each|every|by|times|squared|cubed|and\s\d|\$?\d))"
)


def sign_and_unit(text: str, start: int, end: int) -> tuple[str, str] | None:
    r"""Return the sign before ``text[start:end]``, a box, and the unit after it that counts.

    Returns:
        Each is empty if there is none; ``None`` if the box is only a part of a formula.

    Example:
        >>> [sign_and_unit(t, 1, t.find("}") + 1) for t in ("-\\boxed{5}", "2\\boxed{5}")]
        [('-', ''), None]
    """
    whole = text[start - 1 : start] == "$" == text[end : end + 1]
    formula = not whole and _in_formula(text, start)
    before = text[max(0, start - _REACH) : start]
    while (bare := _stripped(before)).endswith("{") and _STYLED.search(bare):
        before = _STYLED.sub("", bare)
        end = _closing_brace(text, end)
    sign = _before(before, formula)
    unit = None if sign is None else _after(text, end, formula)
    return None if sign is None or unit is None else (sign, unit)


def unit_after(text: str, end: int) -> str:
    r"""Return the known unit that follows a value, as ``\text{ km}``; empty if there is none.

    A unit that goes on (``miles an hour``, ``feet 6 inches``) is not read.
    """
    found = _UNIT.match(unwrap_text(text[end : end + _REACH], " "))
    name = found[1].replace("²", "^2").replace("³", "^3") if found else ""
    return f"\\text{{ {name}}}" if name and is_known_unit(name) else ""


def _in_formula(text: str, start: int) -> bool:
    """Return whether a formula opens before ``start`` on the same lines and is not closed."""
    line = text[max(0, start - _LINE) : start]
    line = line[line.rfind("\n\n") + 1 :]
    inline = line[line.rfind("\n") + 1 :]
    if line.rfind("\\[") > line.rfind("\\]") or line.rfind("\\(") > line.rfind("\\)"):
        return True
    if line.count("$$") % 2:
        return True
    money = _WORDS.search(blank_text(inline[inline.rfind("$") + 1 :]))
    return (inline.count("$") - inline.count("\\$")) % 2 == 1 and not money


def _stripped(before: str) -> str:
    if "\\" not in before and "~" not in before:
        return before.rstrip()
    space = _SPACE_BEFORE.search(before)
    return before[: space.start()] if space else before


def _closing_brace(text: str, end: int) -> int:
    at = _SPACE_AFTER.match(text, end, end + _REACH)
    behind = at.end() if at else end
    return behind + 1 if text[behind : behind + 1] == "}" else end


def _before(before: str, formula: bool) -> str | None:
    """Return the sign of a box; ``None`` if what precedes it is an operator or a factor."""
    before = RULED_LINE.sub("\n", before)
    bare = _stripped(before)
    glued = bare == before
    sign = _SIGN.search(bare)
    if sign:
        rest = _stripped(bare[: sign.start()])
        mark = "-" if sign[0] in "−–" else sign[0]
        if _STARTS.search(rest) if rest else glued or formula:
            return "" if mark == "+" else mark
        if rest[-1:].isalpha() and rest[-2:-1].isalpha() and not formula:  # a dash after a word
            return mark if glued and mark != "+" and rest != bare[: sign.start()] else ""
        if not formula and (not rest or "\n" in bare[len(rest) :] or rest[-1] in '*.!?;”"'):
            return ""
        return None
    if not bare or bare[-1] == "$" or ("\n" in before[len(bare) :] and bare[-1] not in _GOES_ON):
        return ""
    last = bare[-1]
    command = _COMMAND_BEFORE.search(bare)
    if command:
        linked = command[1] in LINKS or command[1] in _OPENING
        return "" if linked or not (formula or command[1] in _MATHS) else None
    if last in "∈≥≤":
        return ""
    if last == "}":
        return "" if not formula or _ARGUMENT.search(bare) else None
    if last in "([":
        rest = _stripped(bare[:-1])
        return None if formula and (rest[-1:].isalnum() or rest[-1:] in {"-", "−"}) else ""
    if last == ">" and _ARROW.search(bare):
        return ""
    if last == "*":
        return None if (formula or glued) and re.search(r"[\w)}]\s?\*\Z", bare) else ""
    if last in "|!":
        return None if formula else ""
    if last == "\\" and not bare.endswith("\\\\"):  # a backslash that was escaped
        return _before(bare[:-1], formula)
    if last in _OPERATORS:
        return "" if last == "\\" else None  # a new line
    if last in ".," and glued:
        return None if bare[-2:-1].isdigit() else ""
    if last.isdigit() or last == ")":
        return None if formula or (glued and last.isdigit()) else ""
    if last.isascii() and last.isalpha():
        word = re.search(r"[A-Za-z]+\Z", bare)
        return None if (formula or glued) and word and len(word[0]) < 3 else ""
    return ""


def _after(text: str, end: int, formula: bool) -> str | None:
    """Return the unit of a box that changes its value; ``None`` if what follows is no unit."""
    space = _SPACE_AFTER.match(text, end, end + _REACH)
    at = space.end() if space else end
    glued, rest = at == end, text[at : at + _REACH]
    if rest[:1] == "$" or rest[:2] in {"\\)", "\\]"}:
        formula, rest = False, rest.lstrip("$") if rest[0] == "$" else rest[2:]
        glued, rest = False, rest.lstrip()
    if formula and _CLOSED.match(rest):
        return None  # (5)^2
    worded = unwrap_text(rest)
    if _SHARE.match(worded):
        return "\\%"
    if glued and _MORE_DIGITS.match(rest):
        return None
    multiplier = _MULTIPLIER.match(worded)
    if multiplier:
        return f"\\text{{ {multiplier[1] or multiplier[2]}}}"
    if not rest or rest.startswith("\\\\"):
        return ""
    if _DEGREES.match(rest):
        return ""
    command = re.match(r"\\([A-Za-z]+)", rest)
    if command and command[1] in {"mod", "bmod"} and "\\equiv" in text[max(0, end - _LINE) : end]:
        return ""
    if command:
        return "" if command[1] in LINKS or not (formula or command[1] in _MATHS) else None
    first, second = rest[0], rest[1:2]
    if (first == "{" or (first == "(" and glued)) and (second.isdigit() or second == "-"):
        return None
    if first == "\\":
        return "" if second in "()[]$%&,;:! " else None
    if not formula and not glued:
        return None if first in "+±/^_×·÷" else ""
    if first in "-−–":
        return None if second.isalnum() or second in "\\({" or (formula and second == " ") else ""
    if first == "*":
        return None if rest[:2] != "**" and formula else ""
    if first in "!|<>":
        return None if formula else ""
    if first in "^_/+×·⋅÷±²³√":
        return None
    if first.isdigit() or (first == "." and glued and second.isdigit()):
        return None
    if first == "(":
        return None if formula and not rest.startswith("(\\text") else ""
    if first.isascii() and first.isalpha():
        return None if not second.isalpha() else ""
    return ""
