"""How a container ended, as its daemon tells it: whether that can be its program's doing.

No program reaches the daemon, so none can forge its word.
"""

from __future__ import annotations

import re
from datetime import datetime
from typing import Any

from .address import explained, open_client
from .errors import SandboxUnavailable

_WAIT_S = 3
_TIMEOUT_S = 10


def excuse(address: str, container: str, *, hung_up: bool) -> str:
    """Why a container's end was not its program's doing; empty where it may have been.

    It was not where somebody had the daemon kill the container; where the connection to it was
    lost (the agent exits with 0 then, and for nothing else, or still runs while our stream has
    ended); and where the daemon cannot be asked or has never heard of the container, since it
    is gone or has been started anew.

    Args:
        address: the daemon's.
        container: its id.
        hung_up: our stream to it has ended.
    """
    import docker.errors
    import requests

    try:
        client = open_client(address, _TIMEOUT_S)
    except SandboxUnavailable as error:
        return str(error)
    try:
        events = _events(client, container)
        codes = [_exit_code(event) for event in events if event.get("Action") == "die"]
        if any(event.get("Action") == "kill" for event in events):
            return "its container was killed"
        if not codes and not _exists(client, container):
            return "the daemon lost the container"
        if codes == ["0"] or (not codes and hung_up):
            return "the connection to its container was lost"
        return ""
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        return f"Docker at {address} stopped answering: {explained(error)}"
    finally:
        client.close()


def _events(client: Any, container: str) -> list[dict[str, Any]]:
    """What the daemon remembers of a container, up to its removal or for some seconds."""
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
            if event.get("Action") == "destroy":  # a kill may be noted after the death
                break
    finally:
        events.close()
        events._response.close()  # where the daemon hung up, the first leaves a socket open
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
    """The daemon's clock, in seconds since 1970: ours may differ."""
    said = client.info()["SystemTime"]
    return int(datetime.fromisoformat(re.sub(r"\.\d+", "", said)).timestamp())
