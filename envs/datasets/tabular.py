"""Rows of a table: a CSV file, or a data frame of pandas."""

from __future__ import annotations

import csv
import gzip
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import Any, Protocol

import numpy as np

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

    Anything else is returned as it is. No library is imported but pyarrow.
    """
    if not is_frame(data):
        if hasattr(data, "to_pylist"):
            return arrow_rows(data)
        return _polars_rows(data) if hasattr(data, "to_dicts") else data
    names = [str(name) for name in data.columns]
    if len(set(names)) < len(names):
        raise DataError(f"the data frame names a column twice: {', '.join(names)}")
    known = data.astype(object).where(data.notna(), None)
    known.columns = names
    rows: list[dict[str, Any]] = known.to_dict("records")
    plain = [{name: _plain(value) for name, value in row.items()} for row in rows]
    return list(_widened(plain, zip(names, map(_reader_of_dtype, data.dtypes), strict=True)))


def arrow_rows(table: Any) -> list[dict[str, Any]]:
    """Return the rows of a table of pyarrow, with floats as in ``array_values``."""
    return list(typed_rows(table.to_pylist(), table.schema))


def dataset_rows(data: Any) -> Any:
    """Return the rows of a data set of ``datasets`` likewise, and anything else as it is."""
    schema = getattr(getattr(data, "features", None), "arrow_schema", None)
    return data if schema is None else typed_rows(data, schema)


def typed_rows(rows: Iterable[Any], schema: Any) -> Iterator[Any]:
    """Yield rows with floats as in ``array_values``, given the Arrow types of their columns."""
    return _widened(rows, ((field.name, _reader(field.type)) for field in schema))


Reader = Callable[[Any], Any]


def _widened(rows: Iterable[Any], readers: Iterable[tuple[str, Reader | None]]) -> Iterator[Any]:
    short = {name: read for name, read in readers if read is not None}
    for row in rows:
        found = short.keys() & row.keys() if short and isinstance(row, Mapping) else ()
        yield {**row, **{name: short[name](row[name]) for name in found}} if found else row


def _reader(kind: Any) -> Reader | None:
    """Return what reads values of an Arrow type that has floats shorter than Python's."""
    from pyarrow import types

    if types.is_float16(kind) or types.is_float32(kind):
        return partial(_decimal, np.dtype(kind.to_pandas_dtype()).type)
    if types.is_struct(kind):
        inner = [(field.name, _reader(field.type)) for field in kind]
        return (lambda value: next(_widened([value], inner))) if any(r for _, r in inner) else None
    nested = types.is_nested(kind) or types.is_dictionary(kind)
    read = _reader(kind.value_type) if nested and hasattr(kind, "value_type") else None
    if read is None or types.is_dictionary(kind):
        return read
    return lambda values: values if values is None else [read(value) for value in values]


def _reader_of_dtype(dtype: Any) -> Reader | None:
    dtype = getattr(getattr(dtype, "categories", None), "dtype", dtype)
    if hasattr(dtype, "pyarrow_dtype"):
        return _reader(dtype.pyarrow_dtype)
    dtype = getattr(dtype, "numpy_dtype", dtype)
    return partial(_decimal, dtype.type) if str(dtype) in ("float16", "float32") else None


def _decimal(kind: type, value: Any) -> Any:
    return float(str(kind(value))) if isinstance(value, float) else value


def _polars_rows(data: Any) -> Any:
    try:
        return arrow_rows(data.to_arrow())
    except ImportError:  # without pyarrow
        return data.to_dicts()


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
    if len(found) > 1 and not found[0].strip() and all(found[1:]):
        raise DataError(
            f"{path}, line 1: the first column has no name, as pandas writes its index: write the "
            "file by frame.to_csv(path, index=False)"
        )
    if not found or not all(name.strip() for name in found) or len(set(found)) < len(found):
        raise DataError(
            f"{path}, line 1: must name every column once, got {', '.join(found) or 'nothing'}"
        )
