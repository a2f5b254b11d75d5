"""DeepSeek-R1: its four stages as one pipeline that can be killed and resumed."""

import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

from assay.envs import EpisodeGroup, Policy, play
from assay.family._two_languages import (
    TASKS,
    InDigits,
    InFormat,
    Preferred,
    Result,
    environment,
    reply,
)
from assay.family._worked import THINK, mean_rewards
from assay.family.trainers import FitConfig, Stage, accepted_replies, run_stages, sft
from assay.family_cli import run_script
from assay.grpo import (
    PRESETS,
    GRPOConfig,
    Learner,
    ModelPolicy,
    begun,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Claim, Outcome, Results, Study, Trial
from assay.study.picture import draw_curve
from assay.verifiers import Rubric
from assay.verifiers.atomic_io import write_text

LONGEST = 32  # tokens of a reply
REPLIES = 4  # to each held-out task
Folders = Mapping[str, Path]


# -- the stages ------------------------------------------------------------------------------------


def base(
    folder: Path, before: Folders, *, steps: int, seed: int, held_out: int
) -> dict[str, float]:
    """Stage 0: a model that has read both kinds of tasks, in either language and any form."""
    model, tokenizer = load_model(tiny_model(folder / "model", words=THINK, seed=seed))
    read = {kind: environment(kind, judged(), "train") for kind in TASKS}
    kinds = ["sums", "sums", "sums", "mirror"]
    texts = [read[kinds[i % 4]].task(i) for i in range(3000)]
    fitted(model, tokenizer, texts, folder, steps=steps, learning_rate=1e-3, seed=seed)
    return finished(model, tokenizer, folder, seed, held_out)


def cold_start(
    folder: Path, before: Folders, *, examples: int, steps: int, seed: int, held_out: int
) -> dict[str, float]:
    """Stage 1: a few worked sums in the format, and in one language."""
    model, tokenizer = load_model(before["base"] / "model")
    texts = written("sums", examples, liked=0.0, seed=seed)
    fitted(model, tokenizer, texts, folder, steps=steps, learning_rate=3e-4, seed=seed)
    return finished(model, tokenizer, folder, seed, held_out)


def reasoning(
    folder: Path,
    before: Folders,
    *,
    config: Mapping[str, Any],
    weights: Mapping[str, float],
    held_out: int,
) -> dict[str, float]:
    """Stage 2: GRPO on sums, paid for right results and for the language of thoughts."""
    settings = GRPOConfig(**config)
    model, tokenizer = load_model(list(before.values())[-1] / "model")
    tasks = training_tasks(environment("sums", judged(weights), "train"), settings)
    run = folder / "run"
    Learner(model, tokenizer, tasks, settings, run, resume=begun(run), progress=False).train()
    return finished(model, tokenizer, folder, settings.seed, held_out)


def rejection(
    folder: Path,
    before: Folders,
    *,
    prompts: int,
    samples: int,
    others: int,
    steps: int,
    seed: int,
    held_out: int,
) -> dict[str, float]:
    """Stage 3: the base model again, on stage 2's good replies and on other data."""
    kept = folder / "kept.json"
    if not kept.exists():
        model, tokenizer = load_model(before["reasoning"] / "model")
        policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=seed)
        env = environment("sums", judged({"accuracy": 1.0}), "train")
        groups = play(env, policy, [env.task(i) for i in range(prompts)], samples)
        rows = accepted_replies(in_one_language(groups), limit=4)
        write_text(kept, json.dumps([[row.prompt, row.reply] for row in rows]))
    model, tokenizer = load_model(before["base"] / "model")
    found = [
        (tokenizer.decode(prompt), tokenizer.decode(tokens, skip_special_tokens=True))
        for prompt, tokens in json.loads(kept.read_text(encoding="utf-8"))
    ]
    texts = [*found, *written("mirror", others, liked=0.2, seed=seed)]
    fitted(model, tokenizer, texts, folder, steps=steps, learning_rate=1e-3, seed=seed)
    return {"kept": len(found), **finished(model, tokenizer, folder, seed, held_out)}


