"""What the tests of evaluation share: a command line, a browser, and a run to browse."""

import importlib.util
import os
from pathlib import Path

import pytest

MINE = '''
import functools
import random

from assay import Completion, Math, Task, environment
from assay.envs import Rows, State, TextEnv, Turn
from assay.verifiers import Verdict

def sums(messages):
    a, b = messages[-1]["content"].removesuffix("=").split("+")
    return f"\\\\boxed{{{int(a) + int(b)}}}"

def careless(messages, seed):
    rng = random.Random(seed)
    return sums(messages) if rng.random() < 0.5 else "\\\\boxed{0.5}"

class Batched:
    """Answers a batch; its length shows in the reply."""

    def __call__(self, conversations):
        return [Completion(sums(c), finish="length") for c in conversations]

def patient(messages):
    return sums(messages[:1])

def silent(messages):
    return None

class Texts:
    def __call__(self, conversations):
        return ["1"] * len(conversations)

class Someone:
    def reply(self, messages):
        return sums(messages)

bound = Someone().reply
bent = functools.partial(sums)

def torn(messages):
    return "\\ud800 \\x00 \\u2028 </script>"

def broken(messages):
    raise RuntimeError("the policy is out of order")

async def later(messages):
    return ""

class Twice(TextEnv):
    """Asks again."""

    def respond(self, state, reply):
        return Turn.say("Sure?") if len(state.turns) < 2 else Turn.end()

def twice():
    return Twice(Rows([Task("1+1=", "2"), Task("2+2=", "4")]), Math(), max_turns=3)

class Sworn(TextEnv):
    """Knows better than its rubric: the reply must be a promise."""

    def respond(self, state, reply):
        return Turn.end(Verdict.correct() if reply == "yes" else Verdict.wrong("no promise"))

def sworn():
    return Sworn(Rows([Task("Swear", "x"), Task("Promise", "y")]), Math())

def yes(messages):
    return "yes"

from assay import register
register("mine/Twice-v0", twice)
register("mine/Sworn-v0", sworn)
'''


def _load(path: Path):
    spec = importlib.util.spec_from_file_location(path.stem + "_for_tests", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="session")
def demo():
    """Makes runs with long replies: what the benchmark browses."""
    return _load(Path(__file__).parents[3] / "benchmarks" / "view.py")


@pytest.fixture(scope="module")
def page():
    """A headless browser; skipped where there is none, unless ASSAY_REQUIRE_CHROMIUM is 1."""
    pytest.importorskip("websockets")
    headless = _load(Path(__file__).parent / "headless.py")
    if headless.browser_path() is None:
        if os.environ.get("ASSAY_REQUIRE_CHROMIUM") == "1":
            pytest.fail("no Chromium is installed")
        pytest.skip("no Chromium is installed")
    browser = headless.Headless()
    yield browser
    browser.close()


@pytest.fixture
def mine():
    return "mine_for_eval", MINE
