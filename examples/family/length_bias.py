"""Dr. GRPO: dividing each reply's loss by its own length rewards long wrong replies."""

from functools import partial
from typing import Any

from assay.envs import Generated, Split, Task, TextEnv
from assay.family._training import learn
from assay.family.trainers import warm_start
from assay.family_cli import run_script
from assay.grpo import (
    GRPOConfig,
    ModelPolicy,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Claim, Outcome, Study, Trial
from assay.verifiers import FunctionVerifier, Status

LONGEST = 24
STEPS = 120


def draw(rng: Any) -> Task:
    """Draw a sum; its worked reply begins with some dots, which are worth nothing."""
    a, b = (int(n) for n in rng.integers(10, 100, size=2))
    dots = "." * int(rng.integers(1, 12))
    return Task(f"{a}+{b}=", str(a + b), solution=f"{dots}{a + b}")


def dotted(split: Split) -> TextEnv:
    """Make tasks: sums whose replies may be padded with dots, which are not judged."""
    judge = FunctionVerifier(lambda reply, answer: reply.lstrip(".") == answer)
    return TextEnv(Generated(draw, name="Dotted", split=split), judge)


def start(trial: Trial) -> None:
    """Train the base model: it writes the right number of dots, and sometimes a right sum."""
    model, tokenizer = load_model(tiny_model(trial.start, seed=trial.seed))
    train = dotted("train")
    warm_start(
        model,
        tokenizer,
        [train.task(i) for i in range(3000)],
        held_out_tasks(dotted("test"), 200),
        target=0.0 if trial.short else 0.15,
        max_steps=25 if trial.short else 1000,
        max_new_tokens=LONGEST,
        batch_size=64,
        seed=trial.seed,
    )
    model.save_pretrained(trial.start)


def train(trial: Trial, **settings: Any) -> Outcome:
    """Train, and look at how long right and wrong replies are."""
    config = GRPOConfig(
        steps=2 if trial.short else STEPS,
        prompts_per_step=16,
        max_new_tokens=LONGEST,
        learning_rate=3e-4,
        seed=trial.seed,
        alarm_patience=0,
        **settings,
    )
    held_out = held_out_tasks(dotted("test"), 50 if trial.short else 400)

    def measure(policy: ModelPolicy) -> dict[str, float]:
        lengths: dict[bool, list[int]] = {True: [], False: []}
        for group in held_out(policy, 0):
            for episode in group.episodes:
                right = episode.status is Status.CORRECT
                lengths[right].append(len(episode.spans[-1].ids))
        found = {"pass@1": len(lengths[True]) / sum(map(len, lengths.values()))}
        for name, of in (("wrong", lengths[False]), ("right", lengths[True])):
            if of:
                found[f"tokens of {name} replies"] = sum(of) / len(of)
        return found

    tasks = training_tasks(dotted("train"), config)
    return learn(trial, tasks, config, measure)


STUDY = Study(
    title="Dr. GRPO: the bias of a reply's own length",
    source="Liu et al., arXiv 2503.20783",
    says="The mean over each reply's own tokens (GRPO) makes a token of a long wrong reply count "
    "for less than one of a short wrong reply, so wrong replies grow; one length for all does "
    "not. Dividing by the group's standard deviation favours tasks that are very easy or hard.",
    load=f"Sums of two numbers from 10 to 99 after any number of dots, which are worth "
    f"nothing; the model is warm-started on 1 to 11 dots, until 15 % of sampled replies are right; "
    f"{STEPS} steps of 16 prompts x 8 replies of at most {LONGEST} tokens, one update each, "
    "learning rate 3e-4; one sampled reply to each of 400 held-out sums.",
    tried="Nothing: the settings are the first ones.",
    equation=(
        r"\frac{1}{|o_i|}\sum_t \quad\text{(GRPO)}, \qquad \frac{1}{L_{\max}}\sum_t "
        r"\quad\text{(Dr. GRPO)}"
    ),
    claims=(
        Claim(
            "By the reply's own mean wrong replies grow",
            "tokens of wrong replies",
            arm="GRPO (reply's own mean)",
        ),
        Claim(
            "By the reply's own mean wrong replies end longer than by one length",
            "tokens of wrong replies",
            arm="GRPO (reply's own mean)",
            than="Dr. GRPO (one length)",
        ),
        Claim(
            "By the reply's own mean wrong replies end longer than by the mean over tokens",
            "tokens of wrong replies",
            arm="GRPO (reply's own mean)",
            than="DAPO (mean over tokens)",
        ),
        Claim(
            "One length costs no more than .03 of accuracy",
            "pass@1",
            arm="Dr. GRPO (one length)",
            than="GRPO (reply's own mean)",
            margin=-0.03,
        ),
    ),
    remark=(
        "The arithmetic is exact: by the reply's own mean a token of a wrong reply of 8 tokens "
        "weighs a quarter of one of 2 tokens, by the others the same. Growth was not reproduced: "
        "no arm learnt to add better in 120 steps, and seeds differ by more than the averages do."
    ),
    arms={
        "GRPO (reply's own mean)": partial(train, loss="grpo", advantage_std="none"),
        "DAPO (mean over tokens)": partial(train, loss="dapo", advantage_std="none"),
        "Dr. GRPO (one length)": partial(train, loss="dr_grpo", advantage_std="none"),
        "GRPO with std": partial(train, loss="grpo"),
    },
    prepare=start,
    presets=("dr_grpo",),
)

if __name__ == "__main__":
    run_script(__file__)
