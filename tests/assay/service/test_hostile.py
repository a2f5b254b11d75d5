"""What clients must not be able to do: hold a server up, fill it, or have a step taken twice."""

import base64
import contextlib
import gzip
import json
import math
import socket
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import date
from functools import partial
from urllib.parse import urlsplit

import httpx
import pytest
from starlette import testclient

from assay.envs import Rows, Task, TextEnv, Turn
from assay.service import ServiceLimits, create_app
from assay.service.identity import identity
from assay.verifiers import Exact, FunctionVerifier

TestClient = partial(
    testclient.TestClient, headers={"host": "localhost"}, client=("127.0.0.1", 4000)
)

TOKEN = "a-token-of-the-tests-0123456789"
BEARER = {"authorization": f"Bearer {TOKEN}"}


class Slow(TextEnv):
    """A turn waits until the test lets it go; how many were taken is counted."""

    def __init__(self) -> None:
        super().__init__(Rows([Task("?", "x")]), Exact(), max_turns=3)
        self.free, self.begun, self.taken = threading.Event(), threading.Event(), 0

    def respond(self, state, reply):
        self.taken += 1
        self.begun.set()
        self.free.wait(30)
        return Turn.say(f"heard {reply}")


def test_a_step_that_is_sent_again_while_it_is_taken_is_taken_once() -> None:
    env = Slow()
    with TestClient(create_app(env)) as client, ThreadPoolExecutor(3) as pool:
        id_ = client.post("/v1/episodes", json={"tasks": [0]}).json()["episodes"][0]["episode"]

        def step(reply):
            body = {"reply": reply, "turn": 0}
            return client.post(f"/v1/episodes/{id_}/step", json=body).json()

        first = pool.submit(step, "a")
        assert env.begun.wait(30)
        again = pool.submit(step, "a")
        assert step("b")["error"]["code"] == "busy"
        env.free.set()
        assert first.result() == again.result()
    assert env.taken == 1
    assert first.result()["messages"] == [{"role": "user", "content": "heard a"}]


def test_the_same_step_twice_in_one_request_is_taken_once(served) -> None:
    with TestClient(create_app(served.Guess())) as client:
        id_ = client.post("/v1/episodes", json={"tasks": [40]}).json()["episodes"][0]["episode"]
        step = {"episode": id_, "reply": "50", "turn": 0}
        one, two = client.post("/v1/episodes/step", json={"steps": [step] * 2}).json()["outcomes"]
    assert one == two
    assert (one["turn"], one["messages"][0]["content"]) == (1, "less")


def test_episodes_that_are_over_make_room(served) -> None:
    limits = ServiceLimits(episodes=3)
    with TestClient(create_app(served.Guess(), limits)) as client:
        ids = []
        for task in range(10):
            body = {"tasks": [task]}
            ids.append(client.post("/v1/episodes", json=body).json()["episodes"][0]["episode"])
            body = {"reply": str(task), "turn": 0}
            path = f"/v1/episodes/{ids[-1]}/step"
            last = client.post(path, json=body).json()
            assert last["verdict"]["score"] == 1.0
        assert client.post(path, json=body).json() == last  # the latest are kept for this
        assert client.post("/v1/episodes", json={"tasks": [1], "group_size": 3}).status_code == 200
        assert client.post("/v1/episodes", json={"tasks": [1]}).status_code == 503  # all are played


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {f"f{i}": 0 for i in range(100_000)}),
        ("/v1/score", {"replies": [0] * 300_000, "tasks": [{}] * 300_000}),
        ("/v1/episodes/step", {"steps": [{f"f{i}": 0 for i in range(100_000)}]}),
        ("/v1/groups", {"groups": [{"task": 0, "episodes": [{"verdict": 0}] * 100_000}]}),
    ],
)
def test_a_million_faults_are_told_as_one(served, path, body) -> None:
    with TestClient(create_app(served.Sums())) as client:
        started = time.thread_time()
        answer = client.post(path, json=body)
        assert answer.status_code == 422
        assert len(answer.text) < 2000
        assert time.thread_time() - started < 60


