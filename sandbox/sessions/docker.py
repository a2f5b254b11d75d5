"""Containers for sessions: one for each, from any image with /bin/sh."""

from __future__ import annotations

import contextlib
import io
import os
import tarfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from ..backends.address import daemon_message, default_address, open_client
from ..backends.container import (
    LABEL,
    Container,
    boot_id,
    hardened_options,
    is_left_behind,
    remove_container,
)
from ..backends.docker import connect
from ..backends.infrastructure_failure import infrastructure_failure
from ..backends.process_id import is_alive, process_id
from ..backends.slot import SlotBroken
from ..errors import ImageUnavailable, SandboxError
from ..images.archive import docker_machine
from ..images.description import describe
from ..trees import count_files
from .channel import Channel, ChannelBroken
from .limits import SessionLimits
from .supervisor import PATH, supervisor_binary, supervisor_path

SHM_MIB = 64
SUPERVISOR_MIB = 16
# What tools that run as root in an image are used to; none reaches beyond the container.
CAPABILITIES = (
    *("CHOWN", "DAC_OVERRIDE", "FOWNER", "FSETID", "KILL", "NET_BIND_SERVICE"),
    *("SETGID", "SETUID"),
)
# Only the supervisor has these. It takes them from every process that it starts.
OF_SUPERVISOR = ("SETPCAP", "SYS_NICE")
AGAINST_OOM = "SYS_RESOURCE"
"""With it the kernel never kills the supervisor for memory. A daemon in a container may lack it."""

MASKED = (
    *("/proc/acpi", "/proc/asound", "/proc/driver", "/proc/fs", "/proc/interrupts", "/proc/kcore"),
    *("/proc/keys", "/proc/latency_stats", "/proc/mtrr", "/proc/sched_debug", "/proc/scsi"),
    *("/proc/timer_list", "/proc/timer_stats", "/proc/tty"),
    *("/sys/devices/virtual/powercap", "/sys/firmware"),
    # Of the kernel's memory; root of a session could read them.
    *("/proc/kpagecgroup", "/proc/kpagecount", "/proc/kpageflags"),
    *("/proc/slabinfo", "/proc/vmallocinfo"),
    # Root of a session could slow process 1 down, or have it killed next for memory.
    *("/proc/1/autogroup", "/proc/1/oom_adj", "/proc/1/oom_score_adj"),
    "/proc/1/task/1/oom_score_adj",
)
"""What sessions do not see of the machine: folders are empty, files hold nothing."""

MOST_FILES = 200_000
"""Files and folders that a session may make."""

DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


@dataclass(frozen=True)
class ImageFacts:
    """What a session takes from its image: digest, variables, first folder and user."""

    digest: str
    environment: Mapping[str, str]
    folder: str
    user: str

    def __hash__(self) -> int:
        return hash(self.digest)

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> ImageFacts:
        """Read a daemon's description of an image."""
        config = found.get("Config") or {}
        pairs = (item.partition("=") for item in config.get("Env") or [])
        environment = {"PATH": DEFAULT_PATH, **{name: value for name, _, value in pairs}}
        folder, user = config.get("WorkingDir") or "/", config.get("User") or "0"
        return cls(found["Id"], environment, folder, user)


