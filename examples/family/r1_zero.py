"""DeepSeek-R1-Zero: right answers and the format of thinking, from rules alone."""

from collections.abc import Mapping
from functools import partial

import numpy as np

from assay.envs import Split, TextEnv
from assay.family._training import learn
from assay.family._worked import THINK, mean_rewards, sums, tagged, working
from assay.family.trainers import FitConfig, sft
from assay.family_cli import run_script
from assay.grpo import (
    PRESETS,
    GRPOConfig,
    ModelPolicy,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Claim, Outcome, Study, Trial
from assay.verifiers import Format, Math, Rubric

STEPS = 64
LONGEST = 32  # tokens of a reply


def as_read(rng: np.random.Generator, a: int, b: int) -> str:
    """Write a sum of the base model's data: seldom in the format, with or without its working."""
    answer, thought = str(a + b), working(a, b)
    forms = (
        (0.50, answer),
        (0.15, f"{thought}\n{answer}"),
        (0.15, f"<think>{thought}</think>{answer}"),
        (0.10, f"<answer>{answer}</answer>"),
        (0.05, tagged(f"{a}+{b}", answer)),
        (0.05, tagged(thought, answer)),
    )
    return str(rng.choice([form for _, form in forms], p=[share for share, _ in forms]))


def environment(split: Split, weights: Mapping[str, float] | None = None) -> TextEnv:
    """Sums, judged by R1-Zero's two rules; each is shown even where it is not paid."""
    rules = {"accuracy": Math(worked_out=True), "format": Format()}
    return sums("r1_zero", Rubric(rules, weights=weights), split, as_read)


def prepare(trial: Trial) -> None:
    """Train the base model on sums in every form."""
    model, tokenizer = load_model(tiny_model(trial.start, words=THINK, seed=trial.seed))
    read = environment("train")
    config = FitConfig(
        steps=20 if trial.short else 300,
        batch_size=96,
        learning_rate=1e-3,
        warmup_steps=0,
        weight_decay=0.01,
        seed=trial.seed,
    )
    sft(model, tokenizer, [read.task(i) for i in range(200 if trial.short else 4000)], config)
    model.save_pretrained(trial.start)


def train(trial: Trial, **weights: float) -> Outcome:
    """Train from the base model; a rule that is not named is only watched."""
    config: GRPOConfig = PRESETS["r1_zero"].config(
        steps=2 if trial.short else STEPS,
        prompts_per_step=16,
        group_size=8,
        minibatches=4,
        max_new_tokens=LONGEST,
        learning_rate=3e-4,
        seed=trial.seed,
        alarm_patience=0,
    )
    held_out = held_out_tasks(environment("test"), 20 if trial.short else 250)
    both = {"accuracy": 0.0, "format": 0.0} | weights
    tasks = training_tasks(environment("train", both), config)

    def measure(policy: ModelPolicy) -> dict[str, float]:
        return mean_rewards(held_out(policy, 0))

    return learn(trial, tasks, config, measure, looks=8)


STUDY = Study(
    title="DeepSeek-R1-Zero: rules alone",
    source="DeepSeek-AI, arXiv 2501.12948",
    says="Two rules, for the answer and for the tags, with equal weights and no learned reward, "
    "teach a base model that seldom uses the tags both; its replies grow longer as it finds that "
    "thinking pays. (Reported: AIME 2024 pass@1 from 15.6 to 71.0 in version 1, 77.9 in version "
    "2.)",
    load=f"Sums of two numbers of two digits in characters, each tag one token; a model of "
    "0.4 million parameters that has read 300 batches of sums in six forms: a twentieth with its "
    f"working in the whole format, half as bare answers. From it, {STEPS} steps of 16 prompts x 8 "
    "replies with the preset's loss, 4 updates each (the preset: 512 x 16, and 16 updates; its "
    "learning rate is 3e-6, here 3e-4), the same for all arms; both rules on sampled replies to "
    "250 held-out sums.",
    tried=(
        "One setting, in a shorter pilot on seed 0, which is one of the first run's and none of "
        "the second's."
    ),
    equation=(r"r = r_{\mathrm{accuracy}} + r_{\mathrm{format}}"),
    claims=(
        Claim("Both rules raise accuracy", "accuracy", arm="accuracy + format", margin=0.05),
        Claim("Both rules teach the format", "format", arm="accuracy + format", margin=0.5),
        Claim(
            "Replies grow by half at least",
            "tokens",
            arm="accuracy + format",
            ratio=True,
            margin=1.5,
        ),
        Claim(
            "Replies grow where accuracy alone is paid",
            "tokens",
            arm="accuracy only",
            ratio=True,
            margin=1.5,
        ),
        Claim(
            "The rule for the answer brings the format too",
            "format",
            arm="accuracy only",
            margin=0.0,
        ),
        Claim(
            "The rule for the format costs at most .05 of accuracy",
            "accuracy",
            arm="accuracy + format",
            than="accuracy only",
            margin=-0.05,
        ),
    ),
    remark=(
        "The growth is a choice among what the base model had read, not an invention: it "
        "drops bare answers for working, also where accuracy alone is paid. Paid for the "
        "format alone it writes `<think>4</think><answer>46</answer>`: a rule is hacked as a "
        "reward model is where it does not say what is wanted. Three of sixteen seeds do that "
        "with both rules too, and are right in less than .03 of their replies; the others end at "
        ".26 to .73. The first eight seeds left the growth with both rules open, and showed "
        "that with accuracy alone."
    ),
    arms={
        "accuracy + format": partial(train, accuracy=1.0, format=1.0),
        "accuracy only": partial(train, accuracy=1.0),
        "format only": partial(train, format=1.0),
    },
    prepare=prepare,
    seeds=16,
    presets=("r1_zero",),
)

if __name__ == "__main__":
    run_script(__file__)