def test_numbers_that_json_does_not_have_are_refused(served) -> None:
    with TestClient(create_app(served.Sums(), references=True)) as client:
        for text in ("NaN", "[1, Infinity]", '{"a": -Infinity}'):
            body = f'{{"replies": ["x"], "references": [{text}]}}'
            headers = {"content-type": "application/json"}
            answer = client.post("/v1/score", content=body, headers=headers)
            assert (answer.status_code, "without NaN" in answer.text) == (422, True)
            with client.websocket_connect("/v1/ws") as ws:
                ws.send_text(f'{{"op": "score", "id": 1, {body[1:]}')
                assert ws.receive_json()["error"]["code"] == "invalid"


def test_a_body_that_is_packed_is_refused_with_the_remedy(served) -> None:
    with TestClient(create_app(served.Sums())) as client:
        body = gzip.compress(b'{"replies": ["20"], "tasks": [3]}')
        headers = {"content-encoding": "gzip", "content-type": "application/json"}
        answer = client.post("/v1/score", content=body, headers=headers)
    assert (answer.status_code, answer.json()["error"]["code"]) == (415, "encoding")


def test_other_machines_need_a_token_whatever_they_call_this_one(served) -> None:
    app = create_app(served.Sums())
    with TestClient(app, client=("10.0.0.9", 4000)) as client:
        answer = client.get("/v1/environment", headers={"host": "localhost"})
    assert answer.status_code == 403


class Odd(TextEnv):
    """Tells what JSON cannot hold."""

    def __init__(self, said="fine") -> None:
        metadata = {"share": math.nan, "day": date(2026, 1, 2), "levels": [1, math.inf]}
        super().__init__(Rows([Task("?", "x", metadata=metadata)]), Exact(), max_turns=2)
        self.said = said

    def respond(self, state, reply):
        return Turn(({"role": "user", "content": self.said},))


def test_metadata_is_told_as_json_can_hold_it() -> None:
    with TestClient(create_app(Odd())) as client:
        told = client.get("/v1/tasks/0").json()["tasks"][0]["metadata"]
    assert told == {"share": None, "day": "2026-01-02", "levels": [1, None]}


def test_a_message_that_cannot_be_answered_is_answered_all_the_same() -> None:
    with TestClient(create_app(Odd(said=b"bytes"))) as client:
        with client.websocket_connect("/v1/ws") as ws:
            ws.send_json({"op": "reset", "id": 1, "tasks": [0]})
            episode = ws.receive_json()["episodes"][0]["episode"]
            steps = [{"episode": episode, "reply": "x"}]
            ws.send_json({"op": "step", "id": 2, "steps": steps})
            assert ws.receive_json()["error"]["code"] == "fault"
            ws.send_json({"op": "tasks", "id": 3, "tasks": [0]})
            assert ws.receive_json()["id"] == 3
        with client.websocket_connect("/openenv/ws") as ws:
            ws.send_json({"type": "reset", "data": {}})
            assert ws.receive_json()["type"] == "observation"
            ws.send_json({"type": "step", "data": {"reply": "x"}})
            assert ws.receive_json()["data"]["code"] == "EXECUTION_ERROR"
            ws.send_json({"type": "state"})
            assert ws.receive_json()["type"] == "state"


def test_a_game_whose_judge_is_down_is_not_ready(served) -> None:
    class Game(served.Guess):
        def respond(self, state, reply):
            raise AssertionError("a probe plays no turn that it does not know")

    class Down(FunctionVerifier):
        """Cannot judge; but knows what would win."""

        def winning_reply(self, reference):
            return str(reference)

    def fails(reply, gold):
        raise ConnectionError("no sandbox")

    for judge, code in ((Down(fails), 503), (FunctionVerifier(fails), 200)):
        env = Game()
        env.rubric = judge
        with TestClient(create_app(env)) as client:
            assert client.get("/readyz").status_code == code


