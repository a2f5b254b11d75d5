"""The MCP servers of tasks, whose tools a policy has beside the shell."""

from __future__ import annotations

import contextlib
from collections.abc import Sequence

from ...sandbox import Sandbox, SandboxError, Session, SessionEnded
from ..tools.mcp_tools import EpisodeServer
from ..tools.tool import ToolError
from .folder import HarborTask
from .schema import TaskError
from .trial import Unhealthy, prepare, start


def servers_of(tasks: Sequence[HarborTask], sandbox: Sandbox | None) -> tuple[EpisodeServer, ...]:
    """Return the MCP servers of tasks, asked for their tools in a container of the first task.

    Args:
        tasks: all of an environment, whose tools are the same in every episode.
        sandbox: where the container runs; ``None`` opens one, if there are servers.

    Raises:
        TaskError: two tasks have other servers, or the container cannot be used.
        BadTool: a tool of a server cannot be one.
        SandboxError: a server does not start.
    """
    first, *others = tasks
    declared = first.config.environment.mcp_servers
    for task in others:
        if task.config.environment.mcp_servers != declared:
            raise TaskError(
                f"{task.folder / 'task.toml'}: environment.mcp_servers differ from those of "
                f"{first.folder}, and all tasks of an environment have the same tools. Put them "
                "into another folder"
            )
    servers = tuple(EpisodeServer([each.command, *each.args]) for each in declared)
    with contextlib.ExitStack() as stack:
        if servers:
            try:
                box = sandbox or stack.enter_context(Sandbox())
                session = stack.enter_context(start(box, first))
                prepare(session, first.stages[0])
                for server in servers:
                    server.ask(session, first.stages[0].user)
            except (Unhealthy, SessionEnded) as error:
                raise TaskError(f"{first.folder}: {error}") from error
    return servers


def start_servers(
    servers: Sequence[EpisodeServer], session: Session, user: str | int | None
) -> None:
    """Start the servers of an episode in which the policy has done nothing yet.

    Raises:
        SandboxError: one does not start, or offers other tools than it did.
    """
    for server in servers:
        try:
            server.start(session, user)
        except (ToolError, SessionEnded) as error:
            raise SandboxError(f"{server}: {error}") from error
