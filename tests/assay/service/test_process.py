"""The process itself: clients that do not read, do not speak or send crumbs, and its end."""

import base64
import contextlib
import http.client
import json
import os
import signal
import socket
import struct
import subprocess
import sys
import time
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed, InvalidStatus
from websockets.sync.client import connect

from assay.service import ServiceLimits

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests-0123456789"
HEADERS = {"authorization": f"Bearer {TOKEN}"}
POST = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
POST += "Content-Type: application/json\r\n"
ASK = {"replies": ["20"], "tasks": [3]}
PADDED = {"replies": ["17" + " " * 150_000] * 2, "tasks": [0, 0]}


@pytest.fixture(scope="module")
def url(start):
    """Of a server without patience, and for two WebSockets at most."""
    limits = [f"--limit={limit}" for limit in ("read_s=1", "sockets=2", "body_bytes=100000")]
    with start("served/Guess-v0", "--no-access-log", *limits) as (url, _):
        yield url


def opened(url):
    parts = urlsplit(url)
    return socket.create_connection((parts.hostname, parts.port), timeout=20)


def socket_of(url, **more):
    headers = {"additional_headers": HEADERS, "compression": None, **more}
    return connect(url.replace("http", "ws") + "/v1/ws", **headers)


def metrics(url):
    return httpx.get(f"{url}/metrics", headers=HEADERS, timeout=20).text


HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"


@pytest.mark.parametrize(
    ("sent", "answer"),
    [
        (HEALTH + b"\r\n", b'{"status":"ok"}'),  # then silence
        (POST.encode() + b"Content-Length: 100\r\n\r\n{", b" 408 "),
        (b"\x16\x03\x01 hello\r\n\r\n", b" 400 "),
        (POST.encode() + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}x", b" 400 "),
        (POST.encode() + b"Host: other\r\n\r\n", b" 400 "),
    ],
)
def test_a_request_that_is_not_finished_is_cut_off(url, sent, answer) -> None:
    with opened(url) as client:
        client.sendall(sent)
        received = b""
        with contextlib.suppress(ConnectionResetError):
            while part := client.recv(1000):
                received += part
    assert answer in received
    assert httpx.get(f"{url}/healthz").status_code == 200


def test_a_client_that_does_not_read_is_cut_off(url) -> None:
    body = json.dumps({"tasks": list(range(100)) * 10}).encode()
    head = POST.replace("score", "tasks") + f"Content-Length: {len(body)}\r\n\r\n"
    ended = time.monotonic() + 60
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(20)
        lazy.connect((urlsplit(url).hostname, urlsplit(url).port))
        with pytest.raises(OSError, match=r"reset|Broken pipe"):  # noqa: PT012  # at any of them
            while time.monotonic() < ended:
                lazy.sendall(head.encode() + body)
    assert httpx.get(f"{url}/healthz").status_code == 200


def test_sockets_are_bounded_and_given_back(url, until) -> None:
    with contextlib.ExitStack() as stack:
        for _ in range(2):
            ws = stack.enter_context(socket_of(url))
            ws.send(json.dumps({"op": "reset", "id": 1, "count": 100}))
            ws.recv()
        for more, code in (({}, 503), ({"additional_headers": {}}, 401)):
            with pytest.raises(InvalidStatus) as refused, socket_of(url, **more):
                pass
            assert refused.value.response.status_code == code
        ws.socket.shutdown(socket.SHUT_RDWR)  # no goodbye
    until(lambda: {"assay_sockets 0.0", "assay_episodes 0.0"} <= {*metrics(url).splitlines()})


@pytest.mark.parametrize("message", ["x" * 100_001, ["x"] * 10_000], ids=["large", "crumbs"])
def test_a_message_that_is_too_large_or_in_crumbs_ends_the_socket(url, message) -> None:
    with pytest.raises((ConnectionClosed, OSError)), socket_of(url) as ws:  # noqa: PT012  # either
        ws.send(message)
        ws.recv()
    assert httpx.get(f"{url}/healthz").status_code == 200


