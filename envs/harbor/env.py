"""Harbor tasks as an environment: a policy works in a container with tools, then the tests run."""

from __future__ import annotations

import copy
import json
import posixpath
import re
import secrets
import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from ...sandbox import Sandbox, SandboxError, Session, SessionEnded, Shell
from ...verifiers import Rubric, Status, Verdict, Verifier
from ..datasets.source import Rows
from ..state import State, Turn
from ..task import Task
from ..tools.mcp_tools import EpisodeServer, MCPTool
from ..tools.tool import Tool, ToolError, Toolset, Work
from ..tools.tool_env import ToolEnv
from .folder import HarborTask, load_tasks
from .grader import Graded
from .schema import TaskError
from .servers import servers_of, start_servers
from .trial import Unhealthy, combined, ends_after, graded_stage, prepare, start

_SEAL = secrets.token_hex(16)
"""Begins what :meth:`HarborEnv.answer` hands to the rubric, so that no reply passes for it."""

_LINES = 400


class HarborEnv(ToolEnv):
    """Work on Harbor task folders: a shell and files in a container for each episode.

    Observation: the task's instruction; then what tools answered.
    Action: a reply with calls of ``bash``, ``read_file``, ``write_file``, ``edit`` and ``submit``,
    and of the tools of the tasks' MCP servers, which run in the container as the agent's user.
    Reward: what the task's tests write, graded in a fresh container (:mod:`.grader`).
    End: with ``submit``, or with a reply that makes no call; after ``max_turns`` turns
    ``truncated``, graded as it stands. A task of steps puts its next instruction at ``submit``.

    The container starts at the first call. A clone of an episode has a copy of its files.

    Args:
        data: a task folder, or a folder of task folders.
        max_turns: of the policy's, in one episode.
        guard: keep the policy's code out of the tests' processes; see :class:`HarborTask`.
        tell: how the tools are described, as for a ToolEnv.
        sandbox: where containers run; ``None`` opens one on first use.
        render_mode: ``"ansi"`` or ``None``.

    Raises:
        TaskError: there is no task, or one cannot be used: all are named.
        BadTool, SandboxError: an MCP server of the tasks offers no usable tools.
    """

    def __init__(
        self,
        data: str | Path = "",
        max_turns: int = 30,
        *,
        guard: bool = True,
        tell: Literal["system", "template"] = "system",
        sandbox: Sandbox | None = None,
        render_mode: str | None = None,
    ) -> None:
        if not str(data):
            raise TaskError("no sample of tasks is shipped: give data=FOLDER, a folder of tasks")
        self.data = data
        self.folders = {task.id: task for task in load_tasks(data, guard=guard)}
        tasks = [
            Task(
                f"{task.stages[0].instruction}\n\nWork with the tools; call submit when done.",
                reference=task.digest,
                id=task.id,
                metadata={"keywords": list(task.config.task.keywords)},
            )
            for task in self.folders.values()
        ]
        servers = servers_of(list(self.folders.values()), sandbox)
        super().__init__(
            Rows(tasks),
            Rubric({"tests": GradedTests()}),
            tools=[HarborTools(self.folders, servers)],
            max_turns=max_turns,
            tell=tell,
            sandbox=sandbox,
            render_mode=render_mode,
        )

    def verdicts(self, states: Sequence[State]) -> list[Verdict]:
        """Return the verdicts of finished episodes, graded side by side."""
        self._sandbox().map(self.answer, [s for s in states if s.verdict is None])
        return super().verdicts(states)

    def answer(self, state: State) -> str:
        """Grade the episode's container, once, and return the verdict sealed for the rubric."""
        tools: HarborTools = state.data.toolsets[0]
        return _SEAL + json.dumps(tools._grade(self._sandbox()).to_json())


class GradedTests(Verifier):
    """Hand on the verdict of a container's tests. A reply alone earns nothing."""

    def judge(self, reply: str, reference: Any) -> Verdict:
        """Return the verdict that the environment sealed."""
        if not reply.startswith(_SEAL):
            return Verdict.wrong("a Harbor task is graded by its container, not by a reply")
        return Verdict.from_json(json.loads(reply.removeprefix(_SEAL)))


