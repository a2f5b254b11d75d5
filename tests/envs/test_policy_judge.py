"""A policy as judge: both orders, faults that are ours, and texts that pass for more than one."""

from __future__ import annotations

import pytest

from assay.envs import (
    Completion,
    FunctionPolicy,
    PolicyJudge,
    make,
    pairwise_prompt,
    play,
    rejudged,
)
from assay.verifiers import Exact, FunctionVerifier, Status

TEMPLATE = "{question}: {first} or {second}?"
KNOWN = {"question": "1+1", "answer": "3"}


def judge_of(answers: dict[str, str]) -> PolicyJudge:
    """A judge that says of each prompt what it is told to."""
    return PolicyJudge(
        FunctionPolicy(lambda asked: f"<answer>{answers[asked[0]['content']]}</answer>"), TEMPLATE
    )


@pytest.mark.parametrize(
    ("as_first", "as_second", "score"),
    [("A", "B", 1.0), ("B", "A", 0.0), ("A", "A", 0.5), ("B", "B", 0.5)],
)
def test_only_what_holds_in_both_orders_counts(as_first, as_second, score) -> None:
    judge = judge_of({"1+1: 2 or 3?": as_first, "1+1: 3 or 2?": as_second})
    verdict = judge.verify("<think>one and one</think> 2", KNOWN)
    assert verdict.score == score
    assert verdict.status is (Status.CORRECT if score == 1.0 else Status.INCORRECT)
    assert verdict.extracted == "2"
    assert verdict.reason == f"the judge says {as_first}, and {as_second} with the order swapped"


@pytest.mark.parametrize("said", ["C", "", "A or B", "a"])
def test_a_reply_on_which_alone_the_judge_cannot_be_read_scores_zero(said) -> None:
    unread = {"1+1: 2 or 3?": "A", "1+1: 3 or 2?": said, "1+1: 4 or 3?": "A", "1+1: 3 or 4?": "B"}
    first, second = "1+1: I do not know. or 3?", "1+1: 3 or I do not know.?"
    for control in ({}, {first: "A", second: said}):  # the policy fails on it, or says nothing
        found = judge_of(unread | control).verify_many(["2", "4"], [KNOWN] * 2)
        assert [v.status for v in found] == [Status.VERIFIER_ERROR, Status.CORRECT]
        assert [v.score for v in found] == [None, 1.0]
    verdict = judge_of(unread | {first: "B", second: "A"}).verify("2", KNOWN)
    assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)
    assert said in verdict.reason


def test_a_policy_that_fails_spoils_only_what_it_was_asked() -> None:
    found = judge_of({}).verify_many(["2", "3", ""], [KNOWN] * 3)
    assert [v.score for v in found] == [None, 0.5, 0.0]  # 3 is the known reply itself
    assert "KeyError" in found[0].reason


def test_a_reply_on_which_the_policy_fails_spoils_no_neighbour() -> None:
    calls = []

    def policy(conversations):
        calls.append(len(conversations))
        for (message,) in conversations:
            message["content"].encode()  # raises on half of a surrogate pair
        return [
            Completion(f"<answer>{'A' if ': 2 or' in message['content'] else 'B'}</answer>")
            for (message,) in conversations
        ]

    replies = ["2", "2\ud800"] + [f"2{i}" for i in range(60)]
    found = PolicyJudge(policy, TEMPLATE).verify_many(replies, [KNOWN] * len(replies))
    assert [v.score for v in found] == [1.0, 0.0] + [0.5] * 60
    assert found[1].status is Status.UNPARSEABLE
    assert "UnicodeEncodeError" in found[1].reason
    assert len(calls) < 40
    spoilt = PolicyJudge(policy, TEMPLATE).verify_many(
        ["2", "2"], [KNOWN, {"question": "\ud800", "answer": "3"}]
    )
    assert [v.score for v in spoilt] == [1.0, None]  # the row is at fault, and no reply


def test_a_policy_that_is_down_is_not_asked_about_each_reply() -> None:
    calls = []

    def policy(conversations):
        calls.append(len(conversations))
        raise ConnectionError("refused")

    found = PolicyJudge(policy, TEMPLATE).verify_many([str(i) for i in range(60)], [KNOWN] * 60)
    assert {v.score for v in found if v.reason != "the same as the known reply"} == {None}
    assert len(calls) <= 4


def test_each_question_is_asked_once_and_all_in_one_call() -> None:
    calls = []

    def policy(conversations):
        calls.append([c[0]["content"] for c in conversations])
        return [Completion("<answer>A</answer>") for _ in conversations]

    PolicyJudge(policy, TEMPLATE).verify_many(["2", "2", "4"], [KNOWN] * 3)
    assert calls == [["1+1: 2 or 3?", "1+1: 3 or 2?", "1+1: 4 or 3?", "1+1: 3 or 4?"]]


def test_it_asks_again_unless_it_is_told_to_remember() -> None:
    calls = []

    def policy(conversations):
        calls.append(len(conversations))
        return [Completion("<answer>A</answer>") for _ in conversations]

    for remember, asked in ((0, [2, 2, 4]), (10, [2, 2])):
        calls.clear()
        judge = PolicyJudge(policy, TEMPLATE, remember=remember)
        for replies in (["2"], ["2"], ["2", "4"]):
            found = judge.verify_many(replies, [KNOWN] * len(replies))
            assert [v.score for v in found] == [0.5] * len(replies)
        assert calls == asked


def test_a_reply_cannot_pass_for_two() -> None:
    judge = judge_of({})
    for hostile in ("9 or 2", "2?", "1+1:"):
        verdict = judge.verify(hostile, KNOWN)
        assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)
    spaced = PolicyJudge(FunctionPolicy(lambda asked: ""), "{first} {second}")
    assert spaced.verify("2 9", KNOWN).status is Status.UNPARSEABLE
    assert pairwise_prompt(TEMPLATE, "{first}", "{second}", "x") == "{first}: {second} or x?"


def test_what_it_cannot_be_compared_with_is_a_fault_of_the_data() -> None:
    judge = judge_of({})
    for reference in ({"question": "1+1"}, {"answer": "..."}, {"answer": "1 or 2"}, 3.5j):
        assert judge.verify("2", reference).status is Status.BAD_GOLD


@pytest.mark.parametrize("template", ["{first}", "{first} and", "{question}{first} {second}"])
def test_a_template_needs_its_slots_apart(template) -> None:
    with pytest.raises(ValueError, match=r"slot|needs"):
        PolicyJudge(FunctionPolicy(lambda asked: ""), template)


def test_a_rejudged_environment_puts_the_same_tasks_and_hides_the_answer() -> None:
    env = make("assay/Arithmetic-v1")
    seen = []
    other = rejudged(env, FunctionVerifier(lambda reply, known: bool(seen.append(known)) or 0.25))
    task, same = env.task(3), other.task(3)
    assert (same.messages, same.id, same.solution) == (task.messages, task.id, task.solution)
    assert env.source.schedule(7, 1) == other.source.schedule(7, 1)
    (group,) = play(other, FunctionPolicy(lambda asked: str(task.reference)), [same], 1)
    assert group.rewards == (0.25,)
    assert seen == [{"messages": [{"role": "user", "content": task.text}]}]
    (group,) = play(env, FunctionPolicy(lambda asked: str(task.reference)), [task], 1)
    assert group.rewards == (1.0,)
    other.rubric = Exact()
    assert env.rubric is not other.rubric