class SessionContainer:
    """A session's container and the channel to its supervisor."""

    def __init__(self, backend: DockerSessions, container: Container) -> None:
        self._backend = backend
        self._container = container
        self._client = container.client
        self._id = container.id
        self._owner = os.getpid()
        self.channel = Channel(container.stream, multiplexed=True)

    @property
    def alive(self) -> bool:
        """Whether its supervisor has not ended."""
        return not self.channel.ended

    def infrastructure_failure(self) -> str:
        """Return what ended it if that was not its own programs; else empty."""
        hung_up = bool(self.channel.ended)
        return infrastructure_failure(self._backend.address, self._id, hung_up=hung_up)

    def snapshot(self, name: str | None) -> str:
        """Save its files as an image, and return the image's digest."""
        repository, _, tag = (name or "").partition(":")
        labels = {f"{LABEL}.snapshot": "kept" if name else process_id()}
        with self._backend.errors("Docker does not save the session"):
            made = self._client.commit(
                self._id,
                repository=repository or None,
                tag=(tag or "latest") if name else None,
                changes=[f'LABEL {key}="{value}"' for key, value in labels.items()],
            )
        return str(made["Id"])

    def over_quota(self, disk_mib: int) -> str:
        """Return why it has written more than it may; else empty."""
        with self._backend.errors("Docker does not measure a session"):
            url = self._client._url("/containers/{0}/json", self._id)
            found = self._client._result(self._client._get(url, params={"size": "1"}), True)
        if (found.get("SizeRw") or 0) > disk_mib << 20:
            return f"it wrote more than its limit disk_mib={disk_mib}"
        upper = ((found.get("GraphDriver") or {}).get("Data") or {}).get("UpperDir", "")
        more = bool(upper) and count_files(upper) > MOST_FILES
        return f"it made more than {MOST_FILES:,} files" if more else ""

    def end(self) -> None:
        """Remove it. Calling it twice does no harm, and in a forked child it does nothing."""
        if self._owner == os.getpid():
            self.channel.close()
            self._container.remove()


