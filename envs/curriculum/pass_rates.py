"""Pass rates of tasks, kept from run to run."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Self

from ...verifiers import Status
from ...verifiers.atomic_io import write_text
from ..datasets.reading import DataError
from ..episode import EpisodeGroup


class PassRates:
    r"""A Beta posterior of each task's pass rate, in which older outcomes weigh less.

    With a prior :math:`\mathrm{Beta}(\alpha, \beta)`, passes :math:`s` and failures :math:`f` make
    it :math:`\mathrm{Beta}(\alpha + s, \beta + f)` (Russo et al. 2018, arXiv:1707.02038, section
    3.1). The policy learns, so before each new outcome what was counted of its task is multiplied
    by ``discount`` (Raj and Kalyani 2017, arXiv:1707.09727). A pass is an episode whose status is
    ``correct``, not one with a high reward; an episode without a score counts for nothing.

    Args:
        prior: passes and failures that every task begins with.
        discount: in (0, 1]; 1.0 forgets nothing.

    Raises:
        ValueError: the prior is not above 0, or the discount not in (0, 1].
    """

    def __init__(self, *, prior: tuple[float, float] = (1.0, 1.0), discount: float = 0.5) -> None:
        if not all(0 < p < float("inf") for p in prior):
            raise ValueError(f"prior must be two finite numbers above 0, got {prior}")
        if not 0 < discount <= 1:
            raise ValueError(f"discount must be above 0 and at most 1, got {discount}")
        self.prior, self.discount = (float(prior[0]), float(prior[1])), float(discount)
        self._counts: dict[str, tuple[float, float]] = {}

    def __len__(self) -> int:
        return len(self._counts)

    def __iter__(self) -> Iterator[str]:
        return iter(self._counts)

    def record(self, key: str, passed: float, failed: float) -> None:
        """Take in new outcomes of a task.

        Raises:
            ValueError: a count is negative or not finite.
        """
        if not (0 <= passed < float("inf") and 0 <= failed < float("inf")):
            raise ValueError(f"counts must be at least 0 and finite, got {passed} and {failed}")
        if passed + failed:
            old = self._counts.get(key, (0.0, 0.0))
            kept = self.discount
            self._counts[key] = (kept * old[0] + passed, kept * old[1] + failed)

    def posterior(self, key: str) -> tuple[float, float]:
        """Return the two parameters of a task's Beta posterior."""
        passed, failed = self._counts.get(key, (0.0, 0.0))
        return self.prior[0] + passed, self.prior[1] + failed

    def mean(self, key: str) -> float:
        """Return the expected pass rate of a task."""
        alpha, beta = self.posterior(key)
        return alpha / (alpha + beta)

    def state_dict(self) -> dict[str, Any]:
        """Return plain JSON values that :meth:`load_state_dict` restores exactly."""
        counts = {key: list(pair) for key, pair in self._counts.items()}
        return {"prior": list(self.prior), "discount": self.discount, "tasks": counts}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Invert :meth:`state_dict`, discarding the current state.

        Raises:
            ValueError: it is no state of pass rates.
        """
        try:
            prior, discount = state["prior"], float(state["discount"])
            counts = {str(k): (float(p), float(f)) for k, (p, f) in state["tasks"].items()}
            fresh = PassRates(prior=(float(prior[0]), float(prior[1])), discount=discount)
            if not all(0 <= n < float("inf") for pair in counts.values() for n in pair):
                raise ValueError("a count is negative, infinite or no number")
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise ValueError(f"no state of pass rates ({type(error).__name__}: {error})") from error
        self.prior, self.discount, self._counts = fresh.prior, fresh.discount, counts

    def save(self, path: str | Path) -> None:
        """Write a JSON file atomically. Two runs that write one file: the last wins."""
        write_text(path, json.dumps(self.state_dict()))

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read what :meth:`save` wrote.

        Raises:
            DataError: there is no such file, or it is another one's.
        """
        rates = cls()
        try:
            rates.load_state_dict(json.loads(Path(path).read_text(encoding="utf-8")))
        except (OSError, ValueError, RecursionError) as error:
            raise DataError(
                f"{path} holds no pass rates: {error}. Give a file that PassRates.save wrote, "
                "or begin with PassRates()"
            ) from error
        return rates


def outcomes(group: EpisodeGroup) -> tuple[int, int]:
    """Return passes and failures of a group, ignoring episodes without a score."""
    scored = [e.status for e in group.episodes if e.reward is not None]
    passed = sum(status is Status.CORRECT for status in scored)
    return passed, len(scored) - passed
