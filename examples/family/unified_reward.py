"""UnifiedReward-Think: GRPO trains a judge that thinks, and the judge then trains a policy."""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Literal

import numpy as np
import torch

from assay.envs import (
    GroupRubric,
    PolicyJudge,
    Task,
    TextEnv,
    Tournament,
    pairwise_prompt,
    play,
    rejudged,
)
from assay.envs.datasets.source import Generated, Rows, Split
from assay.family._training import learn
from assay.family.trainers import FitConfig, rft, sft
from assay.family_cli import run_script
from assay.grpo import (
    PRESETS,
    GRPOConfig,
    Learner,
    ModelPolicy,
    evaluate,
    held_out_tasks,
    load_model,
    tiny_model,
    training_tasks,
)
from assay.study import Claim, Outcome, Results, Study, Trial
from assay.study.picture import draw_curve
from assay.verifiers import Exact, Format, FunctionVerifier, Rubric, Verdict, Verifier

TEMPLATE = "{question} {first}A{second}B?"
TAGS = ("<think>", "</think>", "<answer>", "</answer>")  # a token each: a verdict has nine
LONGEST, DIGITS = 10, 3  # tokens of a verdict and of a sum, with the one that ends it
TAUGHT, SEEN = 300, 1500  # pairs with a written-out verdict, and with a label alone
COLD, JUDGE_STEPS, STEPS = 200, 60, 120
RIGHT = 0.3  # share of right answers that the first policy is taught
ACCURACY, POLICY = "judge: held-out accuracy", "policy: right answers"
Last = Literal["cold start", "wrong", "all"]


def wrong_sum(rng: np.random.Generator, right: int) -> int:
    """Return a sum that is off by 1 to 5."""
    wrong = abs(right + int(rng.choice([-1, 1]) * rng.integers(1, 6)))
    return wrong + (wrong == right)


def sums() -> TextEnv:
    """Add two digits; the answer has two digits too."""

    def task(rng: np.random.Generator) -> Task:
        a, b = (int(n) for n in rng.integers(10, size=2))
        return Task(f"{a}+{b}=", reference=f"{a + b:02d}")

    return TextEnv(Generated(task, name="family/sums"), Exact(), name="family/sums")


def pairs(split: Split, seed: int = 0) -> TextEnv:
    """Say which of two sums is right: the thought is the sum and whose it is."""

    def task(rng: np.random.Generator) -> Task:
        a, b = (int(n) for n in rng.integers(10, size=2))
        right, wrong = f"{a + b:02d}", f"{wrong_sum(rng, a + b):02d}"
        better = "AB"[int(rng.integers(2))]
        shown = (right, wrong) if better == "A" else (wrong, right)
        return Task(
            pairwise_prompt(TEMPLATE, f"{a}+{b}=", *shown),
            reference=better,
            solution=f"<think>{right}{better}</think><answer>{better}</answer>",
        )

    source = Generated(task, name="family/pairs", split=split, seed=seed)
    return TextEnv(source, verdict_and_format(), name="family/pairs")


def verdict_and_format() -> Rubric:
    """Score by the paper's reward: 1 for the exact verdict and 1 for the form, here their mean."""
    return Rubric({"verdict": Exact(extract=("answer",)), "format": Format()})


