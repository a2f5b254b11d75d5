"""XML: does the reply have the required elements, nested as they were?"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from ..text.fences import unfenced
from ..text.thought import UNCLOSED, after_thinking, without_end_tokens
from ..text.words import has_content
from ..verdict import Verdict
from ..verifier import Verifier

_ITEM = re.compile(r"([A-Za-z_][A-Za-z0-9_.:-]{0,59})([?+*]?)")
_DEEPEST, _MOST = 10, 200
_DECLARATION = re.compile(r"<\?xml\s[^<>]{0,200}\?>")
_SHAPE = 'names such as "step", "note?", "step+", "step*", or {"steps": ["step+"]}'


class XmlStructure(Verifier):
    """Full marks for a reply that consists, after its thought, of exactly the given elements.

    The elements occur in the given order. ``"step"`` is an element that occurs once and contains
    text, ``"note?"`` is optional, ``"step+"`` may be repeated, ``"step*"`` is either, and
    ``{"steps": ["title", "step+"]}`` contains other elements and otherwise only white space. Text
    contains at least a letter or a digit; other markup in it, such as ``<b>``, is text unless it is
    empty, and a given element in it fails, also in a CDATA section or a comment. Attributes are
    ignored. No entity is expanded: this is no XML parser. An XML declaration or a code fence around
    everything is ignored. ``<Step>`` for ``step`` is refused.

    Reference: the elements, such as ``["plan", {"steps": ["step+"]}, "answer"]``; ignored if
    ``elements`` are given here.

    Args:
        elements: the elements of every reply; ``None``: each reference has them.
        prose: allow text before, between and after the outermost elements.

    Raises:
        ValueError: the elements cannot be used.

    Example:
        >>> xml = XmlStructure(["plan", {"steps": ["step+"]}])
        >>> xml.verify("<plan>Add.</plan><steps><step>6 + 7</step></steps>", None).score
        1.0
        >>> xml.verify("<plan>Add.</plan><steps></steps>", None).reason
        '<step> is missing in <steps>'
    """

    judges_form = True

    def __init__(self, elements: Sequence[Any] | None = None, *, prose: bool = False) -> None:
        self.elements = elements
        self.prose = prose
        if elements is not None:
            _read(list(elements) if isinstance(elements, tuple) else elements)

    def check_reference(self, reference: Any) -> str | None:
        """Say what is wrong with the elements, unless they were given to the verifier."""
        if self.elements is not None:
            return None
        try:
            _read(reference)
        except ValueError as error:
            return str(error)
        return None

    def oracle_reply(self, reference: Any) -> str | None:
        """Return every element once."""
        return "".join(_minimal(element) for element in self._model(reference))

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply in one pass."""
        model = self._model(reference)
        names = tuple(dict.fromkeys(name for element in model for name in element.names()))
        whole = without_end_tokens(reply)
        text = whole if "think" in names else after_thinking(whole)
        if text is None:
            return Verdict.unparseable(UNCLOSED)
        scan = _Scan(_unwrapped(text), model, self.prose)
        fault = scan.run(_tags(names), frozenset(names))
        if fault:
            return Verdict.unparseable(fault)
        return Verdict.correct("well formed", extracted=scan.last)

    def _model(self, reference: Any) -> tuple[_Element, ...]:
        given = reference if self.elements is None else self.elements
        return _read(list(given) if isinstance(given, tuple) else given)


# -- what is asked for -------------------------------------------------------------------------


@dataclass(frozen=True)
class _Element:
    """A required element.

    Attributes:
        name: as it is written.
        least: how often it stands at least: 0 or 1.
        repeats: whether it may stand more often than once.
        children: what it holds; ``None`` for text.
    """

    name: str
    least: int = 1
    repeats: bool = False
    children: tuple[_Element, ...] | None = None

    def names(self) -> Iterator[str]:
        yield self.name
        for child in self.children or ():
            yield from child.names()


def _read(value: Any, depth: int = 1) -> tuple[_Element, ...]:
    if not isinstance(value, list) or not 1 <= len(value) <= _MOST:
        raise ValueError(f"elements must be a list of 1 to {_MOST}, of {_SHAPE}, got {value!r:.99}")
    if depth > _DEEPEST:
        raise ValueError(f"elements must be nested at most {_DEEPEST} deep")
    found = tuple(_read_one(item, depth) for item in value)
    if len({element.name for element in found}) < len(found):
        raise ValueError(f"a name may stand once among its neighbours, got {value!r:.99}")
    if depth == 1 and not any(element.least for element in found):
        raise ValueError(f"at least one element must be needed, got {value!r:.99}")
    if depth == 1 and sum(1 for element in found for _ in element.names()) > _MOST:
        raise ValueError(f"there may be at most {_MOST} elements in all")
    return found


