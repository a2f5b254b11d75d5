"""Constraints on form that IFBench adds."""

# ruff: noqa: SIM905 # lists of words read best as text

from __future__ import annotations

import re
import string
from itertools import pairwise

from ..text.sentences import sentences
from ..text.words import has_content, normalize_characters, strip_invisible, words
from .blocks import bullets, lines
from .registry import Text, constraint

_CLOSES = {")": "(", "]": "[", "}": "{"}
_QUOTED = re.compile(r'"[^"]*"')
_ITALICS = re.compile(r"^[ \t]*<(i|em)>([^<]*)</\1>", re.IGNORECASE | re.MULTILINE)
_HEADING = re.compile(r"^[ \t]*#{1,6}[ \t][^\n]*$", re.MULTILINE)
_LABELS = ("My Answer:", "My Conclusion:", "Future Outlook:")
_SLOT = re.compile(r"\s*\[(?:answer|conclusion|outlook)\]\s*", re.IGNORECASE)
_MINOR = frozenset(
    "a an the and but or nor for so yet as at by from in into like near of off on onto out over "
    "per than to up upon via vs with without is it its if".split()
)
_EMOJI = re.compile(
    "[\U0001f000-\U0001faff\u2600-\u27bf\u2b00-\u2bff\u2300-\u23ff\u2190-\u21ff\u3030\u303d\u3297\u3299]"
    "[\ufe0f\u200d\u20e3\U000e0020-\U000e007f]*"
)


@constraint("format:parentheses")
def parentheses(reply: str) -> bool:
    """Brackets of any kind are nested five deep, each closed by its own kind."""
    return _deepest(reply, _CLOSES) >= 5


def _deepest(text: str, closes: dict[str, str]) -> int:
    """Return the depth of the deepest closed nest of brackets; a mismatch resets it."""
    opened: list[tuple[str, int]] = []  # each with the depth of what it holds so far
    deepest = 0
    opens = set(closes.values())
    for mark in text:
        if mark in opens:
            opened.append((mark, 0))
        elif mark in closes:
            if not opened or opened[-1][0] != closes[mark]:
                opened.clear()
                continue
            deepest = max(deepest, opened[-1][1] + 1)
            _close(opened)
    return deepest


def _close(opened: list[tuple[str, int]]) -> None:
    depth = opened.pop()[1] + 1
    if opened:
        mark, inner = opened[-1]
        opened[-1] = (mark, max(inner, depth))


@constraint("format:quotes")
def quotes(reply: str) -> bool:
    """Quotes are nested three deep, double and single in turn, all closed."""
    text = re.sub(r"(?<=[^\W_])'(?=[^\W_])", "", normalize_characters(reply))  # apostrophes
    opened: list[tuple[str, int]] = []
    for mark in re.findall("[\"']", text):
        if opened and opened[-1][0] == mark:
            if opened[-1][1] + 1 >= 3:
                return True
            _close(opened)
        else:
            opened.append((mark, 0))
    return False


@constraint("format:options", whole=True)
def options(reply: str, *, options: Text) -> bool:
    """The reply is one of the options, which ``/``, or else commas and ``or``, separate."""
    split = options.split("/") if "/" in options else re.split(r",|\bor\b", options)
    given = {_bare(option) for option in split} - {""}
    return _bare(reply) in given


def _bare(text: str) -> str:
    return normalize_characters(text).strip().strip("\"'*_.!,; \n").casefold()


@constraint("format:newline")
def newline(reply: str) -> bool:
    """Each line contains at most one word."""
    return max((sum(map(has_content, line.split())) for line in lines(reply)), default=0) == 1


@constraint("format:emoji")
def emoji(reply: str) -> bool:
    """Each sentence ends with an emoji, before its end mark or after it."""
    found = sentences(reply)
    starts = [_EMOJI.match(after.lstrip("\"'*_ ")) for after in found[1:]] + [None]
    return found != [] and all(
        _ends_in_emoji(sentence) or start for sentence, start in zip(found, starts, strict=True)
    )


