"""Runs the adapters against the real ``verifiers``; prints what it found as JSON.

That package wants openai below 3, so it may live in a virtual environment of its own: what Assay
needs is then added behind it, from the folder that the first argument names.
"""

import asyncio
import json
import site
import sys

if len(sys.argv) > 1:
    site.addsitedir(sys.argv[1])

import verifiers.v1 as vf

from assay import Exact, Rubric, Status, Task, TextEnv, Verdict, Verifier, make
from assay.adapters import from_verifiers, to_verifiers
from assay.adapters.prime_verifiers import _trace
from assay.envs import Rows


class Data(vf.TaskData):
    """A number and its double."""

    answer: int


class Double(vf.Task[Data]):
    """Pays the right number, and a short reply."""

    @vf.reward(weight=3.0)
    async def exact(self, trace: vf.Trace) -> float:
        return float(trace.last_reply == str(self.data.answer))

    @vf.reward(weight=1.0)
    async def short(self, task, trace) -> float:
        await asyncio.sleep(0.001)
        return float(len(trace.last_reply) < 5)

    @vf.metric
    async def digits(self, trace) -> float:
        return float(sum(c.isdigit() for c in trace.last_reply))


class Doubles(vf.Taskset[Double, vf.TasksetConfig]):
    """Six questions."""

    def load(self):
        return [
            Double(
                Data(prompt=f"What is {i} + {i}?", answer=2 * i, system_prompt="A number only."),
                self.config.task,
            )
            for i in range(6)
        ]


class Breaks(Double):
    """Its judge is down."""

    @vf.reward
    async def judge(self, trace) -> float:
        raise ConnectionError("the judge is down")


class Broken(Doubles):
    """Six questions that nobody can score."""

    def load(self):
        return [Breaks(task.data, self.config.task) for task in super().load()]


class Endless(Doubles):
    """Says that it never ends."""

    INFINITE = True


class InABox(Double):
    """Its reward needs a runtime."""

    @vf.reward
    async def in_a_box(self, trace, runtime) -> float:
        return 1.0


class Boxes(Doubles):
    """Six of them."""

    def load(self):
        return [InABox(task.data, self.config.task) for task in super().load()]


class Served(Doubles):
    """Its tools are those of the whole taskset."""

    @classmethod
    def toolsets(cls, config):
        return [object()]


class Staged(Double):
    """Its rewards want a file that was put into the box before."""

    async def stage_verifier(self, trace, runtime):
        raise AssertionError


class Stages(Doubles):
    """Six of them."""

    def load(self):
        return [Staged(task.data, self.config.task) for task in super().load()]


class Rewritten(Double):
    """Pays what a hook puts in the place of the reply."""

    @vf.intercept
    def soften(self, response: vf.Response) -> vf.Response | None:
        return None


class Rewrites(Doubles):
    """Six of them."""

    def load(self):
        return [Rewritten(task.data, self.config.task) for task in super().load()]


class Seed(vf.Task[Data]):
    """Scored by an Env, from what other agents make of the reply."""


class Seeds(Doubles):
    """Six of them."""

    def load(self):
        return [Seed(task.data, self.config.task) for task in super().load()]


class Flaky(Verifier):
    """Never gives a score."""

    def judge(self, reply, reference):
        return Verdict.fault(Status.SANDBOX_ERROR, "no container")


def refused(call):
    try:
        call()
    except (TypeError, ValueError) as error:
        return str(error)
    return ""


def theirs(task, reply):
    """The package's own score of a reply."""
    trace = _trace(task, reply)
    asyncio.run(task.score(trace))
    return trace


