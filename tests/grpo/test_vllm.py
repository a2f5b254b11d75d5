"""A real vLLM on the CPU: ASSAY_VLLM_PYTHON is the python of an environment that has it."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaForCausalLM

from assay.envs import Completion
from assay.grpo import (
    Engine,
    GRPOConfig,
    Learner,
    LoRA,
    ServerError,
    VLLMPolicy,
    VLLMServer,
    load_model,
    read_metrics,
    tiny_model,
)
from assay.grpo import vllm as engine
from assay.grpo.vllm import ServedCompletion

PYTHON = os.environ.get("ASSAY_VLLM_PYTHON", "")
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(not PYTHON, reason="ASSAY_VLLM_PYTHON names no python that has vllm"),
]
torch.set_num_threads(1)
ASK = [[{"role": "user", "content": text}] for text in ("1+1=", "1+1=", "2+13=", "x" * 40)]
NEAR = 2e-6  # of log-probabilities near -5, whose last bit is 5e-7


@pytest.fixture(scope="module")
def dirs(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Models of a head size that vLLM takes on a CPU, the second with a padded vocabulary."""
    root = tmp_path_factory.mktemp("models")
    tied = tiny_model(root / "tied", hidden_size=64, heads=2, intermediate_size=96)
    # What a server would use if a request did not say otherwise.
    (tied / "generation_config.json").write_text(
        '{"eos_token_id": [1, 40, 41], "top_k": 1, "repetition_penalty": 1.5, "temperature": 0.1}'
    )
    model, tokenizer = load_model(tied)
    config = type(model.config)(
        **(model.config.to_dict() | {"tie_word_embeddings": False, "vocab_size": 128})
    )
    torch.manual_seed(1)
    LlamaForCausalLM(config).save_pretrained(root / "untied")
    tokenizer.save_pretrained(root / "untied")
    return {"tied": tied, "untied": root / "untied"}