def _ends_in_emoji(sentence: str) -> bool:
    bare = sentence.rstrip(string.punctuation + string.whitespace + "…。！？”’»")
    tail = bare[-12:]
    return any(found.end() == len(tail) for found in _EMOJI.finditer(tail))


@constraint("format:line_indent")
def line_indent(reply: str) -> bool:
    """At least two lines, each indented more than the one before."""
    found = [line.expandtabs(4) for line in lines(reply)]
    indents = [len(line) - len(line.lstrip()) for line in found]
    return len(indents) > 1 and all(a < b for a, b in pairwise(indents))


@constraint("format:quote_unquote")
def quote_unquote(reply: str) -> bool:
    """There is a quoted phrase, and words without quotes follow each."""
    pieces = _QUOTED.split(
        normalize_characters(reply).replace("'\"'", "")
    )  # the mark itself is spoken of
    return len(pieces) > 1 and '"' not in pieces[-1] and all(map(has_content, pieces[1:]))


@constraint("format:list")
def list_with(reply: str, *, sep: Text) -> bool:
    """The separator occurs at least twice at the start of a word or line, each before text.

    No line is another bullet.
    """
    mark = sep.strip()
    items = re.split(rf"(?<!\S){re.escape(mark)}", reply)[1:]
    others = [line for line in lines(reply) if not line.strip().startswith(mark)]
    return sum(map(has_content, items)) > 1 and not bullets("\n".join(others))


@constraint("format:thesis")
def thesis(reply: str) -> bool:
    """Each section under a heading, or each line if there is none, starts in HTML's italics.

    Other text follows the italics.
    """
    first, *sections = _HEADING.split(reply)
    if sections:
        return all(map(_starts_in_italics, sections))
    italics = (found for found in _ITALICS.finditer(first) if has_content(found.group(2)))
    stated = next(italics, None)
    return stated is not None and has_content(first[stated.end() :])


def _starts_in_italics(section: str) -> bool:
    found = _ITALICS.match(section.strip())
    return (
        found is not None
        and has_content(found.group(2))
        and has_content(section.strip()[found.end() :])
    )


@constraint("format:sub-bullets")
def sub_bullets(reply: str) -> bool:
    """There are bullets with ``*``, and at least one with ``-`` under each."""
    shape = "".join(line.strip()[0] for line in lines(reply) if bullets(line))
    shape = "".join(mark for mark in shape if mark in "*-")
    return shape.startswith("*") and "**" not in shape and shape.endswith("-")


@constraint("format:no_bullets_bullets")
def no_bullets_bullets(reply: str) -> bool:
    """At least two sentences that end in a full stop, then at least two bullets with ``*``."""
    found = lines(reply)
    stars = [k for k, line in enumerate(found) if line.strip().startswith("* ") and bullets(line)]
    if len(stars) < 2:
        return False
    before = sentences("\n".join(found[: stars[0]]))
    return sum(sentence.endswith(".") for sentence in before) > 1


@constraint("format:title_case")
def title_case(reply: str) -> bool:
    """Each word starts with a capital; minor ones (of, the, and) need not, except the first."""
    found = words(reply)
    if not any(c.islower() for c in reply):
        return False
    return all(
        not word[0].islower() or (k > 0 and word.casefold() in _MINOR)
        for k, word in enumerate(found)
    )


@constraint("format:output_template")
def output_template(reply: str) -> bool:
    """``My Answer:``, ``My Conclusion:``, ``Future Outlook:``, once, in order, each with text."""
    found = [reply.find(label) for label in _LABELS]
    if -1 in found or found != sorted(found) or any(reply.count(x) > 1 for x in _LABELS):
        return False
    ends = [*found[1:], len(reply)]
    texts = [
        reply[at + len(label) : end] for label, at, end in zip(_LABELS, found, ends, strict=True)
    ]
    return not has_content(reply[: found[0]]) and all(
        has_content(text) and not _SLOT.fullmatch(text.strip("*_")) for text in texts
    )


@constraint("format:no_whitespace")
def no_whitespace(reply: str) -> bool:
    """There is no white space and no character that looks like it."""
    bare = strip_invisible(reply).strip()
    return has_content(bare) and not any(c.isspace() or c == "\u2800" for c in bare)
