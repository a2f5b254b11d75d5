"""`assay eval`, `assay rescore` and `assay diff` of runs."""

import json

import pytest

from assay.evaluation import read_groups

SUMS = ["assay/Arithmetic-v1", "--set", "operators=+"]


def summary(path):
    return json.loads((path / "summary.json").read_text())


def test_a_function_is_evaluated_on_the_test_split(run, tmp_path) -> None:
    code, shown, _ = run("eval", *SUMS, "-p", "mine_for_eval:sums", "-n", 2, "--limit", 5)
    assert code == 0, shown
    made = tmp_path / "runs" / "eval-Arithmetic-v1"
    assert summary(made)["pass_at"]["2"]["value"] == 1.0
    plan = json.loads((made / "run.json").read_text())
    assert plan["environment"]["kwargs"] == {"operators": "+", "split": "test"}
    assert plan["policy"].items() >= {"kind": "function", "name": "mine_for_eval:sums"}.items()
    assert plan["data"]["tasks"] == 5
    assert {"python", "assay"} <= set(plan["versions"])
    groups = list(read_groups(made))
    assert [len(g.episodes) for g in groups] == [2] * 5
    assert all(e.verdict.seconds == 0 for g in groups for e in g.episodes)


def test_replies_do_not_depend_on_how_tasks_are_batched(run, tmp_path) -> None:
    for name, batch in (("one", 1), ("all", 50)):
        args = ["-p", "mine_for_eval:careless", "-n", 4, "--limit", 9, "--batch", batch]
        assert run("eval", *SUMS, *args, "--out", name)[0] == 0
    one, every = (tmp_path / n / "groups.jsonl" for n in ("one", "all"))
    assert one.read_bytes() == every.read_bytes()
    texts = {e.completion for g in read_groups(tmp_path / "one") for e in g.episodes}
    assert len(texts) > 5


def test_a_run_that_is_done_or_another_is_not_gone_on_with(run, tmp_path) -> None:
    def few(*more):
        return run("eval", *SUMS, "-p", "mine_for_eval:careless", "-o", "few", *more)

    assert few("--limit", 3)[0] == 0
    names = ("run.json", "groups.jsonl", "summary.json")
    before = [(tmp_path / "few" / name).read_bytes() for name in names]
    for more, words in (
        (["--limit", 3], "give another --out, or --resume to complete it"),
        (["--limit", 4, "--resume"], "data.tasks: 3 against 4"),
        (["--limit", 3, "--seed", 1, "--resume"], "seed: 0 against 1"),
        (["--limit", 3, "--set", "digits=3", "--resume"], "environment.kwargs"),
    ):
        code, _, err = few(*more)
        assert (code, words in err) == (2, True), err
    assert few("--limit", 3, "--resume")[0] == 0
    assert [(tmp_path / "few" / name).read_bytes() for name in names] == before


def test_a_class_answers_batches_and_several_turns_are_played(run, tmp_path) -> None:
    code, _, err = run("eval", *SUMS, "-p", "mine_for_eval:Batched", "--limit", 3, "-o", "cut")
    assert code == 0, err
    assert summary(tmp_path / "cut")["truncated"] == 1.0
    twice = ["eval", "mine_for_eval:mine/Twice-v0", "-p"]
    assert run(*twice, "mine_for_eval:patient", "-n", 2, "-o", "t")[0] == 0
    assert [len(e.turns) for g in read_groups(tmp_path / "t") for e in g.episodes] == [3] * 4
    assert summary(tmp_path / "t")["statuses"] == {"correct": 4}
    code, shown, err = run("rescore", "t")  # the stored turns are taken again
    assert code == 0, err
    assert "the same in both: 0 verdicts differ" in shown


