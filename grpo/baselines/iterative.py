"""Iterative GRPO: rounds of training by a reward model that then learns from the policy's replies.

A round is a directory ``round-N`` that is whole or not there: ``policy/`` and ``reward_model/``
as the round left them, ``labels.jsonl``, ``round.json``, and ``run/`` with what the learner wrote.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from ...envs import TextEnv, rejudged, rollout
from ...verifiers.atomic_io import sweep, write_directory
from ..config import GRPOConfig
from ..learner import Learner
from ..model.loading import load_weights, save_weights
from ..run.resume import require_same
from ..run.tasks import training_tasks
from ..sampling.policy import ModelPolicy
from ..sampling.random_numbers import derive_seed
from .fit import FitConfig
from .reward_model import Label, TrainableRewardModel, labels_of

_REPORT, _LABELS = "round.json", "labels.jsonl"


@dataclass(frozen=True, slots=True)
class Round:
    """What came of a round.

    Attributes:
        number: from 1.
        judged_by: version of the reward model that the policy was trained by.
        labels: replies that were labelled at its end.
        true: their mean label: what the policy is worth; ``None`` without labels.
        proxy: the mean score that the reward model gave to those same replies, before it learnt
            from them.
    """

    number: int
    judged_by: int
    labels: int
    true: float | None
    proxy: float | None


def iterative_grpo(
    model: Any,
    tokenizer: Any,
    env: TextEnv,
    scorer: TrainableRewardModel,
    config: GRPOConfig,
    out_dir: str | Path,
    *,
    rounds: int,
    labels: int = 200,
    replay: float = 0.1,
    fit: FitConfig | None = None,
    history: Sequence[Label] = (),
    on_step: Callable[[int, dict[str, Any]], None] | None = None,
    on_round: Callable[[Round], None] | None = None,
    progress: bool = False,
) -> list[Round]:
    """Train in rounds, and the reward model after each (DeepSeekMath, arXiv 2402.03300, 4.1.4).

    A round takes the policy as it is for its reference, trains it for ``config.steps`` steps by
    the reward model's scores, then has ``labels`` of its replies judged by the environment's own
    rubric, and goes on training the reward model with them and some older labels. The learner of a
    round is new, its optimizer and warm-up with it.

    Started again with the same arguments, it goes on after the last whole round, and within a
    round from the learner's last checkpoint.

    Args:
        model: trained in place.
        tokenizer: the model's.
        env: of the tasks, in one turn. Its rubric gives the labels, and no other reward.
        scorer: the reward model to begin with.
        config: of a round; each draws tasks and samples by a seed of its own.
        out_dir: for the rounds.
        rounds: how many.
        labels: replies that are labelled after a round, one to each of so many tasks; 0 keeps the
            reward model as it is.
        replay: see :func:`~assay.grpo.replayed`.
        fit: of the reward model's training; see :meth:`TrainableRewardModel.fit`.
        history: labels that the first reward model has learnt from.
        on_step: called with the round and each row of metrics; the model is as that step left it.
        on_round: called with each round, also with those of an earlier start.
        progress: show a progress bar for each round.

    Returns:
        All rounds.

    Raises:
        CheckpointError: ``out_dir`` holds rounds of other settings.
        ValueError: ``rounds`` is below 1 or ``labels`` below 0; or several processes train
            together, who would all label and fit.
    """
    if os.environ.get("WORLD_SIZE", "1") != "1":
        raise ValueError("iterative_grpo trains in one process: start it without torchrun")
    if rounds < 1 or labels < 0:
        raise ValueError(
            f"rounds must be at least 1 and labels at least 0, got {rounds} and {labels}"
        )
    root, fit = Path(out_dir), fit or FitConfig(learning_rate=2e-5)
    sweep(root)
    settings = {
        **config.to_json(),
        "labels": labels,
        "replay": replay,
        "fit": fit.to_json() if labels else None,
    }
    rest = model, tokenizer, env, root, settings
    rows = _Rounds(*rest, config, labels, replay, fit)
    pool, found = list(history), []
    for number in range(1, rounds + 1):
        if not (root / f"round-{number}").exists():
            rows.play(number, scorer, pool, on_step, progress)
        done, scorer, given = rows.read(number, scorer)
        pool += given
        found.append(done)
        if on_round is not None:
            on_round(done)
    return found


@dataclass(frozen=True, slots=True)
class _Rounds:
    """What all rounds have in common, and how one is played, written and read."""

    model: Any
    tokenizer: Any
    env: TextEnv
    root: Path
    settings: dict[str, Any]
    config: GRPOConfig
    labels: int
    replay: float
    fit: FitConfig

    def play(
        self,
        number: int,
        scorer: TrainableRewardModel,
        pool: Sequence[Label],
        on_step: Callable[[int, dict[str, Any]], None] | None,
        progress: bool,
    ) -> None:
        """Train, label, fit, and write all of it."""
        config = replace(self.config, seed=derive_seed(self.config.seed, number))
        running = self.root / f"running-{number}"
        Learner(
            self.model,
            self.tokenizer,
            training_tasks(rejudged(self.env, scorer), config),
            config,
            running,
            resume=(running / "config.json").exists(),
            progress=progress,
            on_step=None if on_step is None else partial(on_step, number),
        ).train()
        new = self._label(derive_seed(config.seed, 1)) if self.labels else []
        report = {**asdict(_summary(number, scorer, new)), "settings": self.settings}

        def fill(to: Path) -> None:
            save_weights(self.model, to / "policy")
            self.tokenizer.save_pretrained(to / "policy")
            if new:
                given = to / "reward_model"
                scorer.fit(new, pool, folder=given, replay=self.replay, config=self.fit)
            lines = [json.dumps(label.to_json()) + "\n" for label in new]
            (to / _LABELS).write_text("".join(lines), encoding="utf-8")
            (to / _REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            shutil.copytree(running, to / "run", ignore=shutil.ignore_patterns("checkpoints"))

        write_directory(self.root / f"round-{number}", fill)
        shutil.rmtree(running)

    def read(
        self, number: int, scorer: TrainableRewardModel
    ) -> tuple[Round, TrainableRewardModel, list[Label]]:
        """A whole round, whose policy becomes the model: its reward model and its labels."""
        folder = self.root / f"round-{number}"
        report = json.loads((folder / _REPORT).read_text("utf-8"))
        require_same(self.settings, report.pop("settings"), folder)
        load_weights(self.model, folder / "policy")
        lines = (folder / _LABELS).read_text("utf-8").splitlines()
        given = [Label.from_json(json.loads(line)) for line in lines]
        if given:
            scorer = scorer.at(folder / "reward_model")
        return Round(**report), scorer, given

    def _label(self, seed: int) -> list[Label]:
        policy = ModelPolicy(
            self.model,
            self.tokenizer,
            max_new_tokens=self.config.max_new_tokens,
            temperature=self.config.temperature,
            seed=seed,
        )
        return labels_of(rollout(self.env, policy, self.labels, 1, seed=seed))


def _summary(number: int, scorer: TrainableRewardModel, new: Sequence[Label]) -> Round:
    if not new:
        return Round(number, scorer.version, 0, None, None)
    verdicts = scorer.verify_many(
        [label.reply for label in new], [{"messages": list(label.messages)} for label in new]
    )
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    return Round(
        number,
        scorer.version,
        len(new),
        sum(label.score for label in new) / len(new),
        sum(scores) / len(scores) if scores else None,
    )