def test_answers_to_pings_that_nobody_reads_do_not_pile_up(host, served) -> None:
    key = base64.b64encode(b"0" * 16).decode()
    head = f"GET /v1/ws HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    head += f"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Key: {key}\r\n"
    ping = b"\x89\xfd\0\0\0\0" + b"x" * 125
    with host(served.Sums(), ServiceLimits(read_s=60.0)) as (url, app), opened(url) as client:
        client.sendall(f"{head}Sec-WebSocket-Version: 13\r\n\r\n".encode())
        assert b"101" in client.recv(1000)
        client.settimeout(2)
        sent = 0
        with contextlib.suppress(TimeoutError):
            while sent < 60_000_000:
                sent += client.send(ping * 1000)
        assert httpx.get(f"{url}/healthz").status_code == 200
        (ws,) = (c for c in app.state.uvicorn.server_state.connections if hasattr(c, "frames"))
        assert ws.transport.get_write_buffer_size() < 2**20


def test_silent_connections_shut_nobody_out(start) -> None:
    """Neither with nothing, nor with half a request, nor with half a body and no token."""
    sent = [b"", b"POST /v1/score HT", HEALTH + b"Content-Length: 9\r\n\r\n"]
    with start("served/Sums-v0", "--limit=read_s=60") as (url, _), contextlib.ExitStack() as all_:
        for i in range(700):
            all_.enter_context(opened(url)).sendall(sent[i % 3])
        for _ in range(20):
            answer = httpx.post(f"{url}/v1/score", json=ASK, headers=HEADERS)
            assert answer.json()["verdicts"][0]["score"] == 1.0


@pytest.mark.parametrize("way", ["body", "message"])
def test_requests_are_refused_while_others_hold_the_room(host, served, until, way) -> None:
    """Only those that are large; a socket is closed for it, alone."""
    rest = b" " * 800_000  # of 900,000
    with host(served.Sums(), ServiceLimits(under_way_mib=1)) as (url, app):
        held = app.state.service.in_flight
        with contextlib.ExitStack() as slow:
            if way == "body":
                head = f"{POST}Content-Length: 900000\r\n\r\n"
                slow.enter_context(opened(url)).sendall(head.encode() + rest)
            else:
                ws = slow.enter_context(socket_of(url))
                ws.socket.sendall(b"\x81\xff" + struct.pack("!Q", 900_000) + bytes(4) + rest)
            until(lambda: 800_000 <= held.held <= 900_000)
            answer = httpx.post(f"{url}/v1/score", json=PADDED, headers=HEADERS)
            assert (answer.status_code, answer.headers["retry-after"]) == (503, "1")
            assert answer.json()["error"]["code"] == "bytes"
            with socket_of(url) as other:
                with contextlib.suppress(ConnectionClosed):
                    other.send(json.dumps({"op": "score", "id": 1, **PADDED}))
                with pytest.raises(ConnectionClosed) as closed:
                    other.recv(timeout=30)
                assert closed.value.rcvd is None or closed.value.rcvd.code == 1013
            small = httpx.post(f"{url}/v1/score", json=ASK, headers=HEADERS)
            assert small.status_code == 200
            if way == "message":
                ws.socket.sendall(b" " * 100_000)
                assert json.loads(ws.recv(timeout=30))["error"]["code"] == "json"
        until(lambda: held.held == 0)
        found = httpx.post(f"{url}/v1/score", json=PADDED, headers=HEADERS).json()["verdicts"]
        assert [v["score"] for v in found] == [1.0, 1.0]
        until(lambda: held.held == 0)
        assert 'assay_refused_total{code="bytes"} 2.0' in metrics(url)


def test_at_sigterm_what_was_begun_is_finished(start, until) -> None:
    with start("served/Guess-v0", "--no-access-log") as (url, process):
        connection = http.client.HTTPConnection(urlsplit(url).netloc, timeout=20)
        connection.putrequest("POST", "/v1/episodes")
        for name, value in {
            **HEADERS,
            "content-type": "application/json",
            "content-length": "17",
        }.items():
            connection.putheader(name, value)
        connection.endheaders(b'{"tasks":')
        until(lambda: "assay_under_way_bytes 0.0" not in metrics(url))
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.send(b"[1, 2] }")
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(json.loads(answer.read())["episodes"]) == 2
        connection.close()


def test_sigterm_right_after_the_address_is_printed_ends_it_all_the_same(folder) -> None:
    """Between that and the first request it served nobody, and it took no notice of signals."""
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "serve", "served_envs:served/Sums-v0", "--port", "0"],
        cwd=folder,
        env={**os.environ, "ASSAY_SERVE_TOKEN": TOKEN},
        stderr=subprocess.PIPE,
        text=True,
    )
    with process:
        assert " at http" in process.stderr.readline()
        process.send_signal(signal.SIGTERM)
        assert process.wait(timeout=60) == 0
        assert "Traceback" not in process.stderr.read()
