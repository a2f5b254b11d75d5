"""A reply on which a server fails loses alone, and its neighbours are judged as ever."""

import json
import re
import threading
import time
from typing import Any

import pytest

from assay.verifiers import Judge, PairwiseJudge, Status
from assay.verifiers.judges import endpoint

pytestmark = pytest.mark.slow

KNOWN = {"question": "Largest planet?", "answer": "Jupiter"}
OTHER = {"question": "Smallest planet?", "answer": "Mercury"}
POISON = "venom"


@pytest.fixture(autouse=True)
def short_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(endpoint, "BACKOFF_S", 0.005)
    monkeypatch.setattr(endpoint, "LONGEST_BACKOFF_S", 0.02)


def prompt(body: dict[str, Any]) -> str:
    return str(body["messages"][-1]["content"])


def right(body: dict[str, Any]) -> str:
    reply = re.search(r"\[reply (\w+)\]\n(.*)\n\[end of reply \1\]", prompt(body), re.DOTALL)
    answer = re.search(r"\[answer (\w+)\]\n(.*)\n\[end", prompt(body))
    assert reply is not None
    assert answer is not None
    return f"Verdict: {'CORRECT' if answer[2] in reply[2] else 'INCORRECT'}"


def error(status: int, **headers: str) -> Any:
    return status, headers, json.dumps({"error": {"message": "internal"}}).encode()


def reset(handler: Any) -> None:
    handler.connection.close()
    handler.close_connection = True


def truncated(handler: Any) -> None:
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n{"choices": ')
    handler.close_connection = True


def slow(handler: Any) -> None:
    time.sleep(2)


FILTERED = json.dumps(
    {"choices": [{"message": {"content": "x"}, "finish_reason": "content_filter"}]}
)
CUT = json.dumps({"choices": [{"message": {"content": "so "}, "finish_reason": "length"}]})
ON_POISON = {
    "500": (error(500), True),
    "500 that asks to wait": (error(500, **{"Retry-After": "0.01"}), True),
    "502": (error(502), True),
    "400": (error(400), True),
    "403 of a firewall": (error(403), True),
    "404": (error(404), True),
    "413": (error(413), True),
    "422": (error(422), True),
    "reset": (reset, True),
    "truncated": (truncated, True),
    "HTML": ((200, {}, b"<html>oops</html>"), True),
    "filtered": ((200, {}, FILTERED.encode()), True),
    # what load or our own limits cause as well
    "503": (error(503), False),
    "504": (error(504), False),
    "429": (error(429, **{"Retry-After": "0.01"}), False),
    # what the judge answers in time, and with a verdict, to another reply
    "slow": (slow, True),
    "no verdict": ("I will not say.", True),
    "cut off": ((200, {}, CUT.encode()), True),
}


@pytest.mark.parametrize("name", ON_POISON)
def test_replies_on_which_the_server_fails_spoil_no_neighbour(judge_server, name) -> None:
    said, decided = ON_POISON[name]
    replies = [
        f"{POISON} {n}" if n % 9 == 4 else f"{'Jupiter' if n % 2 else 'Mars'} {n}"
        for n in range(36)
    ]

    def picky(body: dict[str, Any], number: int) -> Any:
        return said if POISON in prompt(body) else right(body)

    with judge_server(picky) as server:
        patience = 1.2 if name == "slow" else 30.0
        judge = Judge("m", base_url=server.url, timeout_s=patience, concurrency=4, attempts=2)
        verdicts = judge.verify_many(replies, [KNOWN] * len(replies))
    for reply, verdict in zip(replies, verdicts, strict=True):
        if POISON not in reply:
            assert verdict.score == float("Jupiter" in reply), (reply, verdict)
        elif decided:
            assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0), verdict
            assert "the same question with another reply is answered" in verdict.reason
        else:
            assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None), verdict


def test_a_batch_that_begins_with_refused_replies_is_judged(judge_server) -> None:
    def picky(body: dict[str, Any], number: int) -> Any:
        return error(500) if POISON in prompt(body) else right(body)

    with judge_server(picky) as server:
        judge = Judge("m", base_url=server.url)
        verdicts = judge.verify_many(
            [f"{POISON} {n}" for n in range(20)] + ["Jupiter"], [KNOWN] * 21
        )
        assert [v.score for v in verdicts] == [0.0] * 20 + [1.0]
        assert judge.verify(f"{POISON} 1", KNOWN).score == 0.0  # it is not remembered, and stays so


def test_a_question_on_which_the_server_fails_is_no_fault_of_its_replies(judge_server) -> None:
    def picky(body: dict[str, Any], number: int) -> Any:
        return error(400) if "Smallest" in prompt(body) else right(body)

    with judge_server(picky) as server:
        judge = Judge("m", base_url=server.url, attempts=2)
        verdicts = judge.verify_many(["Mercury", "Mars"] * 6 + ["Jupiter"], [OTHER] * 12 + [KNOWN])
    assert [v.score for v in verdicts] == [None] * 12 + [1.0]


