"""The routes: scores, episodes, limits, tokens."""

import json
import logging
import threading
import time
from functools import partial

import pytest
from starlette import testclient
from starlette.websockets import WebSocketDisconnect

from assay.envs import Rows, Task, TextEnv
from assay.service import ServiceLimits, Tokens, check_exposure, create_app
from assay.service.refused import Refused
from assay.service.sessions import SessionBudget, SessionStore
from assay.verifiers import FunctionVerifier

TestClient = partial(
    testclient.TestClient, headers={"host": "localhost"}, client=("127.0.0.1", 4000)
)

SECRET = "s3cret-s3cret-s3cret"


@pytest.fixture
def client(served):
    with TestClient(create_app(served.Sums())) as client:
        yield client


@pytest.fixture
def game(served):
    with TestClient(create_app(served.Guess())) as client:
        yield client


def limited(env, tokens=(), **limits):
    return TestClient(create_app(env, ServiceLimits(**limits), Tokens(tokens)))


def bearer(token):
    return {"authorization": f"Bearer {token}"}


def test_scores_come_in_order_by_number_or_id(client) -> None:
    body = {"replies": ["20", "20", "nothing"], "tasks": ["sum3", 4, 3]}
    found = client.post("/v1/score", json=body).json()["verdicts"]
    assert [v["score"] for v in found] == [1.0, 0.0, 0.0]


def test_a_fault_of_ours_has_no_score() -> None:
    def judge(reply, gold):
        raise RuntimeError(gold)

    env = TextEnv(Rows([Task("?", "the answer")]), FunctionVerifier(judge))
    with TestClient(create_app(env)) as client:
        answer = client.post("/v1/score", json={"replies": ["x"], "tasks": [0]})
        assert client.get("/readyz").status_code == 503
        assert client.get("/healthz").status_code == 200
    verdict = answer.json()["verdicts"][0]
    assert (verdict["score"], verdict["status"]) == (None, "verifier_error")
    assert "the answer" not in answer.text


def test_no_route_tells_a_reference(served) -> None:
    class Loud(served.Sums):
        """Its references cannot be guessed."""

        def __init__(self) -> None:
            super().__init__()
            gold = "THE-GOLD"
            self.source = Rows([Task("?", gold, solution=gold, metadata={"kind": "loud"})])

    with TestClient(create_app(Loud())) as client:
        begun = client.post("/v1/episodes", json={"tasks": [0]})
        id_ = begun.json()["episodes"][0]["episode"]
        answers = [
            begun,
            client.get("/v1/tasks/0"),
            client.post("/v1/tasks", json={"tasks": ["0"]}),
            client.post("/v1/score", json={"replies": ["x"], "tasks": [0]}),
            client.post(f"/v1/episodes/{id_}/step", json={"reply": "x"}),
            client.get("/v1/environment"),
            client.get("/openapi.json"),
            client.get("/metrics"),
        ]
        with client.websocket_connect("/openenv/ws") as socket:
            socket.send_json({"type": "reset", "data": {"task": 0}})
            told = socket.receive_text()
            socket.send_json({"type": "step", "data": {"reply": "x"}})
            told += socket.receive_text()
    assert all(a.status_code == 200 for a in answers)
    assert "THE-GOLD" not in told + "".join(a.text for a in answers)


def test_references_of_clients_are_judged_only_where_that_is_allowed(client, served) -> None:
    body = {"replies": ["cat"], "references": ["cat"]}
    assert client.post("/v1/score", json=body).status_code == 403
    with TestClient(create_app(served.Sums(), references=True, reasons=True)) as open_client:
        verdict = open_client.post("/v1/score", json=body).json()["verdicts"][0]
    assert verdict["score"] == 1.0


def test_an_episode_from_begin_to_end(game) -> None:
    begun = game.post("/v1/episodes", json={"tasks": ["n40"], "group_size": 2}).json()["episodes"]
    first, second = (e["episode"] for e in begun)
    step = game.post(f"/v1/episodes/{first}/step", json={"reply": "50", "turn": 0}).json()
    assert (step["messages"], step["reward"]) == ([{"role": "user", "content": "less"}], 0.1)
    assert (step["done"], step["verdict"]) == (False, None)
    last = game.post(f"/v1/episodes/{first}/step", json={"reply": "40", "turn": 1}).json()
    assert (last["done"], last["verdict"]["score"], last["reward"]) == (True, 1.0, 0.5)
    # sent again, as after a lost answer, it is answered alike and not taken twice
    again = game.post(f"/v1/episodes/{first}/step", json={"reply": "40", "turn": 1}).json()
    assert again == last
    other = game.post(f"/v1/episodes/{first}/step", json={"reply": "41", "turn": 1})
    assert (other.status_code, other.json()["error"]["code"]) == (409, "turn")
    assert game.delete(f"/v1/episodes/{second}").json() == {"closed": 1}
    gone = game.post(f"/v1/episodes/{second}/step", json={"reply": "40"})
    assert (gone.status_code, gone.json()["error"]["code"]) == (404, "episode")


