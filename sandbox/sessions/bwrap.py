"""Sessions under bubblewrap: no daemon, a root overlaid in memory, and a start in milliseconds.

The root is a folder: what ``assay-shell`` holds, unpacked once into the user's cache, or one that
the caller names; or the layers of an image of Docker's. What a session writes lies in a file system
in memory of its own, which bounds it. Only root can mount that, so only root opens such sessions.
"""

from __future__ import annotations

import contextlib
import hashlib
import itertools
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import threading
from dataclasses import replace
from pathlib import Path

from ..backends.bpf import filter_program
from ..backends.bwrap import bwrap_fault, memory_file, namespaces
from ..backends.cgroup import Group, groups_fault, make_group, sweep_groups
from ..backends.child_process import ChildProcess
from ..backends.process_id import is_alive, process_id
from ..backends.slot import SlotBroken
from ..errors import ImageUnavailable, SandboxError, SandboxUnavailable
from ..images.archive import write_layer
from ..images.build import image_tree
from ..images.description import describe
from ..trees import remove_tree
from .channel import Channel, ChannelBroken
from .docker import (
    AGAINST_OOM,
    CAPABILITIES,
    DEFAULT_PATH,
    MASKED,
    OF_SUPERVISOR,
    SHM_MIB,
    SUPERVISOR_MIB,
    ImageFacts,
)
from .layers import daemons_image, layers_of
from .limits import SessionLimits
from .supervisor import PATH, cache_folder, supervisor_path

_NAME = "session"
_INODES = 200_000
_SYS_RESOURCE = 24
# Nodes of its own: root of a session could change the modes of the machine's.
_NODES = {"null": 3, "zero": 5, "full": 7, "random": 8, "urandom": 9}
# $0 is the mount point; its first argument the size, the second what lies below.
_MOUNT = f"""
{{ prlimit --pid $$ --core=1:1 2>/dev/null || ulimit -c 0; }} && mount --make-rprivate / &&
mount -t tmpfs -o size="$1"m,nr_inodes={_INODES},mode=0755,nosuid assay-session "$0" &&
mkdir "$0"/up "$0"/work "$0"/root "$0"/dev &&
{" && ".join(f'mknod -m 666 "$0"/dev/{name} c 1 {minor}' for name, minor in _NODES.items())} &&
mkdir "$0"/dev/shm "$0"/dev/pts && ln -s /proc/self/fd "$0"/dev/fd &&
ln -s fd/0 "$0"/dev/stdin && ln -s fd/1 "$0"/dev/stdout && ln -s fd/2 "$0"/dev/stderr &&
mount -t overlay -o lowerdir="$2",upperdir="$0"/up,workdir="$0"/work,nosuid overlay "$0"/root &&
shift 2 && exec "$@"
"""
# Unlike cp it opens what it reads from the folder that it has opened: the session may put a link to
# the machine's files in a folder's place meanwhile.
_TAR = ("tar", "--xattrs", "--xattrs-include=*", "--numeric-owner", "--warning=none")


