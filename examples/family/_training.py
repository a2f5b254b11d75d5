"""What the studies of language models share: GRPO with looks at held-out numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from assay.grpo import GRPOConfig, Learner, ModelPolicy, load_model
from assay.study import Outcome, Trial, watched


def learn(
    trial: Trial,
    tasks: Any,
    config: GRPOConfig,
    measure: Callable[[ModelPolicy], Mapping[str, float]],
    logged: Sequence[str] = (),
    *,
    looks: int = 10,
    kind: Callable[..., Any] | None = None,
    name: str = "",
) -> Outcome:
    """Train from the seed's start, and return the curve of each number, with its last value.

    Args:
        trial: with the start.
        tasks: of a training step.
        config: the settings.
        measure: held-out numbers of the policy; it samples with the trial's seed at each look.
        logged: see :func:`assay.study.watched`.
        looks: how often to measure.
        kind: the learner; GRPO's without it.
        name: of the model among those of the start.
    """
    model, tokenizer = load_model(trial.start / name)

    def look() -> Mapping[str, float]:
        size, seed = config.max_new_tokens, trial.seed
        return measure(ModelPolicy(model, tokenizer, max_new_tokens=size, seed=seed))

    curves, note = watched(config.steps, look, logged, looks=looks)
    kind = kind or partial(Learner, progress=False)
    kind(model, tokenizer, tasks, config, trial.folder / (name or "run"), on_step=note).train()
    return Outcome({key: points[-1][1] for key, points in curves.items()}, curves)
