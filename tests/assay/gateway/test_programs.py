"""Three programs that know nothing of Assay play, and a model is trained behind them."""

from __future__ import annotations

import os
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("fastapi")

from assay.envs import EpisodeGroup, Policy, Rows, Task, TextEnv
from assay.gateway import AgentEnv
from assay.gateway.policy_engine import AgentPlayer
from assay.grpo import GRPOConfig, Learner, VLLMPolicy, load_model, training_tasks
from assay.verifiers import FunctionVerifier

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]
NEAR = 2e-5
CURL = """
for turn in 1 2; do
    message="{\\"role\\": \\"user\\", \\"content\\": \\"$(cat prompt.txt) $turn\\"}"
    curl -sf "$OPENAI_BASE_URL/chat/completions" -d "{\\"messages\\": [$message]}" \\
        -H "Authorization: Bearer $OPENAI_API_KEY"
done
"""
MINI = os.environ.get("ASSAY_MINI_SWE_AGENT", "")
MINI_SETTINGS = ["-c", "mini.yaml", "-c", "agent.step_limit=2", "-o", "trajectory.json"]
COMMANDS = {
    "curl": ["sh", "-ec", CURL],
    "mini-swe-agent": [
        *(MINI, "-y", "-t", "{prompt}", "-m", "openai/tiny", "--exit-immediately"),
        *MINI_SETTINGS,
    ],
}


def uneven(reply: str, _: str) -> float:
    """Return a score that hardly two replies share, so that there is something to learn."""
    return sum(map(ord, reply)) % 97 / 97


@pytest.mark.parametrize(
    ("name", "engine"),
    [
        ("openai", "transformers"),
        ("openai", "vllm"),
        ("curl", "transformers"),
        ("curl", "vllm"),
        ("mini-swe-agent", "transformers"),
        ("mini-swe-agent", "vllm"),
    ],
)
def test_a_model_is_trained_behind_a_program(
    name: str, engine: str, folder: Path, by_sdk, tmp_path: Path, monkeypatch, request
) -> None:
    """What is trained has the log-probabilities that the engine drew it with."""
    if name == "mini-swe-agent":
        if not MINI:
            pytest.skip("ASSAY_MINI_SWE_AGENT names no command of mini-swe-agent")
        monkeypatch.setenv("MSWEA_CONFIGURED", "true")
        monkeypatch.setenv("MSWEA_COST_TRACKING", "ignore_errors")
        monkeypatch.setenv("MSWEA_MODEL_RETRY_STOP_AFTER_ATTEMPT", "1")
        monkeypatch.setenv("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    else:
        pytest.importorskip("openai")
    if name == "curl" and shutil.which("curl") is None:
        pytest.skip("there is no curl")
    model, tokenizer = load_model(folder)
    policy = None
    if engine == "vllm":
        server = request.getfixturevalue("server")
        policy = VLLMPolicy(tokenizer, server, tmp_path / "weights", max_new_tokens=6, check=False)
    env = TextEnv(Rows([Task("Say 5", "", id="a")]), FunctionVerifier(uneven))
    player = AgentPlayer(
        AgentEnv(env, COMMANDS.get(name, by_sdk), unsafe=True, time_s=120), max_turns=4
    )
    sampled = 0

    def play(policy: Policy, tasks: Sequence[Task], size: int) -> list[EpisodeGroup]:
        nonlocal sampled
        groups = player(policy, tasks, size)
        for episode in (e for group in groups for e in group.episodes):
            assert episode.reward is not None, episode.verdict
            for spans in (episode.spans, *episode.branches):
                sampled += worst(model, spans)
        return groups

    config = GRPOConfig(
        steps=1, prompts_per_step=1, group_size=4, max_new_tokens=6, eval_every=0, save_every=0,
        learning_rate=1e-2,
    )  # fmt: skip
    before = [p.detach().clone() for p in model.parameters()]
    more: dict[str, Any] = {"progress": False, "trackers": ()}
    more |= {} if policy is None else {"engine": policy}
    rollout = training_tasks(env, config, play_tasks=play)
    Learner(model, tokenizer, rollout, config, tmp_path / "run", **more).train()
    assert sampled >= 4 * 2
    assert any(not torch.equal(a, b) for a, b in zip(before, model.parameters(), strict=True))


@torch.no_grad()
def worst(model: Any, spans: Any) -> int:
    """Compare log-probabilities with the model's own; return how many there are."""
    ids = torch.tensor([[i for span in spans for i in span.ids]])
    logprobs, at, found = model(ids).logits[0].double().log_softmax(-1), 0, 0
    for span in spans:
        for k, i in enumerate(span.ids):
            if span.author == "model":
                assert abs(float(logprobs[at + k - 1, i]) - span.logprobs[k]) < NEAR
                found += 1
        at += len(span.ids)
    return found
