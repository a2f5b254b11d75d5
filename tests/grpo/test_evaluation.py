"""Evaluation, log and picture."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import EpisodeGroup, Task
from assay.envs.group_summary import Score
from assay.grpo import ModelPolicy, evaluate, read_metrics
from assay.grpo.log import MetricsLog
from assay.run_report.plot import plot_learning_curve

torch.set_num_threads(1)


def test_evaluation_leaves_out_what_has_no_reward(model: Any, tokenizer: Any, digits: Any) -> None:
    rollout = digits(3, 4, none=(0,))
    score = evaluate(ModelPolicy(model, tokenizer, max_new_tokens=1), rollout)
    earned = [r for g in rollout.groups for r in g.rewards if r is not None]
    assert (score.scored, score.masked) == (9, 3)
    assert score.reward == score.pass_at_1 == sum(earned) / 9
    nothing = Score.of([EpisodeGroup(Task("?", ""))])
    assert nothing.pass_at_1 != nothing.pass_at_1  # NaN


def test_metrics_are_whole_lines(tmp_path: Path) -> None:
    with MetricsLog(tmp_path) as log:
        log.write({"step": 1, "reward": 0.5, "loss": float("nan")})
        assert read_metrics(log.path) == [{"step": 1, "reward": 0.5, "loss": None}]
        log.write({"step": 2, "alarm": "text"})
    with log.path.open("a") as file:
        file.write('{"step": 3, "rew')
    assert [row["step"] for row in read_metrics(log.path)] == [1, 2]
    with MetricsLog(tmp_path, resume_step=1) as log:
        log.write({"step": 2})
    assert [row["step"] for row in read_metrics(log.path)] == [1, 2]
    assert list((tmp_path / "tensorboard").iterdir())


def test_picture(tmp_path: Path) -> None:
    with MetricsLog(tmp_path, trackers=()) as log:
        for step in range(30):
            row = {"step": step, "reward": step / 30, "zero_variance": 0.2}
            log.write(row if step % 10 else {**row, "held_out/pass_at_1": step / 40})
    png = plot_learning_curve(log.path, tmp_path / "new" / "curve.png")
    assert png.read_bytes()[:8] == b"\x89PNG\r\n\x1a\n"
    (tmp_path / "empty.jsonl").write_text("")
    with pytest.raises(ValueError, match="no rows to draw"):
        plot_learning_curve(tmp_path / "empty.jsonl", png)
