"""Stored completions: found, judged in order, resumed, written whole."""

import json

import pytest

from assay.envs import (
    DataError,
    Rows,
    Scored,
    Task,
    TextEnv,
    read_completions,
    read_scored,
    refuse_unwritable,
    score,
    write_scored,
)
from assay.verifiers import Exact, Status, Verdict, Verifier


class Flaky(Verifier):
    """Right where equal; a fault of ours for as long as ``down``."""

    down = False
    calls = 0

    def judge(self, reply, reference):
        self.calls += 1
        if self.down:
            return Verdict.fault(Status.SANDBOX_ERROR, "daemon gone")
        return Verdict.correct() if reply == reference else Verdict.wrong("no")


@pytest.fixture
def env():
    return TextEnv(Rows([Task(f"q{i}", str(i), id=f"t/{i}") for i in range(4)]), Flaky())


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def test_completions_are_read_by_the_suffix_of_the_file(tmp_path, env) -> None:
    rows = [{"task": "t/2", "completion": "2"}, {"task": 3, "completion": "x"}]
    (tmp_path / "c.csv").write_text("task,completion\nt/2,2\n3,x\n")
    (tmp_path / "c.json").write_text(json.dumps(rows))
    write(tmp_path / "c.jsonl", rows)
    for name in ("c.csv", "c.json", "c.jsonl"):
        found = score(env, read_completions(tmp_path / name, env.source))
        assert [(s.task, s.verdict.score) for s in found] == [("t/2", 1.0), ("t/3", 0.0)]


def test_a_number_is_no_row_where_tasks_are_named_by_numbers(tmp_path) -> None:
    source = Rows([Task("q", "0", id="70"), Task("r", "1", id="71")])
    (tmp_path / "c.csv").write_text("task,completion\n0,0\n")
    with pytest.raises(DataError, match="no task has the id '0'"):
        read_completions(tmp_path / "c.csv", source)


@pytest.mark.parametrize(
    ("ids", "key", "found"),
    [
        (["intro", "2", "3"], "2", "2"),  # digits that are an id are no place
        (["intro", "2", "3"], "0", "intro"),
        (["intro", "2", "3"], 2, "3"),
        (["1", "2", "0"], 1, "1"),  # as the same row of a CSV file
        (["1", "2", "0"], "1", "1"),
    ],
)
def test_digits_name_an_id_before_a_place(tmp_path, ids, key, found) -> None:
    source = Rows([Task(f"q{name}", name, id=name) for name in ids])
    path = write(tmp_path / "c.jsonl", [{"task": key, "completion": ""}])
    assert read_completions(path, source)[0].task.id == found


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"task": 9, "completion": ""}, "line 2: task must be from 0 to 3, got 9"),
        ({"task": "t/22", "completion": ""}, "line 2: no task has the id 't/22'. Did you mean t/2"),
        ({"task": 1.5, "completion": ""}, "line 2: task must be a task id or a row number"),
        ({"task": True, "completion": ""}, "line 2: task must be a task id or a row number"),
        ({"task": 0}, "line 2: a row needs the fields 'task' and 'completion'"),
        ({"task": 0, "completion": None}, "line 2: completion must be text, .* got NoneType"),
        ({"task": 0, "completion": [{"role": "user", "content": "0"}]}, "line 2: completion must"),
        ([], "line 2: a row needs"),
    ],
)
def test_each_bad_row_names_its_line(tmp_path, env, row, words) -> None:
    path = write(tmp_path / "c.jsonl", [{"task": 0, "completion": "0"}, row])
    with pytest.raises(DataError, match=words):
        read_completions(path, env.source)


def test_a_completion_may_be_a_chat(tmp_path, env) -> None:
    said = {"role": "assistant", "content": "4"}
    parts = {"role": "assistant", "content": [{"type": "text", "text": "4"}]}
    rows = [[{"role": "user", "content": "5"}, said], said, [parts]]
    path = write(tmp_path / "c.jsonl", [{"task": 0, "completion": row} for row in rows])
    assert [row.text for row in read_completions(path, env.source)] == ["4"] * 3


def test_missing_and_empty_files_are_named(tmp_path, env) -> None:
    with pytest.raises(DataError, match="no such file"):
        read_completions(tmp_path / "none.jsonl", env.source)
    with pytest.raises(DataError, match="holds no rows"):
        read_completions(write(tmp_path / "c.jsonl", []), env.source)


