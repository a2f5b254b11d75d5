"""One broken row in a data set: it is refused, with its file, line and field, or can be used."""

import copy
import json

import pytest

from assay.envs import BadRowsWarning, DataError, make, register_rows
from assay.envs.datasets.library import LIBRARY
from assay.envs.datasets.library.data_env import sample_of
from assay.verifiers import Math, MultipleChoice

REQUIRED = {
    "AIME": ["problem", "answer"],
    "AMC": ["problem", "choices", "answer"],
    "APPS": ["question", "input_output"],
    "GSM8K": ["question", "answer"],
    "HumanEval": ["task_id", "prompt", "entry_point", "canonical_solution", "test"],
    "IFEval": ["prompt", "instruction_id_list", "kwargs"],
    "LiveCodeBench": ["question_content", "public_test_cases"],
    "MATH": ["problem", "solution"],
    "MBPP": ["task_id", "text", "code", "test_list"],
    "MultipleChoice": ["question", "choices", "answer"],
    "SVAMP": ["Body", "Question", "Answer"],
    "ShortAnswer": ["question", "answers"],
}
USED = {
    "AIME": ["id", "steps"],
    "AMC": ["id", "steps"],
    "APPS": ["problem_id", "starter_code", "difficulty", "solutions"],
    "IFEval": ["key", "solution"],
    "LiveCodeBench": ["question_id", "starter_code", "metadata", "difficulty", "solution"],
    "MATH": ["level", "type"],
    "MBPP": ["test_setup_code"],
    "SVAMP": ["ID", "Equation", "Type"],
    "ShortAnswer": ["id", "context"],
}
MISSING = object()
WRONG = [float("nan"), True, [None], [3], {"x": 1}, "a\ud800b", ["\ud800", "b"], [[[]]]]
PLACES = [(name, field) for name in LIBRARY for field in REQUIRED[name] + USED.get(name, [])]


def sample(name):
    path = sample_of(type(make(f"assay/{name}-v1", data="sample")))
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def with_row(tmp_path, name, row, *, ends="\n"):
    rows = sample(name)
    path = tmp_path / "rows.jsonl"
    lines = [json.dumps(each) for each in (*rows[:2], row, *rows[3:])]
    path.write_bytes(b"\xef\xbb\xbf" + ends.join(lines).encode())
    return make(f"assay/{name}-v1", data=path)


@pytest.mark.parametrize("name", LIBRARY)
def test_what_every_row_needs_is_there_and_says_something(tmp_path, name) -> None:
    for field in REQUIRED[name]:
        whole = sample(name)[2]
        for value in (MISSING, None, "", " \n", []):
            if field in ("task_id", "Body", "test") and value in ("", " \n"):
                continue  # the first two may be, an empty test is found as "tests"
            if field in ("code", "canonical_solution", "test_list", "public_test_cases"):
                continue
            if (name, field, value) == ("ShortAnswer", "answers", []):  # there is no answer
                continue
            row = {**whole, field: value}
            if value is MISSING:
                del row[field]
            with pytest.raises(DataError, match=r"rows\.jsonl, line 3\b") as refused:
                with_row(tmp_path, name, row)
            if (name, field, value) != ("MultipleChoice", "choices", MISSING):
                assert f"'{field}'" in str(refused.value)


@pytest.mark.parametrize(("name", "field"), PLACES)
def test_a_value_of_another_type_is_refused_by_line_and_field(tmp_path, name, field) -> None:
    """All but a text where one is wanted, a list where one is, and a number of any kind."""
    whole = sample(name)[2]
    for value in WRONG:
        row = {**copy.deepcopy(whole), field: value}
        try:
            env = with_row(tmp_path, name, row)
        except DataError as error:
            told = str(error)
        else:
            told = f"rows.jsonl, line 3: {field}"
            task = env.task(2)
            json.dumps(task.to_json(), ensure_ascii=False, allow_nan=False).encode()
            assert isinstance(value, list | dict)
            env.close()
        assert "rows.jsonl, line 3" in told
        assert field in told


# -- the file itself -------------------------------------------------------------------------------


def test_two_rows_with_one_id_are_both_named(tmp_path) -> None:
    row = {**sample("AIME")[2], "id": "sample-1"}
    words = r"line 3: the id 'AIME/sample-1' must be .* that of .*rows\.jsonl, line 2"
    with pytest.raises(DataError, match=words):
        with_row(tmp_path, "AIME", row)


