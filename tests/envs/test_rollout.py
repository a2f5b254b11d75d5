"""From tasks and a policy to judged groups."""

import pytest

from assay.envs import (
    Completion,
    FunctionPolicy,
    Generated,
    Rows,
    Span,
    Task,
    TextEnv,
    play,
    rollout,
)
from assay.verifiers import FunctionVerifier


def equal(reply, gold):
    return reply == gold


ENV = TextEnv(Rows([Task(str(i), reference=str(i)) for i in range(5)]), FunctionVerifier(equal))
PARROT = FunctionPolicy(lambda messages: messages[-1]["content"])


def test_each_group_holds_the_episodes_of_one_task() -> None:
    groups = rollout(ENV, PARROT, groups=3, group_size=4)
    assert [len(g.episodes) for g in groups] == [4, 4, 4]
    assert len({g.task.id for g in groups}) == 3
    assert all(r == 1.0 for g in groups for r in g.rewards)
    assert groups[0].episodes[0].completion == groups[0].task.text


def test_consecutive_rollouts_walk_the_schedule() -> None:
    ids = [g.task.id for s in range(5) for g in rollout(ENV, PARROT, 1, 1, first=s, seed=9)]
    assert sorted(ids) == ["0", "1", "2", "3", "4"]


def test_tokens_of_the_policy_travel_with_the_episode() -> None:
    def policy(conversations):
        return [Completion("0", "length", (1, 2), (3,), (-0.5,)) for _ in conversations]

    (group,) = play(ENV, policy, [ENV.task(0)], 1)
    (episode,) = group.episodes
    assert episode.truncated
    assert episode.spans == (Span("environment", (1, 2)), Span("model", (3,), (-0.5,)))


def test_a_policy_must_answer_everything() -> None:
    with pytest.raises(ValueError, match="expected 2 completions, got 0"):
        play(ENV, lambda conversations: [], [ENV.task(0)], 2)


@pytest.mark.parametrize(("groups", "size"), [(0, 1), (1, 0)])
def test_empty_rollouts_are_refused(groups, size) -> None:
    with pytest.raises(ValueError, match="at least 1"):
        rollout(ENV, PARROT, groups, size)


def test_endless_sources_are_scheduled_by_counter() -> None:
    env = TextEnv(
        Generated(lambda rng: Task(str(rng.integers(10**9)), reference="x"), name="n"),
        FunctionVerifier(equal),
    )
    texts = [g.task.text for g in rollout(env, PARROT, 50, 1)]
    assert len(set(texts)) == 50
    assert texts == [g.task.text for g in rollout(env, PARROT, 50, 1)]