def test_what_is_served_has_one_hash_wherever_it_is_made(served) -> None:
    assert identity(served.Sums()) == identity(served.Sums())
    known = {identity(env) for env in (served.Sums(), served.Sums(49), served.Guess())}
    other = served.Sums()
    other.source = Rows([Task(t.text, t.reference + "0", id=t.id) for t in other.source.tasks])
    stricter = served.Sums()
    stricter.rubric = FunctionVerifier(lambda reply, gold: reply == gold)
    assert len(known | {identity(other), identity(stricter)}) == 5


def connected(url):
    address = urlsplit(url)
    client = socket.create_connection((address.hostname, address.port))
    client.settimeout(20)
    return client


def test_headers_that_drip_end_the_connection_at_any_request(host, served) -> None:
    with host(served.Sums(), ServiceLimits(read_s=0.5)) as (url, _):
        client = connected(url)
        for _ in range(2):
            client.sendall(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
            told = b""
            while b'"ok"' not in told:
                told += client.recv(1000)
        client.sendall(b"GET /healthz HT")
        with contextlib.suppress(ConnectionResetError):
            assert client.recv(1000) == b""
        client.close()


def test_answers_to_pings_that_nobody_reads_do_not_pile_up(host, served) -> None:
    key = base64.b64encode(b"0" * 16).decode()
    lines = ["GET /v1/ws HTTP/1.1", "Host: localhost", "Upgrade: websocket"]
    lines += ["Connection: Upgrade", f"Sec-WebSocket-Key: {key}", "Sec-WebSocket-Version: 13"]
    lines += [f"Authorization: Bearer {TOKEN}", "", ""]
    ping = b"\x89\xfd\0\0\0\0" + b"x" * 125
    with host(served.Sums(), ServiceLimits(read_s=60.0)) as (url, app):
        client = connected(url)
        client.sendall("\r\n".join(lines).encode())
        assert b"101" in client.recv(1000)
        client.settimeout(2)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 60_000_000:
                sent += client.send(ping * 1000)
        assert httpx.get(f"{url}/healthz").status_code == 200
        (socket_,) = (c for c in app.state.uvicorn.server_state.connections if hasattr(c, "frames"))
        assert socket_.transport.get_write_buffer_size() < 2**20
        client.close()


def test_many_messages_in_one_packet_all_have_their_answers(host, served) -> None:
    from websockets.sync.client import connect

    with host(served.Sums()) as (url, _):
        address = url.replace("http", "ws") + "/v1/ws"
        with connect(address, additional_headers=BEARER, compression=None) as ws:
            for i in range(3000):
                ws.send(json.dumps({"op": "score", "id": i, "replies": ["17"], "tasks": [0]}))
            found = [json.loads(ws.recv(timeout=60)) for _ in range(3000)]
    assert sorted(f["id"] for f in found) == list(range(3000))
    assert {f["verdicts"][0]["score"] for f in found} == {1.0}


def test_episodes_that_cannot_begin_cost_no_outcome(served) -> None:
    app = create_app(served.Guess(), ServiceLimits(episodes=1))
    with TestClient(app) as client:
        id_ = client.post("/v1/episodes", json={"tasks": [40]}).json()["episodes"][0]["episode"]
        step = {"episode": id_, "reply": "50", "turn": 0}
        body = {"steps": [step], "reset": {"tasks": [1]}}
        told = client.post("/v1/episodes/step", json=body).json()
        assert told["not_begun"]["code"] == "episodes"
        app.state.service.budget.limits = ServiceLimits(episodes=2)
        again = client.post("/v1/episodes/step", json=body).json()
        assert again["outcomes"] == told["outcomes"]
        assert len(again["episodes"]) == 1