@pytest.fixture(scope="module")
def servers(
    dirs: dict[str, Path], tmp_path_factory: pytest.TempPathFactory
) -> Iterator[dict[str, VLLMServer]]:
    root = tmp_path_factory.mktemp("servers")
    bin_dir = Path(PYTHON).parent
    common: dict[str, Any] = {
        "executable": str(bin_dir / "vllm"),
        "dtype": "float32",
        "max_model_len": 128,
        "env": {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        "start_s": 400,
    }
    options = ("--enforce-eager", "--block-size", "32")
    made = {
        "tied": VLLMServer(
            dirs["tied"],
            root / "tied.log",
            options=(*options, "--generation-config", "auto"),
            **common,
        ),
        "untied": VLLMServer(
            dirs["untied"], root / "untied.log", options=options, lora_rank=4, **common
        ),
    }
    with ExitStack() as stack, ThreadPoolExecutor() as pool:
        for server in made.values():
            stack.callback(server.stop)
        list(pool.map(VLLMServer.ensure, made.values()))
        yield made


Make = Callable[..., tuple[Any, VLLMPolicy]]


@pytest.fixture
def make(dirs: dict[str, Path], servers: dict[str, VLLMServer], tmp_path: Path) -> Iterator[Make]:
    """A model, and a policy that samples from its server."""
    with ExitStack() as stack:

        def of(name: str, *, lora: bool = False, **settings: Any) -> tuple[Any, VLLMPolicy]:
            model, tokenizer = load_model(dirs[name], lora=LoRA(rank=4) if lora else None)
            given = {"max_new_tokens": 4, "check": False, **settings}
            if lora:  # the test before may have left the server other weights to adapt
                of(name)[1].sync(load_model(dirs[name])[0], 0)
            policy = VLLMPolicy(tokenizer, servers[name], tmp_path / "weights", **given)
            stack.callback(policy.close)
            return model, policy

        yield of


@torch.no_grad()
def off(model: Any, completions: list[Completion], temperature: float = 1.0) -> float:
    """Largest difference of a completion's log-probabilities from the model's own."""
    worst = 0.0
    for c in completions:
        logits = model(torch.tensor([c.prompt_ids + c.ids])).logits[0].double() / temperature
        own = logits.log_softmax(-1)[len(c.prompt_ids) - 1 : -1]
        found = own[torch.arange(len(c.ids)), torch.tensor(c.ids)]
        worst = max(worst, float((found - torch.tensor(c.logprobs)).abs().max()))
    return worst


def change(tensor: torch.Tensor) -> None:
    with torch.no_grad():
        scale = 0.3 * float(tensor.abs().mean()) or 0.05
        tensor.add_(scale * torch.randn(tensor.shape, generator=torch.Generator().manual_seed(0)))


@pytest.mark.parametrize(("name", "lora"), [("tied", False), ("untied", False), ("untied", True)])
def test_every_tensor_reaches_the_server(make: Make, name: str, lora: bool) -> None:
    model, policy = make(name, lora=lora)
    prompt = list(range(3, 90))
    for step, (tensor, p) in enumerate(model.named_parameters()):
        if not p.requires_grad:
            continue
        before, kept = engine._logprobs(model, prompt), p.detach().clone()
        change(p)
        policy.sync(model, step)
        now, served = engine._logprobs(model, prompt), policy._prompt_logprobs(prompt)
        if not lora:  # in a new adapter one factor is 0, and the other has no effect alone
            assert float((now - before).abs().max()) > 1e-3, tensor
        assert float((served - now).abs().max()) < NEAR, tensor
        if not lora:
            p.data.copy_(kept)


@pytest.mark.parametrize(("name", "lora"), [("tied", False), ("untied", False), ("untied", True)])
def test_fifty_steps_stay_on_policy(make: Make, name: str, lora: bool) -> None:
    """Against defaults of the server that would change the distribution, too."""
    model, policy = make(name, lora=lora, check=True, seed=5)
    assert isinstance(policy, Engine)
    if name == "tied":
        assert policy.eos_ids == (1,)
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=1e-3)
    noise, worst, texts = torch.Generator().manual_seed(0), 0.0, set()
    for step in range(50):
        policy.sync(model, step)
        found = policy(ASK)
        worst = max(worst, off(model, found))
        texts |= {c.text for c in found[:2]}
        x = torch.randint(3, 99, (4, 20), generator=noise)
        optimizer.zero_grad()
        model(x, labels=x).loss.backward()
        optimizer.step()
        if step in (0, 49):
            assert off(model, found) > 1e-4  # the step was one that shows
    assert worst < NEAR
    assert len(texts) > 50
    if name == "tied":
        assert policy.eos_ids == (1, 40, 41)
    kept = sorted(x.name for x in policy.directory.iterdir())
    assert [x.rsplit("-", 1)[1] for x in kept] in (["48", "49"], ["49", "48"])
    model, first = make(name, lora=lora, seed=5)  # and the same seed gives the same replies
    first.sync(model, 0)
    replies = first(ASK)
    first.reseed(5)
    assert [c for one in ASK for c in first([one])] == replies


def test_replies_end_where_they_should(make: Make) -> None:
    model, policy = make(
        "tied", max_new_tokens=60, stop=["a", "7"], temperature=0.5, eos_ids=[1, 50, 51]
    )
    policy.sync(model, 3)
    found = policy(ASK * 4)
    assert off(model, found, 0.5) < NEAR
    assert {c.finish for c in found} <= {"stop", "length"}
    for c in found:
        assert isinstance(c, ServedCompletion)
        assert c.step == 3
        assert c.text == policy.tokenizer.decode(c.ids, skip_special_tokens=True)
        ended = c.ids[-1] in (1, 50, 51) or c.text.endswith(("a", "7"))
        assert ended is (c.finish == "stop")
    more = [
        *ASK[0],
        {"role": "assistant", "content": found[0].text},
        {"role": "user", "content": "?"},
    ]
    prefix = found[0].prompt_ids + found[0].ids
    (second,) = policy.extend([more], [prefix])
    assert second.prompt_ids[: len(prefix)] == prefix


