"""Iterative GRPO: rounds of training by a reward model that then learns from the policy's replies.

A round is a directory ``round-N`` that is whole or not there: ``policy/`` and ``reward_model/``
as the round left them, ``labels.jsonl``, ``round.json``, and ``run/`` with what the learner wrote.
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from assay.envs import TextEnv, rejudged, rollout
from assay.grpo import (
    CheckpointError,
    GRPOConfig,
    Learner,
    ModelPolicy,
    begun,
    derive_seed,
    load_model,
    training_tasks,
)
from assay.verifiers.atomic_io import sweep, write_directory

from .fit import FitConfig
from .reward_model import Label, TrainableRewardModel, labels_of

_REPORT, _LABELS = "round.json", "labels.jsonl"


@dataclass(frozen=True, slots=True)
class Round:
    """The result of a round.

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
        replay: see :func:`~.reward_model.replayed`.
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
        "fit": asdict(fit) if labels else None,
    }
    pool, found = list(history), list[Round]()

    def play(number: int, scorer: TrainableRewardModel, folder: Path) -> None:
        """Train, label, fit, and write all of it."""
        running = root / f"running-{number}"
        own = replace(config, seed=derive_seed(config.seed, number))
        Learner(
            model,
            tokenizer,
            training_tasks(rejudged(env, scorer), own),
            own,
            running,
            resume=begun(running),
            progress=progress,
            on_step=None if on_step is None else partial(on_step, number),
        ).train()
        policy = ModelPolicy(
            model,
            tokenizer,
            max_new_tokens=own.max_new_tokens,
            temperature=own.temperature,
            seed=derive_seed(own.seed, 1),
        )
        asked = rollout(env, policy, labels, 1, seed=derive_seed(own.seed, 1)) if labels else []
        new = labels_of(asked)
        report = {**asdict(_summary(number, scorer, new)), "settings": settings}

        def fill(to: Path) -> None:
            for part in (model, tokenizer):
                part.save_pretrained(to / "policy")
            if new:
                judge = to / "reward_model"
                scorer.fit(new, pool, folder=judge, replay=replay, config=fit)
            lines = [json.dumps(label.to_json()) + "\n" for label in new]
            (to / _LABELS).write_text("".join(lines), encoding="utf-8")
            (to / _REPORT).write_text(json.dumps(report, indent=2) + "\n", encoding="utf-8")
            shutil.copytree(running, to / "run", ignore=shutil.ignore_patterns("checkpoints"))

        write_directory(folder, fill)
        shutil.rmtree(running)

    for number in range(1, rounds + 1):
        folder = root / f"round-{number}"
        if not folder.exists():
            play(number, scorer, folder)
        done, given = _read(folder, settings)
        model.load_state_dict(load_model(folder / "policy")[0].state_dict())
        scorer = scorer.at(folder / "reward_model") if given else scorer
        pool += given
        found.append(done)
        if on_round is not None:
            on_round(done)
    return found


def _read(folder: Path, settings: Mapping[str, Any]) -> tuple[Round, list[Label]]:
    """Return a whole round and its labels."""
    report = json.loads((folder / _REPORT).read_text("utf-8"))
    before = report.pop("settings")
    if before != settings:
        changed = {name: value for name, value in before.items() if settings.get(name) != value}
        raise CheckpointError(
            f"{str(folder)!r} was made with other settings: {changed}. Go on with those, or give "
            "another out_dir"
        )
    lines = (folder / _LABELS).read_text("utf-8").splitlines()
    return Round(**report), [Label.from_json(json.loads(line)) for line in lines]


def _summary(number: int, scorer: TrainableRewardModel, new: Sequence[Label]) -> Round:
    if not new:
        return Round(number, scorer.version, 0, None, None)
    verdicts = scorer.verify_many(
        [label.reply for label in new], [{"messages": list(label.messages)} for label in new]
    )
    scores = [verdict.score for verdict in verdicts if verdict.score is not None]
    true = sum(label.score for label in new) / len(new)
    proxy = sum(scores) / len(scores) if scores else None
    return Round(number, scorer.version, len(new), true, proxy)
