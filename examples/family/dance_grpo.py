"""DanceGRPO: constant noise, one start for a group, some of the steps, and a reward of 0 or 1."""

from assay.family._ring_picture import BY_CALLS, ring_picture
from assay.family._rings import base, binary, graded, start, trained
from assay.family.units import ConstantNoise, FlowNoise, FlowPolicy, Scorer, UnitConfig
from assay.family_cli import run_script
from assay.study import Arm, Outcome, Study, Trial

STEPS, DENOISING = 200, 16


def arm(
    noise: ConstantNoise | FlowNoise = ConstantNoise(0.3),  # noqa: B008  # frozen
    *,
    shared: bool = True,
    share: float = 0.6,
    scorer: Scorer = binary,
) -> Arm:
    """Train as DanceGRPO does, but for these."""

    def train(trial: Trial) -> Outcome:
        policy = FlowPolicy(
            base(trial),
            (2,),
            steps=DENOISING,
            noise=noise,
            shared_noise=shared,
            trained_share=share,
        )
        config = UnitConfig(
            steps=3 if trial.short else STEPS,
            prompts_per_step=16,
            group_size=12,
            learning_rate=3e-4,
            advantage_std="sample",
            advantage_eps=1e-8,
            seed=trial.seed,
        )
        return trained(trial, policy, config, scorer=scorer)

    return train


STUDY = Study(
    title="DanceGRPO on a ring",
    source="Xue et al., arXiv 2505.07818",
    claim="An SDE of constant noise makes GRPO work for flows and diffusion models; a group begins "
    "with one noise, a random 60 % of the steps are enough to train on, and a reward of 0 or 1 is "
    "enough to learn from.",
    protocol=f"The ring and the base model of flow_grpo. {STEPS} steps of 16 prompts x 12 samples, "
    f"{DENOISING} denoising steps of which the last is never trained on, eta = 0.3, one update, "
    "the group's standard deviation, advantages within 5, no KL penalty, AdamW at 3e-4: fixed "
    "beforehand; each arm changes what its name says. Judged by 4,000 samples of the ODE in 40 "
    "steps.",
    verdict="Reproduced: from a reward of 0 or 1 the accuracy rises from .57 to .972 at least, "
    "as far as from one that tells how near a sample is (which draws spots of half the width). "
    "Six of ten steps, drawn at random, are almost enough: training on all of them ended .003 to "
    ".009 higher, step for step it was ahead, and at equal network calls it was not. One noise "
    "for a group changes accuracy by less than the seeds do; but four groups in ten then agree "
    "from the start, so that they teach nothing, against none with a noise for each sample. The "
    "larger noise of Flow-GRPO at the start of the path makes up for that: with it, all else the "
    "same, fewer calls to 95 % in every seed (.56 million against .76).",
    arms={
        "DanceGRPO": arm(),
        "own noise each": arm(shared=False),
        "all steps": arm(share=1.0),
        "graded reward": arm(scorer=graded),
        "Flow-GRPO's SDE": arm(FlowNoise(0.7)),
    },
    prepare=start,
    columns=(
        "accuracy",
        "accuracy by SDE",
        "width",
        "zero-variance share",
        "million calls",
        "of these to .95",
    ),
    draw=ring_picture(
        ("DanceGRPO", "graded reward", "Flow-GRPO's SDE"),
        ("accuracy", BY_CALLS, "zero-variance share"),
    ),
)

if __name__ == "__main__":
    run_script(__file__)
