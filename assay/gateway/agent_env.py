"""Episodes played by a program: start it for a task, wait, judge its end, keep its tokens."""

from __future__ import annotations

import contextlib
import json
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from ..envs import Episode, EpisodeGroup, Task, TextEnv
from ..envs.harbor import HarborEnv, HarborTask, TaskError
from ..envs.harbor.trial import Unhealthy, graded_stage, prepare, start
from ..sandbox import (
    Forward,
    ImageUnavailable,
    Sandbox,
    SandboxError,
    SandboxUnavailable,
    SessionEnded,
    SessionLimits,
)
from ..sandbox import Session as SandboxSession
from ..verifiers import Status, Verdict
from .app import served
from .engine import ChatEngine, Engine
from .episodes import Gateway, GatewayConfig, Session, derive_seed
from .program import LocalProgram, Program, SandboxProgram, fill

_LOOK_S = 0.02

Judge = Callable[[SandboxSession, Task, str], Verdict]
"""Judges what a program left in its session; the text is the model's last message."""


@dataclass(frozen=True, slots=True)
class _Played:
    """An episode that is over; with a verdict the rubric is not asked for one of the answer."""

    session: Session
    answer: str
    verdict: Verdict | None


class AgentEnv:
    """Tasks of an environment, played by a program.

    The program reads the prompt from stdin, from an argument ``{prompt}`` of the command, or from
    the files ``prompt.txt`` and ``task.json`` of its working directory, and asks the model at
    ``OPENAI_BASE_URL`` with ``OPENAI_API_KEY`` (or ``ANTHROPIC_BASE_URL``, ``ANTHROPIC_API_KEY``).
    The environment's rubric judges the model's last message, or a file that the program wrote. Of
    a :class:`~assay.envs.harbor.HarborEnv`, each task's container is the session, and its tests
    judge what the program left in it.

    In a sandbox each episode has a session of its own, from which the gateway is all that can be
    reached. A verdict has no score if the fault is not the policy's: the engine failed or timed
    out, the container was lost, the program never got a reply, could not be started, or, outside
    of a sandbox, was killed by a signal.

    Args:
        env: the tasks and the rubric.
        command: the program and its arguments.
        sandbox: where programs run; its backend must be one that has sessions.
        image: of the sandbox, see :meth:`~assay.sandbox.Sandbox.session`, as for ``limits``.
        limits: of all processes of a program together.
        files: files and folders of this machine that a program finds in its working directory.
        judge: judges the session, in which nothing runs any more, in place of the rubric.
        unsafe: without a sandbox, must be True: programs run as processes of this machine,
            isolated from nothing.
        answer_file: what is judged; by default the model's last message.
        time_s: seconds that the program may run. Waiting for the engine does not count.
        at_once: programs that run side by side.

    Raises:
        ValueError: neither ``sandbox`` nor ``unsafe`` is given, or both are, the command is empty,
            a file is missing, a limit is out of its range, or a Harbor task has steps or hosts
            that it may reach.
    """

    def __init__(
        self,
        env: TextEnv,
        command: Sequence[str],
        *,
        sandbox: Sandbox | None = None,
        image: str | None = None,
        limits: SessionLimits = SessionLimits(),  # noqa: B008 - frozen
        files: Sequence[str | Path] = (),
        judge: Judge | None = None,
        unsafe: bool = False,
        answer_file: str | None = None,
        time_s: float = 600.0,
        at_once: int = 16,
    ) -> None:
        if (sandbox is None) is not unsafe:
            raise ValueError(
                "a program needs either sandbox=Sandbox(...), or unsafe=True, by which it runs as "
                "a process of this machine, with your files and your network"
            )
        if unsafe and (image is not None or judge is not None or limits != SessionLimits()):
            raise ValueError("image, limits and judge are of a sandbox, and unsafe=True has none")
        self._folders: dict[str, HarborTask] = {}
        if isinstance(env, HarborEnv):
            if unsafe or image is not None or judge is not None or limits != SessionLimits():
                raise ValueError("a Harbor task has a container, limits and tests of its own")
            if steps := [t.id for t in env.folders.values() if len(t.stages) > 1]:
                raise ValueError(f"a program plays Harbor tasks without steps, not {steps[0]}")
            if hosts := [t.id for t in env.folders.values() if t.stages[0].network != "none"]:
                raise ValueError(
                    f"a program's container reaches the gateway only: the network_mode 'allowlist' "
                    f"of {hosts[0]} cannot be held"
                )
            self._folders = env.folders
        if isinstance(command, str) or not command:
            raise ValueError(f"command must be a list of words, got {command!r}")
        if time_s <= 0 or at_once < 1:
            raise ValueError(f"time_s and at_once must be above 0, got {time_s} and {at_once}")
        for path in files:
            if not Path(path).exists():
                raise ValueError(f"files: there is no {path}")
        self.env, self.command, self.answer_file = env, tuple(command), answer_file
        self.sandbox, self.image, self.limits, self.judge = sandbox, image, limits, judge
        self.files, self.time_s, self.at_once = tuple(map(Path, files)), time_s, at_once

    def play(
        self,
        engine: Engine | ChatEngine,
        tasks: Sequence[Task],
        group_size: int,
        *,
        config: GatewayConfig | None = None,
        seed: int = 0,
    ) -> list[EpisodeGroup]:
        """Play tasks, ``group_size`` times each, and judge them together.

        Args:
            engine: what samples.
            tasks: of the environment.
            group_size: episodes of each.
            config: of the gateway.
            seed: of sampling.

        Returns:
            A group for each task, in order.
        """
        gateway = Gateway(engine, config)
        played: list[_Played] = []
        copies: Counter[str] = Counter()  # a task may be given several times
        asked = []
        for task in (task for task in tasks for _ in range(group_size)):
            asked.append((task, derive_seed(seed, task.id, copies[task.id])))
            copies[task.id] += 1
        with served(gateway) as url, ThreadPoolExecutor(self.at_once) as pool:
            futures = [
                pool.submit(self._episode, gateway, url, task, own_seed) for task, own_seed in asked
            ]
            try:
                played = [future.result() for future in futures]
            finally:  # what has not begun is left out, and what runs ends soon
                pool.shutdown(wait=False, cancel_futures=True)
                for session in gateway.sessions:
                    gateway.end(session)
        return self._judged(tasks, group_size, played)

    def _episode(self, gateway: Gateway, url: str, task: Task, seed: int) -> _Played:
        """Run the program for one task."""
        session = gateway.open(seed)
        program: Program | None = None
        try:
            program = self._started(url, session, task)
            session.clock.start()
            time_s = self.time_s
            if folder := self._folders.get(task.id):
                time_s = min(time_s, folder.stages[0].agent_s)
            over = False
            while program.running() and not session.ended and not over:
                over = session.clock.seconds > time_s
                time.sleep(_LOOK_S)
            gateway.end(session)  # replies under way are dropped
            fault = program.fault() if not program.running() else None
            if over:
                why = f"the program ran longer than {time_s:g} s"
                fault = Verdict.wrong(why, status=Status.TIMEOUT)
            program.stop()
            turns, verdict = session.tree.turns, _verdict(session, fault)
            answer = str(turns[-1].message["content"]) if turns else ""
            if verdict is None and self.answer_file:
                answer = program.read(self.answer_file) or ""
            if verdict is None and isinstance(program, SandboxProgram):
                try:
                    verdict = self._judge_session(program.session, task, answer)
                except SessionEnded as error:
                    verdict = Verdict.wrong(str(error), status=Status.BROKE_SANDBOX)
            return _Played(session, answer, verdict)
        except (ImageUnavailable, SandboxUnavailable):
            raise  # so it is with all of them
        except SandboxError as error:
            return _Played(session, "", Verdict.fault(Status.SANDBOX_ERROR, str(error)))
        except (TaskError, Unhealthy) as error:
            return _Played(session, "", Verdict.fault(Status.BAD_GOLD, str(error)))
        except (OSError, ValueError, SessionEnded) as error:  # a null character in the prompt, say
            why = f"the program cannot be started: {error}"
            return _Played(session, "", Verdict.fault(Status.VERIFIER_ERROR, why))
        finally:
            gateway.end(session)
            if program is not None:
                program.close()

    def _judge_session(self, session: SandboxSession, task: Task, answer: str) -> Verdict | None:
        """Judge what a program left in its session, if the rubric does not."""
        if (folder := self._folders.get(task.id)) and self.sandbox:
            return graded_stage(folder, folder.stages[0], self.sandbox, session).verdict
        return self.judge(session, task, answer) if self.judge else None

    def _started(self, url: str, session: Session, task: Task) -> Program:
        """Start the program for one task."""
        text, messages = task.text, list(task.messages)
        if harbor := self._folders.get(task.id):  # without the words about the tools
            text = harbor.stages[0].instruction
            messages = [{"role": "user", "content": text}]
        command = [word.replace("{prompt}", text) for word in self.command]
        about = {"id": task.id, "prompt": messages, "metadata": dict(task.metadata)}
        folder, model = Path(tempfile.mkdtemp(prefix="assay-agent-")), session.gateway.engine.name
        with contextlib.ExitStack() as undo:
            undo.callback(shutil.rmtree, folder, ignore_errors=True)
            (folder / "work").mkdir()
            fill(folder / "work", {"task.json": json.dumps(about)}, self.files, text)
            if self.sandbox is None:
                local = LocalProgram(folder, command, _variables(url, session.key, model))
                undo.pop_all()
                return local
            host, _, port = url.removeprefix("http://").rpartition(":")
            network = Forward(host, int(port))
            if harbor:
                place, user = start(self.sandbox, harbor, network), harbor.stages[0].user
            else:
                place = self.sandbox.session(self.image, limits=self.limits, network=network)
                user = None
            undo.callback(place.close)
            if harbor:
                prepare(place, harbor.stages[0])
            variables = _variables(network.inside, session.key, model)
            program = SandboxProgram(place, folder / "work", command, variables, user)
            undo.pop_all()
            shutil.rmtree(folder)
            return program

    def _judged(
        self, tasks: Sequence[Task], group_size: int, played: Sequence[_Played]
    ) -> list[EpisodeGroup]:
        """Judge all answers in one batch, and group the episodes."""
        of_tasks = [task for task in tasks for _ in range(group_size)]
        asked = [(p, task) for p, task in zip(played, of_tasks, strict=True) if p.verdict is None]
        found = iter(
            self.env.rubric.verify_many(
                [p.answer for p, _ in asked], [task.reference for _, task in asked]
            )
        )
        episodes = [
            _record(task, p, next(found) if p.verdict is None else p.verdict)
            for p, task in zip(played, of_tasks, strict=True)
        ]
        groups = []
        for i, task in enumerate(tasks):
            mine = episodes[i * group_size : (i + 1) * group_size]
            if self.env.group_rubric is not None:
                mine = list(self.env.group_rubric.judged(task, mine))
            groups.append(EpisodeGroup(task, tuple(mine)))
        return groups


