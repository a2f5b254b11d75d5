"""A policy on a server: a real model behind a small HTTP server that loads new weights."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from assay.envs import Completion
from assay.grpo import (
    Batch,
    Call,
    Engine,
    GRPOConfig,
    Learner,
    ModelPolicy,
    Row,
    ServerError,
    ServerPolicy,
    SyncError,
    WeightFiles,
    full_forward,
    load_model,
    sample,
    vllm_calls,
)
from assay.grpo.sampling.engine import ready
from assay.grpo.sampling.weight_files import plain_calls

pytestmark = pytest.mark.slow

torch.set_num_threads(1)
ASK = [[{"role": "user", "content": text}] for text in ("1+1=", "1+1=", "2+13=")]
STOPS = tuple(range(40, 60))  # with these ending replies, they end at different times


class Sockets(ThreadingHTTPServer):
    """Takes many connections at once."""

    request_queue_size = 128
    daemon_threads = True


class Server:
    """Answers as vLLM does, with a model of its own.

    Attributes:
        spoil: called with each choice before it goes out.
        failures: requests that are answered 503 first.
        bodies: what was asked, by path.
    """

    def __init__(self, model_dir: Path) -> None:
        self.model, self.tokenizer = load_model(model_dir)
        self.spoil: Callable[[dict[str, Any]], None] = lambda choice: None
        self.failures = 0
        self.version: Any = None
        self.bodies: list[tuple[str, dict[str, Any]]] = []
        self.lock, self.now, self.most_at_once = threading.Lock(), 0, 0
        serving = self

        class Handler(BaseHTTPRequestHandler):
            def log_message(self, *_: Any) -> None:
                pass

            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                serving.now += 1
                serving.most_at_once = max(serving.most_at_once, serving.now)
                with serving.lock:
                    status, answer = serving.answer(self.path, body)
                    serving.now -= 1
                raw = json.dumps(answer).encode()
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(raw)))
                self.end_headers()
                self.wfile.write(raw)

        self.http = Sockets(("127.0.0.1", 0), Handler)
        self.root = f"http://127.0.0.1:{self.http.server_port}"
        self.url = f"{self.root}/v1"

    def answer(self, path: str, body: dict[str, Any]) -> tuple[int, Any]:
        self.bodies.append((path, body))
        if self.failures:
            self.failures -= 1
            return 503, {"error": "loading"}
        if path == "/load_weights":
            self.load(Path(body["path"]))
            return 200, {"step": body["step"] if self.version is None else self.version}
        if path == "/collective_rpc":
            self.load(Path(body["kwargs"]["weights_path"]))
            return 200, {"results": [None]}
        if path == "/reset_prefix_cache":
            return 200, {}
        if path != "/v1/completions" or body["model"] != "m":
            return 404, {"error": "there is no such thing"}
        (found,) = sample(
            self.model,
            [body["prompt"]],
            max_new_tokens=body["max_tokens"],
            eos_ids=body["stop_token_ids"],
            temperature=body["temperature"],
            top_p=body["top_p"],
            top_k=body.get("top_k", 0),
            seed=body["seed"],
        )
        choice = {
            "index": 0,
            "text": "not looked at",
            "token_ids": found.ids,
            "prompt_token_ids": body["prompt"],
            "logprobs": {"token_logprobs": found.logprobs},
            "finish_reason": found.finish,
        }
        self.spoil(choice)
        return 200, {"id": "1", "object": "text_completion", "model": "m", "choices": [choice]}

    def load(self, folder: Path) -> None:
        self.model.load_state_dict(load_file(folder / "model.safetensors"), strict=False)


@pytest.fixture
def server(model_dir: Path) -> Iterator[Server]:
    found = Server(model_dir)
    thread = threading.Thread(
        target=found.http.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True
    )
    thread.start()
    yield found
    found.http.shutdown()
    found.http.server_close()
    thread.join()


def policy(server: Server, **settings: Any) -> ServerPolicy:
    given = {"max_new_tokens": 6, "eos_ids": STOPS, "retries": 0, **settings}
    return ServerPolicy(server.tokenizer, server.url, "m", **given)


def off(model: Any, completions: list[Completion]) -> float:
    """Largest difference of a completion's log-probabilities from the model's own."""
    batch = Batch.of([[_row(c)] for c in completions])
    wanted, _ = full_forward(model, batch, 1.0)
    return float((batch.old_logprobs - wanted.detach()).abs().max())


def _row(c: Completion) -> Row:
    n = len(c.ids)
    return Row(c.prompt_ids, c.ids, (True,) * n, c.logprobs, (0.0,) * n)


def test_it_samples_as_the_model_does(server: Server, model: Any) -> None:
    here = policy(server, seed=5, concurrency=3)
    assert isinstance(here, Engine)
    found = here(ASK)
    assert off(model, found) < 1e-5
    for conversation, c in zip(ASK, found, strict=True):
        assert server.tokenizer.decode(c.prompt_ids) == conversation[0]["content"]
        assert c.text == server.tokenizer.decode(c.ids, skip_special_tokens=True)
        assert c.finish == ("stop" if c.ids[-1] in STOPS else "length")
    assert found[0].ids != found[1].ids  # equal conversations, rows of their own
    here.reseed(5)
    assert [c for one in ASK for c in here([one])] == found


def test_turns_go_on_from_the_very_tokens(server: Server) -> None:
    here = policy(server)
    (first,) = here(ASK[:1])
    more = [*ASK[0], {"role": "assistant", "content": first.text}, {"role": "user", "content": "?"}]
    prefix = first.prompt_ids + first.ids
    (second,) = here.extend([more], [prefix])
    assert second.prompt_ids[: len(prefix)] == prefix
    assert server.bodies[-1][1]["prompt"] == list(second.prompt_ids)


def test_a_trained_step_reaches_the_server(server: Server, model: Any, tmp_path: Path) -> None:
    """Its log-probabilities are those of the new weights then, to rounding."""
    here = policy(server, sync=WeightFiles(tmp_path, server.root))
    before = ready(here, model, step=0, seed=1)(ASK)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.02, fused=True)
    model(torch.tensor([[5, 6, 7]])).logits.exp().sum().backward()
    optimizer.step()
    assert off(model, before) > 1e-2
    after = ready(here, model, step=1, seed=1)(ASK)
    assert off(model, after) < 1e-5
    here.sync(model, 1)  # it has had those
    loads = [body for path, body in server.bodies if path == "/load_weights"]
    assert [body["step"] for body in loads] == [0, 1]
    assert [p.name for p in tmp_path.iterdir()] == ["step-00000001"]
    optimizer.step()  # another run may count the same step
    here.sync(model, 1)
    assert off(model, here(ASK)) < 1e-5


def test_a_learner_trains_on_what_a_server_samples(
    server: Server, model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    """On-policy at every step: the server's log-probabilities are the trained model's."""
    engine = policy(
        server, max_new_tokens=2, concurrency=8, sync=WeightFiles(tmp_path / "w", server.root)
    )

    class Served(Learner):
        def policy(self, *, seed: int, **settings: Any) -> Any:
            return ready(engine, self.model, step=self.step, seed=seed)

    rows: list[dict[str, Any]] = []
    config = GRPOConfig(
        steps=3, prompts_per_step=4, group_size=16, max_new_tokens=2, learning_rate=1e-2
    )
    out = tmp_path / "run"
    Served(
        model, tokenizer, digits(4, 16), config, out, progress=False, on_step=rows.append
    ).train()
    assert [row["ratio"] for row in rows[1:]] == pytest.approx([1.0] * 3, abs=1e-5)
    loads = [body["step"] for path, body in server.bodies if path == "/load_weights"]
    assert loads == [0, 1, 2]


def test_vllm_is_told_in_its_own_words(server: Server, model: Any, tmp_path: Path) -> None:
    with torch.no_grad():
        model.get_output_embeddings().weight.mul_(2)
    here = policy(server, sync=WeightFiles(tmp_path, server.root, calls=vllm_calls))
    assert off(model, ready(here, model, step=3, seed=0)(ASK)) < 1e-5
    paths = [path for path, _ in server.bodies[:2]]
    assert paths == ["/collective_rpc", "/reset_prefix_cache"]


def test_a_server_with_other_weights_is_not_sampled(
    server: Server, model: Any, tmp_path: Path
) -> None:
    here = policy(server, sync=WeightFiles(tmp_path, server.root))
    server.version = 7
    for _ in range(2):  # and it is tried again
        with pytest.raises(SyncError, match=r"must answer with 'step' = 8, got .*7"):
            here.sync(model, 8)
    missing = WeightFiles(tmp_path, server.root, calls=lambda folder, step: [Call("/nothing", {})])
    with pytest.raises(SyncError, match="/nothing answered 404"):
        missing(model, 1)
    nobody = WeightFiles(tmp_path, "http://127.0.0.1:9", calls=plain_calls)
    with pytest.raises(SyncError, match=r"no answer from http://127.0.0.1:9/load_weights"):
        nobody(model, 1)
    with pytest.raises(ValueError, match="pass sync to ServerPolicy"):
        policy(server).sync(model, 0)
    with pytest.raises(ValueError, match="server must be such as"):
        WeightFiles(tmp_path, "localhost:8000")


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"token_ids": None}, "no token ids.*return_token_ids"),
        ({"token_ids": ["a"]}, "no token ids"),
        ({"token_ids": []}, "1 to 6 tokens"),
        ({"token_ids": [5, 6, 10**6]}, "all below the tokenizer's"),
        ({"prompt_token_ids": [1]}, "given other tokens"),
        ({"logprobs": None}, "no log-probability for each"),
        ({"logprobs": {"token_logprobs": [-0.5] * 9}}, "no log-probability for each"),
        ({"token_ids": [5], "logprobs": {"token_logprobs": [-9999.0]}}, "no log-probabilities"),
        ({"token_ids": [5], "logprobs": {"token_logprobs": [float("nan")]}}, "no log-prob"),
        ({"finish_reason": "abort"}, "finish by 'stop' or 'length', got 'abort'"),
        (
            {"token_ids": [5], "logprobs": {"token_logprobs": [-0.5]}, "finish_reason": "stop"},
            "token 5, which is not in eos_ids",
        ),
    ],
)
def test_what_is_off_in_an_answer_raises(
    server: Server, wrong: dict[str, Any], message: str
) -> None:
    server.spoil = lambda choice: choice.update(wrong)
    with pytest.raises(ServerError, match=message):
        policy(server)(ASK[:1])


def test_a_busy_server_is_asked_again(server: Server) -> None:
    server.failures = 2
    again = policy(server, seed=3, retries=2, concurrency=1)(ASK)
    assert again == policy(server, seed=3)(ASK)
    server.failures = 1
    with pytest.raises(ServerError, match=r"answered 503.*loading"):
        policy(server)(ASK[:1])


def test_no_more_than_the_bound_are_under_way(server: Server) -> None:
    policy(server, concurrency=2)(ASK * 4)
    assert server.most_at_once <= 2


def test_one_failure_ends_the_call(server: Server) -> None:
    server.spoil = lambda choice: choice.update(finish_reason=None)
    with pytest.raises(ServerError):
        policy(server, concurrency=1)(ASK * 30)
    assert len(server.bodies) < 10  # the others were not asked


def test_settings_are_sent_and_checked(server: Server, tokenizer: Any) -> None:
    stop = ["ab", "c"]
    policy(server, temperature=0.5, top_p=0.9, top_k=4, stop=stop, seed=2)(ASK[:1])
    body = server.bodies[-1][1]
    sent = {k: body[k] for k in ("temperature", "top_p", "top_k", "max_tokens", "stop")}
    assert sent == {"temperature": 0.5, "top_p": 0.9, "top_k": 4, "max_tokens": 6, "stop": stop}
    assert body["return_token_ids"] is body["include_stop_str_in_output"] is True
    with pytest.raises(ValueError, match="concurrency"):
        policy(server, concurrency=0)
    with pytest.raises(ValueError, match="ASSAY_NO_SUCH_KEY holds no API key"):
        policy(server, api_key_env="ASSAY_NO_SUCH_KEY")
    with pytest.raises(ServerError, match="answered 404"):
        ServerPolicy(tokenizer, server.url, "other", max_new_tokens=1, retries=0)(ASK[:1])
    with pytest.raises(ServerError, match=r"no answer from http://127.0.0.1:9/v1"):
        ServerPolicy(tokenizer, "http://127.0.0.1:9/v1", "m", max_new_tokens=1, retries=0)(ASK[:1])


def test_the_model_here_is_an_engine_too(model: Any, tokenizer: Any) -> None:
    here = ModelPolicy(model, tokenizer, max_new_tokens=2)
    assert isinstance(here, Engine)
    first = ready(here, model, step=0, seed=4)(ASK)
    assert ready(here, model, step=0, seed=4)(ASK) == first
