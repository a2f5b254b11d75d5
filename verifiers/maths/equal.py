r"""Compare an answer with a reference, without symbolic computation.

:func:`compare_answers` says True, False, or None: None is "not from here", and only such pairs go
on to the symbolic worker. What it refuses it refuses for good: negations, lists compared with
single values, other variables, other brackets. The known false positives of the symbolic
library lie there.
"""

from __future__ import annotations

import itertools
import re
from dataclasses import replace

from ..text.markup import strip_bold, unwrap_text
from .approximation import without_approximations
from .boolean import same_table, with_events
from .chemistry import compound
from .choice import Choice, is_letter, read_choice
from .collection import (
    BAGS,
    RANGES,
    named_members,
    same_bags,
    same_ranges,
    same_sequences,
    solutions,
)
from .comparison import MAX_DEPTH, Comparison, any_of
from .conventions import Conventions
from .equations import assignment, same_equations
from .evaluate import real_value
from .expression import read_expression
from .formula import UNDEFINED
from .identity import constant_value, value_of
from .intervals import finite_set, impossible, overlapping, read_intervals
from .items import read_items
from .latex import PLAIN, is_balanced, normalized, split_top
from .lines import is_flat, same_flat
from .matrices import same_product
from .number import read_foreign, read_respelled
from .parsed_answer import MEMBER, Kind, ParsedAnswer, as_interval, as_list, parse_answer, words_of
from .piecewise import read_cases, same_cases
from .progression import same_progressions
from .qualifiers import renamings, same_bound, same_sets, split_binders, split_qualifiers
from .quantity import (
    same_bases,
    same_congruences,
    same_formulas,
    same_quantities,
    same_ratios,
    same_times,
    to_be_reduced,
    to_be_worked_out,
)
from .variables import letters, renamed
from .wording import in_short, labelled_value, read_count, same_wording, words_and_values