class View:
    """A started session and the channel to its supervisor."""

    def __init__(self, child: ChildProcess, group: Group, folder: Path) -> None:
        self._child = child
        self._group = group
        self._folder = folder
        self._owner = os.getpid()
        self._lock = threading.Lock()
        self._failure: str | None = None
        self.channel = Channel(child.stream, multiplexed=False)

    @property
    def alive(self) -> bool:
        """Whether its supervisor has not ended."""
        return not self.channel.ended

    def infrastructure_failure(self) -> str:
        """Return what ended it if that was not its memory; else empty."""
        with self._lock:
            if self._failure is None:  # the group, which knows, goes with the first that asks
                code = self._child.exit_code(5.0)
                memory = code == 137 and self._group.killed_for_memory()
                self._failure = "" if code is None or memory else f"bubblewrap ended with {code}"
            return self._failure

    def over_quota(self, disk_mib: int) -> str:
        """Return empty: its file system is no larger."""
        return ""

    def snapshot(self, name: str | None) -> str:
        """Copy what it has written, and return the folder of the copy.

        Raises:
            SandboxError: it cannot be copied.
        """
        if name is not None:
            raise SandboxError("sessions under bubblewrap save no images with names: use Docker")
        written = f"/proc/{self._child.pid}/root{self._folder}/up"
        copy = tempfile.mkdtemp(prefix=f"{_NAME}-{process_id()}-snapshot-", dir=_home())
        pack = [*_TAR, "--ignore-failed-read", "-cSC", written, "."]
        pipe, null = subprocess.PIPE, subprocess.DEVNULL
        with (
            subprocess.Popen(pack, stdout=pipe, stderr=null) as out,
            subprocess.Popen([*_TAR, "-xpC", copy], stdin=out.stdout, stderr=pipe) as into,
        ):
            assert out.stdout and into.stderr  # noqa: S101, PT018 - for the type checker
            out.stdout.close()
            if fault := into.stderr.read(300):  # one for each file, perhaps: the first will do
                into.kill()
        if fault or into.returncode or out.returncode > 1:  # 1: the session changed it meanwhile
            remove_tree(copy)
            raise SandboxError(f"a session's files cannot be copied: {fault!r}")
        return copy

    def end(self) -> None:
        """End it. Its mounts go with its last process. In a forked child it does nothing."""
        if self._owner != os.getpid():
            return
        self.channel.close()
        self._child.kill()
        self._group.remove()
        with contextlib.suppress(OSError):
            self._folder.rmdir()


def sessions_fault() -> str | None:
    """Return why no session can run under bubblewrap here, or ``None`` if some can."""
    if os.geteuid():
        return "sessions under bubblewrap need root, to mount their files: use Docker"
    return bwrap_fault() or groups_fault()


class BwrapSessions:
    """Starts sessions under bubblewrap.

    Raises:
        SandboxUnavailable: bubblewrap cannot be used, or this user may not mount or bound them.
    """

    name = "bwrap"
    default_image = ""

    def __init__(self) -> None:
        if fault := sessions_fault():
            raise SandboxUnavailable(fault)
        self._snapshots: list[str] = []
        self._lower: dict[str, str] = {}
        self._facts: dict[str, ImageFacts] = {}
        self._numbers = itertools.count()
        sweep_groups()
        for left in _home().glob(f"{_NAME}-*-*-*"):
            pid, started = left.name.split("-")[1:3]
            if not is_alive(f"{pid}-{started}"):
                remove_tree(left)

    def facts(self, image: str) -> ImageFacts:
        """Return what a session needs of a folder, or of an image of Docker's.

        Raises:
            ImageUnavailable: it is neither, or the folder has no /bin/sh.
        """
        if image in self._facts:  # a snapshot, a folder, or the digest of an image
            return self._facts[image]
        lower = image or str(shell_root())
        if os.path.isfile(f"{lower}/bin/sh") or os.path.islink(f"{lower}/bin/sh"):
            if ":" in lower or "," in lower:
                raise ImageUnavailable(f"the folder must have no ':' and no ',' in it: {lower}")
            facts = ImageFacts(image, {"PATH": DEFAULT_PATH}, "/", "0")
        else:
            found = daemons_image(image)
            facts, lower = ImageFacts.of(found), layers_of(image, found)
        self._lower[facts.digest] = lower
        self._facts[facts.digest] = facts
        return facts

    def watched_bytes(self, limits: SessionLimits) -> int:
        """Return 0: the size of its file system is held."""
        return 0

    def own_snapshot(self, folder: str, origin: str) -> None:
        """Let sessions start from a snapshot, until this is closed."""
        self._lower[folder] = f"{folder}:{self._lower[origin]}"
        self._facts[folder] = replace(self._facts[origin], digest=folder)
        self._snapshots.append(folder)

    def start(self, root: ImageFacts, limits: SessionLimits) -> View:
        """Start a session.

        Raises:
            SandboxError: it did not come up.
        """
        try:
            return self._start(root, limits)
        except OSError as error:  # the disk is full, or too many files are open
            raise SandboxError(f"a session did not start: {error}") from error

    def _start(self, root: ImageFacts, limits: SessionLimits) -> View:
        program = filter_program(spare_init=True)
        if program is None:
            raise SandboxUnavailable("no filter of system calls is known for this machine")
        name = f"{_NAME}-{process_id()}-{next(self._numbers)}"
        folder = _home() / name
        folder.mkdir()
        memory = (limits.memory_mib + SUPERVISOR_MIB) << 20
        group = make_group("session", memory, limits.pids + 2, limits.cpus)
        if group is None:
            folder.rmdir()
            raise SandboxUnavailable("this user may make no control groups any more: use Docker")
        file = memory_file(program)
        try:
            command = [
                *group.entering(),
                *("unshare", "--mount", "/bin/sh", "-c", _MOUNT, str(folder)),
                *(str(limits.disk_mib), self._lower[root.digest]),
                *_bwrap(folder, group, file),
            ]
            environment = {
                "PATH": os.environ.get("PATH", os.defpath),
                "LIBMOUNT_FORCE_MOUNT2": "always",  # else lowerdir has at most 256 bytes
            }
            child = ChildProcess(command, environment, inherited=[file], own_session=True)
            try:
                return View(child, group, folder)
            except ChannelBroken as error:
                said = child.said()
                child.kill()
                raise SandboxError(f"a session did not start: {said or error}") from error
        except (SandboxError, SlotBroken, OSError) as error:
            group.remove()
            with contextlib.suppress(OSError):
                folder.rmdir()
            raise SandboxError(str(error)) from error
        finally:
            os.close(file)

    def close(self) -> None:
        """Remove the snapshots."""
        for folder in self._snapshots:
            remove_tree(folder)
        self._snapshots.clear()


