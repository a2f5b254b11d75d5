"""Reading data sets: every fault names its place and its remedy."""

import gzip
import json

import pytest

from assay.envs import DataError, read_rows

GOOD = [{"question": f"q{i}", "answer": f"#### {i}"} for i in range(20)]


def read(path):
    return read_rows(path, fields=("question", "answer"), split="test")


def test_plain_and_gzipped_files_read_alike(tmp_path) -> None:
    text = "\n".join(json.dumps(r) for r in GOOD)
    (tmp_path / "a.jsonl").write_text(text)
    with gzip.open(tmp_path / "a.jsonl.gz", "wt") as file:
        file.write(text)
    assert read(tmp_path / "a.jsonl") == read(tmp_path / "a.jsonl.gz") == GOOD


def test_a_saved_data_set_reads_the_same_rows(tmp_path) -> None:
    datasets = pytest.importorskip("datasets")
    datasets.DatasetDict({"test": datasets.Dataset.from_list(GOOD)}).save_to_disk(tmp_path / "d")
    assert [dict(r) for r in read(tmp_path / "d")] == GOOD


@pytest.mark.parametrize(
    ("make", "words"),
    [
        (lambda p: None, "no such file"),
        (lambda p: p.write_text(""), "holds no rows"),
        (
            lambda p: p.write_text("\n".join([json.dumps(r) for r in GOOD[:16]] + ["{oops"])),
            "line 17: not JSON",
        ),
        (lambda p: p.write_text('{"question": "q"}'), "line 1: no field 'answer'.*has question"),
        (lambda p: p.write_text("[1]"), "line 1: expected a JSON object, got list"),
        (lambda p: p.write_bytes(b"\xff\xfe\x00"), "not a text file in UTF-8"),
    ],
)
def test_each_fault_names_its_place(tmp_path, make, words) -> None:
    path = tmp_path / "rows.jsonl"
    make(path)
    with pytest.raises(DataError, match=words):
        read(path)


def test_a_file_that_is_not_gzip_says_so(tmp_path) -> None:
    (tmp_path / "a.jsonl.gz").write_text("plain")
    with pytest.raises(DataError, match="plain or gzipped"):
        read(tmp_path / "a.jsonl.gz")
