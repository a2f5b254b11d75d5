"""Files that are there whole or not at all."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from assay.verifiers.atomic_io import (
    replacing,
    sweep,
    write_directory,
    write_json,
    write_settings,
    write_text,
)


def test_a_file_is_replaced_whole_or_stays_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "new" / "a.json"
    write_json(path, {"reply": "\ud800"})  # half a surrogate pair, which UTF-8 cannot hold
    assert json.loads(path.read_text()) == {"reply": "\ud800"}
    with pytest.raises(ZeroDivisionError), replacing(path) as partial:
        partial.write_text(str(1 / (partial.write_text("half") - 4)))
    with pytest.raises(UnicodeEncodeError):
        write_text(path, "\ud800")
    assert json.loads(path.read_text()) == {"reply": "\ud800"}
    assert [p.name for p in path.parent.iterdir()] == ["a.json"]


def test_threads_that_write_one_file_leave_one_of_their_texts(tmp_path: Path) -> None:
    path, texts = tmp_path / "a", [str(n) * 100_000 for n in range(8)]
    with ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda text: write_text(path, text, sync=False), texts * 5))
    assert path.read_text() in texts
    assert [p.name for p in tmp_path.iterdir()] == ["a"]


def test_a_file_left_by_a_crash_widens_no_permissions(tmp_path: Path) -> None:
    with replacing(tmp_path / "run.json") as partial:
        name = partial.name
    (tmp_path / name).write_text("left")
    (tmp_path / name).chmod(0o644)
    write_settings(tmp_path / "run.json", {"hf_token": "hf_abcdef", "steps": 3})
    assert (tmp_path / "run.json").stat().st_mode & 0o777 == 0o600
    found = json.loads((tmp_path / "run.json").read_text())
    assert found == {"hf_token": "<redacted>", "steps": 3}


def test_a_directory_appears_when_it_is_filled(tmp_path: Path) -> None:
    def fill(folder: Path) -> None:
        (folder / "one").write_text("1")
        assert not (tmp_path / "made").exists()

    def fail(folder: Path) -> None:
        (folder / "one").write_text("1")
        raise OSError("the disk is full")

    write_directory(tmp_path / "made", fill)
    assert (tmp_path / "made" / "one").read_text() == "1"
    with pytest.raises(OSError, match="full"):
        write_directory(tmp_path / "other", fail)
    (tmp_path / ".killed.partial").mkdir()
    sweep(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["made"]
