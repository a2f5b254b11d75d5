"""What a vLLM policy makes of a server's answers: of a small HTTP server that spoils them."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Rows, Task, TextEnv
from assay.grpo import GRPOConfig, ServerError, VLLMPolicy, VLLMServer, training_tasks
from assay.verifiers import FunctionVerifier

torch.set_num_threads(1)
ASK = [[{"role": "user", "content": text}] for text in ("1+1=", "1+1=", "2+13=")]


class Sockets(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 128
    daemon_threads = True


class Server:
    """Answers every prompt with the same two tokens.

    Attributes:
        spoil: called with each choice before it goes out.
        failures: requests that are answered 503 first.
        held: completions wait for it, until requests are aborted.
        bodies: what was asked for.
    """

    def __init__(self) -> None:
        self.spoil: Callable[[dict[str, Any]], None] = lambda choice: None
        self.failures, self.now, self.most_at_once = 0, 0, 0
        self.bodies: list[dict[str, Any]] = []
        self.lock, self.held = threading.Lock(), threading.Event()
        self.held.set()
        serving = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_GET(self) -> None:
                served = [{"id": "m", "max_model_len": 100, "parent": None}]
                found = {"/health": {}, "/v1/models": {"data": served}}.get(self.path)
                self._send(404 if found is None else 200, found or {})

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                with serving.lock:
                    serving.now += 1
                    serving.most_at_once = max(serving.most_at_once, serving.now)
                    serving.bodies.append(body)
                    serving.failures -= 1
                    failed = serving.failures >= 0
                time.sleep(0.01)
                if self.path == "/v1/completions":
                    serving.held.wait(30)
                if self.path == "/abort_requests":
                    serving.held.set()
                choice = {
                    "token_ids": [5, 6],
                    "prompt_token_ids": body.get("prompt"),
                    "logprobs": {"token_logprobs": [-0.5, -1.5]},
                    "finish_reason": "length",
                }
                serving.spoil(choice)
                with serving.lock:
                    serving.now -= 1
                self._send(503 if failed else 200, {"choices": [choice]})

            def _send(self, status: int, answer: Any) -> None:
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.http = Sockets(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.http.server_port}"


@pytest.fixture
def server() -> Iterator[Server]:
    found = Server()
    thread = threading.Thread(
        target=found.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


@pytest.fixture
def make(server: Server, tokenizer: Any, tmp_path: Path) -> Iterator[Callable[..., VLLMPolicy]]:
    made = []

    def of(url: str = server.url, **settings: Any) -> VLLMPolicy:
        made.append(VLLMPolicy(tokenizer, url, tmp_path, **{"max_new_tokens": 6, **settings}))
        return made[-1]

    yield of
    for policy in made:
        policy.close()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token_ids": None}, "1 to 6 token ids.*return_token_ids"),
        ({"token_ids": ["a"]}, "token ids below"),
        ({"token_ids": []}, "1 to 6 token ids"),
        ({"token_ids": [5] * 7}, "1 to 6 token ids"),
        ({"token_ids": [5, 10**6]}, "token ids below"),
        ({"prompt_token_ids": [1]}, "given other tokens"),
        ({"logprobs": None}, "2 log-probabilities"),
        ({"logprobs": {"token_logprobs": [-0.5]}}, "2 log-probabilities"),
        ({"logprobs": {"token_logprobs": [-0.5, -9999.0]}}, "2 log-probabilities"),
        ({"logprobs": {"token_logprobs": [-0.5, float("nan")]}}, "2 log-probabilities"),
        ({"finish_reason": "error"}, "finish by 'stop' or 'length', got 'error'"),
        ({"finish_reason": "stop"}, "token 6, which is not in eos_ids"),
    ],
)
def test_what_is_off_in_an_answer_raises(
    server: Server, make: Any, wrong: dict[str, Any], message: str
) -> None:
    server.spoil = lambda choice: choice.update(wrong)
    with pytest.raises(ServerError, match=message):
        make()(ASK[:1])


def test_everything_that_changes_a_distribution_is_sent(server: Server, make: Any) -> None:
    """A server has defaults from the model's files."""
    make(stop=["ab", "c"], seed=2)(ASK[:1])
    body = server.bodies[-1]
    names = ("temperature", "top_p", "top_k", "min_p", "repetition_penalty")
    assert [body[n] for n in names] == [1.0, 1.0, 0, 0.0, 1.0]
    assert (body["max_tokens"], body["stop"], body["logprobs"]) == (6, ["ab", "c"], 0)
    assert body["return_token_ids"] is body["include_stop_str_in_output"] is True
    make(temperature=0.5, top_p=0.9, top_k=4)(ASK[:1])
    body = server.bodies[-1]
    assert [body[n] for n in names] == [0.5, 0.9, 4, 0.0, 1.0]
    (greedy,) = make(temperature=0.5).stream(1, temperature=0)(ASK[:1])  # of an evaluation
    assert server.bodies[-1]["temperature"] == 0
    assert greedy.logprobs == (0.0, 0.0)


def test_a_busy_server_is_asked_again_with_the_same_seeds(server: Server, make: Any) -> None:
    server.failures = 1
    assert len(make(seed=3)(ASK)) == 3
    seeds = [body["seed"] for body in server.bodies]
    assert len(seeds) > 3
    assert set(seeds[-3:]) >= set(seeds[:-3])
    assert len(set(seeds)) == 3  # equal conversations have seeds of their own


