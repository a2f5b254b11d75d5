"""Programs train with the real TRL: on the ids that the model sampled for them, and no others."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("fastapi")
torch = pytest.importorskip("torch")
trl = pytest.importorskip("trl")

from assay.envs import Generated, Task, TextEnv, TRLSpec, register
from assay.gateway import AgentEnv, EngineError, SampleRequest
from assay.gateway.trl_rollout import AgentRollout, _engine, _GenerationEngine
from assay.grpo import load_model
from assay.verifiers import FunctionVerifier, Status

pytestmark = [pytest.mark.slow, pytest.mark.filterwarnings("ignore")]

PROGRAM = """
asked = {"temperature": 0.1, "max_tokens": 3}
messages = [{"role": "user", "content": sys.stdin.read()}]
if messages[0]["content"] == "3+1=":
    sys.exit("it never asks")
messages += [ask(messages, **asked), {"role": "user", "content": "on"}]
ask(messages, **asked)
if messages[0]["content"] == "2+1=":
    ask([{"role": "user", "content": "another"}], **asked)
"""


FIELDS = ("prompt_ids", "completion_ids", "env_mask", "logprobs", "assay_episode")


class Digits(TextEnv):
    """The share of digits in the last reply."""

    def __init__(self, split: str = "train") -> None:
        source = Generated(lambda rng: Task(f"{rng.integers(4)}+1=", ""), name="Digits")
        source.in_split = lambda prompt: True
        source.split = split
        share = FunctionVerifier(lambda said, _: sum(c.isdigit() for c in said) / max(1, len(said)))
        super().__init__(source, share)


register("test-gateway/Digits-v0", Digits)


@pytest.fixture
def make(model_dir: Path, written, tmp_path: Path):
    """Make a trainer whose episodes a program plays."""
    program = [sys.executable, str(written(PROGRAM))]
    agent = AgentEnv(Digits(), program, unsafe=True, at_once=8)

    def trainer(**settings: Any) -> Any:
        model, tokenizer = load_model(model_dir)
        given = {
            "output_dir": str(tmp_path / "run"),
            "use_cpu": True,
            "bf16": False,
            "max_steps": 1,
        }
        given |= {"per_device_train_batch_size": 16, "num_generations": 8, "logging_steps": 1}
        given |= {"max_completion_length": 24, "learning_rate": 0.02, "save_strategy": "no"}
        given |= {"report_to": [], "disable_tqdm": True, "beta": 0.0, "loss_type": "grpo"}
        given |= {"lr_scheduler_type": "constant", "gradient_checkpointing": True}
        spec = TRLSpec("test-gateway/Digits-v0", size=64, mode="turns").kwargs()
        spec["rollout_func"] = AgentRollout(agent)
        config = trl.GRPOConfig(**{**given, **settings})
        return trl.GRPOTrainer(model, args=config, processing_class=tokenizer, **spec)

    return trainer


def test_trl_trains_on_what_was_sampled_and_on_nothing_else(make, model_dir) -> None:
    """Ids, log-probabilities and the gradient, against the model's own."""
    trainer = make(num_iterations=1)
    frozen, _ = load_model(model_dir)
    outputs, hidden = [], []
    roll = trainer.rollout_func

    def watched(prompts, trainer) -> Any:
        outputs.append(roll(prompts, trainer))
        return outputs[-1]

    def keep(module, given, out) -> None:
        if out.requires_grad:
            out.retain_grad()
            hidden.append(out)

    trainer.rollout_func = watched
    trainer.model.model.norm.register_forward_hook(keep)
    trainer.train()
    (output,) = outputs
    rows = list(zip(*(output[k] for k in FIELDS), strict=True))
    assert len(rows) == 16
    for prompt, ids, mask, logprobs, episode in rows:
        assert len(ids) == len(mask) == len(logprobs) <= 24
        if episode.reward is None:
            assert episode.status is Status.VERIFIER_ERROR
            assert mask == [0]
            continue
        assert 0 < sum(mask) <= len(mask)
        logits = frozen(torch.tensor([[*prompt, *ids]])).logits[0, len(prompt) - 1 : -1].detach()
        own = logits.log_softmax(-1)[torch.arange(len(ids)), torch.tensor(ids)]
        kept = torch.tensor(mask).bool()
        assert (own - torch.tensor(logprobs))[kept].abs().max() < 1e-5
    longest = max(len(row[1]) for row in rows)
    (out,) = [h for h in hidden if h.grad is not None][:1]
    moved = out.grad[:, -longest - 1 : -1].abs().sum(-1) > 0
    masks = sorted([*mask, *[0] * (longest - len(mask))] for _, _, mask, _, _ in rows)
    for row in moved.int().tolist():  # rows are shuffled: each is within one of the masks
        assert any(all(m >= r for m, r in zip(mask, row, strict=True)) for mask in masks)
    assert moved.any()


def test_a_model_learns_behind_a_program(make) -> None:
    trainer = make(max_steps=6, learning_rate=0.05)
    trainer.train()
    rewards = [log["reward"] for log in trainer.state.log_history if "reward" in log]
    assert sum(rewards[-2:]) / 2 > sum(rewards[:2]) / 2 + 0.2, rewards


def test_the_trainers_own_generation_samples_token_for_token(make, monkeypatch) -> None:
    """As vLLM's, which gives log-probabilities; that of transformers gives none."""
    trainer = make()
    trainer.model.eval()
    plain = _engine(trainer)
    engine = _GenerationEngine(trainer, plain.model, plain.tokenizer)
    request = SampleRequest((5, 6, 7), 2)
    with pytest.raises(EngineError, match="no log-probabilities"):
        asyncio.run(engine.sample(request))
    generate, sampled = trainer._generate_single_turn, []

    def with_logprobs(prompts, *rest):
        ids, _ = generate(prompts, *rest)
        sampled.append(ids[0])
        return ids, [[-float(i) for i in range(len(row))] for row in ids]

    monkeypatch.setattr(trainer, "_generate_single_turn", with_logprobs)
    found = asyncio.run(engine.sample(request))
    assert list(found.ids) == list(sampled[0][:2])
    assert list(found.logprobs) == [0.0, -1.0][: len(found.ids)]
    for made in (plain, engine):
        asyncio.run(made.close())


def test_what_is_not_ours_to_sample_is_refused(make) -> None:
    trainer = make(top_k=5)
    with pytest.raises(ValueError, match="leave top_k at 0"):
        trainer.train()
