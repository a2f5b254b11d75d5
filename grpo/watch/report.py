"""What a person wants to see of a rollout: its numbers, a progress bar, and an alarm."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import TracebackType
from typing import Any, Self

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as Bar

from ...envs import Counts, EpisodeGroup
from ..run.evaluate import Rollout, Score


def rollout_metrics(groups: Sequence[EpisodeGroup]) -> dict[str, float]:
    """Numbers of a rollout by name.

    Returns:
        ``reward`` and ``accuracy`` (means over scored episodes), ``reward/NAME`` for each named
        part, ``masked`` (episodes without a reward), ``truncated`` (share cut off),
        ``zero_variance`` (share of groups that teach nothing), ``tokens/sampled`` and
        ``tokens/reply`` (their mean for an episode).
    """
    episodes = [e for group in groups for e in group.episodes]
    score = Score.of(groups)
    lengths = [sum(len(s.ids) for s in e.spans if s.author == "model") for e in episodes]
    row = {
        "reward": score.reward,
        "accuracy": score.pass_at_1,
        "zero_variance": zero_variance(groups),
        "masked": score.masked,
        "truncated": score.truncated,
        "tokens/sampled": sum(lengths),
        "tokens/reply": sum(lengths) / max(1, len(lengths)),
    }
    for name in sorted({name for e in episodes for name in e.rewards}):
        parts = [p for e in episodes if (p := e.rewards.get(name)) is not None]
        if parts:
            row[f"reward/{name}"] = sum(parts) / len(parts)
    return row


def filter_metrics(rollout: Rollout) -> dict[str, float]:
    """What a rollout that leaves groups out, such as ``Refill``, did in the last step.

    Returns:
        ``groups/NAME`` for each of its counts of groups, and ``accuracy/played``: of all episodes
        that were played and scored, the share that is right. Nothing for other rollouts.
    """
    counts = getattr(rollout, "counts", None)
    if not isinstance(counts, Counts):
        return {}
    row = counts.to_json()
    correct, scored = row.pop("correct"), row.pop("scored")
    del row["masked"], row["wanted"]
    played = {"accuracy/played": correct / scored if scored else float("nan")}
    return {f"groups/{name}": float(number) for name, number in row.items()} | played


def zero_variance(groups: Sequence[EpisodeGroup]) -> float:
    """Share of groups whose rewards are all equal, or too few to compare."""
    flat = sum(len({r for r in group.rewards if r is not None}) < 2 for group in groups)
    return flat / max(1, len(groups))


def stall(row: Mapping[str, Any]) -> str | None:
    """Say what is wrong where a rollout holds nothing to learn from, or ``None``."""
    if row["zero_variance"] < 1 or row["reward"] is None:  # NaN is None in a row that was read back
        return None
    if row["reward"] <= 0.01:
        cut = row["truncated"]
        return (
            "every group earned the same, and nearly nothing: no gradient, and none will come "
            "back by itself. "
            + (
                f"{cut:.0%} of the replies were cut off: raise max_new_tokens."
                if cut > 0.5
                else "Warm-start the model, take easier tasks, or, if rewards were higher "
                "before, go back to a checkpoint with a lower learning_rate or more warmup_steps."
            )
        )
    if row["reward"] >= 0.99:
        return "every reply earned full marks: nothing is left to learn here. Take harder tasks."
    return None


class Alarm:
    """Calls out where several rollouts in a row hold nothing to learn from.

    One such rollout happens in a healthy run with few prompts; three in a row hardly do.
    """

    def __init__(self, *, patience: int = 3) -> None:
        self._patience, self._streak = patience, 0

    def check(self, row: Mapping[str, Any]) -> str | None:
        """Take a step's row; give the message once when the streak reaches the patience."""
        message = stall(row)
        self._streak = 0 if message is None else self._streak + 1
        return message if self._streak == self._patience else None


class Progress:
    """A progress bar with the numbers that tell whether a run is well.

    Args:
        steps: of the whole run.
        done: of them, before this start.
        show: draw it, where the error stream is a terminal.
    """

    def __init__(self, steps: int, done: int, *, show: bool) -> None:
        console = Console(stderr=True)
        self._bar = Bar(
            TextColumn("train"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("{task.description}"),
            console=console,
            disable=not (show and console.is_terminal),
        )
        self._task = self._bar.add_task("", total=steps, completed=done)
        self._held_out = ""

    def update(self, row: Mapping[str, Any]) -> None:
        """Show a row of metrics."""
        if "held_out/pass_at_1" in row:
            self._held_out = f"  held-out {row['held_out/pass_at_1']:.3f}"
        text = self._held_out
        if "reward" in row:
            text = (
                f"reward {row['reward']:.3f}  accuracy {row['accuracy']:.3f}  "
                f"zero-variance {row['zero_variance']:.0%}{text}"
            )
        self._bar.update(self._task, completed=row["step"], description=text)

    def __enter__(self) -> Self:
        self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._bar.stop()