def test_no_more_than_the_bound_are_under_way(server: Server, make: Any) -> None:
    make(concurrency=2)(ASK * 4)
    assert server.most_at_once <= 2


def test_a_rollout_that_runs_ahead_leaves_long_prompts_out_too(make: Any) -> None:
    tasks = [Task("?" * n, "", id=str(n)) for n in (2, 9)]
    env = TextEnv(Rows(tasks), FunctionVerifier(lambda reply, gold: True))
    config = GRPOConfig(prompts_per_step=2, group_size=2, max_prompt_tokens=4)
    groups = training_tasks(env, config)(make().stream(3), 1)
    assert [group.task.id for group in groups] == ["2"]


def test_one_failure_ends_the_call(server: Server, make: Any) -> None:
    server.spoil = lambda choice: choice.update(finish_reason=None)
    with pytest.raises(ServerError):
        make(concurrency=1)(ASK * 30)
    assert len(server.bodies) < 10  # the others were not asked


def test_refusals_name_the_remedy(
    server: Server, make: Any, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(ServerError, match=r"development endpoints are off.*SERVER_DEV_MODE=1"):
        make().sync(model, 0)
    with pytest.raises(ServerError, match=r"no answer from .*9/v1/models.*vllm serve MODEL"):
        make("http://127.0.0.1:9")(ASK[:1])
    with pytest.raises(ServerError, match="takes 100: start it with --max-model-len 206"):
        make()([[{"role": "user", "content": "x" * 200}]])
    with pytest.raises(ValueError, match="concurrency"):
        make(concurrency=0)
    monkeypatch.delenv("NO_SUCH_KEY", raising=False)
    with pytest.raises(ValueError, match="NO_SUCH_KEY holds no API key"):
        make(api_key_env="NO_SUCH_KEY")


STAND_IN = """#!{python}
import http.server, subprocess, sys
from pathlib import Path
child = subprocess.Popen(["sleep", "600"])
Path({pids!r}).write_text(str(child.pid))
if "--fail" in sys.argv:
    sys.exit("ValueError: no such dtype")
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self):
        self.send_response(200)
        self.end_headers()
port = next(int(a.split("=")[1]) for a in sys.argv if a.startswith("--port="))
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"""


@pytest.fixture
def stand_in(tmp_path: Path) -> Path:
    """A program in vLLM's place, with a process of its own."""
    path = tmp_path / "vllm"
    path.write_text(STAND_IN.format(python=sys.executable, pids=str(tmp_path / "child")))
    path.chmod(0o755)
    return path


def gone(pid: int, seconds: float = 30) -> bool:
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except OSError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


@pytest.mark.slow
def test_a_server_ends_with_its_context_and_with_this_process(
    stand_in: Path, tmp_path: Path
) -> None:
    log = tmp_path / "logs" / "vllm.log"
    with VLLMServer("model", log, executable=str(stand_in)) as server:
        child = int((tmp_path / "child").read_text())
        server.ensure()
        assert int((tmp_path / "child").read_text()) == child  # it runs already
        process: Any = server.process
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        server.ensure()
        assert int((tmp_path / "child").read_text()) != child
        child = int((tmp_path / "child").read_text())
    assert gone(child)
    script = (
        "import sys, time\nfrom assay.grpo import VLLMServer\n"
        f"VLLMServer('m', {str(log)!r}, executable={str(stand_in)!r}).ensure()\n"
        "print('up', flush=True)\ntime.sleep(600)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    assert parent.stdout.readline() == "up\n"
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert gone(int((tmp_path / "child").read_text()))


def test_a_server_that_does_not_start_quotes_its_log(stand_in: Path, tmp_path: Path) -> None:
    failing = VLLMServer("m", tmp_path / "log", executable=str(stand_in), options=["--fail"])
    with (
        pytest.raises(ServerError, match=r"vLLM ended: ValueError: no such dtype \(see .*log"),
        failing,
    ):
        pass
    assert gone(int((tmp_path / "child").read_text()))
    absent = VLLMServer("m", tmp_path / "log", executable="no-such-vllm")
    with pytest.raises(ServerError, match="there is no 'no-such-vllm': pip install vllm"):
        absent.ensure()


def test_ctrl_c_waits_for_no_reply(make: Callable[..., VLLMPolicy], server: Server) -> None:
    """And the server is asked to drop what is under way."""
    policy = make()
    server.held.clear()
    threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT)).start()
    started = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        policy(ASK * 20)
    assert time.monotonic() - started < 5
    assert server.held.is_set()  # by /abort_requests
    assert len(policy(ASK)) == len(ASK)


def test_a_rollout_that_outlives_the_run_does_not_wait_for_the_server(
    make: Callable[..., VLLMPolicy], server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """One that ran ahead: it would start the server again that has just been stopped."""
    policy = make()
    server.held.clear()
    with ThreadPoolExecutor(1) as pool:
        ahead = pool.submit(policy, ASK)
        while len(server.bodies) < len(ASK):
            time.sleep(0.01)
        server.failures = 99
        policy.close()
        server.held.set()
        with pytest.raises(ServerError):
            ahead.result(10)
    assert "waiting for the server" not in caplog.text
