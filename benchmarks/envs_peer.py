"""One worker of another library, run by an interpreter that has it: episodes for some seconds.

    python -P envs_peer.py NAME WORK.json

``WORK.json`` holds rows of question, answer, replies by mark, and whether these are right. Reads
lines, each a number of seconds of the processor; plays episodes for so long and answers with
a line of JSON: how many, in how many seconds, and how many of them were judged otherwise than they
should be. What a user would do once is done before the first answer, so that it is not timed.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

Play = Callable[[int], bool]
"""Plays the episode of a row; whether it earned full marks."""


def skyrl_gym(rows: list[dict[str, Any]]) -> Play:
    """A new environment for each episode, which is the only way it has."""
    import skyrl_gym

    def play(row: int) -> bool:
        known = {"reward_spec": {"ground_truth": rows[row]["answer"]}}
        env = skyrl_gym.make("gsm8k", extras=known)
        env.init([{"role": "user", "content": rows[row]["question"]}])
        return bool(env.step(rows[row]["hash"])["reward"] == 1.0)

    return play


def skyrl_gym_bare(rows: list[dict[str, Any]]) -> Play:
    """The same class without ``make``, which looks the id up and copies what it is given."""
    from skyrl_gym.envs.gsm8k.env import GSM8kEnv

    def play(row: int) -> bool:
        env = GSM8kEnv(extras={"reward_spec": {"ground_truth": rows[row]["answer"]}})
        env.init([{"role": "user", "content": rows[row]["question"]}])
        return bool(env.step(rows[row]["hash"])["reward"] == 1.0)

    return play


def reasoning_gym(rows: list[dict[str, Any]], replies: int = 1) -> Play:
    """Sums of two numbers of two digits, one made for each so many replies."""
    import reasoning_gym

    data = reasoning_gym.create_dataset(
        "basic_arithmetic",
        min_terms=2,
        max_terms=2,
        min_digits=1,
        max_digits=2,
        operators=["+"],
        allow_parentheses=False,
        allow_negation=False,
        seed=0,
        size=10**9,
    )
    at, entry = iter(range(10**9)), data[0]

    def play(row: int) -> bool:
        nonlocal entry
        if row % replies == 0:
            entry = data[next(at)]
        reply = entry["answer"] if rows[row]["right"] else str(int(entry["answer"]) + 1)
        return bool(data.score_answer(reply, entry) == 1.0)

    return play


def gem(rows: list[dict[str, Any]], *, use_mp: bool = True) -> Play:
    """Its verifier in a process of its own, as it comes, or in this one, under an alarm."""
    from datasets import Dataset
    from gem.envs.math_env import MathEnv

    data = Dataset.from_list([{"problem": r["question"], "answer": r["answer"]} for r in rows])
    env = MathEnv(dataset=data, use_mp=use_mp, eval=True)

    def play(row: int) -> bool:
        env.reset(idx=row)
        return bool(env.step(rows[row]["boxed"])[1] == 1.0)

    return play


def verifiers(rows: list[dict[str, Any]]) -> Play:
    """``Task.score`` with the text of the box against the answer."""
    from verifiers.v1 import extract_boxed_answer

    return _verifiers(rows, lambda reply, answer: float(extract_boxed_answer(reply) == answer))


def verifiers_math(rows: list[dict[str, Any]]) -> Play:
    """``Task.score`` with the library's own Math-Verify reward."""
    from verifiers.v1 import verify_boxed_math_answer

    return _verifiers(rows, lambda reply, answer: float(verify_boxed_math_answer(reply, answer)))


def _verifiers(rows: list[dict[str, Any]], reward: Callable[[str, str], float]) -> Play:
    import verifiers.v1 as vf

    class Data(vf.TaskData):
        answer: str

    class Sum(vf.Task[Data]):
        @vf.reward
        async def accuracy(self, trace: vf.Trace) -> float:
            return reward(trace.last_reply, self.data.answer)

    tasks = [Sum(Data(idx=i, prompt=r["question"], answer=r["answer"])) for i, r in enumerate(rows)]
    agent = vf.AgentInfo(config=vf.AgentConfig())
    loop = asyncio.new_event_loop()

    async def score(row: int) -> bool:
        task = tasks[row]
        record = vf.TraceTask(type="Sum", data=task.data)
        trace = vf.Trace(task=record, agent=agent, root_reply=rows[row]["boxed"])
        await task.score(trace)
        return bool(trace.reward == 1.0)

    return lambda row: loop.run_until_complete(score(row))


