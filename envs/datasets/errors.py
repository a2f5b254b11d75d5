"""Errors of data and of splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


class DataError(ValueError):
    """Data cannot be read. The message names the place, the rule and the remedy."""


class SplitError(DataError):
    """A source lacks the requested split, or has several and none was named.

    Attributes:
        splits: the splits that it has.
        single: whether it is one set of rows, such as a file, which is of one split as a whole.
    """

    def __init__(self, message: str, splits: Sequence[str], *, single: bool = False) -> None:
        super().__init__(message)
        self.splits, self.single = tuple(splits), single


@dataclass(frozen=True)
class UnreadRow:
    """A line of a file that is no row, and why."""

    line: bytes
    reason: str

    def __repr__(self) -> str:
        return repr(self.line)[1:]
