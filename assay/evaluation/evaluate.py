"""Play tasks in fixed batches, judge each while the next is played, and store the results."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

from ..envs import Episode, EpisodeGroup, State, Task, TextEnv, grouped
from ..verifiers import Status, Verdict
from .eval_policy import EvalPolicy, GroupEvalPolicy, Request, Response, seed_of
from .run_files import RunWriter

POLICY_FAILED = "the policy failed: "
"""Prefix of the reason of an episode without a reply; judging it again changes nothing."""

Note = Callable[[Sequence[EpisodeGroup], Sequence[dict[str, Any]]], None]
Judge = Callable[[TextEnv, Sequence[EpisodeGroup]], list[EpisodeGroup]]


def evaluate(
    env: TextEnv,
    policy: EvalPolicy | GroupEvalPolicy,
    tasks: Sequence[Task],
    counts: Sequence[int],
    writer: RunWriter,
    *,
    judge: Judge | None = None,
    note: Note | None = None,
) -> None:
    """Play and judge the tasks that the run does not have yet, and add them to it.

    Batches are fixed by the plan, and nothing crosses from one to the next: a run that was killed
    and resumed equals an uninterrupted one, byte for byte, if the policy is deterministic
    (:class:`~assay.evaluation.eval_policy.EvalPolicy`) and the judge does not depend on the clock.

    Args:
        env: what puts tasks and judges replies.
        policy: what answers.
        tasks: all those of the run, also those done.
        counts: how many episodes each is to have.
        writer: destination of the groups.
        judge: judges the groups of a policy that plays whole ones; without it they are judged.
        note: called with each batch of groups and their costs once they are on disk.

    Raises:
        Exception: what the policy raises; all batches before are on disk.
    """
    size, seed = writer.plan.batch, writer.plan.seed
    judging = ThreadPoolExecutor(1, thread_name_prefix="assay-judge")
    waiting: tuple[_Batch, Future[list[EpisodeGroup]]] | None = None
    try:
        for at in range(writer.done, len(tasks), size):
            batch = _Batch(tasks[at : at + size], counts[at : at + size])
            try:
                batch.play(env, policy, seed)
            finally:  # if the policy fails, earlier batches are kept
                before, waiting = waiting, None
                if before is not None:
                    _keep(writer, *before, note)
            waiting = batch, judging.submit(batch.judge, env, judge)
        if waiting is not None:
            _keep(writer, *waiting, note)
            waiting = None
    finally:
        if waiting is not None and not waiting[1].done():
            waiting[1].cancel()
        judging.shutdown(cancel_futures=True)


def _keep(
    writer: RunWriter, batch: _Batch, judged: Future[list[EpisodeGroup]], note: Note | None
) -> None:
    groups = judged.result()
    costs = batch.costs()
    writer.add(groups, costs)
    if note is not None:
        note(groups, costs)


@dataclass
class _Playing:
    """One episode, and what it has cost."""

    state: State
    copy: int
    prompt_tokens: int = 0
    reply_tokens: int = 0
    counted: bool = True


@dataclass
class _Batch:
    """Tasks that are played together."""

    tasks: Sequence[Task]
    counts: Sequence[int]
    episodes: list[list[_Playing]] = field(default_factory=list)
    groups: list[EpisodeGroup] = field(default_factory=list)
    seconds: float = 0.0
    judging: float = 0.0

    def play(self, env: TextEnv, policy: EvalPolicy | GroupEvalPolicy, seed: int) -> None:
        """Take all turns of all episodes, side by side."""
        started = time.perf_counter()
        if isinstance(policy, GroupEvalPolicy):
            self.groups = policy.play(self.tasks, self.counts[0], seed)
            self.seconds = time.perf_counter() - started
            return
        self.episodes = [
            [_Playing(env.begin(task), copy) for copy in range(count)]
            for task, count in zip(self.tasks, self.counts, strict=True)
        ]
        going = [playing for row in self.episodes for playing in row]
        turn = 0
        while going:
            requests = [_request(playing, turn, seed) for playing in going]
            _take(env, going, policy.respond(requests))
            going = [playing for playing in going if not playing.state.ended]
            turn += 1
        self.seconds = time.perf_counter() - started

    def judge(self, env: TextEnv, judge: Judge | None) -> list[EpisodeGroup]:
        """Judge the batch; groups of one size are judged together."""
        started = time.perf_counter()
        if self.groups:
            found = judge(env, self.groups) if judge is not None else self.groups
            self.judging = time.perf_counter() - started
            return found
        groups: list[EpisodeGroup | None] = [None] * len(self.tasks)
        for size in sorted(set(self.counts)):
            places = [i for i, count in enumerate(self.counts) if count == size]
            states = [p.state for i in places for p in self.episodes[i]]
            judged = grouped(env, [self.tasks[i] for i in places], states)
            for place, group in zip(places, judged, strict=True):
                groups[place] = group
        self.judging = time.perf_counter() - started
        return [group for group in groups if group is not None]

    def costs(self) -> list[dict[str, Any]]:
        """Return a row for each task; the batch's seconds are divided equally."""
        share = 1 / len(self.tasks)
        counts: list[list[tuple[int | None, int | None]]] = [
            [(p.prompt_tokens, p.reply_tokens) if p.counted else (None, None) for p in row]
            for row in self.episodes
        ] or [[_tokens(episode) for episode in group.episodes] for group in self.groups]
        return [
            {
                "task": task.id,
                "seconds": round(self.seconds * share, 6),
                "judging_seconds": round(self.judging * share, 6),
                "prompt_tokens": [read for read, _ in row],
                "reply_tokens": [written for _, written in row],
            }
            for task, row in zip(self.tasks, counts, strict=True)
        ]


def _tokens(episode: Episode) -> tuple[int | None, int | None]:
    """Return how many tokens the policy read and wrote; what it read twice counts twice."""
    if not episode.spans:
        return None, None
    read = written = 0
    for spans in (episode.spans, *episode.branches):
        so_far = 0
        for span in spans:
            if span.author == "model":
                read, written = read + so_far, written + len(span.ids)
            so_far += len(span.ids)
    return read, written


def _request(playing: _Playing, turn: int, seed: int) -> Request:
    state = playing.state
    own = seed_of(seed, state.task.id, playing.copy, turn)
    return Request(state.task.id, playing.copy, turn, state.messages, state.ids, own)


def _take(env: TextEnv, going: Sequence[_Playing], responses: Sequence[Response]) -> None:
    """Take the policy's turn in each episode, then the environment's."""
    states, completions = [], []
    for playing, response in zip(going, responses, strict=True):
        if response.prompt_tokens is None or response.reply_tokens is None:
            playing.counted = False
        else:
            playing.prompt_tokens += response.prompt_tokens
            playing.reply_tokens += response.reply_tokens
        if response.completion is None:
            fault = Verdict.fault(Status.VERIFIER_ERROR, f"{POLICY_FAILED}{response.fault}")
            playing.state.verdict = fault
            playing.state.ended = "truncated"
        else:
            states.append(playing.state)
            completions.append(response.completion)
    env.advance(states, completions)
