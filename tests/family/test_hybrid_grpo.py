"""Several actions tried in each state: what is sampled, what it costs, and who gets the credit."""

import math
from typing import Any

import gymnasium
import numpy as np
import pytest
import torch
from torch import nn

from assay.family.trainers import gae
from assay.family.units import (
    BranchingPolicy,
    CriticCredit,
    UnitConfig,
    UnitLearner,
    Units,
    gae_estimate,
    hybrid_advantages,
    hybrid_estimate,
    state_credit,
)
from assay.grpo import Objective
from assay.grpo.advantage import group_advantages, whiten

torch.set_num_threads(1)
LENGTH = 4


class Chain(gymnasium.Env[int, int]):
    """Action 1 goes on and pays 1 at the end of the chain; action 0 stays and pays a coin toss."""

    def __init__(self) -> None:
        self.observation_space = gymnasium.spaces.Discrete(LENGTH + 1)
        self.action_space = gymnasium.spaces.Discrete(2)
        self._at = 0

    def reset(self, *, seed: int | None = None, options: Any = None) -> tuple[int, dict[str, Any]]:
        super().reset(seed=seed)
        self._at = 0
        return 0, {}

    def step(self, action: int) -> tuple[int, float, bool, bool, dict[str, Any]]:
        self._at += action
        done = self._at == LENGTH
        toss = float(self.np_random.random()) / 10
        return self._at, (float(done) if action else toss), done, False, {}

    def clone(self) -> tuple[int, Any]:
        return self._at, self.np_random.bit_generator.state

    def restore(self, clone: tuple[int, Any]) -> None:
        self._at, self.np_random.bit_generator.state = clone


def table(width: int) -> nn.Embedding:
    made = nn.Embedding(LENGTH + 1, width)
    nn.init.zeros_(made.weight)
    return made


def played(branches: int = 3, seed: int = 0, horizon: int = 7, **options: Any) -> Any:
    policy = BranchingPolicy(table(2), Chain, horizon=horizon, branches=branches, **options)
    with torch.no_grad():
        units = policy.sample(torch.tensor([0, 1]), 2, torch.Generator().manual_seed(seed))
    return policy, units


def test_an_episode_goes_on_from_the_first_action_and_each_tried_one_is_a_call() -> None:
    policy, units = played()
    trace = units.trace
    assert units.logprobs.shape == units.mask.shape == (4, 7 * 3)
    assert policy.calls == 3 * int(trace["visited"].sum())
    for b in range(4):
        at, total = 0, 0.0
        for t in range(int(trace["visited"][b].sum())):
            assert int(trace["observations"][b, t]) == at
            assert trace["next_observations"][b, t].tolist() == [
                at + a for a in trace["actions"][b, t].tolist()
            ]
            at, total = (
                at + int(trace["actions"][b, t, 0]),
                total + float(trace["rewards"][b, t, 0]),
            )
            assert bool(trace["ended"][b, t, 0]) == (at == LENGTH)
        assert float(units.outputs[b]) == pytest.approx(total)
        assert at == LENGTH or t == 6
    visited = trace["visited"][:, :, None].expand(4, 7, 3).flatten(1)
    assert torch.equal(units.mask, visited)
    assert not visited.all()  # an episode ended before the horizon
    assert units.logprobs[units.mask].tolist() == pytest.approx([-math.log(2)] * int(visited.sum()))
    assert torch.equal(policy.read(units).masked_fill(~units.mask, 0.0), units.logprobs)


def test_chance_is_drawn_anew_for_each_action_and_the_seed_decides_everything() -> None:
    _, units = played(branches=8)
    stays = (units.trace["actions"][0, 0] == 0) & units.trace["visited"][0, 0]
    tosses = units.trace["rewards"][0, 0][stays].tolist()
    assert len(set(tosses)) == len(tosses) > 1
    again = played(branches=8)[1]
    assert all(torch.equal(units.trace[name], again.trace[name]) for name in units.trace)
    other = played(branches=8, seed=1)[1]
    assert not torch.equal(units.trace["actions"], other.trace["actions"])


def test_without_branches_no_environment_is_cloned() -> None:
    class Whole(Chain):
        def clone(self) -> Any:
            raise AssertionError("cloned")

    policy = BranchingPolicy(table(2), Whole, horizon=6)
    units = policy.sample(torch.tensor([0]), 2, torch.Generator().manual_seed(0))
    assert policy.calls == int(units.trace["visited"].sum())


def test_a_return_is_what_the_action_earned_and_all_that_came_after() -> None:
    policy, units = played(to_end=True)
    trace = units.trace
    ended = trace["ended"] & trace["visited"][:, :, None]
    assert ended.any()
    assert torch.equal(trace["returns"][ended], trace["rewards"][ended])
    there = trace["visited"][:, :, None].expand_as(ended)
    assert bool((trace["returns"][there] >= trace["rewards"][there]).all())
    assert policy.calls > 3 * int(trace["visited"].sum())
    in_each = state_credit(units, {}, Objective()).view(4, 7, 3)
    for b, t in ((0, 0), (3, 2)):
        assert torch.allclose(in_each[b, t], group_advantages(trace["returns"][b, t][None])[0])
    assert (in_each[~trace["visited"]] == 0).all()
    with pytest.raises(ValueError, match="state_credit needs returns"):
        state_credit(played()[1], {}, Objective())


