"""Names that have left ``assay.grpo``, and where they are; both work for one version."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

_TABLE = """
    assay.family.trainers: Critic Finished FitConfig Label PPOConfig PPOLearner PreferencePair
        Round Stage TrainableRewardModel WarmStart accepted_replies dpo dpo_loss fingerprints
        gae iterative_grpo labels_of preference_pairs replayed rft run_stages sft value_loss
        version_of warm_start
    assay.family.units: BranchingPolicy CloningEnv ConstantNoise Credit CriticCredit FlowNoise
        FlowPolicy Scorer UnitConfig UnitLearner UnitPolicy Units clamped gae_estimate
        gaussian_kl gaussian_logprob hybrid_advantages hybrid_estimate matching_loss
        outcome_credit state_credit step_mean time_grid
    assay.grpo.checkpoint: CheckpointWarning DamagedCheckpoint load_checkpoint save_checkpoint
    assay.run_report.history: History read_history
    assay.grpo.log: MetricsLog sample_groups
    assay.grpo.presets: Preset
    assay.grpo.reference: Reference
    assay.grpo.tasks: Rollout SampledTasks Score
    assay.grpo.sampler: Sample choose_decoder
    assay.grpo.draw: StopStrings
    assay.grpo.guards: TrainingAlarm
    assay.grpo.records: WatchWarning
    assay.grpo.loss: average_tokens count k3 kl_estimate merge_sums mismatch_weights
        penalised_rewards policy_sums top_entropy_mask
    assay.grpo.loading: character_tokenizer
    assay.grpo.advantage: difficulty_weights gdpo group_advantages leave_one_out mo_grpo opo
        outcome_advantages process_advantages reinforce_pp whiten
    assay.grpo.logprobs: full_forward padded_forward shared_forward
    assay.grpo.batch: micro_batches row_of
    assay.envs: pass_at_k
    assay.run_report.plot: plot_learning_curve
    assay.verifiers.visible: visible
    assay.run_report.report: write_report
"""
MOVED: dict[str, str] = {}
for _word in _TABLE.split():
    if _word.endswith(":"):
        _place = _word[:-1]
    else:
        MOVED[_word] = _place


def find_moved(name: str) -> Any:
    """Import a name from where it is now, with a ``DeprecationWarning`` that says where.

    Raises:
        AttributeError: it has never been in ``assay.grpo``.
    """
    if name not in MOVED:
        raise AttributeError(f"module 'assay.grpo' has no attribute {name!r}")
    place = MOVED[name]
    warnings.warn(
        f"assay.grpo.{name} has moved: from {place} import {name}",
        DeprecationWarning,
        stacklevel=3,
    )
    return getattr(importlib.import_module(place), name)
