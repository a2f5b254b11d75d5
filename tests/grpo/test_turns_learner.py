"""The learner on episodes of several turns: the policy's own tokens, and no others, are learnt."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import EpisodeGroup, Generated, State, Task, TextEnv, Turn, play
from assay.grpo import Batch, GRPOConfig, Learner, ModelPolicy, read_metrics, training_tasks
from assay.grpo.advantage import group_advantages
from assay.grpo.batch import row_of
from assay.grpo.logprobs import FORWARDS
from assay.grpo.update import accumulate_gradient
from assay.verifiers import Rubric

torch.set_num_threads(1)


class Alternate(TextEnv):
    """Say a, and when asked again b: two turns that count alike."""

    def __init__(self) -> None:
        rubric = Rubric({"first": _says(0, "a"), "second": _says(1, "b")})
        super().__init__(Generated(_draw, name="Alternate"), rubric, max_turns=2)

    def respond(self, state: State, reply: str) -> Turn:
        return Turn.end() if len(state.step_rewards) == 1 else Turn.say("!?")

    def answer(self, state: State) -> str:
        return ".".join(m["content"] for m in state.turns if m["role"] == "assistant")


def _draw(rng: Any) -> Task:
    return Task("?" * int(rng.integers(1, 9)), reference="")


def _says(turn: int, letter: str) -> Callable[[str, Any], float]:
    return lambda reply, _: float(reply.split(".")[turn : turn + 1] == [letter])


@pytest.fixture
def played(pocket: Any, monkeypatch: Any) -> tuple[Any, list[EpisodeGroup], list[Any]]:
    """A model, episodes that it played, and each prompt with what was sampled after it."""
    from assay.grpo import sampler as policy

    sampled: list[Any] = []
    real = policy.sample

    def watched(model: Any, prompts: Any, **settings: Any) -> Any:
        found = real(model, prompts, **settings)
        sampled.extend(
            (list(prompt), list(s.ids), list(s.logprobs))
            for prompt, s in zip(prompts, found, strict=True)
        )
        return found

    monkeypatch.setattr(policy, "sample", watched)
    model, tokenizer = pocket("ab!?")
    model.eval()
    env = Alternate()
    asked = ModelPolicy(model, tokenizer, max_new_tokens=6, seed=1)
    return model, play(env, asked, [env.task(i) for i in range(6)], 4), sampled


def test_spans_are_what_was_sampled_token_for_token(played: Any) -> None:
    _, groups, sampled = played
    episodes = [e for group in groups for e in group.episodes]
    assert sum(len(e.step_rewards) == 0 and len(e.turns) == 3 for e in episodes) > 3
    turns = []
    for episode in episodes:
        before: list[int] = []
        for asked, said in zip(episode.spans[::2], episode.spans[1::2], strict=True):
            assert (asked.author, said.author) == ("environment", "model")
            before += asked.ids
            turns.append((list(before), list(said.ids), list(said.logprobs)))
            before += said.ids
    assert sorted(turns) == sorted(sampled)


def test_each_turn_is_as_likely_in_the_whole_episode_as_when_it_was_sampled(played: Any) -> None:
    model, groups, _ = played
    rows = [row_of(e, 1.0) for group in groups for e in group.episodes]
    for name, forward in FORWARDS.items():
        batch = Batch.of([[row] for row in rows])
        found, _ = forward(model, batch, 1.0)
        assert torch.allclose(found, batch.old_logprobs, atol=1e-4), name


def test_tokens_of_the_environment_have_a_gradient_of_exactly_zero(played: Any) -> None:
    model, groups, _ = played
    rows = [row_of(e, 1.0) for g in groups for e in g.episodes if len(e.turns) == 3]
    hidden = []
    hook = model.model.norm.register_forward_hook(
        lambda module, given, out: (out.retain_grad(), hidden.append(out))[-1]
    )
    for row in rows:
        for name in ("padded", "full"):
            hidden.clear()
            config = GRPOConfig(group_size=2)
            accumulate_gradient(model, FORWARDS[name], [row], config)
            (states,) = hidden
            learnt = states.grad[0].abs().sum(-1) > 0  # [L], where something flows back
            written = [False] * len(row.prompt) + list(row.written)
            assert learnt.tolist()[: len(written) - 1] == written[1:]
    hook.remove()


@pytest.mark.parametrize("name", FORWARDS)
def test_the_gradient_is_that_of_the_policys_tokens_alone(played: Any, name: str) -> None:
    model, groups, _ = played
    rewards = torch.tensor([[float(len(e.turns)) for e in g.episodes] for g in groups])
    rewards[0, 0] += 1
    rows = [
        row_of(episode, float(advantage))
        for group, values in zip(groups, group_advantages(rewards), strict=True)
        for episode, advantage in zip(group.episodes, values, strict=True)
    ]
    model.zero_grad()
    accumulate_gradient(model, FORWARDS[name], rows, GRPOConfig(group_size=2))
    found = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    gain, tokens = torch.zeros(()), 0
    for row in rows:
        ids = [*row.prompt, *row.reply]
        logprobs = model(torch.tensor([ids])).logits[0].log_softmax(-1)
        for place, mine in enumerate(row.written, start=len(row.prompt)):
            if mine:
                gain = gain + row.advantages[0] * logprobs[place - 1, ids[place]]
                tokens += 1
    (-gain / tokens).backward()
    for mine, theirs in zip(found, model.parameters(), strict=True):
        assert torch.allclose(mine, theirs.grad, atol=1e-5)


def test_an_episode_ends_where_the_model_has_no_room_for_another_turn(pocket: Any) -> None:
    """As it stands: it is scored, and its tokens are those of the turns before."""
    model, tokenizer = pocket("ab!?")
    model.config.max_position_embeddings = 15  # a prompt of 8 and a reply of 6, and one more
    env = Alternate()
    asked = ModelPolicy(model.eval(), tokenizer, max_new_tokens=6, seed=1)
    groups = play(env, asked, [env.task(i) for i in range(6)], 4)
    episodes = [e for group in groups for e in group.episodes]
    cut = [e for e in episodes if e.truncated and len(e.spans) == 2 and len(e.turns) == 2]
    assert len(cut) > 3
    assert all(e.reward in (0.0, 0.5) and len(row_of(e).reply) <= 6 for e in cut)
    assert any(len(e.spans) == 4 for e in episodes)
    lone = [play(env, asked, [env.task(i)], 1)[0].episodes[0] for i in range(6)]
    assert any(e.truncated and len(e.spans) == 2 for e in lone)  # and the batch was empty
    model.config.max_position_embeddings = 6
    with pytest.raises(ValueError, match="more than the 6 positions"):  # in the first turn
        play(env, ModelPolicy(model, tokenizer, max_new_tokens=6), [env.task(0)], 2)


def test_the_learner_learns_to_take_two_turns(pocket: Any, tmp_path: Path) -> None:
    model, tokenizer = pocket("ab!?")
    config = GRPOConfig(
        steps=20,
        prompts_per_step=4,
        group_size=16,
        max_new_tokens=6,
        learning_rate=0.03,
        warmup_steps=2,
    )
    rollout = training_tasks(Alternate(), config)
    Learner(model, tokenizer, rollout, config, tmp_path, progress=False).train()
    rows = read_metrics(tmp_path / "metrics.jsonl")[1:]
    rewards = [row["reward"] for row in rows]
    assert sum(rewards[:3]) / 3 < 0.3
    assert sum(rewards[-3:]) / 3 > 0.8
    assert {"reward/first", "reward/second"} <= set(rows[-1])
    assert all(row["ratio"] == pytest.approx(1, abs=1e-3) for row in rows if row["ratio"])
