"""Ask the daemon whether a container ended by a failure of infrastructure, not by its program.

No program reaches the daemon, so none can forge the answer.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from ..errors import SandboxUnavailable
from ..redaction import redact
from .address import daemon_message, open_client

_WAIT_S = 3
_TIMEOUT_S = 10


def infrastructure_failure(address: str, container: str, *, hung_up: bool) -> str:
    """Return the failure of infrastructure that ended a container; empty if it may be the program.

    It is one if somebody had the daemon kill or pause the container; if the connection to it was
    lost (the guest exits with 0 only then; or it still runs although our stream has ended); and if
    the daemon cannot be asked or does not know the container, since it is gone or was restarted.

    Args:
        address: of the daemon.
        container: its id.
        hung_up: our stream to it has ended.
    """
    import docker.errors

    try:
        client = open_client(address, _TIMEOUT_S)
    except SandboxUnavailable as error:
        return str(error)
    try:
        events = _events(client, container)
        codes = [_exit_code(event) for event in events if event.get("Action") == "die"]
        actions = [event.get("Action") for event in events]
        if "kill" in actions:
            return "its container was killed"
        if actions.count("pause") > actions.count("unpause"):  # a commit has one of each
            return "its container was paused"
        if not codes and not _exists(client, container):
            return "the daemon lost the container"
        if codes == ["0"] or (not codes and hung_up):
            return "the connection to its container was lost"
        return ""
    except (docker.errors.DockerException, OSError) as error:
        return str(redact(f"Docker at {address} stopped answering: {daemon_message(error)}"))
    finally:
        client.close()


def _events(client: Any, container: str) -> list[dict[str, Any]]:
    """Return the daemon's events of a container, up to its removal or for some seconds."""
    found = []
    events = client.events(
        since=1,
        until=daemon_time(client) + _WAIT_S,
        filters={"type": "container", "container": container},
        decode=True,
    )
    try:
        for event in events:
            found.append(event)
            if event.get("Action") == "destroy":  # a kill may be noted after the exit
                break
    finally:
        events.close()
        events._response.close()  # if the daemon hung up, the first leaves a socket open
    return found


def _exit_code(event: dict[str, Any]) -> Any:
    return event.get("Actor", {}).get("Attributes", {}).get("exitCode")


def _exists(client: Any, container: str) -> bool:
    import docker.errors

    try:
        client.inspect_container(container)
    except docker.errors.NotFound:
        return False
    return True


def daemon_time(client: Any) -> int:
    """Return the daemon's time in seconds since 1970: our clock may differ."""
    said = client.info()["SystemTime"]
    return int(datetime.fromisoformat(re.sub(r"\.\d+", "", said)).timestamp())
