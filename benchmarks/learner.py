"""Seconds of a training step: ours and TRL's GRPOTrainer in turn, in one run, and their ratio.

The same model, prompts, G, lengths, loss (token mean, clip 0.2, no KL), AdamW and reward on both
sides. Replies have a fixed length: no token ends them. Each side is timed in process CPU seconds
on one thread, which another load on the machine hardly changes, and each runs several times, in
turn; the ratio of the medians is printed.

    python benchmarks/learner.py [--rounds 3] [--steps 3]
"""

from __future__ import annotations

import argparse
import random
import statistics
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import LlamaConfig, LlamaForCausalLM, TrainerCallback
from trl import GRPOConfig as TRLConfig
from trl import GRPOTrainer

from assay.envs import Episode, EpisodeGroup, Policy, Span, Task
from assay.grpo import GRPOConfig, Learner, character_tokenizer, load_model
from assay.verifiers import Verdict

PROMPTS, GROUP, REPLY = 8, 8, 64
SHAPES = {"prompt 64 + reply 64": 64, "prompt 256 + reply 64": 256}


def make_model(directory: Path) -> Path:
    """A Llama of 0.8 million parameters in which nothing ends a reply."""
    tokenizer = character_tokenizer()
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=128,
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        intermediate_size=384,
        max_position_embeddings=512,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    model.save_pretrained(directory)
    tokenizer.save_pretrained(directory)
    return directory


def prompts(length: int, count: int) -> list[str]:
    """Different prompts of the same length, in characters and so in tokens."""
    source = random.Random(0)  # noqa: S311 - no secret
    return ["".join(source.choices("0123456789+=", k=length)) for _ in range(count)]


def score(text: str) -> float:
    """Cheap, and different from reply to reply, so that every group has variance."""
    return len(set(text)) / 100


def ours(directory: Path, texts: Sequence[str], steps: int, out: Path) -> float:
    """CPU seconds of a step, the first left out."""
    model, tokenizer = load_model(directory)
    model.generation_config.eos_token_id = None
    marks: list[float] = []

    def rollout(policy: Policy, step: int) -> list[EpisodeGroup]:
        policy.eos_ids = ()  # type: ignore[attr-defined]  # nothing ends a reply, as for TRL
        tasks = [Task(t, "", id=t) for t in texts]
        replies = iter(policy([t.messages for t in tasks for _ in range(GROUP)]))
        groups = []
        for task in tasks:
            episodes = []
            for _ in range(GROUP):
                reply = next(replies)
                spans = (
                    Span("environment", reply.prompt_ids),
                    Span("model", reply.ids, reply.logprobs),
                )
                verdict = Verdict.wrong("", score=score(reply.text))
                episodes.append(Episode(task.id, (), verdict, spans=spans))
            groups.append(EpisodeGroup(task, tuple(episodes)))
        return groups

    config = GRPOConfig(
        steps=steps + 1,
        prompts_per_step=PROMPTS,
        group_size=GROUP,
        max_new_tokens=REPLY,
        advantage_std="sample",
        tokens_per_batch=1 << 20,
    )
    Learner(
        model,
        tokenizer,
        rollout,
        config,
        out,
        progress=False,
        on_step=lambda row: marks.append(time.process_time()),
    ).train()
    return (marks[-1] - marks[1]) / steps


def trl(directory: Path, texts: Sequence[str], steps: int, out: Path) -> float:
    """The same for TRL, tuned for the machine: float32, no checkpointing, one micro-batch."""
    marks: list[float] = []

    class Clock(TrainerCallback):
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            marks.append(time.process_time())

    def reward(completions: list[Any], **kwargs: Any) -> list[float]:
        return [score(c if isinstance(c, str) else c[0]["content"]) for c in completions]

    config = TRLConfig(
        output_dir=str(out),
        per_device_train_batch_size=PROMPTS * GROUP,
        num_generations=GROUP,
        max_completion_length=REPLY,
        max_steps=steps + 1,
        learning_rate=3e-4,
        beta=0.0,
        loss_type="dapo",
        bf16=False,
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=True,
        dataloader_pin_memory=False,
        generation_kwargs={"min_new_tokens": REPLY},
    )
    model, tokenizer = load_model(directory)
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": list(texts)}),
        callbacks=[Clock()],
    )
    trainer.train()
    return (marks[-1] - marks[0]) / steps


def main() -> None:
    """Run both in turn, and print medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=3)
    given = arguments.parse_args()
    torch.set_num_threads(1)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        directory = make_model(root / "model")
        for name, length in SHAPES.items():
            texts = prompts(length, PROMPTS)
            found: dict[str, list[float]] = {"assay": [], "TRL": []}
            for i in range(given.rounds):
                for side, run in (("assay", ours), ("TRL", trl)):
                    out = root / f"{side}-{length}-{i}"
                    found[side].append(run(directory, texts, given.steps, out))
            a, b = (statistics.median(found[side]) for side in ("assay", "TRL"))
            print(f"{name}: assay {a:.2f} s, TRL {b:.2f} s of CPU a step; TRL / assay {b / a:.2f}")


if __name__ == "__main__":
    main()
