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
from assay.verifiers import Exact, Format, FunctionVerifier, Math, Rubric, Verdict

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


@pytest.fixture
def socket_of(bearer):
    return lambda url: connect(
        url.replace("http", "ws") + "/v1/ws", additional_headers=bearer, compression=None
    )


def ask(ws, op, **fields):
    ws.send(json.dumps({"op": op, "id": 1, **fields}))
    return json.loads(ws.recv(timeout=60))


class Noting(TextEnv):
    """Notes in which thread it judges."""

    def __init__(self, rubric: object) -> None:
        super().__init__(Rows(ROWS), rubric)
        self.threads: set[str] = set()
        judge = rubric.verify_many

        def noted(replies, references):
            self.threads.add(threading.current_thread().name.split("_")[0])
            return judge(replies, references)

        rubric.verify_many = noted


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
def test_only_short_replies_of_a_quick_class_have_no_thread(local, rubric, quick) -> None:
    """A class says so of its own code alone, not of what is derived from it."""
    env = Noting(rubric)
    with local(env) as client:
        for replies, inline in ((["0"], quick), (["0"] * 65, False), (["0" * 4097], False)):
            env.threads.clear()
            body = {"replies": replies, "tasks": [0] * len(replies)}
            assert client.post("/v1/score", json=body).status_code == 200
            assert ("assay-serve" not in env.threads) is inline


def test_a_slow_verifier_keeps_nobody_waiting(host, socket_of) -> None:
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


def test_long_and_short_messages_have_the_same_answers(host, socket_of) -> None:
    with host(TextEnv(Rows(ROWS), Exact())) as (url, app), socket_of(url) as ws:
        for count, padding in ((1, 0), (64, 0), (65, 0), (100, 0), (1, SHORT), (3, SHORT)):
            begun = ask(ws, "reset", tasks=[*range(count)])["episodes"]
            steps = [
                {"episode": e["episode"], "reply": f"{i // 2 * 2}{' ' * padding}", "turn": 0}
                for i, e in enumerate(begun)
            ]
            outcomes = ask(ws, "step", steps=[*steps, steps[0]], reset={"count": 70, "seed": 1})
            scores = [o["verdict"]["score"] for o in outcomes["outcomes"]]
            assert scores == [*(float(i % 2 == 0) for i in range(count)), 1.0]
            held = [e["episode"] for e in outcomes["episodes"]]
            assert ask(ws, "close", episodes=held) == {"id": 1, "closed": 70}
        assert app.state.service.sessions.episodes.total() == 0


def test_messages_sent_without_waiting_have_their_own_answers(host, socket_of) -> None:
    with host(TextEnv(Rows(ROWS), Exact())) as (url, _), socket_of(url) as ws:
        ids = [e["episode"] for e in ask(ws, "reset", tasks=[*range(100)])["episodes"]]
        for i, id_ in enumerate(ids):
            reply = str(i) + " " * (SHORT if i % 10 == 0 else 0)
            step = {"episode": id_, "reply": reply}
            ws.send(json.dumps({"op": "step", "id": i, "steps": [step]}))
        for i in range(2000):
            ws.send(json.dumps({"op": "score", "id": f"s{i}", "replies": ["0"], "tasks": [0]}))
        found = {f["id"]: f for f in (json.loads(ws.recv(timeout=60)) for _ in range(2100))}
    assert {found[i]["outcomes"][0]["verdict"]["score"] for i in range(100)} == {1.0}
    assert {found[f"s{i}"]["verdicts"][0]["score"] for i in range(2000)} == {1.0}


def test_messages_are_counted_and_their_answers_logged(host, socket_of, caplog) -> None:
    caplog.set_level(logging.INFO, "assay.service.access")
    with host(TextEnv(Rows(ROWS), Exact())) as (url, app), socket_of(url) as ws:
        answers = [ask(ws, "score", replies=[str(i)], tasks=[0]) for i in range(20)]
    assert [t["verdicts"][0]["score"] for t in answers] == [1.0] + [0.0] * 19
    page = app.state.service.metrics.page().decode()
    assert 'assay_requests_total{route="ws:score",status="200"} 20.0' in page
    rows = [json.loads(r.getMessage()) for r in caplog.records if r.name.endswith("access")]
    size = sum(len(json.dumps(t, separators=(",", ":"))) for t in answers)
    assert [row["bytes"] for row in rows if row["path"] == "/v1/ws"] == [size]


def test_a_message_of_more_than_a_batch_is_refused(host, socket_of) -> None:
    limits = ServiceLimits(batch=5)
    with host(TextEnv(Rows(ROWS), Exact()), limits) as (url, _), socket_of(url) as ws:
        for op, fields in (
            ("step", {"steps": [{"episode": "1", "reply": "x"}] * 6}),
            ("close", {"episodes": ["1"] * 6}),
        ):
            assert ask(ws, op, **fields)["error"]["code"] == "batch"
        assert ask(ws, "close", episodes=["1"] * 5) == {"id": 1, "closed": 0}


def test_episodes_go_with_their_socket(host, socket_of, until) -> None:
    """Also one that begins after its client has left, and if nothing comes for too long."""

    class Slow(TextEnv):
        begun, free = threading.Event(), threading.Event()

        def begin(self, task):
            self.begun.set()
            assert self.free.wait(30)
            return super().begin(task)

    env = Slow(Rows(ROWS), Exact())
    with host(env) as (url, app):
        with socket_of(url) as ws:
            ws.send(json.dumps({"op": "reset", "id": 1, "tasks": [1]}))
            assert env.begun.wait(30)
        env.free.set()
        until(lambda: not app.state.service.queue.waiting)
        with socket_of(url) as ws:
            assert ask(ws, "reset", tasks=[1])["episodes"]
            app.state.service.limits = ServiceLimits(idle_s=0.05)  # from the next message on
            ws.send(json.dumps({"op": "tasks", "id": 2, "tasks": [1]}))
            with pytest.raises(ConnectionClosed):  # noqa: PT012  # before or after its answer
                ws.recv(timeout=30)
                ws.recv(timeout=30)
        until(lambda: app.state.service.sessions.episodes.total() == 0)


def test_a_turn_of_its_own_is_played(host, socket_of) -> None:
    class Stopping(TextEnv):
        def respond(self, state, reply):
            return Turn.end()

    with host(Stopping(Rows(ROWS), Exact())) as (url, _), socket_of(url) as ws:
        assert ask(ws, "score", replies=["1"], tasks=[1])["error"]["code"] == "turns"
        id_ = ask(ws, "reset", tasks=[1])["episodes"][0]["episode"]
        (outcome,) = ask(ws, "step", steps=[{"episode": id_, "reply": "1"}])["outcomes"]
        assert (outcome["done"], outcome["verdict"]["score"]) == (True, 1.0)
