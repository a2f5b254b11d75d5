"""TRL's rollout_func: episodes played by a program with the trainer's own model."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch

from ..envs import Episode, Span, Task
from ..envs.trl.rollout import SPLIT, task_index, token_fields, trainer_generation
from ..envs.turn_tokens import encode_prompt
from .agent_env import AgentEnv
from .engine import EngineError, Sampled, SampleRequest
from .episodes import GatewayConfig, derive_seed
from .policy_engine import cut_reply
from .transformers_engine import TransformersEngine


class AgentRollout:
    """A rollout_func of TRL's GRPOTrainer whose episodes a program plays.

    The trainer's model samples with the trainer's temperature and top_p, each reply of at most
    ``max_completion_length`` tokens. TRL gets what was sampled as ids with log-probabilities, and
    ``env_mask`` leaves all else out of the loss. It takes one sequence for an episode: that of the
    newest conversation, up to ``max_completion_length``; a warning says if there are others.

    The data set is that of ``TRLSpec(..., mode="turns")`` of the same environment, whose reward
    functions take the verdicts of the episodes.

    Args:
        agent: the tasks and the program.
        held_out: the same for the rows of ``eval_dataset``.
        max_turns: replies of an episode.
    """

    def __init__(
        self, agent: AgentEnv, *, held_out: AgentEnv | None = None, max_turns: int = 50
    ) -> None:
        self.agent, self.held_out, self.max_turns, self._calls = agent, held_out, max_turns, 0

    def __call__(self, prompts: Sequence[Sequence[Mapping[str, Any]]], trainer: Any) -> Any:
        """Play an episode for each prompt, and return TRL's lists and ``assay_episode``.

        Raises:
            ValueError: a prompt names no task, or the trainer samples in a way that is not ours.
        """
        self._calls += 1
        seed = derive_seed(trainer.args.seed, trainer.accelerator.process_index, self._calls)
        agent = self.held_out if any(prompt[-1].get(SPLIT) for prompt in prompts) else self.agent
        if agent is None:
            raise ValueError("eval_dataset has rows of another split: give AgentRollout held_out")
        tasks = [agent.env.task(task_index(prompt)) for prompt in prompts]
        args, options = trainer.args, trainer.chat_template_kwargs
        config = GatewayConfig(
            max_tokens=trainer.max_completion_length,
            max_turns=self.max_turns,
            override={"temperature": args.temperature, "top_p": args.top_p},
            chat_template_kwargs=options,
        )
        engine = _engine(trainer)
        training = engine.model.training
        engine.model.eval()  # gradient checkpointing leaves no cache to a model in training
        try:
            groups = agent.play(engine, tasks, 1, config=config, seed=seed)
        finally:
            engine.model.train(training)
            asyncio.run(engine.close())
        episodes = [group.episodes[0] for group in groups]
        if others := sum(bool(e.branches) for e in episodes):
            why = "TRL trains the newest conversation of an episode: others are left out of"
            warnings.warn(f"{why} {others} of {len(episodes)} episodes", stacklevel=2)
        fields = token_fields(
            [_spans(engine, e, task, options) for e, task in zip(episodes, tasks, strict=True)]
        )
        for name in ("completion_ids", "env_mask", "logprobs"):
            fields[name] = [row[: trainer.max_completion_length] for row in fields[name]]
        return {**fields, "assay_episode": [replace(e, spans=(), branches=()) for e in episodes]}


class _GenerationEngine(TransformersEngine):
    """Sample by the trainer's own generation, which is vLLM's."""

    def __init__(self, trainer: Any, model: Any, tokenizer: Any) -> None:
        self._trainer = trainer
        super().__init__(model, tokenizer)

    @torch.no_grad()
    def draw(self, requests: Sequence[SampleRequest]) -> list[Sampled]:
        """Sample replies side by side, by the settings of the trainer alone."""
        prompts = [list(request.prompt) for request in requests]
        ids, logprobs = trainer_generation(self._trainer)(prompts, None, {}, 1)
        if logprobs is None:
            raise EngineError("the trainer's generation gives no log-probabilities")
        ended = set(self._trainer.eos_token_ids)
        found = []
        for request, reply, of_reply in zip(requests, ids, logprobs, strict=True):
            sampled = Sampled(reply, of_reply, "stop" if reply[-1] in ended else "length")
            found.append(cut_reply(sampled, request, self.tokenizer))
        return found


def _engine(trainer: Any) -> TransformersEngine:
    """Return what samples from the trainer's model."""
    args = trainer.args
    tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
    model = trainer.accelerator.unwrap_model(trainer.model)
    if trainer.use_vllm:
        if trainer.accelerator.num_processes > 1:
            raise ValueError("programs play with vLLM in one process: its processes wait in step")
        return _GenerationEngine(trainer, model, tokenizer)
    if args.top_k or args.min_p or args.repetition_penalty != 1 or args.generation_kwargs:
        raise ValueError(
            "programs are sampled for by temperature and top_p: leave top_k at 0, min_p at None, "
            "repetition_penalty at 1.0 and generation_kwargs at None"
        )
    return TransformersEngine(model, tokenizer)


def _spans(
    engine: TransformersEngine, episode: Episode, task: Task, options: Mapping[str, Any]
) -> Sequence[Span]:
    """Return an episode's tokens; one that is not the model's, if it has none."""
    if episode.spans:
        return episode.spans
    prompt = encode_prompt(engine.tokenizer, [dict(m) for m in task.messages], options)
    end = (engine.tokenizer.eos_token_id or 0,)
    return Span("environment", tuple(prompt)), Span("environment", end)
