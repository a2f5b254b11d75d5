"""Rows of public data sets: from a local file, a saved data set, or a hub by name."""

from __future__ import annotations

import gzip
import json
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

Row = Mapping[str, Any]


class DataError(ValueError):
    """Data cannot be read. The message names the place, the rule and the remedy."""


def read_rows(
    data: str | Path, *, fields: Mapping[str, type], split: str, config: str = ""
) -> list[Row]:
    """Read a data set whole.

    Args:
        data: a JSONL file, plain or ``.gz``; a folder saved by ``datasets``; or the name of a
            data set on the Hugging Face hub, such as ``"openai/gsm8k"``.
        fields: what every row must have: names, and the type of each value.
        split: which split, where ``data`` has several; a file has one.
        config: which configuration of a hub data set.

    Raises:
        DataError: there is no such file, a line is not JSON, or a row lacks a field or has
            another type there.
    """
    path = Path(data)
    if path.is_file():
        rows: Iterable[tuple[str, Any]] = read_jsonl(path)
    elif path.is_dir() or _is_hub_name(str(data)):
        named = _read_datasets(str(data), split, config)
        rows = ((f"{data}, row {i}", row) for i, row in enumerate(named))
    else:
        raise DataError(
            f"no such file: {data}. Give a JSONL file (plain or .gz), a folder saved by datasets, "
            "or the name of a data set on the hub, such as openai/gsm8k"
        )
    checked = [_with_fields(place, row, fields) for place, row in rows]
    if not checked:
        raise DataError(f"{data} holds no rows")
    return checked


def checked(place: str, make: Callable[[Row], dict[str, Any]], row: Row) -> dict[str, Any]:
    """What ``make`` makes of a row.

    Raises:
        DataError: it refuses the row; the message names the place.
    """
    try:
        return make(row)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from error


def read_jsonl(path: Path) -> Iterator[tuple[str, Any]]:
    """Each line's place, for messages, and its value; blank lines are passed over.

    Lines end in a line feed and nowhere else: JSON strings may hold other separators. A byte
    order mark is passed over.

    Raises:
        DataError: the file cannot be read as text, or a line is not JSON.
    """
    opener = gzip.open if path.suffix == ".gz" else open
    with opener(path, "rb") as lines:
        number = 0
        try:
            for number, line in enumerate(lines, start=1):
                text = line.decode("utf-8-sig" if number == 1 else "utf-8")
                if text.strip():
                    yield f"{path}, line {number}", json.loads(text)
        except UnicodeDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not a text file in UTF-8, plain or gzipped ({error})"
            ) from error
        except json.JSONDecodeError as error:
            raise DataError(
                f"{path}, line {number}: not JSON ({error.msg} at column {error.colno}). "
                "Every line must be one JSON object"
            ) from error
        except (ValueError, RecursionError) as error:  # a number or a nesting beyond Python's
            raise DataError(f"{path}, line {number}: JSON that is too big ({error})") from error
        except (gzip.BadGzipFile, zlib.error, EOFError) as error:
            raise DataError(
                f"{path}, after line {number}: not a whole file, plain or gzipped ({error})"
            ) from error


def _with_fields(place: str, row: Any, fields: Mapping[str, type]) -> Row:
    if not isinstance(row, Mapping):
        raise DataError(f"{place}: expected a JSON object, got {type(row).__name__}")
    for name, wanted in fields.items():
        if name not in row:
            raise DataError(
                f"{place}: no field {name!r}; this environment needs {', '.join(fields)} "
                f"and the row has {', '.join(map(str, row)) or 'none'}"
            )
        if not isinstance(row[name], wanted):
            raise DataError(
                f"{place}: {name!r} must be a {wanted.__name__}, got {row[name]!r:.80}. "
                "Correct or remove this row"
            )
    return row


def _is_hub_name(name: str) -> bool:
    # A path that was mistyped has a suffix or a leading dot or slash; a hub name has neither.
    parts = name.split("/")
    return len(parts) == 2 and all(parts) and not name.endswith((".jsonl", ".json", ".gz"))


def _read_datasets(name: str, split: str, config: str) -> Iterable[Row]:
    try:
        import datasets
    except ImportError as error:
        raise DataError(
            f"reading {name} needs the datasets package: pip install 'assay[trl]', "
            "or give a JSONL file"
        ) from error
    try:
        if (Path(name) / "state.json").exists() or (Path(name) / "dataset_dict.json").exists():
            loaded = datasets.load_from_disk(name)
            found = loaded[split] if isinstance(loaded, datasets.DatasetDict) else loaded
        else:
            found = _load_dataset(name, split, config)
    except Exception as error:  # datasets raises its own, the hub's and the network's errors
        raise DataError(
            f"cannot read {name} (split {split}) with datasets: {type(error).__name__}: {error}. "
            "Check the name and the network, or give a JSONL file"
        ) from error
    return found  # type: ignore[no-any-return]  # datasets ships no types


def _load_dataset(name: str, split: str, config: str) -> Iterable[Row]:
    """Load by ``datasets``: from the cache alone where the hub does not answer."""
    import datasets
    from huggingface_hub import constants, get_session

    if Path(name).is_dir():
        named = config in datasets.get_dataset_config_names(name)
        return datasets.load_dataset(name, config if named else None, split=split)  # type: ignore[no-any-return]  # datasets ships no types
    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:  # no network: without this every file is tried six times, half a minute
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        return datasets.load_dataset(name, config or None, split=split)  # type: ignore[no-any-return]  # datasets ships no types
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before
