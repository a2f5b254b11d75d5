"""Whatever reads a reply, or what a program printed, takes a time in proportion to its length.

Every reader is timed on runs of each kind of letters, by growth and not in seconds: a reader that
is slower than the rest is measured again on four times the length, and may take eight times as
long. Readers are found, not listed, so that a new one is timed too: verifiers by their examples,
instructions by their registry, functions of text by their first argument.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import json
import pkgutil
import time

import pytest

from assay import rewards
from assay.adapters.openrlhf import ENDS, without_ends
from assay.envs.code_repair import submission
from assay.envs.tools.calls import read_calls
from assay.envs.trl_messages import reply_of
from assay.sandbox import Limits, compare, problem_from_row, same_output
from assay.sandbox.grading import StdioCheck, calls_check, tests_check
from assay.sandbox.prompt import assembled
from assay.sandbox.result import Result, RunStatus
from assay.sandbox.slot import Reply
from assay.service import messages
from assay.verifiers import Code, Math
from assay.verifiers.catalogue import examples
from assay.verifiers.families.sql_engine import asks_for_order
from assay.verifiers.form.call_text import WAYS
from assay.verifiers.instructions import CONSTRAINTS
from assay.verifiers.judges.grammar import Grammar
from assay.verifiers.judges.known import shown_part
from assay.verifiers.judges.prompt import filled
from assay.verifiers.maths.worker import WorkerLimits

FIRST = 2**13
QUICK_S = 60e-9 * FIRST  # a square that is as quick takes eight seconds for a MiB
SLOW_S = 0.05
STEEPEST = 4**1.5
THIRD = 3
BARE = [("", "")]
USUAL = [
    (r"\boxed{", "}"),
    ("<answer>", "</answer>"),
    ("```\n", "\n```"),
    ("The answer is ", ""),
]
LETTERS = [
    "0", "9", "7 ", "1,", "1e", "1e5 ", "-", "- ", ".", "...", "a", "a ", "a b. ", "A) ", "word ",
    "\\", "\\\\", "\\(", "\\text{", "\\text{a}", "\\frac{1}{", "\\boxed{", "\\boxed{7} ", "{",
    "}", "\\left(", "[", "]", "[]", "[[1],", "(", ")", "()", "(1)", "$", "$1", "$$", "^{", "_",
    "*", "**", "`", "```\n", "```python\n", "~~~\n", "#", "####", "## a\n", "|", "| a |\n",
    "|-|\n", '"', "'", '{"a":', '[{"name":', '"""', "“", "<", ">", "<a>", "</a>", "<!--", "&#x",
    "<think>", "</think>", "<answer>", "</answer>", "<tool_call>", "</tool_call>", "<|im_end|>",
    "</s>", " ", "\n", " \n", "\t", "\r\n", "\u2028", "\x00", "\xa0", "\u200b", "answer is ",
    "the answer is 7. ", "not ", "or ", "Answer: 7\n", "either ", "no, ", "Verdict: ",
    "https://a.b/", "[1] ", "1. a\n", "- a\n", "> a\n", "  - a\n", "e\u0301", "\u0301", "漢",
    "漢字。", "한국 ", "ไทย", "\U0001f468\u200d", "\ud800", "ﬀ", "²", "select ", "(select ",
    "/*", "-- ", "x = ", "f(", "lambda: ", "=x", "<x",
]  # fmt: skip
MIXED = [
    ("(", ")"), ("{", "}"), ("[", "]"), ("\\boxed{", "}"), ("<think>", "</think>"), ("0", "x"),
    ("<a>", "</a>"), (" ", "x"), ("\\text{", "}"), ('{"a":', "}"), ("*", "_"), ("9", "."),
    ("-", "1"), ("\\", "("), ("`", "~"), ("<answer>", "7"), (" \n", "."), ("a ", "\n"),
]  # fmt: skip