def openenv(rows: list[dict[str, Any]]) -> Play:
    """An environment in ten lines by its own base classes; no server."""
    from openenv.core.env_server.interfaces import Environment
    from openenv.core.env_server.types import Action, Observation, State
    from openenv.core.rubrics import Rubric

    class Reply(Action):  # type: ignore[misc]  # the library is not installed where types are checked
        text: str

    class Question(Observation):  # type: ignore[misc]  # as above
        text: str = ""

    class Accuracy(Rubric):  # type: ignore[misc]  # as above
        def forward(self, action: Any, observation: Any) -> float:
            return float(action.text.strip() == observation.metadata["answer"])

    class Sums(Environment):  # type: ignore[misc]  # as above
        def __init__(self) -> None:
            super().__init__(rubric=Accuracy())
            self._state = State(episode_id="", step_count=0)

        def reset(self, seed: int | None = None, episode_id: str | None = None, **_: Any) -> Any:
            self.row = rows[seed or 0]
            return Question(text=self.row["question"], done=False, reward=0.0)

        def step(self, action: Any, **_: Any) -> Any:
            seen = Question(done=True, metadata={"answer": self.row["answer"]})
            seen.reward = self._apply_rubric(action, seen)
            return seen

        @property
        def state(self) -> Any:
            return self._state

    env = Sums()

    def play(row: int) -> bool:
        env.reset(seed=row)
        return bool(env.step(Reply(text=rows[row]["bare"])).reward == 1.0)

    return play


def textarena(rows: list[dict[str, Any]]) -> Play:
    """A single-turn environment in ten lines by its own base classes."""
    import textarena as ta

    class Sums(ta.Env):  # type: ignore[misc]  # the library is not installed where types are checked
        at = 0

        def reset(self, num_players: int, seed: int | None = None) -> None:
            self.state = ta.SinglePlayerState(num_players=num_players, seed=seed, max_turns=1)
            self.state.reset(game_state=rows[self.at], player_prompt_function=self._prompt)

        def _prompt(self, player_id: int, game_state: dict[str, Any]) -> str:
            return str(game_state["question"])

        def step(self, action: str) -> Any:
            kind = ta.ObservationType.PLAYER_ACTION
            self.state.add_observation(message=action, observation_type=kind, from_id=0)
            right = action.strip() == self.state.game_state["answer"]
            self.state.set_outcome(reward=int(right), reason="right" if right else "wrong")
            return self.state.step()

    env = Sums()

    def play(row: int) -> bool:
        env.at = row
        env.reset(num_players=1)
        env.get_observation()
        env.step(rows[row]["bare"])
        return bool(env.close()[0][0] == 1)

    return play


PEERS: dict[str, Callable[[list[dict[str, Any]]], Play]] = {
    "skyrl-gym": skyrl_gym,
    "skyrl-gym, class without make": skyrl_gym_bare,
    "reasoning-gym": reasoning_gym,
    "reasoning-gym, 8 replies": partial(reasoning_gym, replies=8),
    "gem": gem,
    "gem, signal": partial(gem, use_mp=False),
    "verifiers": verifiers,
    "verifiers, math": verifiers_math,
    "openenv": openenv,
    "textarena": textarena,
}


def turn(
    play: Play,
    rows: list[dict[str, Any]],
    seconds: float,
    clock: Callable[[], float] = time.process_time,
) -> dict[str, Any]:
    """Play for so long; a clock is read after every eighth episode."""
    episodes = unlike = 0
    started = clock()
    while True:
        for row in range(episodes % len(rows), min(episodes % len(rows) + 8, len(rows))):
            unlike += play(row) != rows[row]["right"]
            episodes += 1
        spent = clock() - started
        if spent >= seconds:
            return {"episodes": episodes, "seconds": spent, "unlike": unlike}


def main(name: str, work: str) -> None:
    """Answer until the input ends. What the library itself prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    logging.disable(logging.WARNING)
    with open(work) as file:
        rows = json.load(file)
    play: Play | None = None
    # GEM judges in a process of its own: what this one takes would not tell.
    clock = time.perf_counter if name == "gem" else time.process_time
    for line in sys.stdin:
        try:
            if play is None:
                play = PEERS[name](rows)
                turn(play, rows, 0.0)
            answer = turn(play, rows, float(line), clock)
        except Exception as error:
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
