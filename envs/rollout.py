"""From tasks and a policy to groups of judged episodes."""

from __future__ import annotations

from collections.abc import Sequence

from .episode import EpisodeGroup
from .policy import Completion, ExtendingPolicy, Policy
from .state import State
from .task import Task
from .text_env import TextEnv


def rollout(
    env: TextEnv,
    policy: Policy,
    groups: int,
    group_size: int,
    *,
    first: int = 0,
    seed: int = 0,
) -> list[EpisodeGroup]:
    """Let a policy answer scheduled tasks, several times each.

    Args:
        env: what puts tasks and judges replies.
        policy: what answers.
        groups: how many tasks.
        group_size: episodes for each task.
        first: tasks scheduled before these: a learner at step s passes ``s * groups``.
        seed: of the schedule.

    Raises:
        ValueError: ``groups`` or ``group_size`` is below 1.
    """
    if groups < 1 or group_size < 1:
        raise ValueError(f"groups and group_size must be at least 1, got {groups} and {group_size}")
    indices = [env.source.schedule(first + i, seed) for i in range(groups)]
    return play(env, policy, [env.task(i) for i in indices], group_size)


def play(
    env: TextEnv, policy: Policy, tasks: Sequence[Task], group_size: int
) -> list[EpisodeGroup]:
    """Let a policy answer these tasks, ``group_size`` times each.

    Raises:
        ValueError: the policy gave another number of completions than conversations.
    """
    states = [env.begin(task) for task in tasks for _ in range(group_size)]
    going = states
    while going:
        env.advance(going, completions(policy, going))
        going = [state for state in going if not state.ended]
    return grouped(env, tasks, states)


def completions(policy: Policy, states: Sequence[State]) -> list[Completion]:
    """A policy's next turn in each episode; one that can extends the tokens it has written.

    Raises:
        ValueError: the policy gave another number of completions than conversations.
    """
    conversations = [state.messages for state in states]
    if isinstance(policy, ExtendingPolicy):
        found = list(policy.extend(conversations, [state.ids for state in states]))
    else:
        found = list(policy(conversations))
    if len(found) != len(states):
        raise ValueError(
            f"a policy answers every conversation: expected {len(states)} completions, "
            f"got {len(found)}"
        )
    return found


def grouped(env: TextEnv, tasks: Sequence[Task], states: Sequence[State]) -> list[EpisodeGroup]:
    """Judge episodes that are over in one batch and group them.

    Args:
        env: what judges.
        tasks: one for each group.
        states: the episodes of the first task, then those of the second, and so on.
    """
    group_size = len(states) // len(tasks)
    verdicts = env.verdicts(states)
    episodes = [state.episode(v) for state, v in zip(states, verdicts, strict=True)]
    return [
        EpisodeGroup(task, tuple(episodes[i * group_size : (i + 1) * group_size]))
        for i, task in enumerate(tasks)
    ]
