"""verl's agent loop: a reply without a score is masked out of the gradient and of its group."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..verifiers import Status, Verdict
from .judging import Judge, RewardFault, by_name, decode_reference, verifier_named

if TYPE_CHECKING:
    from torch import Tensor

ESTIMATOR = "assay_grpo"


def verl_agent_loop(judges: Judge | Mapping[str, Judge], *, base: type | None = None) -> type:
    """Make an agent loop of verl's that judges its reply, and register ``assay_grpo``.

    A reply without a score gets a response mask of zeros, so it has no gradient; the advantage
    estimator ``assay_grpo`` (verl's ``grpo`` over the other replies of its group) leaves it out of
    the group's mean and deviation. Name the class in the file of
    ``actor_rollout_ref.rollout.agent.agent_loop_config_path``, set
    ``algorithm.adv_estimator=assay_grpo``, and import the module in every process by
    ``VERL_USE_EXTERNAL_MODULES``.

    Args:
        judges: an environment of one turn or a verifier; or several, by ``data_source``.
        base: the agent loop that writes the reply; verl's ``SingleTurnAgentLoop`` by default.

    Raises:
        ValueError: an environment plays more than one reply.
        ImportError: verl is missing.
    """
    from verl.experimental.agent_loop.single_turn_agent_loop import SingleTurnAgentLoop
    from verl.trainer.ppo.core_algos import ADV_ESTIMATOR_REGISTRY

    ADV_ESTIMATOR_REGISTRY[ESTIMATOR] = masked_grpo
    known = by_name(judges)
    writer: Any = base or SingleTurnAgentLoop

    class AssayAgentLoop(writer):  # type: ignore[misc]  # verl ships no types
        """Write a reply as the base does, and judge it."""

        async def run(self, sampling_params: dict[str, Any], **row: Any) -> Any:
            """Write and judge one reply."""
            output = await super().run(sampling_params, **row)
            reply = self.tokenizer.decode(output.response_ids, skip_special_tokens=True)
            judge = verifier_named(known, str(row.get("data_source")))
            reference = decode_reference("ground_truth", row["reward_model"]["ground_truth"])
            verdict = await asyncio.to_thread(judge.verify, reply, reference)
            return scored(output, verdict)

    return AssayAgentLoop


def scored(output: Any, verdict: Verdict) -> Any:
    """Set the reward of verl's ``AgentLoopOutput``; without a score, mask every token instead."""
    output.reward_score = 0.0 if verdict.score is None else float(verdict.score)
    if verdict.score is None:
        output.response_mask = [0] * len(output.response_mask)
    output.extra_fields["reward_extra_info"] = {
        "acc": float(verdict.status is Status.CORRECT),
        "status": verdict.status.value,
        "no_score": float(verdict.score is None),
    }
    return output


def masked_grpo(
    token_level_rewards: Tensor, response_mask: Tensor, index: Any, config: Any = None, **_: Any
) -> tuple[Tensor, Tensor]:
    """Compute verl's GRPO advantages over the replies that have a token to train on.

    Args:
        token_level_rewards: [B, T].
        response_mask: [B, T]; all zeros for a reply without a score.
        index: the group of each reply, [B].
        config: verl's ``algorithm``; ``norm_adv_by_std_in_grpo`` is read.

    Returns:
        The advantages twice, [B, T]: 0 for replies without a score, and for one that is alone in
        its group because the others have none.

    Raises:
        RewardFault: no reply of the batch has a score.
    """
    import torch
    from verl.trainer.ppo.core_algos import compute_grpo_outcome_advantage

    kept = [i for i, some in enumerate(response_mask.bool().any(dim=1).tolist()) if some]
    if not kept:
        raise RewardFault("no reply of the batch has a score: see status in verl's log")
    groups = [index[i] for i in range(len(index))]
    advantages, _same = compute_grpo_outcome_advantage(
        token_level_rewards=token_level_rewards[kept],
        response_mask=response_mask[kept],
        index=index[kept],
        norm_adv_by_std_in_grpo=True if config is None else config.norm_adv_by_std_in_grpo,
    )
    left = [groups[i] for i in kept]
    for place, i in enumerate(kept):
        if left.count(groups[i]) == 1 < groups.count(groups[i]):
            advantages[place] = 0.0  # verl takes the reward itself as the advantage of a lone reply
    found = torch.zeros_like(token_level_rewards)
    found[kept] = advantages.to(found.dtype)
    return found, found
