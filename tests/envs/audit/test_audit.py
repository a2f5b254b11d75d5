"""The audit: what it reports, what it lets pass, and faults planted in an environment's data."""

import json
import random
import threading

import pytest

from assay.envs import (
    AuditFailed,
    AuditReport,
    Generated,
    Rows,
    Sample,
    Task,
    TextEnv,
    audit,
    shortened,
    write_json,
)
from assay.envs.audit.replies import spam
from assay.verifiers import (
    Code,
    Exact,
    Format,
    Math,
    Rubric,
    Status,
    Verdict,
    Verifier,
    format_answer,
)

pytestmark = pytest.mark.slow

ALL = [
    "references", "gold", "long", "repeated", "null", "near", "final", "spam", "hedge", "echo",
    "neighbour", "injection", "determinism", "time", "memory", "leakage", "canary", "splits",
    "fuzz",
]  # fmt: skip


class Last(Verifier):
    """Pays for the last word."""

    def judge(self, reply, reference):
        words = reply.split()
        paid = words[-1:] == [reference]
        return Verdict.correct() if paid else Verdict.wrong("another word")

    def check_reference(self, reference):
        return None if isinstance(reference, str) else "a reference is a word"

    def oracle_reply(self, reference):
        return reference


def rows(prompt="Say a word about {}.", **more):
    words = ["apple", "pear", "plum", "cherry", "banana", "lemon"]
    return [Task(prompt.format(f"thing {w[::-1]}", w), w, id=w, **more) for w in words]


def failing(subject, *checks, **options):
    return audit(subject, checks=checks, **options).failing


LONG = Task("Translate: a very particular sentence", "a very particular sentence", "long")


@pytest.mark.parametrize(
    ("tasks", "leaks"),
    [
        (rows(), []),
        # The words are short, but each stands in its own prompt and in no other.
        (rows("Here is {}. (The answer is {}.)"), ["leakage"]),
        ([Task(t.prompt, t.reference, t.id, {"gold": t.reference}) for t in rows()], ["leakage"]),
        ([*rows(), LONG], ["leakage"]),
    ],
    ids=["none", "prompt", "metadata", "one long answer"],
)
def test_answers_that_the_policy_sees_are_found(tasks, leaks) -> None:
    assert failing(TextEnv(Rows(tasks), Last()), "leakage", tasks=7) == leaks


def test_tests_in_the_prompt_are_found() -> None:
    tests = "assert f(1) == 2\nassert f(2) == 3"
    env = TextEnv(Rows([Task(f"Write f so that:\n{tests}", {"tests": tests})]), Code())
    assert failing(env, "leakage") == ["leakage"]


def test_the_prompt_given_back_is_found() -> None:
    class PaysThePrompt(Last):
        def judge(self, reply, reference):
            paid = "Say a word" in reply
            return Verdict.correct() if paid else super().judge(reply, reference)

    assert failing(TextEnv(Rows(rows()), PaysThePrompt()), "null", "echo", "injection") == ["echo"]


def test_references_that_cannot_be_used_are_listed() -> None:
    report = audit(Last(), samples=[Sample("a"), Sample(7), Sample("b")], checks=["references"])
    (finding,) = report.findings
    assert (finding.holds, finding.cases, finding.failed) == (False, 3, 1)
    assert finding.failures[0].found == "cannot be used: a reference is a word"


def source(split, seed, *, overlap=False, seeds=True):
    def make_task(rng):
        n = int(rng.integers(10**6))
        return Task(f"Say {n}", str(n))

    made = Generated(make_task, name="words", split=split, seed=seed if seeds else 0)
    return Generated(make_task, name="words", split="train", seed=seed) if overlap else made


@pytest.mark.parametrize(
    ("fault", "found"),
    [
        ({}, None),
        ({"overlap": True}, "is in both splits"),
        ({"seeds": False}, "seeds 0 and 1 share 300 of 300 prompts"),
    ],
)
def test_splits_that_overlap_and_seeds_that_do_nothing_are_found(fault, found) -> None:
    env = TextEnv(source("train", 0), Last())
    report = audit(env, checks=["splits"], sibling=lambda split, seed: source(split, seed, **fault))
    (finding,) = report.findings
    assert finding.holds is (found is None)
    assert all(found in failure.found for failure in finding.failures)


