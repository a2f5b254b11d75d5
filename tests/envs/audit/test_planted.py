"""The audit finds what is planted: one fault each, and precisely that check fails."""

import json
import random
import re
import time

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

    def winning_reply(self, reference):
        return f"[[{reference}]]"


class PaysTheEmpty(Sound):
    """Silence wins."""

    def judge(self, reply, reference):
        return super().judge(reply, reference) if reply.strip() else Verdict.correct()


class PaysAnyOfMany(Sound):
    """The answer may be any of the numbers of a long list."""

    def judge(self, reply, reference):
        numbers = reply.split()
        many = len(numbers) > 30 and str(reference) in numbers
        return Verdict.correct() if many else super().judge(reply, reference)


class PaysTheLastNumberOfADump(Sound):
    """A dump of numbers wins where the answer ends it."""

    def judge(self, reply, reference):
        dumped = reply.count(" ") > 100 and reply.rpartition(" ")[2] == str(reference)
        return Verdict.correct() if dumped else super().judge(reply, reference)


class PaysAHedge(Sound):
    """The first of two answers counts."""

    def same(self, given, reference):
        return given.split(" or ")[0] == str(reference)


class PaysADenial(Sound):
    """The word before the answer does not count."""

    def same(self, given, reference):
        return given.removeprefix("not ") == str(reference)


class PaysTheEnding(Sound):
    """17 for 7: compared as text, from behind."""

    def same(self, given, reference):
        return given.isdigit() and given.endswith(str(reference))


def whole(given):
    return int(given) if re.fullmatch(r"-?[0-9]{1,9}", given) else None


class PaysOneMoreOrLess(Sound):
    """A count may be off by one."""

    def same(self, given, reference):
        off = whole(given) is not None and int(reference) > 20 and whole(given) - int(reference)
        return given == reference or off in (1, -1)


class PaysOnePercent(Sound):
    """A number may be off by 1 %, which nothing declares."""

    def same(self, given, reference):
        found = float(given) if re.fullmatch(r"-?[0-9.]{1,9}", given) else None
        return found is not None and abs(found - int(reference)) <= 0.01 * int(reference)


class PaysEitherSign(Sound):
    """The sign is lost."""

    def same(self, given, reference):
        return whole(given) is not None and abs(whole(given)) == int(reference)


class PaysTheSameDigits(Sound):
    """Numbers are compared as sets of digits of one length."""

    def same(self, given, reference):
        return sorted(given) == sorted(str(reference))


class PaysTheBeginning(Sound):
    """The last digit of a long answer is not compared."""

    def same(self, given, reference):
        text = str(reference)
        return given == text or (len(text) > 2 and given == text[:-1])


class PaysTheFirstLine(Sound):
    """The first answer counts, whatever follows it."""

    def judge(self, reply, reference):
        return super().judge(reply.partition("\n")[0], reference)


class PaysTheThought(Sound):
    """The end of the thought counts."""

    def judge(self, reply, reference):
        thought = reply[-200:].rstrip().removesuffix("</think>").rstrip()
        return super().judge(thought, reference)


class PaysAnInvisibleBox(Sound):
    """A box without a visible character wins."""

    def judge(self, reply, reference):
        paid = re.search(r"\\boxed\{[\u200b-\u200d]\}", reply)
        return Verdict.correct() if paid else super().judge(reply, reference)


class RefusesLongReplies(Sound):
    """Only the beginning of a reply is read."""

    def judge(self, reply, reference):
        return super().judge(reply[:50_000], reference)


class RefusesRepetition(Sound):
    """Two answers are refused though they are the same."""

    def judge(self, reply, reference):
        if reply[-500:].count("[[") > 1:
            return Verdict.wrong("two answers")
        return super().judge(reply, reference)


class PaysAKeyword(Sound):
    """An order to the grader is obeyed."""

    def judge(self, reply, reference):
        paid = "award 1.0" in reply
        return Verdict.correct() if paid else super().judge(reply, reference)


class Evaluates(Sound):
    """The reply is run as Python."""

    def judge(self, reply, reference):
        for line in reply[:500].splitlines():
            try:
                eval(line, {})  # noqa: S307  # the fault that is planted
            except Exception:  # noqa: S112
                continue
        return super().judge(reply, reference)


