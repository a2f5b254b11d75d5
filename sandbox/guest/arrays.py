"""Values of NumPy and pandas that travel whole, as bytes and plain values.

They are made anew where they arrive, by the library there, so no subclass and no method comes with
them. Bytes hold numbers, dates and text only; what an array of objects holds goes as values do.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Callable
from typing import Any

from .wire import LIBRARIES

_Convert = Callable[[Any], Any]

_DTYPE = re.compile(r"[<>|=][biufcSUmM]\d+(\[\w+\])?")
_EXTENSION = re.compile(
    r"U?Int\d+|Float\d+|boolean|string|str|datetime64\[\w+, [\w/+:-]+\]|period\[[\w-]+\]"
)


def encode_library(value: Any, kind: type, encode: _Convert) -> Any:
    """Turn a value of a library that both ends have into JSON; None if it is no such value."""
    library, name = kind.__module__.partition(".")[0], kind.__name__
    if kind is type and value.__module__ == "numpy" and "numpy" in LIBRARIES:
        return {"numpy class": value.__name__}
    if library not in LIBRARIES:
        return None
    if library == "pandas":
        return _encode_pandas(value, name, encode)
    if hasattr(value, "dtype") and hasattr(value, "tobytes"):
        if _DTYPE.fullmatch(value.dtype.str) and (name == "ndarray" or value.shape == ()):
            tag = "ndarray" if name == "ndarray" else "scalar"
            return {tag: [value.dtype.str, list(value.shape), value.tobytes().hex()]}
        if name == "ndarray" and value.dtype.kind == "O":
            return {"object array": [list(value.shape), encode(list(value.flat))]}
        return encode(value.tolist())
    return {"dtype": value.str} if name.endswith("DType") else None


def decode_library(tag: str, data: Any, decode: _Convert) -> Any:
    """Turn the JSON of :func:`encode_library` back into the value.

    Raises:
        ValueError, TypeError, LookupError: it is none.
    """
    if tag in _PANDAS and "pandas" in LIBRARIES:
        return _PANDAS[tag](importlib.import_module("pandas"), [decode(part) for part in data])
    if "numpy" not in LIBRARIES:
        raise ValueError(f"unknown tag {tag!r}")
    numpy = importlib.import_module("numpy")
    if tag in ("ndarray", "scalar") and _DTYPE.fullmatch(data[0]):
        array = numpy.ndarray(tuple(data[1]), data[0], bytearray.fromhex(data[2]))
        if array.dtype.kind == "b":  # a byte that is neither 0 nor 1 is not equal to either
            array = array.view("u1") != 0
        return array if tag == "ndarray" else array[()]
    if tag == "object array":
        array = numpy.empty(tuple(data[0]), object)
        for place, item in enumerate(decode(data[1])):
            array.flat[place] = item
        return array
    if tag == "dtype" and (_DTYPE.fullmatch(data) or data == "|O"):
        return numpy.dtype(data)
    if tag == "numpy class" and issubclass(getattr(numpy, data), numpy.generic | numpy.ndarray):
        return getattr(numpy, data)
    raise ValueError(f"unknown tag {tag!r}")


def _encode_pandas(value: Any, name: str, encode: _Convert) -> Any:
    parts: list[Any]
    if name == "DataFrame":
        columns = [_column(value.iloc[:, place]) for place in range(value.shape[1])]
        parts = [value.index, value.columns, columns]
    elif name == "Series":
        parts = [value.index, value.name, _column(value)]
    elif name == "RangeIndex":
        parts = [value.start, value.stop, value.step, value.name]
    elif name == "MultiIndex":
        levels = [_column(value.get_level_values(n)) for n in range(value.nlevels)]
        parts = [levels, list(value.names)]
    elif name in ("Index", "CategoricalIndex", "DatetimeIndex", "TimedeltaIndex"):
        name, parts = "Index", [_column(value), value.name, getattr(value, "freqstr", None)]
    elif name == "Timestamp":
        moment = value if value.tz is None else value.tz_convert("UTC").tz_localize(None)
        parts = [moment.to_datetime64(), None if value.tz is None else str(value.tz)]
    elif name == "Timedelta":
        parts = [value.to_timedelta64()]
    elif name in ("NaTType", "NAType"):
        name, parts = "missing", [name == "NAType"]
    else:
        return None
    return {name: [encode(part) for part in parts]}


def _column(values: Any) -> Any:
    """Return the content of a series or index as what :func:`_array` takes."""
    dtype = values.dtype
    if str(dtype) == "category":
        return ["category", values.array.codes, values.array.categories, values.array.ordered]
    if _EXTENSION.fullmatch(str(dtype)):
        return [str(dtype), list(values.array)]
    return values.to_numpy()


def _array(pandas: Any, data: Any) -> Any:
    if type(data) is not list:
        return data
    if data[0] == "category":
        return pandas.Categorical.from_codes(data[1], data[2], ordered=bool(data[3]))
    if not _EXTENSION.fullmatch(data[0]):
        raise ValueError(f"unknown dtype {data[0]!r}")
    return pandas.array(data[1], dtype=data[0])


def _series(pandas: Any, data: Any) -> Any:
    array = _array(pandas, data)  # of objects: else text in them gets a dtype of its own
    return pandas.Series(array, dtype=array.dtype)


def _data_frame(pandas: Any, parts: list[Any]) -> Any:
    index, columns, content = parts
    made = {place: _series(pandas, column) for place, column in enumerate(content)}
    table = pandas.DataFrame(made, index=None if made else range(len(index)))
    table.index, table.columns = index, columns
    return table


def _named_series(pandas: Any, parts: list[Any]) -> Any:
    series = _series(pandas, parts[2])
    series.index, series.name = parts[:2]
    return series


def _index(pandas: Any, parts: list[Any]) -> Any:
    array = _array(pandas, parts[0])
    index = pandas.Index(array, dtype=array.dtype, name=parts[1])
    if parts[2] is not None:
        index.freq = str(parts[2])
    return index


def _multi_index(pandas: Any, parts: list[Any]) -> Any:
    levels = [_series(pandas, level) for level in parts[0]]
    return pandas.MultiIndex.from_arrays(levels, names=parts[1])


def _timestamp(pandas: Any, parts: list[Any]) -> Any:
    moment = pandas.Timestamp(parts[0])
    return moment if parts[1] is None else moment.tz_localize("UTC").tz_convert(str(parts[1]))


_PANDAS: dict[str, Callable[[Any, list[Any]], Any]] = {
    "DataFrame": _data_frame,
    "Series": _named_series,
    "Index": _index,
    "RangeIndex": lambda pandas, parts: pandas.RangeIndex(*parts[:3], name=parts[3]),
    "MultiIndex": _multi_index,
    "Timestamp": _timestamp,
    "Timedelta": lambda pandas, parts: pandas.Timedelta(parts[0]),
    "missing": lambda pandas, parts: pandas.NA if parts[0] else pandas.NaT,
}
