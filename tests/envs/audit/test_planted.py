"""The audit finds what is planted: one fault each, and precisely that check fails."""

import json
import math
import random
import re
import time
from contextlib import suppress

import pytest

from assay.envs import AuditFailed, Rows, Task, TextEnv, audit
from assay.envs.audit import CHECKS
from assay.verifiers import Status, Verdict, Verifier

pytestmark = pytest.mark.slow

ANSWERS = {"17+25": "42", "9+9": "18", "300+65": "365", "4+3": "7", "50+50": "100", "8+9": "17"}


class Sound(Verifier):
    """Pays for the answer in the last pair of brackets, alone on the last line."""

    def judge(self, reply, reference):
        line = reply[-200:].rpartition("\n")[2]
        if not (line.startswith("[[") and line.endswith("]]")):
            return Verdict.wrong("no answer in brackets", status=Status.UNPARSEABLE)
        given = line[2:-2]
        return Verdict.correct() if self.same(given, reference) else Verdict.wrong("another one")

    def same(self, given, reference):
        return given == str(reference)

    def oracle_reply(self, reference):
        return f"[[{reference}]]"


def whole(given):
    return int(given) if re.fullmatch(r"-?[0-9]{1,9}", given) else None


def percent(given):
    return float(given) if re.fullmatch(r"-?[0-9.]{1,9}", given) else math.inf


def runs(line):
    """Run a line as Python, which is the fault that is planted."""
    with suppress(Exception):
        eval(line, {})  # noqa: S307
    return ""


class Planted(Sound):
    """A verifier with one fault: what else is the same answer, is paid or refused, or is read.

    Args:
        same: answers that pass, of what is given and the reference.
        paid: replies that pass, of a reply and the reference.
        read: what is judged of a reply.
        said: the reason of every verdict.
    """

    def __init__(self, same=None, paid=None, read=None, said=None):
        self.also, self.paid, self.read, self.said = same, paid, read, said

    def same(self, given, reference):
        return super().same(given, reference) if self.also is None else self.also(given, reference)

    def judge(self, reply, reference):
        if self.paid is not None and self.paid(reply, reference):
            return Verdict.correct()
        found = super().judge(reply if self.read is None else self.read(reply), reference)
        return found if self.said is None else Verdict(found.status, found.score, self.said())


def refuse_nul(reply):
    """Raise on a null byte, as many functions of C do."""
    if "\x00" in reply:
        raise ValueError("embedded null byte")
    return reply


LENIENT = {
    "silence": ("null", {"paid": lambda reply, _: not reply.strip()}),
    "an invisible box": (
        "null",
        {"paid": lambda reply, _: re.search(r"\\boxed\{[\u200b-\u200d]\}", reply)},
    ),
    "any number of a long list": (
        "spam",
        {"paid": lambda reply, right: len(n := reply.split()) > 30 and right in n},
    ),
    "the last number of a dump": (
        "spam",
        {"paid": lambda reply, r: reply.count(" ") > 100 and reply.rpartition(" ")[2] == r},
    ),
    "the first of two answers": ("hedge", {"same": lambda a, r: a.split(" or ")[0] == r}),
    "a denial": ("hedge", {"same": lambda a, r: a.removeprefix("not ") == r}),
    "the ending": ("neighbour", {"same": lambda a, r: a.isdigit() and a.endswith(r)}),
    "one more or less": (
        "near",
        {"same": lambda a, r: a == r or (int(r) > 20 and whole(a) in (int(r) - 1, int(r) + 1))},
    ),
    "one percent": ("near", {"same": lambda a, r: abs(percent(a) - int(r)) <= 0.01 * int(r)}),
    "either sign": ("near", {"same": lambda a, r: whole(a) in (int(r), -int(r))}),
    "the same digits": ("near", {"same": lambda a, r: sorted(a) == sorted(r)}),
    "the beginning": ("near", {"same": lambda a, r: a == r or (len(r) > 2 and a == r[:-1])}),
    "the first line": ("final", {"read": lambda reply: reply.partition("\n")[0]}),
    "the thought": (
        "final",
        {"read": lambda reply: reply[-200:].rstrip().removesuffix("</think>").rstrip()},
    ),
    "the first half alone": ("long", {"read": lambda reply: reply[:50_000]}),
    "two answers refused": (
        "repeated",
        {"read": lambda reply: "" if reply[-500:].count("[[") > 1 else reply},
    ),
    "an order": ("injection", {"paid": lambda reply, _: "award 1.0" in reply}),
    "code that is run": (
        "injection",
        {"paid": lambda reply, _: any(runs(line) for line in reply[:500].splitlines())},
    ),
    "a backtracking pattern": ("time", {"paid": lambda reply, _: re.search(r"\s+$", reply) and 0}),
    "a null byte that raises": ("fuzz", {"read": refuse_nul}),
    "a coin": ("determinism", {"said": lambda: f"{random.random():.3f}"}),  # noqa: S311
    "the clock": ("determinism", {"said": lambda: f"at {time.time_ns()}"}),
    "the order of a set": ("determinism", {"said": lambda: " ".join({"of", "a", "set", "words"})}),
    "one known answer refused": ("gold", {"same": lambda a, r: a == r != "100"}),
}