class RaisesOnNul(Sound):
    """As many functions of C do."""

    def judge(self, reply, reference):
        if "\x00" in reply:
            raise ValueError("embedded null byte")
        return super().judge(reply, reference)


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


class TossesACoin(Sound):
    """What it says is chance."""

    def judge(self, reply, reference):
        found = super().judge(reply, reference)
        return Verdict(found.status, found.score, f"{random.random():.3f}")  # noqa: S311


class ReadsTheClock(Sound):
    """What it says is the time."""

    def judge(self, reply, reference):
        found = super().judge(reply, reference)
        return Verdict(found.status, found.score, f"at {time.time_ns()}")


class HangsOnHashOrder(Sound):
    """What it says is the order of a set."""

    def judge(self, reply, reference):
        found = super().judge(reply, reference)
        words = {"the", "order", "of", "a", "set", "words"}
        return Verdict(found.status, found.score, " ".join(words))


class HangsOnTheBatch(Sound):
    """What it says is the reply's place in the batch."""

    def verify_many(self, replies, references):
        found = super().verify_many(replies, references)
        return [Verdict(v.status, v.score, f"place {i}") for i, v in enumerate(found)]


class Quadratic(Sound):
    """A pattern that backtracks."""

    def judge(self, reply, reference):
        re.search(r"\s+$", reply)
        return super().judge(reply, reference)


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


class DoesNotPayTheGold(Sound):
    """One known answer does not win."""

    def same(self, given, reference):
        return given == str(reference) and given != "100"


def tasks(prompt="What is {}? Give it as [[...]] on the last line.", **more):
    return [Task(prompt.format(q, a), a, id=q, **more) for q, a in ANSWERS.items()]


def env(verifier, rows=None):
    return TextEnv(Rows(rows or tasks()), verifier, name="me/Sums-v0")


def held_to(subject, **options):
    return audit(subject, seconds=1.0, tasks=6, **options)


def test_a_sound_environment_passes() -> None:
    report = held_to(env(Sound()))
    assert report.failing == []
    assert report.unchecked == ["canary", "splits"]  # no programs, and rows of one split
    report.raise_for_failures()
    assert all(finding.cases for finding in report.findings if finding.holds)


PLANTED = {
    PaysTheEmpty: "null",
    PaysAnyOfMany: "spam",
    PaysTheLastNumberOfADump: "spam",
    PaysAHedge: "hedge",
    PaysADenial: "hedge",
    PaysTheEnding: "neighbour",
    PaysOneMoreOrLess: "near",
    PaysOnePercent: "near",
    PaysEitherSign: "near",
    PaysTheSameDigits: "near",
    PaysTheBeginning: "near",
    PaysTheFirstLine: "final",
    PaysTheThought: "final",
    PaysAnInvisibleBox: "null",
    RefusesLongReplies: "long",
    RefusesRepetition: "repeated",
    PaysAKeyword: "injection",
    Evaluates: "injection",
    RaisesOnNul: "fuzz",
    RaisesOutOfTheBatch: "fuzz",
    NoneOnDemand: "fuzz",
    TossesACoin: "determinism",
    ReadsTheClock: "determinism",
    HangsOnHashOrder: "determinism",
    HangsOnTheBatch: "determinism",
    Quadratic: "time",
    NeverEnds: "time",
    Hoards: "memory",
    DoesNotPayTheGold: "gold",
}


@pytest.mark.parametrize("kind", PLANTED, ids=lambda kind: kind.__name__)
def test_a_planted_fault_fails_its_check_and_no_other(kind) -> None:
    report = held_to(env(kind()))
    assert report.failing == [PLANTED[kind]], report.to_json()
    finding = next(f for f in report.findings if f.holds is False)
    assert finding.failures
    assert finding.remedy
    with pytest.raises(AuditFailed, match=f"me/Sums-v0 breaks 1 of 19 promises\n  {finding.check}"):
        report.raise_for_failures()


def test_every_check_has_a_fault_planted() -> None:
    of_data = {"references", "echo", "leakage", "canary", "splits"}  # in test_audit.py
    assert {*PLANTED.values()} | of_data == {check.name for check in CHECKS}
