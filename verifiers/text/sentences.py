"""Sentences: their ends, by rule."""

# ruff: noqa: SIM905 # lists of words read best as text

from __future__ import annotations

import re

from .words import has_content, strip_invisible

_END = re.compile(
    r"""(?<![.!?…؟])[.!?…؟]++['"’”»)\]*_]*+(?=\s|$)|(?<![。！？।॥۔።։။។])[。！？।॥۔።։။។]++[」』”’）)]*+"""
)
_BREAK = re.compile(  # blank lines; items of lists, quoted lines, headings
    r"\n[ \t]*(?=\n)|\n(?=[ \t]*(?:[-*+•>]|#{1,6}|\d{1,3}[.)])[ \t])"
)
_TITLE = frozenset(  # a capital follows these too
    "capt cmdr col dr dra gen gov hon lt maj messrs mlle mme mr mrs ms mt mx pres prof rev sen sgt "
    "sra srta st supt".split()
)
_MAYBE = frozenset(  # these end a sentence if a capital follows
    "al approx apr apt aug ave cf co corp dec dept ed eds eq esp est etc feb fig figs inc jan jr "
    "ltd min no nos nov oct op p pp sep sept sr univ vol".split()
)
_STARTERS = frozenset(  # after U.S. or B. any other capital may belong to a name: the U.S. Army
    "a although an and as at but for he her his however i if in it its my nobody on our she since "
    "so that the their then there these they this those though we what when while who you "
    "your".split()
)
_NEVER = frozenset(["e.g", "i.e", "ph.d", "q.v"])
_LAST = re.compile(r"(?:[^\W_]|°|\.(?=[^\W_]))+$")
_ELLIPSIS = re.compile(r"\.{2,}|…")


def sentences(text: str, *, headings: bool = False) -> list[str]:
    """Return the sentences of a text, in order, each with its end mark, stripped.

    One ends at ``. ! ? …`` before white space, or at an East Asian or Indic full stop. Blank lines,
    items of a list and headings end one too. The full stop of an abbreviation (Dr., e.g.), of an
    initial (J. Smith), of a number in a list (1.) or inside a number ends none, nor does an
    ellipsis or a closing quote or bracket before a lowercase letter. What has neither letter nor
    digit, such as an emoji, belongs to the sentence before.

    Args:
        text: any text, Markdown included.
        headings: whether a Markdown heading is a sentence.

    Example:
        >>> sentences("Dr. No left at 3.15 p.m. today... and why? Nobody knows")
        ['Dr. No left at 3.15 p.m. today... and why?', 'Nobody knows']
    """
    found: list[str] = []
    for block in _blocks(strip_invisible(text)):
        if headings or not block.startswith("#"):
            found += _joined(_cut(block))
    return found


def _blocks(text: str) -> list[str]:
    blocks: list[str] = []
    for block in _BREAK.split(text.replace("\r\n", "\n")):
        bare = block.strip()
        if bare.startswith("#") and "\n" in bare:  # a heading is one line
            head, _, bare = bare.partition("\n")
            blocks.append(head)
        blocks.append(bare.strip())
    return [block for block in blocks if block]


def _cut(block: str) -> list[str]:
    pieces, start = [], 0
    for end in _END.finditer(block):
        stop = end.group()
        if stop[0] in ".…" and not _ends(block, end.start(), end.end(), start):
            continue
        if stop[-1] in "\"'’”»)]" and block[end.end() : end.end() + 2].strip()[:1].islower():
            continue  # "Why?" she asked
        pieces.append(block[start : end.end()].strip())
        start = end.end()
    pieces.append(block[start:].strip())
    return pieces


def _ends(block: str, dot: int, after: int, start: int) -> bool:
    """Return whether a full stop or an ellipsis ends a sentence that began at ``start``."""
    follows = block[after : after + 2].strip()[:1]
    if _ELLIPSIS.match(block, dot):
        return not follows.islower() or "?" in block[dot:after] or "!" in block[dot:after]
    found = _LAST.search(block[max(start, dot - 20) : dot])
    word = found.group() if found else ""
    following = block[after : after + 20].split()[:1]
    low = word.lower()
    if low in _TITLE or low in _NEVER:
        return not follows
    starts = follows.isupper() and following[0].strip(",'’").lower() in _STARTERS
    if ("." in word and word[0].isalpha()) or low in ("v", "vs"):
        return starts or not following
    if low in _MAYBE:
        return not follows or follows.isupper()
    if len(word) == 1 and word.isupper() and word != "I":
        if not starts:
            return not follows.isupper()
        line = block[max(start, dot - 99) : dot - 1].rpartition("\n")[2]
        return has_content(line)  # else it is an option: A. The sea
    if word.isdigit() and len(word) <= 3:  # the number of an item, not the end of "in 1990."
        return has_content(block[start:dot].removesuffix(word).strip("*_#-•+>( \n\t"))
    return True


def _joined(pieces: list[str]) -> list[str]:
    """Attach pieces without letters and digits to the one before them."""
    out: list[list[str]] = []
    for piece in pieces:
        if has_content(piece):
            out.append([piece])
        elif piece and out:
            out[-1].append(piece)
    return [" ".join(parts) for parts in out]
