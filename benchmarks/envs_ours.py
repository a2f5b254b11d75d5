"""Ways to play our environments, each for some seconds: what benchmarks/envs.py measures."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import gymnasium
from gymnasium.vector import AutoresetMode

from assay.envs import (
    Completion,
    Generated,
    GroupVectorEnv,
    Rows,
    Task,
    TextEnv,
    make,
    play,
)
from assay.verifiers import Exact, Math, Verifier

TURN = 64
"""Episodes between two looks at the clock; and copies in a vector environment."""

Run = Callable[[float], tuple[int, float]]
"""Plays for some seconds of the processor, which others' load does not lengthen as it does those of
the clock: episodes, and the seconds it took."""

Row = dict[str, Any]


@dataclass
class Contender:
    """Something that plays episodes, and how fast it did in each round.

    Attributes:
        name: who, or how.
        judged: what judges its replies.
        run: plays.
        rates: episodes a second, by round.
    """

    name: str
    judged: str
    run: Run
    rates: list[float] = field(default_factory=list)

    @property
    def rate(self) -> float:
        """Episodes a second, the median of the rounds."""
        return statistics.median(self.rates)


def timed(one: Callable[[int], int], turn: int = TURN) -> Run:
    """Call ``one`` with 0, 1, ... for some seconds; each call says how many episodes it played."""
    calls = 0

    def run(seconds: float) -> tuple[int, float]:
        nonlocal calls
        episodes = 0
        started = time.process_time()
        while True:
            least = episodes + turn
            while episodes < least:
                episodes += one(calls)
                calls += 1
            spent = time.process_time() - started
            if spent >= seconds:
                return episodes, spent

    return run


# -- rows --------------------------------------------------------------------------------------


def sums(rows: list[Row], mark: str, rubric: Verifier, judged: str) -> list[Contender]:
    """The same sums in all ways to play them."""
    tasks = Rows([Task(r["question"], r["answer"], id=str(i)) for i, r in enumerate(rows)])
    env = TextEnv(tasks, rubric)
    name = f"bench/Sums{len(gymnasium.registry)}-v0"
    gymnasium.register(name, lambda **options: TextEnv(tasks, rubric, **options))

    def vector(size: int) -> Run:
        envs = GroupVectorEnv(env, num_envs=TURN, group_size=size)
        return timed(partial(_vector, envs, rows, mark))

    return [
        Contender("scalar", judged, timed(partial(_scalar, env, rows, mark))),
        Contender(
            "gymnasium.make", judged, timed(partial(_scalar, gymnasium.make(name), rows, mark))
        ),
        Contender("vector, 8 x 8", judged, vector(8)),
        Contender("vector, 1 x 64", judged, vector(64)),
        Contender("rollout, 8 x 8", judged, timed(partial(_played, env, rows, mark))),
    ]


def strict(rows: list[Row], mark: str) -> list[Contender]:
    """The same sums under the rubric that we would take for them."""
    ours = sums(rows, mark, Math(), "Math, our default")
    return [one for one in ours if one.name in ("scalar", "vector, 8 x 8")]


def _scalar(env: Any, rows: list[Row], mark: str, k: int) -> int:
    at = k % len(rows)
    env.reset(options={"task": at})
    row = rows[at]
    assert (env.step(row[mark])[1] == 1.0) == row["right"]
    return 1


def _vector(envs: GroupVectorEnv, rows: list[Row], mark: str, k: int) -> int:
    picked, asked = _picked(rows, envs.num_envs // envs.group_size, envs.group_size, k)
    envs.reset(options={"tasks": picked})
    check(envs.step([row[mark] for row in asked])[1].tolist(), asked)
    return len(asked)


def _played(env: TextEnv, rows: list[Row], mark: str, k: int) -> int:
    picked, asked = _picked(rows, 8, 8, k)
    groups = play(
        env,
        lambda conversations: [Completion(row[mark]) for row in asked],
        [env.task(i) for i in picked],
        8,
    )
    check([reward for group in groups for reward in group.rewards], asked)
    return len(asked)


def _picked(rows: list[Row], groups: int, size: int, k: int) -> tuple[list[int], list[Row]]:
    """Tasks, and the row that each copy answers with."""
    picked = [(k * groups + p) % len(rows) for p in range(groups)]
    return picked, [rows[i] for i in picked for _ in range(size)]


def check(rewards: Sequence[Any], rows: Sequence[Row]) -> None:
    """Every reward is what it should be."""
    assert [reward == 1.0 for reward in rewards] == [row["right"] for row in rows]


# -- made anew ---------------------------------------------------------------------------------


def made(**options: Any) -> list[Contender]:
    """Sums that are made for each episode, or for each group of eight."""
    default = make("assay/Arithmetic-v1", **options)
    same = TextEnv(default.source, Exact())
    contenders = []
    for env, judged in ((same, "text ="), (default, "Math, as the id has it")):
        contenders += [
            Contender("scalar", judged, timed(partial(_fresh, env))),
            Contender("vector, 64 x 1", judged, _fresh_vector(env, 1)),
            Contender("vector, 8 x 8", judged, _fresh_vector(env, 8)),
        ]
    return contenders


def judged_only() -> list[Contender]:
    """What a data set with a scorer does: the same sums, judged, without an episode."""
    env = TextEnv(make("assay/Arithmetic-v1").source, Exact())
    return [
        Contender("verify", "text =", timed(partial(_verified, env))),
        Contender("verify_many, 8 replies", "text =", timed(partial(_verified_many, env))),
    ]


def _fresh(env: TextEnv, k: int) -> int:
    env.reset(options={"task": k})
    assert (env.step(_reply(env._state.task.reference, k))[1] == 1.0) == (k % 2 == 0)
    return 1


def _fresh_vector(env: TextEnv, size: int) -> Run:
    envs = GroupVectorEnv(env, num_envs=TURN, group_size=size)
    groups, expected = TURN // size, [float(i % 2 == 0) for i in range(TURN)]

    def one(k: int) -> int:
        envs.reset(options={"tasks": list(range(k * groups, (k + 1) * groups))})
        states = [state for states in envs._states for state in states]
        replies = [_reply(state.task.reference, i) for i, state in enumerate(states)]
        assert envs.step(replies)[1].tolist() == expected
        return TURN

    return timed(one)


def _reply(known: str, k: int) -> str:
    """Every other time the known sum, which nothing that plays sees; else the next number."""
    return str(int(known) + 1) if k % 2 else known


def _verified(env: TextEnv, k: int) -> int:
    task = env.task(k)
    reply = _reply(task.reference, k)
    assert (env.rubric.verify(reply, task.reference).score == 1.0) == (k % 2 == 0)
    return 1


def _verified_many(env: TextEnv, k: int) -> int:
    task = env.task(k)
    replies = [_reply(task.reference, i) for i in range(8)]
    verdicts = env.rubric.verify_many(replies, [task.reference] * 8)
    assert [verdict.score for verdict in verdicts] == [1.0, 0.0] * 4
    return 8


# -- puzzles -----------------------------------------------------------------------------------


def puzzle(name: str, **options: Any) -> Contender:
    """Problems of a puzzle, each made anew, and one right reply to each."""
    env = make(f"assay/{name}-v1", **options)
    told = ", ".join(f"{option} {value}" for option, value in options.items())
    return Contender(f"{name}, {told}", "", timed(partial(_solved, env), turn=4))


def _solved(env: TextEnv, k: int) -> int:
    env.reset(options={"task": k})
    assert env._state is not None
    assert env.step(env.solve(env._state) or "")[1] == 1.0
    return 1


# -- games -------------------------------------------------------------------------------------


def games() -> list[Contender]:
    """Whole games of GuessNumber among 31 numbers, found by halving."""
    env = make("assay/GuessNumber-v1", level=2)
    wrapped = gymnasium.make("assay/GuessNumber-v1", level=2)
    judged = "the game, then text ="
    return [
        Contender("scalar", judged, timed(partial(_game, env))),
        Contender("gymnasium.make", judged, timed(partial(_game, wrapped))),
        Contender("vector, 64 x 1", judged, _games(env)),
    ]


def _game(env: Any, k: int) -> int:
    _, info = env.reset(options={"task": k})
    low, high, over = info["metadata"]["low"], info["metadata"]["high"], False
    while not over:
        guess = (low + high) // 2
        said, reward, done, cut, _ = env.step(str(guess))
        over = done or cut
        low, high = (guess + 1, high) if "higher" in said else (low, guess - 1)
    assert reward == 1.0
    return 1


def _games(env: TextEnv) -> Run:
    """Games side by side: where one ends, the next begins in the same step."""
    envs = GroupVectorEnv(env, num_envs=TURN, autoreset_mode=AutoresetMode.SAME_STEP)
    bounds = envs.reset(seed=0)[1]["metadata"]
    lows, highs = bounds["low"].tolist(), bounds["high"].tolist()

    def one(k: int) -> int:
        guesses = [(low + high) // 2 for low, high in zip(lows, highs, strict=True)]
        said, rewards, done, cut, infos = envs.step([str(guess) for guess in guesses])
        ended = (done | cut).tolist()
        for i, guess in enumerate(guesses):
            if ended[i]:
                assert rewards[i] == 1.0
                lows[i], highs[i] = (int(infos["metadata"][n][i]) for n in ("low", "high"))
            elif "higher" in said[i]:
                lows[i] = guess + 1
            else:
                highs[i] = guess - 1
        return sum(ended)

    return timed(one)


# -- size --------------------------------------------------------------------------------------


def by_size(size: int) -> list[list[Contender]]:
    """Tasks far apart, of so many: rows and made anew; alone and in groups of 1, 8 and 64."""
    rows = Rows([Task(f"{i}+1=", str(i + 1), id=str(i)) for i in range(size)])
    found = []
    for source, kind in ((rows, "rows"), (Generated(_sum, name="sums"), "made anew")):
        env = TextEnv(source, Exact())
        ways = [Contender("scalar", kind, timed(partial(_far, env, size)))]
        for group in (1, 8, 64):
            ways.append(Contender(f"groups of {group}", kind, _far_vector(env, size, group)))
        found.append(ways)
    return found


def _sum(rng: Any) -> Task:
    a = int(rng.integers(10**9))
    return Task(f"{a}+1=", str(a + 1))


def _after(question: str) -> str:
    return str(int(question.partition("+")[0]) + 1)


def _far(env: TextEnv, size: int, k: int) -> int:
    question, _ = env.reset(options={"task": k * 7_919 % size})
    assert env.step(_after(question))[1] == 1.0
    return 1


def _far_vector(env: TextEnv, size: int, group: int) -> Run:
    envs = GroupVectorEnv(env, num_envs=TURN, group_size=group)
    groups = TURN // group

    def one(k: int) -> int:
        picked = [(k * groups + p) * 7_919 % size for p in range(groups)]
        questions, _ = envs.reset(options={"tasks": picked})
        assert envs.step([_after(q) for q in questions])[1].min() == 1.0
        return TURN

    return timed(one)
