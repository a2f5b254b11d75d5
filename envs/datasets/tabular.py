"""Rows of a table: a CSV file, or a data frame of pandas."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

from ..task import array_values
from .errors import DataError, UnreadRow


class Frame(Protocol):
    """A pandas DataFrame."""

    columns: Any

    def notna(self) -> Any:
        """Tell which cells hold a value."""


_LONGEST_CELL = 1 << 30
"""Characters; by default csv refuses 131,073, and replies of reasoning models are longer."""


def read_csv(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each row of a CSV or TSV file, plain or gzipped, with its location.

    The first line has the names of the columns. Every cell stays text, so an id such as ``007``
    keeps its zeros.

    Raises:
        DataError: the file is not CSV in UTF-8, or its first line names no columns or one twice.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    tabs = path.name.endswith((".tsv", ".tsv.gz"))
    csv.field_size_limit(_LONGEST_CELL)
    with opener(path, "rt", encoding="utf-8-sig", newline="") as file:
        reader = csv.reader(file, delimiter="\t" if tabs else ",", strict=True)
        try:
            names = next(reader, [])
            _refuse_names(path, names)
            for cells in reader:
                if not cells:
                    continue
                place = f"{path}, line {reader.line_num}"
                if len(cells) == len(names):
                    yield place, dict(zip(names, cells, strict=True))
                else:
                    reason = f"{place}: {len(cells)} cells, and the first line names {len(names)}"
                    yield place, UnreadRow(",".join(cells).encode(), reason)
        except csv.Error as error:
            raise DataError(f"{path}, line {reader.line_num}: not CSV ({error})") from error
        except UnicodeDecodeError as error:
            raise DataError(f"{path}: not a text file in UTF-8 ({error})") from error
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DataError(f"{path}: not a whole gzipped file ({error})") from error


def frame_rows(data: Any) -> Any:
    """Return the rows of a table of pandas, pyarrow or polars as dicts, None for what is missing.

    Anything else is returned as it is. No library is imported.
    """
    if not is_frame(data):
        if hasattr(data, "to_pylist"):
            return arrow_rows(data)
        return data.to_dicts() if hasattr(data, "to_dicts") else data
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        raise DataError(f"the data frame names a column twice: {', '.join(names)}")
    short = data.select_dtypes(["float16", "float32"]).columns
    data = data.astype(dict.fromkeys(short, str)).astype(dict.fromkeys(short, float))
    known = data.astype(object).where(data.notna(), None)
    known.columns = names
    rows: list[dict[str, Any]] = known.to_dict("records")
    return [{name: _plain(value) for name, value in row.items()} for row in rows]


def arrow_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of pyarrow, floats of single precision as in ``array_values``."""
    from pyarrow import float64, types

    for i, field in enumerate(table.schema):
        if types.is_float32(field.type):
            column = table.column(i).cast("string").cast(float64())
            table = table.set_column(i, field.name, column)
    rows: list[dict[str, Any]] = table.to_pylist()
    return rows


def is_frame(data: object) -> bool:
    """Return True if an object is a DataFrame of pandas."""
    kind = type(data)
    return kind.__name__ == "DataFrame" and kind.__module__.partition(".")[0] == "pandas"


def _plain(value: Any) -> Any:
    """Return Python's own number or list for one of NumPy."""
    if isinstance(value, Mapping):
        return {key: _plain(inner) for key, inner in value.items()}
    if hasattr(value, "tolist"):
        value = array_values(value)
    return [_plain(inner) for inner in value] if isinstance(value, list) else value


def _refuse_names(path: Path, names: Iterable[str]) -> None:
    found = list(names)
    if len(found) == 1 and (other := next((mark for mark in ";\t|" if mark in found[0]), "")):
        raise DataError(
            f"{path}, line 1: cells must be separated by commas (by tabs in a .tsv file), and "
            f"these seem to be by {other!r}: {found[0]!r:.80}"
        )
    if not found or not all(name.strip() for name in found) or len(set(found)) < len(found):
        raise DataError(
            f"{path}, line 1: must name every column once, got {', '.join(found) or 'nothing'}"
        )
