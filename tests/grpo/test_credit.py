"""From rewards of episodes and turns to advantages of tokens."""

from __future__ import annotations

from dataclasses import replace
from math import log

import pytest

from assay.envs import Episode, EpisodeGroup, Span, Task
from assay.grpo import Row
from assay.grpo.config import Objective
from assay.grpo.credit import credit, flat_share, reads_policy, rows_of
from assay.grpo.logprobs import TokenScores
from assay.verifiers import Status, Verdict


def episode(
    reward: float | None, *turns: int, steps: tuple[float | None, ...] = (), cut: bool = False
) -> Episode:
    """Turns of so many tokens, a token of the environment between them."""
    fault = Verdict.fault(Status.SANDBOX_ERROR, "gone")
    verdict = fault if reward is None else Verdict.wrong("", score=reward)
    spans = [Span("environment", (1, 2))]
    for n in turns:
        spans += [Span("model", (3,) * n, (-1.0,) * n), Span("environment", (4,))]
    return Episode("t", (), verdict, step_rewards=steps, truncated=cut, spans=tuple(spans[:-1]))


def group(*episodes: Episode) -> list[EpisodeGroup]:
    return [EpisodeGroup(Task("?", "", id="t"), episodes)]


def advantages(groups: list[EpisodeGroup], objective: Objective) -> list[tuple[float, ...]]:
    return [row.advantages for row in credit(groups, rows_of(groups), objective)]


def test_an_outcome_is_credited_to_every_token() -> None:
    """Rewards 1 and 0: mean 0.5, deviation 0.5. The third has no reward, and no row."""
    found = advantages(
        group(episode(1.0, 3), episode(0.0, 2), episode(None, 2)), Objective(advantage_eps=0.0)
    )
    assert found == [(1.0,) * 3, (-1.0,) * 2]


def test_turns_are_credited_with_what_comes_after_them() -> None:
    """Turn rewards 1, 0 and 0, 1: mean 0.5, deviation 0.5, so normalised +1, -1 and -1, +1.

    Tokens: two of turn 1, one of the environment, one of turn 2.
    """
    groups = group(episode(1.0, 2, 1, steps=(1.0, 0.0)), episode(1.0, 2, 1, steps=(0.0, 1.0)))
    objective = Objective(advantage="process", advantage_eps=0.0)
    assert advantages(groups, objective) == [(0.0, 0.0, -1.0, -1.0), (0.0, 0.0, 1.0, 1.0)]


def test_turns_without_rewards_are_refused() -> None:
    with pytest.raises(ValueError, match="needs a reward of each turn"):
        advantages(group(episode(1.0, 2), episode(0.0, 2)), Objective(advantage="process"))


def test_a_group_is_flat_by_what_is_compared() -> None:
    """Equal totals, of turns that earned differently; and a group in which all is equal."""
    differs = group(episode(1.0, 1, 1, steps=(1.0, 0.0)), episode(1.0, 1, 1, steps=(0.0, 1.0)))
    equal = group(episode(1.0, 1, steps=(1.0,)), episode(1.0, 1, steps=(1.0,)), episode(None, 1))
    groups = differs + equal
    for advantage, share in (("process", 0.5), ("group", 1.0), ("reinforce_pp", 1.0)):
        rows = credit(groups, rows_of(groups), Objective(advantage=advantage))  # type: ignore[arg-type]  # a str
        assert flat_share(groups, rows) == share


def test_a_group_that_was_cut_off_in_its_first_turn_teaches_nothing() -> None:
    """Such episodes have no reward of a turn; that is no reason to end the run."""
    cut = group(episode(0.0, 2, cut=True), episode(0.0, 1, cut=True))
    other = group(episode(1.0, 1, steps=(1.0,)), episode(0.0, 1, steps=(0.0,)))
    objective = Objective(advantage="process", advantage_eps=0.0)
    lost = group(episode(None, 2), episode(None, 1))
    assert advantages(cut + lost + other, objective) == [(0.0,) * 2, (0.0,), (1.0,), (-1.0,)]
    assert advantages(cut, objective) == [(0.0,) * 2, (0.0,)]


def test_a_turn_without_tokens_has_a_reward_and_no_credit() -> None:
    """Rewards 1, 0 and 0, 1 as above; the first turn of the first episode is empty."""
    groups = group(episode(1.0, 0, 1, steps=(1.0, 0.0)), episode(1.0, 2, 1, steps=(0.0, 1.0)))
    objective = Objective(advantage="process", advantage_eps=0.0)
    assert advantages(groups, objective) == [(-1.0, -1.0), (0.0, 0.0, 1.0, 1.0)]


