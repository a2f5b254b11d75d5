"""A world in which thoughts are told in two languages: numbers in digits, or in letters."""

from __future__ import annotations

import re
from typing import Any

import numpy as np

from assay.envs import Generated, Split, Task, TextEnv
from assay.verifiers import Status, Verdict, Verifier

_TO_LETTERS = str.maketrans("0123456789", "abcdefghij")
_WORD = re.compile(r"[0-9a-j]+")
_NUMBER = re.compile(r"[0-9]+")
_REPLY = re.compile(r"<think>([^<>]*)</think><answer>([^<>]*)</answer>")


def parts(reply: str) -> tuple[str, str] | None:
    """Thought and answer; ``None`` where a reply is not in the format."""
    found = _REPLY.fullmatch(reply)
    return None if found is None else (found[1], found[2])


class Result(Verifier):
    """Is the last number after the thought the known one, digit by digit?"""

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        _, closed, rest = reply.rpartition("</think>")
        if not closed and "<think>" in reply:
            return Verdict.wrong("the thought is not closed", status=Status.UNPARSEABLE)
        numbers = _NUMBER.findall(rest)
        if not numbers:
            return Verdict.wrong("there is no number", status=Status.UNPARSEABLE)
        right = numbers[-1] == reference["result"]
        return Verdict.correct() if right else Verdict.wrong(f"not {numbers[-1]}")


class InDigits(Verifier):
    """The share of a thought's words that are in digits, as DeepSeek-R1 rewards its language's.

    Real languages are told apart by ``assay.verifiers.Language``.
    """

    judges_form = True

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply; one without a thought scores 0."""
        found = parts(reply)
        words = _WORD.findall(found[0]) if found else []
        if not words:
            return Verdict.wrong("there is no thought", status=Status.UNPARSEABLE)
        share = sum(word.isdigit() for word in words) / len(words)
        return Verdict.correct() if share == 1 else Verdict.wrong("mixed", score=share)


class InFormat(Verifier):
    """Is there a thought in its tags and then an answer in its own?"""

    judges_form = True

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply."""
        return Verdict.correct() if parts(reply) else Verdict.wrong("not in the format")


class Preferred(Verifier):
    """What people like in an answer: half for the question restated, half for a full stop."""

    judges_form = True

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Judge one reply by its answer alone."""
        found = parts(reply)
        answer = found[1] if found else ""
        restated = answer.startswith(reference["question"])
        score = 0.5 * restated + 0.5 * answer.endswith(".")
        return Verdict.correct() if score == 1 else Verdict.wrong("curt", score=score)


def spoken(rng: np.random.Generator, thought: str, letters: float) -> str:
    """Write a thought; each word is in letters with this probability."""

    def said(word: re.Match[str]) -> str:
        return word[0].translate(_TO_LETTERS) if rng.random() < letters else word[0]

    return _WORD.sub(said, thought)


def added(digits: list[int]) -> tuple[str, str, str]:
    """Question, working and result of a sum of three digits: ``4+5=9 9+3=12``."""
    a, b, c = digits
    return f"{a}+{b}+{c}=", f"{a}+{b}={a + b} {a + b}+{c}={a + b + c}", str(a + b + c)


def mirrored(digits: list[int]) -> tuple[str, str, str]:
    """Question, working and result of three digits read backwards: ``3 5 4``."""
    back = [str(digit) for digit in reversed(digits)]
    return "".join(map(str, digits)) + "|", " ".join(back), "".join(back)


TASKS = {"sums": added, "mirror": mirrored}


def reply(
    rng: np.random.Generator,
    kind: str,
    digits: list[int],
    *,
    letters: float = 0.0,
    hasty: float = 0.5,
    liked: float = 0.0,
) -> str:
    """Write a right reply in the format.

    Args:
        rng: decides what is left to chance.
        kind: of the task.
        digits: of the task.
        letters: the chance of each word of the thought to be in letters.
        hasty: the chance of a thought that restates the question in place of working.
        liked: the chance of an answer that people like.
    """
    question, thought, result = TASKS[kind](digits)
    if rng.random() < hasty:
        thought = question
    answer = f"{question}{result}." if rng.random() < liked else result
    return f"<think>{spoken(rng, thought, letters)}</think><answer>{answer}</answer>"


def as_read(rng: np.random.Generator, kind: str, digits: list[int]) -> str:
    """Write a reply of the base model's data: any language, some of them bare results."""
    if rng.random() < 0.25:
        return TASKS[kind](digits)[2]
    letters = float(rng.choice([0.0, 0.5, 1.0], p=[0.4, 0.2, 0.4]))
    return reply(rng, kind, digits, letters=letters, liked=0.2)


def environment(kind: str, rubric: Verifier, split: Split) -> TextEnv:
    """Make tasks of a kind; ``solution`` is from the base model's data, in any language."""

    def make(rng: np.random.Generator) -> Task:
        digits = [int(n) for n in rng.integers(0, 6, size=3)]
        question, _, result = TASKS[kind](digits)
        reference = {"question": question, "result": result}
        solution = as_read(rng, kind, digits)
        return Task(question, reference, metadata={"digits": digits}, solution=solution)

    return TextEnv(Generated(make, name=f"r1-{kind}", split=split, test_share=0.25), rubric)
