"""Studies whose units are tokens: what each arm changes, and nothing else."""

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.envs import Completion, play
from assay.family import (
    dapo,
    distillation,
    grpo_outcome,
    grpo_process,
    length_bias,
    off_policy,
    ppo,
    preferences,
)
from assay.grpo import load_model, read_metrics, tiny_model
from assay.study import Outcome, Study, Trial

pytestmark = pytest.mark.slow

Run = Callable[[Study, str], Outcome]


@pytest.fixture
def metrics(tmp_path: Path) -> Callable[[int], list[dict[str, float]]]:
    """The log of the arm that was run as the n-th of its study."""
    return lambda n: [r for r in read_metrics(tmp_path / f"{n}/run/metrics.jsonl") if r["step"]]


def test_outcome_arms_differ_in_what_they_say(outcome: Run, metrics, tmp_path: Path) -> None:
    configs = []
    for n, arm in enumerate(list(grpo_outcome.STUDY.arms)[:3]):
        found = outcome(grpo_outcome.STUDY, arm)
        assert 0 <= found.values["pass@1"] <= 1
        assert [x for x, _ in found.curves["zero_variance"]] == [1, 2, 3]
        configs.append(json.loads((tmp_path / f"{n}/run/config.json").read_text())["config"])
    assert [c["beta"] for c in configs] == [0.04, 0.0, 0.0]
    assert [c["advantage_std"] for c in configs] == ["population", "population", "none"]
    assert metrics(0)[0]["kl"] == pytest.approx(0, abs=1e-6)  # the reference is where it began
    assert "kl" not in metrics(1)[0]


def test_a_rollout_is_used_eight_times_in_the_stress_and_once_beside_it(
    outcome: Run, metrics
) -> None:
    outcome(off_policy.STUDY, "one update a rollout")
    outcome(off_policy.STUDY, "GRPO")
    assert metrics(0)[0]["updates"] == 1
    assert metrics(0)[0]["drift"] == pytest.approx(0, abs=1e-6)
    assert 1 < metrics(1)[0]["updates"] <= 8  # those whose groups are all flat are left out
    assert metrics(1)[0]["drift"] > 1e-6


def test_the_student_learns_from_its_teacher_alone(
    start: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(0, True, tmp_path / "arm", shutil.copytree(start, tmp_path / "start"))
    monkeypatch.setattr(distillation, "start", lambda trial: None)  # it is there
    distillation.start_and_teacher(trial)
    distillation.STUDY.arms["distillation"](trial)
    (first,) = [r for r in read_metrics(tmp_path / "arm/run/metrics.jsonl") if r["step"]]
    assert first["reward"] == 0
    assert first["kl"] > 1e-3  # to another model than the student
    assert first["updates"] == 1


def test_dynamic_sampling_spends_replies_until_every_group_teaches(outcome: Run, metrics) -> None:
    plain = outcome(dapo.STUDY, "GRPO")
    full = outcome(dapo.STUDY, "+ dynamic sampling (DAPO)")
    assert plain.values["replies"] == 512
    assert full.values["replies"] >= 512
    of_a_reply = [o.values["updates"] / o.values["replies"] for o in (plain, full)]
    assert of_a_reply[1] < of_a_reply[0]
    assert any(share > 0 for _, share in plain.curves["zero-variance share"])
    assert all(share == 0 for _, share in full.curves["zero-variance share"])


def test_lengths_are_of_replies_that_are_right_and_of_those_that_are_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trial = Trial(0, True, tmp_path / "run", tmp_path)
    monkeypatch.setattr(length_bias, "warm_start", lambda *_, **__: None)  # lengths need none
    length_bias.start(trial)
    found = length_bias.STUDY.arms["Dr. GRPO (one length)"](trial)
    assert 1 <= found.values["tokens of wrong replies"] <= length_bias.LONGEST
    env = length_bias.dotted("test")
    task = env.task(0)
    env.reset(options={"task": 0})
    assert env.step("....." + task.reference)[1] == 1.0
    env.reset(options={"task": 0})
    assert env.step(task.reference + ".")[1] == 0.0


def test_a_critic_foresees_and_groups_of_one_are_its_own(
    outcome: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ppo, "REPLIES", 64)
    found = outcome(ppo.STUDY, "PPO, 512 x 1")
    assert len(found.curves["value/explained_variance"]) == 2


def test_offline_and_online_arms_see_as_many_replies(outcome: Run, metrics) -> None:
    for arm in ("RFT (once)", "DPO (once)"):
        assert len(outcome(preferences.STUDY, arm).curves["pass@1"]) == 3
    outcome(preferences.STUDY, "Online RFT")
    rows = metrics(2)
    assert len(rows) == 2
    assert all(row["reward_std"] >= 0 for row in rows)


def totals(numbers: list[int]) -> list[str]:
    return [str(sum(numbers[:n])) for n in range(2, len(numbers) + 1)]


def test_each_running_total_is_paid_for_and_the_last_one_decides() -> None:
    env = grpo_process.Running()
    task = env.task(0)
    right = totals(task.metadata["numbers"])
    for said, paid, reward in (
        (right, (1.0, 1.0, 1.0), 1.0),
        (["x", *right[1:]], (0.0, 1.0, 1.0), 1.0),
        ([*right[:2], "999"], (1.0, 1.0, 0.0), 0.0),
    ):
        replies = iter(said)
        (group,) = play(env, lambda c, r=replies: [Completion(next(r)) for _ in c], [task], 1)
        assert group.episodes[0].step_rewards == paid
        assert group.episodes[0].reward == reward


def test_a_worked_episode_has_the_tokens_that_an_episode_has(tmp_path: Path) -> None:
    _, tokenizer = load_model(tiny_model(tmp_path))
    task = grpo_process.Running().task(3)
    a, b, c, d = task.metadata["numbers"]
    row = grpo_process.worked(tokenizer, task)
    assert tokenizer.decode(row.prompt) == f"{a}+{b}+{c}+{d} {a}+{b}="
    end = tokenizer.eos_token
    first, second, third = totals([a, b, c, d])
    assert tokenizer.decode(row.reply) == f"{first}{end}+{c}={second}{end}+{d}={third}{end}"
    own = [i for i, written in zip(row.reply, row.written, strict=True) if written]
    assert tokenizer.decode(own) == f"{first}{end}{second}{end}{third}{end}"
    assert [row.reply[i] for i in row.ends] == [tokenizer.eos_token_id] * 3
