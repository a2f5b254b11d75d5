"""SFT, rejection sampling and DPO: what they learn from, and what they do to the model."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import Episode, EpisodeGroup, Span, Task
from assay.family.trainers import (
    FitConfig,
    accepted_replies,
    dpo,
    dpo_loss,
    preference_pairs,
    rft,
    sft,
)
from assay.family.trainers.dpo import pairs_gradient
from assay.family.trainers.supervised import example_row
from assay.grpo import (
    CheckpointError,
    ModelPolicy,
    Row,
    evaluate,
    load_model,
)
from assay.grpo.logprobs import full_forward, padded_forward, shared_forward
from assay.verifiers import Status, Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
SMALL = FitConfig(batch_size=4, learning_rate=1e-2, warmup_steps=0, epochs=1)


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def gradient(model: Any) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


def group(task: str, *replies: tuple[tuple[int, ...], float | None], cut: int = -1) -> EpisodeGroup:
    """Replies of token ids with their rewards; the one at ``cut`` was cut off."""
    episodes = []
    for i, (ids, reward) in enumerate(replies):
        if reward is None:
            verdict = Verdict.fault(Status.SANDBOX_ERROR, "away")
        else:
            verdict = Verdict.correct() if reward == 1 else Verdict.wrong("no", score=reward)
        spans = (Span("environment", (5, 6, len(task))), Span("model", ids, (-1.0,) * len(ids)))
        turns = ({"role": "assistant", "content": "".join(map(str, ids))},)
        episodes.append(Episode(task, turns, verdict, truncated=i == cut, spans=spans))
    return EpisodeGroup(Task(task, "", id=task), tuple(episodes))


def pairs_of(text: str) -> list[tuple[str, str]]:
    return [(f"{a}?", f"{a}{text}") for a in "abcdefgh"]


class TestSupervised:
    """SFT."""

    def test_it_learns_what_it_is_given(self, model: Any, tokenizer: Any) -> None:
        rows = sft(model, tokenizer, pairs_of("!"), replace(SMALL, epochs=40))
        assert [row["step"] for row in rows] == list(range(1, 81))
        assert rows[0]["loss"] > 4 > 0.1 > rows[-1]["loss"]
        policy = ModelPolicy(model, tokenizer, max_new_tokens=4, temperature=0)
        replies = policy([[{"role": "user", "content": "c?"}], [{"role": "user", "content": "f?"}]])
        assert [(r.text, r.finish) for r in replies] == [("c!", "stop"), ("f!", "stop")]

    def test_examples_are_tasks_pairs_or_tokens(self, tokenizer: Any) -> None:
        row = example_row(tokenizer, ("1+1=", "2"))
        assert row == example_row(tokenizer, Task("1+1=", "2", solution="2"))
        assert row == example_row(tokenizer, replace(row, advantages=(0.0, 0.0)))
        assert row.reply[-1] == tokenizer.eos_token_id
        assert row.advantages == (1.0, 1.0)

    def test_the_loss_is_the_mean_over_the_steps_tokens(
        self, model_dir: Path, tokenizer: Any
    ) -> None:
        """Against the model's own logits, for budgets of one row and of all rows."""
        examples = [("a", "b"), ("long prompt", "and a long reply"), ("a", "xyz")]
        rows = [example_row(tokenizer, e) for e in examples]
        found = []
        for budget in (1, 10_000):
            model, _ = load_model(model_dir)
            config = FitConfig(batch_size=3, tokens_per_batch=budget, max_grad_norm=1e9)
            (metrics,) = sft(model, tokenizer, examples, config)
            found.append((metrics["loss"], metrics["grad_norm"]))
        model, _ = load_model(model_dir)
        total = torch.zeros(())
        for row in rows:
            logprobs = model(torch.tensor([[*row.prompt, *row.reply]])).logits[0].log_softmax(-1)
            for place, token in enumerate(row.reply, start=len(row.prompt)):
                total = total - logprobs[place - 1, token]
        (total / sum(len(r.reply) for r in rows)).backward()
        norm = float(gradient(model).norm())
        expected = float(total.detach()) / sum(len(r.reply) for r in rows)
        for loss, length in found:
            assert loss == pytest.approx(expected, rel=1e-5)
            assert length == pytest.approx(norm, rel=1e-4)

    def test_the_environments_tokens_are_not_learnt(self, model_dir: Path, tokenizer: Any) -> None:
        """A row with other environment tokens after its last turn trains the same weights."""
        results = []
        for after in (7, 8):
            row = Row((5, 6), (9, 10, after), (True, True, False), (0.0,) * 3, (0.0,) * 3)
            model, _ = load_model(model_dir)
            metrics = sft(model, tokenizer, [row, row], SMALL)
            assert metrics[0]["tokens"] == 4
            results.append(weights(model))
        assert torch.equal(*results)

    def test_resume_gives_the_same_bits(
        self, model_dir: Path, tokenizer: Any, tmp_path: Path
    ) -> None:
        def run(name: str, epochs: int, *, resume: bool = False) -> torch.Tensor:
            model, _ = load_model(model_dir)
            config = replace(SMALL, epochs=epochs, batch_size=3, save_every=2)
            out = tmp_path / name
            sft(model, tokenizer, pairs_of("!"), config, out_dir=out, resume=resume)
            return weights(model)

        straight, half = run("straight", 4), run("halves", 2)
        assert not torch.equal(straight, half)
        assert torch.equal(run("halves", 4, resume=True), straight)
        assert (tmp_path / "straight/metrics.jsonl").read_text() == (
            tmp_path / "halves/metrics.jsonl"
        ).read_text()
        assert torch.equal(run("halves", 4, resume=True), straight)  # nothing is left to do
        with pytest.raises(CheckpointError, match="already holds a run"):
            run("halves", 4)

    def test_bad_settings_are_named(self, model: Any, tokenizer: Any) -> None:
        with pytest.raises(ValueError, match="batch_size must be at least 1, got 0"):
            FitConfig(batch_size=0)
        with pytest.raises(ValueError, match=r"learning_rate must be above 0, got 0\.0"):
            FitConfig(learning_rate=0.0)
        with pytest.raises(ValueError, match="at least one example, got none"):
            sft(model, tokenizer, [])


