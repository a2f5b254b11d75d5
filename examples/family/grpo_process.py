"""GRPO with process supervision: each step of a reply has its own reward and its own credit."""

from functools import partial
from typing import Any

from assay.envs import Generated, State, Task, TextEnv, Turn
from assay.family._training import learn
from assay.family._turns import worked_row
from assay.family.trainers import FitConfig, sft
from assay.family_cli import run_script
from assay.grpo import (
    GRPOConfig,
    ModelPolicy,
    Row,
    evaluate,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Claim, Outcome, Study, Trial
from assay.verifiers import Exact

TERMS = 4  # numbers to add up: three steps
STEPS = 120
WARM_STEPS = 35


class Running(TextEnv):
    """Add numbers up one by one, and write down the total after each.

    Observation: ``7+5+8+1 7+5=``, then ``+8=`` and so on. Action: the total so far. Reward: 1.0
    where the last total is right. Each turn has a reward too: 1.0 where its own total is right.
    """

    def __init__(self, split: Any = "train") -> None:
        source = Generated(draw, name="Running", split=split)
        super().__init__(source, Exact(), max_turns=TERMS - 1)

    def respond(self, state: State, reply: str) -> Turn:
        """Pay for the total, and give the next number."""
        numbers, turn = state.task.metadata["numbers"], len(state.step_rewards)
        paid = float(reply == str(sum(numbers[: turn + 2])))
        if turn + 2 == TERMS:
            return Turn.end(reward=paid)
        return Turn.say(f"+{numbers[turn + 2]}=", reward=paid)


def draw(rng: Any) -> Task:
    """Draw numbers below 10."""
    numbers = [int(n) for n in rng.integers(10, size=TERMS)]
    asked = "+".join(map(str, numbers)) + f" {numbers[0]}+{numbers[1]}="
    return Task(asked, str(sum(numbers)), metadata={"numbers": numbers})


def worked(tokenizer: Any, task: Task) -> Row:
    """Tokenize an episode in which every total is right."""
    numbers = task.metadata["numbers"]
    totals = [str(sum(numbers[:n])) for n in range(2, TERMS + 1)]
    said = [*(f"+{n}=" for n in numbers[2:]), ""]
    return worked_row(tokenizer, task.text, list(zip(totals, said, strict=True)))


def start(trial: Trial) -> None:
    """Train a weak base model: supervised on a few worked episodes, and stopped early."""
    model, tokenizer = load_model(tiny_model(trial.start, seed=trial.seed))
    env = Running()
    steps = 5 if trial.short else WARM_STEPS
    sft(
        model,
        tokenizer,
        [worked(tokenizer, env.task(i)) for i in range(2000)],
        FitConfig(learning_rate=1e-3, batch_size=64, steps=steps, seed=trial.seed),
    )
    model.save_pretrained(trial.start)


def train(trial: Trial, **settings: Any) -> Outcome:
    """Train from the weak base."""
    config = GRPOConfig(
        steps=3 if trial.short else STEPS,
        prompts_per_step=16,
        max_new_tokens=5,
        learning_rate=3e-4,
        seed=trial.seed,
        alarm_patience=0,
        **settings,
    )
    held_out = held_out_tasks(Running("test"), 50 if trial.short else 500)

    def measure(policy: ModelPolicy) -> dict[str, float]:
        groups = held_out(policy, 0)
        right = evaluate(policy, lambda *_: groups).pass_at_1
        steps = [r or 0.0 for g in groups for e in g.episodes for r in e.step_rewards]
        return {
            "last total right": right,
            "share of steps right": sum(steps) / max(1, len(steps)),
        }

    tasks, logged = training_tasks(Running(), config), ("zero_variance",)
    return learn(trial, tasks, config, measure, logged)


STUDY = Study(
    title="GRPO, process supervision (DeepSeekMath)",
    source="Shao et al., arXiv 2402.03300",
    says="Rewards of steps, compared over all steps of the group and summed over the steps that "
    "end at or after a token, do better than one reward for the outcome.",
    load=f"Running totals of {TERMS} numbers below 10, one turn each, so {TERMS - 1} steps; a "
    f"model of 0.4 million parameters after {WARM_STEPS} supervised steps, which is rarely right "
    f"to the end; {STEPS} steps of 16 prompts x 8 episodes, one update each, learning rate 3e-4; "
    "one sampled episode of each of 500 held-out tasks.",
    tried="Nothing: the settings are the first ones.",
    equation=(
        r"\hat A_{i,t} = \sum_{\mathrm{index}(j) \ge t} \frac{r_i^{\mathrm{index}(j)} - "
        r"\mathrm{mean}(R)}{\mathrm{std}(R)}"
    ),
    claims=(
        Claim(
            "Rewards of steps raise the share of right steps above that of one reward for the"
            " outcome",
            "share of steps right",
            arm="process",
            than="outcome",
        ),
        Claim(
            "Rewards of steps end above one reward for the outcome by the last total",
            "last total right",
            arm="process",
            than="outcome",
        ),
        Claim(
            "Rewards of steps leave fewer groups flat, by .3 at least",
            "zero_variance",
            arm="process",
            than="outcome",
            higher=False,
            margin=0.3,
        ),
        Claim(
            "Dividing by the standard deviation helps the steps",
            "share of steps right",
            arm="process",
            than="process, without std",
        ),
    ),
    remark="By outcomes most groups teach nothing, by steps few.",
    seeds=16,
    arms={
        "outcome": train,
        "process": partial(train, advantage="process"),
        "process, without std": partial(train, advantage="process", advantage_std="none"),
    },
    prepare=start,
    presets=("deepseek_math_process",),
)

if __name__ == "__main__":
    run_script(__file__)
