"""The routes: scores, episodes, limits, tokens."""

import json
import logging
import math
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from datetime import date

import pytest
from starlette.websockets import WebSocketDisconnect

from assay.envs import Rows, Task, TextEnv, Turn
from assay.service import Tokens, check_exposure, create_app
from assay.verifiers import Exact, FunctionVerifier

SECRET, OTHER = "s3cret-s3cret-s3cret", "other-other-other-other"


@pytest.fixture
def client(served, local):
    with local(served.Sums()) as client:
        yield client


@pytest.fixture
def game(served, local):
    with local(served.Guess()) as client:
        yield client


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def begin(client, headers=None, **body):
    answer = client.post("/v1/episodes", json=body, headers=headers)
    assert answer.status_code == 200, answer.text
    return [row["episode"] for row in answer.json()["episodes"]]


def waiting(event):
    """An environment whose judge waits for an event."""
    judge = FunctionVerifier(lambda reply, gold: float(event.wait(30)))
    return TextEnv(Rows([Task("?", "x")]), judge)


def test_scores_come_in_order_by_number_or_id(client) -> None:
    body = {"replies": ["20", "20", "nothing"], "tasks": ["sum3", 4, 3]}
    found = client.post("/v1/score", json=body).json()["verdicts"]
    assert [v["score"] for v in found] == [1.0, 0.0, 0.0]


def test_a_fault_of_ours_has_no_score(local) -> None:
    def judge(reply, gold):
        raise RuntimeError(gold)

    with local(TextEnv(Rows([Task("?", "the answer")]), FunctionVerifier(judge))) as client:
        answer = client.post("/v1/score", json={"replies": ["x"], "tasks": [0]})
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    verdict = answer.json()["verdicts"][0]
    assert (verdict["score"], verdict["status"]) == (None, "verifier_error")
    assert "the answer" not in answer.text


def test_a_game_whose_judge_is_down_is_not_ready(served, local) -> None:
    class Game(served.Guess):
        def respond(self, state, reply):
            raise AssertionError("a probe plays no turn that it does not know")

    class Down(FunctionVerifier):
        """Cannot judge, but knows what would win."""

        def oracle_reply(self, reference):
            return str(reference)

    def fails(reply, gold):
        raise ConnectionError("no sandbox")

    for judge, code in ((Down(fails), 503), (FunctionVerifier(fails), 200)):
        env = Game()
        env.rubric = judge
        with local(env) as client:
            assert client.get("/readyz").status_code == code


def test_no_route_returns_a_reference(served, local) -> None:
    env = served.Sums()
    gold = "THE-GOLD"
    env.source = Rows([Task("?", gold, solution=gold, metadata={"kind": "loud"})])
    with local(env) as client:
        (id_,) = begin(client, tasks=[0])
        answers = [
            client.get("/v1/tasks/0"),
            client.post("/v1/tasks", json={"tasks": ["0"]}),
            client.post("/v1/episodes", json={"tasks": [0]}),
            client.post("/v1/score", json={"replies": ["x"], "tasks": [0]}),
            client.post(f"/v1/episodes/{id_}/step", json={"reply": "x"}),
            *(client.get(path) for path in ("/v1/environment", "/openapi.json", "/metrics")),
        ]
        with client.websocket_connect("/openenv/ws") as socket:
            shown = ""
            for message in (("reset", {"task": 0}), ("step", {"reply": "x"})):
                socket.send_json(dict(zip(("type", "data"), message, strict=True)))
                shown += socket.receive_text()
    assert all(a.status_code == 200 for a in answers)
    assert gold not in shown + "".join(a.text for a in answers)


def test_references_of_clients_are_judged_only_if_that_is_allowed(client, served, local) -> None:
    body = {"replies": ["cat"], "references": ["cat"]}
    assert client.post("/v1/score", json=body).status_code == 403
    with local(served.Sums(), flags={"references": True, "reasons": True}) as open_client:
        assert open_client.post("/v1/score", json=body).json()["verdicts"][0]["score"] == 1.0
        for text in ("NaN", "[1, Infinity]", '{"a": -Infinity}'):
            bad = f'{{"replies": ["x"], "references": [{text}]}}'
            json_type = {"content-type": "application/json"}
            answer = open_client.post("/v1/score", content=bad, headers=json_type)
            assert (answer.status_code, "without NaN" in answer.text) == (422, True)
            with open_client.websocket_connect("/v1/ws") as ws:
                ws.send_text(f'{{"op": "score", "id": 1, {bad[1:]}')
                assert ws.receive_json()["error"]["code"] == "invalid"


