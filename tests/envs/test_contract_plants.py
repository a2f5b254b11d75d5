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


class Planted(Sound):
    """Sums with one fault: in the tasks, or in what ``reset`` or ``step`` gives."""

    def __init__(self, fault):
        random.seed(1)  # else the global generator would be right by chance, once in thirty times
        self.fault, self.played = fault, 0
        super().__init__(FAULTY_TASKS.get(fault, TASKS))
        if fault == "a lock in it":
            self.lock = threading.Lock()

    def __setstate__(self, state):
        self.__dict__.update(state)
        if self.fault == "a copy with other tasks":
            self.source = Rows(TASKS[:7])

    def reset(self, *, seed=None, options=None):
        self.played += 1
        if self.fault in DRAWS:
            options = options or {"task": DRAWS[self.fault](self)}
        observation, info = super().reset(seed=seed, options=options)
        if self.fault == "the whole task in info":
            info |= {"row": [{"reference": self.task(0).reference}]}
        return observation, info

    def step(self, action):
        found = super().step(action)
        return STEPS.get(self.fault, lambda *whole: whole)(*found)


DRAWS = {
    "the global generator picks the task": lambda env: random.randrange(30),  # noqa: S311
    "the task depends on what was played": lambda env: env.played % 30,
}
STEPS = {
    "the time in info": lambda *f: (*f[:4], f[4] | {"at": time.perf_counter_ns()}),
    "a single turn that is truncated": lambda *f: (*f[:2], False, True, f[4]),
    "a single turn that goes on": lambda *f: (*f[:2], False, False, f[4]),
    "not a float": lambda *f: (f[0], 0, *f[2:]),
    "more than the whole": lambda *f: (f[0], 2.0, *f[2:]),
}
FAULTY_TASKS = {
    "the answer in metadata": [
        Task(t.prompt, t.reference, metadata={"n": t.reference}) for t in TASKS
    ],
    "one solution is none": [Task("What is 9 + 9?", "18", solution="19"), *TASKS],
}
SEEN_THRICE = ["Gymnasium's", "a seed", "a copy"]
PLANTED = {
    **dict.fromkeys([*DRAWS, "the time in info"], SEEN_THRICE),
    "a lock in it": ["a copy"],
    "a copy with other tasks": ["a copy"],
    "a single turn that is truncated": ["Gymnasium's", "an episode"],
    "a single turn that goes on": ["Gymnasium's", "an episode"],
    "not a float": ["an episode"],
    "more than the whole": ["an episode"],
    "the whole task in info": ["the reference"],
    "the answer in metadata": ["the reference"],
    "one solution is none": ["known answers"],
}


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


def broken(env):
    with pytest.raises(ContractBroken) as found:
        check(env)
    lines = str(found.value).splitlines()
    assert lines[0].startswith(env.name)
    assert all(line.startswith("    What to do: ") for line in lines[2::2]), lines
    return lines[1::2]


@pytest.mark.parametrize("fault", PLANTED)
@pytest.mark.filterwarnings("ignore::UserWarning")  # Gymnasium's, of the same faults
def test_a_planted_fault_breaks_its_promise(fault) -> None:
    promises = broken(Planted(fault))
    assert len(promises) == len(PLANTED[fault]), promises
    for promise, expected in zip(promises, PLANTED[fault], strict=True):
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

    solve = TextEnv.solve


def test_what_has_no_known_way_is_not_played() -> None:
    check(KnowsNoWay())


def test_the_built_in_ones_of_several_turns_know_their_way() -> None:
    for id_ in ("assay/GuessNumber-v1", "assay/CodeRepair-v1"):
        env = make(id_)
        assert env.solve(env.begin(env.task(0)))
        env.close()
