"""The Docker backend: one hardened container for each slot, and nothing baked into its image."""

from __future__ import annotations

import contextlib
import json
import os
import random
import re
import socket
import sys
import threading
import time
import uuid
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from ..errors import ImageUnavailable, SandboxUnavailable
from ..limits import NETWORK_SETTINGS, Limits
from ..redaction import redact
from .address import default_address, explained, open_client, unreachable
from .guest_source import ENVIRONMENT, guest_command
from .infrastructure_failure import daemon_time, infrastructure_failure
from .process_id import is_alive, process_id
from .seccomp import docker_profile
from .slot import Origin, Slot, SlotBroken, Unreachable

DEFAULT_IMAGE = f"assay-python:{sys.version_info.major}.{sys.version_info.minor}"
PRELOAD_LABEL = "assay.preload"
"""The label of an image that names the modules its slots import."""

LABEL = "assay.sandbox"
_BACKEND_LABEL = f"{LABEL}.backend"
_SHM_MIB = 16
_GUEST_MIB = 32
_FIRST_UID = 20_000
_LAST_UID = 62_000  # and 2,000 more; a daemon with user namespaces has no more than 65,536
_OLD_S = 3600

PATIENCE_S = 10.0
"""How long a start waits for a daemon that does not answer, since it may only be restarting."""

POLL_S = 0.2


def daemon_fault(timeout_s: int = 10) -> str | None:
    """Return why no Docker daemon can be used, or ``None`` if one answers."""
    try:
        connect(timeout_s).close()
    except SandboxUnavailable as error:
        return str(error)
    return None


def connect(timeout_s: int = 60, host: str | None = None) -> Any:
    """Open a client of the low-level API: of this host's daemon, or of DOCKER_HOST's.

    Raises:
        SandboxUnavailable: no daemon answers.
    """
    import docker.errors

    where = host or default_address()
    client = open_client(where, timeout_s)
    try:
        client.ping()
    except (docker.errors.DockerException, OSError) as error:  # requests' are OSErrors
        client.close()
        raise SandboxUnavailable(unreachable(where, error)) from error
    return client


def _nothing() -> None:
    """Do nothing: nobody waits for the end."""