def test_saved_completions_are_evaluated_rescored_and_compared(run, tmp_path) -> None:
    rows = [
        {"task": k, "completion": r} for k in range(3) for r in ("\\boxed{50%}", "\\boxed{0}", "?")
    ]
    (tmp_path / "saved.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    data = [{"question": f"Half? {k}", "answer": "#### 0.5"} for k in range(3)]
    (tmp_path / "data.jsonl").write_text("".join(json.dumps(r) + "\n" for r in data))
    args = ["eval", "assay/GSM8K-v1", "-p", "saved.jsonl", "--data", "data.jsonl", "-o", "first"]
    code, shown, err = run(*args)
    assert code == 0, err
    found = summary(tmp_path / "first")
    assert (found["tasks"], found["replies"]) == (3, 9)
    before = found["statuses"]
    rubric = json.dumps({"name": "Exact"})
    code, shown, err = run("rescore", "first", "--rubric", rubric, "-o", "second")
    assert code == 0, err
    assert json.loads((tmp_path / "second" / "run.json").read_text())["rescored_from"] == "first"
    first, second = (list(read_groups(tmp_path / n)) for n in ("first", "second"))
    assert [[e.turns for e in g.episodes] for g in first] == [
        [e.turns for e in g.episodes] for g in second
    ]
    assert summary(tmp_path / "second")["statuses"] != before
    code, shown, _ = run("diff", "first", "second", "--out", "diff.json")
    assert code == 1
    assert "differs: verifier.sha256" in shown
    differs = json.loads((tmp_path / "diff.json").read_text())
    assert differs["same_replies"]
    assert (differs["tasks"], differs["replies"]) == (3, 9)
    assert run("rescore", "first", "-o", "third")[0] == 0
    code, shown, _ = run("diff", "first", "third")
    assert code == 0
    assert "0 verdicts differ" in shown


@pytest.mark.parametrize(
    ("policy", "words"),
    [
        ("nothing", "there is no 'nothing'"),
        ("mine_for_eval:none", "has no 'none'"),
        ("mine_for_eval:later", "is async"),
        ("http://127.0.0.1:9/v1", "needs --model"),
        ("http://key@127.0.0.1:9/v1", "needs --model"),
    ],
)
def test_what_is_no_policy_is_refused(run, policy, words) -> None:
    code, _, err = run("eval", *SUMS, "-p", policy, "--limit", 1)
    assert code == 2
    assert words in err


def test_a_server_is_asked_with_seeds_and_its_tokens_are_paid_for(run, tmp_path, serving) -> None:
    pytest.importorskip("openai")
    asked = []

    def answer(_, body):
        """Answer sums; refuse a prompt that begins with 1 as too long."""
        asked.append(body)
        prompt = body["messages"][-1]["content"]
        if prompt.startswith("1"):
            return 400, {"error": {"message": "this prompt is too long"}}
        a, b = prompt.removesuffix("=").split("+")
        message = {"role": "assistant", "content": f"\\boxed{{{int(a) + int(b)}}}"}
        return 200, {"choices": [{"message": message, "finish_reason": "stop", "index": 0}],
                     "usage": {"prompt_tokens": 10, "completion_tokens": 5}}  # fmt: skip

    with serving(answer) as url:
        code, shown, err = run(
            "eval", *SUMS, "-p", f"{url}/v1", "--model", "m", "-n", 2, "--limit", 12, "-o", "s",
            "--max-tokens", 9, "--price-in", 1e6, "--price-out", 2e6, "--field", "top_k=5",
        )  # fmt: skip
    groups = list(read_groups(tmp_path / "s"))
    refused = [g for g in groups if g.task.text.startswith("1")]
    assert refused
    assert code == 1
    assert "have no score" in err
    for group in groups:
        wanted = "verifier_error" if group in refused else "correct"
        assert [e.status.value for e in group.episodes] == [wanted] * 2
    assert "too long" in refused[0].episodes[0].verdict.reason
    answered = 2 * (12 - len(refused))
    assert f"{answered * (10 + 2 * 5):,.4f}" in shown
    assert len({body["seed"] for body in asked}) == 24
    assert all(b["max_tokens"] == 9 and b["top_k"] == 5 for b in asked)
    plan = json.loads((tmp_path / "s" / "run.json").read_text())
    assert plan["policy"]["sampling"] == {"max_tokens": 9}
    # a server that is gone stops the run, and scores nothing
    gone = ["-p", f"{url}/v1", "--model", "m", "--limit", 2, "-o", "g", "--retries", 0]
    code, _, err = run("eval", *SUMS, *gone)
    assert code == 2
    assert "no answer from" in err
    assert "--resume goes on" in err
    assert list(read_groups(tmp_path / "g")) == []


def test_a_models_directory_is_evaluated_and_resumed_alike(run, tmp_path, pocket) -> None:
    model, tokenizer = pocket("0123456789+= ")
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    args = ["-p", "model", "--limit", 6, "-n", 2, "--batch", 2, "--max-tokens", 4]
    code, _, err = run("eval", *SUMS, *args, "-o", "whole")
    assert code == 0, err
    (tmp_path / "part").mkdir()
    for name in ("run.json", "groups.jsonl", "costs.jsonl"):
        lines = (tmp_path / "whole" / name).read_bytes().splitlines(keepends=True)
        kept = lines if name == "run.json" else lines[:3]
        (tmp_path / "part" / name).write_bytes(b"".join(kept))
    assert run("eval", *SUMS, *args, "-o", "part", "--resume")[0] == 0
    for name in ("run.json", "groups.jsonl", "summary.json"):
        assert (tmp_path / "part" / name).read_bytes() == (tmp_path / "whole" / name).read_bytes()
    costs = (tmp_path / "whole" / "costs.jsonl").read_text().splitlines()
    assert all(1 <= t <= 4 for line in costs for t in json.loads(line)["reply_tokens"])
