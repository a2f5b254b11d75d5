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


def test_lines_come_back(port):
    with socket.create_connection(("127.0.0.1", port), 5) as client:
        file = client.makefile("rw")
        for word in ("one", "two words"):
            file.write(word + "\n")
            file.flush()
            assert file.readline() == word.upper() + "\n"
