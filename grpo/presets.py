"""Settings under the names of the papers that they are from.

Each preset changes only what its paper says; all else keeps the default of :class:`GRPOConfig`. A
surrogate that differs from PPO's only where the ratio is not 1 would do nothing with one update a
step: where such a paper names no number of minibatches, its preset takes 4, as GSPO's has.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from .config import GRPOConfig


@dataclass(frozen=True, slots=True)
class Preset:
    """The settings of a paper.

    Attributes:
        name: as the command line takes it.
        paper: its arXiv number.
        where: the sections and equations that the values are from, where they are few.
        what: in one line.
        overrides: the fields of :class:`GRPOConfig` that differ from its defaults.
        missing: what the paper does beside, and these settings cannot say.
    """

    name: str
    paper: str
    where: str
    what: str
    overrides: Mapping[str, Any]
    missing: str = ""

    def config(self, **settings: Any) -> GRPOConfig:
        """The settings of a run: the preset's, and over them those given.

        Raises:
            ValueError: they contradict each other, or one is out of its range.
        """
        return GRPOConfig(**{**self.overrides, **settings})


_DAPO = {
    "clip_high": 0.28,
    "mask_truncated": True,
    "group_size": 16,
    "minibatches": 16,
    "max_refills": 9,
}
_R1_ZERO = {
    "loss": "grpo",
    "clip": 1.0,
    "clip_high": 10.0,
    "beta": 0.001,
    "reference_every": 25,
    "learning_rate": 3e-6,
    "prompts_per_step": 512,
    "group_size": 16,
    "minibatches": 16,
    "max_new_tokens": 32768,
}

_ALL = (
    Preset(
        "grpo",
        "2402.03300",
        "eq. 3, 4.1.2",
        "GRPO as DeepSeekMath defines it: each reply's mean over tokens, and k3 in the loss",
        {"loss": "grpo", "beta": 0.04},
        "it does not say which standard deviation: the population's here",
    ),
    Preset(
        "deepseek_math",
        "2402.03300",
        "4.2",
        "the run of DeepSeekMath-RL: 64 replies to each prompt, 1,024 to a step, one update",
        {
            "loss": "grpo",
            "beta": 0.04,
            "prompts_per_step": 16,
            "group_size": 64,
            "max_new_tokens": 1024,
        },
        "its reward is a trained model: `iterative_grpo`; its batch of 1,024 is read as replies",
    ),
    Preset(
        "deepseek_math_process",
        "2402.03300",
        "4.1.3",
        "process supervision: rewards of steps, compared over the group",
        {"loss": "grpo", "beta": 0.04, "advantage": "process"},
        "needs an environment whose turns carry rewards",
    ),
    Preset(
        "r1_zero",
        "2501.12948",
        "version 2, training details",
        "DeepSeek-R1-Zero: 8,192 replies to a rollout, 16 updates, hardly any clip",
        _R1_ZERO,
        "its template is the environment's (`think`); 65,536 tokens after step 8,200; its ratio "
        "is written for replies. Its eps of 10 is clip=1, no lower bound, and clip_high=10; 400 of "
        "its steps, from one reference to the next, are 25 rollouts",
    ),
    Preset(
        "r1",
        "2501.12948",
        "version 2, training details",
        "the last stage of DeepSeek-R1: as R1-Zero, sampled at 0.7",
        {**_R1_ZERO, "temperature": 0.7},
        "the cold start, rejection sampling and reward models of its other stages; preference "
        "rewards in its last 400 steps only",
    ),
    Preset(
        "dr_grpo",
        "2503.20783",
        "3.2",
        "no standard deviation, and one length for all: no bias to easy tasks or long replies",
        {"loss": "dr_grpo", "advantage_std": "none"},
    ),
    Preset(
        "dapo",
        "2503.14476",
        "3.1 to 3.4, 4.1",
        "clip-higher, dynamic sampling, mean over all tokens, cut-off replies masked, 16 updates",
        _DAPO,
        "512 prompts; 20,480 tokens; its penalty for long replies is a verifier, `SoftOverlong`; "
        "it samples until a step is full, here at most ten rollouts",
    ),
    Preset(
        "top_entropy",
        "2506.01939",
        "5.2",
        "DAPO on the fifth of tokens where the policy is least sure (80/20)",
        {**_DAPO, "top_entropy": 0.2},
        "as for `dapo`",
    ),
    Preset(
        "gspo",
        "2507.18071",
        "eq. 7; version 2, 5.1",
        "one ratio for each reply, the geometric mean of its tokens', in 4 updates",
        {"ratio": "sequence", "clip": 3e-4, "clip_high": 4e-4, "loss": "grpo", "minibatches": 4},
    ),
    Preset(
        "gmpo",
        "2507.20673",
        "",
        "the geometric mean of token ratios that are clipped one by one, at e^-0.4 and e^0.4",
        {"surrogate": "gmpo", "clip": 0.4, "loss": "grpo", "minibatches": 4},
    ),
    Preset(
        "cispo",
        "2506.13585",
        "eq. 4",
        "ratios are weights with a cap, so that no token loses its gradient",
        {"surrogate": "cispo", "minibatches": 4},
        "the paper does not say its cap: the default of 5 is TRL's",
    ),
    Preset(
        "sapo",
        "2511.20347",
        "",
        "a soft gate in place of the clip, narrower where the advantage is negative",
        {"surrogate": "sapo", "loss": "grpo", "minibatches": 4},
    ),
    Preset(
        "rloo",
        "2402.14740",
        "",
        "each reply against the mean of the others; the sum over its tokens",
        {"advantage": "leave_one_out", "loss": "dr_grpo"},
        "its KL penalty, of RLHF: set beta, kl_in='reward' and kl='k1'",
    ),
    Preset(
        "reinforce_pp",
        "2501.03262",
        "",
        "REINFORCE++: rewards whitened over the whole batch",
        {"advantage": "reinforce_pp"},
        "one reply to each prompt; its KL penalty: set beta, kl_in='reward' and kl='k1'",
    ),
    Preset(
        "reinforce_pp_baseline",
        "2501.03262",
        "",
        "REINFORCE++ with the group's mean as baseline, then whitened over the batch",
        {"advantage": "reinforce_pp_baseline"},
        "its KL penalty: set beta and kl='k2'",
    ),
    Preset(
        "opo",
        "2505.23585",
        "",
        "the baseline of least variance: the group's mean, weighted by length; one update",
        {"advantage": "opo"},
    ),
    Preset(
        "lite_ppo",
        "2508.08221",
        "",
        "the group's mean, and the standard deviation of the batch; mean over all tokens",
        {"advantage_std": "batch"},
    ),
    Preset(
        "lead",
        "2504.09696",
        "",
        "GRPO-LEAD: rare right replies, and rare wrong ones, weigh more than common ones",
        {
            "advantage_std": "sample",
            "hard_weight": 1.5,
            "easy_weight": 0.4,
            "prompts_per_step": 32,
            "temperature": 0.8,
        },
        "its length reward and penalty are `LeadLength` in the environment; its code's gate (only "
        "where the shortest replies take 4,000 tokens) and its penalty for repetition",
    ),
    Preset(
        "mo_grpo",
        "2509.22047",
        "",
        "several rewards, each compared by itself, then summed",
        {"advantage": "mo_grpo", "loss": "grpo"},
        "needs an environment with named rewards",
    ),
    Preset(
        "gdpo",
        "2601.05242",
        "",
        "the same, whitened over the batch",
        {
            "advantage": "gdpo",
            "advantage_std": "sample",
            "advantage_eps": 1e-4,
        },
        "needs an environment with named rewards",
    ),
)

PRESETS: Mapping[str, Preset] = MappingProxyType({preset.name: preset for preset in _ALL})
