"""GRPO-LEAD: shorter right replies by a reward within the group, and its parts one by one."""

import statistics
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from assay import make
from assay.envs import Episode, GroupRubric, LeadLength, Task, TextEnv, outcome
from assay.family._training import learn
from assay.family.trainers import warm_start
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
from assay.study.measured import Results
from assay.study.picture import draw_curve

STEPS = 100
FILLER = 8  # dots before an answer, at most
LONGEST = FILLER + 6  # tokens of a reply


def problems(length: LeadLength | None = None) -> TextEnv:
    """Make tasks: sums and products of two digits, rewarded by length in the group if given."""
    env = make("assay/Arithmetic-v1", digits=1, operators="+*")
    if length is not None:
        env.group_rubric = GroupRubric({"lead": length}, weights={"rubric": 0.0})
    return env


def wordy(task: Task, place: int) -> Task:
    """Copy a task with its solution behind some dots, which carry no information."""
    dots = "." * (place % (FILLER + 1))
    return replace(task, solution=f"{dots} {task.solution}")


def start(trial: Trial) -> None:
    """Warm a model up on wordy solutions, until a share of its sampled replies is right."""
    made = tiny_model(trial.start, hidden_size=64, intermediate_size=192, seed=trial.seed)
    model, tokenizer = load_model(made)
    env = problems()
    warm_start(
        model,
        tokenizer,
        [wordy(env.task(i), i) for i in range(2000)],
        held_out_tasks(env, 200),
        target=0.0 if trial.short else 0.4,
        max_steps=600,
        max_new_tokens=LONGEST,
        batch_size=64,
        learning_rate=3e-3,
        seed=trial.seed,
    )
    model.save_pretrained(trial.start)


def train(trial: Trial, *, length: LeadLength | None, **settings: Any) -> Outcome:
    """Train from the seed's start; what right replies there are, and how long they are."""
    played = held_out_tasks(problems(), 50 if trial.short else 200, group_size=3)
    chosen: dict[str, Any] = {
        "steps": 2 if trial.short else STEPS,
        "prompts_per_step": 16,
        "group_size": 8,
        "temperature": 1.0,
        "max_new_tokens": LONGEST,
        "learning_rate": 3e-4,
        "seed": trial.seed,
        "alarm_patience": 0,
    }
    config: GRPOConfig = PRESETS["lead"].config(**{**chosen, **settings})
    tasks = training_tasks(problems(length), config)
    measure = partial(measured, played)
    return learn(trial, tasks, config, measure, looks=8)


def measured(played: Any, policy: ModelPolicy) -> dict[str, float]:
    """Share of right replies, of all and of those to products, and their tokens."""
    groups = played(policy, 0)
    hard = [e for g in groups if g.task.metadata["operator"] == "*" for e in g.episodes]
    episodes = [episode for group in groups for episode in group.episodes]
    right = [e for e in episodes if outcome(e) == 1.0]
    return {
        "pass@1": len(right) / len(episodes),
        "pass@1 of products": statistics.fmean(outcome(e) == 1.0 for e in hard),
        "tokens of right replies": mean_length(right),
        "tokens of all replies": mean_length(episodes),
    }


def mean_length(episodes: Sequence[Episode]) -> float:
    """Return the mean length of replies, in tokens."""
    lengths = [sum(len(s.ids) for s in e.spans if s.author == "model") for e in episodes]
    return statistics.fmean(lengths) if lengths else float("nan")


def draw(figure: Any, results: Results) -> None:
    """Accuracy and length; of two lines that are one, the second is dashed."""
    figure.set_size_inches(10, 4.6)
    panels = figure.subplots(1, 2)
    for axes, name in zip(panels, ("pass@1", "tokens of right replies"), strict=True):
        draw_curve(axes, results, name)
        axes.lines[0].set(linewidth=3)
        axes.lines[1].set(linestyle="--")
    handles, labels = panels[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


SAME: dict[str, Any] = {"hard_weight": 1.0, "easy_weight": 1.0}  # no weights by difficulty

STUDY = Study(
    title="GRPO-LEAD",
    source="GRPO-LEAD, arXiv 2504.09696",
    says="A reward for short right replies, an explicit penalty for wrong ones and a weight for "
    "hard prompts make replies shorter and raise accuracy.",
    load=f"Sums and products of two digits, answered behind 0 to {FILLER} dots that say "
    "nothing; a model of 0.1 million parameters, warm-started until 4 of 10 replies are right; "
    f"{STEPS} steps of 16 prompts x 8 replies, one update each, deviation of a sample, no KL, "
    "temperature 1, alpha 0.05, weights from 0.4 to 1.5; three replies to each problem, which are "
    "those trained on: this is about length, not about generalisation. "
    "The official code applies the length reward only where the shortest replies take 4,000 "
    "tokens; here it always applies.",
    tried=(
        "Nothing: the settings are the first ones. The seeds from 1000 decide; the eight from 0 "
        "were the pilot, whose spread asked for twice as many."
    ),
    equation=(
        r"r_i = e^{-\alpha z_i} \text{ if right, else } -1, \qquad z_i = \frac{|o_i| - "
        r"\mu}{\sigma}"
    ),
    claims=(
        Claim(
            "The length reward makes right replies shorter than GRPO by a fifth at least",
            "tokens of right replies",
            arm="all of LEAD",
            than="GRPO, 1 or 0",
            higher=False,
            ratio=True,
            margin=1.25,
        ),
        Claim(
            "All of LEAD ends above GRPO by accuracy",
            "pass@1",
            arm="all of LEAD",
            than="GRPO, 1 or 0",
        ),
        Claim(
            "A penalty alone changes accuracy by less than .001",
            "pass@1",
            arm="penalty alone",
            than="GRPO, 1 or 0",
            margin=-0.001,
        ),
        Claim(
            "The length reward costs at most .05 of accuracy",
            "pass@1",
            arm="length alone",
            than="GRPO, 1 or 0",
            margin=-0.05,
        ),
        Claim(
            "Weights by difficulty raise accuracy on products",
            "pass@1 of products",
            arm="all of LEAD",
            than="length and penalty",
        ),
    ),
    remark=(
        "The penalty alone does nothing, by algebra: standardised advantages are the same for 1 "
        "and -1 as for 1 and 0. Groups that are all right teach length alone, at full strength "
        "whatever alpha is. The official code applies the length reward only to long replies."
    ),
    seeds=16,
    arms={
        "GRPO, 1 or 0": partial(train, length=None, **SAME),
        "penalty alone": partial(train, length=LeadLength(alpha=0.0), **SAME),
        "length alone": partial(train, length=LeadLength(penalty=0.0), **SAME),
        "length and penalty": partial(train, length=LeadLength(), **SAME),
        "all of LEAD": partial(train, length=LeadLength()),
    },
    prepare=start,
    presets=("lead",),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
