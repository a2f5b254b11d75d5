"""The gateway before a real vLLM on the CPU: ASSAY_VLLM_PYTHON is a python that has it."""

from __future__ import annotations

import threading
from typing import Any

import pytest

openai = pytest.importorskip("openai")
pytest.importorskip("torch")
pytest.importorskip("fastapi")

import torch

from assay.envs import Rows, Task, TextEnv
from assay.gateway import (
    AgentEnv,
    EngineError,
    GatewayConfig,
    ProxyEngine,
    Sampled,
    SampleRequest,
    VLLMEngine,
)
from assay.gateway.policy_engine import AgentPlayer
from assay.grpo import VLLMPolicy, load_model
from assay.verifiers import FunctionVerifier, Status

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NEAR = 2e-6


@torch.no_grad()
def off(model: Any, branch: Any) -> float:
    """Largest difference of a branch's log-probabilities from the model's own."""
    logits = model(torch.tensor([branch.ids])).logits[0, :-1].double().log_softmax(-1)
    own = logits[torch.arange(len(branch.ids) - 1), torch.tensor(branch.ids[1:])]
    mask = torch.tensor(branch.mask[1:]).bool()
    return float((own[mask] - torch.tensor(branch.logprobs[1:])[mask]).abs().max())


def loop(url: str, session: Any, turns: int = 4, **more: Any) -> None:
    messages = [{"role": "user", "content": "1+1="}]
    with openai.OpenAI(base_url=f"{url}/v1", api_key=session.key) as client:
        for _ in range(turns):
            found = client.chat.completions.create(
                model="m", messages=messages, max_tokens=8, **more
            )
            messages += [found.choices[0].message, {"role": "user", "content": "on"}]


def test_token_ids_are_the_servers_own(start, server, folder) -> None:
    model, tokenizer = load_model(folder)
    engine = VLLMEngine(server.url, tokenizer, processed=True)
    gateway, url = start(engine=engine)
    one, two = gateway.open(seed=1), gateway.open(seed=1)
    for session in (one, two):
        loop(url, session, temperature=0.7)
    (branch,) = one.tree.branches()
    assert len(branch.turns) == 4
    (again,) = two.tree.branches()
    assert (again.ids, again.logprobs) == (branch.ids, branch.logprobs)  # bit for bit
    plain = gateway.open(seed=2)
    loop(url, plain)
    (branch,) = plain.tree.branches()
    assert off(model, branch) < NEAR


def test_what_the_server_may_leave_out_is_refused(start, server, folder) -> None:
    _, tokenizer = load_model(folder)
    gateway, url = start(engine=VLLMEngine(server.url, tokenizer))
    with pytest.raises(openai.BadRequestError, match="processed_logprobs"):
        loop(url, gateway.open(), temperature=0.7)
    loop(url, gateway.open(), turns=1, temperature=0)


def test_a_proxy_keeps_what_the_server_tokenized(start, server, folder) -> None:
    model, _ = load_model(folder)
    gateway, url = start(engine=ProxyEngine(server.url))
    session = gateway.open()
    loop(url, session, seed=7)
    branches = session.tree.branches()
    assert sum(len(b.turns) for b in branches) >= 4
    assert sum(sum(b.mask) for b in branches) == sum(len(t.ids) for t in session.tree.turns)
    for branch in branches:
        assert off(model, branch) < NEAR
        assert branch.turns[0].prompt.begins in ("first", "rewritten")


def test_a_server_that_gives_no_ids_is_refused(start) -> None:
    """The gateway itself is such a server to a client that does not ask for them by its field."""
    _, url = start()
    with pytest.raises(EngineError):
        ProxyEngine(url)


def test_64_programs_lose_nothing_when_the_engine_is_restarted(program, server, folder) -> None:
    """Four of them fail in ways of their own, each in its own episode alone."""
    expected = {
        "killed 0": (Status.SANDBOX_ERROR, None),
        "forever 0": (Status.TIMEOUT, 0.0),
        "garbage 0": (Status.VERIFIER_ERROR, None),
        "fails 0": (Status.RUNTIME_ERROR, 0.0),
        **{f"sound {i}": (Status.CORRECT, 1.0) for i in range(60)},
    }
    asked = [Task(prompt, "", id=prompt) for prompt in expected]
    env = TextEnv(Rows(asked), FunctionVerifier(lambda reply, reference: 1.0))
    agent = AgentEnv(env, program, unsafe=True, answer_file="answer.txt", time_s=60, at_once=64)
    engine = VLLMEngine(server.url, load_model(folder)[1], patience_s=400)
    begun, sample = threading.Semaphore(0), engine.sample

    async def counted(request: SampleRequest) -> Sampled:
        begun.release()
        return await sample(request)

    engine.sample = counted  # type: ignore[method-assign]

    def restart() -> None:
        for _ in range(80):
            begun.acquire()
        server.stop()
        server.ensure()

    restarting = threading.Thread(target=restart)
    restarting.start()
    config = GatewayConfig(max_tokens=8, timeout_s=500)
    episodes = {g.task.id: g.episodes[0] for g in agent.play(engine, asked, 1, config=config)}
    restarting.join()
    assert {name: (e.status, e.reward) for name, e in episodes.items()} == expected
    for name, episode in episodes.items():
        if name.startswith("sound"):
            assert sum(span.author == "model" for span in episode.spans) == 3


def test_a_learner_s_server_plays_programs_with_its_weights(
    server, folder, by_sdk, tmp_path
) -> None:
    model, tokenizer = load_model(folder)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=torch.Generator().manual_seed(0)))
    policy = VLLMPolicy(tokenizer, server, tmp_path / "weights", max_new_tokens=6, check=False)
    policy.sync(model, 1)
    task = Task("1+1=", "", id="a")
    env = TextEnv(Rows([task]), FunctionVerifier(lambda reply, reference: 1.0))
    agent = AgentEnv(env, by_sdk, unsafe=True)
    (group,) = AgentPlayer(agent)(policy, [task], 3)
    assert group.rewards == (1.0,) * 3
    for episode in group.episodes:
        assert [s.author for s in episode.spans] == ["environment", "model"] * 2
        ids = [i for s in episode.spans for i in s.ids]
        logits = model(torch.tensor([ids])).logits[0].detach().double().log_softmax(-1)
        at = 0
        for span in episode.spans:
            for k, i in enumerate(span.ids):
                if span.author == "model":
                    assert abs(float(logits[at + k - 1, i]) - span.logprobs[k]) < NEAR
            at += len(span.ids)
    policy.close()
