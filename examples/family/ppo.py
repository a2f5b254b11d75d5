"""GRPO and PPO with a critic: at the same prompts, and at the same number of replies."""

from functools import partial
from typing import Any

from assay.family._sums import LONGEST, SUMS, start, trained
from assay.family.trainers import PPOConfig, PPOLearner
from assay.family_cli import run_script
from assay.grpo import GRPOConfig
from assay.study import Claim, Outcome, Study, Trial

STEPS = 60
REPLIES = 512  # of a step


def common(trial: Trial) -> dict[str, Any]:
    """Return the settings of all arms."""
    return {
        "steps": 2 if trial.short else STEPS,
        "learning_rate": 3e-4,
        "max_new_tokens": LONGEST,
        "seed": trial.seed,
    }


def grpo(trial: Trial) -> Outcome:
    """64 prompts of 8 replies."""
    settings = common(trial) | {"prompts_per_step": REPLIES // 8, "group_size": 8}
    config = GRPOConfig(**settings, alarm_patience=0)
    return trained(trial, config)


def ppo(trial: Trial, *, group_size: int, lam: float = 1.0) -> Outcome:
    """Train by PPO on the same number of replies; a critic needs no groups."""
    config = PPOConfig(
        **common(trial),
        prompts_per_step=REPLIES // group_size,
        group_size=group_size,
        lam=lam,
        critic_learning_rate=1e-3,
    )
    return trained(trial, config, ("value/explained_variance",), kind=PPOLearner)


STUDY = Study(
    title="PPO with a critic",
    source="Schulman et al., arXiv 1707.06347; DeepSeek-R1, arXiv 2501.12948 version 2, appendix "
    "A.3",
    says="GRPO does without a critic, which saves its memory and time. With lambda = .95 PPO is "
    "clearly worse than GRPO, with lambda = 1 it nearly ties (DeepSeek-R1). (DeepSeekMath itself "
    "compares with no PPO.)",
    load=f"{SUMS}; {STEPS} steps of {REPLIES} replies, one update each, learning rate 3e-4 and "
    "1e-3 for the critic, GAE with gamma = 1, clipped values, whitened advantages. Groups of 1: "
    "PPO's own protocol, as many replies on eight times as many prompts. Memory: `python "
    "benchmarks/ppo_memory.py`.",
    tried=(
        "A weaker start (900 worked sums; right in .26 of its replies on average, in .16 with "
        "seed 7), with seeds 0 to 2: the arms with groups of 8 ended at .35 to .36, groups of 1 "
        "at .44. 120 steps of 256 replies, and 80 steps, were given up before any result."
    ),
    equation=(
        r"\hat A_t = \sum_{l \ge 0} (\gamma\lambda)^l \bigl(r_{t+l} + \gamma V_{t+l+1} - "
        r"V_{t+l}\bigr)"
    ),
    claims=(
        Claim(
            "At the same prompts GRPO ends within .05 of PPO",
            "pass@1",
            arm="GRPO, 64 x 8",
            than="PPO, 64 x 8",
            margin=-0.05,
        ),
        Claim(
            "GRPO takes at most two thirds of PPO's CPU time at the same prompts",
            "CPU s",
            arm="GRPO, 64 x 8",
            than="PPO, 64 x 8",
            higher=False,
            ratio=True,
            margin=1.5,
        ),
        Claim(
            "PPO with lambda .95 is worse than GRPO",
            "pass@1",
            arm="GRPO, 64 x 8",
            than="PPO, 64 x 8, lambda .95",
        ),
        Claim(
            "PPO on eight times as many prompts, with as many replies, ends above GRPO",
            "pass@1",
            arm="PPO, 512 x 1",
            than="GRPO, 64 x 8",
        ),
    ),
    remark=(
        "The critic buys nothing at the same prompts. But PPO needs no groups: half the cost "
        "holds at matched prompts and not in general. The claim about lambda is about long "
        "replies, where a reward at the end hardly reaches the beginning; these have six "
        "tokens at most."
    ),
    arms={
        "GRPO, 64 x 8": grpo,
        "PPO, 64 x 8": partial(ppo, group_size=8),
        "PPO, 64 x 8, lambda .95": partial(ppo, group_size=8, lam=0.95),
        "PPO, 512 x 1": partial(ppo, group_size=1),
    },
    prepare=start,
)

if __name__ == "__main__":
    run_script(__file__)
