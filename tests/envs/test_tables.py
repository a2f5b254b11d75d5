"""Rows from a CSV file or a data frame give the environment that rows from a list give."""

import gzip
import itertools
import json
from decimal import Decimal

import numpy
import pandas
import pyarrow.parquet
import pytest

from assay import Exact, Math, make, register_rows
from assay.envs import DataError, Task, read_rows

ROWS = [{"q": f"What is {n} + 1, in full?", "a": str(n + 1), "id": f"00{n}"} for n in range(40)]
QUESTION = {"prompt": "{q}", "reference": "a", "task_id": "id"}
CSV = "q,a,id\n" + "".join(f'"{r["q"]}",{r["a"]},{r["id"]}\n' for r in ROWS)
TSV = "q\ta\tid\n" + "".join(f"{r['q']}\t{r['a']}\t{r['id']}\n" for r in ROWS)


NUMBERS = itertools.count()


def made(rows, rubric=Exact, **options):
    name = f"tables/Rows{next(NUMBERS)}-v0"
    register_rows(name, rows, rubric=rubric, **QUESTION)
    return make(name, **options)


def tasks(env):
    return [(t.id, t.text, t.reference) for t in map(env.task, range(env.source.size))]


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("rows.csv", CSV.encode()),
        ("rows.csv", b"\xef\xbb\xbf" + CSV.replace("\n", "\r\n").encode()),
        ("rows.csv.gz", gzip.compress(CSV.encode())),
        ("rows.tsv", TSV.encode()),
    ],
    ids=["csv", "as Excel writes it", "gzip", "tsv"],
)
def test_a_csv_file_gives_the_tasks_of_a_list(tmp_path, name, content) -> None:
    (tmp_path / name).write_bytes(content)
    assert tasks(made(tmp_path / name)) == tasks(made(ROWS))
    assert tasks(made(ROWS[:9], data=tmp_path / name)) == tasks(made(ROWS))