def test_an_episode_from_begin_to_end(game) -> None:
    first, second = begin(game, tasks=["n40"], group_size=2)

    def step(reply, turn, id_=first):
        answer = game.post(f"/v1/episodes/{id_}/step", json={"reply": reply, "turn": turn})
        return answer.status_code, answer.json()

    _, outcome = step("50", 0)
    assert (outcome["messages"], outcome["reward"]) == ([{"role": "user", "content": "less"}], 0.1)
    assert (outcome["done"], outcome["verdict"]) == (False, None)
    _, last = step("40", 1)
    assert (last["done"], last["verdict"]["score"], last["reward"]) == (True, 1.0, 0.5)
    # Sent again, as after a lost answer, it is answered alike and not taken twice.
    assert step("40", 1) == (200, last)
    for reply, turn, code in (("41", 1, "turn"), ("41", 2, "over")):
        status, refused = step(reply, turn)
        assert (status, refused["error"]["code"]) == (409, code)
    assert game.delete(f"/v1/episodes/{second}").json() == {"closed": 1}
    status, gone = step("40", 0, second)
    assert (status, gone["error"]["code"]) == (404, "episode")


def test_a_seed_puts_the_task_that_it_puts_at_home(game, served) -> None:
    _, info = served.Guess().reset(seed=11)
    begun = game.post("/v1/episodes", json={"seed": 11}).json()["episodes"]
    assert begun[0]["task"]["id"] == info["task"]


@pytest.mark.parametrize(
    ("steps", "found"),
    [
        ([{"reply": "5"}, {"reply": "6"}], [1, "busy"]),
        ([{"reply": "50", "turn": 0}] * 2, [1, 1]),
        ([{"reply": "50", "turn": 1}], ["turn"]),
    ],
)
def test_several_steps_of_one_episode_in_one_request(game, steps, found) -> None:
    (id_,) = begin(game, tasks=[40])
    body = {"steps": [{"episode": id_, **step} for step in steps]}
    outcomes = game.post("/v1/episodes/step", json=body).json()["outcomes"]
    assert [o.get("turn") or o["error"]["code"] for o in outcomes] == found
    if found == [1, 1]:
        assert outcomes[0] == outcomes[1]


class Slow(TextEnv):
    """A turn waits until the test lets it go; the turns are counted."""

    def __init__(self) -> None:
        super().__init__(Rows([Task("?", "x")]), Exact(), max_turns=3)
        self.free, self.begun, self.taken = threading.Event(), threading.Event(), 0

    def respond(self, state, reply):
        self.taken += 1
        self.begun.set()
        self.free.wait(30)
        return Turn.say(f"heard {reply}")


def test_a_step_that_is_sent_again_while_it_is_taken_is_taken_once(local) -> None:
    env = Slow()
    with local(env) as client, ThreadPoolExecutor(3) as pool:
        (id_,) = begin(client, tasks=[0])

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


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong-wrong-wrong-wrong"),
        {"authorization": SECRET},
        {"authorization": "Basic x"},
    ],
)
def test_without_a_known_token_nothing_is_answered(served, local, headers) -> None:
    with local(served.Sums(), [SECRET]) as client:
        answer = client.get("/v1/environment", headers=headers)
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/v1/ws", headers=headers),
        ):
            pass
        assert client.get("/metrics", headers=headers).status_code == 401
        assert client.get("/healthz", headers=headers).status_code == 200
        assert client.get("/v1/environment", headers=bearer(SECRET)).status_code == 200


def test_an_episode_is_its_tokens_own(served, local) -> None:
    with local(served.Guess(), [SECRET, OTHER]) as client:
        (id_,) = begin(client, bearer(SECRET), tasks=[1])
        for token, code in ((OTHER, 404), (SECRET, 200)):
            answer = client.post(
                f"/v1/episodes/{id_}/step", json={"reply": "1"}, headers=bearer(token)
            )
            assert answer.status_code == code


