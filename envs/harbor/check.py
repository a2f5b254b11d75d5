"""Check a task before anybody trains on it: its oracle, idle agents, flakiness, hacks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from ...sandbox import Sandbox, base_fault
from .agents import RandomAgent, nop, oracle
from .folder import HarborTask
from .hacks import Hack
from .schema import TaskError
from .trial import Trial, run_trial


@dataclass(frozen=True)
class TaskCheck:
    """What was found about one task.

    Attributes:
        task: its id.
        trials: all that were run, by the agent's name.
        findings: what is wrong with the task, in sentences; none if it can be trained on.
        notes: what to know of it: unknown keys, a shared grader.
    """

    task: str
    trials: tuple[Trial, ...]
    findings: tuple[str, ...] = ()
    notes: tuple[str, ...] = field(default=())

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "task": self.task,
            "findings": list(self.findings),
            "notes": list(self.notes),
            "rewards": {trial.agent: trial.reward for trial in self.trials},
        }


def read_task(folder: Path, *, guard: bool = True) -> tuple[HarborTask | None, TaskCheck]:
    """Read a task folder and look for its image; nothing is built or run.

    Args:
        folder: of the task.
        guard: of the task; see :class:`HarborTask`.

    Returns:
        The task, or ``None`` if it cannot be used, and what was found.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
    """
    try:
        task = HarborTask.load(folder, guard=guard)
        image, file = task.config.environment.docker_image, task.dockerfile
        text = file.read_text("utf-8") if file and not image else f"FROM {image}"
    except (TaskError, OSError, UnicodeDecodeError) as error:
        return None, TaskCheck(folder.name, (), (str(error),))
    fault = base_fault(text, folder / "task.toml" if image or not file else file)
    return task, TaskCheck(task.id, (), (fault,) if fault else (), tuple(_notes(task)))


def check_task(
    task: HarborTask,
    box: Sandbox,
    *,
    repeat: int = 2,
    hacks: Iterable[Hack] = (),
    note: Callable[[Trial], None] = lambda trial: None,
) -> TaskCheck:
    """Run a task's oracle ``repeat`` times, a no-op, three random agents, and hacks.

    Args:
        task: the task.
        box: where containers run.
        repeat: of the oracle and the no-op each: rewards that differ are flaky.
        hacks: to try.
        note: called with each trial.
    """
    trials: list[Trial] = []

    def run(agent: Any, name: str) -> Trial:
        trials.append(run_trial(task, agent, box, name=name))
        note(trials[-1])
        return trials[-1]

    findings: list[str] = []
    solved = [run(oracle, f"oracle {i + 1}") for i in range(repeat if _has_oracle(task) else 0)]
    idle = [run(nop, f"nop {i + 1}") for i in range(repeat)]
    others = [run(RandomAgent(seed), f"random {seed}") for seed in range(3)]
    others += [run(hack, f"hack {hack.name}") for hack in hacks]
    best = max((t.reward for t in solved if t.reward is not None), default=1.0)
    for trial in solved:
        if trial.reward is None or trial.reward < 1.0:
            hint = "; if its tests need the agent's code in their process: --no-guard"
            findings.append(f"the oracle earns {_said(trial)}{hint if task.guard else ''}")
    base = max((t.reward for t in idle if t.reward is not None), default=0.0)
    if base > 0:
        findings.append(f"doing nothing earns {base:g}")
    for trial in (*idle, *others):
        if trial.reward is None:
            findings.append(f"{trial.agent} has no score: {_said(trial)}")
    for trial in others:
        if trial.reward is not None and trial.reward > base:
            findings.append(f"{trial.agent} earns {trial.reward:g} and solves nothing")
    for same in (solved, idle):
        if len({trial.reward for trial in same}) > 1:
            rewards = ", ".join(str(trial.reward) for trial in same)
            findings.append(f"it is flaky: {same[0].agent.split()[0]} earns {rewards}")
    notes = _notes(task)
    if any(trial.graded.grading == "shared" for trial in trials):
        notes.append("the grader runs the agent's code itself: grading is shared")
    if best > 1.0:
        notes.append(f"rewards go up to {best:g}; environments take 0 to 1")
    return TaskCheck(task.id, tuple(trials), tuple(dict.fromkeys(findings)), tuple(notes))


def _has_oracle(task: HarborTask) -> bool:
    return all(stage.solution is not None for stage in task.stages)


def _notes(task: HarborTask) -> list[str]:
    """Return what is known of a task without running it."""
    notes = [f"task.toml has the unknown key {key}" for key in task.config.unknown]
    agents, tests = (
        dict.fromkeys(host for network in networks if network != "none" for host in network.hosts)
        for networks in ([s.network for s in task.stages], [s.tests_network for s in task.stages])
    )
    if agents:
        notes.append(f"the agent may reach {', '.join(agents)}")
    if tests:
        notes.append(f"the tests may reach {', '.join(tests)}")
    if not _has_oracle(task):
        notes.append("there is no oracle, so nobody knows whether it can be solved")
    return notes


def _said(trial: Trial) -> str:
    shown = "nothing" if trial.reward is None else f"{trial.reward:g}"
    return f"{shown} ({trial.graded.verdict.reason:.200})"
