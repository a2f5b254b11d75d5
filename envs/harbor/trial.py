"""One trial: an agent works in a task's container, then the tests run in a fresh one."""

from __future__ import annotations

import contextlib
import functools
import os
import re
import shlex
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from ...sandbox import (
    Forward,
    ImageUnavailable,
    Sandbox,
    SandboxError,
    Session,
    SessionEnded,
    SessionLimits,
    build_folder,
)
from ...verifiers import Status, Verdict
from .folder import HarborTask, Stage, folder_digest
from .grader import Graded, grade
from .schema import Healthcheck, TaskError

_OUTPUT_BYTES = 8 << 20
_TEMPLATE = re.compile(r"\$\{(\w+)(?::-([^}]*))?\}")


@dataclass(frozen=True)
class Seat:
    """Where an agent works.

    Attributes:
        session: its container.
        stage: what it is asked: ``stage.instruction``.
        task: the whole task.
        timeout_s: seconds it has; its processes are killed after them.
    """

    session: Session
    stage: Stage
    task: HarborTask
    timeout_s: float


class Agent(Protocol):
    """Work on a task. What it raises but SandboxError and SessionEnded is its own failure."""

    def __call__(self, seat: Seat, /) -> str:
        """Work in the seat's session, and return a log for people."""
        ...


@dataclass(frozen=True)
class Trial:
    """The record of one trial.

    Attributes:
        task: id of the task.
        agent: name of the agent.
        graded: the result; of a task of steps the combined one.
        steps: the results of the steps, by name.
        agent_log: what the agent said.
        seconds: of all.
    """

    task: str
    agent: str
    graded: Graded
    steps: Mapping[str, Graded] = field(default_factory=dict)
    agent_log: str = ""
    seconds: float = 0.0

    @property
    def reward(self) -> float | None:
        """The score; ``None`` after a fault."""
        return self.graded.verdict.score

    def to_json(self) -> dict[str, Any]:
        """Return a dict of plain JSON values."""
        return {
            "task": self.task,
            "agent": self.agent,
            "reward": self.reward,
            **_row(self.graded),
            "steps": {name: _row(graded) for name, graded in self.steps.items()},
            "agent_log": self.agent_log,
            "seconds": round(self.seconds, 3),
        }


def _row(graded: Graded) -> dict[str, Any]:
    return {
        "status": graded.verdict.status.value,
        "reason": graded.verdict.reason,
        "grading": graded.grading,
        "rewards": dict(graded.rewards),
        "fault": graded.fault,
        "log": graded.log,
    }


def run_trial(task: HarborTask, agent: Agent, box: Sandbox, *, name: str = "") -> Trial:
    """Let an agent work on a task, and grade what it leaves.

    Args:
        task: the task.
        agent: what works.
        box: where containers run.
        name: of the agent, for the record.

    Returns:
        The record. A lost container, an image that cannot be built and a failed healthcheck are
        faults in it, with no score.
    """
    began, steps, log = time.monotonic(), dict[str, Graded](), list[str]()
    try:
        with start(box, task) as session:
            for stage in task.stages:
                try:
                    prepare(session, stage)
                except (Unhealthy, SessionEnded, OSError) as error:
                    if not steps:
                        raise
                    steps[stage.name] = Graded.broke(f"after the agent's work {error}")
                    break
                steps[stage.name] = _stage(task, stage, agent, box, session, log)
                if ends_after(stage, steps[stage.name]):
                    break
        graded = combined(task, list(steps.values()))
    except (TaskError, OSError) as error:  # a folder that cannot be read, or not be put there
        graded = Graded.failed("bad_task", str(error), Status.BAD_GOLD)
    except (Unhealthy, SessionEnded) as error:
        graded = Graded.failed("unhealthy", str(error), Status.BAD_GOLD)
    except SandboxError as error:
        graded = Graded.failed("sandbox", str(error), Status.SANDBOX_ERROR)
    shown = steps if task.config.steps else {}
    return Trial(task.id, name, graded, shown, "\n".join(log), time.monotonic() - began)


class Unhealthy(Exception):
    """The task's own healthcheck or set-up failed before the agent started."""