def test_no_token_is_logged_or_shown(served, local, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    with local(served.Sums(), [SECRET]) as client:
        client.get("/v1/environment?token=" + SECRET, headers=bearer(SECRET))
    logged = [r for r in caplog.records if r.name.startswith(("assay", "uvicorn"))]
    row = json.loads(next(r.getMessage() for r in logged if r.name == "assay.service.access"))
    assert (row["status"], row["owner"][:6]) == (200, "token-")
    assert SECRET not in repr(Tokens([SECRET])) + "".join(r.getMessage() for r in logged)


def test_short_tokens_and_open_addresses_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="at least 16") as refused:
        Tokens(["short"])
    assert "short" not in str(refused.value).replace("shorter", "")
    path = tmp_path / "tokens"
    path.write_text(f"# ours\n{SECRET}\n\n")
    path.chmod(0o600)
    assert len(Tokens.read(path)) == 1
    path.chmod(0o644)
    with pytest.warns(UserWarning, match=r"mode 0644.*chmod 600") as warned:
        assert len(Tokens.read(path)) == 1
    assert SECRET not in str(warned[0].message)
    for host in ("0.0.0.0", "::", "10.0.0.7", "example.org"):  # noqa: S104  # what must not be bound
        with pytest.raises(ValueError, match="--token-file"):
            check_exposure(host, Tokens())
        check_exposure(host, Tokens([SECRET]))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposure(host, Tokens())


@pytest.mark.parametrize(
    ("where", "headers", "code"),
    [
        ({}, {"origin": "http://localhost"}, 200),
        ({}, {"origin": "http://evil.example"}, 403),
        ({}, {"origin": "http://[bad"}, 403),
        ({"host": "evil.example"}, {}, 403),
        ({"host": "testserver"}, {}, 403),
        ({"client": "10.0.0.9"}, {}, 403),
        ({"client": "testclient"}, {}, 403),
    ],
)
def test_without_tokens_only_this_machine_is_answered(served, local, where, headers, code) -> None:
    with local(served.Sums(), **where) as client:
        assert client.get("/v1/environment", headers=headers).status_code == code
        if code == 403:
            with (
                pytest.raises(WebSocketDisconnect),
                client.websocket_connect("/v1/ws", headers=headers),
            ):
                pass


def test_schemas_are_published_and_no_page_loads_scripts_of_others(client) -> None:
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    sent = client.get("/openapi.json").json()
    assert {"/v1/score", "/v1/episodes", "/v1/episodes/{episode}/step"} <= set(sent["paths"])
    assert "replies" in sent["components"]["schemas"]["Score"]["properties"]
    assert "verdict" in sent["components"]["schemas"]["Outcome"]["properties"]


def test_one_of_several_tokens_does_not_take_all_there_is(served, local) -> None:
    """Of episodes, their text, and WebSockets, each has its share; one token alone has all."""
    limits = {"episodes": 8, "sockets": 4, "held_mib": 1, "token_share": 0.5}
    body = {"tasks": [1], "group_size": 2}
    with local(served.Guess(), [SECRET, OTHER], **limits) as client:
        for code in (200, 200, 503):
            answer = client.post("/v1/episodes", json=body, headers=bearer(SECRET))
            assert answer.status_code == code
        assert answer.json()["error"]["code"] == "share"
        assert "token_share" in answer.json()["error"]["message"]
        path = f"/v1/episodes/{begin(client, bearer(OTHER), **body)[0]}/step"
        step = {"reply": "x" * 140_000}
        assert client.post(path, json=step, headers=bearer(OTHER)).status_code == 503
        with (
            client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
            client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
            client.websocket_connect("/openenv/ws", headers=bearer(OTHER)),
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
        ):
            pass
    with local(served.Guess(), [SECRET], **limits) as client:
        assert len([id_ for _ in range(4) for id_ in begin(client, bearer(SECRET), **body)]) == 8


