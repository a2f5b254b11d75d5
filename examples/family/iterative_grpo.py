"""Iterative GRPO: a reward model that learns from the policy's own replies is not hacked."""

import json
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from assay.envs import EpisodeGroup, Task, TextEnv, rollout
from assay.envs.datasets.source import Generated, Split
from assay.family.trainers import (
    FitConfig,
    Label,
    Round,
    TrainableRewardModel,
    iterative_grpo,
    labels_of,
    sft,
)
from assay.family_cli import run_script
from assay.grpo import PRESETS, GRPOConfig, ModelPolicy, held_out_tasks, load_model, tiny_model
from assay.study import Claim, Outcome, Results, Study, Trial, every
from assay.study.picture import draw_curve
from assay.verifiers import FunctionVerifier

LETTERS, VOWELS = "abcdefghijklmno", "aeio"
LONGEST = 7  # tokens of a reply
ROUNDS, STEPS, LABELS = 4, 30, 200
PROXY, TRUE = "reward by the reward model", "true reward"


def worth(reply: str, reference: str) -> float:
    """Divide the number of distinct vowels by the reply's length: 1.0 for each exactly once."""
    return sum(vowel in reply for vowel in VOWELS) / max(len(VOWELS), len(reply))


def names(split: Split) -> TextEnv:
    """Draw a name as the prompt; the preference is the same for all names."""

    def task(rng: np.random.Generator) -> Task:
        return Task(f"{''.join(rng.choice(list(LETTERS), 3))}:", reference="")

    source = Generated(task, name="family/names", split=split)
    return TextEnv(source, FunctionVerifier(worth), name="family/names")


def reading(trial: Trial) -> FitConfig:
    """Return the settings of a reward model's fit: eight passes over its labels."""
    return FitConfig(epochs=1 if trial.short else 8, batch_size=40, learning_rate=1e-3)


def start(trial: Trial) -> None:
    """Train a policy that writes four random letters, and label its replies."""
    model, tokenizer = load_model(
        tiny_model(trial.start, hidden_size=64, intermediate_size=192, seed=trial.seed)
    )
    train, draw = names("train"), np.random.default_rng(trial.seed)
    asked = [train.task(i) for i in range(1000)]
    said = ["".join(draw.choice(list(LETTERS), 4)) for _ in asked]
    config = FitConfig(
        steps=10 if trial.short else 80, batch_size=64, learning_rate=2e-3, seed=trial.seed
    )
    sft(model, tokenizer, [(t.text, s) for t, s in zip(asked, said, strict=True)], config)
    model.save_pretrained(trial.start)
    policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=trial.seed)
    count = 20 if trial.short else LABELS
    labels = labels_of(rollout(train, policy, ROUNDS * count, 1, seed=trial.seed))
    text = "".join(json.dumps(label.to_json()) + "\n" for label in labels)
    (trial.start / "labels.jsonl").write_text(text)


def train(trial: Trial, *, first: int = 1, refit: bool = False, replay: float = 0.1) -> Outcome:
    """Train by a reward model.

    Args:
        trial: with the policy and the labels to begin with.
        first: times 200 labels that the first reward model learns from.
        refit: label 200 replies after each round, and go on training the reward model.
        replay: old labels for each new one.
    """
    model, tokenizer = load_model(trial.start)
    count = 20 if trial.short else LABELS
    lines = (trial.start / "labels.jsonl").read_text().splitlines()[: first * count]
    known = [Label.from_json(json.loads(line)) for line in lines]
    scorer = reward_model(trial, known)
    config: GRPOConfig = PRESETS["deepseek_math"].config(
        steps=2 if trial.short else STEPS,
        prompts_per_step=12,
        group_size=8,
        max_new_tokens=LONGEST,
        learning_rate=5e-4,
        seed=trial.seed,
        alarm_patience=0,
    )
    held_out = held_out_tasks(names("test"), 50 if trial.short else 200)
    curves: dict[str, list[tuple[float, float]]] = {PROXY: [], TRUE: []}
    look = every(config.steps, 3)
    judge = scorer

    def note(number: int, row: dict[str, Any]) -> None:
        if not look(row["step"]) or (number > 1 and not row["step"]):
            return
        policy = ModelPolicy(model, tokenizer, max_new_tokens=LONGEST, seed=trial.seed)
        found = held_out(policy, 0)
        at = (number - 1) * config.steps + row["step"]
        curves[PROXY].append((at, judged(judge, found)))
        curves[TRUE].append((at, mean([g.rewards[0] or 0.0 for g in found])))

    def over(done: Round) -> None:
        nonlocal judge
        if done.labels:
            judge = judge.at(trial.folder / f"rounds/round-{done.number}/reward_model")

    iterative_grpo(
        model,
        tokenizer,
        names("train"),
        scorer,
        config,
        trial.folder / "rounds",
        rounds=ROUNDS,
        labels=count if refit else 0,
        replay=replay,
        fit=reading(trial),
        history=known,
        on_step=note,
        on_round=over,
    )
    ends = {name: points[-1][1] for name, points in curves.items()}
    best = max(y for _, y in curves[TRUE])
    begin = curves[TRUE][0][1]
    return Outcome(
        {
            "start": begin,
            "best": best,
            "true": ends[TRUE],
            "proxy": ends[PROXY],
            "hacked": ends[PROXY] - ends[TRUE],
        },
        curves,
    )


