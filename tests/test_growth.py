"""Every reader of replies and of program output takes a time in proportion to the text's length.

Readers are found by introspection, so that a new one is timed too: verifiers by their examples,
environments by their ids, instructions by their registry, functions by their first parameter.
Each is timed by growth and not in seconds: what takes no time to speak of at FIRST characters
passes; all else may take at most STEEPEST times as long on four times the text.
"""

import contextlib
import functools
import gc
import inspect
import json
import re
import time
from itertools import chain

import pytest

from assay.adapters import openrlhf
from assay.envs import make, specs
from assay.envs.tools.calls import read_calls
from assay.sandbox import Limits, problem_from_row
from assay.sandbox.backends.slot import Reply
from assay.sandbox.grading import checks, compare
from assay.sandbox.grading.prompt import assemble_program
from assay.sandbox.result import Result, RunStatus
from assay.service import schemas, websocket
from assay.verifiers import Code, Math
from assay.verifiers.catalogue import examples
from assay.verifiers.form.call_text import WAYS
from assay.verifiers.instructions import CONSTRAINTS
from assay.verifiers.judges.grammar import Grammar
from assay.verifiers.judges.judge_reference import shown_part
from assay.verifiers.judges.prompt import fill_template
from assay.verifiers.maths.worker import WorkerLimits

FIRST, STEEPEST, TRIES = 2**12, 4**1.5, 12
NO_TIME_S = 0.001
BARE, ALL = ("", ""), (0, 1)
USUAL = [(r"\boxed{", "}"), ("<answer>", "</answer>"), ("```\n", "\n```"), ("The answer is ", "")]
LETTERS = [
    "0", "1,", "1e5 ", "-", ".", "a", "a a ", "a b. ", "A) ", "\\", "\\(", "\\text{", "\\frac{1}{",
    "\\boxed{", "\\boxed{7} ", "{", "[", "[[1],", "(", "$", "$1", "^{", "*", "**", "`", "```\n",
    "#", "| a |\n", '"', '{"a":', "<", "<a>", "</a>", "<!--", "<think>", "<answer>", "<tool_call>",
    "</s>", " ", "\n", " \n", "\u200b", "the answer is 7. ", "not ", "[1] ", "1. a\n", "e\u0301",
    "\u0301", "漢字。", "²", "(select ", "/*", "=x", "f(",
]  # fmt: skip
HALVES = [("(", ")"), ("{", "}"), ("[", "]"), ("\\boxed{", "}"), ("<a>", "</a>"), ("0", "x"),
          (" ", "x"), ("<think>", "</think>")]  # fmt: skip


