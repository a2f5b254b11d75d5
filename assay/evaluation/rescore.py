"""Judge the replies of a run again, without asking for them again."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from ..envs import Episode, EpisodeGroup, State, Task, TextEnv
from ..envs.rollout import recorded
from ..verifiers import Verifier
from .plan import Plan, verifier_record, versions


def rescored(
    env: TextEnv, groups: Iterable[EpisodeGroup], *, batch: int = 32
) -> Iterator[tuple[EpisodeGroup, EpisodeGroup]]:
    """Each group with its episodes judged anew, after the group as it was.

    An episode in which the policy failed is no reply, and keeps its verdict.

    Args:
        env: whose rubrics judge. Its tasks are not used: references are those of the run.
        groups: what was kept.
        batch: groups judged together.

    Raises:
        ValueError: an environment of several turns judges by more than its rubric and what was
            said, so that only playing again could judge.
    """
    refuse_turns(env)
    going = iter(groups)
    while part := list(islice(going, batch)):
        yield from zip(part, _judged(env, part), strict=True)


def refuse_turns(env: TextEnv) -> None:
    """Refuse an environment that keeps more of an episode than the conversation.

    Raises:
        ValueError: it does.
    """
    own = [
        name
        for name in ("begin", "answer", "verdicts", "respond", "respond_many", "advance")
        if getattr(type(env), name) is not getattr(TextEnv, name)
    ]
    if own and env.max_turns > 1:
        raise ValueError(
            f"{env.name} judges by what happens in its turns ({', '.join(own)} are its own), not "
            "by the conversation alone: evaluate again, or rescore with --rubric"
        )


def _judged(env: TextEnv, groups: Sequence[EpisodeGroup]) -> list[EpisodeGroup]:
    by_size: dict[int, list[int]] = {}
    for place, group in enumerate(groups):
        by_size.setdefault(len(group.episodes), []).append(place)
    found: dict[int, EpisodeGroup] = {}
    for size, places in by_size.items():
        if size == 0:
            found.update((p, groups[p]) for p in places)
            continue
        states = [_state(groups[p].task, e) for p in places for e in groups[p].episodes]
        tasks = [groups[p].task for p in places]
        new = recorded(env, tasks, states, env.verdicts(states))
        found.update(zip(places, new, strict=True))
    return [found[place] for place in range(len(groups))]


def _state(task: Task, episode: Episode) -> State:
    """An episode that is over, as the environment left it."""
    state = State(task, turns=list(episode.turns), step_rewards=list(episode.step_rewards))
    state.ended = "truncated" if episode.truncated else "done"
    if not any(m["role"] == "assistant" for m in episode.turns):
        state.verdict = episode.verdict  # the policy failed; there is nothing to judge
    return state


def read_rubric(text: str) -> Verifier:
    """A verifier from JSON, or from a file of it.

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


def rescored_plan(plan: Plan, run: str, env: TextEnv, environment: Mapping[str, Any]) -> Plan:
    """The plan of a run whose replies are another's."""
    record = plan.to_json() | {
        "environment": dict(environment),
        "verifier": verifier_record(env),
        "versions": versions(),
        "rescored_from": run,
    }
    return Plan.from_json(record)
