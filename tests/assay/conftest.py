"""What the tests of the command line, of evaluation and of the service share."""

import json
import sys
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from assay.cli import main


@pytest.fixture
def mine():
    """Return the name and text of a module for the folder of ``run``; a test file has its own."""
    return None


@pytest.fixture
def run(capsys, monkeypatch, tmp_path, mine, request):
    """Run ``assay ...``; return its exit code, stdout and stderr.

    ``COLUMNS`` of the test file is the terminal's width. With a module the folder is a new one.
    """
    monkeypatch.setenv("COLUMNS", str(getattr(request.module, "COLUMNS", 100)))
    if mine is not None:
        name, text = mine
        (tmp_path / f"{name}.py").write_text(text)
        monkeypatch.chdir(tmp_path)
        monkeypatch.setattr(sys, "path", [*sys.path])

    def run_one(*args):
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = capsys.readouterr()
        return ended.value.code, shown.out, shown.err

    return run_one


@pytest.fixture(scope="session")
def model(tmp_path_factory):
    """Return the directory of a model that trains in a moment."""
    from assay.grpo import tiny_model

    folder = tmp_path_factory.mktemp("model")
    return tiny_model(folder, hidden_size=32, layers=1, heads=2, intermediate_size=32)


@contextmanager
def in_thread(server):
    """Run a server of the standard library in a thread."""
    server.daemon_threads = True
    thread = threading.Thread(target=server.serve_forever, args=(0.02,))
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture(scope="session")
def running():
    return in_thread


@pytest.fixture(scope="session")
def serving():
    """Return a context manager of an HTTP server, which yields its address.

    It takes a function of a request's path and JSON that returns a status and JSON, or bytes.
    """

    @contextmanager
    def serve(answer):
        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                raw = self.rfile.read(int(self.headers.get("content-length", 0)))
                status, row = answer(self.path, json.loads(raw or "null"))
                body = row if isinstance(row, bytes) else json.dumps(row).encode()
                self.send_response(status)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(body)))
                self.send_header("location", "http://127.0.0.1:9/")
                self.end_headers()
                self.wfile.write(body)

            do_GET = do_POST  # noqa: N815  # the names that http.server looks for

            def log_message(self, *_):
                pass

        with in_thread(ThreadingHTTPServer(("127.0.0.1", 0), Handler)) as server:
            yield f"http://127.0.0.1:{server.server_port}"

    return serve
