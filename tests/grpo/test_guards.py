"""Runs that are lost, or won, stop with their cause; best models are kept; references move on."""

from __future__ import annotations

import logging
import math
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Completion
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    NothingToLearn,
    Objective,
    RatioExploded,
    Row,
    SamplerMismatch,
    list_checkpoints,
    load_model,
    read_metrics,
)
from assay.grpo.credit import credit, rows_of
from assay.grpo.guards import EarlyStop, Patience, TrainingAlarm, drift, stall_reason
from assay.grpo.loss import policy_sums
from assay.grpo.update import minibatches

torch.set_num_threads(1)


def config(**settings: Any) -> GRPOConfig:
    defaults: dict[str, Any] = {
        "steps": 4,
        "prompts_per_step": 4,
        "group_size": 4,
        "max_new_tokens": 1,
        "learning_rate": 3e-3,
        "warmup_steps": 2,
    }
    return GRPOConfig(**{**defaults, **settings})


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def altered(rollout: type, change: Any) -> Any:
    """The stand-in's class with what it is answered changed."""

    class Altered(rollout):  # type: ignore[misc]
        def __call__(self, policy: Any, step: int) -> Any:
            def other(conversations: Any) -> list[Completion]:
                return [change(i, c) for i, c in enumerate(policy(conversations))]

            return super().__call__(other, step)

    return Altered


def test_drift_is_the_estimate_of_kl() -> None:
    """Two tokens with ratios 2 and 1/2: (2 - 1 - ln 2 + 1/2 - 1 + ln 2) / 2 = 1/4."""
    old = torch.tensor([[-1.0, -2.0, -9.0]])
    new = old + torch.tensor([[math.log(2), -math.log(2), 5.0]])
    mask = torch.tensor([[True, True, False]])
    sums = policy_sums(new, old, torch.zeros_like(new), mask, Objective())
    assert sums["log_ratio"] == pytest.approx(0.0, abs=1e-6)
    assert sums["max_log_ratio"] == pytest.approx(math.log(2), abs=1e-6)
    assert drift(sums) == pytest.approx(0.25, abs=1e-6)
    assert math.isnan(drift({}))


@pytest.mark.parametrize("given", [-1.0, -math.inf])
def test_a_rollout_of_another_policy_stops_the_run(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path, given: float
) -> None:
    """Log-probabilities that no model gave, as of another temperature or another server."""
    rollout = altered(digits, lambda i, c: replace(c, logprobs=(given,) * len(c.ids)))
    before = weights(model)
    learner = Learner(model, tokenizer, rollout(16, 8), config(), tmp_path)
    with pytest.raises(SamplerMismatch, match=r"step 1: .*max_mismatch is 0\.02.*temperature"):
        learner.train()
    assert torch.equal(weights(model), before)