def test_a_seed_puts_the_task_that_it_puts_at_home(game, served) -> None:
    _, info = served.Guess().reset(seed=11)
    begun = game.post("/v1/episodes", json={"seed": 11}).json()["episodes"]
    assert begun[0]["task"]["id"] == info["task"]


def test_two_steps_of_one_episode_at_one_time(game) -> None:
    id_ = game.post("/v1/episodes", json={"tasks": [1]}).json()["episodes"][0]["episode"]
    steps = [{"episode": id_, "reply": "5"}, {"episode": id_, "reply": "6"}]
    first, second = game.post("/v1/episodes/step", json={"steps": steps}).json()["outcomes"]
    assert first["turn"] == 1
    assert second["error"]["code"] == "busy"


def test_a_websocket_takes_many_messages_at_one_time(game) -> None:
    with game.websocket_connect("/v1/ws") as socket:
        for i in range(10):
            socket.send_json({"op": "reset", "id": i, "tasks": [i]})
        begun = {m["id"]: m["episodes"][0] for m in (socket.receive_json() for _ in range(10))}
        assert {i: e["task"]["index"] for i, e in begun.items()} == {i: i for i in range(10)}
        for i, e in begun.items():
            step = {"episode": e["episode"], "reply": str(i)}
            socket.send_json({"op": "step", "id": i, "steps": [step]})
        ended = [socket.receive_json()["outcomes"][0] for _ in range(10)]
    assert [e["verdict"]["score"] for e in ended] == [1.0] * 10
    assert game.app.state.service.budget.episodes.total() == 0


@pytest.mark.parametrize(
    "headers",
    [
        {},
        bearer("wrong-wrong-wrong-wrong"),
        {"authorization": SECRET},
        {"authorization": "Basic x"},
    ],
)
def test_without_a_known_token_nothing_is_told(served, headers) -> None:
    with limited(served.Sums(), [SECRET]) as client:
        answer = client.get("/v1/environment", headers=headers)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"] == "Bearer"
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/v1/ws", headers=headers),
        ):
            pass
        assert client.get("/metrics", headers=headers).status_code == 401
        assert client.get("/healthz", headers=headers).status_code == 200
        assert client.get("/v1/environment", headers=bearer(SECRET)).status_code == 200


def test_an_episode_is_its_tokens_own(served) -> None:
    other = "other-other-other-other"
    with limited(served.Guess(), [SECRET, other]) as client:
        begun = client.post("/v1/episodes", json={"tasks": [1]}, headers=bearer(SECRET)).json()
        path = f"/v1/episodes/{begun['episodes'][0]['episode']}/step"
        assert client.post(path, json={"reply": "1"}, headers=bearer(other)).status_code == 404
        assert client.post(path, json={"reply": "1"}, headers=bearer(SECRET)).status_code == 200


def test_no_token_is_logged_or_shown(served, caplog) -> None:
    caplog.set_level(logging.DEBUG)
    tokens = Tokens([SECRET])
    with TestClient(create_app(served.Sums(), tokens=tokens)) as client:
        client.get("/v1/environment?token=" + SECRET, headers=bearer(SECRET))
    rows = [r.getMessage() for r in caplog.records if r.name == "assay.service.access"]
    assert json.loads(rows[0])["status"] == 200
    assert json.loads(rows[0])["owner"].startswith("token-")
    told = [r.getMessage() for r in caplog.records if r.name.startswith(("assay", "uvicorn"))]
    assert SECRET not in repr(tokens) + "".join(told)


def test_short_tokens_and_open_addresses_are_refused(tmp_path) -> None:
    with pytest.raises(ValueError, match="at least 16") as told:
        Tokens(["short"])
    assert "short" not in str(told.value).replace("shorter", "")
    (tmp_path / "tokens").write_text(f"# ours\n{SECRET}\n\n")
    (tmp_path / "tokens").chmod(0o600)
    assert len(Tokens.read(tmp_path / "tokens")) == 1
    for host in ("0.0.0.0", "::", "10.0.0.7", "example.org"):  # noqa: S104  # what must not be bound
        with pytest.raises(ValueError, match="--token-file"):
            check_exposure(host, Tokens())
        check_exposure(host, Tokens([SECRET]))
    for host in ("127.0.0.1", "::1", "localhost"):
        check_exposure(host, Tokens())