def is_short(body: dict[str, Any]) -> bool:
    return "Give no reason." in body["messages"][0]["content"]


@pytest.mark.parametrize("form", ["line", "json"])
@pytest.mark.parametrize("takes_schemas", [True, False])
def test_a_judge_that_rambles_is_asked_for_the_verdict_alone(
    judge_server, form, takes_schemas
) -> None:
    def rambling(body: dict[str, Any], number: int) -> Any:
        if not is_short(body):
            return "Well, " * 50
        if not takes_schemas:
            return error(400) if "response_format" in body else "INCORRECT"
        named = body["response_format"]["json_schema"]["schema"]["properties"]["verdict"]["enum"]
        return json.dumps({"verdict": named[1]})

    with judge_server(rambling) as server:
        judge = Judge("m", base_url=server.url, attempts=2, form=form)
        verdicts = judge.verify_many(["Mars", "Venus"], [KNOWN] * 2)
        asked = len(server.bodies)
        assert judge.verify("Mars", KNOWN).score == 0.0  # it is remembered
    assert [(v.status, v.score) for v in verdicts] == [(Status.INCORRECT, 0.0)] * 2
    assert len(server.bodies) == asked
    assert all(body["max_tokens"] <= 64 for body in server.bodies if is_short(body))


@pytest.mark.parametrize(
    "said",
    ["CORRECT or INCORRECT", '{"verdict": "CORRECT", "verdict": "INCORRECT"}', "Correct", ""],
)
def test_a_short_answer_is_one_word_or_none(judge_server, said) -> None:
    def evading(body: dict[str, Any], number: int) -> Any:
        return right(body) if POISON not in prompt(body) else said

    with judge_server(evading) as server:
        judge = Judge("m", base_url=server.url, attempts=1)
        verdict = judge.verify(f"{POISON} Jupiter", KNOWN)
    assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)


def test_a_judge_that_has_no_verdict_on_any_reply_pays_and_charges_nothing(judge_server) -> None:
    with judge_server(lambda body, number: "Well, " * 50) as server:
        judge = Judge("m", base_url=server.url, attempts=2)
        verdicts = judge.verify_many(["Mars", "Jupiter"], [KNOWN] * 2)
    assert [(v.status, v.score) for v in verdicts] == [(Status.VERIFIER_ERROR, None)] * 2


@pytest.mark.parametrize("on_poison", ["<think>Well, ", CUT.encode(), slow])
def test_a_judge_that_thinks_too_long_for_the_short_form_is_asked_in_full(
    judge_server, on_poison
) -> None:
    """What it cannot say in a few tokens it says of neither; the control it answers at length."""

    def thinking(body: dict[str, Any], number: int) -> Any:
        if is_short(body):
            return "<think>Well, "
        poisoned = (200, {}, on_poison) if isinstance(on_poison, bytes) else on_poison
        return poisoned if POISON in prompt(body) else right(body)

    with judge_server(thinking) as server:
        judge = Judge("m", base_url=server.url, attempts=2, timeout_s=1.0)
        verdicts = judge.verify_many([POISON, "Jupiter"], [KNOWN] * 2)
    assert [v.score for v in verdicts] == [0.0, 1.0]
    assert verdicts[0].status is Status.UNPARSEABLE


def test_a_judge_that_thinks_too_long_about_any_reply_charges_nothing(judge_server) -> None:
    def thinking(body: dict[str, Any], number: int) -> Any:
        full = not is_short(body) and "I do not know." not in prompt(body)
        return right(body) if full and POISON not in prompt(body) else "<think>Well, "

    with judge_server(thinking) as server:
        judge = Judge("m", base_url=server.url, attempts=2)
        scores = [v.score for v in judge.verify_many([POISON, "Jupiter"], [KNOWN] * 2)]
    assert scores == [None, 1.0]


@pytest.mark.parametrize("thinks", [False, True])
def test_a_reply_that_makes_the_judge_slow_is_asked_about_alone(judge_server, thinks) -> None:
    def sluggish(body: dict[str, Any], number: int) -> Any:
        if POISON in prompt(body):
            return slow
        return "<think>Well, " if thinks and is_short(body) else right(body)

    replies = [POISON, *(f"Jupiter {n}" for n in range(6))]
    with judge_server(sluggish) as server:
        judge = Judge("m", base_url=server.url, timeout_s=1.0, concurrency=4)
        verdicts = judge.verify_many(replies, [KNOWN] * 7)
    assert [v.score for v in verdicts] == [0.0] + [1.0] * 6
    assert verdicts[0].status is Status.UNPARSEABLE
    last = [POISON in prompt(body) for body in server.bodies[-3:]]
    assert last == [False, True, False]  # the control, the reply and the control, after all others