def test_a_prefix_of_old_weights_is_not_used_again(make: Make) -> None:
    """Without the reset it is: the cache does hold these prompts."""
    model, policy = make("untied")
    ask = [[{"role": "user", "content": "The same long prompt: " + "ab" * 40}]] * 4
    policy.sync(model, 0)
    policy(ask)
    for p in model.parameters():
        change(p)
    policy.sync(model, 1)
    assert off(model, policy(ask)) < NEAR
    for p in model.parameters():
        change(p)
    tensors = engine._state_dict_of(model, False, torch.float32)
    policy._write(model, tensors, policy.directory / "unreset")
    call = {"method": "reload_weights"}
    where = {"weights_path": str(policy.directory / "unreset")}
    policy._post("/collective_rpc", call | {"kwargs": where})
    assert off(model, policy(ask)) > 1e-3


def test_a_vocabulary_padded_beyond_the_tokenizer(make: Make) -> None:
    model, policy = make("untied")
    with torch.no_grad():  # favour ids that the tokenizer does not have
        model.lm_head.weight[len(policy.tokenizer) :] *= 8
    policy.sync(model, 0)
    found = policy(ASK * 8)
    assert max(i for c in found for i in c.ids) >= len(policy.tokenizer)
    assert off(model, found) < 2 * NEAR


def test_weights_change_while_replies_are_under_way(make: Make) -> None:
    model, policy = make("tied", max_new_tokens=60, eos_ids=[1])
    policy.sync(model, 0)
    with ThreadPoolExecutor(1) as pool:
        sampling = pool.submit(policy, ASK * 16)
        for step in range(1, 4):
            time.sleep(0.3)
            for p in model.parameters():
                change(p)
            policy.sync(model, step)
        found = sampling.result()
    assert {c.step for c in found} <= {0, 1, 2, 3}
    assert all(c.finish in ("stop", "length") for c in found)
    assert off(model, policy(ASK)) < 2 * NEAR


@pytest.mark.parametrize(("name", "lora", "level"), [("tied", False, 2), ("untied", True, 1)])
def test_it_sleeps_while_the_model_is_trained(
    make: Make, digits: Any, tmp_path: Path, name: str, lora: bool, level: Any
) -> None:
    """On a CPU, vLLM frees nothing then, but takes no work either."""
    asleep, rows = [], list[dict[str, Any]]()

    def look(row: dict[str, Any]) -> None:
        if row["step"]:
            rows.append(row)
            asleep.append(policy._get("/is_sleeping")["is_sleeping"])

    for steps in (2, 3):  # the second run finds the server asleep
        model, policy = make(name, lora=lora, max_new_tokens=2, eos_ids=[1], sleep_level=level)
        config = GRPOConfig(
            steps=steps, prompts_per_step=4, group_size=8, max_new_tokens=2, learning_rate=1e-3
        )
        given: dict[str, Any] = {"progress": False, "engine": policy, "trackers": []}
        out, tokenizer = tmp_path / str(steps), policy.tokenizer
        Learner(model, tokenizer, digits(4, 8), config, out, on_step=look, **given).train()
    assert asleep == [True] * 5
    assert max(row["mismatch"] for row in rows) < NEAR
    stale = config.__class__(**{**config.to_json(), "max_staleness": 1})
    with pytest.raises(ValueError, match="and the engine sleeps then"):
        Learner(model, tokenizer, digits(4, 8), stale, tmp_path / "stale", engine=policy)
    policy.sync(model, 3)  # awake again
    assert off(model, policy(ASK)) < NEAR


