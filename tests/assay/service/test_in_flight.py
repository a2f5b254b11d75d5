"""Bytes of requests that are under way have one bound, over all connections."""

import contextlib
import json
import socket
import struct
import time
from urllib.parse import urlsplit

import httpx
import pytest
from websockets.exceptions import ConnectionClosed
from websockets.sync.client import connect

from assay.service import ServiceLimits
from assay.service.in_flight import InFlightBytes, Reservation
from assay.service.refused import Refused

TOKEN = "a-token-of-the-tests-0123456789"
BEARER = {"authorization": f"Bearer {TOKEN}"}
LIMITS = ServiceLimits(under_way_mib=1)
PADDED = {"replies": ["17" + " " * 150_000, "17" + " " * 150_000], "tasks": [0, 0]}


def begun_body(url):
    """A request of which 800,000 of 900,000 bytes are sent."""
    parts = urlsplit(url)
    client = socket.create_connection((parts.hostname, parts.port))
    lines = ["POST /v1/score HTTP/1.1", f"Host: localhost:{parts.port}"]
    lines += [f"Authorization: Bearer {TOKEN}", "Content-Length: 900000", "", ""]
    client.sendall("\r\n".join(lines).encode() + b" " * 800_000)
    return client


def socket_of(url):
    address = url.replace("http", "ws") + "/v1/ws"
    return connect(address, additional_headers=BEARER, compression=None)


def begin_message(ws):
    """Send 800,000 bytes of a message of 900,000."""
    ws.socket.sendall(b"\x81\xff" + struct.pack("!Q", 900_000) + bytes(4) + b" " * 800_000)


def refusals(service):
    return service.metrics.registry.get_sample_value("assay_refused_total", {"code": "bytes"})


def wait_for(service, least, most):
    """Until so many bytes are under way."""
    until = time.monotonic() + 30
    while not least <= service.in_flight.held <= most:
        assert time.monotonic() < until, service.in_flight.held
        time.sleep(0.01)


def test_shares_add_up_and_one_alone_is_always_let_in() -> None:
    all_ = InFlightBytes(100)
    one, two = Reservation(all_), Reservation(all_)
    one.resize(150)
    with pytest.raises(Refused, match="150 bytes of requests are under way, and 100 may be"):
        two.resize(1)
    one.resize(60)
    two.resize(40)
    with pytest.raises(Refused):
        one.resize(61)
    assert (all_.held, one.held, two.held) == (100, 60, 40)
    with two:
        pass
    assert all_.held == 60


def test_bodies_are_refused_while_others_hold_the_room(host, served) -> None:
    with host(served.Sums(), LIMITS) as (url, app), httpx.Client(headers=BEARER) as client:
        service = app.state.service
        slow = begun_body(url)
        wait_for(service, 800_000, 900_000)
        answer = client.post(f"{url}/v1/score", json=PADDED)
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "bytes")
        assert answer.headers["retry-after"] == "1"
        small = {"replies": ["17"], "tasks": [0]}
        assert client.post(f"{url}/v1/score", json=small).status_code == 200
        slow.close()
        wait_for(service, 0, 0)
        scores = [
            v["score"] for v in client.post(f"{url}/v1/score", json=PADDED).json()["verdicts"]
        ]
        assert scores == [1.0, 1.0]
        wait_for(service, 0, 0)
        assert refusals(service) == 1


def test_a_message_for_which_there_is_no_room_ends_its_socket_alone(host, served) -> None:
    text = json.dumps({"op": "score", "id": 1, **PADDED})
    with host(served.Sums(), LIMITS) as (url, app):
        service = app.state.service
        with socket_of(url) as slow, socket_of(url) as other:
            begin_message(slow)
            wait_for(service, 800_000, 900_000)
            with contextlib.suppress(ConnectionClosed):
                other.send(text)
            with pytest.raises(ConnectionClosed) as closed:
                other.recv(timeout=30)
            assert closed.value.rcvd is None or closed.value.rcvd.code == 1013
            slow.socket.sendall(b" " * 100_000)
            assert json.loads(slow.recv(timeout=30))["error"]["code"] == "invalid"
            wait_for(service, 0, 0)
            assert refusals(service) == 1
        with socket_of(url) as other:
            other.send(text)
            assert json.loads(other.recv(timeout=30))["verdicts"][0]["score"] == 1.0
            wait_for(service, 0, 0)