class Gold(Verifier):
    """A judge of sums that is never wrong."""

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Compare a reply with another one to the same sum."""
        a, _, b = reference["question"].rstrip("=").partition("+")
        right = f"{int(a) + int(b):02d}"
        mine, other = reply.strip() == right, reference["answer"].strip() == right
        return Verdict.correct() if mine > other else Verdict.wrong("", score=0.5 * (mine == other))


def start(trial: Trial) -> None:
    """Train a weak policy, and stage 1: a judge that has seen verdicts."""
    rng = np.random.default_rng(trial.seed)

    def guess(task: Task) -> str:
        right = int(task.reference)
        return f"{right if rng.random() < RIGHT else wrong_sum(rng, right):02d}"

    asked = [sums().task(i) for i in range(2000)]
    teach(trial, "policy", [(t.text, guess(t)) for t in asked], steps=100)
    taught = pairs("train")
    teach(trial, "judge", [taught.task(i) for i in range(TAUGHT)], steps=COLD)


def teach(trial: Trial, name: str, examples: Sequence[Any], steps: int) -> None:
    """Train a new model on some examples, in a folder of the start."""
    folder = trial.start / name
    small = tiny_model(folder, hidden_size=64, intermediate_size=192, seed=trial.seed)
    model, tokenizer = load_model(small)
    tokenizer.add_tokens(list(TAGS))
    torch.manual_seed(trial.seed)  # the tags' embeddings are drawn
    model.resize_token_embeddings(len(tokenizer), mean_resizing=False)
    config = FitConfig(
        steps=25 if trial.short else steps, batch_size=64, learning_rate=2e-3, seed=trial.seed
    )
    sft(model, tokenizer, examples, config)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


def train(trial: Trial, *, last: Last | None) -> Outcome:
    """Train a judge up to a stage, then a policy by it; ``None`` for the judge that knows."""
    judge: Verifier = Gold()
    curves: dict[str, list[tuple[float, float]]] = {ACCURACY: [], POLICY: []}
    values: dict[str, float] = {}
    if last is not None:
        model, tokenizer = load_model(trial.start / "judge")
        held_out = held_out_tasks(pairs("test"), 50 if trial.short else 150)

        def look(stage: int) -> None:
            best = policy_of(model, tokenizer, trial, temperature=0.0)
            curves[ACCURACY].append((stage, evaluate(best, held_out).pass_at_1))

        look(1)
        stages(model, tokenizer, trial, last, look)
        values["judge"] = curves[ACCURACY][-1][1]
        judge = PolicyJudge(
            policy_of(model, tokenizer, trial, temperature=0.0), TEMPLATE, remember=100_000
        )
    by_judge(trial, judge, curves[POLICY])
    return Outcome({**values, "policy": curves[POLICY][-1][1]}, curves)


def policy_of(
    model: Any, tokenizer: Any, trial: Trial, *, longest: int = LONGEST, temperature: float = 1.0
) -> ModelPolicy:
    """Wrap a model as a policy, or as a judge."""
    return ModelPolicy(
        model, tokenizer, max_new_tokens=longest, temperature=temperature, seed=trial.seed
    )


def stages(
    model: Any, tokenizer: Any, trial: Trial, last: Last, look: Callable[[int], None]
) -> None:
    """Stage 2, learn what it judged right; stage 3, GRPO on what it judged wrong."""
    if last == "cold start":
        return
    env = pairs("train", seed=1)
    tasks = [env.task(i) for i in range(40 if trial.short else SEEN)]
    groups = play(env, policy_of(model, tokenizer, trial), tasks, 1)
    right = [g for g in groups if g.episodes[0].reward == 1.0]
    wrong = [g.task for g in groups if g.episodes[0].reward != 1.0]
    if right:
        fit = FitConfig(epochs=8, batch_size=64, learning_rate=1e-3, seed=trial.seed)
        rft(model, tokenizer, right, fit)
    look(2)
    config = settings(trial, JUDGE_STEPS, 5e-4, LONGEST)
    chosen = TextEnv(Rows(wrong if last == "wrong" else tasks), verdict_and_format())
    tasks_of, run = training_tasks(chosen, config), trial.folder / "judge"
    Learner(model, tokenizer, tasks_of, config, run, progress=False).train()
    look(3)


def by_judge(trial: Trial, judge: Verifier, points: list[tuple[float, float]]) -> None:
    """Train a policy by the comparisons that its replies win, and by nothing else."""
    env = rejudged(sums(), FunctionVerifier(lambda reply, reference: 0.0))
    won = Tournament(judge, among="all", opponents=2)
    env.group_rubric = GroupRubric({"won": won}, gate=False)
    config = settings(trial, STEPS, 1e-3, DIGITS)
    known = held_out_tasks(sums(), 100, group_size=1 if trial.short else 3)

    def measure(policy: ModelPolicy) -> dict[str, float]:
        return {POLICY: evaluate(policy, known).pass_at_1}

    tasks = training_tasks(env, config)
    points += learn(trial, tasks, config, measure, looks=5, name="policy").curves[POLICY]


def settings(trial: Trial, steps: int, learning_rate: float, longest: int) -> GRPOConfig:
    """Return the paper's group size and beta, for judge and policy."""
    return PRESETS["grpo"].config(
        steps=2 if trial.short else steps,
        prompts_per_step=12,
        group_size=8,
        max_new_tokens=longest,
        learning_rate=learning_rate,
        seed=trial.seed,
        alarm_patience=0,
        max_none_share=1.0 if trial.short else 0.5,  # a judge of a few steps is hard to read
    )


