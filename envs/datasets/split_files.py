"""Which splits a data set has, by the names of its files, and which of them to read."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from .errors import DataError, SplitError

SUFFIXES = (
    ".jsonl", ".jsonl.gz", ".json", ".csv", ".csv.gz", ".tsv", ".tsv.gz", ".parquet",
)  # fmt: skip
"""Suffixes of the files that are read as data."""

_KINDS = {
    "train": re.compile(r"(?:.*[^s])?train(?:ing)?"),
    "test": re.compile(
        r"(?!.*(?:con|pro|at|de|la|grea|fas|shor|ligh|brigh|tigh|sof|smar|swee|quie|hot|nea|fit)test)"
        r"(?:.*test(?:s|ing|mini)?|(?!retri|medi|prim).*(?:eval|evaluation)s?|h[eo]ldout"
        r"|(?!work).*bench(?:marks?)?)"
    ),
    "validation": re.compile(r"(?!in).*validation|valid|(?:k|mini)?(?:val|dev)"),
}
"""What the words of a name say; the last one of a compound decides, as in ``mathtest``."""
_BENCHMARK = re.compile(
    r"math500(?![\dk])|(?:aime|amc|brumo|hmmt(?:feb|nov)?)(?:20)?2[3-9](?!\d)|minervamath|"
    r"humaneval|mbppplus|gpqa|ifeval|simpleqa|mmlupro"
)
"""Data sets that have no rows to train on, by their names without signs."""
_HELD_OUT = re.compile(r"h(e|o)ld[-_ ]out")
_CAPITAL = re.compile(r"(?<=[a-z\d])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])")
_SET = re.compile(r"(?:set|split|data)\Z")


def split_kind(name: str) -> str:
    """Return ``train``, ``test`` or ``validation`` if a name says which, or else an empty string.

    A name that says several, such as ``train_and_test``, is none of them. The name of a data set
    that is for evaluation alone, such as MATH-500, says ``test``.

    Example:
        >>> split_kind("GSM8KTest.jsonl"), split_kind("devset-00000-of-00002"), split_kind("rows")
        ('test', 'validation', '')
        >>> split_kind("gsm8ktest"), split_kind("aime_2024"), split_kind("latest")
        ('test', 'test', '')
    """
    parted = _CAPITAL.sub("_", name).lower()
    words = [_SET.sub("", word) for word in re.split(r"[^a-z]+", _HELD_OUT.sub("heldout", parted))]
    kinds = {kind for kind, said in _KINDS.items() if any(map(said.fullmatch, words))}
    if _BENCHMARK.search(_joined(name)):
        kinds.add("test")
    return kinds.pop() if len(kinds) == 1 else ""


def _joined(name: str) -> str:
    return re.sub(r"[^a-z\d]", "", name.lower())


def is_for_evaluation(split: str) -> bool:
    """Return True if a split is kept for evaluation, or a mixture contains one that is.

    Example:
        >>> [s for s in ("train", "test[:50%]", "train+test", "sample") if is_for_evaluation(s)]
        ['test[:50%]', 'train+test']
    """
    return any(split_kind(part) in ("test", "validation") for part in split.split("+"))


def file_split(path: Path) -> str:
    """Return the split that a file's name says, or the folder's name if the file has a number.

    Example:
        >>> file_split(Path("gsm8k/test/0000.parquet")), file_split(Path("test/rows.jsonl"))
        ('test', '')
    """
    stem = _stem(path)
    numbered = not re.search(r"[a-z]", stem.lower().replace("of", ""))
    return split_kind(stem) or (_folder_split(path.parent) if numbered else "")


def is_saved(folder: Path) -> bool:
    """Return True if ``datasets`` has saved a data set in a folder."""
    return (folder / "state.json").exists() or (folder / "dataset_dict.json").exists()


def files_of(folder: Path, split: str, config: str) -> list[Path]:
    """Return the files of a split in a folder, or in its folder of a configuration or ``data``.

    The names of files begin with the split; or else they contain it, as in ``gsm8k_test.jsonl``.
    """
    for inner in _places(folder, config):
        found = _data_files(inner)
        files = [file for file in found if _first_word(file) == split]
        if not files and split_kind(split) == split:
            files = [file for file in found if file_split(file) == split]
        if files:
            return _one_format(files)
    if _folder_split(folder) == split and not _splits_in(folder, config):
        return _one_format(_data_files(folder))
    return []


def _one_format(files: list[Path]) -> list[Path]:
    """Return the files, unless two are one in two formats."""
    by_stem = {_stem(file): file for file in files}
    for file in files:
        if by_stem[_stem(file)] != file:
            raise DataError(
                f"{file.parent} has {file.name} and {by_stem[_stem(file)].name}, whose rows would "
                "count twice if they are the same: remove or rename one"
            )
    return files


def find_split(data: str | Path, split: str | None, config: str = "") -> str:
    """Return the split to read of a data set: the one asked for, or the only one.

    A file whose name says no split is of the one asked for, or of an unknown one.

    Args:
        data: a file, a folder or a hub name.
        split: the split asked for, or None for the only one that there is.
        config: the configuration of a hub data set.

    Returns:
        The split's name; an empty string if it is not known.

    Raises:
        SplitError: the data has other splits, or several and none was asked for.
    """
    if not str(data):  # Path("") is the current folder
        raise DataError(f"data must be a file, a folder or a hub name, got {data!r}")
    path = Path(data)
    saved = path.is_dir() and is_saved(path)
    if path.is_file() or (saved and not (path / "dataset_dict.json").exists()):
        return _one(data, split, file_split(path) if path.is_file() else _saved_split(path))
    if saved:
        return _chosen(data, split, _saved_splits(path))
    if path.is_dir():
        if split and files_of(path, split, config):
            return split
        if names := _splits_in(path, config):
            return _chosen(data, split, names)
        if named := _folder_split(path):
            return _one(data, split, named)
    if split or not (path.is_dir() or is_hub_name(str(data))):
        return split or ""
    return _chosen(data, None, hub_splits(str(data), config) or [""])


def no_split(
    data: str | Path, split: str | None, splits: list[str], *, single: bool = False
) -> SplitError:
    """Make the error of a split that is missing, or that was not named."""
    listed = ", ".join(splits)
    if split is None:
        text = f"{data} has the splits {listed}: name one by split, such as split='train' to train "
        text += "or split='test' to evaluate (--set split=test)"
    elif single:
        text = f"{data} holds the split {listed!r}, as its name says, and {split!r} was asked for: "
        text += f"ask for split={listed!r}, or rename it if that is not so"
    else:
        text = f"{data} has no split {split!r}; it has {listed}. Ask for one of these by split "
        text += f"(--set split={splits[0]})"
    return SplitError(text, splits, single=single)


def hub_splits(name: str, config: str) -> list[str]:
    """Return the splits of a data set on the hub, or of a folder that ``datasets`` reads.

    Returns:
        Their names; none if ``datasets`` does not know them.
    """
    if not Path(name).is_dir():
        name, _, named = name.partition(":")
        config = named or config
    try:
        import datasets

        if Path(name).is_dir() and config not in datasets.get_dataset_config_names(name):
            config = ""
        with from_cache_if_offline():
            return list(datasets.get_dataset_split_names(name, config or None))
    except Exception:  # whatever is wrong is reported by the attempt to read the rows
        return []


def is_hub_name(name: str) -> bool:
    """Return True if a text has the form of a hub name, ``owner/name``."""
    # A path that was mistyped has a suffix or a leading dot or slash; a hub name has neither.
    parts = name.split("/")
    return len(parts) == 2 and all(parts) and not name.endswith((*SUFFIXES, ".gz"))


@contextmanager
def from_cache_if_offline() -> Iterator[None]:
    """Have ``datasets`` read its cache alone if the hub does not answer.

    Without this every file is tried six times, which takes half a minute.
    """
    import datasets
    from huggingface_hub import constants, get_session

    before = constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE
    try:
        get_session().head(constants.ENDPOINT, timeout=5)
    except Exception:
        constants.HF_HUB_OFFLINE = datasets.config.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        constants.HF_HUB_OFFLINE, datasets.config.HF_HUB_OFFLINE = before


def _one(data: str | Path, split: str | None, named: str) -> str:
    """Return the split of a single set of rows, whose name may identify it."""
    if split and named and is_for_evaluation(split) != is_for_evaluation(named):
        raise no_split(data, split, [named], single=True)
    return named or split or ""


def _chosen(data: str | Path, split: str | None, splits: list[str]) -> str:
    if split is None and len(splits) == 1:
        return splits[0]
    # A slice, such as train[:10%], or a sum of splits is for datasets to read.
    if split is not None and all(re.sub(r"\[.*\]", "", s) in splits for s in split.split("+")):
        return split
    raise no_split(data, split, splits)


def _places(folder: Path, config: str) -> tuple[Path, ...]:
    return (folder, folder / config, folder / "data")


def _data_files(folder: Path) -> list[Path]:
    found = sorted(folder.iterdir()) if folder.is_dir() else []
    return [file for file in found if file.name.endswith(SUFFIXES)]


def _stem(file: Path) -> str:
    return re.sub(r"\.(jsonl|json|csv|tsv|parquet)(\.gz)?$", "", file.name)


def _first_word(file: Path) -> str:
    return re.split(r"[-_.]", file.name)[0]


def _splits_in(folder: Path, config: str) -> list[str]:
    """Return the splits that a folder's file names identify, if any."""
    for inner in _places(folder, config):
        files = _data_files(inner)
        if any(split_kind(_stem(file)) for file in files):
            names = (split_kind(_stem(f)) or _first_word(f) for f in files)
            return list(dict.fromkeys(names))
    return []


def _folder_split(folder: Path) -> str:
    """Return the split of a folder that is named for exactly one."""
    name = folder.name.lower()
    return split_kind(name) if name.isalpha() or _BENCHMARK.fullmatch(_joined(name)) else ""


def _saved_splits(folder: Path) -> list[str]:
    try:
        return list(json.loads((folder / "dataset_dict.json").read_text())["splits"])
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise DataError(f"{folder / 'dataset_dict.json'} cannot be read: {error}") from error


def _saved_split(folder: Path) -> str:
    """Return the split of one saved set of rows; ``train`` proves nothing: any part has it."""
    try:
        said = json.loads((folder / "state.json").read_text()).get("_split") or ""
    except (OSError, ValueError, AttributeError):
        said = ""
    return _folder_split(folder) or (split_kind(said) if is_for_evaluation(said) else "")
