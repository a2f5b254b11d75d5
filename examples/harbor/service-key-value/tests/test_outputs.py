import socket
import subprocess
import time
import urllib.error
import urllib.request

import pytest


@pytest.fixture(scope="module")
def base():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    server = subprocess.Popen(["python3", "/app/server.py", str(port)])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            break
        except OSError:
            time.sleep(0.1)
    yield f"http://127.0.0.1:{port}"
    server.kill()


def ask(method, url, data=None):
    request = urllib.request.Request(url, data, method=method)
    try:
        with urllib.request.urlopen(request, timeout=10) as reply:
            return reply.status, reply.read()
    except urllib.error.HTTPError as error:
        return error.code, b""


def test_store_and_read(base):
    assert ask("PUT", base + "/a", b"one \xff") == (204, b"")
    assert ask("GET", base + "/a") == (200, b"one \xff")


def test_replace_and_delete(base):
    ask("PUT", base + "/b", b"1")
    ask("PUT", base + "/b", b"2")
    assert ask("GET", base + "/b") == (200, b"2")
    assert ask("DELETE", base + "/b")[0] == 204
    assert ask("GET", base + "/b")[0] == 404


def test_missing(base):
    assert ask("GET", base + "/none")[0] == 404
    assert ask("DELETE", base + "/none")[0] == 404
