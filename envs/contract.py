"""The contract of every environment, which our own are tested with.

It takes a second; :func:`~assay.envs.audit.audit` takes ten and tries to be paid for
what is no answer, this one plays by the rules.
"""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from gymnasium.utils.env_checker import check_env

from ..verifiers import Verdict
from ..verifiers.exits import reraise_termination
from .audit.subject import judges_form
from .policy import Completion
from .rollout import play_to_the_end
from .state import State
from .task import Task
from .text_env import TextEnv

DEGENERATE = (
    "",
    " ",
    "I don't know",
    "0",
    "None",
    "\x00",
    "\ud800",
    "{" * 5000,
    "\\boxed{",
    "🙂" * 99,
)
"""Replies that answer nothing."""

_WRONG = "7, or not"


class ContractBroken(AssertionError):
    """An environment breaks promises. The message names each, what was found, and the remedy."""


def check(env: TextEnv, *, tasks: int = 20) -> None:
    """Hold an environment to the contract.

    Args:
        env: it is reset and stepped; what belongs to others is not touched.
        tasks: so many of its first tasks are tried.

    Raises:
        ContractBroken: it breaks a promise.
        ValueError: ``tasks`` is below 2.
    """
    if tasks < 2:
        raise ValueError(f"tasks must be at least 2, got {tasks}")
    if not isinstance(env, TextEnv):
        raise TypeError(f"check takes an environment, as make(id) gives, got {env!r:.80}")
    size = env.source.size
    some = [env.task(i) for i in range(tasks if size is None else min(tasks, size))]
    broken = []
    for promise, remedy, fault_of in _PROMISES:
        try:
            fault = fault_of(env, some)
        except (Exception, SystemExit) as error:  # the environment's own: it is the finding
            reraise_termination(error)
            fault = f"{type(error).__name__}: {error}"
        if fault:
            broken.append(f"  {promise}: {fault}\n    What to do: {remedy}.")
    if broken:
        lines = "\n".join(broken)
        raise ContractBroken(f"{env.name} breaks {len(broken)} of {len(_PROMISES)}:\n{lines}")


def _gymnasium(env: TextEnv, tasks: list[Task]) -> str:
    check_env(env, skip_render_check=True)
    return ""


def _answers(env: TextEnv, tasks: list[Task]) -> str:
    known = [task for task in tasks if env.solve(env.begin(task)) is not None]
    for state, verdict in _episodes(env, known, lambda state: env.solve(state) or ""):
        full = env.rubric.score_range[1]
        if (verdict.score, verdict.status.value) != (full, "correct"):
            subject = f"the solution of task {state.task.id!r}"
            return (
                f"{subject}, {state.reply!r:.80} in turn {len(state.step_rewards)}, {_is(verdict)}"
            )
    return ""


def _nothing(env: TextEnv, tasks: list[Task]) -> str:
    form = judges_form(env.rubric)  # "0" has content, if form alone counts
    tried = [reply for reply in DEGENERATE if not (form and reply == "0")]
    for task in tasks[:5]:
        replies = [r for r in (*tried, task.text) if r.strip() != str(task.reference)]
        found = env.rubric.verify_many(replies, [task.reference] * len(replies))
        for reply, verdict in zip(replies, found, strict=True):
            if not _earns_nothing(env, verdict):
                return f"{reply!r:.80} for task {task.id!r} {_is(verdict)}"
    return _nothing_in_turns(env, tasks[:2]) if env.max_turns > 1 else ""


def _earns_nothing(env: TextEnv, verdict: Verdict) -> bool:
    """Return whether the score is 0.0, or lower if the range allows it."""
    low, high = env.rubric.score_range
    return verdict.score is not None and (verdict.score == low or verdict.score <= 0.0 < high)


def _nothing_in_turns(env: TextEnv, tasks: list[Task]) -> str:
    """Return what is paid if every turn is the same, since more than the rubric may judge."""
    for reply in DEGENERATE:
        asked = [task for task in tasks if reply.strip() != str(task.reference)]

        def say(_: State, said: str = reply) -> str:
            return said

        for state, verdict in _episodes(env, asked, say):
            if not _earns_nothing(env, verdict):
                turns = len(state.step_rewards)
                return f"{reply!r:.80} for task {state.task.id!r}, {turns} times, {_is(verdict)}"
    return ""


