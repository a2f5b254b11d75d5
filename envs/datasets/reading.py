"""Rows of public data sets: from a local file or folder, or from a hub by name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .bad_rows import BadRows

from .errors import DataError as DataError
from .errors import UnreadRow
from .split_files import (
    SUFFIXES,
    files_of,
    from_cache_if_offline,
    hub_splits,
    is_hub_name,
    is_saved,
    no_split,
)
from .tabular import arrow_rows, dataset_rows, read_csv

Row = Mapping[str, Any]
Types = type | tuple[type, ...]

REMEDY = "Correct or remove this row"


def read_rows(
    data: str | Path,
    *,
    fields: Mapping[str, Types],
    split: str,
    config: str = "",
    optional: Mapping[str, Types] | None = None,
) -> list[Row]:
    """Read a data set whole.

    Args:
        data: a file (JSONL, CSV or TSV, plain or ``.gz``; ``.json``, a list of rows or JSONL;
            ``.parquet``);
            a folder of such files, each named for its split, such as ``test.jsonl`` or
            ``data/test-00000-of-00001.parquet``; a folder saved by ``datasets``; or the name of
            a data set on the Hugging Face hub, such as ``"openai/gsm8k"``, if needed with its
            configuration, as in ``"cais/mmlu:anatomy"``.
        fields: what every row must have: names, and the type of each value, or several types.
        split: the split to read if ``data`` has several; a file is one.
        config: which configuration of a hub data set, if ``data`` names none.
        optional: the types of what a row may have; null stands for nothing there.

    Raises:
        DataError: there is no such file, it cannot be read, or a row lacks a field, has another
            type there, or text that is no Unicode.
    """
    found = placed_rows(data, fields=fields, split=split, config=config, optional=optional)
    return [row for _, _, row in found]


def placed_rows(
    data: str | Path,
    *,
    fields: Mapping[str, Types],
    split: str,
    config: str = "",
    optional: Mapping[str, Types] | None = None,
    bad: BadRows | None = None,
) -> list[tuple[int, str, Row]]:
    """Read rows as :func:`read_rows` does, each after its number from 0 and its place.

    ``bad`` collects the rows that lack a field or have another type there; ``None`` raises.
    """

    def checked(_: int, place: str, row: Any) -> Row:
        return _with_fields(place, row, fields, optional or {})

    read = [(i, *placed) for i, placed in enumerate(_rows(Path(data), split, config))]
    if not read:
        raise DataError(f"{data} holds no rows")
    if bad is not None:
        return bad.keep(read, checked)
    return [(index, place, checked(index, place, row)) for index, place, row in read]


def _rows(path: Path, split: str, config: str) -> Iterable[tuple[str, Any]]:
    """Yield each row with its location for messages."""
    if path.is_file():
        return _read_file(path)
    if path.is_dir() and not is_saved(path):
        files = files_of(path, split, config)
        if files:
            return (row for file in files for row in _read_file(file))
    if path.is_dir() or is_hub_name(str(path)):
        named = _read_datasets(str(path), split, config)
        return ((f"{path}, row {i}", row) for i, row in enumerate(named))
    raise DataError(
        f"no such file: {path}. Give a file ({', '.join(SUFFIXES)}), a folder of them, or the "
        "name of a data set on the hub, such as openai/gsm8k"
    )


def _read_file(path: Path) -> Iterable[tuple[str, Any]]:
    if path.suffix in (".xlsx", ".arrow", ".zip"):
        raise DataError(
            f"{path}: a {path.suffix} is not read. Give one of {', '.join(SUFFIXES)}; pandas makes "
            "it: frame.to_json('rows.jsonl', orient='records', lines=True)"
        )
    if path.name.endswith((".csv", ".csv.gz", ".tsv", ".tsv.gz")):
        return read_csv(path)
    if path.suffix == ".parquet":
        return _read_parquet(path)
    return _read_json(path) if path.suffix == ".json" else _read_lines(path)


def _read_json(path: Path) -> Iterable[tuple[str, Any]]:
    """Read a list of rows, or lines if the file is JSONL in spite of its name."""
    try:
        whole = json.loads(path.read_text(encoding="utf-8-sig"))
    except (ValueError, RecursionError):
        return _read_lines(path)
    if not isinstance(whole, list):
        return [(str(path), whole)]
    return ((f"{path}, row {i}", row) for i, row in enumerate(whole))


def _read_parquet(path: Path) -> Iterable[tuple[str, Any]]:
    try:
        from pyarrow import ArrowException, parquet
    except ImportError as error:
        raise DataError(
            f"reading {path} needs pyarrow: pip install pyarrow, or give a JSONL or CSV file"
        ) from error
    try:
        rows = arrow_rows(parquet.read_table(path))
    except (ArrowException, OSError) as error:
        raise DataError(f"{path}: not a whole Parquet file ({error})") from error
    return ((f"{path}, row {i}", row) for i, row in enumerate(rows))


def read_values(path: Path) -> Iterator[tuple[str, Any]]:
    """Yield each row's location and value: of JSONL, a JSON list, CSV or Parquet, by the suffix.

    Lines of JSONL end in a line feed and nowhere else: JSON strings may hold other separators.
    Blank lines and a byte order mark are passed over.

    Raises:
        DataError: the file cannot be read as what its name says, or a row is not whole.
    """
    for place, value in _read_file(path):
        if isinstance(value, UnreadRow):
            raise DataError(value.reason)
        yield place, value


def _read_lines(path: Path) -> Iterator[tuple[str, Any]]:
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                place = f"{path}, line {number}"
                value = _parsed(place, line, "utf-8-sig" if number == 1 else "utf-8")
                if value is not _BLANK:
                    yield place, value
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DataError(
                f"{path}, after line {number}: not a whole file, plain or gzipped ({error})"
            ) from error


_BLANK = object()


def _parsed(place: str, line: bytes, encoding: str) -> Any:
    try:
        text = line.decode(encoding)
        return json.loads(text) if text.strip() else _BLANK
    except UnicodeDecodeError as error:
        reason = f"not a text file in UTF-8, plain or gzipped ({error})"
    except json.JSONDecodeError as error:
        reason = f"not JSON ({error.msg} at column {error.colno}). A line must be one JSON object"
    except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's
        reason = f"JSON that is too big ({error})"
    return UnreadRow(line, f"{place}: {reason}")


def _with_fields(
    place: str, row: Any, fields: Mapping[str, Types], optional: Mapping[str, Types]
) -> Row:
    if isinstance(row, UnreadRow):
        raise DataError(row.reason)
    if not isinstance(row, Mapping):
        raise DataError(f"{place}: expected a JSON object, got {type(row).__name__}")
    found: Row = {**row, **_whole(row, {**fields, **optional})}
    for name, wanted in fields.items():
        if name not in found:
            raise DataError(
                f"{place}: no field {name!r}; this environment needs {', '.join(fields)} "
                f"and the row has {', '.join(map(str, row)) or 'none'}"
            )
        refuse_value(place, name, found[name], wanted)
    for name, wanted in optional.items():
        if found.get(name) is not None:
            refuse_value(place, name, found[name], wanted)
    return found


def _whole(row: Row, fields: Mapping[str, Types]) -> dict[str, int]:
    """Return the whole numbers that pandas made floats, as it does in a column with a gap."""
    return {
        name: int(value)
        for name, wanted in fields.items()
        if isinstance(value := row.get(name), float) and value.is_integer()
        if isinstance(0, wanted) and not isinstance(0.0, wanted)
    }


def refuse_value(place: str, name: str, value: Any, wanted: Types) -> None:
    """Raise a DataError for a value of another type, NaN, or text that is no Unicode."""
    types = wanted if isinstance(wanted, tuple) else (wanted,)
    fits = isinstance(value, types) and (bool in types or not isinstance(value, bool))
    if not fits or value != value:  # NaN, with which pandas marks what is missing
        raise DataError(
            f"{place}: {name!r} must be a {' or a '.join(t.__name__ for t in types)}, "
            f"got {value!r:.80}. {REMEDY}"
        )
    half = _half_pair(value)
    if half is not None:
        raise DataError(
            f"{place}: {name!r} has half of a surrogate pair, which is no Unicode character and "
            f"has no UTF-8: {half!r}. {REMEDY}"
        )


def _half_pair(value: Any) -> str | None:
    """Return the location of a text, also in lists and objects, that UTF-8 cannot encode."""
    if isinstance(value, str):
        try:
            value.encode()
        except UnicodeEncodeError as error:
            return value[max(0, error.start - 20) : error.start + 20]
        return None
    if isinstance(value, Mapping):
        value = [*value, *value.values()]
    inner = value if isinstance(value, list | tuple) else ()
    return next((found for one in inner if (found := _half_pair(one)) is not None), None)


def _read_datasets(name: str, split: str, config: str) -> Iterable[Row]:
    if not Path(name).is_dir():
        name, _, named = name.partition(":")
        config = named or config
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"reading {name} from the hub needs datasets: pip install datasets, or give a file"
        ) from error
    try:
        if is_saved(Path(name)):
            loaded = datasets.load_from_disk(name)
            found = loaded[split] if isinstance(loaded, datasets.DatasetDict) else loaded
        else:
            found = _load_dataset(name, split, config)
    except Exception as error:  # datasets raises its own, the hub's and the network's errors
        splits = hub_splits(name, config) if "split" in str(error) else []
        if splits and split not in splits:
            raise no_split(name, split, splits) from error
        of_split = f" (split {split})" if split else ""
        raise DataError(
            f"cannot read {name}{of_split} with datasets: {type(error).__name__}: {error}. "
            f"{_remedy(name, error)}"
        ) from error
    return dataset_rows(found)  # type: ignore[no-any-return]  # datasets ships no types


def _remedy(name: str, error: Exception) -> str:
    if "Config name is missing" in str(error):
        ways = f"the folder of one, {name}/CONFIG" if Path(name).is_dir() else f"{name}:CONFIG"
        return f"Give {ways}"
    if not isinstance(error, ConnectionError):
        return "Check the name, its configuration and split, or give a file"
    folder = name.rpartition("/")[2]
    return (
        "The hub cannot be reached, and the cache (HF_HOME) has no copy. Where it can: hf download "
        f"{name} --repo-type dataset --local-dir {folder}; then give that folder: --data {folder}"
    )


def _load_dataset(name: str, split: str, config: str) -> Iterable[Row]:
    """Load by ``datasets``, from the cache alone if the hub does not respond."""
    import datasets

    if Path(name).is_dir():
        named = config in datasets.get_dataset_config_names(name)
        return datasets.load_dataset(name, config if named else None, split=split)  # type: ignore[no-any-return]  # datasets ships no types
    with from_cache_if_offline():
        return datasets.load_dataset(name, config or None, split=split)  # type: ignore[no-any-return]  # datasets ships no types
