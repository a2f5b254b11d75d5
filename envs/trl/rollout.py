"""TRL's rollout_func: episodes of several turns, played with the trainer's own model."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..episode import Span
from ..policy import Completion
from ..state import State
from ..text_env import TextEnv
from ..turn_tokens import extend_prompt
from .portable import Portable

TASK, SPLIT = "assay_task", "assay_split"
"""Keys of a prompt's last message. TRL hands nothing but prompts to a rollout_func."""


class EnvironmentRollout:
    """A rollout_func of TRL's that plays an environment's episodes.

    The trainer's model takes the turns, in whatever way the trainer generates. An episode's
    tokens are those that it sampled and, between its turns, the environment's: TRL leaves
    the latter out of the loss. ``max_completion_length`` is for an episode as a whole.

    It pickles as the environment's id and arguments.
    """

    def __init__(self, environment: Portable) -> None:
        self.environment = environment

    def __call__(self, prompts: Sequence[Sequence[Mapping[str, Any]]], trainer: Any) -> Any:
        """Play an episode for each prompt.

        Args:
            prompts: TRL's, each as often as it is to be played.
            trainer: TRL's GRPOTrainer.

        Returns:
            A dict of lists, one item for each prompt: ``prompt_ids``, ``completion_ids``,
            ``logprobs`` (``None`` as a whole if the trainer's generation gives none),
            ``env_mask`` (1 if the model wrote the token) and, for the reward functions,
            ``assay_episode``: an :class:`~assay.envs.Episode`, judged, without its tokens.

        Raises:
            ValueError: a prompt names no task, or prompts of two splits are mixed.
        """
        env = self.environment.at(_split(prompts))
        states = [env.begin(env.task(task_index(prompt))) for prompt in prompts]
        player, going = _Player(trainer), states
        while player.anyone(going):
            player.turn(env, going)
            going = [state for state in going if not state.ended]
        verdicts = env.verdicts(states)
        episodes = [state.episode(v) for state, v in zip(states, verdicts, strict=True)]
        return {
            **token_fields([s.spans for s in states], logprobs=player.gives_logprobs),
            "assay_episode": [replace(episode, spans=()) for episode in episodes],
        }


class _Player:
    """Play turns with a trainer's model."""

    def __init__(self, trainer: Any) -> None:
        self.trainer = trainer
        # Of models that see images the tokenizer is a part.
        self.tokenizer = getattr(trainer.processing_class, "tokenizer", trainer.processing_class)
        self.gives_logprobs = True
        self._stand_in: list[int] = []

    def anyone(self, going: Sequence[State]) -> bool:
        """Return whether an episode is in progress in this or another process of the training."""
        if self.trainer.accelerator.num_processes == 1:
            return bool(going)
        from accelerate.utils import gather_object

        return any(gather_object([len(going)]))

    def turn(self, env: TextEnv, going: Sequence[State]) -> None:
        """Take one turn in each episode; one without room is truncated."""
        options = self.trainer.chat_template_kwargs
        states, prompts, rooms = [], [], []
        for state in going:
            ids = extend_prompt(self.tokenizer, state.messages, state.ids, options)
            room = self._room(state, ids)
            if room > 0:
                states.append(state)
                prompts.append(ids)
                rooms.append(room)
            elif state.spans:
                state.ended = "truncated"
            else:
                raise ValueError(
                    f"the prompt of {state.task.id!r} has {len(ids)} tokens, which leaves no room "
                    f"for a reply in the model's {self._context()}: leave such tasks out"
                )
        env.advance(states, self._completions(prompts, rooms))

    def _completions(self, prompts: Sequence[list[int]], rooms: Sequence[int]) -> list[Completion]:
        self._stand_in = prompts[0] if prompts else self._stand_in
        # Where models are sharded all processes generate together, those that are done as well.
        asked = list(prompts) or [self._stand_in]
        written, logprobs = trainer_generation(self.trainer)(asked, None, {}, 1)
        self.gives_logprobs = logprobs is not None
        ended = set(self.trainer.eos_token_ids)
        found = []
        for i, (prompt, room) in enumerate(zip(prompts, rooms, strict=True)):
            ids = list(written[i])[:room]
            text = self.tokenizer.decode(ids, skip_special_tokens=True)
            of_ids = logprobs[i][:room] if logprobs is not None else [None] * len(ids)
            found.append(
                Completion(
                    text,
                    "stop" if ids and ids[-1] in ended else "length",
                    tuple(prompt),
                    tuple(ids),
                    tuple(math.nan if p is None else p for p in of_ids),
                )
            )
        return found

    def _room(self, state: State, ids: Sequence[int]) -> int:
        """Return how many tokens the next turn may have."""
        before = len(state.spans[0].ids) if state.spans else len(ids)
        room: int = self.trainer.max_completion_length - (len(ids) - before)
        context = self._context()
        return room if context is None else min(room, context - len(ids))

    def _context(self) -> int | None:
        """Return the model's context length, if known."""
        trainer = self.trainer
        if trainer.use_vllm and trainer.vllm_mode == "colocate":
            served = trainer.vllm_generation.llm.llm_engine.model_config
            return int(served.max_model_len)
        config = trainer.accelerator.unwrap_model(trainer.model).config.get_text_config()
        return getattr(config, "max_position_embeddings", None)


def trainer_generation(trainer: Any) -> Callable[..., Any]:
    """Return the trainer's own generation (transformers or vLLM), from tokens to tokens."""
    found: Callable[..., Any] | None = getattr(trainer, "_generate_single_turn", None)
    if found is None:
        raise RuntimeError(
            f"{type(trainer).__name__} has no _generate_single_turn, by which TRL 1.16's "
            "GRPOTrainer generates: this version of TRL is not known, install trl 1.16"
        )
    return found


def task_index(prompt: Sequence[Mapping[str, Any]]) -> int:
    """Return the task that a prompt of TRLSpec's data set names.

    Raises:
        ValueError: it names none.
    """
    task = prompt[-1].get(TASK) if isinstance(prompt[-1], Mapping) else None
    if task is None:
        raise ValueError(
            f"a prompt's last message names its task as {TASK!r}, which is missing from "
            f"{prompt[-1]!r:.200}: train on the data set of the TRLSpec that this rollout is of"
        )
    return int(task)


def _split(prompts: Sequence[Sequence[Mapping[str, Any]]]) -> str | None:
    splits = {prompt[-1].get(SPLIT) for prompt in prompts if task_index(prompt) >= 0}
    if len(splits) != 1:
        raise ValueError(f"the prompts of a call are of one split, got {sorted(map(str, splits))}")
    return splits.pop()


def token_fields(episodes: Sequence[Sequence[Span]], *, logprobs: bool = True) -> dict[str, Any]:
    """Return TRL's lists: the prompts, and all tokens after them with their origin."""
    later = [spans[1:] for spans in episodes]
    return {
        "prompt_ids": [list(spans[0].ids) for spans in episodes],
        "completion_ids": [[i for span in spans for i in span.ids] for spans in later],
        "env_mask": [
            [int(span.author == "model") for span in spans for _ in span.ids] for spans in later
        ],
        "logprobs": [
            [p for span in spans for p in (span.logprobs or [0.0] * len(span.ids))]
            for spans in later
        ]
        if logprobs
        else None,
    }
