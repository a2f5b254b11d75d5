"""Reading data sets: every fault names its place and its remedy."""

import gzip
import json

import pytest

from assay.envs import DataError, read_rows

GOOD = [{"question": f"q{i}", "answer": f"#### {i}"} for i in range(20)]


def read(path):
    return read_rows(path, fields={"question": str, "answer": str}, split="test")


def test_marks_and_separators_that_editors_leave_change_nothing(tmp_path) -> None:
    rows = [{"question": "a\u2028b\x85c\x0c", "answer": "#### 1"}] * 2
    text = "\r\n".join(json.dumps(r, ensure_ascii=False) for r in rows)
    (tmp_path / "a.jsonl").write_bytes(b"\xef\xbb\xbf" + text.encode() + b"\r\n\r\n")
    assert read(tmp_path / "a.jsonl") == rows


def test_a_damaged_gzip_file_is_named(tmp_path) -> None:
    whole = gzip.compress("\n".join(json.dumps(r) for r in GOOD).encode())
    for damaged in (whole[:60], whole[:30] + bytes(20) + whole[50:], b"plain"):
        (tmp_path / "a.jsonl.gz").write_bytes(damaged)
        with pytest.raises(DataError, match="not a whole file, plain or gzipped"):
            read(tmp_path / "a.jsonl.gz")


def test_a_folder_of_plain_files_reads_whatever_the_hub_calls_it(tmp_path, monkeypatch) -> None:
    pytest.importorskip("datasets")
    monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "test.jsonl").write_text("\n".join(json.dumps(r) for r in GOOD))
    fields = {"question": str, "answer": str}
    found = read_rows(tmp_path / "d", fields=fields, split="test", config="main")
    assert [dict(r) for r in found] == GOOD


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
        (lambda p: p.write_bytes(b"\n\n\xe9"), "line 3: not a text file in UTF-8"),
        (
            lambda p: p.write_text('{"question": null, "answer": "#### 1"}'),
            "line 1: 'question' must be a str, got None",
        ),
        (lambda p: p.write_text("[" * 99_999), "line 1: JSON that is too big"),
        (lambda p: p.write_text("9" * 9999), "line 1: JSON that is too big"),
    ],
)
def test_each_fault_names_its_place(tmp_path, make, words) -> None:
    path = tmp_path / "rows.jsonl"
    make(path)
    with pytest.raises(DataError, match=words):
        read(path)
