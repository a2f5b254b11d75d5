"""Servers that lie, change, or are something else: no score of theirs is anybody's."""

import json

import pytest

from assay.envs import FunctionPolicy, rollout
from assay.service import RemoteEnv, RemoteError
from assay.verifiers import Status

RIGHT = {"status": "correct", "score": 1.0, "reason": "", "extracted": None, "parts": {}}
DESCRIBED = {
    "name": "odd/Server-v0",
    "sha256": "0" * 16,
    "protocol": 1,
    "size": 5,
    "max_turns": 1,
    "lone_replies": True,
    "group_rubric": False,
    "tools": None,
    "limits": {"batch": 100, "body_bytes": 10**6},
}


@pytest.fixture
def odd(serving):
    """A server that answers each path with whatever the test puts there; and its address."""
    answers = {"/v1/environment": DESCRIBED}

    def answer(path, body):
        found = answers[path]
        found = found(body) if callable(found) else found
        return found if isinstance(found, tuple) else (200, found)

    with serving(answer) as url:
        yield answers, url


@pytest.mark.parametrize(
    "answer",
    [
        {"verdicts": [RIGHT]},  # one for two: whose is it?
        {"verdicts": [RIGHT] * 3},
        {"verdicts": None},
        {},
        [RIGHT, RIGHT],
        {"verdicts": [{**RIGHT, "score": None}] * 2},
        {"verdicts": [{**RIGHT, "score": 1.5}] * 2},  # outside the range that it gave
        {"verdicts": [{**RIGHT, "status": "perfect"}] * 2},
        {"verdicts": [{**RIGHT, "status": "sandbox_error", "score": 0.0}] * 2},
        {"verdicts": [{"score": 1.0}] * 2},
        (200, b"<html>Sign in to this network</html>"),
        {"verdicts": [{**RIGHT, "score": float("nan")}] * 2},
        (302, b""),
    ],
)
def test_an_answer_that_is_not_one_verdict_for_each_reply_is_no_score(odd, answer) -> None:
    answers, url = odd
    answers["/v1/score"] = answer
    env = RemoteEnv(url, retries=0)
    found = env.rubric.verify_many(["a", "b"], [0, 1])
    env.close()
    assert [(v.status, v.score) for v in found] == [(Status.VERIFIER_ERROR, None)] * 2


REPLIES = [f"reply {k}" for k in range(20)]


def judged_by(odd, refuses, replies):
    """Verdicts of a server that refuses some requests; and how many requests it was sent."""
    answers, url = odd
    sizes = []

    def answer(body):
        asked = body["replies"]
        sizes.append(len(asked))
        status = refuses(body, asked)
        return (status, b"<html>") if status else {"verdicts": [RIGHT] * len(asked)}

    answers["/v1/score"] = answer
    env = RemoteEnv(url, retries=0)
    found = env.rubric.verify_many(replies, [0] * len(replies))
    env.close()
    return [(v.status.value, v.score) for v in found], sizes


@pytest.mark.parametrize(
    ("odd_one", "refuses", "verdict", "most"),
    [
        ("slow", lambda _, asked: 504 if "slow" in asked else 0, ("verifier_error", None), 12),
        (
            "x" * 5000,
            lambda body, _: 413 if len(json.dumps(body)) > 4000 else 0,
            ("unparseable", 0.0),
            30,
        ),
    ],
)
def test_a_reply_that_is_slow_or_too_long_costs_no_neighbour_its_score(
    odd, odd_one, refuses, verdict, most
) -> None:
    found, sizes = judged_by(odd, refuses, [*REPLIES[:11], odd_one, *REPLIES[11:]])
    assert found.pop(11) == verdict
    assert found == [("correct", 1.0)] * 20
    assert len(sizes) < most


@pytest.mark.parametrize(
    ("replies", "status", "scores", "most"),
    [
        (REPLIES, 504, [None] * 20, 11),  # a server that is always late is not asked for each
        (["a", {"reply": "b"}, None, "c"], 0, [1.0, None, None, 1.0], 1),  # no text is not sent
    ],
)
def test_what_cannot_be_answered_is_not_asked(odd, replies, status, scores, most) -> None:
    found, sizes = judged_by(odd, lambda *_: status, replies)
    assert [score for _, score in found] == scores
    assert {word for word, score in found if score is None} == {"verifier_error"}
    assert len(sizes) <= most
    assert sizes[0] == sum(isinstance(reply, str) for reply in replies)


@pytest.mark.parametrize(
    "answer", [{"outcomes": []}, {"outcomes": [{}]}, {"outcomes": [{"error": {"message": "no"}}]}]
)
def test_an_outcome_that_is_none_ends_the_episode_without_a_score(odd, answer) -> None:
    answers, url = odd
    task = {"messages": [{"role": "user", "content": "?"}], "id": "a", "metadata": {}}
    answers["/v1/environment"] = {**DESCRIBED, "max_turns": 3, "lone_replies": False}
    for index in range(5):
        answers[f"/v1/tasks/{index}"] = {"tasks": [task]}
    answers["/v1/episodes"] = {"episodes": [{"episode": "e", "task": task}]}
    answers["/v1/episodes/step"] = answer
    answers["/v1/episodes/close"] = {"closed": 1}
    env = RemoteEnv(url, retries=0)
    (group,) = rollout(env, FunctionPolicy(lambda _: "x"), 1, 1)
    env.close()
    assert group.episodes[0].verdict.status is Status.VERIFIER_ERROR
    assert group.rewards == (None,)


@pytest.mark.parametrize("described", [{}, [], {**DESCRIBED, "protocol": 2}])
def test_another_version_of_the_messages_is_refused_at_once(odd, described) -> None:
    answers, url = odd
    answers["/v1/environment"] = described
    with pytest.raises(RemoteError, match="same version of Assay"):
        RemoteEnv(url, retries=0)


def test_scores_of_another_environment_are_not_taken(host, served) -> None:
    token = "a-token-of-the-tests-0123456789"
    with host(served.Sums()) as (url, _):
        env = RemoteEnv(url, token, retries=0)
        assert env.rubric.verify("20", 3).score == 1.0
        env.remote.serves = "0" * 16  # as if the server had been started anew, with other data
        found = env.rubric.verify("20", 3)
        with pytest.raises(RemoteError, match="another environment is served now"):
            env.task(4)
        env.close()
    assert (found.status, found.score) == (Status.VERIFIER_ERROR, None)
    assert "another environment" in found.reason