def imported():
    """Their tasks here: our totals against theirs, over the sum of the weights."""
    taskset = Doubles(vf.TasksetConfig())
    env = from_verifiers(taskset)
    pairs = []
    for row, task in enumerate(taskset):
        for reply in (str(2 * row), "no", "a long reply", "", str(row), f"{2 * row} "):
            verdict = env.rubric.verify(reply, env.task(row).reference)
            pairs.append([verdict.score, theirs(task, reply).reward / 4.0])
    verdict = env.rubric.verify("6", {"row": 3})
    faulty = from_verifiers(Broken(vf.TasksetConfig())).rubric.verify("0", {"row": 0})
    env.reset(options={"task": 2})
    return {
        "pairs": pairs,
        "parts": dict(verdict.parts),
        "prompt": [dict(m) for m in env.task(1).messages],
        "leak": json.dumps(env.task(5).to_json()["metadata"]),
        "reward": env.step("4")[1],
        "fault": [faulty.status.value, faulty.score, faulty.reason],
        "endless": refused(lambda: from_verifiers(Endless(vf.TasksetConfig()))),
        "some": from_verifiers(Endless(vf.TasksetConfig()), size=3).source.size,
        "served": refused(lambda: from_verifiers(Served(vf.TasksetConfig()))),
        "staged": refused(lambda: from_verifiers(Stages(vf.TasksetConfig()))),
        "intercepted": refused(lambda: from_verifiers(Rewrites(vf.TasksetConfig()))),
        "unrewarded": refused(lambda: from_verifiers(Seeds(vf.TasksetConfig()))),
        "no_taskset": refused(lambda: from_verifiers(object())),
        "box": refused(lambda: from_verifiers(Boxes(vf.TasksetConfig()))),
    }


def exported():
    """Our tasks there: each reply scored by their Task.score."""
    env = make("assay/Arithmetic-v1")
    kind = to_verifiers(env, size=8, seed=1)
    tasks = list(kind(vf.TasksetConfig()))
    rubric = Rubric({"right": Exact(), "short": lambda reply, _: len(reply) < 9})
    words = to_verifiers(TextEnv(Rows([Task("Say a.", reference="a")]), rubric, name="my/Words-v0"))
    word = next(iter(words(vf.TasksetConfig())))
    flaky = to_verifiers(TextEnv(Rows([Task("q", reference="a")]), Flaky(), name="my/Flaky-v0"))
    down = next(iter(flaky(vf.TasksetConfig())))
    try:
        theirs(down, "a")
        error = ""
    except Exception as failed:
        error = f"{type(failed).__name__}: {failed.__cause__ or failed}"
    judged = theirs(word, "a")
    return {
        "name": kind.__name__,
        "keys": len({task.key for task in tasks}),
        "leak": any("reference" in task.data.model_dump_json() for task in tasks),
        "right": [theirs(t, env.task(t.data.assay_task).solution).reward for t in tasks],
        "wrong": [theirs(t, "no idea").reward for t in tasks],
        "metrics": judged.metrics,
        "info": judged.info,
        "reward": theirs(word, "b").reward,
        "error": error,
    }


def poisoned():
    """Batches of right, poisoned and wrong replies: theirs scored here, and ours scored there."""
    poisons = ["2" * 200_001, "\0" * 100_000, "\ud800", "[" * 100_000, "9" * 100_000, "NaN", ""]
    here = [reply for poison in poisons for reply in ("2", poison, "none")]
    env = from_verifiers(Doubles(vf.TasksetConfig()))
    verdicts = env.rubric.verify_many(here, [{"row": 1}] * len(here))
    kind = to_verifiers(TextEnv(Rows([Task("q", reference="2")]), Exact(), name="my/Two-v0"))
    task = next(iter(kind(vf.TasksetConfig())))
    traces = [_trace(task, reply) for reply in here]

    async def score():
        return await asyncio.gather(*map(task.score, traces), return_exceptions=True)

    errors = [repr(e) for e in asyncio.run(score()) if e is not None]
    return {
        "here": [v.parts["exact"] for v in verdicts],
        "there": [trace.reward for trace in traces],
        "errors": errors,
    }


found = {"imported": imported(), "exported": exported(), "poisoned": poisoned()}
sys.stdout.write(json.dumps(found) + "\n")