def _read_one(item: Any, depth: int) -> _Element:
    name, inner = item, None
    if isinstance(item, dict) and len(item) == 1:
        ((name, inner),) = item.items()
    match = _ITEM.fullmatch(name) if isinstance(name, str) else None
    if match is None:
        raise ValueError(f"an element must be given as {_SHAPE}, got {item!r:.99}")
    children = _read(inner, depth + 1) if isinstance(item, dict) else None
    return _Element(match[1], int(match[2] in ("", "+")), match[2] in ("+", "*"), children)


def _minimal(element: _Element) -> str:
    inner = "42" if element.children is None else "".join(map(_minimal, element.children))
    return f"<{element.name}>{inner}</{element.name}>"


# -- what is there -----------------------------------------------------------------------------


@lru_cache(maxsize=256)
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    """Find tags of these names in any case; a value may contain ``>`` but not ``<``."""
    either = "|".join(re.escape(name) for name in names)
    return re.compile(
        rf"<(?P<close>/?)(?P<name>{either})"
        r"(?P<more>(?>(?:\s++[\w:.-]++\s*+=\s*+(?:\"[^\"<]*+\"|'[^'<]*+'))*)\s*+)(?P<empty>/?)>",
        re.IGNORECASE,
    )


@dataclass
class _Open:
    """An element that is open, or the reply itself."""

    name: str
    children: tuple[_Element, ...] | None
    at: int = 0
    count: int = 0

    @property
    def where(self) -> str:
        return f" in <{self.name}>" if self.name else ""

    def enter(self, name: str) -> _Element | str:
        """Enter the next child; return why that is not allowed, if so."""
        if self.children is None:
            return f"<{name}> is in <{self.name}>, which holds text"
        place = next((k for k, c in enumerate(self.children) if c.name == name), None)
        if place is None:
            return f"<{name}> has no place{self.where or ' outside'}"
        if place < self.at:
            return f"<{name}> comes after <{self.children[self.at].name}>"
        child = self.children[place]
        if place == self.at:
            if self.count and not child.repeats:
                return f"<{name}> occurs twice"
            self.count += 1
            return child
        missing = self.missing(place)
        if missing:
            return f"<{name}> comes before <{missing}>"
        self.at, self.count = place, 1
        return child

    def missing(self, before: int | None = None) -> str:
        """Return the name of the first missing required child, empty if none."""
        left = (self.children or ())[self.at : before]
        needed = (c.name for k, c in enumerate(left) if c.least > (self.count if k == 0 else 0))
        return next(needed, "")


class _Scan:
    """One pass over the tags of a text, with the elements that are open on a stack."""

    def __init__(self, text: str, model: tuple[_Element, ...], prose: bool) -> None:
        self.text = text
        self.prose = prose
        self.open = [_Open("", model)]
        self.last = ""

    def run(self, tags: re.Pattern[str], names: frozenset[str]) -> str:
        """Return what is wrong, empty if nothing."""
        end = 0
        for tag in tags.finditer(self.text):
            if tag["name"] not in names or (tag["close"] and (tag["more"].strip() or tag["empty"])):
                return f"{tag.group()!r:.60} is no tag that was asked for"
            between = self.text[end : tag.start()]
            end = tag.end()
            fault = self._text(between)
            fault = fault or (self._close(tag["name"], between) if tag["close"] else "")
            fault = fault or ("" if tag["close"] else self._enter(tag["name"]))
            if not fault and tag["empty"]:
                fault = self._close(tag["name"], "")
            if fault:
                return fault
        if len(self.open) > 1:
            return f"<{self.open[-1].name}> is never closed"
        missing = self.open[0].missing()
        return f"<{missing}> is missing" if missing else self._text(self.text[end:])

    def _text(self, between: str) -> str:
        top = self.open[-1]
        if top.children is None or not between.strip() or (self.prose and not top.name):
            return ""
        return f"there is text outside the elements{top.where}"

    def _enter(self, name: str) -> str:
        child = self.open[-1].enter(name)
        if isinstance(child, str):
            return child
        self.open.append(_Open(name, child.children))
        return ""

    def _close(self, name: str, between: str) -> str:
        top = self.open[-1]
        if name != top.name:
            return f"</{name}> closes nothing" if not top.name else f"</{name}> closes <{top.name}>"
        self.open.pop()
        if top.children is None:
            self.last = between.strip()
            return "" if has_content(between) else f"<{name}> is empty"
        missing = top.missing()
        if missing:
            return f"<{missing}> is missing{top.where}"
        return "" if top.count else f"<{name}> is empty"


def _unwrapped(text: str) -> str:
    """Remove a byte order mark, one code fence and an XML declaration around a text."""
    text = unfenced(text.strip().removeprefix("\ufeff"))
    declaration = _DECLARATION.match(text)
    return text[declaration.end() :] if declaration else text
