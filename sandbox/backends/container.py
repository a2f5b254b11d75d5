"""What the containers of slots and of sessions have in common: their bounds, start and end."""

from __future__ import annotations

import contextlib
import json
import os
import socket
import threading
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from ..limits import NETWORK_SETTINGS
from .process_id import is_alive, process_id
from .seccomp import docker_profile
from .slot import SlotBroken

LABEL = "assay.sandbox"


def hardened_options(
    client: Any,
    *,
    image: str,
    command: Sequence[str],
    name: str,
    memory_mib: int,
    pids: int,
    cpus: float,
    capabilities: Sequence[str],
    shm_mib: int,
    runtime: str | None,
    tmpfs: dict[str, str] | None = None,
    spare_init: bool = False,
    **more: Any,
) -> dict[str, Any]:
    """Describe a container without network, for ``create_container``.

    Args:
        client: of the daemon.
        image: its digest.
        command: what becomes process 1.
        name: of the host, as programs see it.
        memory_mib: memory, MiB. There is no swap.
        pids: processes and threads at one time.
        cpus: cores.
        capabilities: rights of root; all others are dropped.
        shm_mib: size of /dev/shm, MiB.
        runtime: the daemon's runtime. Default: its own.
        tmpfs: more file systems in memory, with their options.
        spare_init: as for :func:`~.seccomp.docker_profile`.
        more: further arguments of ``create_host_config``.
    """
    profile = json.dumps(docker_profile(spare_init=spare_init))
    host = client.create_host_config(
        auto_remove=True,
        network_mode="none",
        dns=["127.0.0.1"],  # else /etc/resolv.conf is the daemon's machine's
        dns_search=["."],
        dns_opt=["ndots:1"],
        cap_drop=["ALL"],
        cap_add=list(capabilities),
        security_opt=["no-new-privileges", f"seccomp={profile}"],
        pids_limit=pids,
        mem_limit=memory_mib << 20,
        memswap_limit=memory_mib << 20,
        nano_cpus=int(cpus * 1e9),
        ipc_mode="private",
        shm_size=shm_mib << 20,
        # Instead of terminals, of which a machine has 3,072 for all containers together.
        tmpfs={"/dev/pts": "ro,nr_inodes=1", **(tmpfs or {})},
        sysctls=NETWORK_SETTINGS,
        log_config={"Type": "none", "Config": {}},
        # At 1 the kernel starts no handler of crashes, which would be root of the machine.
        ulimits=[{"Name": "core", "Soft": 1, "Hard": 1}],
        runtime=runtime,
        **more,
    )
    return {
        "image": image,
        "command": list(command),
        "entrypoint": [],
        "user": "0:0",
        "working_dir": "/",
        "hostname": name,
        "stdin_open": True,
        "detach": False,
        "stop_signal": "SIGKILL",  # else a daemon that stops waits 10 s for each container
        "labels": {LABEL: "1", f"{LABEL}.pid": process_id(), f"{LABEL}.boot": boot_id()},
        "host_config": host,
    }


class Container:
    """A container that was created, attached and started.

    Args:
        client: a client of its own, closed with it.
        create: creates it, and returns what the daemon said.
        prepare: called with its id before it is started.

    Attributes:
        stream: connected to the stdin, stdout and stderr of process 1, in Docker's frames.

    Raises:
        SlotBroken: the daemon drops a limit.
        docker.errors.DockerException, OSError: it refused, or is gone.
    """

    def __init__(
        self,
        client: Any,
        create: Callable[[], dict[str, Any]],
        prepare: Callable[[str], object] = lambda identifier: None,
    ) -> None:
        self.client = client
        self.id = ""
        self._attached: Any = None
        stream: socket.socket | None = None
        self._once = threading.Lock()
        try:
            made = create()
            self.id = made["Id"]
            check_bounds(made.get("Warnings") or [])
            prepare(self.id)
            streams = {"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            self._attached = client.attach_socket(self.id, params=streams)
            stream = _stream_under(self._attached)
            client.start(self.id)
        except BaseException:
            if stream is not None:
                stream.close()
            self.remove()
            raise
        self.stream = stream

    def remove(self) -> bool:
        """Remove it, and return True if no earlier call did. Whoever reads the stream closes it."""
        if not self._once.acquire(blocking=False):
            return False
        remove_container(self.client, self.id)
        with contextlib.suppress(Exception):  # only TLS has it, and holds the socket by it
            self._attached._response.close()
        self.client.close()
        return True


def _stream_under(attached: Any) -> socket.socket:
    """Return the socket under what ``attach_socket`` returns, which differs with the transport."""
    found = getattr(attached, "_sock", attached)
    if type(found) is socket.socket:
        # A copy of our own: the original belongs to an HTTP response that closes it when freed.
        own = socket.socket(fileno=os.dup(found.fileno()))
        attached.close()
        found.close()
        return own
    return found  # type: ignore[no-any-return]  # TLS: kept alive by docker-py


def check_bounds(warnings: Iterable[str]) -> None:
    """Refuse a container whose limits the daemon drops, as a rootless one may, with a warning.

    Raises:
        SlotBroken: it does.
    """
    for warning in warnings:
        if "discarded" in warning.lower():
            raise SlotBroken(
                f"Docker would run programs without a limit that was asked for: {warning} "
                "(On a rootless daemon, cgroup v2 with delegated controllers is needed.)"
            )


def remove_container(client: Any, container: str) -> None:
    """Remove a container that may already be removing itself."""
    if container:
        with contextlib.suppress(Exception):
            client.remove_container(container, force=True)


def is_left_behind(labels: dict[str, str]) -> bool:
    """Return whether what has these labels is of a client of this machine that is no more."""
    ours = labels.get(f"{LABEL}.boot") == boot_id()
    return ours and not is_alive(labels.get(f"{LABEL}.pid", ""))


def boot_id() -> str:
    """Identify this boot and pid namespace: process numbers mean nothing in another."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return "unknown"