class DockerBackend:
    """Starts containers that run the guest.

    Args:
        image: tag or digest; it needs Python 3.11 or later as ``python3``, and nothing else.
        limits: the container's memory, processes and /tmp.
        preload: modules to import before any program runs, beside those that the image names.
        host: address of the daemon. Default: what DOCKER_HOST says, or the local socket.
        runtime: name of the daemon's runtime that containers run under, such as ``runsc``.
            Default: the daemon's own.
        patience_s: seconds that a start waits for a daemon that does not answer.

    Raises:
        SandboxUnavailable: no daemon answers, or it does not have the runtime.
        ImageUnavailable: it does not have the image.
    """

    name = "docker"
    tools = True

    def __init__(
        self,
        image: str,
        limits: Limits,
        preload: tuple[str, ...] = (),
        *,
        host: str | None = None,
        runtime: str | None = None,
        patience_s: float = PATIENCE_S,
    ) -> None:
        import docker.errors

        self.limits = limits
        self.host = host
        self.runtime = runtime
        self.patience_s = patience_s
        self._address = host or default_address()
        self._client = connect(60, host)
        try:
            if runtime is not None:
                _check_runtime(runtime, self._client.info().get("Runtimes") or {}, self._address)
            found = self._client.inspect_image(image)
        except docker.errors.ImageNotFound as error:
            self._client.close()
            raise ImageUnavailable(_missing(image, host)) from error
        except BaseException:
            self._client.close()
            raise
        self.image: str = found["Id"]
        labels = (found.get("Config") or {}).get("Labels") or {}
        self.preload = (*labels.get(PRELOAD_LABEL, "").split(), *preload)
        self._version = self._client._version
        self._id = uuid.uuid4().hex
        self.sweep()

    def start(
        self, ended: Callable[[], None] = _nothing, broken: Callable[[], None] = _nothing
    ) -> Slot:
        """Create, attach, start.

        Args:
            ended: called when a container that was started has ended.
            broken: called where its slot broke.

        Raises:
            SlotBroken: the daemon refused or is gone, or the guest did not greet.
        """
        for left in (2, 1, 0):
            try:
                return self._start(ended, broken)
            except SlotBroken as error:
                # Somebody killed it as it started: that says nothing of the next.
                if not (error.infrastructure_failure and left):
                    raise
        raise AssertionError("the last try returns or raises")

    def _start(self, ended: Callable[[], None], broken: Callable[[], None]) -> Slot:
        import docker.errors

        client = stream = None
        container = ""
        try:
            client = self._reach()
            made = client.create_container(**self._description(client))
            container = made["Id"]
            check_bounds(made.get("Warnings") or [])
            attached = client.attach_socket(
                container, params={"stdin": 1, "stdout": 1, "stderr": 1, "stream": 1}
            )
            stream = attached_stream(attached)
            client.start(container)
        except BaseException as error:
            if stream is not None:
                stream.close()
            if client is not None:
                remove_container(client, container)
                client.close()
            if isinstance(error, docker.errors.DockerException | OSError):
                cause = f"Docker does not start a container: {explained(error)}"
                raise SlotBroken(cause) from error
            raise
        once = threading.Lock()

        def end() -> None:
            if once.acquire(blocking=False):
                remove_container(client, container)
                with contextlib.suppress(Exception):  # only TLS has it, and holds the socket by it
                    attached._response.close()
                client.close()
                ended()

        def why(hung_up: bool) -> str:
            broken()
            return infrastructure_failure(self._address, container, hung_up=hung_up)

        return Slot(
            stream,
            Origin(self.name, self.image, self.host or ""),
            multiplexed=True,
            end=end,
            infrastructure_failure=why,
        )

    def _reach(self) -> Any:
        """Open a client for one slot, waiting a while for a daemon that does not answer.

        Raises:
            Unreachable: it did not come.
        """
        give_up = time.monotonic() + self.patience_s
        while True:
            try:
                return open_client(self._address, 60, self._version)
            except SandboxUnavailable as error:
                if time.monotonic() >= give_up:
                    raise Unreachable(str(error)) from error
            time.sleep(POLL_S)

    def _description(self, client: Any) -> dict[str, Any]:
        limits = self.limits
        memory = (limits.memory_mib + _GUEST_MIB) << 20
        config = {
            # The kernel counts pipes, signals and watches by user, in all containers together.
            "uid_base": random.randrange(_FIRST_UID, _LAST_UID, 2),  # noqa: S311 - no secret
            "memory_cgroup": True,
            "process_limit": False,
            "preload": list(self.preload),
            "site": True,
        }
        host = client.create_host_config(
            auto_remove=True,
            network_mode="none",
            dns=["127.0.0.1"],  # else /etc/resolv.conf is the daemon's machine's
            dns_search=["."],
            dns_opt=["ndots:1"],
            read_only=True,
            cap_drop=["ALL"],
            cap_add=["SETUID", "SETGID", "KILL"],
            security_opt=["no-new-privileges", f"seccomp={json.dumps(docker_profile())}"],
            # The guest itself, and the process that wipes, come on top.
            pids_limit=limits.pids + 2,
            mem_limit=memory,
            memswap_limit=memory,
            nano_cpus=1_000_000_000,
            ipc_mode="private",
            shm_size=_SHM_MIB << 20,
            tmpfs={
                "/tmp": f"rw,nosuid,nodev,size={limits.tmp_mib}m,nr_inodes=4096,mode=1777",  # noqa: S108
                # Instead of terminals, of which a machine has 3,072 for all containers together.
                "/dev/pts": "ro,nr_inodes=1",
            },
            sysctls=NETWORK_SETTINGS,
            log_config={"Type": "none", "Config": {}},
            # At 1 the kernel starts no handler of crashes, which would be root of the machine.
            ulimits=[{"Name": "core", "Soft": 1, "Hard": 1}],
            runtime=self.runtime,
        )
        return {
            "image": self.image,
            "command": guest_command("python3", config),
            "entrypoint": [],
            "user": "0:0",
            "working_dir": "/",
            "hostname": "sandbox",
            "environment": {**ENVIRONMENT, "PYTHONPATH": ""},
            "stdin_open": True,
            "detach": False,
            "stop_signal": "SIGKILL",  # else a daemon that stops waits 10 s for each container
            "labels": {
                LABEL: "1",
                f"{LABEL}.pid": process_id(),
                f"{LABEL}.boot": boot_id(),
                _BACKEND_LABEL: self._id,
            },
            "host_config": host,
        }

    def look(self) -> tuple[int, Any]:
        """Return the daemon's cores and the image's content, comparable between daemons.

        Raises:
            SandboxUnavailable: the daemon stopped answering.
        """
        import docker.errors

        try:
            cores = self._client.info().get("NCPU") or 1
            found = self._client.inspect_image(self.image)
        except (docker.errors.DockerException, OSError) as error:
            raise SandboxUnavailable(unreachable(self._address, error)) from error
        # The digest itself holds the time at which an image was made, and differs where two
        # machines made it from the same files.
        layers = (found.get("RootFS") or {}).get("Layers") or self.image
        return max(1, int(cores)), (layers, (found.get("Config") or {}).get("Env") or [])

    def sweep(self) -> int:
        """Remove containers of clients of this machine that are no more; say how many.

        A second line only: when a client dies its containers end by themselves. Those it had
        made but not yet started do not; an hour later any client may remove them.
        """
        removed = 0
        with contextlib.suppress(Exception):  # other clients may be sweeping as well
            boot = boot_id()
            found = self._client.containers(all=True, filters={"label": f"{LABEL}=1"})
            now = daemon_time(self._client) if found else 0
            for container in found:
                labels = container["Labels"]
                old = container["State"] == "created" and now - container["Created"] > _OLD_S
                ours = labels.get(f"{LABEL}.boot") == boot
                if old or (ours and not is_alive(labels.get(f"{LABEL}.pid", ""))):
                    remove_container(self._client, container["Id"])
                    removed += 1
        return removed

    def close(self) -> None:
        """Remove what is left, and close the connection.

        Slots remove their own containers, except one that a daemon made as it crashed, whose
        number nobody received, and those that it did not remove since it was down.
        """
        with contextlib.suppress(Exception):
            own = {"label": f"{_BACKEND_LABEL}={self._id}"}
            for container in self._client.containers(all=True, filters=own):
                remove_container(self._client, container["Id"])
        self._client.close()


