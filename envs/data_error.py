"""Errors of data and of splits."""

from __future__ import annotations

from collections.abc import Sequence


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
