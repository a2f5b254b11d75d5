"""The tools of an MCP server that runs in a session of the sandbox, over stdio."""

from __future__ import annotations

import copy
import itertools
import json
import re
import shlex
import threading
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ...sandbox import Sandbox, SandboxError, Session, SessionEnded, SessionLimits
from ...verifiers import Status, Verdict
from ..state import State, Turn
from .signature import BadTool
from .tool import Tool, ToolError, Toolset, Work

_PROTOCOL = "2025-06-18"
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]{0,63}")
_MOST_TOOLS, _MOST_PAGES, _SCHEMA_CHARS, _ARGUMENT_BYTES = 128, 16, 1 << 16, 1 << 18


class MCPTools(Toolset):
    """Tools that an MCP server offers; each episode has a server and a container of its own.

    The server is untrusted: it runs in a session, what it says is bounded, and its schemas are
    shown to the policy and never evaluated. The policy gets the errors that a tool reports, and an
    error for a call without a readable answer in time; the server is then started anew, in the same
    container. A server that does not start for an episode, or whose tools have changed, is an
    infrastructure error, without a score; after the policy's first call that is the policy's, too.

    The container starts at the first call. A clone of an episode has a copy of its files, and a
    server of its own.

    Args:
        command: the server's, in the container; it speaks MCP over stdin and stdout.
        sandbox: where it is asked for its tools, once; episodes use their environment's.
        image: of the container.
        env: variables of the server.
        files: text or bytes by absolute path, put into the container first.
        limits: of the container; ``output_bytes`` bounds one answer.
        timeout_s: of a call, and of the server's start.

    Raises:
        BadTool: a tool of it cannot be one.
        SandboxError: the server does not start.
    """

    def __init__(
        self,
        command: str | Sequence[str],
        *,
        sandbox: Sandbox,
        image: str | None = None,
        env: Mapping[str, str] | None = None,
        files: Mapping[str, str | bytes] | None = None,
        limits: SessionLimits | None = None,
        timeout_s: float = 30.0,
    ) -> None:
        if not timeout_s > 0:
            raise ValueError(f"timeout_s must be positive, got {timeout_s!r}")
        words = shlex.split(command) if isinstance(command, str) else list(command)
        self._image, self._env, self._files = image, dict(env or {}), dict(files or {})
        self._limits = limits or SessionLimits()
        self._session: Session | None = None
        self._server = EpisodeServer(words, timeout_s)
        try:
            with self._start(sandbox) as session:
                self._server.ask(session)
        except SessionEnded as error:
            raise SandboxError(f"{self._server} does not start: {error}") from error

    def __deepcopy__(self, memo: dict[int, Any]) -> MCPTools:
        made = copy.copy(self)
        made._session, made._server = None, copy.copy(self._server)
        if self._session is not None:
            made._keep(self._session.fork())
        return made

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_session": None}

    def _tools(self, position: int) -> list[Tool]:
        return [MCPTool(schema, position) for schema in self._server.tools]

    def _call(self, name: str, arguments: Mapping[str, Any]) -> Work:
        def run(box: Sandbox) -> Any:
            try:
                self._open(box)
                return self._server.call(name, arguments)
            except SessionEnded as error:
                if self._session is None:  # the policy has done nothing yet
                    raise SandboxError(f"{self._server} ended its container: {error}") from error
                why = f"the container ended: {error}"
                return Turn.end(Verdict.wrong(why, status=Status.BROKE_SANDBOX))

        return Work(run)

    def _start(self, box: Sandbox) -> Session:
        session = box.session(image=self._image, limits=self._limits, env=self._env)
        try:
            for path, content in self._files.items():
                session.put(path, content)
        except BaseException:
            session.close()
            raise
        return session

    def _keep(self, session: Session) -> None:
        self._session = session
        weakref.finalize(self, session.close)

    def _open(self, box: Sandbox) -> None:
        """Start the episode's container and its server, unless they run.

        Raises:
            SandboxError: the server does not start, or offers other tools than it did.
            ToolError: the same after earlier calls, which may be the reason.
        """
        if self._session is not None:
            self._server.start(self._session)
            return
        session = self._start(box)
        try:
            self._server.start(session)
        except BaseException as error:
            session.close()
            if isinstance(error, ToolError):
                raise SandboxError(str(error)) from error
            raise
        self._keep(session)


