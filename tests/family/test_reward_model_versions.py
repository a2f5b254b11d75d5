"""A reward model in versions: what it learns from, what it says, and rounds that use it."""

from __future__ import annotations

import json
import math
import pickle
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Episode, EpisodeGroup, Task, TextEnv
from assay.envs.datasets.source import Rows
from assay.family.trainers import (
    FitConfig,
    Label,
    Round,
    TrainableRewardModel,
    iterative_grpo,
    labels_of,
    replayed,
    version_of,
)
from assay.grpo import CheckpointError, GRPOConfig, load_model
from assay.verifiers import FunctionVerifier, Rubric, Status, Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
ASKED = ({"role": "user", "content": "say:"},)
REFERENCE = {"messages": list(ASKED)}
ONE_STEP = FitConfig(steps=1, batch_size=8, learning_rate=1e-3, warmup_steps=0)


def label(reply: str, score: float) -> Label:
    return Label(ASKED, reply, score)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


@pytest.fixture
def zero(model_dir: Path, tmp_path: Path) -> TrainableRewardModel:
    return TrainableRewardModel.begin(model_dir, tmp_path / "zero")


def test_replay_is_a_share_of_the_number_of_new_labels() -> None:
    new = [label(f"new {i}", 1.0) for i in range(20)]
    old = [label(f"old {i}", 0.0) for i in range(50)]
    found = replayed(new, old, 0.1, seed=3)
    assert found[:20] == new
    assert len(found) == 22
    assert len({x.reply for x in found[20:]} & {x.reply for x in old}) == 2
    assert found == replayed(new, old, 0.1, seed=3) != replayed(new, old, 0.1, seed=4)
    assert replayed(new, old, 0.0, seed=3) == new
    assert replayed(new, old[:1], 0.5, seed=3) == [*new, old[0]]
    with pytest.raises(ValueError, match="0 or more, got nan"):
        replayed(new, old, math.nan, seed=3)


def test_it_begins_without_an_opinion_and_says_its_version(zero) -> None:
    found = zero.verify_many(["ab", "a", "<think>ab"], [REFERENCE] * 3)
    assert [v.score for v in found] == [0.5, 0.5, 0.0]
    assert [version_of(v) for v in found] == [0, 0, 0]  # also where no model was asked
    assert found[0].reason == "reward model version 0: gives 0.5000"
    assert version_of(Verdict.correct("reward model")) is None


def test_the_loss_is_the_cross_entropy_of_the_score(zero, tmp_path) -> None:
    # At a score of 0.5 it is log 2 for every label.
    labels = [label("a", 1.0), label("bcd", 0.0), label("b", 0.25)]
    one = zero.fit(labels, folder=tmp_path / "one", config=ONE_STEP)
    assert one.about["loss"] == pytest.approx(math.log(2))
    # Scores of version 1, and by hand the loss that the next step begins with.
    scores = [v.score for v in one.verify_many([x.reply for x in labels], [REFERENCE] * 3)]
    by_hand = [
        -x.score * math.log(s) - (1 - x.score) * math.log(1 - s)
        for x, s in zip(labels, scores, strict=True)
    ]
    two = one.fit(labels, folder=tmp_path / "two", config=ONE_STEP)
    assert two.about["loss"] == pytest.approx(sum(by_hand) / 3, rel=1e-5)


def test_fits_do_not_depend_on_how_labels_are_batched(zero, model_dir, tmp_path) -> None:
    # The same text twice with two labels, and texts of several lengths.
    labels = [label("a", 1.0), label("a", 0.0), label("abc", 1.0), label("b", 0.0)]
    config = FitConfig(steps=3, batch_size=4, learning_rate=1e-3, warmup_steps=0)
    alone = TrainableRewardModel(tmp_path / "zero", batch=1)
    first = zero.fit(labels, folder=tmp_path / "batched", config=config)
    second = alone.fit(labels, folder=tmp_path / "alone", config=config)
    assert second.batch == 1
    scores = [m.verify("abc", REFERENCE).score for m in (first, second)]
    assert scores[0] == pytest.approx(scores[1], abs=1e-5)
    assert first.about["loss"] == pytest.approx(second.about["loss"], abs=1e-6)


def test_a_fit_learns_and_leaves_the_version_before_it_as_it_was(zero, tmp_path) -> None:
    before = zero.verify("xxx", REFERENCE)
    labels = [label("x" * n, 1.0) for n in (1, 2, 3)] + [label("y" * n, 0.0) for n in (1, 2, 3)]
    config = FitConfig(steps=30, batch_size=6, learning_rate=1e-2, warmup_steps=0)
    old = [label("x", 1.0)] * 9
    one = zero.fit(labels, old, folder=tmp_path / "one", config=config, replay=0.5)
    assert one.about | {"loss": 0} == {
        "version": 1, "new": 6, "replayed": 3, "steps": 30, "loss": 0,
    }  # fmt: skip
    good, bad = one.verify_many(["xxx", "yyy"], [REFERENCE] * 2)
    assert good.score > 0.9 > 0.1 > bad.score
    assert version_of(good) == 1
    assert zero.verify("xxx", REFERENCE) == before
    assert TrainableRewardModel(zero.model).verify("xxx", REFERENCE) == before
    copied = pickle.loads(pickle.dumps(one)).verify("xxx", REFERENCE)
    assert copied == good
    with pytest.raises(OSError, match="one"):
        zero.fit(labels, folder=tmp_path / "one", config=config)


def test_only_replies_that_the_model_reads_are_learnt_from(zero, tmp_path) -> None:
    one = zero.fit([label("", 1.0), label("a", 0.0)], folder=tmp_path / "one", config=ONE_STEP)
    assert one.verify("", REFERENCE).score == 0.0
    with pytest.raises(ValueError, match="none of 1 labels"):
        zero.fit([label("", 1.0)], folder=tmp_path / "two", config=ONE_STEP)
    assert not (tmp_path / "two").exists()