_NEGATIONS = re.compile(
    r"(?<![A-Za-z])(?:(?<!does )not(?! defined)|isn't|wrong|incorrect|neither|nor|either|except|"
    r"maybe|perhaps|possibly|probably|unknown|unsure|other|"
    r"(?<!for )(?<!is )any|anything|nan)(?![A-Za-z])",
    re.IGNORECASE,
)
_LETTER = re.compile(r"(?<![\\A-Za-z])[A-Za-z]")  # of no command
_BRACED = re.compile(r"([\^_])\{([A-Za-z]|\d(?=\}\W|\}$))\}")
_CAPITALS = re.compile("[A-Z]{2,}")
_OPTIONS = re.compile(r"(?:(?:[A-Z]|\([a-z]\))(?:,|\Z))+")
_POINT = re.compile(r"\A[A-Z](\(.*\))\Z", re.DOTALL)
_AND = re.compile(r"(?<![A-Za-z])(?:and|land|wedge|∧)(?![A-Za-z])|[且和]")
_OR = re.compile(r"(?<![A-Za-z])(?:or|lor|vee|∨)(?![A-Za-z])|或")
_SOLVED = re.compile(r"[=<>\d]|\\(?:[lg]e|in|text)")  # x=a \vee x=b is a list of solutions
_NAMES_JOINED = re.compile(
    r"(?:(?<!\\)\b[A-Za-z]{2,}|\([a-z]\)) (and|or) (?:[A-Za-z]{2,}|\([a-z]\))"
)
_COMPLEX = re.compile(r"(?=.+[-+]|.*e\^|.*\\pm).*(?<![A-Za-z\\])i(?![A-Za-z])")
_TIMES = re.compile(r" |\\(?:cdot|times) ?")
_SIZE = re.compile(r"\|([a-z])\|=([^=,|]{1,60})")
_EXCEPT = re.compile(r"([a-z])\\ne ?([^,]{1,20})")
_FROM_FIRST = re.compile(r"[A-Za-z]_([a-z])=.*\|\1(?:\\ge ?[01]|>0)")  # a_n=2n, n \ge 1
_LETTER_UNIT = re.compile(
    r"([\d.,]{1,20}(?:e-?\d{1,3})?|\\frac\{\d+\}\{\d+\}) ?([ghLmNsKCAJWV])", re.ASCII
)
_APPROX = "\\approx"
_ENDLESS = re.compile(r"-?\d+\s?\.{2,}", re.ASCII)  # 42...
_VECTOR = r"\\(?:vec|mathbf|boldsymbol|bm) ?\{? ?([A-Za-z]) ?\}?"
_VECTORS = re.compile(rf"{_VECTOR} ?(\\times|\\cdot) ?{_VECTOR}")
_NOT_BUT = re.compile(  # not 43 but 42
    r"\A(?:not|不是) ?([^(),，]{1,40}?)[,;，]? ?"
    r"(?:but(?: rather)? |it is |it's |而是)([^(),，]{1,80})\Z"
)
_OTHERWISE = ("not", "不是", "rather than", "instead of")
_REMARK = re.compile(
    r"([^()]{1,80}?),? ?(?:\((?P<not>(?:and )?not )?(?P<other>[^()]{1,60})\)"
    r"|(?:, ?not |，而?不是|(?:rather than|instead of) )(?P<than>[^(),，]{1,40}))"
)
_WORKED = re.compile(
    r"-?[\d.,]+ \((?:= ?)?(?:[\d.]+ ?(?:[-+*/×·÷]|\\times|\\cdot) ?){1,9}[\d.]+\)", re.ASCII
)
_EXTRANEOUS = re.compile(  # x=42 (the other root -3 is extraneous)
    r"([^()]{0,60}?(-?\d[\d./]{0,20})\}?) ?\([^()\d]{0,40}?(-?\d[\d./]{0,20})[^()\d]{0,16}"
    r"\b(?:extraneous|rejected|discarded|invalid)\)"
)
_NOUNS = frozenset((" number", " function", " integer", " triangle"))
_DECISION = re.compile(r"(?i)(?:\\text\{)?\s?(?:yes|no|true|false)\.?\s?\}?")
_DECIDED = re.compile(  # Yes, it converges
    r"(?i)\s*(yes|no|true|false)\s*[,;:.–—-]\s*"
    r"(?:(?!\b(?:but|if|unless|only|or|except|maybe|perhaps|when|yes|no|true|false)\b)[^?\n]){1,120}"
)
_UNSURE = ("\\phantom", "\\not", "\\neg", "\\sim", "?", "..", "\\dots")


def comparison(conventions: Conventions) -> Comparison:
    """Return the comparison in which :func:`compare_answers` records notes."""
    return Comparison(conventions, _member)


def compare_answers(gold: str, answer: str, on: Comparison) -> bool | None:
    """Compare an answer with a reference without any symbolic computation.

    Args:
        gold: bare LaTeX or text.
        answer: likewise; hostile text, at most ``MAX_ANSWER`` characters.
        on: the conventions; takes note of those that decided.

    Returns:
        True or False if decided here, else ``None``.
    """
    if _same_items(gold, answer, on):
        return on.note("part by part")
    answer = _without_remark(gold, answer, on)
    gold, answer = with_events(gold), with_events(answer)
    left, right = normalized(gold), normalized(answer)
    if not left or not right:
        return False
    if answer.endswith("..") and _ENDLESS.fullmatch(answer):
        return False
    if PLAIN.fullmatch(right) and not _LETTER.search(left) and _APPROX not in left:
        return on.same(left, right, 0)  # a number hedges nothing
    left, right = _with_i(left, right), _with_i(right, left)
    table = same_table(gold, answer)
    if table is not None:
        return table
    if (
        not is_balanced(right)
        or _joined_otherwise(gold, answer, left, right)
        or _turned(gold, answer)
    ):
        return False
    words = "\\text" in left or (_LETTER.search(left) and "," not in left)
    if left == right or (words and _bare(left) == _bare(right)):
        return True
    if compound(gold) and compound(gold) == compound(answer):
        return True
    if f"\\mathbb{{{right}}}" == left or f"\\mathbb{{{left}}}" == right:
        return True  # R, which \mathbf{R} may stand for
    if right.count(",") > 20 + 4 * left.count(","):
        return False  # candidates by the dozen; comparing each with each would take its time
    if _APPROX in left or _APPROX in right:
        return _approximate(left, right, on)
    for compare in (same_product, same_flat):
        special = compare(left, right)
        if special is not None:
            return special
    bound = None if finite_set(left) else same_bound(left, right, on)
    if bound is not None:
        return bound
    if _OR.search(answer) and "," not in left and _says_twice(left, right, on):
        return True
    right = right.removeprefix("=")
    size = _SIZE.fullmatch(right)
    listed = "\\pm" in left or "," in left or (size is not None and size[1] in "xy")
    if size and listed and "|" not in left and _positive(size[2]):  # |x| = 2
        right = f"{size[1]}=\\pm {size[2]}"
    if _takes_back(left, right):
        return False
    found = on.same(left, right, 0)
    if found or not _LETTER.search(left):
        return found
    return _as_stated(left, right, found, on)


