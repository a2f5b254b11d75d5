"""Whatever a client sends, the server neither breaks nor answers 500, nor tells a reference."""

import json

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

SETTINGS = settings(
    deadline=None,
    derandomize=True,
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
PATHS = [
    "/v1/score",
    "/v1/tasks",
    "/v1/episodes",
    "/v1/episodes/step",
    "/v1/episodes/close",
    "/v1/episodes/1/step",
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from(["sum3", "1", "x" * 5000, "\ud800", "\0", 2**63, -1, 1e400, "__class__"])
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner),
    max_leaves=8,
)
NAMES = "replies tasks references count seed group_size steps episodes episode reply turn truncated"
fields = st.sampled_from([*NAMES.split(), "op", "id", "type", "data", "task", "metadata"])
ops = st.sampled_from(["score", "reset", "step", "close", "tasks", "state", "mcp"])
bodies = st.dictionaries(
    fields, values | st.lists(values, max_size=3), max_size=5
) | st.fixed_dictionaries(
    {"replies": st.lists(scalars, max_size=3), "tasks": st.lists(scalars, max_size=3)}
)


@pytest.fixture(scope="module")
def client(served, local):
    with local(served.Guess(), body_bytes=20_000, episodes=50, batch=20) as client:
        yield client


@pytest.fixture(scope="module")
def sums(served, local):
    with local(served.Sums(), batch=20) as client:
        yield client


def text_of(value):
    return json.dumps(value)  # NaN, Infinity and halves of surrogate pairs too


@SETTINGS
@given(st.sampled_from(PATHS), bodies)
def test_any_json_over_http(client, sums, path, body) -> None:
    for one in (client, sums):
        answer = one.post(path, content=text_of(body), headers={"content-type": "application/json"})
        assert answer.status_code < 500 or answer.status_code == 503
        json.loads(answer.text)


@SETTINGS
@given(st.sampled_from(PATHS), st.binary(max_size=200))
def test_any_bytes_over_http(client, path, body) -> None:
    answer = client.post(path, content=body, headers={"content-type": "application/json"})
    assert answer.status_code in (404, 413, 422, 400)
    assert answer.json()["error"]["message"]


@SETTINGS
@given(ops, st.integers() | st.text(max_size=5), bodies, st.binary(max_size=50))
def test_any_message_over_websocket(client, op, id_, body, junk) -> None:
    with client.websocket_connect("/v1/ws") as socket:
        socket.send_text(text_of({**body, "op": op, "id": id_}))
        socket.receive_json()
        socket.send_bytes(junk)
        socket.receive_json()
        socket.send_json({"op": "reset", "id": "still here", "tasks": [3]})
        assert socket.receive_json()["id"] == "still here"


@SETTINGS
@given(st.sampled_from(["reset", "step", "state", "mcp"]), values | bodies, st.binary(max_size=50))
def test_any_message_of_openenv(client, kind, data, junk) -> None:
    with client.websocket_connect("/openenv/ws") as socket:
        socket.send_text(text_of({"type": kind, "data": data}))
        assert socket.receive_json()["type"] in ("observation", "state", "error")
        socket.send_bytes(junk)
        assert socket.receive_json()["type"] == "error"


@pytest.mark.parametrize("nested", ["[" * 100_000, '{"a":' * 10_000, "[" * 900 + "]" * 900])
def test_deep_nesting(client, sums, nested) -> None:
    assert client.post("/v1/score", content=nested).status_code in (400, 413, 422)
    given = '{"replies":["1"],"references":[' + nested + "]}"
    for one in (client, sums):
        assert one.post("/v1/score", content=given).status_code in (400, 403, 413, 422)
    with sums.websocket_connect("/v1/ws") as socket:
        socket.send_text('{"op":"score","id":1,"replies":["1"],"references":' + nested + "}")
        assert "error" in socket.receive_json()


def test_nothing_is_held_when_they_have_left(client) -> None:
    service = client.app.state.service
    assert service.metrics.registry.get_sample_value("assay_sockets") == 0
    assert service.queue.waiting == service.in_flight.held == 0
