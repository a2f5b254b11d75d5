"""A server that fails, refuses, hangs or echoes is distinguished from a policy that is wrong."""

import json
import threading
from contextlib import contextmanager

import pytest

from assay.evaluation import Request, ServerFailed, ServerPolicy

pytest.importorskip("openai")


@pytest.fixture
def endpoint(serving):
    """Return a context manager of an endpoint that answers bodies, with its address."""

    @contextmanager
    def serve(answer):
        asked = []

        def answered(_, body):
            asked.append(body)
            return answer(body)

        with serving(answered) as url:
            yield f"{url}/v1", asked

    return serve


def said(text, **more):
    return 200, {"choices": [{"message": {"role": "assistant", "content": text}, **more}]}


def question(task="a", text="?"):
    return Request(task, 0, 0, ({"role": "user", "content": text},), (), 7)


def policy_at(url, **settings):
    return ServerPolicy(url, "m", **{"retries": 0, "timeout_s": 5.0, **settings})


@pytest.mark.parametrize("status", [302, 401, 402, 403, 404, 429, 500, 503, 529])
def test_what_is_not_about_the_question_stops_the_run(endpoint, status) -> None:
    refusal = {"error": {"message": "no"}}
    with (
        endpoint(lambda body: (status, refusal)) as (url, _),
        pytest.raises(ServerFailed, match=str(status)),
    ):
        policy_at(url).respond([question()])


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b'{"choices": []}', b'{"error": "x"}', b"\xff"])
def test_an_answer_that_holds_no_message_stops_the_run(endpoint, raw) -> None:
    with (
        endpoint(lambda body: (200, raw)) as (url, _),
        pytest.raises(ServerFailed, match="holds no message"),
    ):
        policy_at(url).respond([question()])


def test_a_refused_question_has_no_completion_and_others_are_answered(endpoint) -> None:
    def answer(body):
        long = body["messages"][0]["content"] == "long"
        return (400, {"error": {"message": "too long"}}) if long else said("4")

    with endpoint(answer) as (url, _):
        found = policy_at(url).respond([question("a", "long"), question("b", "2+2")])
    assert [a.completion and a.completion.text for a in found] == [None, "4"]
    assert "too long" in found[0].fault


def test_a_server_that_refuses_everything_stops_the_run(endpoint) -> None:
    """Such as for a field that it does not know: thousands of replies had no score."""
    with endpoint(lambda body: (400, {"error": {"message": "unknown field"}})) as (url, _):
        with pytest.raises(ServerFailed, match=r"all 2 requests were refused.*unknown field"):
            policy_at(url).respond([question("a"), question("b")])
        (alone,) = policy_at(url).respond([question("a")])  # one task may be too long
        assert alone.completion is None


def test_the_key_is_in_no_message(endpoint, monkeypatch) -> None:
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    echo = {"error": {"message": "bad request by Bearer sk-very-secret"}}
    with endpoint(lambda body: (400, echo)) as (url, _):
        mine = policy_at(url, api_key_env="MY_KEY")
        (found,) = mine.respond([question()])
    assert "bad request by Bearer ..." in found.fault
    assert "secret" not in json.dumps(mine.describe())


def test_half_a_surrogate_pair_in_a_conversation_can_be_sent(endpoint) -> None:
    """A reply may hold one, and is sent back in the next turn; it ended the run."""
    with endpoint(lambda body: said("\ud800 and \U0001f600")) as (url, asked):
        mine = policy_at(url)
        (first,) = mine.respond([question()])
        mine.respond([question(text=first.completion.text)])
    assert first.completion.text == "\ud800 and \U0001f600"
    assert asked[1]["messages"][0]["content"] == "\ufffd and \U0001f600"


def test_a_failure_does_not_wait_for_the_requests_under_way(endpoint) -> None:
    release, late = threading.Event(), threading.Event()

    def answer(body):
        if body["messages"][0]["content"] == "slow":
            release.wait(60)
            late.set()
            return said("late")
        return 500, {}

    with endpoint(answer) as (url, _):
        with pytest.raises(ServerFailed, match="500"):
            policy_at(url, timeout_s=60.0).respond([question("a", "slow"), question("b", "now")])
        assert not late.is_set()
        release.set()


def test_many_questions_are_asked_side_by_side_and_answered_in_order(endpoint) -> None:
    with endpoint(lambda body: said(body["messages"][0]["content"])) as (url, asked):
        texts = [f"q{i}" for i in range(40)]
        found = policy_at(url, concurrency=5).respond([question(t, t) for t in texts])
        assert policy_at(url).respond([]) == []
    assert [a.completion.text for a in found] == texts
    assert len(asked) == 40


def test_cut_off_filtered_and_empty_replies(endpoint) -> None:
    row = {"choices": [{"message": {"content": None}, "finish_reason": "length"}], "usage": {
        "prompt_tokens": 3, "completion_tokens": True}}  # fmt: skip
    with endpoint(lambda body: (200, row)) as (url, _):
        (found,) = policy_at(url).respond([question()])
    assert (found.completion.text, found.completion.finish) == ("", "length")
    assert (found.prompt_tokens, found.reply_tokens) == (3, None)
    for ended in ("content_filter", "abort", "error", "network_error"):
        with endpoint(lambda body, ended=ended: said("x", finish_reason=ended)) as (url, _):
            policy = policy_at(url)
            (found,) = policy.respond([question()])
        assert found.completion is None, ended
    parts = [{"type": "thinking", "thinking": []}, {"type": "text", "text": "42"}]
    with endpoint(lambda body: said(parts)) as (url, _):
        (found,) = policy_at(url).respond([question()])
    assert found.completion.text == "42"
