"""Harbor task folders: what a folder holds, and a loader of many."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path

from .schema import (
    Artifact,
    Config,
    Healthcheck,
    Network,
    Step,
    TaskError,
    Verifier,
    network_of,
    read_config,
)

AGENT_S = 900.0
"""Seconds of an agent whose task sets no limit."""


@dataclass(frozen=True)
class Stage:
    """What an agent is asked once: a whole task, or one of its steps.

    Attributes:
        name: of the step; empty for a task without steps.
        folder: holds ``instruction.md``, and perhaps ``tests/``, ``solution/`` and ``workdir/``.
        task_folder: the whole task's, whose ``tests/`` and ``solution/`` hold where a step lacks
            its own.
        instruction: the prompt.
        verifier: how the tests run.
        agent_s: seconds the agent has.
        user: whom the agent runs as; ``None`` is the image's own user.
        artifacts: paths that the tests get, whatever else they get.
        healthcheck: must succeed before the agent of this step starts.
        min_reward: the task ends here below it: a number, or numbers by metric.
        network: what the agent may reach.
        tests_network: what the tests may reach.
        guard: whether the agent's code runs in other processes than the tests.
    """

    name: str
    folder: Path
    task_folder: Path
    instruction: str
    verifier: Verifier
    agent_s: float
    user: str | int | None
    artifacts: tuple[Artifact, ...]
    healthcheck: Healthcheck | None = None
    min_reward: float | dict[str, float] | None = None
    network: Network = "none"
    tests_network: Network = "none"
    guard: bool = True

    @property
    def test_files(self) -> dict[str, Path]:
        """What is copied to /tests, by path below it: files of a step hide those of the task."""
        return {
            str(file.relative_to(folder)): file
            for folder in (self.task_folder / "tests", self.folder / "tests")
            for file in sorted(folder.rglob("*"))
        }

    @property
    def solution(self) -> Path | None:
        """The folder of the oracle, if there is one."""
        for folder in (self.folder / "solution", self.task_folder / "solution"):
            if (folder / "solve.sh").is_file():
                return folder
        return None


@dataclass(frozen=True)
class HarborTask:
    """One task folder.

    Attributes:
        folder: where it is.
        config: its ``task.toml``.
        guard: keep the agent's code out of the tests' processes. Without it the tests run as
            Harbor runs them, in a fresh container, and the agent's code can forge the reward.

    Raises:
        TaskError: a file is missing, or the task needs what is not supported.
    """

    folder: Path
    config: Config
    guard: bool = True

    @classmethod
    def load(cls, folder: str | Path, *, guard: bool = True) -> HarborTask:
        """Read and check a task folder."""
        root = Path(folder)
        if not (root / "task.toml").is_file():
            raise TaskError(f"{root}: has no task.toml. Give a Harbor task folder")
        task = cls(root, read_config(root / "task.toml"), guard)
        composed = [root / "environment"]
        composed += [s.folder / "tests" for s in task.stages if s.verifier.separate]
        for folder in composed:  # docker-compose.yml has no meaning for Harbor
            if (folder / "docker-compose.yaml").exists():
                raise TaskError(
                    f"{folder / 'docker-compose.yaml'}: side services of docker-compose are not "
                    "supported. To mend it, start them in the image of the Dockerfile"
                )
        if not task.config.environment.docker_image and task.dockerfile is None:
            raise TaskError(
                f"{root}: has neither environment/Dockerfile nor [environment].docker_image. "
                "Add one of them"
            )
        for stage in task.stages:
            if stage.network != task.stages[0].network:
                raise TaskError(
                    f"{root / 'task.toml'}: steps.{stage.name}.agent.network_mode differs from "
                    "that of the first step, whose container it works in. Give all steps one"
                )
            if "test.sh" not in stage.test_files:
                folder = stage.folder / "tests"
                raise TaskError(f"{folder}: has no test.sh. Add one that writes the reward")
        return task

    @property
    def id(self) -> str:
        """The name in ``[task]``, or the folder's."""
        return self.config.task.name or self.folder.resolve().name

    @property
    def dockerfile(self) -> Path | None:
        """The environment's Dockerfile, if there is one."""
        found = self.folder / "environment" / "Dockerfile"
        return found if found.is_file() else None

    @cached_property
    def stages(self) -> tuple[Stage, ...]:
        """The steps in order, or the whole task as the only one."""
        return tuple(map(self._stage, self.config.steps)) or (self._stage(None),)

    def _stage(self, named: Step | None) -> Stage:
        """Return a step as a stage, or without one the whole task."""
        config, step = self.config, named or Step("")
        folder = self.folder / "steps" / step.name if named else self.folder
        verifier = _inherited(config.verifier, step.verifier) if named else config.verifier
        return Stage(
            step.name,
            folder,
            self.folder,
            _instruction(folder),
            verifier,
            step.agent.timeout_sec or config.agent.timeout_sec or AGENT_S,
            step.agent.user if step.agent.user is not None else config.agent.user,
            (*config.artifacts, *step.artifacts),
            step.healthcheck,
            step.min_reward,
            network_of(step.agent, config.agent, config.environment),
            network_of(verifier, verifier.environment or config.environment),
            self.guard,
        )

    @cached_property
    def digest(self) -> str:
        """The hash of every file of the folder: verdicts of one digest are about one task."""
        return folder_digest(self.folder) + ("" if self.guard else "-unguarded")


