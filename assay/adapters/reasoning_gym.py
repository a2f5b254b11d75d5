"""reasoning-gym: its data sets as environments, judged by our verifiers if possible."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial as bound
from typing import Any

from ..envs import Source, Split, Task, TextEnv, register
from ..envs.seeding import share
from ..verifiers import Exact, Verifier
from .reasoning_gym_judges import RULES, PackageScorer, made_dataset, tagged
from .reasoning_gym_rulings import RULINGS, Ruling

INSTRUCTION = "Write the final answer, and nothing else, between <answer> and </answer>."

_TEST_SHARE = 0.1


def from_reasoning_gym(
    name: str,
    *,
    seed: int = 0,
    size: int = 500,
    split: Split | None = None,
    partial: bool = False,
    instruction: str = INSTRUCTION,
    render_mode: str | None = None,
    **config: Any,
) -> TextEnv:
    """Make a one-turn environment of a reasoning-gym data set.

    The tasks are those of ``reasoning_gym.create_dataset(name, seed=seed, size=size, **config)``,
    in its order. Most of its data sets are judged by Assay's verifiers; :func:`rulings` says which.

    Args:
        name: of the data set.
        seed: the package's. It makes entry i from ``seed + i``, so the seeds 42 and 43 share all
            but one of their entries: take test tasks by ``split``, never by another seed.
        size: how many entries are made.
        split: only the entries whose question hashes into this split; any seeds' ``train`` and
            ``test`` have no question in common. All entries by default.
        partial: keep the partial credit of the package's scorer, if it judges.
            Many of these pay a little for any text.
        instruction: what is said after each question.
        render_mode: ``"ansi"`` or ``None``.
        **config: the data set's own.

    Raises:
        ImportError: reasoning-gym is missing: the extra ``reasoning-gym``.
        ValueError: there is no such data set, nothing can judge it safely, or the split is empty.
    """
    dataset = made_dataset(name, seed, size, config)
    ruling = ruling_of(name, type(dataset))
    if ruling.who == "refused":
        raise ValueError(f"reasoning-gym's {name} cannot be judged safely: {ruling.why}")
    verifier: Verifier
    if ruling.verifier is None:
        scorer = PackageScorer(name, seed=seed, size=size, config=config, partial=partial)
        scorer.share(dataset)
        verifier = scorer
    else:
        verifier = ruling.verifier()
    reference = None if ruling.verifier is None else ruling.reference
    source = Entries(
        bound(made_dataset, name, seed, size, config), name, reference, instruction, split
    )
    return TextEnv(source, verifier, name=f"reasoning_gym/{name}-v0", render_mode=render_mode)


class Entries(Source):
    """A data set's entries as tasks, each made when it is asked for."""

    size: int

    def __init__(
        self,
        make: Callable[[], Any],
        name: str,
        reference: Callable[[Any], Any] | None,
        instruction: str,
        split: Split | None,
    ) -> None:
        if split not in (None, "train", "test"):
            raise ValueError(f"split must be 'train', 'test' or None, got {split!r}")
        self.make, self.name, self.reference, self.instruction = make, name, reference, instruction
        self.split = split or ""
        self.tasks: dict[int, Task] = {}  # a few data sets make another entry each time
        self._dataset: Any = None
        kept: Iterable[int] = range(len(self.dataset))
        if split is not None:
            kept = (i for i in kept if _split_of(name, self.dataset[i]["question"]) == split)
        self.kept = list(kept)
        if not self.kept:
            raise ValueError(f"none of the {len(self.dataset)} entries is in {split!r}: raise size")
        self.size = len(self.kept)

    @property
    def dataset(self) -> Any:
        """The package's data set, made on first use in each process."""
        if self._dataset is None:
            self._dataset = self.make()
        return self._dataset

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_dataset": None}

    def task(self, index: int) -> Task:
        """Return the entry at an index of the split."""
        if not 0 <= index < self.size:
            raise IndexError(f"task must be from 0 to {self.size - 1}, got {index}")
        at = self.kept[index]
        if at not in self.tasks:
            self.tasks[at] = self._task(at)
        return self.tasks[at]

    def _task(self, at: int) -> Task:
        entry = self.dataset[at]
        answer = None if entry["answer"] is None else str(entry["answer"])
        if self.reference is None:
            reference: Any = {"index": at, "answer": answer}
        else:
            reference = self.reference(entry)
        # sympy leaves what it cannot integrate as it is: the question, given back
        known = answer is not None and "Integral(" not in answer
        return Task(
            f"{entry['question'].rstrip()}\n\n{self.instruction}",
            reference=reference,
            id=f"{self.name}-{at}",
            metadata={"topic": self.name},
            solution=tagged(answer) if known and answer else None,
        )


def _split_of(name: str, question: str) -> Split:
    return "test" if share("reasoning_gym", name, question) < _TEST_SHARE else "train"


def ruling_of(name: str, kind: type | None = None) -> Ruling:
    """Return who judges a data set; an unknown one by whether it has its own scorer."""
    if name in RULINGS:
        return RULINGS[name]
    from reasoning_gym.dataset import ProceduralDataset

    if kind is not None and kind.score_answer is ProceduralDataset.score_answer:  # type: ignore[attr-defined]  # the package ships no types
        return Ruling("assay", "one text is correct", lambda: Exact(extract=RULES))
    return Ruling("refused", "its scorer is not among those that were read")


def rulings() -> dict[str, Ruling]:
    """Return who judges each known data set, by name."""
    return dict(sorted(RULINGS.items()))


def register_reasoning_gym(*names: str) -> list[str]:
    """Give data sets the ids ``reasoning_gym/NAME-v0``; all that can be judged, by default.

    The environments take ``seed``, ``size``, ``split``, ``partial`` and ``config``, an object of
    the data set's own arguments. Importing :mod:`assay.adapters.reasoning_gym_ids` does it too.

    Returns:
        The ids.

    Raises:
        ValueError: a data set is unknown, or refused.
    """
    ids = []
    for name in names or [n for n, ruling in RULINGS.items() if ruling.who != "refused"]:
        if name not in RULINGS or RULINGS[name].who == "refused":
            why = RULINGS[name].why if name in RULINGS else "it is not known"
            raise ValueError(f"reasoning-gym's {name!r} gets no id: {why}")
        ids.append(f"reasoning_gym/{name}-v0")
        register(
            ids[-1],
            f"assay.adapters.reasoning_gym_ids:{name}",
            needs="the reasoning-gym extra",
            summary=f"reasoning-gym's {name}",
            module="assay.adapters.reasoning_gym_ids",
        )
    return ids


def from_id(
    name: str,
    seed: int = 0,
    size: int = 500,
    split: Split | None = None,
    partial: bool = False,
    config: dict[str, Any] | None = None,
    render_mode: str | None = None,
) -> TextEnv:
    """Make the environment of an id; ``config`` has the data set's own arguments."""
    return from_reasoning_gym(
        name,
        seed=seed,
        size=size,
        split=split,
        partial=partial,
        render_mode=render_mode,
        **(config or {}),
    )
