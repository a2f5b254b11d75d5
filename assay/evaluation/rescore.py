"""Judge the replies of a run again, without asking for them again."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..envs import Completion, Episode, EpisodeGroup, State, Task, TextEnv
from ..envs.rollout import group_episodes
from ..lone_replies import overridden
from ..verifiers import Status, Verdict, Verifier
from .evaluate import POLICY_FAILED
from .plan import Plan, verifier_record, versions


def rescored(env: TextEnv, groups: Sequence[EpisodeGroup]) -> list[EpisodeGroup]:
    """Return groups with their episodes judged again, together.

    Where the environment does more than put a task and judge the reply, the stored turns are taken
    again. An episode in which the policy failed has no reply, and keeps its verdict.

    Args:
        env: whose rubrics judge. Its tasks are not used: references are those of the groups.
        groups: what was kept.
    """
    by_size: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        by_size.setdefault(len(group.episodes), []).append(place)
    found: dict[int, EpisodeGroup] = {p: groups[p] for p in by_size.pop(0, ())}
    for places in by_size.values():
        states = _states(env, [(groups[p].task, e) for p in places for e in groups[p].episodes])
        tasks = [groups[p].task for p in places]
        new = group_episodes(env, tasks, states, env.verdicts(states))
        found.update(zip(places, new, strict=True))
    return [found[place] for place in range(len(groups))]


def _states(env: TextEnv, played: Sequence[tuple[Task, Episode]]) -> list[State]:
    """Return the states of finished episodes, as the environment left them."""
    failed = {i: state for i, one in enumerate(played) if (state := _failed(*one))}
    rest = [i for i in range(len(played)) if i not in failed]
    tasks, episodes = [played[i][0] for i in rest], [played[i][1] for i in rest]
    again = overridden(env)
    found = _replayed(env, tasks, episodes) if again else list(map(_as_it_was, tasks, episodes))
    states = failed | dict(zip(rest, found, strict=True))
    return [states[i] for i in range(len(played))]


_DIVERGED = (
    "the environment does not answer these turns as it did, so they cannot be judged again: "
    "evaluate again"
)


def _replayed(env: TextEnv, tasks: Sequence[Task], episodes: Sequence[Episode]) -> list[State]:
    """Replay the policy's stored turns in the episodes, side by side.

    If the environment now says something else, or ends sooner or later, the policy would have gone
    on otherwise: such an episode has no score, which is no wrong answer.
    """
    states = [env.begin(task) for task in tasks]
    said = [[m["content"] for m in e.turns if m["role"] == "assistant"] for e in episodes]
    going, turn = list(range(len(states))), 0
    while going:
        completions = [
            Completion(said[i][turn], "length" if _cut_off(episodes[i], turn, said[i]) else "stop")
            for i in going
        ]
        env.advance([states[i] for i in going], completions)
        turn += 1
        going = [i for i in going if not states[i].ended and turn < len(said[i])]
    for state, episode in zip(states, episodes, strict=True):
        if not state.ended or tuple(state.turns) != episode.turns:
            state.turns, state.step_rewards = list(episode.turns), list(episode.step_rewards)
            state.ended = "truncated" if episode.truncated else "done"
            state.verdict = Verdict.fault(Status.VERIFIER_ERROR, _DIVERGED)
    return states


def _cut_off(episode: Episode, turn: int, said: Sequence[str]) -> bool:
    """Return whether the policy was stopped in mid-turn, so that the environment gave no answer."""
    last = turn == len(said) - 1
    return last and episode.truncated and episode.turns[-1]["role"] == "assistant"


def _failed(task: Task, episode: Episode) -> State | None:
    """Return an episode in which the policy failed, so that there is nothing to judge."""
    verdict = episode.verdict
    failed = verdict.score is None and verdict.reason.startswith(POLICY_FAILED)
    if not failed and any(m["role"] == "assistant" for m in episode.turns):
        return None
    state = _as_it_was(task, episode)
    state.verdict = verdict
    return state


def _as_it_was(task: Task, episode: Episode) -> State:
    state = State(task, turns=list(episode.turns), step_rewards=list(episode.step_rewards))
    state.ended = "truncated" if episode.truncated else "done"
    return state


def read_rubric(text: str) -> Verifier:
    """Read a verifier from JSON, or from a file of JSON.

    Raises:
        ValueError: it is neither, or there is no such verifier.
    """
    source = text if text.lstrip().startswith("{") else None
    if source is None:
        if not Path(text).is_file():
            raise ValueError(
                'a rubric is JSON such as {"name": "Math", "percent": "value"}, or a file of it, '
                f"got {text!r:.80}"
            )
        source = Path(text).read_text(encoding="utf-8")
    try:
        row = json.loads(source)
    except json.JSONDecodeError as error:
        raise ValueError(f"the rubric is not JSON: {error}") from error
    if not isinstance(row, Mapping):
        raise ValueError(f"a rubric is a JSON object, got {row!r:.80}")
    return Verifier.from_json(row)


def rescored_plan(
    plan: Plan,
    run: str,
    env: TextEnv,
    environment: Mapping[str, Any],
    data: Mapping[str, Any] | None = None,
) -> Plan:
    """Return the plan of a rescored run: another run's replies, possibly with new references.

    Raises:
        ValueError: a program played the run: its files and its end are not kept to be judged again.
    """
    if plan.policy.get("kind") == "agent":
        raise ValueError(f"{run} was played by a program, and is not judged again: evaluate anew")
    record = plan.to_json() | {
        "environment": dict(environment),
        "data": dict(plan.data if data is None else data),
        "verifier": verifier_record(env),
        "versions": versions(),
        "rescored_from": run,
    }
    return Plan.from_json(record)
