"""What several studies share: sums in characters, and a tiny model that is right now and then."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from statistics import fmean
from typing import Any

from assay import make
from assay.envs import TextEnv
from assay.family._training import learn
from assay.family.trainers import warm_start
from assay.grpo import (
    GRPOConfig,
    ModelPolicy,
    evaluate,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Outcome, Trial

LONGEST = 6  # tokens of a reply
HELD_OUT = 500  # sums that pass@1 is taken of
SUMS = (
    "Sums of two numbers below 100, in characters; a model of 0.4 million parameters, warm-started "
    "on 2,000 worked sums until 3 of 10 sampled replies are right"
)


def sums(split: str) -> TextEnv:
    """Make tasks: sums of two numbers below 100, with a binary reward."""
    return make("assay/Arithmetic-v1", split=split)


def start(trial: Trial) -> None:
    """Warm a model up on 2,000 worked sums until 3 of 10 sampled replies are right."""
    model, tokenizer = load_model(tiny_model(trial.start, seed=trial.seed))
    warm(trial, model, tokenizer, count=2000, target=0.3, max_steps=1000, check_every=20)
    model.save_pretrained(trial.start)


def warm(
    trial: Trial,
    model: Any,
    tokenizer: Any,
    *,
    count: int,
    target: float,
    max_steps: int,
    check_every: int,
) -> None:
    """Train on ``count`` worked sums by :func:`~.trainers.warm_start`; a short trial: 30 steps."""
    train = sums("train")
    warm_start(
        model,
        tokenizer,
        [train.task(i) for i in range(count)],
        held_out_tasks(sums("test"), 50 if trial.short else 400),
        target=0.0 if trial.short else target,
        max_steps=30 if trial.short else max_steps,
        check_every=30 if trial.short else check_every,
        max_new_tokens=LONGEST,
        seed=trial.seed,
    )


def pass_at_1(model: Any, tokenizer: Any, trial: Trial) -> float:
    """Share of sampled replies to held-out sums that are right; the same sums every time."""
    policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=trial.seed)
    count = 50 if trial.short else HELD_OUT
    return evaluate(policy, held_out_tasks(sums("test"), count)).pass_at_1


def trained(
    trial: Trial,
    config: GRPOConfig,
    watched: Sequence[str] = ("zero_variance",),
    *,
    kind: Callable[..., Any] | None = None,
    looks: int = 10,
) -> Outcome:
    """Train from the seed's start.

    Args:
        trial: with the start that :func:`start` made.
        config: the settings.
        watched: numbers of the log that become curves, at each step.
        kind: the learner; GRPO's without it.
        looks: how often pass@1 is taken.

    Returns:
        ``pass@1`` of sampled replies to held-out sums, of which the last is its value,
        and the means of what was watched.
    """

    def measure(policy: ModelPolicy) -> dict[str, float]:
        return {"pass@1": pass_at_1(policy.model, policy.tokenizer, trial)}

    tasks = training_tasks(sums("train"), config)
    found = learn(trial, tasks, config, measure, watched, looks=looks, kind=kind)
    means = {n: fmean(y for _, y in found.curves[n]) for n in watched if n in found.curves}
    return Outcome({**found.values, **means}, found.curves)
