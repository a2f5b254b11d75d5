"""Pipelines: training in stages, each of which is done once and can be killed at any point."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from assay.grpo.run_directory import run_lock
from assay.sandbox.redaction import redact
from assay.verifiers.atomic_io import publish, write_json

_RECORD, _UNFINISHED = "stage.json", ".unfinished"

Work = Callable[..., Mapping[str, Any] | None]
"""``(folder, before, **settings)``: fill a folder; return numbers worth keeping, or nothing.

``before`` has the folder of each stage before, by name. ``folder`` is the stage's own; if killed,
the stage is called again with what it had left there, so a Learner in it resumes if
:func:`~assay.grpo.begun` is true of its folder.
"""


@dataclass(frozen=True, slots=True)
class Stage:
    """A step of a pipeline.

    Attributes:
        name: in letters, digits, ``-`` and ``_``.
        work: what it does; see :data:`Work`.
        settings: all that it depends on beside the stages before it, as JSON values; they are
            the arguments of ``work``.

    Raises:
        ValueError: the name is none, or JSON does not give the settings back.
    """

    name: str
    work: Work
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not self.name.replace("-", "").replace("_", "").isalnum():
            raise ValueError(
                f"a stage's name must be letters, digits, '-' and '_', got {self.name!r}"
            )
        try:
            same = json.loads(json.dumps(self.settings)) == dict(self.settings)
        except (TypeError, ValueError):
            same = False
        if not same:
            raise ValueError(
                f"settings of stage {self.name!r} must be JSON values (lists, no tuples), which "
                f"its fingerprint is made of, got {redact(self.settings)!r:.200}"
            )


@dataclass(frozen=True, slots=True)
class Finished:
    """A stage that is done.

    Attributes:
        name: of the stage.
        folder: what it wrote.
        found: the numbers that it gave.
        skipped: whether it was there already.
        seconds: that it took, those before it was last killed left out.
    """

    name: str
    folder: Path
    found: Mapping[str, Any]
    skipped: bool
    seconds: float


def run_stages(
    stages: Iterable[Stage],
    out_dir: str | Path,
    *,
    on_done: Callable[[Finished], None] | None = None,
) -> list[Finished]:
    """Run stages in turn, and skip those that are there.

    A stage's folder is ``NAME-FINGERPRINT``, the fingerprint being of its name, its settings and
    the stage before it. So a changed setting runs its stage and all after it anew, beside what
    was there; changed back, nothing is run; and pipelines that begin alike share that beginning.
    Code is not in the fingerprint: put a version into the settings where it matters.

    A folder with that name is whole: the stage works in ``NAME-FINGERPRINT.unfinished``, which
    is renamed at its end. Killed at any point and called again, it goes on there.

    ``on_done`` is called with each stage as it is done, or found to be. What a stage raises is
    passed on; those before it are kept, and what it left too.

    Raises:
        CheckpointError: another process is working in ``out_dir``.
        ValueError: two stages have one name.
    """
    root, chain, done = Path(out_dir), list(stages), list[Finished]()
    names = [stage.name for stage in chain]
    if len(set(names)) < len(names):
        raise ValueError(f"each stage needs a name of its own, got {', '.join(names)}")
    with run_lock(root):
        for stage, mark in zip(chain, fingerprints(chain), strict=True):
            before = {one.name: one.folder for one in done}
            done.append(_run(stage, root / f"{stage.name}-{mark}", before))
            if on_done is not None:
                on_done(done[-1])
    return done


def fingerprints(stages: Sequence[Stage]) -> list[str]:
    """Return twelve hexadecimal digits for each stage, by itself and all before it."""
    found: list[str] = []
    for stage in stages:
        before = found[-1] if found else ""
        text = json.dumps([stage.name, redact(stage.settings), before], sort_keys=True)
        found.append(hashlib.sha256(text.encode()).hexdigest()[:12])
    return found


def _run(stage: Stage, folder: Path, before: Mapping[str, Path]) -> Finished:
    skipped = folder.is_dir()
    if not skipped:
        unfinished = folder.with_name(folder.name + _UNFINISHED)
        unfinished.mkdir(exist_ok=True)
        started = time.perf_counter()
        found = stage.work(unfinished, before, **stage.settings) or {}
        record = {
            "stage": stage.name,
            "settings": redact(stage.settings),
            "before": {name: path.name for name, path in before.items()},
            "found": dict(found),
            "seconds": round(time.perf_counter() - started, 3),
        }
        write_json(unfinished / _RECORD, record, indent=2, mode=0o600)
        publish(unfinished, folder)
    record = json.loads((folder / _RECORD).read_text(encoding="utf-8"))
    return Finished(stage.name, folder, record["found"], skipped, record["seconds"])
