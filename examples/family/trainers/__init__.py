"""What GRPO is compared with, on the same rows and forwards: SFT, RFT, DPO, PPO, reward models."""

from .critic import Critic, gae, value_loss
from .dpo import PreferencePair, dpo, dpo_loss, preference_pairs
from .fit import FitConfig
from .iterative import Round, iterative_grpo
from .ppo import PPOConfig, PPOLearner
from .reward_model import Label, TrainableRewardModel, labels_of, replayed, version_of
from .stages import Finished, Stage, fingerprints, run_stages
from .supervised import WarmStart, accepted_replies, rft, sft, warm_start

__all__ = [
    "Critic",
    "Finished",
    "FitConfig",
    "Label",
    "PPOConfig",
    "PPOLearner",
    "PreferencePair",
    "Round",
    "Stage",
    "TrainableRewardModel",
    "WarmStart",
    "accepted_replies",
    "dpo",
    "dpo_loss",
    "fingerprints",
    "gae",
    "iterative_grpo",
    "labels_of",
    "preference_pairs",
    "replayed",
    "rft",
    "run_stages",
    "sft",
    "value_loss",
    "version_of",
    "warm_start",
]