def test_a_split_of_its_own_data_is_compared_whatever_its_case() -> None:
    train = TextEnv(Rows(rows()), Last())
    test = TextEnv(Rows([Task("SAY a  word about thing elppa", "apple")]), Last())
    other = TextEnv(Rows([Task("Say a word about thing else.", "apple")]), Last())
    assert failing(train, "splits", other=test) == ["splits"]
    assert failing(train, "splits", other=other) == []
    assert audit(train, checks=["splits"]).unchecked == ["splits"]


def test_what_has_no_winning_reply_is_not_said_to_hold() -> None:
    def mute(reply, reference):
        return 0.0

    report = audit(mute, samples=[Sample("a")], skip=["time", "memory", "determinism", "fuzz"])
    by_name = {finding.check: finding for finding in report.findings}
    assert by_name["gold"].holds is None
    assert by_name["gold"].note == "no oracle reply is known: give the tasks a solution"
    assert by_name["spam"].note == "no reply is known to win"


def test_what_cannot_be_copied_is_not_said_to_hold() -> None:
    class Locked(Last):
        def __init__(self):
            self.lock = threading.Lock()

    report = audit(Locked(), samples=[Sample("a")])
    assert (report.unchecked, report.failing) == (ALL, [])
    assert "cannot be copied to another process (TypeError" in report.findings[0].note
    with pytest.raises(AuditFailed, match="nothing could be checked of"):
        report.raise_for_failures()


def test_a_sandbox_that_is_gone_is_nobodys_fault(tmp_path) -> None:
    class Gone(Last):
        """It judges ten replies, and then has nothing to judge with."""

        left = 10

        def judge(self, reply, reference):
            self.left -= 1
            if self.left < 0:
                return Verdict.fault(Status.SANDBOX_ERROR, "no daemon")
            return super().judge(reply, reference)

    report = audit(Gone(), samples=[Sample("a")], checks=["gold", "null", "injection"])
    assert report.failing == []
    assert report.findings[1].note == "what judges is out of order: no daemon"


def test_a_floor_lets_partial_credit_pass() -> None:
    def partial(reply, reference):
        return 1.0 if reply == reference else 0.1

    samples = [Sample("a", "a"), Sample("b", "b")]
    assert failing(partial, "gold", "null", samples=samples) == ["null"]
    assert failing(partial, "gold", "null", samples=samples, floor=0.1) == []


def test_a_report_is_the_same_for_a_seed_and_survives_json(tmp_path) -> None:
    env = TextEnv(Rows(rows("Here is {}: {}")), Last())
    checks = ["gold", "spam", "hedge", "leakage", "injection", "fuzz"]
    first, second, other = (audit(env, tasks=4, checks=checks, seed=s) for s in (0, 0, 1))
    assert first == second
    assert first != other
    path = tmp_path / "deep" / "report.json"
    write_json(path, first.to_json())
    assert AuditReport.from_json(json.loads(path.read_text())) == first
    assert first.failing == ["spam", "hedge", "leakage"]  # the last word wins
    assert [p.name for p in path.parent.iterdir()] == ["report.json"]


def test_nothing_is_begun_after_the_budget() -> None:
    report = audit(Last(), samples=[Sample("a")], budget_s=0.0)
    assert report.unchecked == ALL
    assert {finding.note for finding in report.findings} == {"the time budget was spent"}


def test_progress_names_each_check() -> None:
    seen = []
    audit(Exact(), checks=["null", "gold"], progress=lambda *step: seen.append(step))
    assert seen == [("gold", 0, 2), ("null", 1, 2)]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"checks": ["nul"]}, "there is no check 'nul'; the checks are references, gold"),
        ({"skip": ["x"]}, "there is no check 'x'"),
        ({"tasks": 0}, "tasks must be at least 1, got 0"),
    ],
)
def test_options_out_of_range_are_named(options, words) -> None:
    with pytest.raises(ValueError, match=words):
        audit(Exact(), **options)


def test_a_verifier_of_ones_own_needs_samples() -> None:
    with pytest.raises(ValueError, match="Last needs references to be audited with: give samples"):
        audit(Last())


# -- what is tried -----------------------------------------------------------------------------


