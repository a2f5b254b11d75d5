"""The learner in one file: its loss and its gradient are the learner's."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

import pytest
import torch

from assay import make
from assay.envs import Episode, EpisodeGroup, Span
from assay.grpo import Batch, GRPOConfig, Learner, Row, load_model, policy_loss, read_metrics
from assay.grpo.advantage import group_advantages
from assay.grpo.logprobs import full_forward
from assay.grpo.loss import loss_denominator
from assay.verifiers import Status, Verdict

torch.set_num_threads(1)
SCRIPT = Path(__file__).parents[2] / "examples" / "nano_grpo.py"
P, G = 6, 4


@pytest.fixture(scope="module")
def nano() -> Any:
    """The script as a module, which runs nothing."""
    spec = importlib.util.spec_from_file_location("nano_grpo", SCRIPT)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def policy(model_dir: Path) -> Any:
    """The model in double precision."""
    return load_model(model_dir, dtype="float64")[0]


class Rolled:
    """One rollout of the script, with one reward that is missing and one group without variance.

    Attributes:
        ids: [B, L] prompts, padded on the left, and replies.
        there: [B, L], False on padding.
        written: [B, L], True on the policy's tokens.
        rewards: [P, G].
    """

    def __init__(self, nano: Any, policy: Any, tokenizer: Any) -> None:
        env = make("assay/Arithmetic-v1")
        self.tasks = [env.task(i) for i in range(P)]
        torch.manual_seed(0)
        self.ids, self.there, self.written = nano.sample(policy, tokenizer, self.tasks, G)
        self.rewards = torch.rand(P, G).round(decimals=1).double()
        self.rewards[1], self.rewards[2, 3] = 0.0, torch.nan

    def update(self, nano: Any, policy: Any, old: Any, reference: Any = None) -> torch.Tensor:
        """Return the script's loss, as its loop computes it; its gradient goes to the policy."""
        advantages = nano.advantages_of(self.rewards).flatten()
        scored = ~self.rewards.flatten().isnan()
        kept = scored if nano.BETA else advantages != 0
        ids, there = self.ids[kept], self.there[kept]
        with torch.no_grad():
            before = nano.logprobs_of(old, ids, there)
            known = nano.logprobs_of(reference, ids, there) if reference else None
        loss: torch.Tensor = nano.loss_of(
            nano.logprobs_of(policy, ids, there),
            before,
            advantages[kept],
            self.written[kept, 1:],
            int(scored.sum()),
            known,
        )
        loss.backward()
        return loss.detach()

    def tokens(self, i: int) -> tuple[tuple[int, ...], tuple[int, ...]]:
        """Prompt and reply of a row."""
        prompt = self.ids[i][self.there[i] & ~self.written[i]].tolist()
        return tuple(prompt), tuple(self.ids[i][self.written[i]].tolist())


def moved(model: Any, amount: float, seed: int) -> Any:
    """Another policy, so that ratios leave 1 and some are clipped."""
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter += amount * torch.randn(parameter.shape, generator=generator)
    return model


def gradient(model: Any) -> torch.Tensor:
    return torch.cat([p.grad.flatten() for p in model.parameters()])


@pytest.mark.parametrize("beta", [0.0, 0.1])
def test_loss_and_gradient_are_those_of_the_learners_parts(
    beta: float, nano: Any, policy: Any, model_dir: Path, tokenizer: Any, monkeypatch: Any
) -> None:
    """After updates, so that the ratio and its clip have a part in it."""
    monkeypatch.setattr(nano, "BETA", beta)
    old = load_model(model_dir, dtype="float64")[0]
    reference = moved(load_model(model_dir, dtype="float64")[0], 0.05, 1) if beta else None
    rolled = Rolled(nano, old, tokenizer)
    loss = rolled.update(nano, moved(policy, 0.05, 0), old, reference)
    found = gradient(policy)

    config = GRPOConfig(loss="grpo", beta=beta, max_new_tokens=nano.MAX_NEW_TOKENS)
    advantages = group_advantages(rolled.rewards).flatten().tolist()
    rows = []
    for i in range(P * G):
        prompt, reply = rolled.tokens(i)
        n, scored = len(reply), not bool(rolled.rewards.flatten()[i].isnan())
        rows.append(Row(prompt, reply, (scored,) * n, (0.0,) * n, (advantages[i],) * n))
    batch = Batch.of([rows[G * p : G * p + G] for p in range(P)])
    with torch.no_grad():
        before, known = (
            full_forward(m, batch, nano.TEMPERATURE)[0].flatten(0, 1)
            for m in (old, reference or old)
        )
    policy.zero_grad()
    logprobs = full_forward(policy, batch, nano.TEMPERATURE)[0].flatten(0, 1)
    lengths = torch.tensor([row.length for row in rows if row.length])
    wanted = policy_loss(
        logprobs,
        before,
        batch.advantages.flatten(0, 1).double(),
        batch.mask.flatten(0, 1),
        config,
        denominator=loss_denominator(lengths, average="grpo", max_tokens=nano.MAX_NEW_TOKENS),
        reference_logprobs=known if beta else None,
    )
    wanted.backward()
    ratio = (logprobs - before).exp()[batch.mask.flatten(0, 1)]
    assert ((ratio - 1).abs() > nano.CLIP).any()
    assert float(loss) == pytest.approx(float(wanted.detach()), rel=1e-6)
    assert float((found - gradient(policy)).norm() / gradient(policy).norm()) < 1e-6


def test_a_step_of_the_learner_has_the_same_loss_and_gradient(
    nano: Any, policy: Any, tokenizer: Any, tmp_path: Path
) -> None:
    """Through the learner's own loop, on the script's rollout."""
    rolled = Rolled(nano, policy, tokenizer)
    loss = rolled.update(nano, policy, policy)
    norm = gradient(policy).norm()
    policy.zero_grad()
    with torch.no_grad():
        logprobs = nano.logprobs_of(policy, rolled.ids, rolled.there)

    def episode(i: int) -> Episode:
        reward = float(rolled.rewards.flatten()[i])
        verdict = Verdict.fault(Status.VERIFIER_ERROR, "away")
        if reward == reward:
            verdict = Verdict(Status.INCORRECT, reward, "")
        prompt, reply = rolled.tokens(i)
        sampled = tuple(logprobs[i][rolled.written[i, 1:]].tolist())
        said = ({"role": "assistant", "content": tokenizer.decode(reply)},)
        spans = (Span("environment", prompt), Span("model", reply, sampled))
        return Episode(rolled.tasks[i // G].id, said, verdict, spans=spans)

    def rollout(policy: Any, step: int) -> list[EpisodeGroup]:
        return [
            EpisodeGroup(task, tuple(episode(G * p + g) for g in range(G)))
            for p, task in enumerate(rolled.tasks)
        ]

    config = GRPOConfig(
        loss="grpo",
        steps=1,
        prompts_per_step=P,
        group_size=G,
        max_new_tokens=nano.MAX_NEW_TOKENS,
        warmup_steps=1,
        max_mismatch=1e-6,
    )
    Learner(policy, tokenizer, rollout, config, tmp_path, progress=False).train()
    row = read_metrics(tmp_path / "metrics.jsonl")[-1]
    assert row["grad_norm"] == pytest.approx(float(norm), rel=1e-6)
    assert row["loss"] == pytest.approx(float(loss), abs=1e-6)  # 0 before an update


def test_it_is_short() -> None:
    assert len(SCRIPT.read_text().splitlines()) <= 250