def test_cells_keep_their_line_ends_and_zeros(tmp_path) -> None:
    (tmp_path / "rows.csv").write_text('q,a\n"two\nlines, and ""marks""",007\n')
    fields = {"q": str, "a": str}
    found = read_rows(tmp_path / "rows.csv", fields=fields, split="test")
    assert found == [{"q": 'two\nlines, and "marks"', "a": "007"}]


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("q,a,id\nx,y\n", r"rows.csv, line 2: 2 cells, and the first line names 3"),
        ("q,q,id\nx,y,z\n", r"line 1: must name every column once, got q, q, id"),
        (",q,a\n0,x,y\n", r"line 1: the first column has no name, .* index=False"),
        ("", r"line 1: must name every column once, got nothing"),
        ("q,a,id\n", r"holds no rows"),
        ('q,a,id\n"x,y,z\n', r"line 2: not CSV"),
        ("q,b,id\nx,y,z\n", r"line 2: no column 'a'; the row has q, b, id"),
    ],
)
def test_each_fault_names_its_line(tmp_path, text, words) -> None:
    (tmp_path / "rows.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        made(tmp_path / "rows.csv")


def test_a_short_row_can_be_left_out(tmp_path) -> None:
    (tmp_path / "test.csv").write_text(CSV + "one cell\n")
    with pytest.warns(UserWarning, match="line 42: 1 cells"):
        env = made(tmp_path / "test.csv", split="test", on_bad_rows="skip")
    assert (len(env.bad_rows), env.source.size) == (1, 40)


def test_a_cell_may_be_longer_than_csv_reads_by_default(tmp_path) -> None:
    question = "word " * 40_000
    (tmp_path / "rows.csv").write_text(f'q,a,id\n"{question}",1,x\n')
    assert made(tmp_path / "rows.csv").task(0).text == question


def test_metadata_that_json_lacks_is_text() -> None:
    """A run is written as JSON, which failed after the first batch of replies."""
    day = pandas.Timestamp("2024-08-01")
    frame = pandas.DataFrame([{**ROWS[0], "day": day, "none": None, "more": {"days": [day]}}])
    columns = ["day", "none", "more"]
    register_rows("tables/Dated-v0", {"train": frame}, rubric=Exact, **QUESTION, metadata=columns)
    text = "2024-08-01 00:00:00"
    found = make("tables/Dated-v0").task(0).metadata
    assert found == {"day": text, "none": None, "more": {"days": [text]}}
    assert Task("?", "1", metadata={"day": numpy.datetime64("2024-08-01")}).metadata == {
        "day": "2024-08-01"
    }


def test_a_gap_is_no_word_of_a_prompt() -> None:
    with pytest.raises(DataError, match=r"row 0: column 'q' must be text or a number .* got nan"):
        made({"train": [{**ROWS[0], "q": float("nan")}]})
    with pytest.raises(DataError, match="row 0: 'prompt' has half of a surrogate pair"):
        made({"train": [{**ROWS[0], "q": "a\ud83d"}]})
    with pytest.raises(DataError, match="must be text, got 5: judge numbers by Math"):
        made({"train": [{**ROWS[0], "a": 5}]})
    with pytest.raises(DataError, match="row 0: the prompt is empty"):
        made({"train": [{**ROWS[0], "q": " "}]})
    with pytest.raises(DataError, match=r"row 0: the reference is missing \(NaN\)"):
        made({"train": [{**ROWS[0], "a": float("nan")}]}, rubric=lambda reply, a: reply == str(a))


def test_numbers_of_numpy_and_arrays_are_plain_ones() -> None:
    rows = [{"q": numpy.int64(3), "a": numpy.array([1, 2]), "id": "x"}]
    task = made({"train": rows}, rubric=lambda reply, a: reply == str(a)).task(0)
    assert (task.text, task.reference) == ("3", [1, 2])
    assert type(Task("?", numpy.float32(0.5)).reference) is float


TENTH = numpy.float32(0.1)
ARROW = pyarrow.table({"q": ["1/10 ="], "id": ["x"], "a": pyarrow.array([TENTH])})
PAIR = pyarrow.struct([("answer", pyarrow.float32()), ("tolerance", pyarrow.float32())])
FRAME = ARROW.to_pandas()


def arrow(value: object, kind: pyarrow.DataType) -> pyarrow.Table:
    return ARROW.drop_columns("a").append_column("a", pyarrow.array([value], kind))


@pytest.mark.parametrize(
    ("rows", "known"),
    [
        ([{"q": "1/10 =", "id": "x", "a": TENTH}], 0.1),
        ([{"q": "1/10 =", "id": "x", "a": numpy.array([TENTH])}], [0.1]),
        ([{"q": "1/10 =", "id": "x", "a": Decimal("0.10")}], "0.10"),
        (FRAME, 0.1),
        (FRAME.astype({"a": "category"}), 0.1),
        (FRAME.convert_dtypes(dtype_backend="pyarrow"), 0.1),
        (ARROW, 0.1),
        (arrow(numpy.float16(0.1), pyarrow.float16()), 0.1),
        (arrow([0.1, None], pyarrow.list_(pyarrow.float32())), [0.1, None]),
        (arrow({"answer": 0.1, "tolerance": None}, PAIR), {"answer": 0.1, "tolerance": None}),
        (arrow([{"answer": 0.1}], pyarrow.list_(PAIR)), [{"answer": 0.1, "tolerance": None}]),
    ],
)
def test_a_number_is_the_decimal_that_its_author_wrote(tmp_path, rows, known) -> None:
    """0.1 of single precision is 0.10000000149011612 as a double, which no reply equals."""
    tables = [rows]
    if isinstance(rows, pyarrow.Table):
        pyarrow.parquet.write_table(rows, tmp_path / "train.parquet")
        tables.append(tmp_path / "train.parquet")
        datasets = pytest.importorskip("datasets")
        tables += [datasets.Dataset(rows), datasets.Dataset(rows).to_iterable_dataset()]
    for table in tables:
        env = made({"train": table}, rubric=lambda reply, a: reply == str(a))
        assert env.task(0).reference == known


def test_a_data_frame_gives_the_tasks_of_a_list() -> None:
    frame = pandas.DataFrame(ROWS)
    assert tasks(made(frame)) == tasks(made(ROWS))
    assert tasks(made(ROWS[:9], data=frame)) == tasks(made(ROWS))
    by_split = made({"train": frame[:30], "test": frame[30:]}, split="test")
    assert by_split.source.size == 10


def test_a_frames_numbers_are_numbers_and_its_gaps_are_none() -> None:
    frame = pandas.DataFrame({"q": ["1 + 1", "1 + 2"], "a": [2, 3], "id": ["x", "y"]})
    env = made({"train": frame}, rubric=Math)
    assert (env.task(0).reference, type(env.task(0).reference)) == (2, int)
    assert env.reset(options={"task": 1})[0] == "1 + 2"
    assert env.step("3")[1] == 1.0
    with pytest.raises(DataError, match=r"row 1: column 'q' .* got None"):
        made({"train": frame.astype(object).where(frame["id"] == "x", None)}, rubric=Math)


def test_rows_by_split_may_come_from_generators_and_are_no_other_objects() -> None:
    name = f"tables/Rows{next(NUMBERS)}-v0"
    register_rows(name, {"train": iter(ROWS)}, rubric=Exact, **QUESTION)
    assert make(name).source.size == make(name).source.size == 40
    with pytest.raises(DataError, match="data must be a file, a folder, a hub name or rows, got 5"):
        made({"train": 5})


def test_an_empty_frame_is_refused() -> None:
    with pytest.raises(ValueError, match="rows is empty: give at least one"):
        made(pandas.DataFrame({"q": [], "a": [], "id": []}))


def test_an_environment_of_the_library_names_what_takes_a_frame() -> None:
    with pytest.raises(DataError, match=r"got a DataFrame.*register_rows"):
        make("assay/GSM8K-v1", data=pandas.DataFrame(ROWS))


def test_a_hub_name_offline_names_what_it_needs(monkeypatch, tmp_path) -> None:
    datasets = pytest.importorskip("datasets")
    monkeypatch.setattr(datasets.config, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", tmp_path)
    words = "hf download openai/gsm8k --repo-type dataset --local-dir gsm8k.*--data gsm8k"
    with pytest.raises(DataError, match=words):
        make("assay/GSM8K-v1", data="openai/gsm8k", split="test")


def test_a_folder_of_several_configurations_asks_for_the_folder_of_one(tmp_path) -> None:
    pytest.importorskip("datasets")
    configs = [
        {"config_name": name, "data_files": [{"split": "train", "path": f"{name}/train-*"}]}
        for name in ("main", "socratic")
    ]
    (tmp_path / "README.md").write_text(f"---\n{json.dumps({'configs': configs})}\n---\n")
    for config in configs:
        (tmp_path / config["config_name"]).mkdir()
        pandas.DataFrame(ROWS).to_parquet(tmp_path / config["config_name"] / "train-0.parquet")
    with pytest.raises(DataError, match=f"Give the folder of one, {tmp_path}/CONFIG"):
        made(tmp_path)
    assert made(tmp_path / "main").source.size == 40


def test_a_column_with_a_gap_keeps_its_whole_numbers(tmp_path) -> None:
    """Pandas makes floats of them."""
    rows = [{"question": "Which?", "choices": ["w", "x"], "answer": n} for n in (1, None)]
    pandas.DataFrame(rows).to_json(tmp_path / "test.jsonl", orient="records", lines=True)
    with pytest.warns(UserWarning, match="1 of 2 rows"):
        env = make("assay/MultipleChoice-v1", data=tmp_path / "test.jsonl", on_bad_rows="skip")
    assert env.task(0).reference["answer"] == "B"