def test_a_body_that_is_too_large_is_not_read(served, local) -> None:
    with local(served.Sums(), body_bytes=1000) as client:
        assert client.post("/v1/score", content=b"x" * 1001).status_code == 413
        chunks = (b"x" * 100 for _ in range(11))
        assert client.post("/v1/score", content=chunks).status_code == 413


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {"replies": ["1"] * 6, "tasks": [1] * 6}),
        ("/v1/tasks", {"tasks": [1] * 6}),
        ("/v1/episodes", {"tasks": [1, 2, 3], "group_size": 2}),
        ("/v1/episodes", {"count": 10**12, "group_size": 10**12}),
        ("/v1/episodes/step", {"steps": [{"episode": "1", "reply": "x"}] * 6}),
        ("/v1/episodes/close", {"episodes": ["1"] * 6}),
    ],
)
def test_too_much_for_one_request(served, local, path, body) -> None:
    with local(served.Sums(), batch=5) as client:
        assert client.post(path, json=body).status_code == 413


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/v1/score", {f"f{i}": 0 for i in range(100_000)}),
        ("/v1/score", {"replies": [0] * 300_000, "tasks": [{}] * 300_000}),
        ("/v1/episodes/step", {"steps": [{f"f{i}": 0 for i in range(100_000)}]}),
        ("/v1/groups", {"groups": [{"task": 0, "episodes": [{"verdict": 0}] * 100_000}]}),
    ],
)
def test_a_million_faults_are_answered_as_one(client, path, body) -> None:
    started = time.thread_time()
    answer = client.post(path, json=body)
    assert (answer.status_code, len(answer.text) < 2000) == (422, True)
    assert time.thread_time() - started < 60


def test_a_reply_that_is_too_long_is_wrong_and_spoils_no_other(served, local) -> None:
    replies = ["20", "1" * 101, "20"]
    with local(served.Sums(), reply_chars=100) as client:
        body = {"replies": replies, "tasks": [3, 3, 3]}
        found = client.post("/v1/score", json=body).json()["verdicts"]
        ids = begin(client, tasks=[3], group_size=3)
        steps = [
            {"episode": id_, "reply": reply, "turn": 0}
            for id_, reply in zip(ids, replies, strict=True)
        ]
        one, two = (
            client.post("/v1/episodes/step", json={"steps": steps}).json()["outcomes"]
            for _ in range(2)
        )
    assert one == two
    assert [o["verdict"] for o in one] == found
    assert [o["done"] for o in one] == [True] * 3
    assert [v["score"] for v in found] == [1.0, 0.0, 1.0]
    assert [v["reason"] for v in found][::2] == ["", ""]  # they would tell the answer
    assert "101 characters" in found[1]["reason"]
    assert "at most 100" in found[1]["reason"]


def test_idle_episodes_are_forgotten(served, local) -> None:
    with local(served.Guess(), episodes=3) as client:
        begin(client, tasks=[0], group_size=3)
        answer = client.post("/v1/episodes", json={"tasks": [0]})
        assert "holds 3 of 3" in answer.json()["error"]["message"]
        sessions = client.app.state.service.sessions
        sessions.limits = replace(sessions.limits, idle_s=1e-9)
        assert len(begin(client, tasks=[0])) == 1


def test_episodes_that_are_over_make_room(served, local) -> None:
    with local(served.Guess(), episodes=3) as client:
        for task in range(10):
            (id_,) = begin(client, tasks=[task])
            path, body = f"/v1/episodes/{id_}/step", {"reply": str(task), "turn": 0}
            last = client.post(path, json=body).json()
            assert last["verdict"]["score"] == 1.0
        assert client.post(path, json=body).json() == last  # the latest are kept for this
        (first, *_) = begin(client, tasks=[1], group_size=3)
        step = {"episode": first, "reply": "50", "turn": 0}
        body = {"steps": [step], "reset": {"tasks": [1]}}
        full = client.post("/v1/episodes/step", json=body).json()
        assert full["not_begun"]["code"] == "episodes"  # all are played: no outcome is lost
        assert client.post("/v1/episodes/close", json={"episodes": [first]}).json() == {"closed": 1}
        assert len(begin(client, tasks=[1])) == 1


def test_text_that_is_held_is_bounded(served, local) -> None:
    with local(served.Guess(), held_mib=1) as client:
        paths = [f"/v1/episodes/{id_}" for id_ in begin(client, tasks=[1], group_size=3)]
        step = {"reply": "x" * 200_000}
        assert client.post(f"{paths[0]}/step", json=step).status_code == 200
        full = client.post(f"{paths[1]}/step", json=step)
        assert (full.status_code, full.json()["error"]["code"]) == (503, "memory")
        assert client.delete(paths[0]).json() == {"closed": 1}
        assert client.post(f"{paths[1]}/step", json=step).status_code == 200