def _episodes(
    env: TextEnv, tasks: list[Task], say: Callable[[State], str]
) -> Iterator[tuple[State, Verdict]]:
    """Play episodes side by side from begin to end."""
    states = [env.begin(task) for task in tasks]
    play_to_the_end(env, states, lambda going: [Completion(say(state)) for state in going])
    return zip(states, env.verdicts(states), strict=True)


def _is(verdict: Verdict) -> str:
    return f"is {verdict.status.value}, {verdict.score}, {verdict.reason}"


def _seeded(env: TextEnv, tasks: list[Task]) -> str:
    first, second = (_played(env) for _ in range(2))
    return "" if first == second else f"one seed gave {first:.200}, then {second:.200}"


def _copied(env: TextEnv, tasks: list[Task]) -> str:
    expected = _played(env)
    for how, other in (
        ("deepcopy", copy.deepcopy(env)),
        ("pickle", pickle.loads(pickle.dumps(env))),  # noqa: S301  # our own bytes
    ):
        if _played(other) != expected:
            return f"a copy made by {how} plays otherwise"
    return ""


def _played(env: TextEnv, seed: int = 11) -> str:
    """Represent an episode as text, in which NaN equals itself."""
    return repr((*env.reset(seed=seed), *env.step(_WRONG)))


def _secret(env: TextEnv, tasks: list[Task]) -> str:
    held: dict[str, int] = {}
    for place, task in enumerate(tasks):
        infos = [env.reset(options={"task": place})[1]]
        if env.max_turns == 1:
            infos.append(env.step(_WRONG)[4])
        leaves = {leaf for info in infos for leaf in _leaves(info)}
        for path, value in leaves:
            if {"reference", "solution"} & set(path.split(".")):
                return f"info has {path!r}"
            held[path] = held.get(path, 0) + (value == str(task.reference))
    several = len({str(task.reference) for task in tasks}) > 1
    given = [path for path, times in held.items() if several and times == len(tasks)]
    return f"info[{given[0]!r}] is the reference" if given else ""


def _leaves(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    if isinstance(value, Mapping):
        for key, item in value.items():
            yield from _leaves(item, f"{path}.{key}" if path else str(key))
    elif isinstance(value, list | tuple):
        for place, item in enumerate(value):
            yield from _leaves(item, f"{path}.{place}")
    else:
        yield path, str(value)


def _ends(env: TextEnv, tasks: list[Task]) -> str:
    env.reset(seed=0)
    _, reward, terminated, truncated, _ = env.step(_WRONG)
    low, high = env.rubric.score_range
    if not isinstance(reward, float) or not (low <= reward <= high or env.max_turns > 1):
        return f"a wrong reply's reward is {reward!r}, not a float from {low:g} to {high:g}"
    if env.max_turns == 1 and (terminated, truncated) != (True, False):
        return f"its one step ends terminated={terminated!r}, truncated={truncated!r}"
    return ""


Fault = Callable[[TextEnv, list[Task]], str]

_PROMISES: tuple[tuple[str, str, Fault], ...] = (
    (
        "Gymnasium's own checker passes",
        "see its message; nothing in info may depend on the clock or on global random numbers",
        _gymnasium,
    ),
    (
        "known answers earn full marks",
        "correct the rubric or the solution; if turns differ, override solve",
        _answers,
    ),
    (
        "what answers nothing earns nothing",
        "score 0 if nothing is extracted, and never leave a reply without a score",
        _nothing,
    ),
    (
        "a seed decides the task and the verdict",
        "draw only from the generator that the task is made with",
        _seeded,
    ),
    (
        "a copy in another process plays the same",
        "use functions and classes of a module, no lambdas; open files and workers on first use",
        _copied,
    ),
    (
        "the reference is not in info",
        "take it out of metadata and info: policies may see them",
        _secret,
    ),
    (
        "an episode ends as it says",
        "end a single turn with terminated=True, truncated=False; pay from 0 to 1",
        _ends,
    ),
)