class EpisodeServer:
    """The server of one episode. A copy has the same tools, and no process.

    Args:
        command: the server's, in the container.
        timeout_s: of a call, and of its start.

    Attributes:
        tools: schemas of the tools that it must offer.
    """

    def __init__(self, command: Sequence[str], timeout_s: float = 30.0) -> None:
        self._command, self._timeout_s = list(command), timeout_s
        self._process: _Server | None = None
        self.tools: list[dict[str, Any]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), "_process": None}

    def __str__(self) -> str:
        return f"the MCP server {shlex.join(self._command)!r:.80}"

    def ask(self, session: Session, user: str | int | None = None) -> None:
        """Start it to note its tools.

        Raises:
            BadTool: a tool of it cannot be one.
            SandboxError: it does not start.
        """
        try:
            server = _Server(session, self._command, self._timeout_s, user)
        except (_NoAnswer, _Refused) as error:
            raise SandboxError(f"{self} does not start: {error}") from error
        self.tools = server.tools
        server.end()

    def start(self, session: Session, user: str | int | None = None) -> None:
        """Start it, unless it runs.

        Raises:
            ToolError: it does not start, or offers other tools than it did.
        """
        if self._process is not None and self._process.process.running:
            return
        try:
            server = _Server(session, self._command, self._timeout_s, user)
            if server.tools != self.tools:
                server.end()
                raise _Refused("it offers other tools than when it was asked first")
        except (_NoAnswer, _Refused, BadTool) as error:
            raise ToolError(f"{self} does not start: {error}") from error
        self._process = server

    def call(self, name: str, arguments: Mapping[str, Any]) -> str:
        """Call a tool of it, once it has started.

        Raises:
            ToolError: the arguments are too long, the tool reports an error, or there is no
                readable answer; the server is then killed.
        """
        message = {"name": name, "arguments": dict(arguments)}
        if len(json.dumps(message)) > _ARGUMENT_BYTES:
            raise ToolError(f"arguments of a call may have at most {_ARGUMENT_BYTES} bytes")
        server = self._process
        assert server is not None  # noqa: S101  # see start
        try:
            return _text(server.request("tools/call", message))
        except _Refused as error:
            raise ToolError(str(error)) from error
        except _NoAnswer as error:
            server.end()
            self._process = None
            why = f"{error}; the server is started anew for the next call"
            raise ToolError(why) from error


