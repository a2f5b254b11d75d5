"""What `assay eval` will not overlook: settings without a meaning, tasks without replies."""

import json

import pytest

from assay.console import say
from assay.evaluation import named_policy

SUMS = ["assay/Arithmetic-v1", "--set", "operators=+"]


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (["-n", 0], "-n must be at least 1"),
        (["--limit", 0], "--limit must be at least 1"),
        (["--batch", -1], "--batch"),
        (["--batch", 0], "--batch"),
        (["--concurrency", 0], "--concurrency"),
        (["--temperature", 0.5], "--temperature has no meaning for a Python policy"),
        (["--field", "top_k=5"], "--field has no meaning for a Python policy"),
        (["--by", "nothing"], "--by: no task has the metadata 'nothing'"),
    ],
)
def test_settings_without_a_meaning_are_refused(run, tmp_path, given, words) -> None:
    code, _, err = run("eval", *SUMS, "-p", "mine_for_eval:sums", "-o", "r", *given)
    assert (code, words in err) == (2, True), err
    assert not (tmp_path / "r").exists()


def saved(path, rows):
    path.write_text("".join(json.dumps({"task": t, "completion": r}) + "\n" for t, r in rows))


@pytest.fixture
def data(tmp_path):
    rows = [{"question": f"{k}+1?", "answer": f"#### {k + 1}"} for k in range(4)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    return ["eval", "assay/GSM8K-v1", "--data", "data.jsonl", "-p", "saved.jsonl", "-o", "r"]


def test_tasks_without_completions_are_reported(run, tmp_path, data) -> None:
    saved(tmp_path / "saved.jsonl", [(0, "1"), (0, "1"), (2, "3")])
    code, _, err = run(*data, "-n", 2)
    assert code == 0, err
    assert "2 of 4 tasks have no completion in saved.jsonl" in err
    assert "1 of 2 tasks have fewer than 2 completions" in err
    found = json.loads((tmp_path / "r" / "summary.json").read_text())
    assert found["pass_at"]["1"] | {"low": 0, "high": 0} == {
        "value": 1.0, "low": 0, "high": 0, "tasks": 2
    }  # fmt: skip
    assert found["pass_at"]["2"]["tasks"] == 1


def test_a_limit_below_one_takes_no_task_away_from_a_file(run, tmp_path, data) -> None:
    """-1 was a slice that dropped the last task."""
    saved(tmp_path / "saved.jsonl", [(0, "1"), (1, "2")])
    code, _, err = run(*data, "--limit", -1)
    assert (code, "--limit must be at least 1, got -1" in err) == (2, True)


def test_a_named_task_is_found_behind_the_limit(run, tmp_path, data) -> None:
    saved(tmp_path / "saved.jsonl", [(k, "1") for k in range(4)])
    code, _, err = run(*data, "--limit", 1, "--task", 3)
    assert code == 0, err
    assert json.loads((tmp_path / "r" / "run.json").read_text())["data"]["tasks"] == 1


def test_replies_that_are_no_text_or_odd_text(run, tmp_path) -> None:
    for name, words in (
        ("silent", "mine_for_eval:silent must return the reply as text, got None"),
        ("Texts", "a policy gives a Completion for each conversation"),
    ):
        code, _, err = run("eval", *SUMS, "-p", f"mine_for_eval:{name}", "--limit", 2, "-o", name)
        assert (code, words in err) == (2, True), err
    for name in ("t", "u"):
        args = ["-p", "mine_for_eval:torn", "--limit", 2, "-o", name]
        assert run("eval", *SUMS, *args)[0] == 0
    code, shown, _ = run("diff", "t", "u")
    assert (code, "0 verdicts differ" in shown) == (0, True)


def test_what_would_move_the_cursor_is_printed_as_an_escape(capsys) -> None:
    say("a reason \x1b[2J\u202e \ud800 [b] xy\n")
    assert capsys.readouterr().out == "a reason \\x1b[2J\\u202e \\ud800 [b] xy\n\n"


def test_a_bound_method_and_a_partial_answer_one_conversation(run, tmp_path) -> None:
    for name in ("bound", "bent"):
        args = ["-p", f"mine_for_eval:{name}", "--limit", 2, "-o", name]
        assert run("eval", *SUMS, *args)[0] == 0
        found = json.loads((tmp_path / name / "summary.json").read_text())
        assert found["statuses"] == {"correct": 2}


def test_weights_that_differ_in_the_middle_alone_are_another_policy(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(named_policy, "_WHOLE", 1000)
    weights = tmp_path / "model.safetensors"
    found = set()
    for middle in (b"a", b"b"):
        weights.write_bytes(bytes(5_000_000) + middle * 4096 + bytes(5_000_000))
        found.add(named_policy._files(tmp_path))
    assert len(found) == 2


def test_a_diff_of_what_is_no_run_says_what_to_give(run) -> None:
    code, _, err = run("diff", "Math", "Exact")
    assert (code, "two verifiers and a FILE of completions" in err) == (2, True)