def prepare(session: Session, stage: Stage) -> None:
    """Bring a step's ``workdir/`` into the container, run its ``setup.sh``, and wait for health.

    Raises:
        Unhealthy: the set-up or the healthcheck failed.
    """
    files = stage.folder / "workdir"
    if stage.name and files.is_dir():
        place = session.folder  # a shell is asked for nothing: after a step it may be the agent's
        session.put(place, files)
        if (files / "setup.sh").is_file():
            done = session.exec(["/bin/sh", "-c", f"exec bash {shlex.quote(place)}/setup.sh"])
            if not done.ok:
                said = done.stderr.decode("utf-8", "replace")[-300:]
                raise Unhealthy(f"setup.sh of step {stage.name!r} failed: {done.reason} {said}")
    if stage.healthcheck is not None:
        _healthy(session, stage.healthcheck)


def _stage(
    task: HarborTask, stage: Stage, agent: Agent, box: Sandbox, session: Session, log: list[str]
) -> Graded:
    try:
        log.append(agent(Seat(session, stage, task, stage.agent_s)))
        return graded_stage(task, stage, box, session)
    except SessionEnded as error:
        return Graded.broke(f"the agent's container ended: {error}")


def graded_stage(task: HarborTask, stage: Stage, box: Sandbox, session: Session) -> Graded:
    """Grade a stage whose agent has ended.

    Raises:
        SandboxError: a container was lost; nothing was judged.
    """
    for hook in stage.verifier.collect:
        session.exec(hook.command, timeout_s=hook.timeout_sec, user=hook.user)
    own, options = stage.verifier.environment, _options(task, stage)

    @contextlib.contextmanager
    def fresh() -> Iterator[Session]:
        with box.session(**options, network=stage.tests_network) as clean:
            if own is not None and own.healthcheck is not None:
                _healthy(clean, own.healthcheck)
            yield clean

    try:
        return grade(session, fresh, stage, filled_in(stage.verifier.env))
    except Unhealthy as error:
        return Graded.failed("unhealthy", f"the verifier's container: {error}", Status.BAD_GOLD)


def ends_after(stage: Stage, graded: Graded) -> bool:
    """Return whether the steps end here, by ``min_reward`` or a fault."""
    if graded.verdict.score is None:
        return True
    least = stage.min_reward
    if least is None:
        return False
    if isinstance(least, Mapping):
        return any(graded.rewards.get(key, float("-inf")) < low for key, low in least.items())
    return graded.rewards.get("reward", float("-inf")) < least


def combined(task: HarborTask, stages: list[Graded]) -> Graded:
    """Combine the results of a task's steps; a step that was not reached counts as zero."""
    config = task.config
    if not config.steps:
        return stages[0]
    fault = next((graded for graded in stages if graded.verdict.score is None), None)
    if fault is not None:
        return fault
    keys = dict.fromkeys(key for graded in stages for key in graded.rewards) or {"reward": None}
    if config.multi_step_reward_strategy == "final":
        reached = len(stages) == len(config.steps)
        rewards = dict(stages[-1].rewards) if reached else dict.fromkeys(keys, 0.0)
    else:
        of = len(config.steps)
        rewards = {key: sum(g.rewards.get(key, 0.0) for g in stages) / of for key in keys}
    score = rewards.get("reward", sum(rewards.values()) / max(len(rewards), 1))
    shared = any(graded.grading == "shared" for graded in stages)
    status = Status.CORRECT if score >= 1.0 else Status.INCORRECT
    reason = f"{config.multi_step_reward_strategy} of {len(stages)} steps"
    parts = {**rewards, "shared": 1.0} if shared else rewards
    verdict = Verdict(status, score, reason, None, parts)
    return Graded(verdict, "shared" if shared else "separate", rewards)


# -- containers --------------------------------------------------------------------------------


