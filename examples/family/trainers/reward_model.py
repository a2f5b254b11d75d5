"""A reward model that is trained while it judges: versions, each with what it learnt from."""

from __future__ import annotations

import copy
import json
import random
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Self

import torch
from torch.nn.functional import binary_cross_entropy_with_logits
from transformers import AutoModelForSequenceClassification

from assay.envs import EpisodeGroup, Message
from assay.grpo import derive_seed, load_model
from assay.verifiers import RewardModel, Verdict
from assay.verifiers.atomic_io import write_directory
from assay.verifiers.judges.reward_model import of_equal_length

from .fit import FitConfig, Metrics, fit

_FILE = "reward_model.json"
_STAMP = re.compile(r"reward model version (\d+): ")


@dataclass(frozen=True, slots=True)
class Label:
    """What a reply to a conversation is worth, in [0, 1]: an example for a reward model."""

    messages: tuple[Message, ...]
    reply: str
    score: float

    def __post_init__(self) -> None:
        if not 0.0 <= self.score <= 1.0:
            raise ValueError(
                f"a label's score must be in [0, 1], got {self.score!r}: rescale rewards that "
                "have another range"
            )

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {**asdict(self), "messages": [dict(m) for m in self.messages]}

    @classmethod
    def from_json(cls, row: Mapping[str, Any]) -> Self:
        """Invert :meth:`to_json`."""
        return cls(tuple(dict(m) for m in row["messages"]), row["reply"], row["score"])


def labels_of(groups: Iterable[EpisodeGroup]) -> list[Label]:
    """Return one label of each judged episode; those without a reward are left out.

    Raises:
        ValueError: an episode has several turns, of which a reward model sees one.
    """
    found = []
    for group in groups:
        for episode in group.episodes:
            if episode.reward is None:
                continue
            if len(episode.turns) != 1:
                raise ValueError(
                    f"an episode of task {episode.task_id!r} has {len(episode.turns)} turns, and a "
                    "reward model learns from a prompt and one reply: label episodes of one turn"
                )
            found.append(Label(group.task.messages, episode.completion, episode.reward))
    return found


def replayed(
    new: Sequence[Label], history: Sequence[Label], share: float, *, seed: int
) -> list[Label]:
    """Return what a round learns from: new labels, and old ones drawn from all earlier rounds.

    "10% of historical data" (DeepSeekMath, arXiv 2402.03300, 4.1.4) does not say of what. Here it
    is a tenth of the number of new labels, ``round(share * len(new))``, drawn without replacement
    from the pooled history; all of the history if it has fewer.
    """
    if not share >= 0:
        raise ValueError(f"replay must be a share of the new labels, 0 or more, got {share!r}")
    count = min(len(history), round(share * len(new)))
    return [*new, *random.Random(seed).sample(list(history), count)]  # noqa: S311  # no secret


