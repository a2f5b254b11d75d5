"""The contract finds what is planted: one fault each, and precisely that promise is named."""

import random
import threading
import time

import pytest

from assay.envs import (
    ContractBroken,
    Generated,
    Rows,
    State,
    Task,
    TextEnv,
    Turn,
    check,
    environment,
    make,
)
from assay.verifiers import Exact, Math, Status, Verdict, Verifier

TASKS = [Task(f"What is {n} + {n}?", str(2 * n), solution=str(2 * n)) for n in range(10, 40)]


class Sound(TextEnv):
    """Sums."""

    def __init__(self, tasks=TASKS, rubric=None):
        super().__init__(Rows(tasks), rubric or Math())


class DrawsAnywhere(Sound):
    """The global generator picks the task."""

    def __init__(self):
        super().__init__()
        random.seed(1)  # else it would be right by chance, once in thirty times

    def reset(self, *, seed=None, options=None):
        options = options or {"task": random.randrange(30)}  # noqa: S311
        return super().reset(seed=seed, options=options)


class CountsEpisodes(Sound):
    """The task depends on what was played before."""

    played = 0

    def reset(self, *, seed=None, options=None):
        self.played += 1
        return super().reset(seed=seed, options=options or {"task": self.played % 30})


class TellsTheTime(Sound):
    """Wall-clock in info."""

    def step(self, action):
        *found, info = super().step(action)
        return *found, info | {"at": time.perf_counter_ns()}


class CannotBeCopied(Sound):
    """A lock in the environment."""

    def __init__(self):
        super().__init__()
        self.lock = threading.Lock()


class ForgetsInTheCopy(Sound):
    """What a pickle brings back has other tasks."""

    def __setstate__(self, state):
        self.__dict__.update(state)
        self.source = Rows(TASKS[:7])


class CutsOff(Sound):
    """A single turn that is truncated."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, True, info


class NeverEnds(Sound):
    """A single turn that goes on."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, False, False, info


class PaysInNumpy(Sound):
    """Not a float."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 0, *rest


class PaysTwice(Sound):
    """More than the whole."""

    def step(self, action):
        observation, _, *rest = super().step(action)
        return observation, 2.0, *rest


class NamesTheReference(Sound):
    """The whole task in info."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed, options=options)
        return observation, info | {"row": [{"reference": self.task(0).reference}]}


class HidesTheReference(Sound):
    """The answer, under another name."""

    def __init__(self):
        super().__init__([Task(t.prompt, t.reference, metadata={"n": t.reference}) for t in TASKS])


class SolvesWrongly(Sound):
    """One of the solutions is none."""

    def __init__(self):
        wrong = Task("What is 9 + 9?", "18", solution="19")
        super().__init__([wrong, *TASKS])


class PaysSilence(Verifier):
    """A blank reply earns a little."""

    def judge(self, reply, reference):
        blank = not reply.strip()
        return Verdict.wrong("blank", score=0.1) if blank else Math().judge(reply, reference)


class LeavesNoScore(Verifier):
    """NUL is a fault of ours."""

    def judge(self, reply, reference):
        if "\x00" in reply:
            return Verdict.fault(Status.VERIFIER_ERROR, "embedded null byte")
        return Math().judge(reply, reference)


PLANTED = {
    DrawsAnywhere: ["Gymnasium's", "a seed", "a copy"],
    CountsEpisodes: ["Gymnasium's", "a seed", "a copy"],
    TellsTheTime: ["Gymnasium's", "a seed", "a copy"],
    CannotBeCopied: ["a copy"],
    ForgetsInTheCopy: ["a copy"],
    CutsOff: ["Gymnasium's", "an episode"],
    NeverEnds: ["Gymnasium's", "an episode"],
    PaysInNumpy: ["an episode"],
    PaysTwice: ["an episode"],
    NamesTheReference: ["the reference"],
    HidesTheReference: ["the reference"],
    SolvesWrongly: ["known answers"],
}


def broken(env):
    with pytest.raises(ContractBroken) as found:
        check(env)
    lines = str(found.value).splitlines()
    assert lines[0].startswith(env.name)
    assert all(line.startswith("    What to do: ") for line in lines[2::2]), lines
    return lines[1::2]


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.__name__)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's, of the same faults
def test_a_planted_fault_breaks_its_promise(kind) -> None:
    promises = broken(kind())
    assert len(promises) == len(PLANTED[kind]), promises
    for promise, expected in zip(promises, PLANTED[kind], strict=True):
        assert promise.strip().startswith(expected)


