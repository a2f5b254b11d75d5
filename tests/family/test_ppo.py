"""PPO: the critic learns, advantages are its, and a run resumes to the bit."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Episode, EpisodeGroup, Span, Task
from assay.family.trainers import Critic, PPOConfig, PPOLearner
from assay.family.trainers.critic import read_values, value_gradient
from assay.family.trainers.ppo import token_rewards
from assay.grpo import (
    CheckpointError,
    GRPOConfig,
    Learner,
    TooManyUnscored,
    load_model,
    read_metrics,
)
from assay.grpo.batch import row_of
from assay.verifiers import Status, Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)


def config(**settings: Any) -> PPOConfig:
    defaults: dict[str, Any] = {
        "steps": 3,
        "prompts_per_step": 16,
        "group_size": 1,
        "max_new_tokens": 2,
        "learning_rate": 3e-3,
        "critic_learning_rate": 1e-2,
        "warmup_steps": 2,
    }
    return PPOConfig(**{**defaults, **settings})


def weights(model: Any) -> torch.Tensor:
    return torch.cat([p.detach().flatten() for p in model.parameters()])


def woken(model: Any, seed: int = 0) -> Critic:
    """A critic whose values differ from token to token."""
    critic = Critic(model)
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        critic.head.weight.normal_(generator=generator)
        critic.head.bias.fill_(0.3)
    return critic


def episode(*spans: tuple[str, tuple[int, ...]], reward: float | None, **more: Any) -> Episode:
    made = tuple(Span(who, ids, (-1.0,) * len(ids) if who == "model" else ()) for who, ids in spans)
    if reward is None:
        verdict = Verdict.fault(Status.SANDBOX_ERROR, "away")
    else:
        verdict = Verdict.wrong("", score=reward)
    return Episode("t", (), verdict, spans=made, **more)


TURNS = (
    ("environment", (5, 6)),
    ("model", (7, 8)),
    ("environment", (9, 10, 11)),
    ("model", (12,)),
)
ONE = (("environment", (5, 6)), ("model", (13,)))


@pytest.fixture
def groups() -> list[EpisodeGroup]:
    """Two turns, one turn, and one without a reward."""
    episodes = (
        episode(*TURNS, reward=0.75, step_rewards=(0.25, 0.5)),
        episode(*ONE, reward=None),
        episode(*ONE, reward=0.5, step_rewards=(0.5,)),
    )
    return [EpisodeGroup(Task("t", "", id="t"), episodes)]


class TestCritic:
    """Values of tokens."""

    def test_it_begins_at_zero_and_leaves_the_model_alone(self, model: Any) -> None:
        before = weights(model)
        critic = Critic(model)
        rows = [row_of(episode(*TURNS, reward=1.0))]
        assert read_values(critic, rows, budget=100) == [(0.0,) * 6]
        with torch.no_grad():
            for parameter in critic.parameters():
                parameter.add_(1.0)
        assert torch.equal(weights(model), before)

    def test_values_do_not_depend_on_the_cut(self, model: Any) -> None:
        critic = woken(model)
        rows = [
            row_of(episode(*TURNS, reward=1.0)),
            row_of(episode(*ONE, reward=1.0)),
            row_of(episode(("environment", (4,)), ("model", (3, 2, 7, 9)), reward=1.0)),
        ]
        alone, together = (read_values(critic, rows, budget=budget) for budget in (1, 1000))
        for mine, theirs in zip(alone, together, strict=True):
            assert mine == pytest.approx(theirs, abs=1e-5)
        first = together[0]
        assert first[2:5] == (0.0, 0.0, 0.0)  # the environment's
        hidden = critic.body(torch.tensor([[5, 6, 7, 8, 9, 10, 11]])).last_hidden_state[0]
        expected = critic.head(hidden)[[1, 2, 6], 0].tolist()
        assert [first[0], first[1], first[5]] == pytest.approx(expected, abs=1e-5)

    def test_the_gradient_does_not_depend_on_the_cut(self, model: Any) -> None:
        critic = woken(model)
        rows = [row_of(episode(*TURNS, reward=1.0)), row_of(episode(*ONE, reward=1.0))]
        given = [(0.2,) * 6, (0.4,)], [(1.0,) * 6, (0.0,)]
        found = []
        for budget in (1, 1000):
            critic.zero_grad()
            loss = value_gradient(critic, rows, *given, clip=0.2, budget=budget)
            grads = torch.cat([p.grad.flatten() for p in critic.parameters()])
            found.append((loss, grads))
        assert found[0][0] == pytest.approx(found[1][0], rel=1e-5)
        assert torch.allclose(found[0][1], found[1][1], atol=1e-5)


class TestCredit:
    """From rewards and values to advantages."""

    def credited(self, model: Any, tokenizer: Any, groups: Any, out: Path, **more: Any) -> Any:
        learner = PPOLearner(model, tokenizer, lambda *_: groups, config(**more), out)
        learner.critic = woken(model)
        return learner.credit(groups)

    def test_advantages_carry_across_the_environments_tokens(
        self, model: Any, tokenizer: Any, groups: Any, tmp_path: Path
    ) -> None:
        """Against a loop over the policy's own tokens."""
        more = {"lam": 0.5, "gamma": 0.9, "whiten_advantages": False}
        rows, values, returns = self.credited(model, tokenizer, groups, tmp_path, **more)
        assert len(rows) == 2  # the one without a reward is in no statistic
        for row, value, wanted, reward in zip(rows, values, returns, (0.75, 0.5), strict=True):
            own = [i for i, mine in enumerate(row.written) if mine]
            running, following = 0.0, 0.0
            for t in reversed(own):
                earned = reward if t == own[-1] else 0.0
                delta = earned + 0.9 * following - value[t]
                running = delta + 0.9 * 0.5 * running
                following = value[t]
                assert row.advantages[t] == pytest.approx(running, rel=1e-9)
                assert wanted[t] == pytest.approx(running + value[t], rel=1e-9)
            others = set(range(len(row.reply))) - set(own)
            assert all(row.advantages[t] == wanted[t] == 0 for t in others)

    def test_advantages_are_whitened_over_the_rollouts_tokens(
        self, model: Any, tokenizer: Any, groups: Any, tmp_path: Path
    ) -> None:
        rows, _, _ = self.credited(model, tokenizer, groups, tmp_path)
        own = [a for r in rows for a, mine in zip(r.advantages, r.written, strict=True) if mine]
        found = torch.tensor(own, dtype=torch.float64)
        assert len(own) == 4
        assert float(found.mean()) == pytest.approx(0, abs=1e-9)
        assert float(found.std()) == pytest.approx(1, abs=1e-4)

    def test_rewards_of_turns_and_the_penalty_of_tokens(self, groups: Any) -> None:
        rows = [row_of(groups[0].episodes[i]) for i in (0, 2)]
        assert token_rewards(groups, rows, config()).tolist() == [
            [0, 0, 0, 0, 0, 0.75],
            [0.5, 0, 0, 0, 0, 0],
        ]
        assert token_rewards(groups, rows, config(turn_rewards=True)).tolist() == [
            [0, 0.25, 0, 0, 0, 0.5],
            [0.5, 0, 0, 0, 0, 0],
        ]
        # log p is -1 on each token that was written; k1 = log p - log q.
        held = [replace(row, reference=(-3.0,) * len(row.reply)) for row in rows]
        penalised = config(beta=0.1, kl="k1", kl_in="reward")
        found = token_rewards(groups, held, penalised)
        assert found[0].tolist() == pytest.approx([-0.2, -0.2, 0, 0, 0, 0.55])
        bare = [EpisodeGroup(Task("t", "", id="t"), (episode(*ONE, reward=1.0),))]
        with pytest.raises(ValueError, match="an episode of task 't' has none"):
            token_rewards(bare, [rows[1]], config(turn_rewards=True))


