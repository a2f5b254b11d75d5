"""On-policy distillation: a teacher's word on each token in place of a reward for each reply."""

from functools import partial
from pathlib import Path
from typing import Any

from assay.envs import TextEnv
from assay.family._sums import LONGEST, SUMS, pass_at_1, start, sums, trained, warm
from assay.family_cli import run_script
from assay.grpo import GRPOConfig, Learner, load_model, training_tasks
from assay.study import Claim, Outcome, Study, Trial
from assay.verifiers import Verdict, Verifier

STEPS, PROMPTS = 200, 32
TEACHER = 0.8  # its pass@1


class Unscored(Verifier):
    """Pays nothing, so that only the teacher is learnt from."""

    def judge(self, completion: str, reference: Any) -> Verdict:
        """Give 0 to every reply."""
        return Verdict.wrong("not scored")


def start_and_teacher(trial: Trial) -> None:
    """Write the start of all arms, then train it on until it can teach."""
    start(trial)
    model, tokenizer = load_model(trial.start)
    warm(trial, model, tokenizer, count=5000, target=TEACHER, max_steps=3000, check_every=100)
    tokenizer.save_pretrained(trial.start / "teacher")
    model.save_pretrained(trial.start / "teacher")


def settings(trial: Trial, steps: int, **others: Any) -> GRPOConfig:
    """Return the sizes and learning rate of all arms."""
    return GRPOConfig(
        steps=1 if trial.short else steps,
        prompts_per_step=16 if trial.short else PROMPTS,
        group_size=8,
        max_new_tokens=LONGEST,
        learning_rate=3e-4,
        warmup_steps=1,
        seed=trial.seed,
        alarm_patience=0,
        **others,
    )


def by_reward(trial: Trial) -> Outcome:
    """Train by GRPO on right and wrong."""
    return trained(trial, settings(trial, STEPS), looks=4)


def by_teacher(trial: Trial, *, steps: int) -> Outcome:
    """Train by the divergence from the teacher alone: the penalty's reference is the teacher."""
    teacher, _ = load_model(trial.start / "teacher")

    def learner(
        model: Any, tokenizer: Any, _: Any, config: GRPOConfig, folder: Path, **others: Any
    ) -> Learner:
        tasks = training_tasks(TextEnv(sums("train").source, Unscored()), config)
        made = Learner(model, tokenizer, tasks, config, folder, progress=False, **others)
        assert made.reference is not None  # beta is not 0
        made.reference.refresh(teacher)
        return made

    config = settings(trial, steps, beta=1.0, kl="k2")
    return trained(trial, config, ("kl",), kind=learner, looks=4)


def teacher(trial: Trial) -> Outcome:
    """Take the teacher's own pass@1."""
    return Outcome({"pass@1": pass_at_1(*load_model(trial.start / "teacher"), trial)})


STUDY = Study(
    title="On-policy distillation",
    source="arXiv 2306.13649 (GKD), 2505.09388 (Qwen3), 4.5",
    says="A student that is corrected by a teacher on each token of its own replies learns what "
    "reinforcement learning finds out from rewards in a fraction of the rollouts.",
    load=f"{SUMS}; {STEPS} rollouts of {PROMPTS} prompts x 8 replies, one update each, learning "
    "rate 3e-4. The teacher is each seed's own start, trained on 5,000 worked sums until "
    f"{TEACHER:.0%} of its sampled replies are right. The student never sees a reward: each is "
    "0. `kl` is the mean of k2 over the run.",
    tried=(
        "On seeds that do not count: 24 rollouts, at 1e-4 or 3e-4, move neither arm, and 1e-3 "
        "destroys both; k3 with its correction ends as k2 does."
    ),
    equation=(
        r"\mathcal L = \tfrac12 \left(\log\frac{\pi_\theta(o_t)}{\pi_T(o_t)}\right)^2, \quad "
        r"\mathbb E_{\pi_\theta} \nabla \mathcal L = \nabla\, "
        r"\mathrm{KL}(\pi_\theta \,\|\, \pi_T)"
    ),
    claims=(
        Claim(
            "Distillation ends above GRPO after the same rollouts",
            "pass@1",
            arm="distillation",
            than="GRPO",
        ),
        Claim(
            "Distillation with a quarter of the rollouts ends above GRPO with all",
            "pass@1",
            arm="distillation, a quarter",
            than="GRPO",
        ),
    ),
    remark=(
        'The learner needs nothing for it: `beta=1` with `kl="k2"` and rewards of 0 is the whole '
        "objective, once the reference is the teacher. k2's gradient on replies of the policy is "
        "that of the reverse divergence, token by token, without a token's effect on later ones. "
        "Replies of four tokens give a teacher little more to say than right or wrong."
    ),
    arms={
        "GRPO": by_reward,
        "distillation": partial(by_teacher, steps=STEPS),
        "distillation, a quarter": partial(by_teacher, steps=STEPS // 4),
        "teacher": teacher,
    },
    prepare=start_and_teacher,
    presets=(),
)

if __name__ == "__main__":
    run_script(__file__)
