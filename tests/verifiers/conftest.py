"""What tests of verifiers share: a server in OpenAI's shape that does as a test tells it."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

Answer = Callable[[dict[str, Any], int], Any]
"""A request's body and its number, from 0, to: the judge's words; or ``(status, headers, body)``;
or a function of the handler, for what no server should do."""


def completion(text: Any, finish: str = "stop") -> bytes:
    """A chat completion."""
    message = {"role": "assistant", "content": text}
    row = {
        "id": "c",
        "object": "chat.completion",
        "created": 0,
        "model": "m",
        "choices": [{"index": 0, "message": message, "finish_reason": finish}],
        "usage": {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10},
    }
    return json.dumps(row).encode()


class JudgeServer:
    """``with JudgeServer(answer) as server``: ``server.url``, and the ``bodies`` as they came."""

    def __init__(self, answer: Answer) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.headers: list[dict[str, str]] = []
        self.most_at_once = 0
        lock, serving, at_once = threading.Lock(), self, 0

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                nonlocal at_once
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with lock:
                    number = len(serving.bodies)
                    serving.bodies.append(body)
                    serving.headers.append({n.lower(): v for n, v in self.headers.items()})
                    at_once += 1
                    serving.most_at_once = max(serving.most_at_once, at_once)
                try:
                    said = answer(body, number)
                    if callable(said):
                        said(self)
                        return
                    if isinstance(said, str):
                        said = (200, {}, completion(said))
                    status, headers, raw = said
                    self.send_response(status)
                    for name, value in headers.items():
                        self.send_header(name, value)
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(raw)))
                    self.end_headers()
                    self.wfile.write(raw)
                except OSError:
                    self.close_connection = True  # the client has gone
                finally:
                    with lock:
                        at_once -= 1

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_port}/v1"

    def __enter__(self) -> JudgeServer:
        self._thread = threading.Thread(
            target=self._server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
        )
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()


@pytest.fixture
def judge_server() -> type[JudgeServer]:
    """The class, for tests here cannot import from each other."""
    return JudgeServer