def all_scenarios(
    folder: Path,
    before: Folders,
    *,
    config: Mapping[str, Any],
    rule: Mapping[str, float],
    general: Mapping[str, float],
    preferred_from: int,
    held_out: int,
) -> dict[str, float]:
    """Stage 4: GRPO on rules for sums, and at its end also on what people prefer of the others."""
    settings = GRPOConfig(**config)
    half = replace(settings, prompts_per_step=settings.prompts_per_step // 2)
    env = environment("sums", judged(rule), "train")
    alone, beside = training_tasks(env, settings), training_tasks(env, half)
    others = training_tasks(environment("mirror", judged(general), "train"), half)

    def tasks(policy: Policy, step: int) -> Sequence[EpisodeGroup]:
        if step < preferred_from:
            return alone(policy, step)
        return [*beside(policy, step), *others(policy, step)]

    model, tokenizer = load_model(list(before.values())[-1] / "model")
    run = folder / "run"
    Learner(model, tokenizer, tasks, settings, run, resume=begun(run), progress=False).train()
    return finished(model, tokenizer, folder, settings.seed, held_out)


# -- what they are made of -------------------------------------------------------------------------


def judged(weights: Mapping[str, float] | None = None) -> Rubric:
    """Return all four measures; those without a weight are only logged."""
    parts = {
        "accuracy": Result(),
        "language": InDigits(),
        "format": InFormat(),
        "preference": Preferred(),
    }
    chosen = {"accuracy": 1.0} if weights is None else weights
    return Rubric(parts, weights={name: chosen.get(name, 0.0) for name in parts})


def written(kind: str, count: int, *, liked: float, seed: int) -> list[tuple[str, str]]:
    """Make tasks with reference replies: right, in the format, and in one language."""
    env, rng = environment(kind, judged(), "train"), np.random.default_rng(seed)
    tasks = [env.task(10**6 + i) for i in range(count)]
    return [(t.text, reply(rng, kind, t.metadata["digits"], liked=liked)) for t in tasks]


def in_one_language(groups: Sequence[EpisodeGroup]) -> list[EpisodeGroup]:
    """Drop the episodes whose thoughts mix languages."""
    return [
        replace(group, episodes=tuple(e for e in group.episodes if e.rewards["language"] == 1.0))
        for group in groups
    ]


def fitted(
    model: Any,
    tokenizer: Any,
    texts: Sequence[Any],
    folder: Path,
    *,
    steps: int,
    learning_rate: float,
    seed: int,
) -> None:
    """Supervised training that goes on where it was killed."""
    config = FitConfig(
        steps=steps,
        batch_size=96,
        learning_rate=learning_rate,
        warmup_steps=5,
        weight_decay=0.01,
        save_every=25,
        seed=seed,
    )
    run = folder / "run"
    sft(model, tokenizer, texts, config, out_dir=run, resume=begun(run))


def finished(
    model: Any, tokenizer: Any, folder: Path, seed: int, held_out: int
) -> dict[str, float]:
    """Write the stage's model, and measure it on held-out tasks of both kinds."""
    model.save_pretrained(folder / "model")
    tokenizer.save_pretrained(folder / "model")
    found = {}
    for kind in TASKS:
        policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=seed)
        env = environment(kind, judged(), "test")
        tasks = held_out_tasks(env, held_out, group_size=REPLIES)
        found[kind] = mean_rewards(tasks(policy, 0))
    return {
        "consistency": found["sums"]["language"],
        "accuracy": found["sums"]["accuracy"],
        "breadth": found["mirror"]["accuracy"],
        "preference": found["mirror"]["preference"],
    }


# -- the pipeline and its study --------------------------------------------------------------------


def pipeline(seed: int, *, short: bool = False, language: float = 1.0) -> list[Stage]:
    """Train the base model and R1's four stages.

    Args:
        seed: decides everything.
        short: a step or two of each.
        language: the weight of the language reward, against 1 for the others.
    """

    def grpo(preset: str, steps: int) -> dict[str, Any]:
        config = PRESETS[preset].config(
            steps=2 if short else steps,
            prompts_per_step=4 if short else 16,
            group_size=8,
            minibatches=2,
            max_new_tokens=LONGEST,
            learning_rate=2e-4,
            save_every=1 if short else 8,
            seed=seed,
            alarm_patience=0,
        )
        return config.to_json()

    def count(many: int, few: int) -> int:
        return few if short else many

    always = {"held_out": count(50, 4)}
    seeded = {**always, "seed": seed}
    started = {"examples": 60, "steps": count(20, 2)}
    sampled = {"prompts": count(160, 8), "samples": 8}
    read_again = {"others": count(150, 8), "steps": count(60, 2)}
    rule = {"accuracy": 1.0, "language": language}
    last = grpo("r1", 36)
    scenarios = {
        "rule": rule,
        "general": {"accuracy": 1.0, "preference": 1.0, "format": 1.0, "language": language},
        "preferred_from": 1 + last["steps"] * 2 // 3,
    }
    return [
        Stage("base", base, {"steps": count(120, 30), **seeded}),
        Stage("cold_start", cold_start, {**started, **seeded}),
        Stage("reasoning", reasoning, {"config": grpo("r1_zero", 32), "weights": rule, **always}),
        Stage("rejection", rejection, {**sampled, **read_again, **seeded}),
        Stage("all_scenarios", all_scenarios, {"config": last, **scenarios, **always}),
    ]


def prepare(trial: Trial) -> None:
    """Train the base model, of which every arm of a seed takes a copy."""
    run_stages(pipeline(trial.seed, short=trial.short)[:1], trial.start / "pipeline")


