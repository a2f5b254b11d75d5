"""An environment as an MCP server over stdio: any MCP client plays its episodes."""

from __future__ import annotations

import math
import threading
from collections.abc import Mapping
from typing import Any

import anyio
import mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

from ..envs import TextEnv
from ..envs.tools import ToolEnv
from ..envs.tools.calls import written_call
from ..envs.tools.messages import hermes
from .grading import log

_RESET, _SUBMIT, _STEP = "reset", "submit", "step"


def serve_stdio(env: TextEnv, *, reasons: bool = False) -> None:
    """Serve an environment to the client at stdin and stdout, until it leaves.

    Args:
        env: what is played; it is closed at the end.
        reasons: return the reasons of verdicts, which may quote the known answer.

    Raises:
        ValueError: a tool of the environment has a name that is taken.
    """
    server = mcp_server(env, reasons=reasons)

    async def run() -> None:
        async with stdio_server() as (read, write):
            await server.run(read, write, server.create_initialization_options())

    try:
        anyio.run(run)
    finally:
        env.close()


def mcp_server(env: TextEnv, *, reasons: bool = False) -> Server[Any]:
    """Make a server for one client, which plays one episode at a time.

    Its tools are ``reset``, which puts a task, and ``step``, which takes a reply; or in place of
    ``step`` the environment's own tools and ``submit``, which gives the answer. The result of what
    ends the episode has the reward.
    """
    player = _Player(env, reasons=reasons)

    async def list_tools(context: Any, params: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=player.tools)

    async def call_tool(context: Any, params: types.CallToolRequestParams) -> types.CallToolResult:
        return await anyio.to_thread.run_sync(player.call, params.name, params.arguments or {})

    return Server(f"assay: {env.name}", on_list_tools=list_tools, on_call_tool=call_tool)


class _Player:
    """An environment and the episode that is played in it."""

    def __init__(self, env: TextEnv, *, reasons: bool) -> None:
        self._env, self._reasons, self._lock, self._going = env, reasons, threading.Lock(), False
        self._own = env.tools if isinstance(env, ToolEnv) else {}
        if self._own and "tags" not in getattr(env, "ways", ()):
            raise ValueError(f"{env.name} reads no calls in tags: make it with ways=('tags',)")
        if _RESET in self._own:
            raise ValueError(f"{env.name} has a tool {_RESET!r}, as --mcp has: rename it")
        task = {"type": "integer", "minimum": 0, "description": "Its number; else one is drawn."}
        self.tools = [
            _tool(_RESET, "Begin an episode, and return its task.", {"task": task}),
            *(
                types.Tool(
                    name=name,
                    description=tool.schema["function"]["description"],
                    input_schema=dict(tool.schema["function"]["parameters"]),
                )
                for name, tool in self._own.items()
            ),
        ]
        if not self._own:
            reply = {"type": "string", "description": "Your reply to what was said last."}
            self.tools.append(_tool(_STEP, "Reply.", {"reply": reply}, "reply"))
        elif _SUBMIT not in self._own:
            answer = {"type": "string", "description": "The answer."}
            self.tools.append(
                _tool(_SUBMIT, "Give your answer: the episode ends.", {"answer": answer}, "answer")
            )

    def call(self, name: str, arguments: Mapping[str, Any]) -> types.CallToolResult:
        """Call a tool, one at a time."""
        with self._lock:
            try:
                if name == _RESET:
                    return self._reset(arguments.get("task"))
                return self._step(self._reply(name, arguments))
            except _Mistake as error:
                return _said(str(error), is_error=True)
            except Exception as error:  # what it says may be the known answer
                log.exception("%s raised in %s", self._env.name, name)
                self._going = False
                why = f"the environment raised {type(error).__name__}"
                about = {"reward": None, "status": "verifier_error", "truncated": False}
                return _said(f"[the episode is over: no reward: {why}]", about, is_error=True)

    def _reply(self, name: str, arguments: Mapping[str, Any]) -> str:
        if name in self._own:
            return written_call(name, arguments)
        field = {_STEP: "reply", _SUBMIT: "answer"}.get(name, "")
        if name not in {tool.name for tool in self.tools}:
            raise _Mistake(f"there is no tool {name!r:.80}")
        if not isinstance(arguments.get(field), str):
            raise _Mistake(f"{name} needs {field}, a string")
        return str(arguments[field])

    def _reset(self, task: Any) -> types.CallToolResult:
        if task is not None and (type(task) is not int or task < 0):
            raise _Mistake(f"task must be a number from 0, got {task!r:.80}")
        try:
            text, _ = self._env.reset(options={} if task is None else {"task": task})
        except IndexError as error:
            raise _Mistake(str(error)) from error
        self._going = True
        if isinstance(self._env, ToolEnv):  # the client has the schemas already
            text = text.replace(hermes(self._env.schemas), "").strip()
        return _said(text)

    def _step(self, reply: str) -> types.CallToolResult:
        if not self._going:
            raise _Mistake(f"there is no episode: call {_RESET}")
        text, reward, terminated, truncated, info = self._env.step(reply)
        self._going = not (terminated or truncated)
        if self._going:
            return _said(text)
        score = None if math.isnan(float(reward)) else float(reward)
        about = {"reward": score, "status": info["status"], "truncated": truncated}
        if self._reasons:
            about["reason"] = info["reason"]
        answered = info["messages"][-1]["role"] != "assistant"
        paid = "no reward: the environment failed" if score is None else f"reward {score:g}"
        ending = f"[the episode is over: {paid} ({info['status']})]"
        shown = f"{text}\n{ending}" if answered else ending
        return _said(shown, about, is_error=score is None)


class _Mistake(Exception):
    """Of the client's."""


def _tool(name: str, about: str, properties: dict[str, Any], needed: str = "") -> types.Tool:
    schema: dict[str, Any] = {"type": "object", "properties": properties}
    if needed:
        schema["required"] = [needed]
    return types.Tool(name=name, description=about, input_schema=schema)


def _said(
    text: str, about: dict[str, Any] | None = None, *, is_error: bool = False
) -> types.CallToolResult:
    content: list[types.ContentBlock] = [types.TextContent(type="text", text=text)]
    return types.CallToolResult(content=content, structured_content=about, is_error=is_error)
