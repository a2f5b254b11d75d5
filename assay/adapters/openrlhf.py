"""OpenRLHF: an environment as its reward function, and its tasks as its JSONL rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from ..envs import TextEnv
from ..verifiers import Status
from .judging import (
    Judge,
    decode_reference,
    encode_reference,
    judge_replies,
    tasks_to_write,
    verifier_of,
    write_rows,
)


class OpenRLHFReward:
    """A ``reward_func`` of OpenRLHF's. Make one with :func:`openrlhf_reward`."""

    def __init__(self, judge: Judge, retries: int, ends: Sequence[str]) -> None:
        self.verifier, self.retries, self.ends = verifier_of(judge), retries, tuple(ends)
        if isinstance(ends, str) or not all(self.ends):
            raise ValueError(f"ends must be tokens that end a reply, got {ends!r}: give a list")
        self.__name__ = "reward_func"

    def __call__(
        self, queries: Sequence[str], prompts: Sequence[str], labels: Sequence[str], **_: Any
    ) -> dict[str, Any]:
        """Judge replies.

        Args:
            queries: prompt and reply in one text, special tokens and all.
            prompts: the prompts alone.
            labels: the references, as :func:`to_openrlhf` writes them.

        Returns:
            ``rewards`` and ``scores``, float32 [B]; and ``extra_logs``: ``acc`` and
            ``unparseable``, float32 [B].

        Raises:
            RewardFault: an infrastructure failure left a reply without a score.
            ValueError: a query does not hold its prompt, or a label is no JSON.
        """
        import torch

        replies = [
            without_ends(reply_of(query, prompt), self.ends)
            for query, prompt in zip(queries, prompts, strict=True)
        ]
        references = [decode_reference("label", label) for label in labels]
        verdicts = judge_replies(self.verifier, replies, references, retries=self.retries)
        rewards = torch.tensor([v.score for v in verdicts], dtype=torch.float32)

        def share(status: Status) -> torch.Tensor:
            return torch.tensor([v.status is status for v in verdicts], dtype=torch.float32)

        return {
            "rewards": rewards,
            "scores": rewards.clone(),
            "extra_logs": {"acc": share(Status.CORRECT), "unparseable": share(Status.UNPARSEABLE)},
        }


def reply_of(query: str, prompt: str) -> str:
    """Return the reply alone: what follows the prompt, which may begin with a special token.

    Raises:
        ValueError: the prompt is not there. Judging the query whole would pay for an answer that
            stands in the question.
    """
    at = query.find(prompt)
    if at < 0:
        raise ValueError(
            f"the query does not hold its prompt {prompt!r:.80}, so where the reply begins is not "
            "known: OpenRLHF cut the prompt, or the tokenizer changes its text. Raise the longest "
            "prompt (data.max_len), or leave out such rows"
        )
    return query[at + len(prompt) :]


ENDS = (
    "<|im_end|>",
    "<|endoftext|>",
    "</s>",
    "<eos>",
    "<pad>",
    "<end_of_turn>",
    "<|eot_id|>",
    "<|end_of_text|>",
    "<|end|>",
    "<|return|>",
    "<\uff5cend\u2581of\u2581sentence\uff5c>",
)
"""Tokens by which common chat models end a reply, and with which it is padded."""


def without_ends(reply: str, ends: Sequence[str]) -> str:
    r"""Remove the special tokens that OpenRLHF leaves at the end of a reply.

    ``Paris<|im_end|>`` is not equal to ``Paris``.

    Example:
        >>> without_ends("Paris<|im_end|>\n<|endoftext|>", ENDS)
        'Paris'
    """
    kept, at = len(reply), len(reply.rstrip())
    while end := next((end for end in ends if reply.endswith(end, 0, at)), ""):
        kept = at = at - len(end)
        while at and reply[at - 1].isspace():
            at -= 1
    return reply[:kept]


def openrlhf_reward(
    judge: Judge, *, retries: int = 2, ends: Sequence[str] = ENDS
) -> OpenRLHFReward:
    """Make a reward function for the file that OpenRLHF's ``--reward.remote_url FILE.py`` names.

    OpenRLHF has no word for "no score". A reply that is not judged is judged again, ``retries``
    times, and then raises: OpenRLHF logs "Failed to fetch reward", then fails when it
    joins the batch's rewards. NaN would corrupt the group silently.

    Args:
        judge: an environment of one turn, or a verifier.
        retries: further tries for a reply that an infrastructure failure left without a score.
        ends: special tokens to take off the end of a reply, which OpenRLHF does not; name the
            tokenizer's ``eos_token`` and ``pad_token`` if they are not among them.

    Raises:
        ValueError: the environment plays more than one reply.

    Example:
        >>> from assay import Exact
        >>> reward_func = openrlhf_reward(Exact())
        >>> reply_of("<s>Capital of France?Paris", "Capital of France?")
        'Paris'
    """
    return OpenRLHFReward(judge, retries, ends)


def to_openrlhf(env: TextEnv, path: str | Path, **options: Any) -> int:
    """Write tasks as the JSONL file that OpenRLHF's ``--data.prompt_dataset`` names.

    Rows are ``prompt`` (messages), ``label`` and ``datasource``: give ``--data.input_key prompt
    --data.label_key label --data.apply_chat_template``.

    Args:
        env: an environment of one turn.
        path: of the file.
        **options: ``size``, ``seed``, ``split``, ``allow_test_split`` and ``allow_sample`` of
            :func:`~assay.adapters.to_verl`.

    Returns:
        The number of rows.

    Raises:
        ValueError: the environment is not of one turn, its tasks never end and there is no
            ``size``, its tasks are not for the split, or a reference cannot be used.
    """
    rows = [
        {
            "prompt": [dict(message) for message in task.messages],
            "label": encode_reference(task.reference),
            "datasource": env.name,
        }
        for _, task in tasks_to_write(env, **options)
    ]
    return write_rows(path, rows)