def _bwrap(folder: Path, group: Group, seccomp: int) -> list[str]:
    """Return what shows a session its files and starts its supervisor."""
    command = namespaces("session", (*CAPABILITIES, *OF_SUPERVISOR, *_against_oom()))
    command += ["--bind", f"{folder}/root", "/", "--dev-bind", f"{folder}/dev", "/dev"]
    command += ["--perms", "1777", "--size", str(SHM_MIB << 20), "--tmpfs", "/dev/shm"]  # noqa: S108
    command += ["--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts", "--proc", "/proc"]
    command += ["--ro-bind", "/proc/sys", "/proc/sys"]
    for path in MASKED:  # it has no /sys
        if path.startswith("/proc/") and os.path.isdir(path):
            command += ["--tmpfs", path, "--remount-ro", path]
        elif path.startswith("/proc/") and os.path.exists(path):
            command += ["--ro-bind", "/dev/null", path]
    command += ["--ro-bind", str(supervisor_path()), PATH, *group.view()]
    return [*command, "--clearenv", "--chdir", "/", "--seccomp", str(seccomp), "--", PATH]


def _against_oom() -> list[str]:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("CapEff") and int(line.split()[1], 16) >> _SYS_RESOURCE & 1:
            return [AGAINST_OOM]
    return []


def _home() -> Path:
    folder = cache_folder() / "sessions"
    folder.mkdir(parents=True, exist_ok=True)
    folder.chmod(0o700)  # snapshots hold what root of a session made, such as programs of root
    return folder


def shell_root() -> Path:
    """Return the folder with the files of ``assay-shell``, made if it is not in the cache.

    Raises:
        ImageUnavailable: this machine lacks packages of it.
    """
    description = describe("shell")
    status = Path("/var/lib/dpkg/status")
    known = f"{description} {sys.version} {status.stat().st_mtime if status.exists() else ''}"
    root = cache_folder() / f"root-shell-{hashlib.sha256(known.encode()).hexdigest()[:16]}"
    if root.is_dir():
        return root
    scratch = Path(tempfile.mkdtemp(prefix="root-", dir=_home()))
    try:
        with tempfile.TemporaryFile() as layer:
            write_layer(image_tree(description), layer)
            layer.seek(0)
            with tarfile.open(fileobj=layer) as tar:
                tar.extraction_filter = getattr(tarfile, "fully_trusted_filter", None)  # 3.11.4
                tar.extractall(scratch)  # noqa: S202 - our own tree
        scratch.chmod(0o755)
        with contextlib.suppress(OSError):  # another client was faster
            scratch.rename(root)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    return root