def test_a_mismatch_that_is_corrected_is_shown(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """The untrained model is near -log 100 everywhere; -1 was claimed, so k3 is near 2.6."""
    rollout = altered(digits, lambda i, c: replace(c, logprobs=(-1.0,) * len(c.ids)))
    settings = config(steps=1, correction="token_truncate")
    Learner(model, tokenizer, rollout(), settings, tmp_path).train()
    assert read_metrics(tmp_path / "metrics.jsonl")[1]["mismatch"] == pytest.approx(2.6, abs=0.1)


def test_an_engine_has_its_own_temperature_and_arguments_of_the_chat_template(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    thinking = {"chat_template_kwargs": {"enable_thinking": True}}
    engine = ModelPolicy(model, tokenizer, max_new_tokens=1, **thinking)
    with pytest.raises(ValueError, match=r"eval_temperature=0\.5 needs an engine"):
        Learner(model, tokenizer, digits(), config(eval_temperature=0.5), tmp_path, engine=engine)
    Learner(model, tokenizer, digits(), config(**thinking), tmp_path / "same", engine=engine)
    other = config(chat_template_kwargs={"enable_thinking": False})
    with pytest.raises(ValueError, match=r"an engine that was made with .*True"):
        Learner(model, tokenizer, digits(), other, tmp_path, engine=engine)


def test_a_policy_that_runs_away_stops_the_run(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """What is left of the rollout is dropped, so that the remedy named helps."""
    far = config(num_iterations=4, learning_rate=0.5, warmup_steps=0)
    learner = Learner(model, tokenizer, digits(16, 8), far, tmp_path)
    with pytest.raises(RatioExploded, match=r"step 1: .*max_drift is 1\.0.*lower learning_rate"):
        learner.train()
    kept = list_checkpoints(tmp_path / "checkpoints")[-1]
    assert kept.name == "step-000001"
    calm = config(num_iterations=4, learning_rate=1e-9, warmup_steps=0, alarm_patience=0)
    model, tokenizer = load_model(kept)
    Learner(model, tokenizer, digits(16, 8), calm, tmp_path, resume=True).train()


def row(**numbers: float) -> dict[str, float]:
    return {"zero_variance": 1.0, "reward": 0.0, "truncated": 0.0, **numbers}


@pytest.mark.parametrize(
    ("numbers", "well", "reason"),
    [
        ({"reward": 0.005, "zero_variance": 0.984}, False, "nearly every group earned nothing"),
        ({"reward": 1.0}, True, "every reply to every task is right"),
        ({"reward": 0.3, "truncated": 1.0}, False, "every reply was cut off"),
        ({"reward": 0.3}, False, r"the same \(mean reward 0\.3\)"),
        ({"reward": math.nan}, False, "no episode has a reward"),
        ({"reward": None}, False, "no episode has a reward"),
        (
            {"reward": None, "groups/generated": 8.0, "groups/all_correct": 8.0},
            True,
            "every reply to every task is right",
        ),
        ({"reward": None, "groups/generated": 8.0}, False, "dynamic sampling found no group"),
        ({"reward": None, "prompts/too_long": 4.0}, False, "raise max_prompt_tokens"),
    ],
)
def test_the_silent_causes_have_names(numbers: Any, well: bool, reason: str) -> None:
    found = stall_reason(row(**numbers))
    assert found is not None
    assert found.well is well
    assert re.search(reason, found.reason)


def test_what_can_be_learned_from_is_no_cause() -> None:
    assert stall_reason(row(zero_variance=0.9)) is None
    assert stall_reason(row(zero_variance=0.5, truncated=1.0)) is None
    patience = Patience(2)
    flat, good = row(), row(zero_variance=0.5)
    assert [patience.check(r) is not None for r in (flat, good, flat, flat, flat)] == [
        False, False, False, True, True,
    ]  # fmt: skip
    never = Patience(0)
    assert not any(never.check(flat) for _ in range(99))


def test_a_run_without_anything_to_learn_stops(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """After three such rollouts, two of them before a stop; more patience lets it go on."""
    rollout = altered(digits, lambda i, c: replace(c, text=""))(4)

    def run(*, resume: bool = True, **settings: Any) -> Any:
        model, tokenizer = load_model(model_dir)
        learner = Learner(model, tokenizer, rollout, config(**settings), tmp_path, resume=resume)
        learner.train()
        return model

    run(steps=2, alarm_patience=3, resume=False)
    with (
        pytest.warns(TrainingAlarm, match="step 3: for 3 rollouts in a row every reply was cut"),
        pytest.raises(NothingToLearn, match=r"step 3: for 3 rollouts in a row every reply was cut"),
    ):
        run(alarm_patience=3)
    assert [p.name for p in list_checkpoints(tmp_path / "checkpoints")][-1] == "step-000003"
    assert "for 3 rollouts" in read_metrics(tmp_path / "metrics.jsonl")[-1]["ending"]
    with pytest.raises(NothingToLearn, match="raise alarm_patience"):
        run(alarm_patience=3)
    model = run(alarm_patience=5)
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [r["step"] for r in rows] == [0, 1, 2, 3, 4]
    assert [("alarm" in r) for r in rows] == [False, False, False, True, False]
    assert [(r["updates"], r["zero_variance"]) for r in rows[1:]] == [(0, 1.0)] * 4
    assert torch.equal(weights(model), weights(load_model(model_dir)[0]))


def test_rewards_that_differ_teach_nothing_where_all_tokens_are_masked(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    settings = config(mask_truncated=True, alarm_patience=2, prompts_per_step=8)
    learner = Learner(model, tokenizer, digits(8), settings, tmp_path)
    with pytest.raises(NothingToLearn, match="step 2: for 2 rollouts in a row"):
        learner.train()
    row = read_metrics(tmp_path / "metrics.jsonl")[1]
    assert row["reward_std"] > 0
    assert row["zero_variance"] == 1.0


def test_a_run_that_has_solved_its_tasks_ends_well(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path, caplog: Any
) -> None:
    rollout = altered(digits, lambda i, c: replace(c, text="7"))
    learner = Learner(
        model,
        tokenizer,
        rollout(4),
        config(alarm_patience=2, eval_every=50),
        tmp_path,
        held_out=digits(4, 1),
    )
    with caplog.at_level(logging.WARNING):
        learner.train()
    assert "step 2: for 2 rollouts in a row every reply to every task is right" in caplog.text
    rows = read_metrics(tmp_path / "metrics.jsonl")
    assert [("held_out/reward" in r) for r in rows] == [True, False, True]


def test_early_stop_counts_evaluations() -> None:
    stop = EarlyStop(2)
    values = [0.5, None, 0.4, 0.6, 0.6, math.nan]
    rows = [{} if v is None else {"held_out/reward": v} for v in values]
    found = [stop.check(r) for r in rows]
    assert [f is not None for f in found] == [False] * 5 + [True]
    assert found[-1].reason == ("2 evaluations in a row were no better than held_out/reward = 0.6")


class Judge:
    """Held-out tasks whose rewards are written down beforehand."""

    def __init__(self, digits: Any, rewards: list[int]) -> None:
        self.digits, self.rewards = digits, rewards

    def __call__(self, policy: Any, step: int) -> Any:
        right = self.rewards[step]
        answers = altered(self.digits, lambda i, c: replace(c, text="1" if i < right else "x"))
        return answers(4, 1)(policy, step)


def test_the_best_model_is_kept_and_waiting_ends(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    """Best after step 2 of 6; two evaluations later it ends, and a resumed run ends as well."""
    held_out = Judge(digits, [1, 2, 3, 3, 1, 4, 4])
    seen: dict[int, torch.Tensor] = {}

    def run(steps: int, **settings: Any) -> Learner:
        model, tokenizer = load_model(model_dir)
        learner = Learner(
            model,
            tokenizer,
            digits(16, 8),
            config(steps=steps, eval_every=1, keep_best=True, early_stop=2),
            tmp_path,
            held_out=held_out,
            on_step=lambda r: seen.update({r["step"]: weights(model)}),
            **settings,
        )
        learner.train()
        return learner

    for given in ({"keep_best": True}, {"early_stop": 2}):
        settings = config(eval_every=1, **given)
        with pytest.raises(ValueError, match="there is no held_out"):
            Learner(*load_model(model_dir), digits(2, 2), settings, tmp_path / "none")
    run(3)
    assert [p.name for p in (tmp_path / "best").iterdir()] == ["step-000002"]
    assert run(6, resume=True).step == 4
    best = tmp_path / "best" / "step-000002"
    assert torch.equal(weights(load_model(best)[0]), seen[2])
    assert run(6, resume=True).step == 4
    assert "ending" in read_metrics(tmp_path / "metrics.jsonl")[-1]


def test_pass_at_k_is_measured_by_powers_of_two(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """Of 5 replies to a task the first is right, the last has no reward: 4 count."""
    right = altered(digits, lambda i, c: replace(c, text="x" if i % 5 else "1"))
    setting = config(steps=0, eval_every=1, eval_samples=5, eval_temperature=0.7)
    held_out = right(3, 5, none=(4,))
    learner = Learner(model, tokenizer, digits(), setting, tmp_path / "a", held_out=held_out)
    learner.train()
    found = read_metrics(tmp_path / "a" / "metrics.jsonl")[0]
    assert found["held_out/pass_at_1"] == 0.25
    assert found["held_out/pass_at_2"] == 0.5
    assert found["held_out/pass_at_4"] == 1.0
    assert "held_out/pass_at_8" not in found
    few = Learner(model, tokenizer, digits(), setting, tmp_path / "b", held_out=digits(3, 2))
    with pytest.raises(ValueError, match=r"eval_samples is 5, .* 2 times.*group_size=5"):
        few.train()


def test_the_reference_is_refreshed_and_kept(model_dir: Path, digits: Any, tmp_path: Path) -> None:
    """Every two steps; a run that is resumed after three has that of step 2."""
    setting = {"beta": 0.1, "reference_every": 2, "learning_rate": 1e-2}

    def run(out: Path, steps: int, **more: Any) -> tuple[Any, torch.Tensor]:
        model, tokenizer = load_model(model_dir)
        learner = Learner(
            model, tokenizer, digits(8, 8), config(steps=steps, **setting), out, **more
        )
        learner.train()
        assert learner.reference is not None
        with learner.reference.reading() as reference:
            return weights(reference), weights(model)

    after_two, policy_at_two = run(tmp_path / "two", 2)
    assert torch.equal(after_two, policy_at_two)
    after_three, _ = run(tmp_path / "cut", 3)
    assert torch.equal(after_three, after_two)
    reference, policy = run(tmp_path / "cut", 5, resume=True)
    again, straight = run(tmp_path / "whole", 5)
    assert torch.equal(reference, again)
    assert torch.equal(policy, straight)


def test_minibatches_need_not_divide_the_prompts(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """Seven prompts in three: 3 + 2 + 2 groups, each of them once a pass."""
    setting = config(prompts_per_step=7, minibatches=3, num_iterations=2)
    asked = Learner(model, tokenizer, digits(7), setting, tmp_path).policy(seed=1)
    groups = digits(7)(asked, 1)
    rows = credit(groups, rows_of(groups), setting)
    parts = minibatches(rows, setting, 1)
    assert [len({row.prompt for row in part}) for part in parts] == [3, 2, 2, 3, 2, 2]
    for one_pass in (parts[:3], parts[3:]):
        assert sorted(id(r) for part in one_pass for r in part) == sorted(id(r) for r in rows)


def test_there_are_as_many_minibatches_as_asked_for() -> None:
    """Nine groups in four make 3 + 2 + 2 + 2, and not three of 3; two groups make two."""
    rows = [Row((5 + i,), (7,), (True,), (-1.0,), (1.0,)) for i in range(9)]
    assert [len(part) for part in minibatches(rows, config(minibatches=4), 1)] == [3, 2, 2, 2]
    assert [len(part) for part in minibatches(rows[:2], config(minibatches=4), 1)] == [1, 1]