class TestRejectionSampling:
    """RFT, offline and online."""

    def test_only_right_whole_and_different_replies_are_kept(self) -> None:
        groups = [
            group("a", ((10, 1), 1.0), ((11, 1), 0.5), ((10, 1), 1.0), ((12, 1), None)),
            group("bb", ((13, 13), 1.0), ((14, 1), 1.0), ((15, 1), 0.0), cut=0),
            group("a", ((16, 1), 1.0), ((17, 1), 1.0)),
        ]
        assert [row.reply for row in accepted_replies(groups, limit=2)] == [
            (10, 1),
            (16, 1),
            (14, 1),
        ]
        stored = [EpisodeGroup.from_json(json.loads(json.dumps(g.to_json()))) for g in groups]
        assert accepted_replies(stored, limit=2) == accepted_replies(groups, limit=2)

    def test_stored_text_without_tokens_is_tokenised(self, tokenizer: Any) -> None:
        said = ({"role": "assistant", "content": "2"},)
        stored = EpisodeGroup(Task("1+1=", "2"), (Episode("", said, Verdict.correct()),))
        (row,) = accepted_replies([stored], tokenizer)
        assert row == example_row(tokenizer, ("1+1=", "2"))
        with pytest.raises(ValueError, match="trains on tokens"):
            accepted_replies([stored])

    def test_it_gets_better_at_what_it_got_right(
        self, model: Any, tokenizer: Any, digits: Any
    ) -> None:
        rollout = digits(40, 8)
        groups = rollout(ModelPolicy(model, tokenizer, max_new_tokens=1, seed=3), 1)
        # Every reply of one token is cut off: here that is all that was asked for.
        whole = [
            EpisodeGroup(g.task, tuple(replace(e, truncated=False) for e in g.episodes))
            for g in groups
        ]
        right = sum(e.status is Status.CORRECT for g in whole for e in g.episodes)
        assert 10 < right < 64
        config = replace(SMALL, epochs=60, batch_size=16)
        rows = rft(model, tokenizer, whole, config)
        assert sum(row["tokens"] for row in rows[:1]) == 16
        policy = ModelPolicy(model, tokenizer, max_new_tokens=1, seed=5)
        assert evaluate(policy, digits(40, 1)).pass_at_1 > 0.8

    def test_nothing_right_is_an_error(self, model: Any, tokenizer: Any) -> None:
        with pytest.raises(ValueError, match=r"none of 1 replies is right and complete"):
            rft(model, tokenizer, [group("a", ((9,), 0.0))])


numbers = st.floats(-50, 50)


