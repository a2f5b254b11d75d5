"""Square grids as people and models write them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ..text.markup import strip_layout
from .reading import Unreadable

_RULED = re.compile(r"[-+|=:\s]*")
_KEY = re.compile(r'"[A-Za-z_ ]{1,20}"\s{0,3}:')
_LABEL = re.compile(r"^\W{0,6}r(?:ow)?\s{0,3}[0-9]{1,2}\s{0,3}[:.)|]", re.IGNORECASE)
_LEAD = re.compile(r"[^0-9:]{1,200}:\s*")
_BETWEEN = str.maketrans("", "", " \t|,;[](){}\"'")


def read_grid(text: str, size: int, symbols: Mapping[str, int]) -> list[list[int]]:
    r"""Return the cells of the one square grid that a text consists of.

    Rows are lines of cells, or all cells stand on one line, or each on its own. Blanks, bars,
    commas, brackets and quotes may stand between cells, ruled lines between rows, ``Row 1:`` before
    a row, and a line of words that ends in a colon before all. An empty cell between bars is ``.``.

    Args:
        text: an answer.
        size: rows, and cells in a row.
        symbols: what each character of a cell stands for.

    Raises:
        Unreadable: there is anything else in the text, or more or fewer cells.

    Example:
        >>> read_grid("1 | 2\n--+--\n2 | 1", 2, {"1": 1, "2": 2})
        [[1, 2], [2, 1]]
    """
    lines = _KEY.sub(" ", strip_layout(text)).strip().splitlines()
    if len(lines) > 1 and _LEAD.fullmatch(lines[0]) and not _RULED.fullmatch(lines[0]):
        del lines[0]
    rows = [row for line in bare_rows(lines) if (row := _cells(line, size, symbols))]
    lengths = {len(row) for row in rows}
    if (len(rows), lengths) in ((1, {size * size}), (size * size, {1})):
        flat = [cell for row in rows for cell in row]
        return [flat[i : i + size] for i in range(0, size * size, size)]
    if (len(rows), lengths) != (size, {size}):
        got = " or ".join(map(str, sorted(lengths)[:4])) or "no"
        raise Unreadable(f"expected {size} rows of {size} cells, got {len(rows)} of {got}")
    return rows


def bare_rows(lines: Iterable[str]) -> list[str]:
    """Return the lines without ``Row 1:`` before them, and without ruled ones."""
    return [_LABEL.sub("", line, count=1) for line in lines if not _RULED.fullmatch(line)]


def _cells(line: str, size: int, symbols: Mapping[str, int]) -> list[int]:
    bare = line.strip()
    if len(bare) > 2 and bare[0] == bare[-1] == "|":  # a cell between bars may be left empty
        between = [cell.strip() for cell in bare[1:-1].split("|")]
        if len(between) == size:
            bare = "".join(cell or "." for cell in between)
    bare = bare.translate(_BETWEEN)
    unknown = next((sign for sign in bare if sign not in symbols), None)
    if unknown is not None:
        raise Unreadable(f"unexpected {unknown!r} in the grid")
    return [symbols[sign] for sign in bare]