def run(size, *letters):
    return "".join(part * (size // len(letters) // len(part)) for part in letters)


def one_hash(size):
    """Numbers that a hash table puts into one place, and so compares each with all."""
    return " ".join(str(k * (2**61 - 1)) for k in range(1, size // 22))


TEXTS = {
    **{repr(text): lambda size, text=text: run(size, text) for text in LETTERS},
    **{repr(pair): lambda size, pair=pair: run(size, *pair) for pair in HALVES},
    "numbers of one hash": one_hash,
}


def verifiers(_):
    """Each verifier: the examples of a class share the texts."""
    for kind in {example.name: None for example in examples()}:
        cases = [example for example in examples() if example.name == kind]
        for number, example in enumerate(cases):
            verifier, winner = example.verifier, example.wins[0]
            if isinstance(verifier, Math):
                verifier = Math(limits=WorkerLimits(cpu_s=0.1), extract=verifier.extract)
            judge = verifier.program if isinstance(verifier, Code) else verifier.verify
            middle = len(winner) // 2
            frames = [BARE, (winner, ""), (winner[:middle], winner[middle:]), *USUAL]
            read = functools.partial(judge, reference=example.reference)
            yield f"{kind} {number}", read, frames, (number, len(cases))


def environments(_):
    """A turn of each environment that needs nothing; four neighbours share the texts."""
    for number, spec in enumerate(s for s in specs() if s.namespace == "assay"):
        if spec.needs == "nothing":
            env = make(spec)

            def turn(text, env=env):
                env.reset(seed=0)
                env.step(text)

            yield spec.id, turn, [BARE, *USUAL], (number % 4, 4)


def functions(modules):
    """Public functions of a text and no more, of the folders that read untrusted text."""
    packages = (
        "assay.verifiers", "assay.sandbox.grading.compare", "assay.sandbox.redaction",
        "assay.envs.tools.code_repair", "assay.envs.puzzles.guess_number",
        "assay.envs.trl.tools",
        "assay.adapters.openrlhf", "assay.adapters.reasoning_gym_judges",
    )  # fmt: skip
    for module in chain.from_iterable(map(modules, packages)):
        if not module.__name__.endswith(".symbolic"):  # the worker's side
            for name, value in vars(module).items():
                function = inspect.unwrap(value) if callable(value) else value
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    first, *rest = [*inspect.signature(function).parameters.values(), None]
                    alone = all(p is None or p.default is not p.empty or p.kind > 2 for p in rest)
                    takes = first is not None and str(first.annotation).startswith("str")
                    if takes and alone and not name.startswith("_"):
                        yield f"{module.__name__}.{name}", function, [BARE], ALL


def instructions(_):
    values = (3, "sea", ["sea"], "less than", "en", "q", 1, 90, "a sea of rain", "one/two")
    for name, constraint in CONSTRAINTS.items():
        needed = {n: r for n, r in constraint.rules.items() if n not in constraint.optional}
        given = {n: next(v for v in values if r.holds(v)) for n, r in needed.items()}
        yield name, functools.partial(constraint.check, **given), [BARE, ("The sea. ", " So.")], ALL


def printed(text):
    data = text.encode("utf-8", "surrogatepass")
    return Reply("exit", (0, 0), "", 0, 0, 0, False, 0, True, (data, data, data))


def stdio(text, tolerance):
    ran = Result(RunStatus.OK, stdout=text)
    return checks.stdio_check(lambda _: ran, [("", text[::-1])], tolerance=tolerance)


def calls(text, form):
    line = form.replace("TEXT", text.replace(" ", ", ") if "set" in form else text)
    return checks.calls_check(
        printed(line), Limits(), [((1,), set(range(len(text.split()))))], 1e-6
    )


def in_a_message(text):
    body = {"replies": [text], "tasks": [0]}
    return schemas.Score.model_validate(websocket.parse_message(json.dumps(body)))


def others(_):
    """Readers that need more than a text, or are methods."""
    found = {
        "check_stdio": functools.partial(stdio, tolerance=None),
        "check_stdio, tolerance": functools.partial(stdio, tolerance=1e-6),
        "check_stdio, one long word": lambda t: compare.same_output(f"{t.strip()}x", "1", 1e-6),
        "same_lines": lambda text: compare.same_lines(text, text[::-1]),
        "tests": lambda t: checks.tests_check(printed(json.dumps({"test": t}) + "\n"), Limits()),
        "assembled": lambda text: assemble_program(text, 'def f():\n    """Do."""\n', "f"),
        "row of tests": lambda text: problem_from_row({"tests": text}),
        "row of cases": lambda text: problem_from_row({"input_output": text}),
        "tools' calls": lambda text: read_calls(text, ("f", "word"), tuple(WAYS)),
        "OpenRLHF's ends": lambda text: openrlhf.without_ends(text, openrlhf.ENDS),
        "message": websocket.parse_message,
        "reply in a message": in_a_message,
        "judge's reply": lambda text: shown_part(text, thoughts=True, longest=10**9),
        "judge's prompt": lambda t: fill_template(
            "{reply} {question}", {"reply": t, "question": "?"}
        ),
    }
    for form in ('["value", TEXT]', "TEXT", '["value", [TEXT]]', '["value", {"set": [TEXT]}]'):
        found[f"calls {form}"] = functools.partial(calls, form=form)
    for form in ("line", "json"):
        found[f"judge's {form}"] = Grammar({"CORRECT": 1.0, "INCORRECT": 0.0}, form).read
    yield from ((name, read, [BARE], ALL) for name, read in found.items())


def cpu_s(read, text):
    started = time.process_time()
    with contextlib.suppress(Exception):  # a reader may refuse the text
        read(text)
    return time.process_time() - started


def growth(read, make):
    """How many times as long four times the text takes, at least; 0 for no time to speak of."""
    if cpu_s(read, make(FIRST)) < NO_TIME_S:
        return 0.0
    short, long = [], []
    for again in range(1, TRIES + 1):  # on other texts each time, for some readers remember
        short.append(cpu_s(read, make(FIRST - 60 * again)))
        long.append(cpu_s(read, make(4 * (FIRST - 60 * again))))
        if min(long) < STEEPEST * min(short):
            break
    return min(long) / min(short)


@pytest.fixture(autouse=True)
def no_collector():
    """Its time depends on all objects that there are."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.slow
@pytest.mark.parametrize(
    "readers", [verifiers, environments, functions, instructions, others], ids=lambda r: r.__name__
)
def test_no_reader_grows_faster_than_its_text(readers, modules) -> None:
    steep = []
    for name, read, frames, (start, step) in readers(modules):
        for number, (letters, make_text) in enumerate([*TEXTS.items()][start::step]):
            left, right = frames[number % len(frames)]
            ratio = growth(read, lambda n, m=make_text, a=left, z=right: f"{a}{m(n)}{z}")
            if ratio >= STEEPEST:
                steep.append(f"{name} on {letters} in {left!r:.60}, {right!r:.60}: {ratio:.1f}")
    assert not steep, "\n".join(steep)


def test_a_square_is_found() -> None:
    assert growth(re.compile("a*b").search, lambda size: "a" * size) >= STEEPEST
    assert growth(lambda text: sum(map(ord, 50 * text)), lambda size: "a" * size) < STEEPEST


def test_what_is_timed_is_what_there_is(modules) -> None:
    found = {name.rpartition(".")[2] for name, *_ in functions(modules)}
    assert {"final_answer", "words", "sentences", "read_number", "neutralize", "hide"} <= found
    assert len(found) > 150
    assert len(list(environments(modules))) > 20