def _same_items(gold: str, answer: str, on: Comparison) -> bool:
    """Return whether ``(a) 3, (b) 5`` has the parts of the other, or of a list, in their order."""
    items = [read_items(text) for text in (gold, answer)]
    if not any(items):
        return False
    left, right = (
        found or parse_answer(normalized(text)).parts
        for found, text in zip(items, (gold, answer), strict=True)
    )
    if len(left) != len(right):
        return False
    how = on.how
    return all(compare_answers(*pair, comparison(how)) for pair in zip(left, right, strict=True))


def _without_remark(gold: str, answer: str, on: Comparison) -> str:
    """Drop what repeats a number in words or names what it is not: 17 (seventeen), 17, not 16."""
    decided = _DECIDED.fullmatch(unwrap_text(answer)) if _DECISION.fullmatch(gold) else None
    if decided:
        return decided[1]
    found = _EXTRANEOUS.fullmatch(unwrap_text(answer)) if answer.endswith(")") else None
    if found and found[2] != found[3]:
        return found[1]
    found = None
    if answer[-1:] in ")}" or any(word in answer for word in _OTHERWISE):
        plain = _NOT_BUT.sub(r"\2, not \1", strip_bold(unwrap_text(answer)))
        found = _REMARK.fullmatch(plain)
    named = found is not None and any(map(str.isdigit, found[0]))  # "Alice, not Bob" is left
    if found is None or not named or _REMARK.fullmatch(unwrap_text(gold)):
        return answer
    value, other = found[1], found["other"] or found["than"]
    denied = found["not"] or found["than"]
    if denied is None and "%" not in other and read_count(value) is read_count(other) is None:
        if not _WORKED.fullmatch(found[0]):
            return answer
        on = on.by_value()
    return (
        value if compare_answers(value, other, comparison(on.how)) is (denied is None) else answer
    )


def _with_i(text: str, other: str) -> str:
    """Return ``3+4j`` with the other's i, unless that may be the unit vector."""
    if "j" not in text or "j" in other or "k" in other or not _COMPLEX.search(other):
        return text
    return renamed(text, {"j": "i"})


def _positive(text: str) -> bool:
    value = real_value(value_of(text))
    return value is not None and value > 0


def _says_twice(gold: str, answer: str, on: Comparison) -> bool:
    r"""Return whether all alternatives are one value, the reference's: ``\frac12`` or ``0.5``."""
    parts = [part.strip() for part in split_top(answer, ",;")]
    return 1 < len(parts) < 4 and all(
        on.same(parts[0], part, 0) is True and on.same(gold, part, 0) is True for part in parts
    )


def _joined_otherwise(gold: str, answer: str, left: str, right: str) -> bool:
    """Return whether the answer has ``and`` or ``or`` and the reference the other."""
    words = [_NAMES_JOINED.search(unwrap_text(text)) for text in (gold, answer)]
    if words[0] and words[1] and words[0][1] != words[1][1]:
        return True  # Ann or Bo for Ann and Bo
    if _OR.search(answer) and not _OR.search(gold) and _OPTIONS.fullmatch(_bare(right)):
        return True  # A or B for A, B
    if _OR.search(gold) and not _SOLVED.search(gold):  # p \vee q
        return _OR.search(answer) is None
    for mine, other, wrong in ((_AND, _OR, impossible), (_OR, _AND, overlapping)):
        if not mine.search(answer) or mine.search(gold) or not wrong(parse_answer(right)):
            continue
        if left != right or other.search(gold):
            return True
    return False