class TestPreferences:
    """DPO."""

    @given(st.lists(st.tuples(*[numbers] * 4), min_size=1, max_size=5), st.floats(0.01, 2))
    @settings(deadline=None, derandomize=True)
    def test_the_loss_is_the_papers(self, pairs: list[tuple[float, ...]], beta: float) -> None:
        columns = [torch.tensor(c, dtype=torch.float64) for c in zip(*pairs, strict=True)]
        found = dpo_loss(*columns, beta=beta)
        for (up, down, up_before, down_before), value in zip(pairs, found.tolist(), strict=True):
            margin = beta * (up - up_before) - beta * (down - down_before)
            assert value == pytest.approx(math.log1p(math.exp(-margin)), abs=1e-9)

    def test_bad_arguments_are_named(self, model: Any, tokenizer: Any) -> None:
        one, two = torch.zeros(1), torch.zeros(2)
        with pytest.raises(ValueError, match=r"must be \[N\] = \[1\], as chosen, got \[\[2\]"):
            dpo_loss(one, two, one, one)
        with pytest.raises(ValueError, match="beta must be above 0, got 0"):
            dpo_loss(one, one, one, one, beta=0)
        with pytest.raises(ValueError, match="at least one pair, got none"):
            dpo(model, tokenizer, [])
        with pytest.raises(ValueError, match="limit at least 1, got 'all', 0"):
            preference_pairs([], pairing="all", limit=0)

    def test_pairs_are_of_unequal_rewards(self) -> None:
        groups = [
            group("a", ((10,), 0.0), ((11,), 1.0), ((12,), None), ((13,), 1.0), ((14,), 0.5)),
            group("b", ((20,), 0.0), ((21,), 0.0)),
            group("c", ((30,), 1.0)),
        ]

        def replies(**options: Any) -> list[tuple[int, int]]:
            pairs = preference_pairs(groups, **options)
            return [(p.chosen.reply[0], p.rejected.reply[0]) for p in pairs]

        assert replies() == [(11, 10)]
        every = {(11, 10), (13, 10), (14, 10), (11, 14), (13, 14)}
        assert set(replies(pairing="all")) == every
        assert len(replies(pairing="all", limit=3)) == 3
        (first, second) = replies(pairing="all", limit=2)
        assert len({*first, *second}) == 4  # no reply twice while others wait

    @pytest.mark.parametrize("length_mean", [False, True], ids=["sum", "mean"])
    def test_the_gradient_is_that_of_the_loss_however_it_is_cut(
        self, model_dir: Path, length_mean: bool
    ) -> None:
        """Against autograd through the whole loss, with replies that are in several pairs."""
        groups = [
            group("a", ((10, 1), 1.0), ((11, 12, 1), 0.0), ((13,), 0.5)),
            group("bb", ((10, 9, 8, 7), 1.0), ((11, 1), 0.0)),
        ]
        pairs = [
            replace(
                p,
                chosen=replace(p.chosen, reference=(-3.0,) * len(p.chosen.reply)),
                rejected=replace(p.rejected, reference=(-4.0,) * len(p.rejected.reply)),
            )
            for p in preference_pairs(groups, pairing="all")
        ]
        assert len(pairs) == 4
        model, _ = load_model(model_dir)

        def total(row: Row) -> torch.Tensor:
            logprobs = model(torch.tensor([[*row.prompt, *row.reply]])).logits[0].log_softmax(-1)
            at = torch.arange(len(row.prompt), len(row.prompt) + len(row.reply))
            own = logprobs[at - 1, torch.tensor(row.reply)].sum()
            return own / len(row.reply) if length_mean else own

        def before(row: Row) -> torch.Tensor:
            whole = torch.tensor(sum(row.reference))
            return whole / len(row.reply) if length_mean else whole

        four = [[total(p.chosen) for p in pairs], [total(p.rejected) for p in pairs]]
        four += [[before(p.chosen) for p in pairs], [before(p.rejected) for p in pairs]]
        loss = dpo_loss(*(torch.stack(column) for column in four), beta=0.3).mean()
        loss.backward()
        expected = gradient(model)
        for forward in (full_forward, padded_forward, shared_forward):
            for budget in (1, 1000):
                model.zero_grad()
                metrics = pairs_gradient(
                    model,
                    forward,
                    pairs,
                    beta=0.3,
                    length_mean=length_mean,
                    temperature=1.0,
                    budget=budget,
                )
                assert metrics["loss"] == pytest.approx(float(loss.detach()), rel=1e-5)
                assert torch.allclose(gradient(model), expected, atol=1e-6)

    def test_the_margin_rises_from_nothing(
        self, model: Any, tokenizer: Any, digits: Any, tmp_path: Path
    ) -> None:
        groups = digits(40, 8)(ModelPolicy(model, tokenizer, max_new_tokens=1, seed=3), 1)
        pairs = preference_pairs(groups)
        assert 10 < len(pairs) <= 40
        config = replace(SMALL, epochs=40, batch_size=16)
        rows = dpo(model, tokenizer, pairs, config, out_dir=tmp_path)
        assert rows[0]["margin"] == pytest.approx(0, abs=1e-5)  # the reference is the start
        assert rows[0]["loss"] == pytest.approx(math.log(2), abs=1e-5)
        assert rows[-1]["margin"] > 1
        assert rows[-1]["accuracy"] == 1.0
        policy = ModelPolicy(model, tokenizer, max_new_tokens=1, seed=5)
        assert evaluate(policy, digits(40, 1)).pass_at_1 > 0.6

    def test_resume_keeps_the_reference(
        self, model_dir: Path, tokenizer: Any, tmp_path: Path
    ) -> None:
        groups = [group(t, ((10, 1), 1.0), ((11, 12, 1), 0.0)) for t in ("a", "bb", "ccc")]

        def run(name: str, epochs: int, *, resume: bool = False) -> torch.Tensor:
            model, _ = load_model(model_dir)
            config = replace(SMALL, epochs=epochs, batch_size=2)
            pairs = preference_pairs(groups)
            dpo(model, tokenizer, pairs, config, out_dir=tmp_path / name, resume=resume)
            return weights(model)

        straight = run("straight", 4)
        run("halves", 2)
        assert torch.equal(run("halves", 4, resume=True), straight)
