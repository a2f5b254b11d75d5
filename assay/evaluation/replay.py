"""Take the turns of stored episodes again: some environments judge by what happens in them."""

from __future__ import annotations

from collections.abc import Sequence

from ..envs import Completion, Episode, State, Task, TextEnv
from ..verifiers import Status, Verdict

_DIVERGED = (
    "the environment does not answer these turns as it did, so they cannot be judged again: "
    "evaluate again"
)


def replayed(env: TextEnv, tasks: Sequence[Task], episodes: Sequence[Episode]) -> list[State]:
    """Replay the policy's stored turns in the episodes, side by side.

    Where the environment now says something else, or ends sooner or later, the policy would have
    gone on otherwise: such an episode has no score, which is no wrong answer.

    Args:
        env: what answers the turns.
        tasks: one for each episode.
        episodes: in each the policy took a turn.
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
