"""Several processes behind one address: sessions stay with theirs, and go with it alone."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from assay.envs import Completion
from assay.service import RemoteEnv, create_app, serve
from assay.verifiers import Status

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests-0123456789"
BEARER = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def workers(start):
    """A game with two workers; its address and the process that watches them."""
    with start("served/Guess-v0", "--workers=2", "--no-access-log") as found:
        yield found


@pytest.fixture
def client(workers, until):
    """A client that makes a connection for each request: so both workers are asked."""
    headers = {**BEARER, "connection": "close"}
    with httpx.Client(base_url=workers[0], headers=headers, timeout=60) as client:
        until(lambda: len({worker_of(i) for i in begin(client, range(8), one_by_one=True)}) == 2)
        yield client


def begin(client, tasks, *, one_by_one=False):
    """Begin an episode of each task; their ids."""
    asked = [[task] for task in tasks] if one_by_one else [[*tasks]]
    answers = [client.post("/v1/episodes", json={"tasks": some}).json() for some in asked]
    return [e["episode"] for answer in answers for e in answer["episodes"]]


def worker_of(id_):
    return id_.partition(".")[0]


def children(process):
    """Ids of the processes that a server started to serve."""
    ids = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
    lines = {int(i): Path(f"/proc/{i}/cmdline").read_text() for i in ids}
    return [i for i, line in lines.items() if "spawn_main" in line]


def test_each_session_is_reached_whichever_worker_is_asked(client) -> None:
    """Each request has a connection of its own: of one worker or the other."""

    def play(task):
        (id_,) = begin(client, [task])
        for reply in (99 if task != 99 else 0, task):
            answer = client.post(f"/v1/episodes/{id_}/step", json={"reply": str(reply)}).json()
            assert answer["turn"] == (1 if reply != task else 2)
        assert answer["verdict"]["score"] == 1.0
        return worker_of(id_)

    with ThreadPoolExecutor(12) as pool:
        assert len({*pool.map(play, range(76, 100))}) == 2


def test_one_request_steps_sessions_of_both_in_its_order(client) -> None:
    ids = begin(client, range(20), one_by_one=True)
    assert len({*map(worker_of, ids)}) == 2
    steps = [{"episode": id_, "reply": str(i), "turn": 0} for i, id_ in enumerate(ids)]
    steps.insert(7, {"episode": "../abc.none", "reply": "1", "turn": 0})
    body = json.dumps({"steps": steps, "reset": {"tasks": [3]}})  # httpx's has no surrogates
    json_type = {"content-type": "application/json"}
    answer = client.post("/v1/episodes/step", content=body, headers=json_type).json()
    assert len(answer["episodes"]) == 1
    (unknown,) = [o for o in answer["outcomes"] if "error" in o]
    assert answer["outcomes"].index(unknown) == 7
    found = [o for o in answer["outcomes"] if o is not unknown]
    assert [o["episode"] for o in found] == ids
    assert [o["verdict"]["score"] for o in found] == [1.0] * 20
    again = client.post("/v1/episodes/step", content=body, headers=json_type).json()
    assert again["outcomes"] == answer["outcomes"]
    more = begin(client, range(10), one_by_one=True)
    body = json.dumps({"steps": [{"episode": id_, "reply": "\ud800"} for id_ in more]})
    answer = client.post("/v1/episodes/step", content=body, headers=json_type).json()
    assert [outcome["turn"] for outcome in answer["outcomes"]] == [1] * 10
    assert client.post("/v1/episodes/close", json={"episodes": more}).json() == {"closed": 10}


def test_too_many_steps_are_refused_however_they_are_spread(client) -> None:
    steps = [{"episode": f"{i % 2}.a.b", "reply": "1"} for i in range(1025)]
    assert client.post("/v1/episodes/step", json={"steps": steps}).status_code == 413


def test_metrics_are_those_of_all_workers(client) -> None:
    begin(client, range(10), one_by_one=True)

    def value(name):
        page = client.get("/metrics").text
        return sum(float(line.split()[1]) for line in page.splitlines() if line.startswith(name))

    begun = 'assay_requests_total{route="/v1/episodes",status="200"}'
    assert value(begun) >= 10
    assert value(begun) == value(begun)  # from whichever worker
    assert value('assay_verdicts_total{status="correct"}') >= 0


def test_a_worker_that_dies_loses_its_own_sessions_alone(workers, client, until) -> None:
    url, process = workers
    ids = []
    while len({*map(worker_of, ids)}) < 2 or len(ids) < 20:  # both are up
        ids += begin(client, [len(ids) % 100])
    env = RemoteEnv(url, TOKEN)
    states = []
    while len({worker_of(s.data.episode) for s in states}) < 2:
        state = env.begin(env.task(50))
        env.advance([state], [Completion("7")])
        env.remote.close()  # the next connection may be another worker's
        states.append(state)
    victim = children(process)[0]
    os.kill(victim, signal.SIGKILL)

    def settled():
        steps = [{"episode": e, "reply": str(i % 100), "turn": 0} for i, e in enumerate(ids)]
        try:
            answer = client.post("/v1/episodes/step", json={"steps": steps})
        except httpx.TransportError:
            return None
        return answer.json()["outcomes"] if answer.status_code == 200 else None

    until(settled)
    found = dict(zip(ids, settled(), strict=True))
    lost = {worker_of(e) for e, o in found.items() if "error" in o}
    assert len(lost) == 1
    for id_, outcome in found.items():
        if worker_of(id_) in lost:
            assert outcome["error"]["code"] == "lost"
            assert "process that held this episode has ended" in outcome["error"]["message"]
        else:
            assert outcome["verdict"]["score"] == 1.0
    ids_of = {id(state): state.data.episode for state in states}
    env.advance(states, [Completion("50")] * len(states))
    for state, verdict in zip(states, env.verdicts(states), strict=True):
        if worker_of(ids_of[id(state)]) in lost:
            assert (verdict.status, verdict.score) == (Status.VERIFIER_ERROR, None)
            assert "process that held this episode has ended" in verdict.reason
        else:
            assert verdict.score == 1.0
    env.close()
    until(lambda: len({*map(worker_of, begin(client, range(9), one_by_one=True))}) == 2)
    assert victim not in children(process)


def test_a_worker_that_cannot_start_ends_the_server(folder) -> None:
    """And soon: pings of a worker that is shut down were waited for, a minute each."""
    command = [sys.executable, "-m", "assay", "serve", "served_envs:served/None-v0", "--port=0"]
    done = subprocess.run(
        [*command, "--workers=2"],
        cwd=folder,
        env={**os.environ, "ASSAY_SERVE_TOKEN": TOKEN},
        capture_output=True,
        text=True,
        timeout=55,
    )
    assert done.returncode != 0
    assert "None-v0" in done.stderr
    assert "ended before it served" in done.stderr


def test_workers_share_their_port_with_no_other_server(workers, capfd) -> None:
    port = urlsplit(workers[0]).port
    with pytest.raises(OSError, match="in use"):
        serve(_never, port=port, workers=2)


def test_workers_need_a_function_that_makes_their_applications(served) -> None:
    app = create_app(served.Sums())
    with pytest.raises(ValueError, match="workers=2 need a function"):
        serve(app, workers=2)
    app.state.service.shut()


def _never():
    raise AssertionError("the port is taken")