def test_an_id_of_zero_is_an_id(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    rows = [{"problem": "?", "answer": 1, "id": place} for place in (1, 0)]
    path.write_text("\n".join(map(json.dumps, rows)))
    assert [t.id for t in make("assay/AIME-v1", data=path).source.tasks] == ["AIME/1", "AIME/0"]


def test_references_that_cannot_be_used_are_told_by_line_too(tmp_path) -> None:
    row = {"question": "?", "answers": ["!"]}
    with pytest.raises(DataError, match=r"rows\.jsonl, line 3 \(.*'!'"):
        with_row(tmp_path, "ShortAnswer", row)


def test_blank_lines_count_as_lines(tmp_path) -> None:
    with pytest.raises(DataError, match="line 5: 'question' must be a str, got 3"):
        with_row(tmp_path, "GSM8K", {"question": 3, "answer": "#### 1"}, ends="\n\n")


def test_tables_of_other_programs_are_refused_with_a_remedy(tmp_path) -> None:
    path = tmp_path / "rows.xlsx"
    path.write_bytes(b"PK")
    with pytest.raises(DataError, match=r"a \.xlsx is not read\. Give one of \.jsonl.*to_json"):
        make("assay/GSM8K-v1", data=path)


def test_a_parquet_file_is_named_by_row(tmp_path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    rows = [{"question": f"{text}?", "answers": {"text": [text]}} for text in ("a", "b", None)]
    parquet.write_table(pa.Table.from_pylist(rows), tmp_path / "rows.parquet")
    with pytest.raises(DataError, match=r"rows\.parquet, row 2: 'answers' must be a list of texts"):
        make("assay/ShortAnswer-v1", data=tmp_path / "rows.parquet")


def test_the_file_of_a_folder_is_named(tmp_path) -> None:
    for name, answer in (("test-0.jsonl", "#### 1"), ("test-1.jsonl", "none")):
        (tmp_path / name).write_text(json.dumps({"question": "?", "answer": answer}))
    with pytest.raises(DataError, match=r"test-1\.jsonl, line 1: 'answer' must end in"):
        make("assay/GSM8K-v1", data=tmp_path)


def test_a_table_of_ones_own_names_the_line_too(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    register_rows(
        "tests/Lines-v0",
        {"train": path},
        prompt="{q}",
        reference="a",
        rubric=MultipleChoice(),
        task_id="q",
    )
    for third, words in (('{"q": "2"}', "no column 'a'"), ('{"q": "1", "a": "A"}', "the id '1'")):
        path.write_text('{"q": "1", "a": "A"}\n\n' + third)
        with pytest.raises(DataError, match=rf"rows\.jsonl, line 3: {words}"):
            make("tests/Lines-v0")


# -- what the rows brought to light ----------------------------------------------------------------


@pytest.mark.parametrize(
    ("options", "reply", "score"),
    [
        (["-1", "2"], "The answer is A) -1", 1.0),
        (["-1", "2"], "A: -1", 1.0),
        (["$-1$", "2"], r"(A) \(-1\)", 1.0),
        (["Bern", "Rome"], "(A) - Bern", 1.0),
        (["1", "-1"], "(A) -1", 0.0),
        (["-1", "1"], "(A) 1", 0.0),
    ],
)
def test_the_minus_of_an_option_is_its_own(options, reply, score) -> None:
    assert MultipleChoice().verify(reply, {"answer": "A", "options": options}).score == score


# -- leaving bad rows out --------------------------------------------------------------------------


def write(path, rows):
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


PROBLEMS = [
    {"problem": "One half?", "solution": r"\boxed{\frac12}", "level": "Level 1"},
    {"problem": "Nothing boxed", "solution": "It is 3.", "level": "Level 1"},
    {"problem": "No solution at all"},
    {"problem": 7, "solution": r"\boxed{7}"},
    {"problem": "Empty reference", "solution": r"\boxed{}"},
    {"problem": "Seven?", "solution": r"\boxed{7}", "unique_id": "seven"},
    {"problem": "Eight?", "solution": r"\boxed{8}", "unique_id": "seven"},
    {"problem": "Nine?", "solution": r"\boxed{9}"},
]


def test_every_bad_row_is_listed_with_its_place_and_reason(tmp_path) -> None:
    path = write(tmp_path / "rows.jsonl", PROBLEMS)
    with pytest.raises(DataError) as refused:
        make("assay/MATH-v1", data=path)
    message = str(refused.value)
    assert message.startswith(f"5 of 8 rows of {path} cannot be used; on_bad_rows='skip'")
    for line, words in ((2, "boxed"), (3, "boxed"), (4, "'problem'"), (5, "test-4"), (7, "line 6")):
        assert any(f"line {line}" in row and words in row for row in message.splitlines()), line


def test_bad_rows_are_left_out_where_asked_and_never_silently(tmp_path) -> None:
    path = write(tmp_path / "rows.jsonl", PROBLEMS)
    with pytest.warns(BadRowsWarning, match=r"5 of 8 rows[\s\S]*line 7: the id 'seven'"):
        env = make("assay/MATH-v1", data=path, on_bad_rows="skip")
    assert [task.id for task in env.source.tasks] == ["test-0", "seven", "test-7"]
    assert [row.index for row in env.bad_rows] == [1, 2, 3, 4, 6]
    assert env.bad_rows[2].place == f"{path}, line 4"
    assert "7" in env.bad_rows[2].value
    assert "must be a str, got 7" in env.bad_rows[2].reason
    assert make("assay/MATH-v1", data="sample").bad_rows == ()


def test_a_long_list_of_bad_rows_is_cut(tmp_path) -> None:
    path = write(tmp_path / "rows.jsonl", [PROBLEMS[0]] + [{"problem": "?"}] * 15)
    with pytest.warns(BadRowsWarning, match="and 5 more"):
        env = make("assay/MATH-v1", data=path, on_bad_rows="skip")
    assert len(env.bad_rows) == 15


def test_a_line_that_is_not_json_is_a_bad_row(tmp_path) -> None:
    good = json.dumps(PROBLEMS[0]).encode()
    bad = [b'{"problem": "cut', b"", b'{"problem": "\xff"}', b"[" * 10**5, b"9" * 5000]
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"\n".join([good, *bad, good]))
    with pytest.raises(DataError, match=r"4 of 6 rows[\s\S]*line 2: not JSON"):
        make("assay/MATH-v1", data=path)
    with pytest.warns(BadRowsWarning, match=r"4 of 6 rows"):
        env = make("assay/MATH-v1", data=path, on_bad_rows="skip")
    assert [row.place.rpartition(" ")[2] for row in env.bad_rows] == ["2", "4", "5", "6"]
    assert "cut" in env.bad_rows[0].value
    assert env.source.size == 2


@pytest.mark.parametrize("rows", [[{"problem": "?"}] * 3, [{"question": "?"}]])
def test_data_without_a_good_row_is_refused_all_the_same(tmp_path, rows) -> None:
    path = write(tmp_path / "rows.jsonl", rows)
    with pytest.raises(DataError, match=r"line 1") as refused:
        make("assay/MATH-v1", data=path, on_bad_rows="skip")
    assert "on_bad_rows" not in str(refused.value)


def test_rows_that_were_asked_for_and_are_all_bad_are_refused(tmp_path) -> None:
    rows = [{"problem": "?", "level": 5}, {"problem": "?", "answer": "1", "level": 1}]
    path = write(tmp_path / "rows.jsonl", rows)
    with pytest.warns(BadRowsWarning), pytest.raises(DataError, match="that were asked for"):
        make("assay/MATH-v1", data=path, level=5, on_bad_rows="skip")


@pytest.mark.parametrize("policy", ["ignore", "", None])
def test_another_policy_is_refused(tmp_path, policy) -> None:
    with pytest.raises(ValueError, match="on_bad_rows"):
        make("assay/MATH-v1", data="sample", on_bad_rows=policy)


@pytest.mark.parametrize("name", LIBRARY)
def test_every_environment_of_rows_leaves_bad_rows_out(tmp_path, name) -> None:
    rows = sample(name)
    path = write(tmp_path / "rows.jsonl", [{**rows[0], "odd": 1}, {"other": "fields"}, rows[1]])
    with pytest.warns(BadRowsWarning, match="1 of 3 rows"):
        env = make(f"assay/{name}-v1", data=path, on_bad_rows="skip")
    assert len(env.source.tasks) == 2
    assert [row.index for row in env.bad_rows] == [1]
    env.close()


def test_rows_of_ones_own_are_left_out_too(tmp_path) -> None:
    good = [{"question": f"{n} + 1?", "sum": str(n + 1)} for n in range(40)]
    rows = [{"question": "no sum"}, *good, {"question": "9?", "sum": "nine letters?"}, "text"]
    register_rows(
        "test/LeftOut-v0", rows, prompt="{question}", reference="sum", rubric=Math(), test_share=0.1
    )
    with pytest.raises(DataError, match="on_bad_rows='skip'"):
        make("test/LeftOut-v0")
    with pytest.warns(BadRowsWarning, match="row 0: no column 'sum'"):
        env = make("test/LeftOut-v0", on_bad_rows="skip")
    assert {row.index for row in env.bad_rows} >= {0, 42}
    assert len(env.source.tasks) > 20
    from_file = write(tmp_path / "mine.jsonl", rows)
    with pytest.warns(BadRowsWarning, match="line 43: expected a JSON object"):
        make("test/LeftOut-v0", data=from_file, on_bad_rows="skip")


# -- solutions ---------------------------------------------------------------------------------

PROGRAMS = {
    "HumanEval": lambda row: row["canonical_solution"],
    "MBPP": lambda row: row["code"],
    "APPS": lambda row: json.loads(row["solutions"])[0],
    "LiveCodeBench": lambda row: row["solution"],
}


def unsolved(name, row):
    """A row of a kind whose tests no program can pass, or whose solution is none."""
    if name == "HumanEval":
        return row | {"test": row["test"] + "\n    assert False\n", "task_id": "T/impossible"}
    if name == "MBPP":
        return row | {"test_list": [*row["test_list"], "assert 1 == 2"], "task_id": 9999}
    if name == "APPS":
        return row | {"solutions": json.dumps(["print('no')"]), "problem_id": 9999}
    return row | {"solution": "print('no')", "question_id": "9999"}


@pytest.mark.bwrap
@pytest.mark.filterwarnings("ignore::UserWarning", "ignore:programs run under:RuntimeWarning")
@pytest.mark.parametrize(
    "name", [n if n == "MBPP" else pytest.param(n, marks=pytest.mark.slow) for n in PROGRAMS]
)
def test_rows_whose_own_solution_fails_are_found_where_that_is_asked_for(tmp_path, name) -> None:
    rows = [row for row in sample(name) if PROGRAMS[name](row)][:2]
    path = write(tmp_path / "rows.jsonl", [rows[0], unsolved(name, rows[1]), rows[1]])
    make(f"assay/{name}-v1", data=path).close()  # nothing runs
    with pytest.raises(DataError, match=r"line 2 \(.*its own solution fails"):
        make(f"assay/{name}-v1", data=path, check_solutions=True)
    with pytest.warns(BadRowsWarning, match=r"1 of 3 rows[\s\S]*its own solution fails"):
        env = make(f"assay/{name}-v1", data=path, on_bad_rows="skip", check_solutions=True)
    assert [row.index for row in env.bad_rows] == [1]
    env.close()


def test_solutions_of_ones_own_rows_are_checked_too() -> None:
    rows = [{"q": f"{n} + 1?", "sum": str(n + 1), "said": f"It is {n + 1}."} for n in range(40)]
    rows[3]["said"] = "It is 5."
    for name, solution in (("Solved", "{said}"), ("Unsolved", "")):
        register_rows(
            f"test/{name}-v0",
            {"train": rows},
            prompt="{q}",
            reference="sum",
            rubric=Math(),
            solution=solution,
        )
    with pytest.raises(DataError, match=r"row 3 .*its own solution fails"):
        make("test/Solved-v0", check_solutions=True)
    with pytest.raises(DataError, match="no row has a solution"):
        make("test/Unsolved-v0", check_solutions=True)


def test_a_sandbox_that_is_gone_makes_no_row_bad(monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "docker")
    monkeypatch.setenv("DOCKER_HOST", "tcp://127.0.0.1:9")
    with pytest.raises(DataError, match="cannot be judged"):
        make("assay/MBPP-v1", data="sample", on_bad_rows="skip", check_solutions=True)


def test_rows_that_contradict_each_other_are_warned_of() -> None:
    rows = [("2+2?", "4"), ("1/2?", "0.5"), ("1/2?", r"\frac{1}{2}"), ("2+2?", "5")]
    table = {"train": [{"q": question, "a": answer} for question, answer in rows]}
    register_rows("rows/Contradict-v0", table, prompt="{q}", reference="a", rubric=Math())
    with pytest.warns(BadRowsWarning, match=r"1 rows ask .*: row-0 and row-3\. Remove"):
        assert make("rows/Contradict-v0").source.size == 4
