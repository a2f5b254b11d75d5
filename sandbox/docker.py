"""The Docker backend: one hardened container for each slot, and nothing baked into its image."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import sys
from pathlib import Path
from typing import Any

from .agent_source import agent_command
from .errors import ImageUnavailable, SandboxUnavailable
from .limits import Limits
from .seccomp import docker_profile
from .slot import Origin, Slot, SlotBroken

DEFAULT_IMAGE = f"assay-python:{sys.version_info.major}.{sys.version_info.minor}"
PRELOAD_LABEL = "assay.preload"
"""The label of an image that names the modules its slots import."""

_LABEL = "assay.sandbox"
_SHM_MIB = 16
_AGENT_MIB = 32
_FIRST_UID = 20_000


def daemon_fault(timeout_s: int = 10) -> str | None:
    """Why no Docker daemon can be used, or ``None`` where one answers."""
    try:
        connect(timeout_s).close()
    except SandboxUnavailable as error:
        return str(error)
    return None


def connect(timeout_s: int = 60) -> Any:
    """A client of the low-level API.

    Raises:
        SandboxUnavailable: no daemon answers.
    """
    where = os.environ.get("DOCKER_HOST", "unix:///var/run/docker.sock")
    if where.startswith("unix://"):
        # docker-py leaks its sockets where nobody answers, and takes 0.2 s to import.
        try:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(where.removeprefix("unix://"))
        except OSError as error:
            raise SandboxUnavailable(_unreachable(where, error)) from error

    import docker.errors
    import requests
    from docker.utils import kwargs_from_env

    try:
        client = docker.APIClient(**kwargs_from_env(), timeout=timeout_s, version="auto")
        client.ping()
    except (docker.errors.DockerException, requests.RequestException, OSError) as error:
        raise SandboxUnavailable(_unreachable(where, error)) from error
    return client


def _unreachable(where: str, error: Exception) -> str:
    return f"cannot reach Docker at {where}: {error}. Start Docker, or set DOCKER_HOST."


class DockerBackend:
    """Starts containers that run the agent.

    Args:
        image: tag or digest; it needs Python 3.11 or later as ``python3``, and nothing else.
        limits: the container's memory, processes and /tmp.
        preload: modules to import before any program runs, beside those that the image names.

    Raises:
        SandboxUnavailable: no daemon answers.
        ImageUnavailable: it does not have the image.
    """

    name = "docker"

    def __init__(self, image: str, limits: Limits, preload: tuple[str, ...] = ()) -> None:
        import docker.errors

        self.limits = limits
        self._client = connect()
        try:
            found = self._client.inspect_image(image)
            self.image: str = found["Id"]
        except docker.errors.ImageNotFound as error:
            self._client.close()
            raise ImageUnavailable(
                f"Docker has no image {image!r}: make it with `assay sandbox build`"
            ) from error
        labels = found["Config"].get("Labels") or {}
        self.preload = (*labels.get(PRELOAD_LABEL, "").split(), *preload)
        self._version = self._client._version
        self.sweep()

    def start(self) -> Slot:
        """Create, attach, start.

        Raises:
            SlotBroken: the daemon refused, or the agent did not greet.
        """
        import docker.errors
        import requests
        from docker.utils import kwargs_from_env

        client = None
        container = ""
        try:
            client = docker.APIClient(**kwargs_from_env(), timeout=60, version=self._version)
            container = client.create_container(**self._description(client))["Id"]
            stream = _stream(
                client.attach_socket(
                    container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
                )
            )
            client.start(container)
        except (docker.errors.DockerException, requests.RequestException, OSError) as error:
            if client is not None:
                _remove(client, container)
                client.close()
            raise SlotBroken(f"Docker does not start a container: {error}") from error

        def end() -> None:
            _remove(client, container)
            client.close()

        return Slot(stream, Origin(self.name, self.image), multiplexed=True, end=end)

    def _description(self, client: Any) -> dict[str, Any]:
        limits = self.limits
        memory = (limits.memory_mib + _AGENT_MIB) << 20
        config = {
            "uid_base": _FIRST_UID,
            "memory_cgroup": True,
            "process_limit": False,
            "preload": list(self.preload),
            "site": True,
        }
        host = client.create_host_config(
            auto_remove=True,
            network_mode="none",
            read_only=True,
            cap_drop=["ALL"],
            cap_add=["SETUID", "SETGID", "KILL"],
            security_opt=["no-new-privileges", f"seccomp={json.dumps(docker_profile())}"],
            # The agent itself, and the process that wipes, come on top.
            pids_limit=limits.pids + 2,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=1_000_000_000,
            ipc_mode="private",
            shm_size=_SHM_MIB << 20,
            tmpfs={
                "/tmp": f"rw,nosuid,nodev,size={limits.tmp_mib}m,nr_inodes=4096,mode=1777"  # noqa: S108
            },
            log_config={"Type": "none", "Config": {}},
            ulimits=[{"Name": "core", "Soft": 0, "Hard": 0}],
        )
        return {
            "image": self.image,
            "command": agent_command("python3", config),
            "entrypoint": [],
            "user": "0:0",
            "working_dir": "/",
            "hostname": "sandbox",
            "environment": {"PYTHONHASHSEED": "0", "PYTHONPATH": "", "LANG": "C.UTF-8"},
            "stdin_open": True,
            "detach": False,
            "labels": {_LABEL: "1", f"{_LABEL}.pid": _process_id(), f"{_LABEL}.boot": _boot_id()},
            "host_config": host,
        }

    def sweep(self) -> int:
        """Remove containers of clients of this machine that are no more; say how many.

        A second line only: when a client dies its containers end by themselves.
        """
        removed = 0
        with contextlib.suppress(Exception):  # other clients may be sweeping as well
            for found in self._client.containers(
                all=True, filters={"label": f"{_LABEL}.boot={_boot_id()}"}
            ):
                if not _is_alive(found["Labels"].get(f"{_LABEL}.pid", "")):
                    _remove(self._client, found["Id"])
                    removed += 1
        return removed

    def close(self) -> None:
        """Close the connection. Containers are the slots' own."""
        self._client.close()


def _stream(attached: Any) -> socket.socket:
    """The socket under what ``attach_socket`` returns, which differs with the transport."""
    found = getattr(attached, "_sock", attached)
    if type(found) is socket.socket:
        # A copy of our own: the original belongs to an HTTP response that closes it when freed.
        own = socket.socket(fileno=os.dup(found.fileno()))
        attached.close()
        found.close()
        return own
    return found  # type: ignore[no-any-return]  # TLS and SSH: kept alive by docker-py


def _remove(client: Any, container: str) -> None:
    """Remove a container that may already be removing itself."""
    if container:
        with contextlib.suppress(Exception):
            client.remove_container(container, force=True)


def _process_id() -> str:
    """This process, told from a later one of the same number by its start time."""
    return f"{os.getpid()}-{_started(os.getpid())}"


def _is_alive(process_id: str) -> bool:
    pid, _, started = process_id.partition("-")
    return pid.isdigit() and _started(int(pid)) == started


def _started(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19]
    return ""


def _boot_id() -> str:
    """This boot and this pid namespace: process numbers mean nothing in another."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return "unknown"