class HarborTools(Toolset):
    """The tools of one episode, and its container."""

    def __init__(
        self, folders: dict[str, HarborTask], servers: Sequence[EpisodeServer] = ()
    ) -> None:
        self._folders = folders
        self._servers = tuple(copy.copy(server) for server in servers)
        self._task: HarborTask | None = None
        self._session: Session | None = None
        self._shell: Shell | None = None
        self._lock = threading.Lock()
        self._step = 0
        self._spent = 0.0
        self._graded: list[Graded] = []
        self._ended = ""

    def __deepcopy__(self, memo: dict[int, Any]) -> HarborTools:
        made = HarborTools(self._folders, self._servers)
        kept = ("_session", "_shell", "_lock", "_folders", "_servers")
        made.__dict__.update((k, copy.copy(v)) for k, v in vars(self).items() if k not in kept)
        if self._session is not None and not self._over:
            made._keep(self._session.fork())
        return made

    def __getstate__(self) -> dict[str, Any]:
        # An environment's own tools, which play no episode.
        return {"folders": self._folders, "servers": self._servers}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__init__(**state)  # type: ignore[misc]

    def begin(self, task: Task) -> None:
        """Note the task; its container starts with the first call."""
        self._task = self._folders[task.id]

    # -- tools ---------------------------------------------------------------------------------

    def bash(self, command: str, timeout_s: float = 60.0) -> Work:
        """Run a command in a shell that keeps its folder, variables and jobs.

        Args:
            command: One or more lines for bash.
            timeout_s: Seconds until it is killed.
        """

        def run(box: Sandbox) -> str:
            session, left = self._open(box), self._left()
            if self._shell is None:
                self._shell = session.shell(user=self._stage.user)
            done = self._shell.run(command, timeout_s=max(0.1, min(timeout_s, left)))
            self._spent += done.wall_s
            text = done.text + done.stderr.decode("utf-8", "backslashreplace")
            cut = done.stdout_truncated + done.stderr_truncated
            parts = [text.rstrip("\n")] + ([f"[{cut} bytes were cut]"] if cut else [])
            return "\n".join(filter(None, [*parts, f"[{done.reason or 'exit code 0'}]"]))

        return self._work(run)

    def read_file(self, path: str, first_line: int = 1, lines: int = 200) -> Work:
        """Read lines of a text file.

        Args:
            path: Absolute path.
            first_line: Number of the first line to read, from 1.
            lines: How many lines to read.
        """
        if first_line < 1 or not 1 <= lines <= _LINES:
            raise ToolError(f"first_line must be at least 1, lines from 1 to {_LINES}")

        def run(box: Sandbox) -> str:
            found = self._read(box, path).splitlines(keepends=True)
            part = found[first_line - 1 : first_line - 1 + lines]
            return "".join(part) or f"[no such lines: the file has {len(found)}]"

        return self._work(run)

    def write_file(self, path: str, content: str) -> Work:
        """Write a text file. One that is there already is replaced.

        Args:
            path: Absolute path.
            content: The whole text.
        """

        def run(box: Sandbox) -> str:
            self._write(box, path, content)
            return "written"

        return self._work(run)

    def edit(self, path: str, old: str, new: str) -> Work:
        """Replace one piece of a text file by another.

        Args:
            path: Absolute path.
            old: The piece to replace, exactly as it stands there, and only once.
            new: What to put in its place.
        """

        def run(box: Sandbox) -> str:
            before = self._read(box, path, "surrogateescape")  # other bytes stay as they are
            if not old or before.count(old) != 1:
                times = before.count(old) if old else 0
                raise ToolError(f"'old' must stand in {path} exactly once, not {times} times")
            self._write(box, path, before.replace(old, new), "surrogateescape")
            return "edited"

        return self._work(run)

    def submit(self) -> Work:
        """Submit your work. This ends the task, or its step: the tests run."""

        def run(box: Sandbox) -> Turn | str:
            task = self._known()
            if self._step + 1 >= len(task.stages):
                return Turn.end()
            graded = self._grade_stage(box)
            if ends_after(self._stage, graded) or self._ended:
                return Turn.end()
            self._step, self._spent, self._shell = self._step + 1, 0.0, None
            self._servers = tuple(copy.copy(server) for server in self._servers)  # they were killed
            try:
                prepare(self._open(box), self._stage)
            except (Unhealthy, OSError) as error:
                self._ended = f"after the policy's work {error}"
                return Turn.end()
            return f"The next step:\n\n{self._stage.instruction}"

        return self._work(run)

    def _tools(self, position: int) -> list[Tool]:
        schemas = [schema for server in self._servers for schema in server.tools]
        return [*super()._tools(position), *(MCPTool(schema, position) for schema in schemas)]

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Work:
        """Call a tool of an MCP server."""
        named = (s for s in self._servers for t in s.tools if t["function"]["name"] == name)
        server = next(named)

        def run(box: Sandbox) -> str:
            session, _ = self._open(box), self._left()
            began = time.monotonic()
            try:
                server.start(session, self._stage.user)
                return server.call(name, arguments)
            finally:
                self._spent += time.monotonic() - began

        return self._work(run)

    # -- grading -------------------------------------------------------------------------------

    def _grade(self, box: Sandbox) -> Verdict:
        """Grade what is left in the container, once, and close it."""
        with self._lock:
            try:
                if not self._over:
                    self._open(box)
                    self._grade_stage(box)
            except SessionEnded as error:
                self._graded.append(Graded.broke(f"the container ended: {error}"))
            except SandboxError as error:
                self._graded.append(Graded.failed("sandbox", str(error), Status.SANDBOX_ERROR))
            except (TaskError, Unhealthy) as error:
                self._graded.append(Graded.failed("bad_task", str(error), Status.BAD_GOLD))
            if self._session is not None:
                self._session.close()
                self._session = None
            return combined(self._known(), self._graded).verdict

    @property
    def _over(self) -> bool:
        """Whether the last step that counts was graded."""
        done = len(self._graded)
        return done > self._step or done >= len(self._known().stages)

    def _grade_stage(self, box: Sandbox) -> Graded:
        graded = (
            Graded.broke(f"the container ended: {self._ended}")
            if self._ended
            else graded_stage(self._known(), self._stage, box, self._open(box))
        )
        self._graded.append(graded)
        return graded

    # -- the container -------------------------------------------------------------------------

    def _known(self) -> HarborTask:
        if self._task is None:
            raise RuntimeError("the tools of no episode")
        return self._task

    @property
    def _stage(self) -> Any:
        return self._known().stages[self._step]

    def _open(self, box: Sandbox) -> Session:
        if self._session is None:
            session = start(box, self._known())
            try:
                prepare(session, self._stage)
                start_servers(self._servers, session, self._stage.user)
            except BaseException:
                session.close()
                raise
            self._keep(session)
        assert self._session is not None  # noqa: S101  # for the type checker
        return self._session

    def _keep(self, session: Session) -> None:
        self._session = session
        weakref.finalize(self, session.close)  # an episode that nobody ends

    def _left(self) -> float:
        left = float(self._stage.agent_s - self._spent)
        if left <= 0:
            raise ToolError(f"the task's {self._stage.agent_s:g} s are spent: call submit")
        return left

    def _work(self, run: Any) -> Work:
        def guarded(box: Sandbox) -> Any:
            try:
                return run(box)
            except SessionEnded as error:
                self._ended = str(error)
                return Turn.end()
            except ValueError as error:  # such as a zero byte in a command
                raise ToolError(str(error)) from error

        return Work(guarded)

    def _read(self, box: Sandbox, path: str, errors: str = "replace") -> str:
        try:
            data = self._open(box).get(_absolute(path), limit_mib=4.0, user=self._stage.user)
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror or error}") from error
        return data.decode("utf-8", errors)

    def _write(self, box: Sandbox, path: str, content: str, errors: str = "strict") -> None:
        try:
            data = content.encode("utf-8", errors)
            session, path = self._open(box), _absolute(path)
            # An edited program stays one.
            found = session.exec(["stat", "-c", "%a", "--", path], user=self._stage.user).text
            mode = int(found, 8) & 0o777 if re.fullmatch(r"[0-7]{1,4}\n", found) else None
            session.put(path, data, mode=mode, user=self._stage.user, as_user=True)
        except UnicodeEncodeError as error:
            raise ToolError("the text holds half of a surrogate pair") from error
        except OSError as error:
            raise ToolError(f"{path}: {error.strerror or error}") from error


def _absolute(path: str) -> str:
    if not path.startswith("/"):
        raise ToolError(f"give an absolute path, not {path!r:.80}")
    return posixpath.normpath(path)
