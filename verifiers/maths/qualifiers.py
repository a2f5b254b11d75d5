r"""Names that an answer binds: ``f(t)=t`` for ``f(x)=x``, ``2\pi n`` for ``2\pi k``.

What follows a formula and says which values its letters take is read here too: ``for all x``,
``k \in \mathbb{Z}``, ``where C is a constant``, ``x \ge 0``.
"""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterator
from dataclasses import dataclass

from ..text.markup import unwrap_text
from .choice import is_letter
from .comparison import Comparison
from .latex import split_top, squeeze
from .variables import letters, renamed

_LETTER = r"[A-Za-z](?:_\{?\w\}?)?"
_LETTERS = rf"{_LETTER}(?: ?(?:,|and) ?{_LETTER}){{0,3}}"
_KIND = (
    r"(?:(?:an? |any |all |every |each |some |arbitrary |fixed |the |positive |negative |"
    r"non-?negative |nonzero |real |complex |rational |natural |whole |odd |even |prime |"
    r"constants? ?|numbers? ?|integers? ?|parameters? ?|values? ?(?:of )?|reals? ?){1,6})"
)
_SET = r"\\in ?\\mathbb\{?[A-Z]\}?(?:[\^_](?:\{[^{}]{1,8}\}|[+*\d]))?"
_INTRO = r"(?:for (?:all |any |every |each |some )?|where |with |\\forall ?|such that |and )"
_TAIL = re.compile(
    rf"(?P<core>[^ ,].*?)(?:[,;(][,;( ]*{_INTRO}?(?P<in>{_LETTERS}) ?(?P<set>{_SET})"
    rf"|[,;( ]*(?<![A-Za-z\\]){_INTRO}(?P<kind>{_KIND})?(?P<all>{_LETTERS})?(?: ?(?P<set2>{_SET}))?"
    rf"|[,;( ]*(?<![A-Za-z\\]){_INTRO}?(?P<who>{_LETTERS}) (?:is|are|be|being) (?P<what>{_KIND})"
    rf")[ ).]*"
)
_ORDER = re.compile(r"[<>]|\\(?:le|ge|ne)(?![A-Za-z])")
_CONDITION = re.compile(
    r"(?P<core>.+?)(?:[,;] ?|(?P<open>\()| )(?:for |if |when |where |with |provided )?"
    r"(?P<rule>[^,;()=]{1,30}(?:[<>]|\\(?:le|ge|ne)(?![A-Za-z]))[^,;()=]{1,30})\)? ?"
)
_SET_OF = re.compile(rf"\\\{{(?P<core>[^|:]+)[|:](?P<of>{_LETTERS} ?{_SET})\\\}}")
_GREEK = r"\\(?:alpha|beta|gamma|delta|epsilon|lambda|theta)(?![A-Za-z])"
_BINDER = re.compile(
    rf"(?P<sign>\\(?:forall|exists)!?|\\\{{) ?(?P<names>{_LETTERS}|\({_LETTERS}\)|{_GREEK})"
    rf" ?(?P<set>{_SET}|\\in ?[A-Z](?![A-Za-z])|(?:[<>]|\\[lgn]e) ?[\d.]+(?=\\))?"
    r"(?:(?:\\text)?\{? ?(?:such that|with|we have|so that) ?\}?|[,;:.| ])*"
)
_BOUND = re.compile(rf"{_GREEK}|{_LETTER}")
_RANGED = re.compile(rf"\\text\{{ ?(?:all|every|any) ?({_KIND}?)\}}")
_HEAD = re.compile(rf"(?:{_LETTER}|\({_LETTERS}\))=")
_ASSIGNED = re.compile(rf"(?:\A|,) ?(?:({_LETTER})|\(({_LETTERS})\))=")
_INDEX = re.compile(r"\\(?:sum|prod)_\{([a-z])=")
_FUNCTION = re.compile(
    rf"(?P<name>[A-Za-z](?:\^\{{-1\}})?)"
    rf"(?:\((?P<of>{_LETTER}(?:,{_LETTER})*)\))?(?P<is>=|\\equiv ?)"
)
_MAPS = re.compile(rf"(?:[a-z]:)?(?P<of>{_LETTER})\\mapsto ?")
_SETS = {"integer": "Z", "natural": "N", "real": "R", "complex": "C", "rational": "Q"}
_SIGNS = ("positive", "negative", "odd", "even", "prime")
_NUMBERED = re.compile(r"[Cc]_(?:\d|\{\d\})")
_FAMILY = frozenset("klmnstrj")
_WHOLE = frozenset("klmn")  # of 2\pi k
_CONSTANTS = frozenset("abcdkABCDKmr")
_MOST_RENAMED = 3


