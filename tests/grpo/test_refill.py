"""Dynamic sampling under the learner: full batches, logged, and the same bits after a resume."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from assay.envs import Refill
from assay.grpo import GRPOConfig, Learner, load_model, read_metrics

torch.set_num_threads(1)


def test_a_run_with_refills_resumes_to_the_same_bits(
    model_dir: Path, digits: Any, tmp_path: Path
) -> None:
    def run(out: Path, steps: int, *, resume: bool = False) -> torch.Tensor:
        model, tokenizer = load_model(model_dir)
        settings = GRPOConfig(
            steps=steps,
            prompts_per_step=4,
            group_size=4,
            max_new_tokens=2,
            learning_rate=3e-3,
            warmup_steps=2,
        )
        rollout = Refill(digits(4), 4, attempts=8)
        Learner(model, tokenizer, rollout, settings, out, resume=resume).train()
        return torch.cat([p.detach().flatten() for p in model.parameters()])

    straight = run(tmp_path / "straight", 4)
    run(tmp_path / "halves", 2)
    assert torch.equal(run(tmp_path / "halves", 4, resume=True), straight)
    rows = [read_metrics(tmp_path / name / "metrics.jsonl")[1:] for name in ("straight", "halves")]
    asked = [[row["groups/attempts"] for row in found] for found in rows]
    assert asked[0] == asked[1]
    assert max(asked[0]) > 1
    for row in rows[0]:
        dropped = row["groups/all_correct"] + row["groups/all_wrong"] + row["groups/unscored"]
        assert row["groups/generated"] == 4 * row["groups/attempts"]
        assert row["groups/generated"] == row["groups/kept"] + dropped + row["groups/surplus"]
        assert row["zero_variance"] == 0.0
    played, kept = (sum(row[n] for row in rows[0]) for n in ("accuracy/played", "accuracy"))
    assert played < kept
