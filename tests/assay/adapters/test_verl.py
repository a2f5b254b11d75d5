"""verl: the signature that its reward managers call, and the rows that its data set reads."""

import inspect
import json
import math

import numpy as np
import pytest

from assay import Exact, Math, Rubric, Status, Task, TextEnv, Verdict, Verifier, make
from assay.adapters import RewardFault, to_verl, verl_reward
from assay.envs import GroupRubric, Rows, ShortReplies
from assay.verifiers import Instructions

parquet = pytest.importorskip("pyarrow.parquet")


def managed(compute_score, rows, replies):
    """As verl's ``naive`` manager does: keywords, a dict with ``score``, one list for each key."""
    columns = {}
    for row, reply in zip(rows, replies, strict=True):
        found = compute_score(
            data_source=row["data_source"],
            solution_str=reply,
            ground_truth=row["reward_model"]["ground_truth"],
            extra_info={**row["extra_info"], "num_turns": None, "rollout_reward_scores": {}},
        )
        for key, value in found.items():
            columns.setdefault(key, []).append(value)
    return columns


class Flaky(Verifier):
    """Fails so often before it judges."""

    def __init__(self, failures):
        self.failures = failures

    def judge(self, reply, reference):
        if self.failures:
            self.failures -= 1
            return Verdict.fault(Status.SANDBOX_ERROR, "the container is gone")
        return Verdict.correct()


def test_the_signature_is_the_one_that_verl_calls():
    names = list(inspect.signature(verl_reward(Exact())).parameters)
    assert names[:4] == ["data_source", "solution_str", "ground_truth", "extra_info"]


def test_written_rows_are_judged_as_the_environment_judges(tmp_path):
    env = make("assay/Arithmetic-v1")
    assert to_verl(env, tmp_path / "train.parquet", size=20) == 20
    rows = parquet.read_table(tmp_path / "train.parquet").to_pylist()
    assert rows[0]["data_source"] == "assay/Arithmetic-v1"
    tasks = [env.task(row["extra_info"]["index"]) for row in rows]
    assert [row["prompt"] for row in rows] == [[dict(m) for m in t.messages] for t in tasks]
    replies = [t.solution if i % 2 else "I have no idea of it" for i, t in enumerate(tasks)]
    columns = managed(verl_reward(env), rows, replies)
    assert columns["score"] == [float(i % 2) for i in range(20)]
    assert columns["acc"] == columns["score"]
    assert set(columns["status"]) == {"correct", "unparseable"}


def test_every_reply_has_the_same_keys():
    rubric = Rubric({"right": Math(), "short": lambda reply, _: len(reply) < 20}, gate="right")
    score = verl_reward(rubric)
    right, wrong = score("x", r"\boxed{3}", "3"), score("x", r"\boxed{4}", "3")
    assert right.keys() == wrong.keys() == {"score", "acc", "status", "part/right", "part/short"}
    assert (right["score"], wrong["score"]) == (1.0, 0.0)


def test_rows_of_every_source_have_the_same_keys():
    """A column of verl has a value for each row of a batch, whatever its source."""
    rubric = Rubric({"right": Math(), "short": lambda reply, _: len(reply) < 20})
    score = verl_reward({"a": rubric, "b": Exact(), "c": Instructions()})
    task = {"prompt": "?", "instruction_id_list": ["punctuation:no_comma"], "kwargs": [{}]}
    rows = score(
        data_sources="abc", solution_strs="333", ground_truths=["3", '"3"', json.dumps(task)]
    )
    assert [row["score"] for row in rows] == [1.0, 1.0, 1.0]
    assert {tuple(row) for row in rows} == {("score", "acc", "status", "part/right", "part/short")}
    assert math.isnan(rows[1]["part/right"])


def test_a_part_without_a_score_is_nan_behind_a_closed_gate():
    rubric = Rubric({"right": Math(), "code": Flaky(9)}, gate="right")
    assert math.isnan(verl_reward(rubric)("x", r"\boxed{4}", "3")["part/code"])


def test_a_fault_of_ours_is_tried_again_then_raised():
    assert verl_reward(Flaky(2))("x", "reply", "null")["score"] == 1.0
    with pytest.raises(RewardFault, match="sandbox_error: the container is gone"):
        verl_reward(Flaky(3))("x", "reply", "null")


def test_several_environments_are_chosen_by_data_source():
    score = verl_reward({"cities": Exact(), "sums": Math()})
    assert score("sums", r"\boxed{0.5}", '"1/2"')["score"] == 1.0
    assert score("cities", "0.5", '"1/2"')["score"] == 0.0
    with pytest.raises(ValueError, match="known: cities, sums"):
        score("towns", "", '""')


def test_what_cannot_be_trained_so_is_refused(tmp_path):
    with pytest.raises(ValueError, match="plays episodes"):
        verl_reward(make("assay/GuessNumber-v1"))
    env = make("assay/Arithmetic-v1")
    env.group_rubric = GroupRubric({"length": ShortReplies()})
    with pytest.raises(ValueError, match="Arithmetic-v1 has a group_rubric, and this trainer's"):
        verl_reward(env)
    with pytest.raises(ValueError, match="without end"):
        to_verl(make("assay/Arithmetic-v1"), tmp_path / "rows.parquet")
    with pytest.raises(ValueError, match="must be the JSON"):
        verl_reward(Exact())("x", "Paris", "Paris")


def test_references_keep_their_kind(tmp_path):
    tasks = [Task(f"q{i}", reference=ref) for i, ref in enumerate(["3", "a b", "ü"])]
    env = TextEnv(Rows(tasks), Exact(), name="mine/Words-v0")
    to_verl(env, tmp_path / "rows.parquet")
    rows = parquet.read_table(tmp_path / "rows.parquet").to_pylist()
    assert managed(verl_reward(env), rows, ["3", "a b", "u"])["score"] == [1.0, 1.0, 0.0]


def test_a_batch_is_judged_as_its_replies_are_one_by_one():
    """Verl's ``batch`` manager gives arrays, by other names, and takes a list."""
    score = verl_reward({"a": Exact(), "n": Math()})
    sources = np.array(["a", "n", "a", "n"], dtype=object)
    replies = ["x", r"\boxed{2}", "y", r"\boxed{3}"]
    golds = ['"x"', '"2"', '"x"', '"2"']
    extras = [{"rollout_reward_scores": {}}] * 4
    found = score(
        data_sources=sources, solution_strs=replies, ground_truths=golds, extra_infos=extras
    )
    assert found == [score(*row) for row in zip(sources, replies, golds, strict=True)]
    assert [row["score"] for row in found] == [1.0, 1.0, 0.0, 0.0]
    with pytest.raises(ValueError, match="expected as many"):
        score(data_sources=sources, solution_strs=replies, ground_truths=golds[:3])
    with pytest.raises(TypeError, match="naive, dapo or batch"):
        score(solution_strs=replies)


def test_a_fault_in_a_batch_stops_it():
    with pytest.raises(RewardFault, match="the container is gone"):
        verl_reward(Flaky(9), retries=1)(
            data_sources=["a"], solution_strs=["x"], ground_truths=["1"], extra_infos=[{}]
        )