def attached_stream(attached: Any) -> socket.socket:
    """Return the socket under what ``attach_socket`` returns, which differs with the transport."""
    found = getattr(attached, "_sock", attached)
    if type(found) is socket.socket:
        # A copy of our own: the original belongs to an HTTP response that closes it when freed.
        own = socket.socket(fileno=os.dup(found.fileno()))
        attached.close()
        found.close()
        return own
    return found  # type: ignore[no-any-return]  # TLS and SSH: kept alive by docker-py


def _missing(image: str, host: str | None) -> str:
    if host is None:
        ours = re.match(r"assay-([\w.-]+):", image)
        build = f"build {ours[1]}" if ours and image != DEFAULT_IMAGE else "build"
        return f"Docker has no image {image!r}: make it with `assay sandbox {build}`"
    return (
        f"Docker at {host} has no image {image!r}: bring it from a machine that has it with "
        f"`docker save {image} | docker -H {host} load`"
    )


def _check_runtime(runtime: str, known: Iterable[str], address: str) -> None:
    # A shim's own name, such as io.containerd.runsc.v1, is in no list.
    if runtime not in known and not runtime.startswith("io.containerd."):
        raise SandboxUnavailable(
            f"Docker at {redact(address)} has no runtime {runtime!r}, only "
            f"{', '.join(sorted(known))}: install it and name it in the daemon's "
            "/etc/docker/daemon.json"
        )


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


def boot_id() -> str:
    """Identify this boot and pid namespace: process numbers mean nothing in another."""
    with contextlib.suppress(OSError):
        boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
        return f"{boot} {os.readlink('/proc/self/ns/pid')}"
    return "unknown"
