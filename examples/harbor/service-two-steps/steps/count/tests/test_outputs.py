import socket
import subprocess
import time

import pytest


@pytest.fixture(scope="module")
def port():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        found = free.getsockname()[1]
    server = subprocess.Popen(["python3", "/app/serve.py", str(found)])
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", found), 1).close()
            break
        except OSError:
            time.sleep(0.1)
    yield found
    server.kill()


def talk(port, *lines):
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        file = client.makefile("rw")
        for line in lines:
            file.write(line + "\n")
            file.flush()
            yield file.readline().strip()


def test_count(port):
    assert list(talk(port, "a", "b", "COUNT", "c", "COUNT")) == ["A", "B", "2", "C", "4"]


def test_each_client_has_its_own(port):
    assert list(talk(port, "COUNT")) == ["0"]
