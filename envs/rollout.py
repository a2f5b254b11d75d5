"""From tasks and a policy to groups of judged episodes."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from functools import partial
from itertools import count, islice

from ..sandbox.pool.threads import Threads
from ..verifiers import Verdict
from .episode import EpisodeGroup
from .policy import Completion, ExtendingPolicy, Policy, require_completions
from .state import State
from .task import Task
from .text_env import TextEnv


def rollout(
    env: TextEnv, policy: Policy, groups: int, group_size: int, *, first: int = 0, seed: int = 0
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
    return play(env, policy, list(scheduled(env, groups, first=first, seed=seed)), group_size)


def scheduled(
    env: TextEnv, groups: int | None = None, *, first: int = 0, seed: int = 0
) -> Iterator[Task]:
    """Yield the tasks of a schedule in order."""
    for position in count(first) if groups is None else range(first, first + groups):
        yield env.task(env.source.schedule(position, seed))


def play(
    env: TextEnv, policy: Policy, tasks: Sequence[Task], group_size: int
) -> list[EpisodeGroup]:
    """Let a policy answer these tasks, ``group_size`` times each.

    Raises:
        ValueError: the policy gave another number of completions than conversations.
    """
    states = [env.begin(task) for task in tasks for _ in range(group_size)]
    play_to_the_end(env, states, partial(completions, policy))
    return grouped(env, tasks, states)


def play_to_the_end(
    env: TextEnv, states: Sequence[State], answer: Callable[[list[State]], Sequence[Completion]]
) -> None:
    """Play episodes side by side until all have ended."""
    while going := [state for state in states if not state.ended]:
        env.advance(going, answer(going))


def stream(
    env: TextEnv,
    policy: Policy,
    tasks: Iterable[Task],
    group_size: int,
    *,
    at_once: int = 8,
    ordered: bool = False,
) -> Iterator[EpisodeGroup]:
    """Let a policy answer tasks without end, and give each group when it is judged.

    The policy takes one turn in all episodes that are going on, in one call. A group whose
    episodes are over is judged in a thread while the policy goes on with the others and with the
    tasks that take its place: no group waits for a longer one. What the policy is asked, and when,
    depends on its replies alone, never on the clock.

    Closing the iterator leaves nothing running; it waits for the judging that has begun.

    Args:
        env: what puts tasks and judges replies; it judges in one thread and responds in another.
        policy: what answers; called on the thread that iterates.
        tasks: such as those of :func:`scheduled`; they are taken as there is room for them.
        group_size: episodes for each task.
        at_once: groups that are played side by side. As many more may be waiting to be judged.
        ordered: give groups in the order of the tasks, and keep back those that are done early.

    Raises:
        ValueError: ``group_size`` or ``at_once`` is below 1, or the policy gave another number
            of completions than conversations.
    """
    if group_size < 1 or at_once < 1:
        raise ValueError(
            f"group_size and at_once must be at least 1, got {group_size} and {at_once}"
        )
    found = _played(env, policy, [_Lane(enumerate(tasks), at_once)], group_size)
    return _in_order(found) if ordered else (group for _, group in found)


def play_in_chunks(
    env: TextEnv, policy: Policy, tasks: Sequence[Task], group_size: int, *, sizes: Sequence[int]
) -> list[EpisodeGroup]:
    """Let a policy answer tasks in chunks that take turns.

    While one chunk is sampled, the replies of the others are answered in one thread and judged in
    another: on an accelerator, which leaves the processor free, all but the last are judged at no
    cost. What the policy is asked, and in which order, depends on its replies alone: the first
    turn of the first chunk, that of the second, and so on, then second turns.

    Args:
        env: what puts tasks and judges replies; it judges in one thread and responds in another.
        policy: what answers; called on this thread.
        tasks: in their order.
        group_size: episodes for each task.
        sizes: tasks of each chunk.

    Returns:
        A group for each task, in order.

    Raises:
        ValueError: the policy gave another number of completions than conversations, or the sizes
            are not those of all tasks.
    """
    if sum(sizes) != len(tasks):
        raise ValueError(f"chunks of {list(sizes)} tasks do not make {len(tasks)}")
    numbered = iter(enumerate(tasks))
    lanes = [_Lane(iter([*islice(numbered, size)]), size) for size in sizes]
    return list(_in_order(_played(env, policy, lanes, group_size)))


_Judging = tuple[list[int], "Future[list[EpisodeGroup]]"]


@dataclass
class _Lane:
    """Groups whose episodes take their turns in one call of the policy.

    Attributes:
        tasks: with their places; one is taken as soon as there is room for it.
        room: groups that are played side by side.
        playing: these, each with the place of its task.
        turn: the environment's answers to the last turn, and groups that they ended.
    """

    tasks: Iterator[tuple[int, Task]]
    room: int
    playing: list[tuple[int, list[State]]] = field(default_factory=list)
    turn: Future[_Judging | None] | None = None


def _played(
    env: TextEnv, policy: Policy, lanes: list[_Lane], group_size: int
) -> Iterator[tuple[int, EpisodeGroup]]:
    """Play lanes in turns and yield groups as they are judged, with the places of their tasks."""
    most = sum(lane.room for lane in lanes)
    judging: deque[_Judging] = deque()
    judge = Threads(1, "assay-judge")  # daemons: one that hangs must not keep the process
    answer = Threads(1, "assay-answer")

    def take(lane: _Lane, going: list[State], found: list[Completion]) -> _Judging | None:
        env.advance(going, found)
        over = [(place, states) for place, states in lane.playing if all(s.ended for s in states)]
        if not over:
            return None
        places = [place for place, _ in over]
        lane.playing = [group for group in lane.playing if group[0] not in places]
        tasks = [states[0].task for _, states in over]
        judged = [s for _, row in over for s in row]
        return places, judge.submit(partial(grouped, env, tasks, judged))

    try:
        while lanes:
            for lane in lanes:
                if lane.turn is not None and (ended := lane.turn.result()):
                    judging.append(ended)
                for place, task in islice(lane.tasks, lane.room - len(lane.playing)):
                    lane.playing.append((place, [env.begin(task) for _ in range(group_size)]))
                if lane.playing:
                    going = [s for _, states in lane.playing for s in states if not s.ended]
                    found = completions(policy, going)
                    lane.turn = answer.submit(partial(take, lane, going, found))
                else:
                    lane.turn = None
            lanes = [lane for lane in lanes if lane.turn is not None]
            # What has been judged; if judging falls behind, it is waited for.
            while judging and (
                judging[0][1].done() or sum(len(places) for places, _ in judging) > most
            ):
                yield from _taken(judging.popleft())
        while judging:
            yield from _taken(judging.popleft())
    finally:
        answer.close(cancel=True, wait=True)
        judge.close(cancel=True, wait=True)


def _taken(judged: _Judging) -> Iterator[tuple[int, EpisodeGroup]]:
    places, groups = judged
    return zip(places, groups.result(), strict=True)


def _in_order(found: Iterator[tuple[int, EpisodeGroup]]) -> Iterator[EpisodeGroup]:
    kept: dict[int, EpisodeGroup] = {}
    due = 0
    for at, group in found:
        kept[at] = group
        while due in kept:
            yield kept.pop(due)
            due += 1


def completions(policy: Policy, states: Sequence[State]) -> list[Completion]:
    """Return a policy's next turn in each episode, extending its own tokens if it can.

    Raises:
        ValueError: the policy gave more or fewer completions than conversations, or gave others.
    """
    conversations = [state.messages for state in states]
    if isinstance(policy, ExtendingPolicy):
        found = list(policy.extend(conversations, [state.ids for state in states]))
    else:
        found = list(policy(conversations))
    return require_completions(found, len(states))


def grouped(env: TextEnv, tasks: Sequence[Task], states: Sequence[State]) -> list[EpisodeGroup]:
    """Judge episodes that are over in one batch and group them, by ``env.group_rubric`` too.

    Args:
        env: what judges.
        tasks: one for each group.
        states: the episodes of the first task, then those of the second, and so on.
    """
    return group_episodes(env, tasks, states, env.verdicts(states))


def group_episodes(
    env: TextEnv, tasks: Sequence[Task], states: Sequence[State], verdicts: Sequence[Verdict]
) -> list[EpisodeGroup]:
    """Group episodes that were judged, by ``env.group_rubric`` too; arguments as above."""
    group_size = len(states) // len(tasks)
    episodes = [state.episode(v) for state, v in zip(states, verdicts, strict=True)]
    groups = []
    for i, task in enumerate(tasks):
        mine = episodes[i * group_size : (i + 1) * group_size]
        if env.group_rubric is not None:
            mine = env.group_rubric.judged(task, mine)
        groups.append(EpisodeGroup(task, tuple(mine)))
    return groups