@pytest.mark.parametrize("rubric", [PaysSilence, LeavesNoScore])
def test_a_planted_verifier_breaks_its_promise(rubric) -> None:
    (promise,) = broken(Sound(rubric=rubric()))
    assert promise.startswith("  what answers nothing earns nothing: ")


def test_a_verifier_in_a_lambda_cannot_be_copied() -> None:
    @environment("planted/Lambda-v0", rubric=lambda reply, gold: reply == gold)
    def local(rng):
        n = str(rng.integers(10, 10**6))
        return Task(f"Say {n}", n)

    (promise,) = broken(make("planted/Lambda-v0"))
    assert promise.startswith("  a copy in another process plays the same: ")


def test_sound_environments_keep_it() -> None:
    check(Sound())
    check(Sound(TASKS[:3]))
    check(TextEnv(Generated(say, name="say"), Exact()))
    with pytest.raises(ValueError, match="tasks must be at least 2, got 1"):
        check(Sound(), tasks=1)


def say(rng):
    n = str(rng.integers(10, 10**6))
    return Task(f"Say the number {n}.", n)


class Doors(TextEnv):
    """Say the letters of a word, one in a turn; a wrong one ends it."""

    def __init__(self, words=("ab", "bca", "cab", "cabb")):
        tasks = [Task(f"Open {n} doors.", word, id=str(n)) for n, word in enumerate(words)]
        super().__init__(Rows(tasks), Exact(), max_turns=5)

    def begin(self, task):
        return State(task, data="")

    def respond(self, state, reply):
        state.data += reply[:1]
        going = state.task.reference.startswith(state.data) and reply[1:] == ""
        return Turn.say("open") if going and state.data != state.task.reference else Turn.end()

    def answer(self, state):
        return state.data

    def solve(self, state):
        return state.task.reference[len(state.data)]


class WalksIntoAWall(Doors):
    """Its own way does not lead there."""

    def solve(self, state):
        return "b"


class TakesTheFirstWord(Doors):
    """The solution of one turn is that of no episode."""

    def __init__(self):
        super().__init__()
        tasks = [Task(t.prompt, t.reference, t.id, solution=t.reference) for t in self.source.tasks]
        self.source = Rows(tasks)

    def solve(self, state):
        return TextEnv.solve(self, state)


class PaysAtTheEnd(Doors):
    """Who holds out wins, whatever is said: by the environment's own verdict, not the rubric's."""

    def respond(self, state, reply):
        turn = super().respond(state, reply)
        if not turn.done or state.data == state.task.reference:
            return turn
        return Turn.end(Verdict.correct()) if len(state.step_rewards) == 4 else Turn.say("closed")


class PaysNothing(Doors):
    """Silence wins in the first turn."""

    def respond(self, state, reply):
        return super().respond(state, reply) if reply.strip() else Turn.end(Verdict.correct())


class Raises(Doors):
    """What says nothing has no first letter."""

    def respond(self, state, reply):
        return super().respond(state, reply[0] + reply[1:])


@pytest.mark.parametrize(
    ("kind", "promise"),
    [
        (WalksIntoAWall, "known answers earn full marks: the solution of task '0', 'b' in turn 1"),
        (TakesTheFirstWord, "known answers earn full marks: the solution of task '0', 'ab' in"),
        (PaysAtTheEnd, "what answers nothing earns nothing: ' ' for task '0', 5 times, is correct"),
        (PaysNothing, "what answers nothing earns nothing: '' for task '0', 1 times, is correct"),
        (Raises, "what answers nothing earns nothing: IndexError"),
    ],
)
def test_episodes_of_several_turns_are_played(kind, promise) -> None:
    check(Doors())
    assert any(line.strip().startswith(promise) for line in broken(kind()))


class KnowsNoWay(Doors):
    """Nobody does."""

    def solve(self, state):
        return TextEnv.solve(self, state)


def test_what_has_no_known_way_is_not_played() -> None:
    check(KnowsNoWay())


def test_the_built_in_ones_of_several_turns_know_their_way() -> None:
    for id_ in ("assay/GuessNumber-v1", "assay/CodeRepair-v1"):
        env = make(id_)
        assert env.solve(env.begin(env.task(0)))
        env.close()