@dataclass(frozen=True)
class MCPTool(Tool):
    """A tool whose schema a server has given.

    Attributes:
        function: the schema, in the form of OpenAI's tools.
    """

    function: Any

    def __post_init__(self) -> None:
        object.__setattr__(self, "schema", self.function)

    @property
    def name(self) -> str:
        """The name by which it is called."""
        return str(self.schema["function"]["name"])

    def fitted(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments' names; their values are the server's to judge.

        Raises:
            ToolError: one is unknown or missing.
        """
        takes = self.schema["function"]["parameters"]
        known = takes.get("properties", {})
        unknown = [name for name in arguments if name not in known]
        if unknown and takes.get("additionalProperties", False) is False:
            names = ", ".join(known) or "none"
            raise ToolError(f"{self.name} takes no argument {unknown[0]!r:.80}: it takes {names}")
        missing = [name for name in takes.get("required", []) if name not in arguments]
        if missing:
            raise ToolError(f"{self.name} needs the argument {missing[0]!r:.80}")
        return dict(arguments)

    def call(self, state: State, toolsets: tuple[Any, ...], arguments: Mapping[str, Any]) -> Any:
        """Call it on the episode's server."""
        assert self.owner is not None  # noqa: S101  # given by its toolset
        return toolsets[self.owner]._call(self.name, arguments)


class _NoAnswer(Exception):
    """The server ended, ran out of time, or said too much."""


class _Refused(Exception):
    """The server answered with an error."""


class _Server:
    """A server's process, initialized: one request at a time.

    Raises:
        _NoAnswer, _Refused: it does not do its part.
        BadTool: it offers a tool that cannot be one.
    """

    def __init__(
        self, session: Session, command: list[str], timeout_s: float, user: str | int | None
    ) -> None:
        self._timeout_s, self._ids, self._lock = timeout_s, itertools.count(1), threading.Lock()
        self.process = session.start(command, user=user, stdin=True)
        try:
            about = {"name": "assay", "version": "1"}
            hello = {"protocolVersion": _PROTOCOL, "capabilities": {}, "clientInfo": about}
            self.request("initialize", hello)
            self.tools = self._list()
        except BaseException:
            self.end()
            raise

    def request(self, method: str, params: Mapping[str, Any], *, notice: str = "") -> Any:
        """Send a request, and a notice before it, and return its result."""
        found: list[Any] = []
        with self._lock:
            number = next(self._ids)

            def take(line: bytes) -> bool:
                try:
                    said = json.loads(line)
                except (ValueError, RecursionError):
                    return False
                mine = isinstance(said, dict) and said.get("id") == number and "method" not in said
                if mine:
                    found.append(said)
                return mine

            messages: list[dict[str, Any]] = [{"method": notice}] if notice else []
            messages.append({"id": number, "method": method, "params": params})
            lines = [json.dumps({"jsonrpc": "2.0", **m}).encode() + b"\n" for m in messages]
            if not self.process.exchange(b"".join(lines), take, timeout_s=self._timeout_s):
                why = f"did not answer in {self._timeout_s:g} s, or at too great length"
                raise _NoAnswer(f"the server {why if self.process.running else 'ended'}")
        (answer,) = found[:1]
        if "error" in answer:
            error = answer["error"]
            raise _Refused(str(error.get("message") if isinstance(error, dict) else error))
        return answer.get("result")

    def _list(self) -> list[dict[str, Any]]:
        found: list[Any] = []
        cursor: dict[str, Any] = {}
        notice = "notifications/initialized"
        for _ in range(_MOST_PAGES):
            page = self.request("tools/list", cursor, notice=notice)
            tools = page.get("tools") if isinstance(page, dict) else None
            if not isinstance(tools, list):
                raise _Refused("its list of tools is none")
            found += tools
            if not page.get("nextCursor"):
                return _schemas(found)
            cursor, notice = {"cursor": page["nextCursor"]}, ""
        raise BadTool(f"an MCP server lists its tools on more than {_MOST_PAGES} pages")

    def end(self) -> None:
        """Kill it."""
        if self.process.running:
            try:
                self.process.kill()
            except SessionEnded:
                return


def _schemas(tools: Sequence[Any]) -> list[dict[str, Any]]:
    """Return schemas in the form of OpenAI's tools.

    Raises:
        BadTool: there is none, they are too many or too long, or one is not as MCP has it.
    """
    if not 1 <= len(tools) <= _MOST_TOOLS or len(json.dumps(tools)) > _SCHEMA_CHARS:
        raise BadTool(
            f"an MCP server must offer 1 to {_MOST_TOOLS} tools, with schemas of at most "
            f"{_SCHEMA_CHARS} characters, got {len(tools)} with {len(json.dumps(tools))}"
        )
    found: dict[str, dict[str, Any]] = {}
    for tool in tools:
        name, takes = (
            (tool.get("name"), tool.get("inputSchema")) if isinstance(tool, dict) else (None, None)
        )
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise BadTool(
                f"an MCP server offers a tool called {name!r:.80}: it needs {_NAME.pattern}"
            )
        if name in found:
            raise BadTool(f"an MCP server offers two tools called {name!r}")
        takes = takes if isinstance(takes, dict) else {"required": None}
        named, required = takes.get("properties", {}), takes.get("required", [])
        if not isinstance(named, dict) or not isinstance(required, list):
            raise BadTool(f"an MCP server's tool {name!r} has no schema of an object of arguments")
        about = str(tool.get("description") or "")
        function = {"name": name, "description": about, "parameters": takes}
        found[name] = {"type": "function", "function": function}
    return list(found.values())


def _text(result: Any) -> str:
    """Return the text of a call's result.

    Raises:
        ToolError: the tool reports an error, or it cannot be read.
    """
    parts = result.get("content") if isinstance(result, dict) else None
    if not isinstance(parts, list):
        raise ToolError("the server's answer cannot be read")
    texts = [
        str(part.get("text", "")) if part.get("type") == "text" else f"[{part.get('type')!s:.40}]"
        for part in parts
        if isinstance(part, dict)
    ]
    text = "\n".join(texts)
    if result.get("isError") is True:
        raise ToolError(text)
    return text