def start(box: Sandbox, task: HarborTask, network: Forward | None = None) -> Session:
    """Start a session of a task's environment, and wait until it is healthy.

    Args:
        box: where it runs.
        task: the task.
        network: the server that it may reach in place of the task's own hosts.

    Raises:
        TaskError: the image cannot be built, or an allowlist cannot be held.
        Unhealthy: the healthcheck fails.
        SandboxError: no container can be had.
    """
    hosts = task.stages[0].network
    if network is not None and hosts != "none":
        raise TaskError(
            f"{task.folder / 'task.toml'}: network_mode 'allowlist' cannot be held: the agent's "
            "container has one way out, to the model's server. Set 'no-network'"
        )
    session = box.session(**_options(task), network=network or hosts)
    try:
        folders = "/logs/agent /logs/artifacts /logs/verifier"
        session.exec(f"mkdir -p {folders} && chmod 777 {folders}", user=0)
        if task.config.environment.healthcheck is not None:
            _healthy(session, task.config.environment.healthcheck)
    except BaseException:
        session.close()
        raise
    return session


def _options(task: HarborTask, tested: Stage | None = None) -> dict[str, Any]:
    own = tested.verifier.environment if tested else None
    env = own or task.config.environment
    limits = SessionLimits(
        memory_mib=env.memory_mb or 2048,
        cpus=env.cpus or 1.0,
        disk_mib=env.storage_mb or 4096,
        output_bytes=_OUTPUT_BYTES,
    )
    options: dict[str, Any] = {"limits": limits, "env": filled_in(env.env)}
    if env.workdir:
        options["workdir"] = env.workdir
    return {"image": image_of(task, tested), **options}


def image_of(task: HarborTask, tested: Stage | None = None) -> str:
    """Return the image of a task's environment, built if needed.

    Args:
        task: the task.
        tested: the stage whose tests run in it. If its verifier is separate, a ``docker_image`` or
            a ``tests/Dockerfile`` of the step's, then of the task's, comes first.

    Raises:
        TaskError: it cannot be built here.
        SandboxError: the daemon was lost.
    """
    config = task.config
    limit_s = config.environment.build_timeout_sec
    if tested is not None and tested.verifier.separate:
        steps = [step for step in config.steps if step.name == tested.name]
        own = [(step.verifier.environment, tested.folder) for step in steps]
        for env, folder in (*own, (config.verifier.environment, task.folder)):
            if env is not None and env.docker_image:
                return env.docker_image
            if (folder / "tests" / "Dockerfile").is_file():
                seconds = env.build_timeout_sec if env is not None else limit_s
                return built(folder / "tests", seconds)
    return config.environment.docker_image or built(task.folder / "environment", limit_s)


def built(folder: Path, timeout_s: float = 600.0) -> str:
    """Build the image of a folder's Dockerfile, once in a process, and return its tag.

    Raises:
        TaskError: it cannot be built, or not in that time; the message has the line.
        SandboxError: the daemon was lost.
    """
    try:
        return _built(folder, folder_digest(folder), timeout_s)
    except (ValueError, ImageUnavailable) as error:
        raise TaskError(str(error)) from error


@functools.lru_cache(4096)
def _built(folder: Path, digest: str, timeout_s: float) -> str:
    tag = f"assay-harbor:{digest}"
    build_folder(folder, tag, timeout_s=timeout_s)
    return tag


def filled_in(env: Mapping[str, str]) -> dict[str, str]:
    """Fill in ``${NAME}`` and ``${NAME:-default}`` from this process's environment.

    Raises:
        TaskError: a variable is missing here and has no default.
    """

    def fill(found: re.Match[str]) -> str:
        value = os.environ.get(found[1], found[2])
        if value is None:
            raise TaskError(f"the task needs the environment variable {found[1]}: export it")
        return value

    return {name: _TEMPLATE.sub(fill, value) for name, value in env.items()}


def _healthy(session: Session, check: Healthcheck) -> None:
    """Wait until a healthcheck succeeds.

    Raises:
        Unhealthy: it failed ``retries`` times after its start period.
    """
    began, failed = time.monotonic(), 0
    while True:
        done = session.exec(check.command, timeout_s=check.timeout_sec)
        if done.ok:
            return
        starting = time.monotonic() - began < check.start_period_sec
        failed += not starting
        if failed >= check.retries:
            raise Unhealthy(f"the healthcheck {check.command!r:.200} failed: {done.reason}")
        time.sleep(check.start_interval_sec if starting else check.interval_sec)