def _turned(gold: str, answer: str) -> bool:
    """Return whether an answer has a vector product of the reference in the other order."""
    wanted = _of_vectors(gold)
    return bool(wanted) and any(wanted.get(k, v) != v for k, v in _of_vectors(answer).items())


def _of_vectors(text: str) -> dict[frozenset[str], tuple[str, ...]]:
    """Return the factors of products of two vectors, in their order if it counts."""
    found = _VECTORS.findall(text) if "\\" in text else ()
    return {frozenset((a, b)): (a, b) if sign == "\\times" else () for a, sign, b in found}


def _as_stated(gold: str, answer: str, found: bool | None, on: Comparison) -> bool | None:
    """Compare formulas without what is said of their letters after them."""
    left, right = split_qualifiers(gold), split_qualifiers(answer)
    if right.rule and not left.rule:
        if not _excludes_pole(left.core, right.rule):
            return found  # 5 if x > 0 is less than 5
        right = replace(right, rule="")
    said, ranges = (left.core, right.core) != (gold, answer), False
    for given in itertools.chain([right] if said else [], renamings(left, right)):
        if not same_sets(left.bound, given.bound, left.core):
            continue
        ranges = True
        same = _unbraced(left.core) == _unbraced(given.core) or on.same(left.core, given.core, 0)
        if same and given.rule:
            same = on.same(left.rule, given.rule, 1)
        if same:
            return on.note("under other names" if not said else "as far as said")
        found = None if same is None else found
    if not found and same_progressions(left, right):
        return on.note("as a family of values")
    return found if ranges or not said else False


def _excludes_pole(formula: str, rule: str) -> bool:
    r"""Return whether a rule excludes only what a formula does: ``\frac{1}{x-3}, x \ne 3``."""
    if _FROM_FIRST.fullmatch(f"{formula}|{rule}"):
        return True
    found = _EXCEPT.fullmatch(rule)
    point = real_value(value_of(found[2])) if found else None
    if found is None or point is None:
        return False
    tree = read_expression(formula.rpartition("=")[2]) or UNDEFINED
    beside = real_value(constant_value(tree, {found[1]: point + 1}))
    return beside is not None and real_value(constant_value(tree, {found[1]: point})) is None


def _unbraced(text: str) -> str:
    return _BRACED.sub(r"\1\2", text)


def _approximate(gold: str, answer: str, on: Comparison) -> bool | None:
    r"""Return whether the answer is a decimal after its exact value: ``12\pi \approx 37.7``."""
    exact = without_approximations(answer)
    if not exact or _APPROX in exact:
        return False
    golds = (without_approximations(gold) or gold, gold.rpartition(_APPROX)[2])
    return any_of(compare_answers(text, exact, on) for text in golds if _APPROX not in text)


def _bare(text: str) -> str:
    return _unbraced(unwrap_text(text).replace(" ", ""))


def _takes_back(gold: str, answer: str) -> bool:
    """Return whether an answer denies what it says, or leaves it open."""
    if _NEGATIONS.search(answer) and not _NEGATIONS.search(gold):
        return True
    return any(sign in answer and sign not in gold for sign in _UNSURE)


# -- by kind -----------------------------------------------------------------------------------