@dataclass(frozen=True, slots=True)
class Qualified:
    """A formula and what is said of its letters after it.

    Attributes:
        core: the formula.
        bound: the letters that are quantified, each with its set: ``Z``, ``positive Z`` or empty.
        rule: an inequality that restricts them; empty for none.
    """

    core: str
    bound: dict[str, str]
    rule: str = ""


@functools.lru_cache(maxsize=4096)
def split_qualifiers(text: str) -> Qualified:
    """Take off what is said of the letters at the end of a respelled, squeezed text."""
    builder = _SET_OF.fullmatch(text)
    text = f"{builder['core']},{builder['of']}" if builder else text
    ranged = _RANGED.match(text)
    if ranged and _ORDER.search(text, ranged.end()):
        rest = text[ranged.end() :]
        return Qualified(rest, dict.fromkeys(letters(rest), _set(ranged[1])))
    if "\\in" not in text and " " not in text and "\\forall" not in text:
        return _restricted(text, {}) if _ORDER.search(text) else Qualified(text, {})
    plain = " ".join(unwrap_text(text, " ").replace("\\forall", " \\forall").split())
    found = _TAIL.fullmatch(plain)
    if found is None:
        return _restricted(text, {}) if _ORDER.search(text) else Qualified(text, {})
    who = found["in"] or found["all"] or found["who"] or ""
    kind = f"{found['kind'] or found['what'] or ''} {found['set'] or found['set2'] or ''}"
    ranges = _set(kind) or ("some" if "some " in plain[found.end("core") :] else "")
    bound = dict.fromkeys(re.findall(_LETTER, who.replace("and", ",")), ranges)
    if not bound and not found["kind"]:
        return Qualified(text, {})
    return _restricted(squeeze(found["core"].rstrip(" ,;(")), bound)


def split_binders(text: str) -> tuple[list[re.Match[str]], str]:
    r"""Take quantifiers, or the head of a set builder, off a text: ``\forall x\in\mathbb{R}:``."""
    found, at = [], 0
    while (binder := _BINDER.match(text, at)) and (at == 0 or binder["sign"] != "\\{"):
        found.append(binder)
        at = binder.end()
    if found and found[0]["sign"] == "\\{":
        ends = len(found) == 1 and text[at - 1] in ":|;" and text.endswith("\\}")
        return (found, text[at:-2]) if ends else ([], text)
    return found, text[at:]


def same_bound(gold: str, answer: str, on: Comparison) -> bool | None:
    """Compare what is said of all or some values, or of the members of a set.

    ``None`` if the reference has no quantifier, or only one of the two is a set builder.
    """
    (left, body), (right, other) = split_binders(gold), split_binders(answer)
    if not left:
        return None
    if [(b["sign"], b["set"]) for b in left] != [(b["sign"], b["set"]) for b in right]:
        return None if left[0]["sign"] == "\\{" else False
    mine, theirs = (re.findall(_BOUND, ",".join(b["names"] for b in s)) for s in (left, right))
    if len(mine) != len(theirs):
        return False
    other = renamed(other, dict(zip(theirs, mine, strict=True)))
    return body == other or on.same(body, other, 1)


def _set(kind: str) -> str:
    named = re.search(r"\\mathbb\{?([A-Z])\}?(.*)", kind.strip())
    found = next((letter for word, letter in _SETS.items() if word in kind), "")
    sign = next((word for word in _SIGNS if word in kind), "")
    return "".join(named.groups()) if named else f"{sign}{found}"


def _restricted(text: str, bound: dict[str, str]) -> Qualified:
    """Take off an inequality for a letter of a formula that is no inequality itself."""
    found = _CONDITION.fullmatch(unwrap_text(text, " ")) if _ORDER.search(text) else None
    if found is None:
        return Qualified(text, bound)
    core, rule = found["core"].strip(" ,"), found["rule"].strip()
    assigned = {side[0] for part in split_top(core, ",") for side in [part.split("=")] if side[1:]}
    about = letters(rule)
    if _ORDER.search(core) or not about <= letters(core) | set(bound) or about & assigned:
        return Qualified(text, bound)
    if (
        not about
        or "\\begin" in core
        or len(split_top(core, ",")) > 1
        or core.count("(") != core.count(")")
    ):
        return Qualified(text, bound)
    return Qualified(core, bound, rule)


