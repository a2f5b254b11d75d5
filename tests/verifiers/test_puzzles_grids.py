"""Grids and boards: every right one wins, in every spelling, and nothing near it."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from itertools import permutations, product

import pytest

from assay.verifiers import Queens, Status, Sudoku

# -- Sudoku ------------------------------------------------------------------------------------

OPEN = {"grid": [[1, 0, 0, 0], [0, 0, 3, 0], [0, 4, 0, 0], [0, 0, 0, 0]]}
SIX = [[1, 2, 3, 4, 5, 6], [4, 5, 6, 1, 2, 3], [2, 3, 1, 5, 6, 4], [5, 6, 4, 2, 3, 1],
       [3, 1, 2, 6, 4, 5], [6, 4, 5, 3, 1, 2]]  # fmt: skip


def squares() -> list[list[tuple[int, ...]]]:
    """Every 4 x 4 grid by the rules: 288, of pairs of rows whose boxes are right."""
    pairs = [
        (a, b)
        for a, b in product(permutations((1, 2, 3, 4)), repeat=2)
        if all(len({*a[i : i + 2], *b[i : i + 2]}) == 4 for i in (0, 2))
    ]
    grids = ([*upper, *lower] for upper, lower in product(pairs, repeat=2))
    return [g for g in grids if all(len({row[i] for row in g}) == 4 for i in range(4))]


FULL = squares()
GRIDS: dict[str, Callable[[list[list[int]]], str]] = {
    "lines": lambda g: "\n".join(" ".join(map(str, row)) for row in g),
    "close lines": lambda g: "\n".join("".join(map(str, row)) for row in g),
    "one line": lambda g: "".join(str(d) for row in g for d in row),
    "one line, blanks": lambda g: " ".join(str(d) for row in g for d in row),
    "json": json.dumps,
    "assigned": lambda g: f"grid = {[list(row) for row in g]}",
    "json in lines": lambda g: json.dumps({"grid": g}, indent=2),
    "lists": lambda g: "\n".join(f"{row}," for row in map(list, g)),
    "bars": lambda g: "\n-----\n".join(" | ".join(map(str, row)) for row in g),
    "boxes": lambda g: "\n".join(
        ["+---+---+", *(f"|{a} {b}|{c} {d}|" for a, b, c, d in g[:2]), "+===+===+",
         *(f"|{a} {b}|{c} {d}|" for a, b, c, d in g[2:]), "+---+---+"]),
    "drawn": lambda g: "┌──┬──┐\n" + "\n".join(f"│{a}{b}│{c}{d}│" for a, b, c, d in g)
    + "\n└──┴──┘",
    "table": lambda g: "| | | | |\n|---|:-:|---|---|\n" + "\n".join(
        "| " + " | ".join(map(str, row)) + " |" for row in g),
    "bold": lambda g: "\n".join(" ".join(f"**{d}**" for d in row) for row in g),
    "matrix": lambda g: r"\begin{pmatrix}" + r"\\".join("&".join(map(str, r)) for r in g)
    + r"\end{pmatrix}",
    "array": lambda g: r"\boxed{\begin{array}{|cc|cc|}\hline " + r"\\ \hline ".join(
        " & ".join(map(str, r)) for r in g) + r"\\ \hline\end{array}}",
    "rows by name": lambda g: "\n".join(f"Row {i}: {row}" for i, row in enumerate(map(list, g), 1)),
    "a fence": lambda g: "The grid:\n```text\n" + GRIDS["lines"](g) + "\n```\nThat is all.",
    "tags": lambda g: f"<think>1 2 3</think>\n<answer>\n{GRIDS['lines'](g)}\n</answer>",
    "a gap": lambda g: GRIDS["lines"](g[:2]) + "\n\n" + GRIDS["lines"](g[2:]),
    "a lead": lambda g: "Here is the solution:\n" + GRIDS["lines"](g),
}  # fmt: skip


def test_there_are_as_many_grids_as_there_should_be() -> None:
    assert len(FULL) == 288


@pytest.mark.parametrize("spelling", GRIDS)
def test_every_filling_wins_and_no_other_does(spelling: str) -> None:
    for grid in FULL:
        fits = grid[0][0] == 1 and grid[1][2] == 3 and grid[2][1] == 4
        verdict = Sudoku().verify(GRIDS[spelling](grid), OPEN)
        assert verdict.score == fits, (grid, verdict)
        assert verdict.status in (Status.CORRECT, Status.INCORRECT)
    assert sum(g[0][0] == 1 and g[1][2] == 3 and g[2][1] == 4 for g in FULL) > 1


def test_every_cell_counts() -> None:
    for size, grid in ((4, [list(row) for row in FULL[7]]), (6, SIX)):
        given = {"grid": [[0] * size for _ in range(size)]}
        assert Sudoku().verify(GRIDS["lines"](grid), given).score == 1.0
        for r, c in product(range(size), repeat=2):
            for digit in set(range(size + 2)) - {grid[r][c]}:
                near = [row[:] for row in grid]
                near[r][c] = digit
                assert Sudoku().verify(GRIDS["lines"](near), given).score == 0.0
        for r in range(size):
            fewer, more = grid[:r] + grid[r + 1 :], [*grid, grid[r]]
            assert Sudoku().verify(GRIDS["lines"](fewer), given).score == 0.0
            assert Sudoku().verify(GRIDS["lines"](more), given).score == 0.0


# -- queens ------------------------------------------------------------------------------------


def placings(n: int) -> Iterator[tuple[int, ...]]:
    for columns in permutations(range(n)):
        if all(abs(columns[i] - columns[j]) != j - i for j in range(n) for i in range(j)):
            yield columns


def board(columns: tuple[int, ...], queen: str = "Q", empty: str = ".", between: str = " ") -> str:
    n = len(columns)
    return "\n".join(between.join(queen if c == q else empty for c in range(n)) for q in columns)


BOARDS: dict[str, Callable[[tuple[int, ...]], str]] = {
    "board": board,
    "close board": lambda q: board(q, between=""),
    "bars": lambda q: board(q, empty="_", between="|"),
    "ones": lambda q: board(q, "1", "0"),
    "close ones": lambda q: board(q, "1", "0", ""),
    "chess signs": lambda q: board(q, "♛", "·"),
    "ruled": lambda q: "+---+\n" + "\n+---+\n".join(
        f"| {' | '.join(line.split())} |" for line in board(q, empty="-").splitlines()) + "\n+---+",
    "table": lambda q: "|" + " |" * len(q) + "\n" + "|---" * len(q) + "|\n" + "\n".join(
        f"|{line}|" for line in board(q, empty=" ", between="|").splitlines()),
    "assigned": lambda q: f"queens = {[c + 1 for c in q]}",
    "json board": lambda q: json.dumps([list(line) for line in board(q, between="").split("\n")]),
    "json lines": lambda q: json.dumps(board(q, between="").split("\n")),
    "columns": lambda q: ", ".join(str(c + 1) for c in q),
    "json columns": lambda q: json.dumps([c + 1 for c in q]),
    "rows and columns": lambda q: "\n".join(
        f"Row {r}: column {c + 1}" for r, c in enumerate(q, 1)),
    "columns first": lambda q: "; ".join(f"column {c + 1}, row {r}" for r, c in enumerate(q, 1)),
    "pairs": lambda q: ", ".join(f"({r}, {c + 1})" for r, c in enumerate(q, 1)),
    "pairs upside down": lambda q: json.dumps([[r + 1, q[r] + 1] for r in reversed(range(len(q)))]),
    "short pairs": lambda q: " ".join(f"R{r}C{c + 1}" for r, c in enumerate(q, 1)),
}  # fmt: skip


@pytest.mark.parametrize("spelling", BOARDS)
@pytest.mark.parametrize(("n", "count"), [(4, 2), (5, 10), (6, 4), (7, 40)])
def test_every_placing_wins_and_those_without_the_queen_given_lose(
    spelling: str, n: int, count: int
) -> None:
    found = list(placings(n))
    assert len(found) == count
    for columns in found:
        text = BOARDS[spelling](columns)
        assert Queens().verify(text, {"n": n, "placed": []}).score == 1.0, text
        placed = [[2, found[0][1] + 1]]
        verdict = Queens().verify(text, {"n": n, "placed": placed})
        assert verdict.score == (columns[1] == found[0][1]), verdict


@pytest.mark.parametrize("spelling", ["board", "columns", "pairs", "ones"])
def test_every_other_order_of_columns_attacks(spelling: str) -> None:
    right = set(placings(5))
    for columns in product(range(5), repeat=5):
        if columns not in right and (len(set(columns)) >= 4 or columns[0] == 0):
            assert Queens().verify(BOARDS[spelling](columns), {"n": 5, "placed": []}).score == 0.0
