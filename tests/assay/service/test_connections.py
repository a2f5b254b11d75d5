"""Connections that send nothing take no place from those that ask."""

import contextlib
import socket
import threading
import time
from urllib.parse import urlsplit

import httpx

from assay.envs import Rows, Task, TextEnv
from assay.service import ServiceLimits
from assay.service.connections import YOUNG_S
from assay.verifiers import FunctionVerifier

TOKEN = "a-token-of-the-tests-0123456789"
BEARER = {"authorization": f"Bearer {TOKEN}"}
ASK = {"replies": ["20"], "tasks": [3]}


def silent(url, source="127.0.0.1"):
    address = urlsplit(url)
    return socket.create_connection(
        (address.hostname, address.port), timeout=20, source_address=(source, 0)
    )


def is_open(client):
    """Whether the server has not closed it."""
    client.setblocking(False)
    try:
        return client.recv(1) != b""
    except BlockingIOError:
        return True
    except ConnectionResetError:
        return False


def until(condition, seconds=30):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.02)


def test_silent_connections_shut_nobody_out(start) -> None:
    """Neither with nothing, nor with half a request, nor with half a body and no token."""
    said = [
        b"",
        b"POST /v1/score HT",
        b"POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 9\r\n\r\n",
    ]
    with (
        start("served/Sums-v0", "--limit=read_s=60") as (url, _),
        contextlib.ExitStack() as all_,
    ):
        for i in range(700):
            one = all_.enter_context(silent(url))
            one.sendall(said[i % 3])
        for _ in range(20):
            answer = httpx.post(f"{url}/v1/score", json=ASK, headers=BEARER)
            assert answer.json()["verdicts"][0]["score"] == 1.0
        page = httpx.get(f"{url}/metrics", headers=BEARER).text
        assert "assay_silent_connections" in page


def test_the_oldest_silent_connections_of_an_address_make_room(host, served, caplog) -> None:
    """Those of other addresses stay; it is counted, and logged once."""
    with (
        host(served.Sums(), ServiceLimits(silent=12)) as (url, app),
        contextlib.ExitStack() as all_,
    ):
        other = all_.enter_context(silent(url, "127.0.0.2"))
        first = [all_.enter_context(silent(url)) for _ in range(3)]
        time.sleep(YOUNG_S)  # younger ones may be about to ask
        more = [all_.enter_context(silent(url)) for _ in range(2)]
        until(lambda: [is_open(c) for c in first] == [False, False, True])
        assert all(map(is_open, [other, *more]))
        value = app.state.service.metrics.registry.get_sample_value
        assert value("assay_refused_total", {"code": "silent"}) == 2
    assert len([r for r in caplog.records if "send no request" in r.getMessage()]) == 1


def test_silent_connections_are_bounded_over_all_addresses(host, served) -> None:
    with host(served.Sums(), ServiceLimits(silent=4)) as (url, _), contextlib.ExitStack() as all_:
        first = [all_.enter_context(silent(url, f"127.0.0.{i}")) for i in range(2, 6)]
        time.sleep(YOUNG_S)
        new = all_.enter_context(silent(url, "127.0.0.9"))
        until(lambda: [is_open(c) for c in first] == [False, True, True, True])
        assert is_open(new)


def test_a_full_server_says_so_in_json(host, caplog) -> None:
    free = threading.Event()
    judge = FunctionVerifier(lambda reply, gold: float(free.wait(30)))
    limits = ServiceLimits(connections=1)
    with host(TextEnv(Rows([Task("?", "x")]), judge), limits) as (url, app):
        body = {"replies": ["1"], "tasks": [0]}
        codes = []
        first = threading.Thread(
            target=lambda: codes.append(
                httpx.post(f"{url}/v1/score", json=body, headers=BEARER, timeout=60).status_code
            )
        )
        first.start()
        until(lambda: app.state.service.queue.waiting)
        for _ in range(3):
            answer = httpx.post(f"{url}/v1/score", json=body, headers=BEARER)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["error"]["code"] == "connections"
        assert httpx.get(f"{url}/healthz").status_code == 200
        free.set()
        first.join()
        value = app.state.service.metrics.registry.get_sample_value
        assert value("assay_refused_total", {"code": "connections"}) == 3
    assert codes == [200]
    logged = [r for r in caplog.records if "requests are under way" in r.getMessage()]
    assert len(logged) == 1