def _verdict(session: Session, fault: Verdict | None) -> Verdict | None:
    """Return what an episode is worth if its answer is not to be judged.

    Args:
        session: the episode.
        fault: what the program's own end is worth.
    """
    if session.faults:
        why = f"the model gave no reply: {next(iter(session.faults.values()))}"
        return Verdict.fault(Status.VERIFIER_ERROR, why)
    if not session.tree.turns:
        why = (
            f"the program ended without a reply of the model{f': {fault.reason}' if fault else ''}"
        )
        return Verdict.fault(Status.VERIFIER_ERROR, why)
    if session.cut and fault is not None and fault.status is Status.RUNTIME_ERROR:
        return None  # it was refused more turns
    return fault


def _record(task: Task, played: _Played, verdict: Verdict) -> Episode:
    """Return the record: the newest conversation, and the tokens of all."""
    tree = played.session.tree
    branches = tree.branches()
    said = branches[0].turns[-1].rendered if branches else ()
    return Episode(
        task_id=task.id,
        turns=tuple({"role": m["role"], "content": m["content"]} for m in said),
        verdict=verdict,
        truncated=played.session.cut,
        spans=branches[0].spans if branches else (),
        branches=tuple(branch.spans for branch in branches[1:]),
    )


def _variables(url: str, key: str, model: str) -> dict[str, str]:
    """Return the environment variables by which clients find the gateway."""
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",  # of older clients
        "OPENAI_API_KEY": key,
        "OPENAI_MODEL": model,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_MODEL": model,
        "NO_PROXY": "127.0.0.1,localhost",
        "no_proxy": "127.0.0.1,localhost",
    }
