"""Many messages over one WebSocket: each has its own answer."""

import json
import logging
import threading

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from assay.envs import Rows, Task, TextEnv, Turn
from assay.service import ServiceLimits
from assay.service.runner import EpisodeRunner
from assay.verifiers import Exact, Format, FunctionVerifier, Math, Rubric, Verdict

BEARER = {"authorization": "Bearer a-token-of-the-tests-0123456789"}
SHORT = 4096  # characters of what is judged without a thread
ROWS = [Task(f"{n}?", str(n)) for n in range(100)]


class Waiting(Exact):
    """As exact as what it is derived from, and not as quick."""

    def __init__(self) -> None:
        super().__init__()
        self.begun, self.free = threading.Event(), threading.Event()

    def judge(self, reply: str, reference: str) -> Verdict:
        if reply == "wait":
            self.begun.set()
            assert self.free.wait(30)
        return super().judge(reply, reference)


class Stopping(TextEnv):
    """Says itself when it is over."""

    def respond(self, state, reply):
        return Turn.end()


def socket_of(url):
    return connect(
        url.replace("http", "ws") + "/v1/ws", additional_headers=BEARER, compression=None
    )


def ask(ws, op, **fields):
    ws.send(json.dumps({"op": op, "id": 1, **fields}))
    return json.loads(ws.recv(timeout=60))


@pytest.mark.parametrize(
    ("rubric", "quick"),
    [
        (Exact(), True),
        (Rubric({"answer": Exact(extract=("answer",)), "form": Format()}, gate="answer"), True),
        (Waiting(), False),
        (Rubric({"answer": Exact(), "slow": Waiting()}), False),
        (FunctionVerifier(lambda reply, gold: reply == gold), False),
        (Math(), False),
    ],
)
def test_a_class_says_of_its_own_code_alone_that_it_is_quick(rubric, quick) -> None:
    runner = EpisodeRunner(TextEnv(Rows(ROWS[:1]), rubric), 1000, dict)
    assert runner.is_quick(["0"]) is quick
    assert not runner.is_quick(["0"] * 65)
    assert not runner.is_quick(["0" * (SHORT + 1)])
    rubric.close()


def test_an_environment_that_does_something_itself_has_a_thread() -> None:
    assert not EpisodeRunner(Stopping(Rows(ROWS), Exact()), 1000, dict).is_quick(["0"])


def test_a_slow_verifier_keeps_nobody_waiting(host) -> None:
    slow = Waiting()
    with host(TextEnv(Rows(ROWS), slow)) as (url, _), socket_of(url) as one, socket_of(url) as two:
        id_ = ask(one, "reset", tasks=[3])["episodes"][0]["episode"]
        one.send(json.dumps({"op": "step", "id": 2, "steps": [{"episode": id_, "reply": "wait"}]}))
        assert slow.begun.wait(30)
        assert httpx.get(f"{url}/healthz").status_code == 200
        assert ask(two, "score", replies=["3"], tasks=[3])["verdicts"][0]["score"] == 1.0
        again = {"episode": id_, "reply": "3"}
        assert ask(one, "step", steps=[again])["outcomes"][0]["error"]["code"] == "busy"
        slow.free.set()
        assert json.loads(one.recv(timeout=60))["outcomes"][0]["verdict"]["score"] == 0.0


def test_long_and_short_messages_have_the_same_answers(host) -> None:
    with host(TextEnv(Rows(ROWS), Exact())) as (url, _), socket_of(url) as ws:
        for count, padding in ((1, 0), (64, 0), (65, 0), (100, 0), (1, SHORT), (3, SHORT)):
            told = ask(ws, "reset", tasks=[*range(count)])["episodes"]
            steps = [
                {"episode": e["episode"], "reply": f"{i // 2 * 2}{' ' * padding}"}
                for i, e in enumerate(told)
            ]
            outcomes = ask(ws, "step", steps=steps, reset={"count": 70, "seed": 1})
            scores = [o["verdict"]["score"] for o in outcomes["outcomes"]]
            assert scores == [float(i % 2 == 0) for i in range(count)]
            assert len(outcomes["episodes"]) == 70
            held = [e["episode"] for e in outcomes["episodes"]]
            assert ask(ws, "close", episodes=held) == {"id": 1, "closed": 70}


def test_a_step_is_taken_once_however_often_it_is_in_a_message(host) -> None:
    with host(TextEnv(Rows(ROWS), Exact())) as (url, app), socket_of(url) as ws:
        id_ = ask(ws, "reset", tasks=[7])["episodes"][0]["episode"]
        step = {"episode": id_, "reply": "7", "turn": 0}
        one, two = ask(ws, "step", steps=[step, step])["outcomes"]
        assert one == two
        assert one["verdict"]["score"] == 1.0
        assert app.state.service.budget.episodes.total() == 0


def test_messages_sent_without_waiting_have_their_own_answers(host) -> None:
    with host(TextEnv(Rows(ROWS), Exact())) as (url, _), socket_of(url) as ws:
        ask(ws, "reset", tasks=[*range(100)])
        for i in range(100):
            reply = str(i) + " " * (SHORT if i % 10 == 0 else 0)
            ws.send(json.dumps(step(i + 1, reply, id_=i)))
        found = {f["id"]: f for f in (json.loads(ws.recv(timeout=60)) for _ in range(100))}
    assert {f["outcomes"][0]["verdict"]["score"] for f in found.values()} == {1.0}


def step(episode, reply, id_):
    return {"op": "step", "id": id_, "steps": [{"episode": str(episode), "reply": reply}]}


def test_messages_are_counted_and_their_answers_logged(host, caplog) -> None:
    caplog.set_level(logging.INFO, "assay.service.access")
    with host(TextEnv(Rows(ROWS), Exact())) as (url, app), socket_of(url) as ws:
        told = [ask(ws, "score", replies=[str(i)], tasks=[0]) for i in range(20)]
    assert [t["verdicts"][0]["score"] for t in told] == [1.0] + [0.0] * 19
    page = app.state.service.metrics.page().decode()
    assert 'assay_requests_total{route="ws:score",status="200"} 20.0' in page
    rows = [json.loads(r.getMessage()) for r in caplog.records if r.name.endswith("access")]
    size = sum(len(json.dumps(t, separators=(",", ":"))) for t in told)
    assert [row["bytes"] for row in rows if row["path"] == "/v1/ws"] == [size]


def test_a_message_of_more_than_a_batch_is_refused(host) -> None:
    six = {"steps": [{"episode": "1", "reply": "x"}] * 6}
    limits = ServiceLimits(batch=5)
    with host(TextEnv(Rows(ROWS), Exact()), limits) as (url, _), socket_of(url) as ws:
        assert ask(ws, "step", **six)["error"]["code"] == "batch"
        assert ask(ws, "close", episodes=["1"] * 6)["error"]["code"] == "batch"
        assert ask(ws, "close", episodes=["1"] * 5) == {"id": 1, "closed": 0}


def test_a_socket_on_which_nothing_comes_is_closed(host) -> None:
    limits = ServiceLimits(idle_s=0.5)
    with host(TextEnv(Rows(ROWS), Exact()), limits) as (url, app), socket_of(url) as ws:
        ask(ws, "reset", tasks=[1])
        with pytest.raises(ConnectionClosed):
            ws.recv(timeout=30)
        assert app.state.service.budget.episodes.total() == 0
