"""`assay rescore`: corrected references, several turns, and replies that never were."""

import json
from dataclasses import replace

import pytest

from assay.envs import Completion, Episode, EpisodeGroup, Rows, State, Task, TextEnv, Turn
from assay.evaluation import read_groups, rescored
from assay.evaluation.evaluate import POLICY_FAILED
from assay.verifiers import Exact, Status, Verdict


def data(path, answers):
    rows = [{"question": f"{k}+1?", "answer": f"#### {a}"} for k, a in enumerate(answers)]
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))


@pytest.fixture
def judged(run, tmp_path):
    """A run of three tasks, of which the data had the last reference wrong."""
    data(tmp_path / "data.jsonl", [1, 2, 9])
    rows = [{"task": k, "completion": str(k + 1)} for k in range(3)]
    (tmp_path / "saved.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    args = ["-p", "saved.jsonl", "--data", "data.jsonl", "-o", "first"]
    code, _, err = run("eval", "assay/GSM8K-v1", *args)
    assert code == 0, err
    return run


def statuses(path):
    return [e.status.value for g in read_groups(path) for e in g.episodes]


def test_corrected_references_are_reported_and_used(judged, tmp_path) -> None:
    data(tmp_path / "data.jsonl", [1, 2, 3])
    code, _, err = judged("rescore", "first", "-o", "same")
    assert code == 0
    assert "1 tasks have another reference in the data now, such as " in err
    assert "--references takes the new ones" in err
    assert statuses(tmp_path / "same") == ["correct", "correct", "incorrect"]
    code, shown, err = judged("rescore", "first", "-o", "new", "--references")
    assert (code, "another reference" in err) == (0, False)
    assert "1 are right only now" in shown
    assert statuses(tmp_path / "new") == ["correct"] * 3
    hashes = [
        json.loads((tmp_path / name / "run.json").read_text())["data"]["sha256"]
        for name in ("first", "same", "new")
    ]
    assert hashes[0] == hashes[1] != hashes[2]


def test_references_of_other_data_and_of_reworded_tasks(judged, tmp_path) -> None:
    data(tmp_path / "other.jsonl", [1, 2, 3])
    more = ["-o", "new", "--references", "--set", "data=other.jsonl"]
    assert judged("rescore", "first", *more)[0] == 0
    assert statuses(tmp_path / "new") == ["correct"] * 3
    text = (tmp_path / "other.jsonl").read_text().replace("2+1?", "2 + 1 = ?")
    (tmp_path / "other.jsonl").write_text(text)
    more[1] = "not"
    code, _, err = judged("rescore", "first", *more)
    assert (code, "with the prompt that was answered" in err) == (2, True), err
    assert not (tmp_path / "not").exists()


def test_generated_tasks_are_found_by_their_ids(run, tmp_path) -> None:
    args = ["--set", "operators=+", "-p", "mine_for_eval:sums", "--limit", 3, "-o", "sums"]
    assert run("eval", "assay/Arithmetic-v1", *args)[0] == 0
    code, _, err = run("rescore", "sums", "--references")
    assert code == 0, err
    assert statuses(tmp_path / "sums-rescored") == ["correct"] * 3


def test_an_incomplete_run_says_so(judged, tmp_path) -> None:
    lines = (tmp_path / "first" / "groups.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "first" / "groups.jsonl").write_bytes(b"".join(lines[:2]))
    assert "first is not complete: 2 of 3 tasks" in judged("rescore", "first", "-o", "half")[2]


def test_an_environment_of_one_turn_with_a_verdict_of_its_own_gives_it_again(run, tmp_path) -> None:
    """Its rubric, which would find nothing in "yes", was asked in its place."""
    args = ["mine_for_eval:mine/Sworn-v0", "-p", "mine_for_eval:yes", "-o", "sworn"]
    assert run("eval", *args)[0] == 0
    assert statuses(tmp_path / "sworn") == ["correct"] * 2
    assert run("rescore", "sworn")[0] == 0
    assert statuses(tmp_path / "sworn-rescored") == ["correct"] * 2


class Count(TextEnv):
    """Up to three turns; right where each was the number of the turn. What it says can change."""

    says = "and?"

    def begin(self, task):
        return State(task, data=[])

    def respond(self, state, reply):
        state.data.append(reply)
        return Turn.end() if reply == "end" else Turn.say(self.says)

    def answer(self, state):
        return " ".join(state.data)


def counted(env, *replies, cut=False):
    task = env.task(0)
    state = env.begin(task)
    for i, reply in enumerate(replies):
        finish = "length" if cut and i == len(replies) - 1 else "stop"
        env.advance([state], [Completion(reply, finish)])
    (verdict,) = env.verdicts([state])
    return EpisodeGroup(task, [state.episode(replace(verdict, seconds=0.0))])


def again(env, group):
    (new,) = rescored(env, [group])
    (episode,) = new.episodes
    return replace(episode, verdict=replace(episode.verdict, seconds=0.0))


@pytest.mark.parametrize(
    ("replies", "cut", "status"),
    [
        (("1", "end"), False, "correct"),
        (("2", "end"), False, "incorrect"),
        (("1", "2", "3"), False, "incorrect"),  # cut off by the limit of turns
        (("1", "end"), True, "incorrect"),  # cut off in mid-turn: the end was not heard
    ],
)
def test_stored_turns_are_taken_again(replies, cut, status) -> None:
    env = Count(Rows([Task("Count", "1 end")]), Exact(), max_turns=3)
    group = counted(env, *replies, cut=cut)
    assert group.episodes[0].status.value == status
    assert again(env, group) == group.episodes[0]


def test_an_environment_that_says_something_else_now_gives_no_score() -> None:
    env = Count(Rows([Task("Count", "1 end")]), Exact(), max_turns=3)
    group = counted(env, "1", "end")
    env.says = "go on"
    found = again(env, group)
    assert found.reward is None
    assert found.turns == group.episodes[0].turns
    assert "evaluate again" in found.verdict.reason


def test_a_policy_that_failed_in_its_second_turn_is_no_wrong_answer() -> None:
    """Its first turn was judged as if it were the answer."""
    env = TextEnv(Rows([Task("Count", "end")]), Exact())
    fault = Verdict.fault(Status.VERIFIER_ERROR, f"{POLICY_FAILED}too long")
    turns = ({"role": "assistant", "content": "1"}, {"role": "user", "content": "and?"})
    group = EpisodeGroup(env.task(0), [Episode("0", turns, fault, truncated=True)])
    assert again(env, group) == group.episodes[0]
