"""Play a rollout in chunks, so that the policy goes on while environments answer and judge.

A chunk is some tasks with all their episodes. Chunks take turns: while one is sampled, the replies
of the others are answered in one thread and judged in another. On an accelerator, whose work leaves
the processor free, the verifiers of all chunks but the last cost no time.
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import accumulate, pairwise

from ...envs import Completion, EpisodeGroup, Policy, Task, TextEnv
from ...envs.rollout import completions, grouped
from ...envs.state import State
from ..config import GRPOConfig


def play_in_chunks(
    env: TextEnv, policy: Policy, tasks: Sequence[Task], group_size: int, *, sizes: Sequence[int]
) -> list[EpisodeGroup]:
    """Let a policy answer these tasks, ``group_size`` times each.

    What the policy is asked, and in which order, depends on its replies alone, never on the clock:
    the first turn of the first chunk, that of the second, and so on, then second turns.

    Args:
        env: what puts tasks and judges replies; it judges in one thread and responds in another.
        policy: what answers; called on this thread.
        tasks: in their order.
        group_size: episodes for each.
        sizes: tasks of each chunk, such as :func:`chunk_sizes` gives.

    Returns:
        A group for each task, in order.

    Raises:
        ValueError: the policy gave another number of completions than conversations, or the sizes
            are not those of all tasks.
    """
    if sum(sizes) != len(tasks):
        raise ValueError(f"chunks of {list(sizes)} tasks do not make {len(tasks)}")
    edges = pairwise(accumulate(sizes, initial=0))
    answering = ThreadPoolExecutor(1, thread_name_prefix="assay-answer")
    judging = ThreadPoolExecutor(1, thread_name_prefix="assay-judge")
    try:
        chunks = [_Chunk(env, tasks[a:b], group_size, answering, judging) for a, b in edges]
        going = chunks
        while going:
            going = [chunk for chunk in going if chunk.take_turn(policy)]
        return [group for chunk in chunks for group in chunk.groups()]
    finally:
        answering.shutdown(cancel_futures=True)
        judging.shutdown(cancel_futures=True)


def chunk_sizes(config: GRPOConfig, tasks: int) -> list[int]:
    """Tasks of each chunk of a rollout.

    Args:
        config: ``rollout_chunks`` of them, or as many as ``rows_per_batch`` asks for.
        tasks: of the rollout.
    """
    if config.rollout_chunks:
        count = min(config.rollout_chunks, tasks)
        return [tasks * (i + 1) // count - tasks * i // count for i in range(count)]
    most = max(1, config.rows_per_batch // config.group_size)
    return [min(most, tasks - start) for start in range(0, tasks, most)]


class _Chunk:
    """Some tasks, their episodes, and what is being done about them."""

    def __init__(
        self,
        env: TextEnv,
        tasks: Sequence[Task],
        group_size: int,
        answering: ThreadPoolExecutor,
        judging: ThreadPoolExecutor,
    ) -> None:
        self._env, self._tasks = env, tasks
        self._answering, self._judging = answering, judging
        self._states = [env.begin(task) for task in tasks for _ in range(group_size)]
        self._playing: list[State] = self._states
        self._answer: Future[None] | None = None
        self._groups: Future[list[EpisodeGroup]]

    def take_turn(self, policy: Policy) -> bool:
        """The policy's next turn in all episodes that go on; ``False`` where none does."""
        if self._answer is not None:
            self._answer.result()
        if not self._playing:
            return False
        self._answer = self._answering.submit(self._take, completions(policy, self._playing))
        return True

    def groups(self) -> list[EpisodeGroup]:
        """The judged episodes, once they are over."""
        return self._groups.result()

    def _take(self, found: list[Completion]) -> None:
        self._env.advance(self._playing, found)
        self._playing = [state for state in self._playing if not state.ended]
        if not self._playing:
            self._groups = self._judging.submit(grouped, self._env, self._tasks, self._states)