def test_spam_never_ends_in_the_answer_but_where_it_says_so() -> None:
    rng = random.Random(0)  # noqa: S311
    for what, reply in spam("42", "43", ["7", "42"], "#### 42", rng):
        assert "42" in reply, what
        assert what.endswith("ends in the answer") or not reply.rstrip(".}</answer>").endswith("42")


def test_long_replies_are_shortened_for_people() -> None:
    assert shortened("abc") == "'abc'"
    assert shortened("a" * 50 + "b" * 50) == f"'{'a' * 28}'..'{'b' * 28}' (100 characters)"


# -- the built-in ones -------------------------------------------------------------------------


@pytest.mark.parametrize("verifier", [Math(), Rubric({"a": Math(), "f": Format()}, gate="a")])
def test_mathematics_passes(verifier) -> None:
    """``time`` is left to the tests of the worker: it waits for every limit in turn."""
    golds = ("42", "3/4", r"3\sqrt{13}", r"\text{even}", "(1, 2)", "x = 5", "[0, 5)")
    samples = [Sample(gold) for gold in golds]
    report = audit(verifier, samples=samples, skip=["time", "memory"])
    report.raise_for_failures()
    assert "gold" not in report.unchecked


def test_programs_pass(monkeypatch) -> None:
    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    report = audit(Code(), skip=["time", "memory", "fuzz"])
    report.raise_for_failures()
    assert report.unchecked == ["repeated", "hedge", "echo", "leakage", "splits"]


def test_a_program_that_can_read_its_tests_is_found(monkeypatch) -> None:
    class Careless(Code):
        """It hands the tests to the program."""

        def verify_many(self, replies, references):
            told = [json.dumps(reference) for reference in references]
            given = [
                reply.replace("```python\n", f"```python\nTOLD = {text!r}\n")
                for reply, text in zip(replies, told, strict=True)
            ]
            return super().verify_many(given, references)

    monkeypatch.setenv("ASSAY_SANDBOX", "bwrap")
    samples = [Sample({"tests": "assert f() == 1", "entry_point": "f"}, "def f(): return 1")]
    report = audit(Careless(), samples=samples, checks=["gold", "canary"])
    assert report.failing == ["canary"]


def test_the_winning_reply_has_the_form_that_is_read() -> None:
    assert format_answer("50%", ("hash", "boxed")) == "#### 50%"
    assert format_answer("x", None) == "x"
    for rule in ("boxed", "answer", "hash", "phrase", "last_number", "last_math", "whole"):
        verifier = Math(extract=(rule,))
        assert verifier.verify(verifier.oracle_reply("42"), "42").score == 1.0
    assert Code().oracle_reply({}) is None


class Divides(Verifier):
    """Right is any divisor but 1; so one may be right for several numbers."""

    many_answers = True

    def __init__(self, lax=False):
        self.lax = lax

    def judge(self, reply, reference):
        said = int(reply) if reply.isdecimal() and len(reply) < 9 else 0
        right = said > 1 and (self.lax or reference % said == 0)
        return Verdict.correct() if right else Verdict.wrong("no divisor")


@pytest.mark.parametrize(("lax", "failing"), [(False, []), (True, ["neighbour"])])
def test_an_answer_may_be_right_for_two_tasks_where_there_are_many(lax, failing) -> None:
    numbers = {6: "3", 9: "3", 35: "7", 77: "11"}  # 3 divides 6 and 9: the same solution
    tasks = [Task(f"Divide {n}.", n, solution=s) for n, s in {**numbers, 14: "2"}.items()]
    report = audit(TextEnv(Rows(tasks), Divides(lax)), tasks=5, checks=["neighbour"])
    assert report.failing == failing
    assert report.findings[0].cases


def drawn(split, seed):
    def make_task(rng):
        lights = "".join("#."[int(n)] for n in rng.integers(2, size=40))
        return Task(f"Put out the lights!\n{lights[:20]}\n{lights[20:]}", lights)

    return Generated(make_task, name="lights", split=split, seed=seed)


def test_drawings_are_told_apart_by_their_signs() -> None:
    env = TextEnv(drawn("train", 0), Last())
    assert audit(env, tasks=2, checks=["splits"], sibling=drawn).failing == []