def test_a_token_file_that_everybody_can_read_is_warned_of(tmp_path) -> None:
    path = tmp_path / "tokens"
    path.write_text(SECRET)
    path.chmod(0o644)
    with pytest.warns(UserWarning, match=r"mode 0644.*chmod 600") as told:
        assert len(Tokens.read(path)) == 1
    assert SECRET not in str(told[0].message)


def test_names_of_test_clients_are_no_loopback_addresses(served) -> None:
    app = create_app(served.Sums())
    for kwargs in ({"headers": {"host": "testserver"}}, {"client": ("testclient", 1)}):
        with TestClient(app, **kwargs) as client:
            assert client.get("/v1/environment").status_code == 403


def test_no_page_loads_scripts_of_others(client) -> None:
    assert client.get("/docs").status_code == client.get("/redoc").status_code == 404
    assert client.get("/openapi.json").status_code == 200


def test_one_of_several_tokens_does_not_take_all_there_is(served) -> None:
    """Of episodes, their text, and WebSockets, each has its share; one token alone has all."""
    other = "other-other-other-other"
    limits = {"episodes": 8, "sockets": 4, "held_mib": 1, "token_share": 0.5}
    begin = {"tasks": [1], "group_size": 2}
    with limited(served.Guess(), [SECRET, other], **limits) as client:
        for code in (200, 200, 503):
            answer = client.post("/v1/episodes", json=begin, headers=bearer(SECRET))
            assert answer.status_code == code
        assert answer.json()["error"]["code"] == "share"
        assert "token_share" in answer.json()["error"]["message"]
        begun = client.post("/v1/episodes", json=begin, headers=bearer(other)).json()["episodes"]
        path = f"/v1/episodes/{begun[0]['episode']}/step"
        step = {"reply": "x" * 140_000}
        found = [client.post(path, json=step, headers=bearer(other)) for _ in range(2)]
        assert [f.status_code for f in found] == [503, 503]
        with (
            client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
            client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
        ):
            with (
                pytest.raises(WebSocketDisconnect),
                client.websocket_connect("/v1/ws", headers=bearer(SECRET)),
            ):
                pass
            with client.websocket_connect("/openenv/ws", headers=bearer(other)):
                pass
    with limited(served.Guess(), [SECRET], **limits) as client:
        for _ in range(4):
            answer = client.post("/v1/episodes", json=begin, headers=bearer(SECRET))
            assert answer.status_code == 200


def test_web_pages_of_others_are_refused(client) -> None:
    for headers in ({"origin": "http://evil.example"}, {"host": "evil.example"}):
        assert client.get("/v1/environment", headers=headers).status_code == 403
        with (
            pytest.raises(WebSocketDisconnect),
            client.websocket_connect("/v1/ws", headers=headers),
        ):
            pass
    assert client.get("/healthz", headers={"origin": "http://localhost"}).status_code == 200


def test_a_body_that_is_too_large_is_not_read(served) -> None:
    with limited(served.Sums(), body_bytes=1000) as client:
        assert client.post("/v1/score", content=b"x" * 1001).status_code == 413

        def chunks():
            for _ in range(11):
                yield b"x" * 100

        assert client.post("/v1/score", content=chunks()).status_code == 413


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
def test_too_much_for_one_request(served, path, body) -> None:
    with limited(served.Sums(), batch=5, reply_chars=100) as client:
        answer = client.post(path, json=body)
        assert answer.status_code == 413, answer.text


def test_a_reply_that_is_too_long_is_wrong_and_spoils_no_other(served) -> None:
    with limited(served.Sums(), reply_chars=100) as client:
        body = {"replies": ["20", "1" * 101, "20"], "tasks": [3, 3, 3]}
        found = client.post("/v1/score", json=body).json()["verdicts"]
        begun = client.post("/v1/episodes", json={"tasks": [3], "group_size": 3}).json()
        steps = [
            {"episode": e["episode"], "reply": reply, "turn": 0}
            for e, reply in zip(begun["episodes"], body["replies"], strict=True)
        ]
        path = "/v1/episodes/step"
        outcomes = client.post(path, json={"steps": steps}).json()["outcomes"]
        assert outcomes == client.post(path, json={"steps": steps}).json()["outcomes"]
    assert [o["verdict"] for o in outcomes] == found
    assert [o["done"] for o in outcomes] == [True] * 3
    assert [v["score"] for v in found] == [1.0, 0.0, 1.0]
    assert [v["reason"] for v in found][::2] == ["", ""]  # they would tell the answer
    assert "101 characters" in found[1]["reason"]
    assert "at most 100" in found[1]["reason"]


