"""Flow-GRPO: a flow explores by an SDE in few steps, and is used by its ODE in many."""

from assay.family._rings import base, finished, start, trained
from assay.family_cli import run_script
from assay.grpo import FlowPolicy, UnitConfig
from assay.study import Arm, Outcome, Study, Trial

STEPS = 300


def arm(denoising: int, beta: float) -> Arm:
    """Train with so many denoising steps, and so much of a KL penalty."""

    def train(trial: Trial) -> Outcome:
        policy = FlowPolicy(base(trial), (2,), steps=denoising)
        config = UnitConfig(
            steps=3 if trial.short else STEPS,
            prompts_per_step=8,
            group_size=24,
            learning_rate=3e-4,
            advantage_std="batch",
            advantage_eps=1e-4,
            beta=beta,
            seed=trial.seed,
        )
        return trained(trial, policy, config)

    return train


STUDY = Study(
    title="Flow-GRPO on a ring",
    source="Liu et al., arXiv 2505.05470",
    claim="",
    protocol="p.",
    verdict="",
    arms={
        "base": lambda trial: finished(base(trial), trial),
        "T=10": arm(10, 0.0),
        "T=10, KL .004": arm(10, 0.004),
        "T=10, KL .04": arm(10, 0.04),
        "T=40": arm(40, 0.0),
        "T=40, KL .004": arm(40, 0.004),
    },
    prepare=start,
)

if __name__ == "__main__":
    run_script(__file__)