def test_a_stored_group_says_which_version_judged_it(zero) -> None:
    rubric = Rubric({"model": zero, "length": lambda reply, _: float(len(reply) < 9)})
    task = Task("say:", REFERENCE, id="t")
    turns = ({"role": "assistant", "content": "ab"},)
    group = EpisodeGroup(task, (Episode("t", turns, rubric.verify("ab", task.reference)),))
    stored = EpisodeGroup.from_json(json.loads(json.dumps(group.to_json())))
    assert version_of(stored.episodes[0].verdict) == 0


def test_labels_are_of_judged_episodes_of_one_turn() -> None:
    def episode(verdict: Verdict, turns: int = 1) -> Episode:
        said = [{"role": "assistant", "content": f"{i}"} for i in range(turns)]
        return Episode("t", tuple(said), verdict)

    task = Task("say:", "", id="t")
    fault = Verdict.fault(Status.SANDBOX_ERROR, "away")
    group = EpisodeGroup(task, (episode(Verdict.wrong("", score=0.25)), episode(fault)))
    (one,) = labels_of([group])
    assert one == Label(task.messages, "0", 0.25) == Label.from_json(one.to_json())
    with pytest.raises(ValueError, match="2 turns"):
        labels_of([EpisodeGroup(task, (episode(Verdict.correct(), 2),))])
    with pytest.raises(ValueError, match=r"in \[0, 1\], got 1.5"):
        label("a", 1.5)


def letters() -> TextEnv:
    """The first character decides: a letter before n earns 1."""
    return TextEnv(
        Rows([Task(f"{i}:", "") for i in range(6)]),
        FunctionVerifier(lambda reply, _: float("a" <= reply[:1] < "n")),
    )


def rounds(model_dir: Path, out: Path, **kwargs: Any) -> tuple[Any, list[Round]]:
    model, tokenizer = load_model(model_dir)
    config = GRPOConfig(
        steps=2, prompts_per_step=2, group_size=4, max_new_tokens=3, learning_rate=1e-3,
        beta=0.04, save_every=1, alarm_patience=0,
    )  # fmt: skip
    scorer = out.parent / "zero"
    begun = (
        TrainableRewardModel(scorer)
        if scorer.exists()
        else TrainableRewardModel.begin(model_dir, scorer)
    )
    settings: dict[str, Any] = {"rounds": 2, "labels": 10, "fit": ONE_STEP, **kwargs}
    return model, iterative_grpo(model, tokenizer, letters(), begun, config, out, **settings)


@pytest.mark.filterwarnings("ignore::assay.grpo.guards.TrainingAlarm")
def test_rounds_are_whole_refresh_the_reference_and_stamp_rewards(model_dir, tmp_path) -> None:
    model, found = rounds(model_dir, tmp_path / "out", replay=0.4)
    assert [(r.number, r.judged_by, r.labels) for r in found] == [(1, 0, 10), (2, 1, 10)]
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == ["round-1", "round-2"]
    first, second = tmp_path / "out/round-1", tmp_path / "out/round-2"

    def labels(folder: Path) -> list[Label]:
        lines = (folder / "labels.jsonl").read_text().splitlines()
        return [Label.from_json(json.loads(line)) for line in lines]

    assert found[1].true == pytest.approx(sum(x.score for x in labels(second)) / 10)
    assert 0 <= found[1].proxy <= 1
    policy = load_model(second / "policy")[0]
    assert torch.equal(weights(policy), weights(model))
    reference = load_model(model_dir)[0]
    reference.load_state_dict(type(model).from_pretrained(second / "run/reference").state_dict())
    assert torch.equal(weights(reference), weights(load_model(first / "policy")[0]))
    told = TrainableRewardModel(second / "reward_model").about
    assert (told["version"], told["new"], told["replayed"]) == (2, 10, 4)
    for folder, version in ((first, 0), (second, 1)):
        kept = [json.loads(x) for x in (folder / "run/samples.jsonl").read_text().splitlines()]
        reasons = {r["reason"] for step in kept for g in step["groups"] for r in g["replies"]}
        assert {version_of(Verdict.correct(reason)) for reason in reasons} == {version}


@pytest.mark.filterwarnings("ignore::assay.grpo.guards.TrainingAlarm")
def test_an_interrupted_run_ends_as_the_unbroken_one(model_dir, tmp_path) -> None:
    unbroken, found = rounds(model_dir, tmp_path / "a")

    def stop(number: int, row: dict[str, Any]) -> None:
        if (number, row["step"]) == (2, 1):
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        rounds(model_dir, tmp_path / "b", on_step=stop)
    assert sorted(p.name for p in (tmp_path / "b").iterdir()) == ["round-1", "running-2"]
    told: list[Round] = []
    resumed, again = rounds(model_dir, tmp_path / "b", on_round=told.append)
    assert again == told == found
    assert torch.equal(weights(resumed), weights(unbroken))
    with pytest.raises(CheckpointError, match="other settings"):
        rounds(model_dir, tmp_path / "b", labels=11)


@pytest.mark.filterwarnings("ignore::assay.grpo.guards.TrainingAlarm")
def test_without_labels_the_reward_model_stays(model_dir, tmp_path) -> None:
    _, found = rounds(model_dir, tmp_path / "out", labels=0)
    assert [(r.judged_by, r.labels, r.true, r.proxy) for r in found] == [(0, 0, None, None)] * 2
    assert not (tmp_path / "out/round-1/reward_model").exists()
    with pytest.raises(ValueError, match="rounds must be at least 1"):
        rounds(model_dir, tmp_path / "other", rounds=0)