class TestLearner:
    """The loop."""

    def test_it_learns_with_one_reply_to_a_task(
        self, model: Any, tokenizer: Any, digits: Any, tmp_path: Path
    ) -> None:
        """Ten rollouts of which each has no group with variance end no run."""
        settings = config(steps=26, prompts_per_step=48, learning_rate=6e-3)
        PPOLearner(model, tokenizer, digits(48, 1), settings, tmp_path).train()
        rows = read_metrics(tmp_path / "metrics.jsonl")[1:]
        assert rows[0]["reward"] < 0.25
        assert sum(row["reward"] for row in rows[-3:]) / 3 > 0.7
        assert all(row["ratio"] == pytest.approx(1, abs=1e-4) for row in rows)
        assert all(row["zero_variance"] == 0 for row in rows)

    def test_a_critic_that_is_taught_alone_foresees_rewards(
        self, model: Any, tokenizer: Any, digits: Any, tmp_path: Path
    ) -> None:
        """Before the second token it is known whether the first was a digit."""
        before = weights(model)
        settings = config(steps=21, prompts_per_step=96, critic_warmup=20, num_iterations=4)
        learner = PPOLearner(model, tokenizer, digits(96, 1), settings, tmp_path)
        learner.train()
        rows = read_metrics(tmp_path / "metrics.jsonl")[1:]
        assert rows[0]["value/mean"] == 0
        losses = [row["value/loss"] for row in rows]
        assert sum(losses[15:20]) < sum(losses[:5]) / 1.3
        foreseen = [row["value/explained_variance"] for row in rows]
        assert sum(foreseen[15:20]) / 5 > 0.2
        assert [row["updates"] for row in rows] == [0] * 20 + [4]
        assert rows[20]["lr"] == pytest.approx(1.5e-3)  # the first step of the policy's own warm-up
        moved = (weights(model) - before).abs().max()
        assert 0 < float(moved) < 4 * 1.6e-3  # Adam moves a weight by about its rate

    def test_it_is_the_learner_where_the_critic_says_nothing(
        self, model_dir: Path, digits: Any, tmp_path: Path
    ) -> None:
        """Values of 0, lambda 1 and no whitening leave the reward itself, as advantage="reward"."""
        shared: dict[str, Any] = {
            "steps": 1,
            "prompts_per_step": 8,
            "group_size": 4,
            "max_new_tokens": 2,
            "learning_rate": 1e-3,
            "warmup_steps": 0,
            "minibatches": 2,
            "beta": 0.1,
            "tokens_per_batch": 64,
        }
        found = []
        for kind, settings in (
            (PPOLearner, PPOConfig(**shared, whiten_advantages=False)),
            (partial(Learner, progress=False), GRPOConfig(**shared, advantage="reward")),
        ):
            model, tokenizer = load_model(model_dir)
            out = tmp_path / str(len(found))
            kind(model, tokenizer, digits(8, 4), settings, out).train()
            (row,) = read_metrics(out / "metrics.jsonl")[1:]
            found.append((weights(model), row))
        assert torch.allclose(found[0][0], found[1][0], atol=1e-7)
        for name in (
            "reward",
            "accuracy",
            "updates",
            "lr",
            "loss",
            "grad_norm",
            "ratio",
            "entropy",
        ):
            assert found[0][1][name] == pytest.approx(found[1][1][name], rel=1e-5), name
        assert found[0][1]["kl"] == pytest.approx(found[1][1]["kl"], abs=1e-7)

    def test_a_resumed_run_ends_with_the_same_bits(
        self, model_dir: Path, digits: Any, tmp_path: Path
    ) -> None:
        settings = {"num_iterations": 2, "minibatches": 2, "save_every": 1, "eval_every": 1}
        penalty = {"beta": 0.05, "kl": "k1", "kl_in": "reward"}

        def run(out: Path, steps: int, *, resume: bool = False) -> tuple[torch.Tensor, ...]:
            model, tokenizer = load_model(model_dir)
            chosen = config(steps=steps, prompts_per_step=8, group_size=2, **settings, **penalty)
            held_out = digits(5, 1)
            learner = PPOLearner(
                model, tokenizer, digits(8, 2), chosen, out, held_out=held_out, resume=resume
            )
            learner.train()
            return weights(model), weights(learner.critic)

        straight, halves = tmp_path / "straight", tmp_path / "halves"
        whole = run(straight, 3)
        run(halves, 1)
        resumed = run(halves, 3, resume=True)
        assert all(torch.equal(*pair) for pair in zip(resumed, whole, strict=True))
        assert (halves / "metrics.jsonl").read_text() == (straight / "metrics.jsonl").read_text()
        rows = read_metrics(halves / "metrics.jsonl")
        assert [row["step"] for row in rows] == [0, 1, 2, 3]
        assert all(0 <= row["held_out/pass_at_1"] <= 1 for row in rows)
        assert torch.equal(weights(load_model(halves / "model")[0]), whole[0])
        with pytest.raises(CheckpointError, match="already holds a run"):
            run(halves, 3)
        with pytest.raises(CheckpointError, match="nothing to resume"):
            run(tmp_path / "none", 3, resume=True)
        settings["num_iterations"] = 3
        with pytest.raises(
            CheckpointError, match=r"made with other settings: .*'num_iterations': 2"
        ):
            run(halves, 3, resume=True)

    def test_a_rollout_of_equal_rewards_is_seen(
        self, model: Any, tokenizer: Any, groups: Any, tmp_path: Path
    ) -> None:
        equal = [
            EpisodeGroup(g.task, tuple(e for e in g.episodes if e.reward == 0.5)) for g in groups
        ]
        PPOLearner(model, tokenizer, lambda *_: equal, config(steps=1), tmp_path).train()
        assert read_metrics(tmp_path / "metrics.jsonl")[1]["zero_variance"] == 1.0

    def test_too_many_episodes_without_a_reward_stop_it(
        self, model: Any, tokenizer: Any, groups: Any, tmp_path: Path
    ) -> None:
        lost = [EpisodeGroup(g.task, g.episodes[1:2]) for g in groups]
        learner = PPOLearner(model, tokenizer, lambda *_: lost, config(), tmp_path)
        with pytest.raises(TooManyUnscored, match="step 1: 1 of 1 episodes have no reward"):
            learner.train()


