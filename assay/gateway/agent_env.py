"""Episodes played by a program: start it for a task, wait, judge its end, keep its tokens."""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from ..envs import Episode, EpisodeGroup, Task, TextEnv
from ..verifiers import Status, Verdict
from ..verifiers.visible import one_line
from .app import served
from .engine import ChatEngine, Engine
from .episodes import Gateway, GatewayConfig, Session, derive_seed
from .program import LocalProgram, Program

_FROM_OUTSIDE = {signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP}
_LOOK_S = 0.02


@dataclass(frozen=True, slots=True)
class _Played:
    """An episode that is over.

    Attributes:
        session: its turns.
        answer: what the rubric judges.
        verdict: if the rubric is not asked.
    """

    session: Session
    answer: str
    verdict: Verdict | None


class AgentEnv:
    """Tasks of an environment, played by a program.

    The program reads the prompt from stdin, from an argument ``{prompt}`` of the command, or from
    the file ``task.json`` of its working directory, and asks the model at ``OPENAI_BASE_URL`` with
    ``OPENAI_API_KEY`` (or ``ANTHROPIC_BASE_URL``, ``ANTHROPIC_API_KEY``). The environment's rubric
    judges the model's last message, or a file that the program wrote.

    A verdict has no score if the fault is not the policy's: the engine failed or timed out, the
    program never got a reply, could not be started, or was killed from outside.

    Args:
        env: the tasks and the rubric.
        command: the program and its arguments.
        unsafe: must be True: the program runs as a process of this machine, isolated from nothing.
        answer_file: what is judged, in the program's working directory; by default the model's
            last message.
        time_s: seconds that the program may run. Waiting for the engine does not count.
        at_once: programs that run side by side.

    Raises:
        ValueError: ``unsafe`` is not set, the command is empty, or a limit is out of its range.
    """

    def __init__(
        self,
        env: TextEnv,
        command: Sequence[str],
        *,
        unsafe: bool = False,
        answer_file: str | None = None,
        time_s: float = 600.0,
        at_once: int = 16,
    ) -> None:
        if not unsafe:
            raise ValueError(
                "a program runs as a process of this machine, with your files and your network: "
                "if you trust it, and whatever a model may have it do, say unsafe=True"
            )
        if isinstance(command, str) or not command:
            raise ValueError(f"command must be a list of words, got {command!r}")
        if time_s <= 0 or at_once < 1:
            raise ValueError(f"time_s and at_once must be above 0, got {time_s} and {at_once}")
        self.env, self.command, self.answer_file = env, tuple(command), answer_file
        self.time_s, self.at_once = time_s, at_once

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
        with served(gateway) as url, ThreadPoolExecutor(self.at_once) as pool:
            futures = [
                pool.submit(self._episode, gateway, url, task, derive_seed(seed, task.id, copy))
                for task in tasks
                for copy in range(group_size)
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
        about = {"id": task.id, "prompt": list(task.messages), "metadata": dict(task.metadata)}
        try:
            program: Program = LocalProgram(
                [word.replace("{prompt}", task.text) for word in self.command],
                _variables(url, session.key, gateway.engine.name),
                {"task.json": json.dumps(about)},
                task.text,
            )
        except (OSError, ValueError) as error:  # ValueError: a null character in the prompt
            gateway.end(session)
            why = f"the program cannot be started: {error}"
            return _Played(session, "", Verdict.fault(Status.VERIFIER_ERROR, why))
        try:
            session.clock.start()
            while (code := program.poll()) is None and not session.ended:
                if session.clock.seconds > self.time_s:
                    break
                time.sleep(_LOOK_S)
            gateway.end(session)  # replies under way are dropped
            answer = program.read(self.answer_file) if self.answer_file else _last(session)
            return _Played(session, answer or "", self._verdict(session, code, program))
        finally:
            program.close()

    def _verdict(self, session: Session, code: int | None, program: Program) -> Verdict | None:
        """Return what an episode is worth if its answer is not to be judged."""
        killed = -code if code is not None and code < 0 else (code or 0) - 128
        printed = one_line(program.output()[-300:])
        if session.faults:
            why = f"the model gave no reply: {next(iter(session.faults.values()))}"
            return Verdict.fault(Status.VERIFIER_ERROR, why)
        if not session.tree.turns:
            why = f"the program ended ({code}) without a reply of the model: {printed}"
            return Verdict.fault(Status.VERIFIER_ERROR, why)
        if killed in _FROM_OUTSIDE:
            why = f"the program was killed from outside (signal {killed})"
            return Verdict.fault(Status.SANDBOX_ERROR, why)
        if code is None:
            why = f"the program ran longer than {self.time_s:g} s"
            return Verdict.wrong(why, status=Status.TIMEOUT)
        if code and not session.cut:
            why = f"the program failed ({code}): {printed}"
            return Verdict.wrong(why, status=Status.RUNTIME_ERROR)
        return None

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


def _last(session: Session) -> str:
    turns = session.tree.turns
    return str(turns[-1].message["content"]) if turns else ""


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
    local = ",".join(filter(None, [os.environ.get("NO_PROXY"), "127.0.0.1", "localhost"]))
    return {
        "OPENAI_BASE_URL": f"{url}/v1",
        "OPENAI_API_BASE": f"{url}/v1",  # of older clients
        "OPENAI_API_KEY": key,
        "OPENAI_MODEL": model,
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": key,
        "ANTHROPIC_MODEL": model,
        "NO_PROXY": local,
        "no_proxy": local,
    }