def train(trial: Trial, **changed: float) -> Outcome:
    """Run the pipeline; an interrupted trial goes on within the stage that it was in."""
    folder = trial.folder / "pipeline"
    if not folder.exists():
        copying = folder.with_suffix(".partial")
        shutil.copytree(trial.start / "pipeline", copying, dirs_exist_ok=True)
        copying.rename(folder)
    done = run_stages(pipeline(trial.seed, short=trial.short, **changed), folder)
    values = {f"{name} {i}": one.found[name] for i, one in enumerate(done) for name in MEASURES}
    for i, (before, after) in enumerate(pairwise(done), start=1):
        for name in MEASURES:
            values[f"{name} {i}, gain"] = after.found[name] - before.found[name]
    curves = {name: [(i, one.found[name]) for i, one in enumerate(done)] for name in MEASURES}
    return Outcome(values, curves)


def draw(figure: Any, results: Results) -> None:
    """Draw the four measures, from stage to stage."""
    names = ("base", "1: cold\nstart", "2: RL on\nsums", "3: rejection,\nSFT", "4: RL on\nall")
    panels = figure.subplots(2, 2, sharex=True, sharey=True).flatten()
    for axes, name in zip(panels, MEASURES, strict=True):
        draw_curve(axes, results, name, xlabel="")
        axes.set(xticks=range(len(names)), xticklabels=names, ylim=(0, 1))
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


MEASURES = ("consistency", "accuracy", "breadth", "preference")

STUDY = Study(
    title="DeepSeek-R1: four stages",
    source="DeepSeek-AI, arXiv 2501.12948",
    says="A cold start on a few worked examples makes thoughts readable; RL on rules then makes "
    "them right, with a reward for the language's share of words that costs a little accuracy; "
    "rejection sampling from it and other data, on which the base model is trained anew, broadens "
    "it; RL on all tasks lifts preference. (Reported for these four, AIME 2024: 59.0, 74.0, 78.1 "
    "and 79.8; IF-Eval: 71.7, 72.0, 78.1 and 83.3.)",
    load="Two kinds of tasks, sums of three digits and three digits read backwards, thought "
    "about in digits or in letters (5 is f); tags are one token each. A model of 0.4 million "
    "parameters reads both for 120 batches, three fifths in letters or mixed, half hasty. Then: "
    "(1) 20 batches of 60 sums in digits; (2) 32 GRPO steps of 16 x 8 replies on sums; (3) from "
    "the base, 60 batches of (2)'s right replies in digits alone and of 150 mirrored ones; (4) 36 "
    "GRPO steps at temperature 0.7 on sums, the last third on both, paid there also for right "
    "answers that restate the question and end with a full stop. Losses are the presets', the "
    "learning rate 2e-4. Both arms begin with one base model and take the same steps; the "
    "second's language reward has weight 0 in (2) and (4). After each stage 4 sampled replies to "
    "each of 50 held-out tasks of each kind: the share of words in digits and accuracy on sums, "
    "accuracy (breadth) and style (preference) on mirrored ones. The setting was found on seed 0 "
    "of the first arm.",
    tried=(
        "On seed 0, which is one of the first run's and none of the second's. With larger digits, "
        "four updates a step at 3e-4 took the accuracy of (2) from .41 to .05, and at 1e-4, or "
        "with one update, it rose slowly at best; 300 mirrored replies beside 115 sums in (3) "
        "cost accuracy; a preference paid for wrong answers too was hacked in (4)."
    ),
    equation=(
        r"r = r_{\mathrm{accuracy}} + r_{\mathrm{format}} + \frac{\#\,\text{words in the "
        r"language}}{\#\,\text{words}}"
    ),
    claims=(
        Claim(
            "(1) A cold start makes thoughts readable",
            "consistency 1, gain",
            arm="four stages",
            than=0.0,
            margin=0.1,
        ),
        Claim("(2) RL on rules makes them right", "accuracy 2, gain", arm="four stages", than=0.0),
        Claim(
            "(3) Rejection sampling and other data broaden it",
            "breadth 3, gain",
            arm="four stages",
            than=0.0,
            margin=0.1,
        ),
        Claim(
            "(4) RL on all tasks lifts preference",
            "preference 4, gain",
            arm="four stages",
            than=0.0,
            margin=0.1,
        ),
        Claim(
            "The language reward lifts consistency",
            "consistency 2",
            arm="four stages",
            than="no language reward",
        ),
        Claim(
            "The language reward costs accuracy",
            "accuracy 2",
            arm="no language reward",
            than="four stages",
        ),
    ),
    remark=(
        "Unlike R1's, (1) gains accuracy, and (4) takes back a part of the breadth. "
        "GRPO does without a critic, not without rewards; (4)'s reward model "
        "is a rule here."
    ),
    arms={"four stages": train, "no language reward": partial(train, language=0.0)},
    prepare=prepare,
    resumes=True,
    presets=("r1_zero", "r1"),
    columns=(
        *("consistency 0", "consistency 1", "consistency 2", "accuracy 1", "accuracy 2"),
        *("breadth 2", "breadth 3", "preference 3", "preference 4", "accuracy 4", "breadth 4"),
    ),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