def test_a_tensor_that_does_not_arrive_is_named(
    make: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The checkpoint as transformers writes it leaves the server's copy of a tied matrix."""
    whole = engine._state_dict_of

    def without_head(*of: Any) -> dict[str, torch.Tensor]:
        return {n: t for n, t in whole(*of).items() if n != "lm_head.weight"}

    model, policy = make("tied", check=True)
    policy.sync(model, 0)  # the server's weights are these, wherever the tests before left it
    before = {n: p.detach().clone() for n, p in model.named_parameters()}
    monkeypatch.setattr(engine, "_state_dict_of", without_head)
    policy._check = True
    with pytest.raises(ServerError, match=r"model\.embed_tokens\.weight does not reach"):
        policy.sync(model, 1)
    assert all(torch.equal(p, before[n]) for n, p in model.named_parameters())


def test_refusals_name_the_remedy(make: Make, tmp_path: Path) -> None:
    model, policy = make("tied")
    other, _ = load_model(tiny_model(tmp_path / "m", hidden_size=96, heads=3, intermediate_size=96))
    with pytest.raises(ServerError, match=r"another model: its hidden_size is 64.* 96"):
        policy.sync(other, 0)
    padded, _ = make("untied")
    with pytest.raises(ServerError, match=r"its vocab_size is 100.* 128"):
        policy.sync(padded, 0)
    policy.sync(model, 0)
    with pytest.raises(ServerError, match="takes 128: start it with --max-model-len 204"):
        policy([[{"role": "user", "content": "y" * 200}]])
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    change(model.model.norm.weight)
    try:  # as a full disk fails: half-way
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, limits[1]))
        with pytest.raises(OSError, match=r"cannot write weights to .*Nothing is lost"):
            policy.sync(model, 1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, ignored)
    assert len(list(policy.directory.iterdir())) == 1
    assert len(policy(ASK)) == len(ASK)  # by the weights it has
    policy.sync(model, 1)
    assert off(model, policy(ASK)) < NEAR


def test_a_killed_server_is_started_again(
    make: Make, servers: dict[str, VLLMServer], digits: Any, tmp_path: Path
) -> None:
    """In the middle of a call; the run goes on, on policy and with the replies it would have."""
    model, policy = make("tied", max_new_tokens=8, eos_ids=[1])
    server, worst, killed = servers["tied"], [], threading.Event()

    class Killing:
        def __getattr__(self, name: str) -> Any:
            return getattr(policy, name)

        def sync(self, model: Any, step: int) -> None:
            policy.sync(model, step)

        def reseed(self, seed: int) -> None:
            policy.reseed(seed)

        def __call__(self, conversations: Any, /) -> list[Completion]:
            return self.extend(conversations, [()] * len(conversations))

        def extend(self, conversations: Any, prefixes: Any, /) -> list[Completion]:
            if policy.step == 2 and not killed.is_set():
                killed.set()
                process: Any = server.process
                threading.Timer(0.2, os.killpg, (process.pid, signal.SIGKILL)).start()
            found = policy.extend(conversations, prefixes)
            worst.append(off(model, found))
            return found

    config = GRPOConfig(
        steps=4, prompts_per_step=4, group_size=8, max_new_tokens=8, learning_rate=1e-3
    )
    rows: list[dict[str, Any]] = []
    Learner(
        model,
        policy.tokenizer,
        digits(4, 8),
        config,
        tmp_path / "run",
        progress=False,
        on_step=rows.append,
        engine=Killing(),
    ).train()
    assert killed.is_set()
    assert [row["step"] for row in rows][-1] == 4
    assert max(worst) < NEAR


def test_ctrl_c_ends_a_rollout_at_once(make: Make) -> None:
    """The server drops its requests too."""
    model, policy = make("tied", max_new_tokens=100, eos_ids=[1])
    with torch.no_grad():
        model.model.embed_tokens.weight[1] *= -1  # no reply ends early
    policy.sync(model, 0)

    def count(metric: str) -> float:
        lines = policy._get("/metrics").splitlines()
        return sum(float(x.split()[-1]) for x in lines if x.startswith(f"vllm:{metric}"))

    ask = ASK[:1] * 128
    policy.reseed(1)
    whole = policy(ask)
    finished = count("request_success_total")  # vLLM leaves out those that it aborts

    def interrupt() -> None:
        while not count("num_requests_running"):
            time.sleep(0.01)
        os.kill(os.getpid(), signal.SIGINT)

    threading.Thread(target=interrupt, daemon=True).start()
    with pytest.raises(KeyboardInterrupt):
        policy(ask)
    while count("num_requests_running") or count("num_requests_waiting{"):
        time.sleep(0.1)
    assert count("request_success_total") < finished + len(ask)
    policy.reseed(1)
    assert policy(ask) == whole


