"""Rows of a data set that cannot be used: refused together, or left out and listed."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, TypeVar, get_args

from .reading import DataError

OnBadRows = Literal["raise", "skip"]

SHOWN = 10
"""Bad rows that a message lists."""

_Given = TypeVar("_Given")
_Made = TypeVar("_Made")


class BadRowsWarning(UserWarning):
    """Rows were left out of a data set, or contradict others; the message lists the first."""


@dataclass(frozen=True)
class BadRow:
    """A row that cannot be used.

    Attributes:
        index: the row's number in the data, from 0.
        place: the file and line, or the data set and row.
        value: the beginning of the row.
        reason: why it cannot be used.
    """

    index: int
    place: str
    value: str
    reason: str

    def __str__(self) -> str:
        return self.reason if self.place in self.reason else f"{self.place}: {self.reason}"


class BadRows:
    """Collect the rows that cannot be used while a data set is read.

    Args:
        policy: ``"raise"`` to refuse the data, ``"skip"`` to leave the rows out with a warning.

    Raises:
        ValueError: the policy is neither.
    """

    def __init__(self, policy: OnBadRows) -> None:
        if policy not in get_args(OnBadRows):
            raise ValueError(f"on_bad_rows must be 'raise' or 'skip', got {policy!r}")
        self.policy = policy
        self.rows: list[BadRow] = []

    def keep(
        self, rows: Iterable[tuple[int, str, _Given]], make: Callable[[int, str, _Given], _Made]
    ) -> list[tuple[int, str, _Made]]:
        """Return what is made of each row that can be used, with its index and place.

        Args:
            rows: index, place and value of each row.
            make: raises a DataError if a row cannot be used.
        """
        kept = []
        for index, place, value in rows:
            try:
                kept.append((index, place, make(index, place, value)))
            except DataError as error:
                self.rows.append(BadRow(index, place, _shown(value), str(error)))
        return kept

    def close(self, name: str, total: int) -> tuple[BadRow, ...]:
        """Return the bad rows, in the order of the data.

        Args:
            name: the data, for the message.
            total: the number of its rows, bad ones included.

        Raises:
            DataError: there are bad rows, and the policy is to refuse them; or all rows are bad.
        """
        bad = sorted(self.rows, key=lambda row: row.index)
        if not bad:
            return ()
        listed = [f"  {row}" for row in bad[:SHOWN]]
        if len(bad) > SHOWN:
            listed.append(f"  and {len(bad) - SHOWN:,} more")
        counted = f"{len(bad):,} of {total:,} rows of {name} cannot be used"
        if self.policy == "raise" or len(bad) == total:
            remedy = "" if len(bad) == total else "; on_bad_rows='skip' leaves out such rows"
            if len(bad) == 1:
                raise DataError(f"{bad[0]}{remedy}")
            raise DataError("\n".join([f"{counted}{remedy}:", *listed]))
        warnings.warn(
            "\n".join([f"{counted} and are left out:", *listed]), BadRowsWarning, stacklevel=4
        )
        return tuple(bad)


def _shown(value: object) -> str:
    try:
        return f"{value!r:.100}"
    except ValueError:  # an integer of more digits than Python writes
        return f"<{type(value).__name__}>"


def bad_rows_record(bad: Sequence[BadRow]) -> dict[str, Any]:
    """Return the number of rows left out and the first of them, for the record of a run."""
    return {"left_out": len(bad), "first": [asdict(row) for row in bad[:SHOWN]]}