def one_hash(size):
    """Numbers that a hash table puts into one place, and so compares each with all."""
    return " ".join(str(k * (2**61 - 1)) for k in range(1, size // 22))


def run(letters, size):
    return letters * (size // len(letters))


def run_and_run(first, second, size):
    return run(first, size // 2) + run(second, size // 2)


TEXTS = {
    **{repr(letters): functools.partial(run, letters) for letters in LETTERS},
    **{f"{a!r} then {b!r}": functools.partial(run_and_run, a, b) for a, b in MIXED},
    **{f"{a!r} and {b!r}": functools.partial(run, a + b) for a, b in MIXED},
    "numbers of one hash": one_hash,
}


def verifiers():
    """Each example's verifier, with the letters where its answer stands."""
    for number, example in enumerate(examples()):
        verifier, winner = example.verifier, example.wins[0]
        if isinstance(verifier, Math):
            verifier = Math(limits=WorkerLimits(cpu_s=0.1), extract=verifier.extract)
        judge = verifier.program if isinstance(verifier, Code) else verifier.verify
        middle = len(winner) // 2
        frames = [*BARE, (winner, ""), ("", winner), (winner[:middle], winner[middle:]), *USUAL]
        read = functools.partial(judge, reference=example.reference)
        yield f"{example.name} {number}", read, frames


def functions():
    """Public functions that take a text and no more: of the rooms that read replies and output."""
    packages = ("assay.verifiers", "assay.sandbox.compare", "assay.envs.trl_messages")
    for package in map(importlib.import_module, packages):
        inner = pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}.")
        names = [m.name for m in inner if not m.name.endswith(".symbolic")]  # the worker's side
        for module in [package, *map(importlib.import_module, names)]:
            for name, value in vars(module).items():
                function = inspect.unwrap(value) if callable(value) else value
                if inspect.isfunction(function) and function.__module__ == module.__name__:
                    first, *rest = [*inspect.signature(function).parameters.values(), *[None] * 2]
                    alone = all(p is None or p.default is not p.empty or p.kind > 2 for p in rest)
                    takes = first is not None and str(first.annotation).startswith("str")
                    if takes and alone and not name.startswith("_"):
                        yield f"{module.__name__}.{name}", function, BARE


def instructions():
    """The check of each instruction."""
    for name, constraint in CONSTRAINTS.items():
        needed = set(constraint.rules) - constraint.optional
        check = functools.partial(constraint.check, **{n: ARGUMENTS[n] for n in needed})
        yield name, check, [("", ""), ("The sea. ", " So it is.")]


def printed(text):
    data = text.encode("utf-8", "surrogatepass")
    return Reply("exit", (0, 0), "", 0, 0, 0, False, 0, True, (data, data, data))


def others():
    """Readers that need more than a text, or are methods."""
    yield from ((name, reader, BARE) for name, reader in _others(Limits()))


def _others(limits):
    for tolerance in (None, 1e-6):
        yield f"same_output {tolerance}", lambda t, near=tolerance: same_output(t, t[::-1], near)
        yield f"stdio {tolerance}", functools.partial(judged_output, tolerance=tolerance)
    yield "same_lines", lambda text: compare.same_lines(text, text[::-1])
    for form in ('["value", {}]', "{}", '["value", [{}]]', '["value", {{"set": [{}]}}]'):
        yield f"calls {form}", functools.partial(judged_calls, limits=limits, form=form)
    yield "tests", lambda text: tests_check(printed(json.dumps({"test": text}) + "\n"), limits)
    yield "assembled", lambda text: assembled(text, 'def f():\n    """Do."""\n', "f")
    yield "row", lambda text: problem_from_row({"tests": text})
    yield "row of cases", lambda text: problem_from_row({"input_output": text})
    yield "submission", submission
    yield "calls of tools", lambda text: read_calls(text, ("f", "word"), tuple(WAYS))
    yield "think_format", lambda text: rewards.think_format_reward([text])
    yield "ends", lambda text: without_ends(text, ENDS)
    yield "completion", lambda text: reply_of([{"role": "assistant", "content": text}])
    yield "message", lambda text: messages.read(messages.SOCKET, text)
    yield "reply in a message", in_a_message
    for form in ("line", "json"):
        grammar = Grammar({"CORRECT": 1.0, "INCORRECT": 0.0}, form)
        yield f"judge {form}", grammar.read
        yield f"judge's {form}", lambda text, g=grammar: g.read(f"{text}\nVerdict: CORRECT")
    yield "shown", lambda text: shown_part(text, thoughts=True, longest=10**9)
    yield "filled", lambda text: filled("{reply} {question}", {"reply": text, "question": "?"})


def judged_output(text, tolerance):
    check = StdioCheck(1, tolerance, None)
    check.add(1, "", text[::-1], Result(RunStatus.OK, stdout=text))
    return check.check()


def judged_calls(text, limits, form):
    line = form.format(text.replace(" ", ", ") if "set" in form else text)
    return calls_check(printed(line), limits, [((1,), set(range(len(text.split()))))], 1e-6)


def in_a_message(text):
    body = {"op": "score", "id": 1, "replies": [text], "tasks": [0]}
    return messages.read(messages.SOCKET, json.dumps(body))


ARGUMENTS = {
    "N": 3, "capital_frequency": 2, "capital_relation": "less than", "end_phrase": "So it is.",
    "first_word": "we", "forbidden_words": ["zebra"], "frequency": 2, "keyword": "sea",
    "keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "e",
    "keywords": ["sea"], "language": "en", "last_word": "sea", "let_frequency": 9,
    "let_relation": "less than", "letter": "q", "m": 1, "max_words": 900, "min_words": 0, "n": 1,
    "n_end": 1, "n_start": 0, "n_sent": 2, "n_words": 3, "nth_paragraph": 1, "num_bullets": 1,
    "num_highlights": 1, "num_paragraphs": 1, "num_placeholders": 1, "num_sections": 1,
    "num_sentences": 9, "num_words": 99, "options": "one/two", "percentage": 90,
    "phrase": "a sea of rain", "postscript_marker": "P.S.", "prompt_to_repeat": "Say it again.",
    "reference_text": "a sea of rain", "relation": "less than", "section_spliter": "Day",
    "sep": "...", "small_n": 9, "word": "sea", "instruction": "Say sea.", "starter": "we",
}  # fmt: skip


@pytest.fixture(autouse=True)
def no_collector():
    """Its time depends on all objects that there are."""
    gc.disable()
    yield
    gc.enable()


def cpu_s(read, make, frame, size):
    text = frame[0] + make(size) + frame[1]
    started = time.process_time()
    with contextlib.suppress(Exception):  # a reader may say that the text is none
        read(text)
    return time.process_time() - started


def growth(read, make, frame):
    """How many times as long four times the text takes; 0.0 where it takes no time to speak of."""
    first = cpu_s(read, make, frame, FIRST)
    if first < QUICK_S:
        return 0.0
    start = FIRST // 4 if first > SLOW_S else FIRST
    least = STEEPEST
    for size in (start, 4 * start):  # where it seems steep, it must be so further on too
        short, long = 9e9, 9e9
        for again in range(1, 4):  # other texts each time, for some readers remember
            short = min(short, cpu_s(read, make, frame, size - 120 * again))
            long = min(long, cpu_s(read, make, frame, 4 * size - 120 * again))
            if long < STEEPEST * short:
                return long / short
        least = long / short
    return least


@pytest.mark.parametrize(
    "readers", [verifiers, functions, instructions, others], ids=lambda r: r.__name__
)
def test_no_reader_grows_faster_than_its_text(readers) -> None:
    steep = []
    for reader, (name, read, frames) in enumerate(readers()):
        for number, (letters, make) in enumerate(TEXTS.items()):
            if (number + reader) % THIRD:  # neighbours, which are alike, have the rest
                continue
            frame = frames[number % len(frames)]
            ratio = growth(read, make, frame)
            if ratio >= STEEPEST:
                steep.append(f"{name} on {letters} in {frame!r:.60}: {ratio:.1f}")
    assert steep == []


SQUARES = {
    "zeros with a tolerance": (lambda t: same_output(f"{t}x", "1", 1e-6), "0"),
    "comments": (
        lambda t: CONSTRAINTS["keywords:forbidden_words"].check(t, forbidden_words=["zebra"]),
        "<!--",
    ),
    "brackets in a query": (asks_for_order, "["),
    "end tokens": (lambda t: without_ends(t, ENDS), "</s>"),
}


@pytest.mark.parametrize("case", SQUARES)
def test_what_took_a_square_takes_one_no_more(case) -> None:
    read, letters = SQUARES[case]
    assert growth(read, functools.partial(run, letters), ("a", "")) < STEEPEST


def test_numbers_of_one_hash_take_no_square() -> None:
    def read(text):
        numbers = [{"int": hex(int(number))} for number in text.split()]
        return compare.same_value(set(range(len(numbers))), {"set": numbers})

    assert growth(read, one_hash, ("", "")) < STEEPEST


def test_what_is_timed_is_what_there_is() -> None:
    """A reader that is found by nobody is timed by nobody."""
    found = {name for name, _, _ in functions()}
    assert len(found) > 150
    assert {
        "assay.verifiers.text.extract.final_answer",
        "assay.verifiers.text.words.words",
        "assay.verifiers.text.sentences.sentences",
        "assay.verifiers.maths.number.read_number",
        "assay.verifiers.judges.prompt.harmless",
    } <= found
    assert len(CONSTRAINTS) == len(list(instructions()))


def test_a_square_is_found() -> None:
    def square(text):
        return sum(text[k:].startswith("x") for k in range(0, len(text), 8))

    assert growth(square, lambda n: "a" * n, ("", "")) > STEEPEST
    assert growth(lambda text: sum(map(ord, text)), lambda n: "a" * n, ("", "")) < STEEPEST