def reward_model(trial: Trial, known: Sequence[Label]) -> TrainableRewardModel:
    """Fit the policy's body to the first labels, unless an interrupted trial has done so."""
    zero, one = trial.folder / "version-0", trial.folder / "version-1"
    if one.exists():
        return TrainableRewardModel(one)
    begun = TrainableRewardModel(zero) if zero.exists() else None
    begun = begun or TrainableRewardModel.begin(trial.start, zero)
    return begun.fit(known, folder=one, config=reading(trial))


def judged(scorer: TrainableRewardModel, groups: Sequence[EpisodeGroup]) -> float:
    """Return a reward model's mean score of the first reply to each task."""
    replies = [group.episodes[0].completion for group in groups]
    asked = [{"messages": list(group.task.messages)} for group in groups]
    return mean([v.score or 0.0 for v in scorer.verify_many(replies, asked)])


def mean(values: Sequence[float]) -> float:
    """Return the mean of at least one value."""
    return sum(values) / len(values)


def draw(figure: Any, results: Results) -> None:
    """Draw the reward model's score beside the true value, with the rounds' ends."""
    panels = figure.subplots(1, 2, sharey=True)
    for axes, name in zip(panels, (PROXY, TRUE), strict=True):
        draw_curve(axes, results, name)
        axes.set_ylim(0, 1)
        for end in range(1, ROUNDS):
            axes.axvline(end * STEPS, color="#999999", lw=0.8, ls=":")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


STUDY = Study(
    title="Iterative GRPO (DeepSeekMath)",
    source="Shao et al., arXiv 2402.03300",
    says="As training goes on, the first reward model no longer suffices to supervise the "
    "policy: it is trained on with the policy's new replies and 10% of historical data, and the "
    "reference becomes the policy, in each round. (4.1.4; the paper measures two rounds.)",
    load="Answer a name in letters; what is liked is known: different vowels of the four, by "
    "the length of the reply. The first policy says four letters at random. Policy and reward "
    "model of 0.1 million parameters, the second from the first's weights. "
    f"{ROUNDS} rounds of {STEPS} steps of 12 prompts x 8 replies, beta .04; {LABELS} labels "
    f"before the first round, of the first policy's replies, and after each round {LABELS} of its "
    f"policy's; eight passes over them each time. The frozen models learn from {LABELS} labels, "
    f"and from {ROUNDS * LABELS} of the first policy's, as many as the others see up to the last "
    "round. 10% is of the number of new labels, drawn from all earlier ones. Both rewards of "
    "sampled replies to 200 held-out names.",
    tried=(
        "A task whose reward depended on the question, with 0.4 million parameters and 16 "
        "prompts: 200 labels taught the reward model nothing of it, and all arms fell below the "
        "start."
    ),
    equation=(
        r"\phi \leftarrow \arg\min_\phi\; \mathbb{E}_{\mathcal{D}_{\mathrm{new}} \cup\, "
        r"10\%\,\mathcal{D}_{\mathrm{old}}}\bigl[\ell(r_\phi)\bigr], \qquad "
        r"\pi_{\mathrm{ref}} \leftarrow \pi_\theta"
    ),
    claims=(
        Claim(
            "A reward model that is trained on ends higher than a frozen one",
            "true",
            arm="iterative, 10% replay",
            than="frozen",
        ),
        Claim(
            "Fresh labels end higher than as many of the first policy's replies",
            "true",
            arm="iterative, 10% replay",
            than="frozen, as many labels",
        ),
        Claim(
            "Replay of 10 % helps", "true", arm="iterative, 10% replay", than="iterative, no replay"
        ),
        Claim(
            "A frozen reward model is hacked: it pays .1 more than is true",
            "hacked",
            arm="frozen",
            than=0.0,
            margin=0.1,
        ),
    ),
    remark=(
        "DeepSeekMath's GRPO is paid by a trained reward model; rules alone came with R1-Zero."
    ),
    seeds=12,
    arms={
        "frozen": train,
        "frozen, as many labels": partial(train, first=ROUNDS),
        "iterative, 10% replay": partial(train, refit=True),
        "iterative, no replay": partial(train, refit=True, replay=0.0),
    },
    prepare=start,
    presets=("deepseek_math",),
    columns=("start", "best", "true", "proxy"),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