def test_a_reply_on_which_the_judge_is_long_gets_its_verdict_in_short(judge_server) -> None:
    def wordy(body: dict[str, Any], number: int) -> Any:
        return slow if POISON in prompt(body) and not is_short(body) else right(body)

    with judge_server(wordy) as server:
        judge = Judge("m", base_url=server.url, timeout_s=1.0)
        verdicts = judge.verify_many([f"{POISON} Jupiter", f"{POISON} Mars"], [KNOWN] * 2)
    assert [v.score for v in verdicts] == [1.0, 0.0]


def test_a_server_that_is_late_with_everything_charges_no_reply(judge_server) -> None:
    with judge_server(lambda body, number: slow) as server:
        judge = Judge("m", base_url=server.url, timeout_s=0.3)
        verdicts = judge.verify_many([f"Jupiter {n}" for n in range(4)], [KNOWN] * 4)
    assert {v.score for v in verdicts} == {None}


@pytest.mark.parametrize("concurrency", [1, 2, 5])
@pytest.mark.parametrize("period", [2, 3, 4])
def test_one_dead_server_of_several_behind_an_address_costs_no_reply(
    judge_server, period, concurrency
) -> None:
    def balanced(body: dict[str, Any], number: int) -> Any:
        return error(502) if number % period == 0 else right(body)

    with judge_server(balanced) as server:
        judge = Judge("m", base_url=server.url, concurrency=concurrency, attempts=1)
        verdicts = judge.verify_many([f"Jupiter {n}" for n in range(60)], [KNOWN] * 60)
    assert {v.score for v in verdicts} <= {1.0, None}
    assert sum(v.score == 1.0 for v in verdicts) > 30


def test_an_outage_costs_no_reply_and_ends(judge_server) -> None:
    """The server fails from request 20 to 60, then works; what was lost is None, never 0.0."""

    def recovering(body: dict[str, Any], number: int) -> Any:
        return error(500) if 20 <= number < 60 else right(body)

    with judge_server(recovering) as server:
        judge = Judge("m", base_url=server.url, concurrency=2, attempts=3)
        replies = [f"Jupiter {n}" for n in range(80)]
        scores = [v.score for v in judge.verify_many(replies, [KNOWN] * 80)]
        assert scores[:16] == [1.0] * 16
        assert set(scores) == {1.0, None}
        while None in scores:  # what was lost is asked again, and only that
            before = len(server.bodies)
            lost = scores.count(None)
            scores = [v.score for v in judge.verify_many(replies, [KNOWN] * 80)]
        assert len(server.bodies) - before == lost


def test_outage_and_refused_replies_together(judge_server) -> None:
    """While every request fails, a reply that fails alone cannot be told from the others."""
    down = threading.Event()

    def both(body: dict[str, Any], number: int) -> Any:
        return error(500) if down.is_set() or POISON in prompt(body) else right(body)

    replies = [POISON, "Jupiter", "Mars"]
    with judge_server(both) as server:
        judge = Judge("m", base_url=server.url, attempts=2)
        down.set()
        assert [v.score for v in judge.verify_many(replies, [KNOWN] * 3)] == [None] * 3
        down.clear()
        assert [v.score for v in judge.verify_many(replies, [KNOWN] * 3)] == [0.0, 1.0, 0.0]


def test_a_rate_limit_during_the_trial_is_waited_for(judge_server) -> None:
    def limited(body: dict[str, Any], number: int) -> Any:
        if number % 2:
            return error(429, **{"Retry-After": "0.01"})
        return error(500) if POISON in prompt(body) else right(body)

    with judge_server(limited) as server:
        judge = Judge("m", base_url=server.url, concurrency=1)
        verdicts = judge.verify_many([POISON] * 1 + ["Jupiter"] * 3, [KNOWN] * 4)
    assert [v.score for v in verdicts] == [0.0, 1.0, 1.0, 1.0]


def test_a_pairwise_judge_is_refused_for_the_reply_alone(judge_server) -> None:
    def picky(body: dict[str, Any], number: int) -> Any:
        return error(500) if POISON in prompt(body) else "Verdict: TIE"

    with judge_server(picky) as server:
        judge = PairwiseJudge("m", base_url=server.url, attempts=2)
        assert judge.verify(POISON, KNOWN).score == 0.0
        known = {"question": "Largest planet?", "answer": POISON}
        verdict = judge.verify("Jupiter", known)  # not its fault: the reply it is compared with
        assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
        assert judge.verify("Mars", KNOWN).score == 0.5