def test_rewards_of_other_turns_than_those_with_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="2 rewards and tokens of 1 turns"):
        advantages(group(episode(1.0, 2, steps=(1.0, 0.0))), Objective(advantage="process"))


@pytest.mark.parametrize(
    "objective",
    [
        Objective(beta=0.1, kl_in="reward"),
        Objective(top_entropy=0.5, correction="sequence_mask"),
        Objective(advantage="process", mask_truncated=True),
        Objective(advantage="gdpo", reward_weights={"form": 2.0}),
    ],
)
def test_a_rollout_without_any_reward_has_no_rows(objective: Objective) -> None:
    lost = replace(episode(1.0, 2), verdict=Verdict.fault(Status.SANDBOX_ERROR, "gone"))
    groups = group(lost, lost)
    rows = rows_of(groups)
    assert credit(groups, rows, objective, [] if reads_policy(objective) else None) == []
    assert flat_share(groups, rows) == 1.0


def test_turns_of_several_conversations_are_refused() -> None:
    one = episode(1.0, 2, steps=(1.0,))
    groups = group(replace(one, branches=(one.spans,)))
    with pytest.raises(ValueError, match="turns of one conversation"):
        advantages(groups, Objective(advantage="process"))


def test_a_reply_that_was_cut_off_is_compared_but_not_trained_on() -> None:
    groups = group(episode(1.0, 3), episode(0.0, 2, cut=True))
    rows = credit(groups, rows_of(groups), Objective(mask_truncated=True, advantage_eps=0.0))
    assert [r.advantages for r in rows] == [(1.0,) * 3, (0.0,) * 2]
    assert [any(r.written) for r in rows] == [True, False]


def read(rows: list[Row], logprobs: float, entropies: list[tuple[float, ...]]) -> list[TokenScores]:
    return [
        TokenScores((logprobs,) * len(r.reply), e) for r, e in zip(rows, entropies, strict=True)
    ]


def test_a_sampler_that_disagrees_is_weighed() -> None:
    """The sampler said e^-1 and the trainer twice that: weight 2. A cap of 1.5 cuts it."""
    groups = group(episode(1.0, 2), episode(0.0, 1))
    rows = rows_of(groups)
    reading = read(rows, -1.0 + log(2.0), [(0.0, 0.0), (0.0,)])
    objective = Objective(correction="token_truncate", advantage_eps=0.0)
    assert reads_policy(objective)
    found = credit(groups, rows, objective, reading)
    assert [r.advantages for r in found] == [pytest.approx((2.0, 2.0)), pytest.approx((-2.0,))]
    assert found[0].logprobs == reading[0].logprobs  # from there the ratio starts at 1
    capped = replace(objective, correction_cap=1.5)
    assert credit(groups, rows, capped, reading)[0].advantages == pytest.approx((1.5, 1.5))


def test_only_undecided_tokens_have_an_advantage() -> None:
    """A third of three tokens: the one of highest entropy in the rollout, but no masked one."""
    groups = group(episode(1.0, 2), episode(0.0, 1), episode(0.5, 1, cut=True))
    rows = rows_of(groups)
    reading = read(rows, -1.0, [(0.1, 0.9), (0.2,), (2.0,)])
    objective = Objective(top_entropy=0.34, mask_truncated=True, advantage_std="none")
    found = credit(groups, rows, objective, reading)
    assert [r.advantages for r in found] == [(0.0, 0.5), (0.0,), (0.0,)]


def test_a_penalty_in_the_reward_is_summed_over_the_reply() -> None:
    """k1 of each token is -1 + 1.5 = 0.5. Rewards 0 - 0.5 * 2 * 0.5 and 0 - 0.5 * 1 * 0.5."""
    groups = group(episode(0.0, 2), episode(0.0, 1))
    rows = [replace(r, reference=(-1.5,) * len(r.reply)) for r in rows_of(groups)]
    objective = Objective(beta=0.5, kl="k1", kl_in="reward", advantage_std="none")
    found = [r.advantages for r in credit(groups, rows, objective)]
    assert found == [(-0.125, -0.125), (0.125,)]  # of -0.5 and -0.25 less their mean