class DockerSessions:
    """Starts containers for sessions on one daemon.

    Args:
        host: address of the daemon. Default: what DOCKER_HOST says, or the local socket.
        runtime: of containers, such as ``runsc``.

    Raises:
        SandboxUnavailable: no daemon answers.
    """

    name = "docker"
    default_image = describe("shell").tag

    def __init__(self, host: str | None = None, runtime: str | None = None) -> None:
        self.address = host or default_address()
        self._runtime = runtime
        self._client = connect(60, host)
        self._version = self._client._version
        self._quota: bool | None = None
        self._against_oom = [AGAINST_OOM]
        # A daemon of this machine shows its containers the file; any other gets a copy each time.
        self._binds = self.address.startswith("unix://")
        self._snapshots: list[str] = []
        self._facts: dict[str, ImageFacts] = {}
        self._sweep()

    @contextlib.contextmanager
    def errors(self, what: str) -> Iterator[None]:
        """Turn the daemon's faults into a SandboxError."""
        import docker.errors

        try:
            yield
        except (docker.errors.DockerException, OSError) as error:  # requests' are OSErrors
            raise SandboxError(f"{what}: {daemon_message(error)}") from error

    def facts(self, image: str) -> ImageFacts:
        """Look an image up.

        Raises:
            ImageUnavailable: the daemon does not have it, or it is of another machine.
        """
        import docker.errors

        with self.errors("Docker does not describe an image"):
            try:
                found = self._client.inspect_image(image)
            except docker.errors.ImageNotFound as error:
                build = "assay sandbox build " + ("shell" if ":" in image else "FOLDER")
                raise ImageUnavailable(
                    f"Docker has no image {image!r}: make it with `{build}`"
                ) from error
        digest = found["Id"]
        if digest not in self._facts:
            machine = docker_machine()
            if found.get("Architecture") not in ("", None, machine):
                raise ImageUnavailable(
                    f"image {image!r} is for {found['Architecture']} and the supervisor of "
                    f"sessions is built for {machine}: name one for the image's machine in "
                    "ASSAY_SUPERVISOR"
                )
            self._facts[digest] = ImageFacts.of(found)
        return self._facts[digest]

    def watched_bytes(self, limits: SessionLimits) -> int:
        """Return from what size a session's disk is to be watched; 0 if the daemon holds it."""
        return 0 if self._quota else limits.disk_mib << 20

    def start(self, image: ImageFacts, limits: SessionLimits) -> SessionContainer:
        """Create, attach and start a container.

        Raises:
            SandboxError: the daemon refused or is gone.
        """
        while True:
            tried = (self._against_oom, self._binds)
            try:
                return self._start(image, limits)
            except SandboxError as error:
                # Others may have found out meanwhile, so this counts what this start has tried.
                if "apply caps" in str(error) and tried[0]:
                    self._against_oom = []
                elif "bind source path" in str(error) and tried[1]:
                    self._binds = False
                else:
                    raise

    def _start(self, image: ImageFacts, limits: SessionLimits) -> SessionContainer:
        client = open_client(self.address, 60, self._version)

        def prepare(identifier: str) -> None:
            if not self._binds:
                client.put_archive(identifier, "/", _archive())

        try:
            with self.errors("Docker does not start a session"):
                made = Container(client, lambda: self._create(client, image, limits), prepare)
        except SlotBroken as error:
            raise SandboxError(f"a session did not start: {error}") from error
        try:
            return SessionContainer(self, made)
        except BaseException as error:
            if not isinstance(error, ChannelBroken):
                made.remove()
                raise
            why = infrastructure_failure(self.address, made.id, hung_up=True)
            made.remove()
            raise SandboxError(f"a session did not start: {why or error}") from error

    def _create(self, client: Any, image: ImageFacts, limits: SessionLimits) -> Any:
        """Create it with a quota of its disk, if the daemon's file system has any."""
        import docker.errors

        if self._quota is not False:
            try:
                made = client.create_container(**self._description(client, image, limits, True))
            except docker.errors.APIError as error:
                if "storage-opt" not in str(error) and "storage opt" not in str(error).lower():
                    raise
                self._quota = False
            else:
                self._quota = True
                return made
        return client.create_container(**self._description(client, image, limits, False))

    def _description(
        self, client: Any, image: ImageFacts, limits: SessionLimits, quota: bool
    ) -> dict[str, Any]:
        found = hardened_options(
            client,
            image=image.digest,
            command=[PATH],
            name="session",
            memory_mib=limits.memory_mib + SUPERVISOR_MIB,
            pids=limits.pids + 2,
            cpus=limits.cpus,
            capabilities=[*CAPABILITIES, *OF_SUPERVISOR, *self._against_oom],
            shm_mib=SHM_MIB,
            runtime=self._runtime,
            spare_init=True,
            storage_opt={"size": f"{limits.disk_mib}m"} if quota else None,
        )
        host = found["host_config"]
        host["MaskedPaths"] = list(MASKED)
        if self._binds:
            bind = {"Type": "bind", "Source": str(supervisor_path()), "Target": PATH}
            host["Mounts"] = [{**bind, "ReadOnly": True}]
        return {**found, "healthcheck": {"test": ["NONE"]}}

    def own_snapshot(self, digest: str, origin: str) -> None:
        """Remove a snapshot when this is closed."""
        self._snapshots.append(digest)

    def _sweep(self) -> None:
        """Remove what clients of this machine left that are no more."""
        with contextlib.suppress(Exception):  # other clients may be sweeping as well
            boot = f"{LABEL}.boot={boot_id()}"
            for image in self._client.images(filters={"label": [f"{LABEL}.snapshot", boot]}):
                owner = (image.get("Labels") or {}).get(f"{LABEL}.snapshot", "kept")
                if owner != "kept" and not is_alive(owner):
                    self._client.remove_image(image["Id"], force=True)
            for found in self._client.containers(all=True, filters={"label": f"{LABEL}=1"}):
                if is_left_behind(found["Labels"]):
                    remove_container(self._client, found["Id"])

    def close(self) -> None:
        """Remove the snapshots that nobody named, latest first, and close the connection."""
        for digest in reversed(self._snapshots):
            with contextlib.suppress(Exception):  # one that a later image builds on stays
                self._client.remove_image(digest, force=True)
        self._snapshots.clear()
        self._client.close()


def _archive() -> bytes:
    binary = supervisor_binary()
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        info = tarfile.TarInfo(PATH.lstrip("/"))
        info.size, info.mode = len(binary), 0o555
        tar.addfile(info, io.BytesIO(binary))
    return file.getvalue()