def renamings(gold: Qualified, answer: Qualified) -> Iterator[Qualified]:
    """Yield the answer with the reference's names, as far as it may have chosen its own."""
    core = _same_arguments(gold.core, answer.core)
    indices = _INDEX.search(gold.core), _INDEX.search(core)
    if indices[0] and indices[1] and indices[0][1] not in letters(core):
        core = renamed(core, {indices[1][1]: indices[0][1]})
    heads, function = (_HEAD.match(gold.core), _HEAD.match(core)), _FUNCTION.match(gold.core)
    if heads[0] and "=" not in core:  # the name may be left out
        gold = Qualified(gold.core[heads[0].end() :], gold.bound, gold.rule)
    elif heads[1] and "=" not in gold.core and not is_letter(gold.core):
        core = core[heads[1].end() :]
    mine, theirs = _names(gold.core), _names(core)
    lost, new = sorted(mine - theirs), sorted(theirs - mine)
    if not lost and not new:  # C_1 and C_2 may change places
        lost = new = sorted(set(_NUMBERED.findall(core)))
    if not lost or len(lost) != len(new) or len(lost) > _MOST_RENAMED:
        if core != answer.core:
            yield Qualified(core, answer.bound, answer.rule)
        return
    pairs = zip(lost, new, strict=True)
    if not all(_may_be_named(gold, core, answer, old, name, function) for old, name in pairs):
        return
    for order in itertools.permutations(lost):
        names = dict(zip(new, order, strict=True))
        bound = {names.get(name, name): kind for name, kind in answer.bound.items()}
        yield Qualified(renamed(core, names), bound, renamed(answer.rule, names))


def _names(text: str) -> frozenset[str]:
    """Return the letters of a formula; each numbered constant, ``C_1``, is one of its own."""
    return letters(_NUMBERED.sub(" ", text)).union(_NUMBERED.findall(text))


def _may_be_named(
    gold: Qualified,
    core: str,
    answer: Qualified,
    old: str,
    new: str,
    head: re.Match[str] | None,
) -> bool:
    """Return whether a letter of the reference is one that each answer may choose."""
    if any(old in re.findall(_LETTER, "".join(names)) for names in _ASSIGNED.findall(gold.core)):
        return False  # n=5 names what the question asks for
    if old in gold.bound or new in answer.bound or old in letters(gold.rule) & letters(gold.core):
        return True
    if {old, new} <= {"C", "c", "K", "C_1", "c_1"} and f"+{old}" in gold.core and f"+{new}" in core:
        return True
    said = "=" in core or "_" in old or old.isupper()  # C_1e^x for y=c_1e^x; not 2x+b for y=2x+a
    if head and said and (head["of"] or head["name"] == "y") and {old[0], new[0]} <= _CONSTANTS:
        return old not in {head["name"], head["of"]}
    if not {old, new} <= _FAMILY:
        return False
    periodic = "\\pi" in gold.core and "\\pi" in core
    return periodic or gold.core[0] == "(" or "=" in gold.core


def _same_arguments(gold: str, answer: str) -> str:
    r"""Rename the arguments of the answer's functions: ``f(t)=t``, ``t\mapsto t``, ``y=t``."""
    head = _FUNCTION.match(gold)
    if head is None or not head["of"] or not head["of"].islower():  # P(A) is not P(B)
        return answer
    wanted, parts = head["of"].split(","), []
    for part in split_top(answer, ","):
        own, maps = _FUNCTION.match(part), _MAPS.match(part)
        given = own or maps
        if given is None or (own and own["name"] not in {head["name"], "y"}):
            return answer
        mine = given["of"].split(",") if given["of"] else wanted
        rest = part[given.end() :]
        if len(mine) != len(wanted) or (letters(rest) - set(mine)) & set(wanted):
            return answer
        names = dict(zip(mine, wanted, strict=True))
        parts.append(f"{head['name']}({head['of']})={renamed(rest, names)}")
    return ",".join(parts)


def same_sets(gold: dict[str, str], answer: dict[str, str], core: str) -> bool:
    """Return whether letters range over the same sets, as far as both say so."""
    head = _FUNCTION.match(core)
    arguments = set(head["of"].split(",")) if head and head["of"] else set()
    if any(gold.get(name) == "some" != answer.get(name) for name in arguments):
        return False
    whole = _WHOLE if "\\pi" in core else frozenset()
    term = core[2:3] if core[1:2] == "_" and core[3:4] == "=" else ""  # a_n=2n: n is natural
    return all(
        (
            kind != "some" and not kind.startswith(("odd", "even", "prime"))
            if name in arguments
            else kind in {"Z", "R", "C", "some"}
            or (name == term and kind.startswith(("N", "Z", "positive")))
        )
        and (kind == "Z" or name not in whole)
        if not gold.get(name)
        else kind == gold[name]
        for name, kind in answer.items()
        if kind
    )