def test_the_hybrid_advantage_by_hand() -> None:
    rewards = torch.tensor([[[1.0, 0.0], [-2.0, 0.5]]])
    values, ahead = torch.tensor([[0.3, 0.1]]), torch.tensor([[[0.4, 9.0], [0.0, 0.2]]])
    found = hybrid_advantages(rewards, values, ahead, gamma=0.5)
    tanh = math.tanh
    assert found[0].tolist() == pytest.approx(
        [tanh(1) / 2 + 0.2 - 0.3, (tanh(-2) + tanh(0.5)) / 2 - 0.1]
    )
    each = hybrid_advantages(rewards, values, ahead, gamma=0.5, each=True)
    assert each[0, 0].tolist() == pytest.approx([tanh(1) + 0.2 - 0.3, 4.5 - 0.3])
    # What the taken action earned, and what another one did, weigh the same.
    swapped = hybrid_advantages(rewards.flip(2), values, ahead, gamma=0.5)
    assert torch.allclose(swapped, found)
    with pytest.raises(
        ValueError, match=r"\[B, T, N\] and values \[B, T\], got \[1, 2, 2\], \[1, 2"
    ):
        hybrid_advantages(rewards, values, values)


def test_ppo_is_gae_of_the_actions_taken_with_the_critics_word_where_it_was_cut_off() -> None:
    _, units = played(branches=1)
    critic = table(1)
    with torch.no_grad():
        critic.weight[:, 0] = torch.arange(LENGTH + 1) / 10.0
    credit = CriticCredit(critic, gae_estimate(gamma=0.9, lam=0.8), passes=1, learning_rate=1e-3)
    trace = units.trace
    values = critic(trace["observations"])[..., 0].detach().double()
    rewards = trace["rewards"][:, :, 0].clone()
    for b in range(4):
        last = int(trace["visited"][b].sum()) - 1
        if not trace["ended"][b, last, 0]:
            after = int(trace["next_observations"][b, last, 0])
            rewards[b, last] += 0.9 * after / 10
    visited = trace["visited"]
    by_hand, _ = gae(rewards, values, visited, gamma=0.9, lam=0.8)
    found = credit(units, {}, Objective())
    assert torch.allclose(found, whiten(by_hand, visited))
    assert (found[~units.mask] == 0).all()


def test_the_critic_learns_what_it_is_told_and_only_where_it_was() -> None:
    _, units = played(branches=2)
    critic = table(1)
    credit = CriticCredit(critic, hybrid_estimate(each=True), learning_rate=0.05, passes=20)
    with torch.no_grad():  # as the learner calls it
        for _ in range(20):
            credit(units, {}, Objective())
    values = critic.weight[:, 0].tolist()
    assert values[LENGTH] == 0.0  # nobody acts there
    assert values[LENGTH - 1] > 0.2


def test_the_hybrid_as_written_teaches_the_taken_action_and_each_teaches_all() -> None:
    _, units = played()
    for each in (False, True):
        credit = CriticCredit(table(1), hybrid_estimate(each=each))
        found = credit(units, {}, Objective()).view(4, 7, 3)
        assert (found[~units.trace["visited"]] == 0).all()
        assert bool((found[:, :, 1:] != 0).any()) == each


def test_it_learns_to_go_on_where_each_action_has_its_own_advantage() -> None:
    policy = BranchingPolicy(table(2), Chain, horizon=6, branches=3)
    credit = CriticCredit(table(1), hybrid_estimate(gamma=0.9, each=True), learning_rate=0.1)
    config = UnitConfig(steps=40, prompts_per_step=6, group_size=1, learning_rate=0.1)

    def returned(units: Units) -> dict[str, torch.Tensor]:
        return {"return": units.outputs.view(-1, 1)}

    UnitLearner(policy, lambda n, _: torch.arange(n), returned, config, credit=credit).train()
    assert float(policy.logits.weight.softmax(-1)[LENGTH - 1, 1].detach()) > 0.8


def test_bad_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="branches must be at least 1, got 0"):
        BranchingPolicy(table(2), Chain, horizon=3, branches=0)
    with pytest.raises(ValueError, match="horizon must be at least 1"):
        BranchingPolicy(table(2), Chain, horizon=0)


def test_observations_may_be_arrays() -> None:
    class Seen(Chain):
        def reset(self, **options: Any) -> Any:
            return np.eye(LENGTH + 1, dtype=np.float32)[super().reset(**options)[0]], {}

        def step(self, action: int) -> Any:
            at, *rest = super().step(action)
            return np.eye(LENGTH + 1, dtype=np.float32)[at], *rest

    policy = BranchingPolicy(nn.Linear(LENGTH + 1, 2), Seen, horizon=5, branches=2)
    units = policy.sample(torch.tensor([0]), 3, torch.Generator().manual_seed(0))
    assert units.trace["next_observations"].shape == (3, 5, 2, LENGTH + 1)
    assert policy.read(units).shape == (3, 10)