@pytest.mark.parametrize(
    ("limits", "code"), [({"queue": 4, "threads": 1}, "busy"), ({"connections": 1}, "connections")]
)
def test_a_full_server_says_when_to_come_back(local, until, caplog, limits, code) -> None:
    event, codes = threading.Event(), []
    body = {"replies": ["1"] * 4, "tasks": [0] * 4}
    with local(waiting(event), **limits) as client:
        first = threading.Thread(
            target=lambda: codes.append(client.post("/v1/score", json=body).status_code)
        )
        first.start()
        until(lambda: client.app.state.service.queue.waiting >= 4)
        for _ in range(3):
            answer = client.post("/v1/score", json=body)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["error"]["code"] == code
        assert client.get("/healthz").status_code == 200
        event.set()
        first.join()
        assert f'assay_refused_total{{code="{code}"}} 3.0' in client.get("/metrics").text
    assert codes == [200]
    assert len([r for r in caplog.records if "come back later" in r.getMessage()]) == 1


def test_an_answer_that_takes_too_long(local) -> None:
    event = threading.Event()
    with local(waiting(event), request_s=0.2) as client:
        answer = client.post("/v1/score", json={"replies": ["1"], "tasks": [0]})
        event.set()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "late")


def test_metrics_count_by_route_status_and_reason(client) -> None:
    client.post("/v1/score", json={"replies": ["20"], "tasks": [3]})
    client.post("/v1/score", json={})
    client.get("/made/up/" + "x" * 100)
    page = client.get("/metrics").text
    for line in (
        'assay_requests_total{route="/v1/score",status="200"} 1.0',
        'assay_requests_total{route="other",status="404"} 1.0',
        'assay_refused_total{code="invalid"} 1.0',
        'assay_verdicts_total{status="correct"} 1.0',
    ):
        assert line in page
    assert "made/up" not in page


class Odd(TextEnv):
    """Tells what JSON cannot hold."""

    def __init__(self, image="fine") -> None:
        metadata = {"share": math.nan, "day": date(2026, 1, 2), "levels": [1, math.inf]}
        super().__init__(Rows([Task("?", "x", metadata=metadata)]), Exact(), max_turns=2)
        self.image = image

    def respond(self, state, reply):
        return Turn(({"role": "user", "content": "?", "image": self.image},))


def test_metadata_is_sent_as_json_can_hold_it(local) -> None:
    with local(Odd()) as client:
        sent = client.get("/v1/tasks/0").json()["tasks"][0]["metadata"]
    assert sent == {"share": None, "day": "2026-01-02", "levels": [1, None]}


def test_a_message_that_cannot_be_answered_is_answered_all_the_same(local) -> None:
    with local(Odd(image=b"bytes")) as client:
        with client.websocket_connect("/v1/ws") as ws:
            ws.send_json({"op": "reset", "id": 1, "tasks": [0]})
            episode = ws.receive_json()["episodes"][0]["episode"]
            ws.send_json({"op": "step", "id": 2, "steps": [{"episode": episode, "reply": "x"}]})
            assert ws.receive_json()["error"]["code"] == "fault"
            ws.send_json({"op": "tasks", "id": 3, "tasks": [0]})
            assert ws.receive_json()["id"] == 3
        with client.websocket_connect("/openenv/ws") as ws:
            for kind, data in (("reset", {}), ("step", {"reply": "x"}), ("state", {})):
                ws.send_json({"type": kind, "data": data})
                sent = ws.receive_json()
                if kind == "step":
                    assert sent["data"]["code"] == "EXECUTION_ERROR"
                else:
                    assert sent["type"] == {"reset": "observation"}.get(kind, kind)


def test_the_served_hash_is_that_of_tasks_and_verifiers(served) -> None:
    other, stricter = served.Sums(), served.Sums()
    other.source = Rows([Task(t.text, t.reference + "0", id=t.id) for t in other.source.tasks])
    stricter.rubric = FunctionVerifier(lambda reply, gold: reply == gold)
    envs = [served.Sums(), served.Sums(), served.Sums(49), served.Guess(), other, stricter]
    hashes = [create_app(env).state.service.identity for env in envs]
    assert hashes[0] == hashes[1]
    assert len(set(hashes)) == 5
