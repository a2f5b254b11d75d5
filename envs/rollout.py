"""From tasks and a policy to groups of judged episodes."""

from __future__ import annotations

from collections.abc import Sequence

from ..verifiers import Verdict
from .episode import Episode, EpisodeGroup, Span
from .policy import Completion, Policy
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
    copies = [task for task in tasks for _ in range(group_size)]
    completions = list(policy([task.messages for task in copies]))
    if len(completions) != len(copies):
        raise ValueError(
            f"a policy answers every conversation: expected {len(copies)} completions, "
            f"got {len(completions)}"
        )
    return judge(env, tasks, completions)


def judge(
    env: TextEnv, tasks: Sequence[Task], completions: Sequence[Completion]
) -> list[EpisodeGroup]:
    """Judge completions in one batch and group them.

    Args:
        env: whose rubric judges.
        tasks: one for each group.
        completions: those of the first task, then those of the second, and so on.
    """
    group_size = len(completions) // len(tasks)
    copies = [task for task in tasks for _ in range(group_size)]
    verdicts = env.rubric.verify_many(
        [c.text for c in completions], [task.reference for task in copies]
    )
    episodes = [
        episode(task, completion, verdict)
        for task, completion, verdict in zip(copies, completions, verdicts, strict=True)
    ]
    return [
        EpisodeGroup(task, tuple(episodes[i * group_size : (i + 1) * group_size]))
        for i, task in enumerate(tasks)
    ]


def episode(task: Task, completion: Completion, verdict: Verdict) -> Episode:
    """One judged reply as a record."""
    spans: tuple[Span, ...] = ()
    if completion.ids:
        spans = (
            Span("environment", tuple(completion.prompt_ids)),
            Span("model", tuple(completion.ids), tuple(completion.logprobs)),
        )
    return Episode(
        task_id=task.id,
        turns=({"role": "assistant", "content": completion.text},),
        verdict=verdict,
        truncated=completion.finish == "length",
        spans=spans,
    )