def test_episodes_are_bounded_and_idle_ones_forgotten(served) -> None:
    now = [0.0]
    budget = SessionBudget(ServiceLimits(episodes=3, idle_s=10))
    store = SessionStore(budget, "", iter("abcdefgh").__next__, clock=lambda: now[0])
    env = served.Guess()
    store.add([env.begin(env.task(0)) for _ in range(3)])
    with pytest.raises(Refused, match="holds 3 of 3"):
        store.add([env.begin(env.task(0))])
    now[0] = 9.0
    assert store.get("b") is not None
    now[0] = 11.0
    assert store.forget_idle() == 2
    store.add([env.begin(env.task(0))])
    assert (budget.episodes.total(), len(store)) == (2, 2)
    store.end()
    assert (budget.episodes.total(), budget.chars.total()) == (0, 0)
    with pytest.raises(Refused, match="connection has ended"):  # begun before, ready after
        store.add([env.begin(env.task(0))])
    assert budget.episodes.total() == 0


def test_text_that_is_held_is_bounded(served) -> None:
    with limited(served.Guess(), held_mib=1, reply_chars=200_000) as client:
        begun = client.post("/v1/episodes", json={"tasks": [1], "group_size": 3}).json()
        ids = [e["episode"] for e in begun["episodes"]]
        step = {"reply": "x" * 200_000}
        assert client.post(f"/v1/episodes/{ids[0]}/step", json=step).status_code == 200
        full = client.post(f"/v1/episodes/{ids[1]}/step", json=step)
        assert (full.status_code, full.json()["error"]["code"]) == (503, "memory")
        assert client.delete(f"/v1/episodes/{ids[0]}").json() == {"closed": 1}
        assert client.post(f"/v1/episodes/{ids[1]}/step", json=step).status_code == 200


def test_a_full_queue_says_when_to_come_back() -> None:
    going = threading.Event()

    def judge(reply, gold):
        going.wait(30)
        return 1.0

    env = TextEnv(Rows([Task("?", "x")]), FunctionVerifier(judge))
    limits = {"queue": 4, "threads": 1}
    body = {"replies": ["1"] * 4, "tasks": [0] * 4}
    with limited(env, **limits) as client:
        codes = []

        def ask():
            codes.append(client.post("/v1/score", json=body).status_code)

        first = threading.Thread(target=ask)
        first.start()
        while client.app.state.service.queue.waiting < 4:
            time.sleep(0.01)
        answer = client.post("/v1/score", json=body)
        assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
        assert client.get("/healthz").status_code == 200
        going.set()
        first.join()
    assert codes == [200]


def test_an_answer_that_takes_too_long() -> None:
    going = threading.Event()
    env = TextEnv(Rows([Task("?", "x")]), FunctionVerifier(lambda r, g: float(going.wait(30))))
    with limited(env, request_s=0.2) as client:
        answer = client.post("/v1/score", json={"replies": ["1"], "tasks": [0]})
        going.set()
    assert (answer.status_code, answer.json()["error"]["code"]) == (504, "late")


def test_metrics_count_by_route_status_and_reason(client) -> None:
    client.post("/v1/score", json={"replies": ["20"], "tasks": [3]})
    client.post("/v1/score", json={})
    client.get("/made/up/" + "x" * 100)
    page = client.get("/metrics").text
    assert 'assay_requests_total{route="/v1/score",status="200"} 1.0' in page
    assert 'assay_requests_total{route="other",status="404"} 1.0' in page
    assert 'assay_refused_total{code="invalid"} 1.0' in page
    assert 'assay_verdicts_total{status="correct"} 1.0' in page
    assert "made/up" not in page


def test_schemas_are_published(client) -> None:
    told = client.get("/openapi.json").json()
    assert {"/v1/score", "/v1/episodes", "/v1/episodes/{episode}/step"} <= set(told["paths"])
    assert "replies" in told["components"]["schemas"]["Score"]["properties"]


def test_limits_are_numbers_above_zero() -> None:
    with pytest.raises(ValueError, match="batch must be above 0, got 0"):
        ServiceLimits(batch=0)
    with pytest.raises(ValueError, match="token_share must be at most 1, got 2"):
        ServiceLimits(token_share=2.0)


def test_a_rate_has_no_effect_any_more_and_says_so() -> None:
    with pytest.warns(DeprecationWarning, match="limit rates in a reverse proxy"):
        ServiceLimits(rate=50.0)