def test_a_resumed_run_judges_only_what_has_no_score(tmp_path, env) -> None:
    path = write(tmp_path / "c.jsonl", [{"task": i, "completion": str(i)} for i in range(4)])
    rows = read_completions(path, env.source)
    first = score(env, rows[:2])
    env.rubric.down = True
    broken = first + score(env, rows[2:])
    assert [s.verdict.score for s in broken] == [1.0, 1.0, None, None]
    write_scored(tmp_path / "v.jsonl", broken)
    env.rubric.down, env.rubric.calls = False, 0
    resumed = score(env, rows, known=read_scored(tmp_path / "v.jsonl"))
    assert env.rubric.calls == 2
    assert [s.verdict.score for s in resumed] == [1.0] * 4


def test_a_changed_completion_is_judged_again(tmp_path, env) -> None:
    rows = [{"task": i, "completion": str(i)} for i in range(2)]
    old = score(env, read_completions(write(tmp_path / "a", rows), env.source))
    rows[0]["completion"] = "no"
    changed = read_completions(write(tmp_path / "b", rows), env.source)
    assert [s.verdict.score for s in score(env, changed, known=old)] == [0.0, 1.0]


def test_a_verdict_moves_with_its_completion(tmp_path, env) -> None:
    rows = [{"task": i, "completion": str(i)} for i in range(3)]
    old = score(env, read_completions(write(tmp_path / "a", rows), env.source))
    env.rubric.calls = 0
    moved = read_completions(write(tmp_path / "b", [rows[2], rows[0], rows[0]]), env.source)
    found = score(env, moved, known=old)
    assert env.rubric.calls == 0
    assert [(s.row, s.task, s.verdict.score) for s in found] == [
        (0, "t/2", 1.0), (1, "t/0", 1.0), (2, "t/0", 1.0),
    ]  # fmt: skip


def test_verdicts_on_another_task_or_by_another_rubric_do_not_stand(tmp_path, env) -> None:
    path = write(tmp_path / "c", [{"task": i, "completion": "0"} for i in range(2)])
    old = score(env, read_completions(path, env.source))
    assert [s.verdict.score for s in old] == [1.0, 0.0]
    corrected = TextEnv(Rows([env.task(0), Task("q1", "0", id="t/1")]), Flaky())
    rows = read_completions(path, corrected.source)
    assert [s.verdict.score for s in score(corrected, rows, known=old)] == [1.0, 1.0]
    exact = TextEnv(env.source, Exact())
    with pytest.raises(ValueError, match="another rubric"):
        score(exact, read_completions(path, exact.source), known=old)


@pytest.mark.parametrize(
    ("name", "words"),
    [("", "is a folder"), ("file/out", "takes no new file"), ("v.jsonl.gz", "without .gz")],
)
def test_a_path_that_cannot_be_written_is_refused_before_the_work(tmp_path, name, words) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(DataError, match=words):
        refuse_unwritable(tmp_path / name)
    refuse_unwritable(tmp_path / "new" / "deep" / "out.jsonl")
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


def test_results_do_not_depend_on_the_batch(tmp_path, env) -> None:
    rows = [{"task": i % 4, "completion": str(i % 3)} for i in range(23)]
    read = read_completions(write(tmp_path / "c", rows), env.source)
    assert score(env, read, batch=1) == score(env, read, batch=5) == score(env, read)


def test_verdicts_survive_the_file(tmp_path) -> None:
    rows = [
        Scored(0, "t", "d", Verdict(Status.INCORRECT, 0.25, "half é", "x", {"a": None})),
        Scored(1, "t", "d", Verdict.fault(Status.BAD_GOLD, "none")),
    ]
    write_scored(tmp_path / "deep" / "v.jsonl", rows)
    assert read_scored(tmp_path / "deep" / "v.jsonl") == rows
    assert [p.name for p in (tmp_path / "deep").iterdir()] == ["v.jsonl"]


def test_a_file_of_something_else_is_not_resumed_from(tmp_path) -> None:
    with pytest.raises(DataError, match="line 1: not a verdict that score wrote"):
        read_scored(write(tmp_path / "v", [{"hello": 1}]))