class TrainableRewardModel(RewardModel):
    """A :class:`~assay.verifiers.RewardModel` that can be fitted to labels, in versions.

    A version never changes: :meth:`fit` writes the next one into a folder of its own. So a copy in
    another process judges as this one does, and nothing remembers the scores of another version.
    Every verdict's reason begins with the version that gave it (:func:`version_of` reads it), and
    so do a rubric's, where this is its gate or its first part that is weighed.

    Args:
        model: a folder that :meth:`begin` or :meth:`fit` has written, or any sequence classifier
            with one output, which is version 0. The score is the sigmoid of its logit.
        thoughts: show the thought too.
        longest: tokens of conversation and reply; see RewardModel.
        batch: replies at a time. Their order decides which are batched, and so the last bits.
        device: where the model runs.
        dtype: of its weights.

    Attributes:
        version: fits so far, from the beginning on.
        about: what the last fit went by: ``new`` and ``replayed`` labels, its ``steps`` and its
            last ``loss``.
    """

    def __init__(
        self,
        model: str | Path,
        *,
        thoughts: bool = False,
        longest: int | None = None,
        batch: int = 16,
        device: str = "cpu",
        dtype: str = "float32",
    ) -> None:
        super().__init__(
            str(model), thoughts=thoughts, longest=longest, batch=batch, device=device, dtype=dtype
        )
        known = Path(model) / _FILE
        self.about = json.loads(known.read_text("utf-8")) if known.is_file() else {"version": 0}
        self.version = int(self.about["version"])

    @classmethod
    def begin(cls, directory: str | Path, folder: str | Path, **options: Any) -> Self:
        """Make version 0: the body of a causal LM with one output, which is 0 for every text.

        DeepSeekMath (arXiv 2402.03300, 4.2) begins its reward model with its base model too.
        ``directory`` is of the causal LM, ``folder`` where the reward model goes.
        """
        causal, tokenizer = load_model(directory)
        config = copy.deepcopy(causal.config)
        config.num_labels = 1
        make: Any = AutoModelForSequenceClassification.from_config  # untyped in transformers
        model = make(config)
        model.base_model.load_state_dict(causal.base_model.state_dict())
        for name, parameter in model.named_parameters():
            if not name.startswith(f"{model.base_model_prefix}."):
                torch.nn.init.zeros_(parameter)
        if model.config.pad_token_id is None:  # a batch of several is refused without one
            model.config.pad_token_id = tokenizer.pad_token_id or tokenizer.eos_token_id
        _write(Path(folder), model, tokenizer, {"version": 0})
        return cls(folder, **options)

    def verify_many(self, replies: Sequence[str], references: Sequence[Any]) -> list[Verdict]:
        """Judge as RewardModel does, with the version in each reason."""
        stamp = f"reward model version {self.version}: "
        found = super().verify_many(replies, references)
        # The version in place of the folder, which says nothing on another machine.
        folder = f"{self.model} "
        return [replace(v, reason=stamp + v.reason.removeprefix(folder)) for v in found]

    def fit(
        self,
        new: Sequence[Label],
        history: Sequence[Label] = (),
        *,
        folder: str | Path,
        replay: float = 0.1,
        config: FitConfig | None = None,
    ) -> Self:
        """Go on training with new labels and some old ones; this version stays as it is.

        The loss is the binary cross-entropy of the score, ``-y log s - (1 - y) log(1 - s)``, a
        mean over a step's labels. Labels of replies that are refused unread, such as empty ones,
        are left out: no model judges them.

        Args:
            new: labels of this round.
            history: of all rounds before it, replayed by :func:`replayed`.
            folder: where the next version goes; there must be nothing yet.
            replay: share of old labels.
            config: of the training; by default one pass at the paper's learning rate of 2e-5.

        Raises:
            NotFinite: a gradient is infinite or NaN; nothing is written.
            ValueError: there is no label that a model could learn from, or the model has several
                outputs.
        """
        config = config or FitConfig(learning_rate=2e-5)
        seed = derive_seed(config.seed, self.version)
        labels = replayed(new, history, replay, seed=seed)
        with self._lock:
            held = self._loaded()
            planned = [self._plan(x.reply, {"messages": list(x.messages)}, held) for x in labels]
        if held.index is not None:
            raise ValueError(f"{self.model} has several outputs: a model of one can be fitted")
        pairs = [
            (tokens, label.score)
            for tokens, label in zip(planned, labels, strict=True)
            if not isinstance(tokens, Verdict)
        ]
        if not pairs:
            raise ValueError(f"none of {len(labels)} labels is of a reply that the model reads")
        held = replace(held, model=copy.deepcopy(held.model))

        def gradient(chosen: Sequence[int]) -> Metrics:
            scores = {id(pairs[i][0]): pairs[i][1] for i in chosen}  # equal texts may differ
            total = 0.0
            for rows in of_equal_length([pairs[i][0] for i in chosen], self.batch):
                wanted = torch.tensor([scores[id(row)] for row in rows], device=held.model.device)
                logits = held.outputs(rows)[:, 0].float()
                loss = binary_cross_entropy_with_logits(logits, wanted, reduction="sum")
                (loss / len(chosen)).backward()  # type: ignore[no-untyped-call]  # torch's own
                total += float(loss.detach())
            return {"loss": total / len(chosen)}

        rows = fit(held.model, held.tokenizer, len(pairs), gradient, replace(config, seed=seed))
        about = {
            "version": self.version + 1,
            "new": len(new),
            "replayed": len(labels) - len(new),
            "steps": len(rows),
            "loss": rows[-1]["loss"],
        }
        _write(Path(folder), held.model, held.tokenizer, about)
        return self.at(folder)

    def at(self, folder: str | Path) -> Self:
        """Return the version in a folder, with the options of this one."""
        options = ("thoughts", "longest", "batch", "device", "dtype")
        return type(self)(folder, **{name: getattr(self, name) for name in options})


def version_of(verdict: Verdict) -> int | None:
    """Return which version of a :class:`TrainableRewardModel` a verdict is by, ``None`` if none."""
    found = _STAMP.match(verdict.reason)
    return int(found[1]) if found else None


def _write(folder: Path, model: Any, tokenizer: Any, about: Mapping[str, Any]) -> None:
    def fill(to: Path) -> None:
        model.save_pretrained(to)
        tokenizer.save_pretrained(to)
        (to / _FILE).write_text(json.dumps(about) + "\n", encoding="utf-8")

    write_directory(folder, fill)