class TestConfig:
    """Settings that contradict PPO."""

    @pytest.mark.parametrize(
        ("settings", "message"),
        [
            ({"lam": 1.5}, r"lam must be in \[0, 1\], got 1.5"),
            ({"value_clip": 0.0}, "value_clip must be None or above 0, got 0.0"),
            ({"critic_learning_rate": 0.0}, "critic_learning_rate must be above 0, got 0.0"),
            ({"critic_warmup": -1}, "critic_warmup must be at least 0, got -1"),
            ({"advantage": "opo"}, "advantage='opo' has no effect on PPO"),
            ({"advantage_std": "none"}, "advantage_std='none' has no effect on PPO"),
            ({"group_size": 0}, "group_size must be at least 1, got 0"),
            ({"max_refills": 2}, "max_refills=2 has no effect on PPO"),
            ({"correction": "token_mask"}, "correction='token_mask' has no effect on PPO"),
            ({"steps": -1}, "steps must be at least 0, got -1"),
            ({"clip": 2.0}, r"clip must be in .*, got 2.0"),
        ],
    )
    def test_they_are_refused(self, settings: dict[str, Any], message: str) -> None:
        with pytest.raises(ValueError, match=message):
            config(**settings)

    def test_it_takes_its_own(self, model: Any, tokenizer: Any, tmp_path: Path) -> None:
        with pytest.raises(TypeError, match="PPO takes a PPOConfig, got GRPOConfig"):
            PPOLearner(model, tokenizer, lambda *_: [], GRPOConfig(), tmp_path)
