"""A session's way out: the hosts of its list, through the proxy, and nothing else."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from io import BytesIO

import pytest

from assay.sandbox import Allowlist, Sandbox, SessionLimits
from assay.sandbox.sessions.channel import Job
from assay.sandbox.sessions.network import _Pipe

LIMITS = SessionLimits(memory_mib=256, pids=64)
BODY = b"body" * 100_000
FETCH = "import sys, urllib.request as u; sys.stdout.write(str(len(u.urlopen({!r}, {}).read())))"


class Server(BaseHTTPRequestHandler):
    """Answers with a body, or with the length of what it was sent."""

    def do_GET(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(BODY)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def do_PUT(self) -> None:
        self.send_response(200)
        self.end_headers()
        self.wfile.write(str(self.headers.get_all("Host")).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def port() -> Iterator[int]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Server)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield server.server_port
    server.shutdown()
    server.server_close()


@pytest.mark.slow
def test_only_the_hosts_of_the_list_are_reached(session_box: Sandbox, port: int) -> None:
    allowed = Allowlist([f"127.0.0.1:{port}"])
    with session_box.session(limits=LIMITS, env={"no_proxy": ""}, network=allowed) as s:

        def fetch(url: str, data: str = "None") -> str:
            result = s.exec(["python3", "-c", FETCH.format(url, data)], timeout_s=20)
            return result.text or result.stderr.decode().splitlines()[-1]

        for _ in range(6):  # more than wait at one time
            assert fetch(f"http://127.0.0.1:{port}/x") == str(len(BODY))
        assert fetch(f"http://127.0.0.1:{port}/x", "b'x' * 3_000_000") == str(len(BODY))
        assert "403" in fetch("http://127.0.0.1:1/")
        assert "403" in fetch("http://example.org/")
        assert "403" in fetch("https://example.org/")
        tunnel = (
            "import socket as k; s = k.create_connection(('127.0.0.1', 3128)); s.sendall(b'CONNECT "
            f"127.0.0.1:{port} HTTP/1.1\\r\\n\\r\\nGET / HTTP/1.0\\r\\n\\r\\n'); n = 0\n"
            "while p := s.recv(9999): n += len(p)\nprint(n)"
        )
        assert int(s.exec(["python3", "-c", tunnel]).text) > len(BODY)
        other = (
            "import socket as k; s = k.create_connection(('127.0.0.1', 3128)); s.sendall(b'PUT "
            f"http://127.0.0.1:{port}/ HTTP/1.1\\r\\nHost: other.site\\r\\n\\r\\n'); n = b''\n"
            "while p := s.recv(9999): n += p\nprint(n)"
        )
        assert f"['127.0.0.1:{port}']" in s.exec(["python3", "-c", other]).text.replace("\\", "")
        direct = f"import socket; socket.create_connection(('127.0.0.1', {port}), 2)"
        assert "refused" in s.exec(["python3", "-c", direct]).stderr.decode()
        s.kill_all()  # what hands connections on dies as well, and comes back
        assert fetch(f"http://127.0.0.1:{port}/x") == str(len(BODY))
        junk = "import socket as k; k.create_connection(('127.0.0.1', 3128)).sendall(b'\\0' * 99)"
        for _ in range(6):
            s.exec(["python3", "-c", junk])
        assert fetch(f"http://127.0.0.1:{port}/x") == str(len(BODY))


def test_what_slow_servers_have_not_read_is_bounded_for_a_whole_session() -> None:
    """A session may open a connection for each of its processes: that was 4 GiB of ours."""
    room, job = threading.Semaphore(3), Job(1, (BytesIO(), BytesIO()))
    slow, other = _Pipe(room), _Pipe(room)
    for _ in range(5):
        slow.write(b"x")
    other.write(b"y")
    assert (slow.get(job), other.get(job)) == (b"x", b"")
    slow.drop(job)
    fresh = _Pipe(room)
    for _ in range(4):
        fresh.write(b"z")
    assert [fresh.get(job) for _ in range(4)] == [b"z", b"z", b"z", b""]


def test_which_hosts_a_list_allows() -> None:
    allowed = Allowlist(["pypi.org", "*.example.org", "host:8080"])
    assert allowed.allows("PyPI.org.", 443)
    assert allowed.allows("a.b.example.org", 80)
    assert allowed.allows("host", 8080)
    for name, port in (
        ("pypi.org", 22),
        ("evil-pypi.org", 443),
        ("pypi.org.evil.net", 443),
        ("example.org", 443),
        ("evilexample.org", 443),
        ("host", 80),
        ("", 80),
    ):
        assert not allowed.allows(name, port)
    for wrong in ("pypi.org", ["a b"], ["*"], ["x:y"], ["http://x"]):
        with pytest.raises(ValueError, match="host"):
            Allowlist(wrong)


def test_a_network_of_another_kind_is_refused(session_box) -> None:
    with pytest.raises(ValueError, match="network"):
        session_box.session(network="bridge")
