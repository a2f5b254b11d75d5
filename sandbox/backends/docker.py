"""The Docker backend: one hardened container for each slot, and nothing baked into its image."""

from __future__ import annotations

import contextlib
import random
import re
import sys
import time
import uuid
from collections.abc import Callable, Iterable
from typing import Any

from ..errors import ImageUnavailable, SandboxUnavailable
from ..limits import Limits
from ..redaction import redact
from .address import daemon_message, default_address, open_client, unreachable_message
from .container import LABEL, Container, hardened_options, is_left_behind, remove_container
from .guest_source import ENVIRONMENT, guest_command
from .infrastructure_failure import daemon_time, infrastructure_failure
from .slot import Origin, Slot, SlotBroken, Unreachable

DEFAULT_IMAGE = f"assay-python:{sys.version_info.major}.{sys.version_info.minor}"
PRELOAD_LABEL = "assay.preload"
"""The label of an image that names the modules its slots import."""

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
        raise SandboxUnavailable(unreachable_message(where, error)) from error
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

        client = self._reach()
        try:
            container = Container(
                client, lambda: client.create_container(**self._description(client))
            )
        except (docker.errors.DockerException, OSError) as error:
            cause = f"Docker does not start a container: {daemon_message(error)}"
            raise SlotBroken(cause) from error

        def end() -> None:
            if container.remove():
                ended()

        def why(hung_up: bool) -> str:
            broken()
            return infrastructure_failure(self._address, container.id, hung_up=hung_up)

        return Slot(
            container.stream,
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
        config = {
            # The kernel counts pipes, signals and watches by user, in all containers together.
            "uid_base": random.randrange(_FIRST_UID, _LAST_UID, 2),  # noqa: S311 - no secret
            "memory_cgroup": True,
            "process_limit": False,
            "preload": list(self.preload),
            "site": True,
        }
        tmp = f"rw,nosuid,nodev,size={limits.tmp_mib}m,nr_inodes=4096,mode=1777"
        found = hardened_options(
            client,
            image=self.image,
            command=guest_command("python3", config),
            name="sandbox",
            memory_mib=limits.memory_mib + _GUEST_MIB,
            pids=limits.pids + 2,  # the guest itself, and the process that wipes, come on top
            cpus=1.0,
            capabilities=("SETUID", "SETGID", "KILL"),
            shm_mib=_SHM_MIB,
            runtime=self.runtime,
            tmpfs={"/tmp": tmp},  # noqa: S108 - the sandbox's own
            read_only=True,
        )
        found["environment"] = {**ENVIRONMENT, "PYTHONPATH": ""}
        found["labels"][_BACKEND_LABEL] = self._id
        return found

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
            raise SandboxUnavailable(unreachable_message(self._address, error)) from error
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
            found = self._client.containers(all=True, filters={"label": f"{LABEL}=1"})
            now = daemon_time(self._client) if found else 0
            for container in found:
                old = container["State"] == "created" and now - container["Created"] > _OLD_S
                if old or is_left_behind(container["Labels"]):
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