def test_a_stale_run_learns_as_a_synchronous_one(make: Make, digits: Any, tmp_path: Path) -> None:
    """A first digit pays: from a tenth of the replies to nearly all, one step behind or not."""
    late: dict[int, list[float]] = {}
    for staleness in (0, 1):
        model, policy = make("tied", max_new_tokens=2, eos_ids=[1])
        config = GRPOConfig(
            steps=30,
            prompts_per_step=8,
            group_size=8,
            max_new_tokens=2,
            learning_rate=2e-3,
            warmup_steps=3,
            max_staleness=staleness,
            correction="token_truncate" if staleness else "none",
            alarm_patience=0,
        )
        rows: list[dict[str, Any]] = []
        out = tmp_path / str(staleness)
        given: dict[str, Any] = {"progress": False, "engine": policy, "trackers": []}
        Learner(
            model, policy.tokenizer, digits(8, 8), config, out, on_step=rows.append, **given
        ).train()
        assert rows[1]["reward"] < 0.4
        late[staleness] = [row["reward"] for row in rows[-5:]]
        if staleness:
            assert {row["staleness"] for row in rows[2:]} <= {0.0, 1.0}
            assert sum(row["staleness"] for row in rows[1:]) > 0
    means = [sum(found) / len(found) for found in late.values()]
    assert min(means) > 0.75, late
    assert abs(means[0] - means[1]) < 0.15, late


@pytest.mark.parametrize("own", [True, False])
def test_the_command_line_trains_by_a_server(
    dirs: dict[str, Path], servers: dict[str, VLLMServer], tmp_path: Path, own: bool
) -> None:
    def processes() -> bytes:
        return subprocess.run(["pgrep", "-fc", dirs["tied"]], stdout=subprocess.PIPE).stdout

    before, out = processes(), tmp_path / "run"
    model, tokenizer = load_model(dirs["tied"])
    tokenizer.chat_template = (
        "{% for m in messages %}{{ m.content }}{% endfor %}"
        "{% if enable_thinking is not defined %}{{ raise_exception('thinks?') }}{% endif %}"
    )
    chat = f"{dirs['tied']}-chat"
    model.save_pretrained(chat)
    tokenizer.save_pretrained(chat)
    own_flags = [
        "--vllm-executable",
        Path(PYTHON).parent / "vllm",
        "--server-options",
        "--max-model-len=128 --seed 3",
    ]
    command = [sys.executable, "-m", "assay", "train", "assay/Arithmetic-v1", "--set", "digits=1",
               "--model", chat, "--steps", 2, "--warmup-steps", 1, "--max-new-tokens", 4,
               "--prompts", 4, "--group-size", 4, "--eval-every", 2, "--held-out", 8, "--out", out,
               "--engine", "vllm", "--eval-temperature", 0, "--sync-dir", tmp_path / "sync",
               "--chat-template-kwargs", '{"enable_thinking": false}']  # fmt: skip
    command += own_flags if own else ["--server", servers["tied"].url]
    environment = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(
        [*map(str, command)], env=os.environ | environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    rows = read_metrics(out / "metrics.jsonl")
    assert [row["step"] for row in rows] == [0, 1, 2]
    assert (out / "vllm.log").exists() is own
    assert not list((tmp_path / "sync").iterdir())
    if own:  # the reason is the server's own
        refused = subprocess.run(
            [*map(str, command), "--server-sleep", "--out", tmp_path / "asleep"],
            env=os.environ | environment, capture_output=True, text=True,
        )  # fmt: skip
        assert "Sleep mode is not supported on current platform" in refused.stderr
    assert processes() == before  # the server that was there is, and no other
