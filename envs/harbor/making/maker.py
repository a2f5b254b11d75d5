"""Try drafts of tasks in containers, and keep those that work.

The tests first run beside the agent's tree. If the solution fails so, because a test patches the
code or needs the tree around it, they run inside it: grading is ``shared`` then, which each verdict
says.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from ....sandbox import Sandbox, SandboxError
from ..agents import nop, oracle
from ..folder import HarborTask
from ..schema import TaskError
from ..trial import Agent, Trial, run_trial
from .writer import Draft, Layout, write_task

REPEAT = 2
"""Runs of the idle agent and of the solution, each: rewards that differ are flaky."""


@dataclass(frozen=True)
class Made:
    """What became of a draft.

    Attributes:
        name: of the task.
        refused: why there is no folder; empty if there is.
        grading: ``separate`` or ``shared``, as the verdicts say.
        title: the first line of what is asked.
    """

    name: str
    refused: str = ""
    grading: str = ""
    title: str = ""


class Refused(ValueError):
    """No task can be made. The message says why."""


class Maker:
    """Writes tasks into a folder: each is tried in containers, and appears there whole or not.

    What was refused is noted in ``refused.jsonl``, so that a second run tries neither it nor what
    is there again.

    Args:
        out: the folder.
        box: where containers run.
    """

    def __init__(self, out: Path, box: Sandbox) -> None:
        self.out, self.box = out, box
        self._work = out / ".unfinished"
        shutil.rmtree(self._work, ignore_errors=True)
        self._work.mkdir(parents=True)
        self._notes = out / "refused.jsonl"
        lines = self._notes.read_text("utf-8").splitlines() if self._notes.is_file() else []
        self.known = {json.loads(line)["task"] for line in lines if line.endswith("}")}

    def close(self) -> None:
        """Remove what is unfinished."""
        shutil.rmtree(self._work, ignore_errors=True)

    def is_done(self, name: str) -> bool:
        """Return whether an earlier run has made or refused a task."""
        return name in self.known or (self.out / name).exists()

    def make(self, name: str, draft: Callable[[], Draft]) -> Made:
        """Try a draft and write it if it is sound.

        Raises:
            SandboxError: a container was lost: nothing is known of the task.
        """
        try:
            return self._proven(draft())
        except (Refused, TaskError) as fault:
            made = Made(name, str(fault))
        with self._notes.open("a", encoding="utf-8") as notes:
            notes.write(json.dumps({"task": name, "refused": made.refused}) + "\n")
        return made

    def folder(self, name: str) -> Path:
        """Return where an unfinished task may be written."""
        return self._work / name

    def _proven(self, draft: Draft) -> Made:
        folder = self.folder(draft.name)
        layouts: tuple[Layout, ...] = ("inside",) if draft.command else ("beside", "inside")
        for layout in layouts:
            fault, grading = self._fault(write_task(draft, folder, layout))
            if not fault:
                folder.rename(self.out / draft.name)
                title = draft.text.strip().split("\n")[0]
                return Made(draft.name, grading=grading, title=title)
            if not fault.startswith("the solution"):  # another layout would not mend it
                break
        shutil.rmtree(folder)
        raise Refused(fault)

    def _fault(self, task: HarborTask) -> tuple[str, str]:
        """Return what is wrong with a task, if anything, and how it is graded."""
        solved = [self._run(task, oracle) for _ in range(REPEAT)]
        rewards = [trial.reward for trial in solved]
        if set(rewards) != {1.0}:
            failed = next(trial.graded for trial in solved if trial.reward != 1.0)
            kind = "flaky: " if 1.0 in rewards else ""
            why = f"{failed.verdict.reason} {failed.log.strip()[-300:]}"
            return f"{kind}the solution earns {rewards}: {why}", ""
        idle = [self._run(task, nop).reward for _ in range(REPEAT)]
        fault = "" if set(idle) == {0.0} else f"doing nothing earns {idle}"
        return fault, solved[0].graded.grading

    def _run(self, task: HarborTask, agent: Agent) -> Trial:
        trial = run_trial(task, agent, self.box)
        if trial.graded.fault == "sandbox":
            raise SandboxError(f"{task.id}: {trial.graded.verdict.reason}")
        return trial


_Item = TypeVar("_Item")


def made_of(
    items: Iterable[_Item], do: Callable[[_Item], Made], *, limit: int | None, jobs: int
) -> Iterator[Made]:
    """Try items side by side, in order, until ``limit`` tasks are made, or all."""
    made, running, most = 0, list[Future[Made]](), sys.maxsize if limit is None else limit
    with ThreadPoolExecutor(jobs) as pool:
        try:
            for item in items:
                while running and len(running) >= min(jobs, most - made):
                    one = running.pop(0).result()
                    made += not one.refused
                    yield one
                if made >= most:
                    break
                running.append(pool.submit(do, item))
            for future in running:
                yield future.result()
        finally:
            pool.shutdown(cancel_futures=True)
