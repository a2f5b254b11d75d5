"""GRPO with outcome supervision: a reply is compared with the others to its prompt."""

from assay.family._sums import LONGEST, start, trained
from assay.family_cli import run_script
from assay.grpo import PRESETS, GRPOConfig
from assay.study import Arm, Outcome, Study, Trial

STEPS = 150


def arm(**settings: object) -> Arm:
    """Train with the settings of the paper's equation, but for these."""

    def train(trial: Trial) -> Outcome:
        config: GRPOConfig = PRESETS["grpo"].config(
            steps=3 if trial.short else STEPS,
            prompts_per_step=16,
            group_size=8,
            max_new_tokens=LONGEST,
            learning_rate=3e-4,
            seed=trial.seed,
            alarm_patience=0,
            **settings,
        )
        return trained(trial, config)

    return train


STUDY = Study(
    title="GRPO, outcome supervision (DeepSeekMath)",
    source="Shao et al., arXiv 2402.03300",
    claim="Comparing each reply's reward with its group's mean and standard deviation replaces "
    "the critic. Groups whose rewards are all equal teach nothing.",
    protocol=f"Sums of two numbers below 100 in characters; a model of 0.4 million parameters, "
    f"warm-started until 3 of 10 replies are right; {STEPS} steps of 16 prompts x 8 replies, one "
    "update each; pass@1 of sampled replies to 500 held-out sums.",
    verdict="",
    arms={
        "GRPO (eq. 3, beta .04)": arm(),
        "no KL penalty": arm(beta=0.0),
        "no division by the std": arm(beta=0.0, advantage_std="none"),
    },
    prepare=start,
    presets=("grpo", "deepseek_math"),
)

if __name__ == "__main__":
    run_script(__file__)
