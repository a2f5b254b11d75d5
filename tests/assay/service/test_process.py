"""The process itself: who does not read, who does not speak, who sends crumbs, and its end."""

import asyncio
import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from urllib.parse import urlsplit

import pytest
from websockets.asyncio.client import connect
from websockets.exceptions import ConnectionClosed, InvalidStatus

from assay.cli import main

pytestmark = pytest.mark.slow

TOKEN = "a-token-of-the-tests-0123456789"
HEADERS = {"authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def url(start):
    """Of a server without patience, and for two WebSockets at most."""
    limits = [f"--limit={limit}" for limit in ("read_s=1", "sockets=2", "body_bytes=100000")]
    with start("served/Guess-v0", "--no-access-log", *limits) as (url, _):
        yield url


def address(url):
    parts = urlsplit(url)
    return parts.hostname, parts.port


def ask(url, method="GET", path="/healthz", **kwargs):
    connection = http.client.HTTPConnection(*address(url), timeout=20)
    try:
        connection.request(method, path, **{"headers": HEADERS, **kwargs})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


@pytest.mark.parametrize("said", [b"", b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: "])
def test_who_does_not_finish_a_request_is_cut_off(url, said) -> None:
    with socket.create_connection(address(url), timeout=20) as silent:
        silent.sendall(said)
        with contextlib.suppress(ConnectionResetError):
            assert silent.recv(100) == b""
    assert ask(url)[0] == 200


def test_who_does_not_finish_a_body_is_told(url) -> None:
    head = f"POST /v1/score HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    with socket.create_connection(address(url), timeout=20) as slow:
        slow.sendall(head.encode() + b"Content-Length: 100\r\n\r\n{")
        assert b" 408 " in slow.recv(100)


def test_who_does_not_read_is_cut_off(url) -> None:
    body = json.dumps({"tasks": list(range(100)) * 10}).encode()
    head = f"POST /v1/tasks HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {TOKEN}\r\n"
    request = f"{head}Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ended = time.monotonic() + 60
    with socket.socket() as lazy:
        lazy.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        lazy.settimeout(20)
        lazy.connect(address(url))

        def ask_on() -> None:
            while time.monotonic() < ended:
                lazy.sendall(request.encode() + body)

        with pytest.raises(OSError, match=r"reset|Broken pipe"):
            ask_on()
    assert ask(url)[0] == 200


def test_sockets_are_bounded_and_given_back(url) -> None:
    async def go():
        where = url.replace("http", "ws") + "/v1/ws"
        one = await connect(where, additional_headers=HEADERS)
        two = await connect(where, additional_headers=HEADERS)
        with pytest.raises(InvalidStatus) as refused:
            await connect(where, additional_headers=HEADERS)
        assert refused.value.response.status_code == 503
        for socket_ in (one, two):
            await socket_.send(json.dumps({"op": "reset", "id": 1, "count": 100}))
            await socket_.recv()
        one.transport.abort()  # no goodbye
        await two.close()
        for _ in range(100):
            page = (await asyncio.to_thread(ask, url, path="/metrics"))[1].decode()
            if "assay_sockets 0.0" in page:
                break
            await asyncio.sleep(0.1)
        assert "assay_sockets 0.0" in page
        assert "assay_episodes 0.0" in page

    asyncio.run(go())


def test_a_message_that_is_too_large_or_in_crumbs_ends_the_socket(url) -> None:
    async def send(message):
        where = url.replace("http", "ws") + "/v1/ws"
        async with connect(where, additional_headers=HEADERS, compression=None) as ws:
            await ws.send(message)
            await ws.recv()

    for message in ("x" * 100_001, ["x"] * 10_000):
        with pytest.raises((ConnectionClosed, OSError)):
            asyncio.run(send(message))
    assert ask(url)[0] == 200


def test_a_wrong_token_is_told_over_websocket_too(url) -> None:
    async def go():
        with pytest.raises(InvalidStatus) as refused:
            await connect(url.replace("http", "ws") + "/v1/ws")
        assert refused.value.response.status_code == 401

    asyncio.run(go())


def test_what_is_no_http_is_refused(url) -> None:
    with socket.create_connection(address(url), timeout=20) as odd:
        odd.sendall(b"\x16\x03\x01 hello\r\n\r\n")
        assert b" 400 " in odd.recv(100)
    doubled = [("Content-Length", "2"), ("Content-Length", "3")]
    head = "".join(f"{n}: {v}\r\n" for n, v in [("Host", "localhost"), *doubled])
    with socket.create_connection(address(url), timeout=20) as odd:
        odd.sendall(f"POST /v1/score HTTP/1.1\r\n{head}\r\n{{}}x".encode())
        assert b" 400 " in odd.recv(100)


def test_at_sigterm_what_was_begun_is_finished(start) -> None:
    with start("served/Guess-v0", "--no-access-log") as (url, process):
        connection = http.client.HTTPConnection(*address(url), timeout=20)
        headers = {**HEADERS, "content-type": "application/json", "content-length": "17"}
        connection.putrequest("POST", "/v1/episodes")
        for name, value in headers.items():
            connection.putheader(name, value)
        connection.endheaders(b'{"tasks":')
        while b"assay_under_way_bytes 0.0" in ask(url, path="/metrics")[1]:  # of the body
            time.sleep(0.05)
        process.send_signal(signal.SIGTERM)
        time.sleep(0.5)
        connection.send(b"[1, 2] }")
        answer = connection.getresponse()
        assert answer.status == 200
        assert len(json.loads(answer.read())["episodes"]) == 2
        connection.close()


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (["--host", "0.0.0.0"], "there is no token"),  # noqa: S104  # what must not be bound
        (["--limit", "btach=3"], "there is no limit 'btach'"),
        (["--limit", "batch=x"], "must be a whole number"),
        (["--limit", "batch=0"], "must be above 0"),
        (["--key", "key.pem"], "go together"),
        (["--token-file", "nowhere"], "nowhere"),
    ],
)
def test_what_cannot_be_served_is_told_with_a_remedy(capsys, monkeypatch, args, told) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    monkeypatch.setattr(sys, "argv", ["assay", "serve", "assay/Arithmetic-v1", *args])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2
    assert told in capsys.readouterr().err


def test_sigterm_right_after_the_address_is_told_ends_it_all_the_same(folder) -> None:
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