def draw(figure: Any, results: Results) -> None:
    """Draw the judge by stage, and the policies that the judges trained."""
    left, right = figure.subplots(1, 2)
    draw_curve(left, results, ACCURACY, xlabel="stage")
    left.set_xticks([1, 2, 3], ["1: cold start", "2: rejection\nsampling", "3: GRPO"])
    left.axhline(0.5, color="#999999", lw=0.8, ls=":")
    draw_curve(right, results, POLICY)
    handles, labels = right.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2)


STUDY = Study(
    title="UnifiedReward-Think: a judge trained by GRPO",
    source="Wang et al., arXiv 2505.03318",
    says="A generative judge that is taught to think from few examples (stage 1), then learns "
    "from those of its own verdicts that were right (2) and by GRPO where it was wrong (3), with "
    "1 for the verdict and 1 for the form as reward, judges better after each stage, and is a "
    "better reward.",
    load="Which of two answers to a sum of two digits is right, the other being off by 1 to 5: "
    "a judge of 0.1 million parameters writes the sum and whose it is as its thought, then A or B. "
    f"{TAUGHT} written-out verdicts for stage 1; {SEEN:,} labelled pairs for stages 2 and 3; stage "
    f"3 is {JUDGE_STEPS} steps of 12 pairs x 8 replies, beta .04; accuracy on 150 held-out pairs "
    "at temperature 0. Each judge, and one that is never wrong, then trains the same policy, which "
    f"was taught to be right in {RIGHT:.0%} of its answers, for {STEPS} steps of 12 x 8: a reply "
    "earns the share of two comparisons with others of its group that it wins, each asked in both "
    "orders. The policy's score is on the sums that it trains on, whose answers no reward knows.",
    tried=(
        "On one seed: two passes in stage 2 and fewer pairs, which gained nothing there, while "
        "stage 3 lost as much. Sums below 100, and 30, 40, 80 or 200 steps of the policy, were "
        "given up before the first results."
    ),
    equation=(r"r = \mathbb{1}[\text{verdict right}] + \mathbb{1}[\text{form right}]"),
    claims=(
        Claim(
            "GRPO on wrong verdicts (stage 3) improves the judge over its cold start",
            "judge",
            arm="3: GRPO on its wrong verdicts",
            than="1: cold start",
        ),
        Claim(
            "Stage 3 on wrong verdicts is better than on all pairs",
            "judge",
            arm="3: GRPO on its wrong verdicts",
            than="3, on all pairs",
        ),
        Claim(
            "Stage 3 on all pairs improves the judge over its cold start",
            "judge",
            arm="3, on all pairs",
            than="1: cold start",
        ),
        Claim(
            "The judge of stage 3 trains a better policy than the cold start",
            "policy",
            arm="3: GRPO on its wrong verdicts",
            than="1: cold start",
        ),
        Claim(
            "A judge that knows trains a better policy than any stage",
            "policy",
            arm="a judge that knows",
            than="3, on all pairs",
            margin=0.05,
        ),
    ),
    remark=(
        "Stage 2 lifts the judge with all 32 seeds, from .74 to .81 in the mean; stage 3 on all "
        "pairs loses more than a third of that. If all that is seen was judged wrong, thoughts "
        "that led there are unlearnt, right ones too. As a reward no stage is good enough."
    ),
    seeds=32,
    arms={
        "1: cold start": partial(train, last="cold start"),
        "3: GRPO on its wrong verdicts": partial(train, last="wrong"),
        "3, on all pairs": partial(train, last="all"),
        "a judge that knows": partial(train, last=None),
    },
    prepare=start,
    presets=("grpo",),
    columns=("judge", "policy"),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
