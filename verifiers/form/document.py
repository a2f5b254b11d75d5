"""Markdown as far as its structure goes: headings, lists, tables, fences, bold."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from ..text.words import has_content

_FENCE = re.compile(r"[ \t]*(`{3,}|~{3,})([^`]*)")
_HEADING = re.compile(r" {0,3}(#{1,6})(?:[ \t]+|$)")
_ITEM = re.compile(r"([ \t]*)(?:([-*+])|\d{1,9}[.)])(?:[ \t]+|$)")
_PIPE = re.compile(r"(?<!\\)\|")
_DASHES = re.compile(r":?-+:?")
_CODE_SPAN = re.compile(r"`[^`]*`")
_BOLD = re.compile(
    r"\*\*(?=[^\s*])((?>(?:[^*]++|\*(?!\*))+))\*\*|(?<!\w)__(?=[^\s_])((?>(?:[^_]++|_(?!_))+))__(?!\w)"
)
_REMARK = re.compile(r"[ \t]*(?:#|//|--)")


@dataclass(slots=True)
class Heading:
    """A line that begins with ``#``.

    Attributes:
        level: 1 to 6.
        text: without the signs around it.
        says: whether there is anything under it, or under a heading below it.
    """

    level: int
    text: str
    says: bool = False


@dataclass(slots=True)
class Table:
    """A table: the cells of its head, and of each row below."""

    columns: list[str]
    rows: list[list[str]] = field(default_factory=list)


@dataclass(slots=True)
class Fence:
    """A code fence that closes: its language in lower case, and whether it holds any code."""

    language: str
    says: bool


class Document:
    """A Markdown text, parsed in one pass over its lines.

    The content of a fence is code, not structure. HTML comments are removed, since they are
    invisible.

    Attributes:
        headings: in order.
        bullets: the texts of items that are in no other bullet's item.
        numbers: the same for numbered items.
        tables: in order.
        fences: in order.
        bold: texts in ``**`` or ``__`` within a line.
        unclosed: whether a code fence opens and never closes.
    """

    def __init__(self, text: str) -> None:
        self.headings: list[Heading] = []
        self.bullets: list[str] = []
        self.numbers: list[str] = []
        self.tables: list[Table] = []
        self.fences: list[Fence] = []
        self.bold: list[str] = []
        self._above: list[Heading] = []  # the last heading and those that it is under
        self._items: list[tuple[int, bool]] = []  # indents of the items that are open; if bullets
        self._maybe: list[str] | None = None  # the cells of a line that may head a table
        self._table: Table | None = None
        self._comment = False
        self.unclosed = self._read(text)

    def _read(self, text: str) -> bool:
        """Read all lines; whether a fence stays open."""
        mark, language, body = "", "", False
        for line in text.split("\n"):
            if mark:
                if line.strip().startswith(mark) and not line.strip().strip(mark[0]):
                    self.fences.append(Fence(language, body))
                    self._mark(body)
                    mark = ""
                elif not _REMARK.match(line):
                    body = body or any(map(str.isalnum, line))
                continue
            opening = None if self._comment else _FENCE.match(line)
            if opening and opening.end() == len(line):
                words = opening[2].split()
                mark, language, body = opening[1], words[0].lower() if words else "", False
                self._maybe = self._table = None
            else:
                self._line(self._visible(line.rstrip()))
        return bool(mark)

    def _visible(self, line: str) -> str:
        if not self._comment and "<!--" not in line:
            return line
        shown, at = [], 0
        openings = _CODE_SPAN.sub(lambda span: " " * len(span[0]), line)
        while True:
            end = line.find("-->", at) if self._comment else openings.find("<!--", at)
            if not self._comment:
                shown.append(line[at : end if end >= 0 else len(line)])
            if end < 0:
                return "".join(shown).rstrip()
            at = end + (3 if self._comment else 4)
            self._comment = not self._comment

    def _line(self, line: str) -> None:
        heading = _HEADING.match(line)
        self.bold += [a or b for a, b in _BOLD.findall(_CODE_SPAN.sub(" ", line))]
        if "|" not in line or heading:
            self._maybe = self._table = None
        elif self._cells(line):
            return
        if heading:
            self._heading(len(heading[1]), line[heading.end() :].strip())
            return
        if not line or _is_rule(line):
            return
        item = _ITEM.match(line)
        indent = _indent(line)
        if item and (indent <= 3 or self._items):
            self._item(indent, item[2] is not None, line[item.end() :])
        elif not indent:
            self._items.clear()
        self._mark(has_content(line[item.end() :] if item else line))

    def _heading(self, level: int, text: str) -> None:
        bare = text.rstrip("#")
        text = bare if not bare or bare[-1] in " \t" else text
        while self._above and self._above[-1].level >= level:
            self._above.pop()
        self._above.append(Heading(level, normalize_heading(text)))
        self.headings.append(self._above[-1])
        self._items.clear()

    def _mark(self, says: bool) -> None:
        if says:
            for heading in self._above:
                heading.says = True

    def _item(self, indent: int, bullet: bool, text: str) -> None:
        while self._items and self._items[-1][0] >= indent:
            self._items.pop()
        nested = any(kind == bullet for _, kind in self._items)
        if not nested:
            (self.bullets if bullet else self.numbers).append(text.strip())
        self._items.append((indent, bullet))

    def _cells(self, line: str) -> bool:
        """Return whether a line is a row of a table, below its head."""
        cells = _split(line)
        if self._table is not None:
            self._table.rows.append(cells)
            self._mark(any(has_content(cell) for cell in cells))
            return True
        head, self._maybe = self._maybe, cells
        if head and len(head) == len(cells) and all(_DASHES.fullmatch(cell) for cell in cells):
            self._table = Table([normalize_heading(cell) for cell in head])
            self.tables.append(self._table)
            return True
        return False


def normalize_heading(text: str) -> str:
    """Normalize a heading or cell: no emphasis, case, final colon or double spaces."""
    return " ".join(re.sub(r"[*_`]", "", text).split()).rstrip(" :").casefold()


def _is_rule(line: str) -> bool:
    """Return whether a line is a rule: three or more of one of the signs."""
    signs = line.replace(" ", "").replace("\t", "")
    return len(signs) >= 3 and signs[0] in "-*_" and not signs.strip(signs[0])


def _split(line: str) -> list[str]:
    """Split the cells of a row; a pipe after a backslash is no border."""
    row = line.strip().removeprefix("|")
    row = row[:-1] if row.endswith("|") and not row.endswith("\\|") else row
    return [cell.strip() for cell in _PIPE.split(row)]


def _indent(line: str) -> int:
    """Return the indentation of a line in columns; a tab counts as four."""
    spaces = line[: len(line) - len(line.lstrip(" \t"))]
    return len(spaces) + 3 * spaces.count("\t")