def _inherited(task: Verifier, step: Verifier) -> Verifier:
    """Return a step's verifier with what it takes over from the task's."""
    apart = step.separate if step.environment_mode or step.environment else task.separate
    return replace(
        step,
        env={**task.env, **step.env},
        user=task.user if step.user is None else step.user,
        collect=(*task.collect, *step.collect),
        environment_mode="separate" if apart else "shared",
        environment=(step.environment or task.environment) if apart else None,
        network_mode=(phase := step if step.network_mode else task).network_mode,
        allowed_hosts=phase.allowed_hosts,
    )


def folder_digest(folder: Path) -> str:
    """Return the hash of the paths, modes and bytes of a folder's files."""
    hashed = hashlib.sha256()
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        data, mode = path.read_bytes(), path.stat().st_mode & 0o777
        hashed.update(f"{path.relative_to(folder)} {mode:o} {len(data)}\n".encode() + data)
    return hashed.hexdigest()[:16]


def _instruction(folder: Path) -> str:
    file = folder / "instruction.md"
    try:
        text = file.read_text("utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise TaskError(f"{file}: {error}. Write the prompt in it") from error
    if not text:
        raise TaskError(f"{file}: is empty. Write the prompt in it")
    return text


def task_folders(folder: str | Path) -> Iterator[Path]:
    """Yield a task folder, or those directly below a folder, by name."""
    root = Path(folder)
    if (root / "task.toml").is_file():
        yield root
        return
    if root.is_dir():
        yield from sorted(path.parent for path in root.glob("*/task.toml"))


def load_tasks(folder: str | Path, *, guard: bool = True) -> list[HarborTask]:
    """Load a task folder, or all those directly below a folder.

    Args:
        folder: the folder.
        guard: of every task; see :class:`HarborTask`.

    Raises:
        TaskError: there is none, two have one id, or some cannot be used: all are named.
    """
    tasks, faults = dict[str, HarborTask](), list[str]()
    for path in task_folders(folder):
        try:
            task = HarborTask.load(path, guard=guard)
        except TaskError as error:
            faults.append(str(error))
            continue
        if task.id in tasks:
            faults.append(f"{path}: {task.id!r} is also the id of {tasks[task.id].folder}. Rename")
        tasks[task.id] = task
    if faults:
        raise TaskError("\n".join(faults))
    if not tasks:
        raise TaskError(f"{folder}: holds no task folder. Give one with a task.toml, or its parent")
    return list(tasks.values())