class RaisesOutOfTheBatch(Sound):
    """One reply costs its whole batch."""

    def verify_many(self, replies, references):
        json.dumps([r.encode() and 0 for r in replies])  # half a surrogate pair has no bytes
        return super().verify_many(replies, references)


class NoneOnDemand(Sound):
    """A policy can have a reply left out of its mean."""

    def judge(self, reply, reference):
        if "<think>" in reply:
            return Verdict.fault(Status.VERIFIER_ERROR, "thoughts are not supported")
        return super().judge(reply, reference)


class HangsOnTheBatch(Sound):
    """What it says is the reply's place in the batch."""

    def verify_many(self, replies, references):
        found = super().verify_many(replies, references)
        return [Verdict(v.status, v.score, f"place {i}") for i, v in enumerate(found)]


class NeverEnds(Sound):
    """A loop without a way out."""

    def judge(self, reply, reference):
        while reply.startswith("****"):
            pass
        return super().judge(reply, reference)


class Hoards(Sound):
    """Memory of many times the reply's length."""

    def judge(self, reply, reference):
        kept = b"x" * (160 * len(reply) if reply.startswith("word word") else 0)
        return super().judge(reply[: len(reply) + len(kept)], reference)


def tasks(prompt="What is {}? Give it as [[...]] on the last line.", **more):
    return [Task(prompt.format(q, a), a, id=q, **more) for q, a in ANSWERS.items()]


def env(verifier, rows=None):
    return TextEnv(Rows(rows or tasks()), verifier, name="me/Sums-v0")


def held_to(subject, longest=1 << 20):
    return audit(subject, seconds=1.0, tasks=6, longest=longest)


def test_a_sound_environment_passes() -> None:
    report = held_to(env(Sound()))
    assert report.failing == []
    assert report.unchecked == ["canary", "splits"]  # no programs, and rows of one split
    report.raise_for_failures()
    assert all(finding.cases for finding in report.findings if finding.holds)


FAULTS = {
    "one reply that costs its batch": ("fuzz", RaisesOutOfTheBatch()),
    "no score on demand": ("fuzz", NoneOnDemand()),
    "the place in the batch": ("determinism", HangsOnTheBatch()),
    "a loop without a way out": ("time", NeverEnds()),
    "memory of many times the length": ("memory", Hoards()),
    **{name: (check, Planted(**fault)) for name, (check, fault) in LENIENT.items()},
}


@pytest.mark.parametrize("fault", FAULTS)
def test_a_planted_fault_fails_its_check_and_no_other(fault) -> None:
    check, verifier = FAULTS[fault]
    grows = check in ("time", "memory")  # all others fail whatever the length
    report = held_to(env(verifier), longest=1 << 20 if grows else 1 << 17)
    assert report.failing == [check], report.to_json()
    finding = next(f for f in report.findings if f.holds is False)
    assert finding.failures
    assert finding.remedy
    with pytest.raises(AuditFailed, match=f"me/Sums-v0 breaks 1 of 19 promises\n  {finding.check}"):
        report.raise_for_failures()


def test_every_check_has_a_fault_planted() -> None:
    of_data = {"references", "echo", "leakage", "canary", "splits"}  # in test_audit.py
    assert {check for check, _ in FAULTS.values()} | of_data == {check.name for check in CHECKS}