def _member(gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    """Compare two parts; a member of a list may be a family of values."""
    found = _same(gold, answer, on, depth)
    if found or not depth or "\\pi" not in gold:
        return found
    family = same_progressions(split_qualifiers(gold), split_qualifiers(answer))
    return on.noted(family, "as a family of values") or found


def _same(gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    if gold == answer:
        return True
    if not gold or not answer:
        return False
    if "{cases}" in gold:
        return same_cases(gold, answer, on, depth)
    a, b = (parse_answer(finite_set(text) or text) for text in (gold, answer))
    if a.number and (b.number is None or (b.number.unit == "K" and not a.number.unit)):
        short = in_short(b.text)
        b = b if short is None else replace(b, kind=Kind.NUMBER, number=short)
    if a.number is not None and b.number is None and a.number.unit:
        letter = _LETTER_UNIT.fullmatch(b.text)  # 5 h for 5 hours
        amount = read_respelled(f"{letter[1]}\\text{{{letter[2]}}}") if letter else None
        b = replace(b, kind=Kind.NUMBER, number=amount) if amount else b
    if a.kind is Kind.BASE is not b.kind and int(a.mark) > 10:  # 2f_{16}
        b = parse_answer(b.text.upper())
    if a.number is not None and b.number is not None:
        if to_be_worked_out(gold, answer, on) or to_be_reduced(answer, on):
            return False
        return same_quantities(a.number, b.number, on)
    if a.number is not None and b.kind is Kind.LIST:
        foreign = read_foreign(b.text)
        if foreign is not None and same_quantities(a.number, foreign, on):
            return on.note("by another country's comma")
        a = as_list(a)  # 100,200,300 against 300, 100, 200
    elif b.number is not None and a.kind is Kind.LIST:
        b = as_list(b)
    a, b = (solutions(named_members(s)) if len(s.parts) > 2 else s for s in (a, b))  # a = b = 1
    named = [letters(s.text) for s in (a, b)]
    if "{}" in {a.mark, b.mark} and len(named[0]) == len(named[1]) == 1:  # {a | a > 3} for a > 3
        b = parse_answer(renamed(b.text, dict(zip(named[1], named[0], strict=True))))
    kinds = {a.kind, b.kind}
    option = _option(gold, answer, on, depth)
    if option is not None:
        return option
    if b.kind is Kind.EQUATION and (a.kind is Kind.TUPLE or a.parts[:1] != b.parts[:1]):
        b = named_members(b)
    if Kind.EQUATION in kinds and a.kind is not Kind.LIST and b.kind is not Kind.LIST:
        return same_equations(a, b, on, depth)
    if Kind.PROSE in kinds:
        return _prose(a, b, on, depth)
    for kind in (Kind.EMPTY, Kind.INFINITE):
        if kind in kinds:
            return a.kind is b.kind and a.mark == b.mark
    if Kind.MOMENT in kinds:
        if a.moment is None or b.moment is None:
            return False
        return same_times(a.moment, b.moment, gold, answer, on)
    if a.kind is Kind.WORDS and b.kind is Kind.LIST and all(map(is_letter, b.parts)):
        return words_of(a.text).upper() == "".join(b.parts)  # B, C, A for BCA
    if a.kind is Kind.LIST and _CAPITALS.fullmatch(b.text) and all(map(is_letter, a.parts)):
        return sorted(a.parts) == list(b.text)  # AC for A, C
    if a.kind in BAGS or b.kind in BAGS:
        return same_bags(a, b, on, depth)
    if Kind.WORDS in kinds and not (a.kind is Kind.EXPRESSION and b.text.isalpha()):
        return _words(a, b, on)
    return _structures(gold, a, b, on, depth)


def _structures(
    gold: str, a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int
) -> bool | None:
    kinds = {a.kind, b.kind}
    if Kind.CONGRUENCE in kinds:
        return same_congruences(a, b, on, depth)
    if Kind.TUPLE in kinds and Kind.EXPRESSION in kinds:  # P(1, 2)
        one, other = _POINT.sub(r"\1", a.text), _POINT.sub(r"\1", b.text)
        if (one, other) != (a.text, b.text):
            return on.same(one, other, depth + 1)
    if b.kind is Kind.RELATION and MEMBER.match(gold):
        return False  # x \in [0,1] asks for an interval
    if Kind.RELATION in kinds or Kind.UNION in kinds:
        return same_ranges(a, b, on, depth)
    if Kind.TUPLE in kinds or Kind.MATRIX in kinds:
        return same_sequences(a, b, on, depth)
    if Kind.BASE in kinds:
        return same_bases(a, b, on)
    if Kind.RATIO in kinds:
        return same_ratios(a, b, on)
    return same_formulas(a.text, b.text, on, depth)


def _option(gold: str, answer: str, on: Comparison, depth: int) -> bool | None:
    """Compare with a choice: its letter, the letter with any text, or the option's text."""
    wanted, given = read_choice(gold), read_choice(answer)
    if wanted is None:  # (C) 12 for 12
        named = given is not None and given.letter <= "H" and given.option and not letters(gold)
        return on.same(gold, given.option, depth + 1) if given and named else None
    if given is not None and given.letter != wanted.letter:
        return False
    if given is None:
        return _option_text(wanted, answer, on, depth)
    if given.option and wanted.option:
        return on.same(wanted.option, given.option, depth + 1)
    return True


def _option_text(wanted: Choice, answer: str, on: Comparison, depth: int) -> bool | None:
    if not wanted.option:  # a single letter may be a variable
        return None if re.search(rf"(?<![A-Za-z\\]){wanted.letter}(?![A-Za-z])", answer) else False
    return on.noted(on.same(wanted.option, answer, depth + 1), "by the option's text")


def _prose(a: ParsedAnswer, b: ParsedAnswer, on: Comparison, depth: int) -> bool:
    if a.kind is b.kind or Kind.LIST in {a.kind, b.kind}:  # row 2 column 6; row 2, column 6
        left, right = (
            s.parts if s.kind is Kind.PROSE else words_and_values(s.text) for s in (a, b)
        )
        return same_wording(left, right, on, depth)
    if a.kind is Kind.RATIO and set(b.parts[1::2]) == {"\\text{to}"} and len(b.parts) % 2:
        return on.same(a.text, ":".join(b.parts[::2]), depth + 1) is True
    value = labelled_value(b.parts) if b.kind is Kind.PROSE else None
    return value is not None and on.same(a.text, value, depth + 1) is True


def _words(a: ParsedAnswer, b: ParsedAnswer, on: Comparison) -> bool:
    left, right = words_of(a.text), words_of(b.text)
    if on.how.case and _bare(a.text) != _bare(b.text):
        return False
    named = len(left) > 2 and " " not in left and right.removeprefix(left) in _NOUNS  # odd number
    return bool(left) and (left == right or named or a.text == _TIMES.sub("", b.text))


# -- golds -------------------------------------------------------------------------------------

_ATOMS = frozenset(
    (Kind.NUMBER, Kind.BASE, Kind.RATIO, Kind.EMPTY, Kind.WORDS, Kind.PROSE, Kind.MOMENT,
     Kind.INFINITE, Kind.CONGRUENCE)
)  # fmt: skip
_COMPOUNDS = BAGS | {Kind.TUPLE, Kind.MATRIX, Kind.UNION}


def is_readable(gold: str) -> bool | None:
    """Return whether a reference is valid by itself; ``None`` if only the worker can decide."""
    text = normalized(with_events(gold))
    text = without_approximations(text) or "" if _APPROX in text else text
    if not text or not is_balanced(text):
        return False
    if same_table(gold, gold) or is_flat(text) or compound(gold):
        return True
    if split_binders(text)[0]:
        return True
    found = _readable(text, 0)
    core = text if found else split_qualifiers(text).core
    return found if core == text else _readable(core, 0)


def _readable(text: str, depth: int) -> bool | None:
    if depth > MAX_DEPTH:
        return None
    if "{cases}" in text and read_cases(text) is not None:
        return True
    shape = parse_answer(finite_set(text) or text)
    if text == "\\dots" or shape.kind in _ATOMS or read_choice(shape.text):
        return True
    if shape.kind in _COMPOUNDS and shape.parts:
        parts = [_readable(part, depth + 1) for part in shape.parts]
        return all(parts) if None not in parts else None
    if shape.kind is Kind.EQUATION:
        if assignment(shape) is not None:
            return _readable(shape.parts[-1], depth + 1)
        return True if all(read_expression(side) is not None for side in shape.parts) else None
    if read_intervals(shape) is not None:
        return True
    if shape.kind in RANGES:
        interval = as_interval(shape.text) if shape.kind is Kind.RELATION else None
        ends = [_readable(part, depth + 1) for part in interval.parts] if interval else [None]
        return all(ends) if None not in ends else None
    tree = read_expression(shape.text)
    if tree is None:
        return None
    return tree is not UNDEFINED
