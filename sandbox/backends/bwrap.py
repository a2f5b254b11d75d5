"""The embedded backend: the guest under bubblewrap, with no daemon and no image.

A program sees the host's Python read-only, without the packages that are installed for it, its own
/tmp, and nothing else. One in another language sees the host's compilers and commands as well.
Where this user may make a control group, the kernel bounds a program's memory as a whole, as under
Docker; elsewhere for each process by itself (RLIMIT_AS). Started by root, every run has its own
user, as under Docker; started by anybody else, all runs of a slot share one, and only the checks
between runs keep them apart.
"""

from __future__ import annotations

import functools
import glob
import os
import platform
import shutil
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType

from ..errors import ImageUnavailable, SandboxUnavailable
from ..images.host_files import (
    Tree,
    add_interpreter,
    add_libraries,
    left_out,
    libraries_of,
    package_folders,
    python_folders,
)
from ..limits import NETWORK_SETTINGS, Limits
from .bpf import filter_program
from .cgroup import Group, make_group, sweep_groups
from .child_process import ChildProcess
from .guest_source import ENVIRONMENT, foreign_uid, guest_command
from .slot import Origin, Slot, SlotBroken

# Of /usr no more: people keep environments and sources there, and their tasks with the answers.
_TOOLS = (
    *("/etc/alternatives", "/etc/ld.so.cache", "/usr/local/go"),
    *(
        f"{above}/{name}"
        for name in ("bin", "include", "lib", "lib32", "lib64", "libexec", "libx32", "sbin")
        for above in ("", "/usr", "/usr/local")
    ),
    *("/usr/share", "/usr/local/share"),
)
_HOSTS = b"127.0.0.1 localhost\n"
_PYTHON_PACKAGES = ("/usr/lib*/py*/*-packages", "/usr/local/lib*/py*/*-packages")
_SHM_MIB = 16
_GUEST_MIB = 32
_EXIT_S = 5.0
_TMP = "/tmp"  # noqa: S108 - the sandbox's own
_PACKAGES = "/opt/packages"
CAPABILITIES = ("SETUID", "SETGID", "KILL")
# At 1 the kernel starts no handler of crashes, which would be root, outside of every limit.
_NO_CRASH_HANDLER = "{ prlimit --pid $$ --core=1:1 2>/dev/null || ulimit -c 0; }"


class BwrapBackend:
    """Starts slots under bubblewrap.

    Args:
        limits: each process's memory, the slot's processes and /tmp.
        preload: modules to import before any program runs. Of the packages installed here, those
            that hold these modules, and what they need, can be imported; no others.
        tools: show the commands, compilers and libraries of this machine, for programs in other
            languages.

    Raises:
        ImageUnavailable: the modules are of this package, which holds answers.
        SandboxUnavailable: bubblewrap is not installed, or may not make namespaces here.
    """

    name = "bwrap"
    image = ""

    def __init__(
        self, limits: Limits, preload: tuple[str, ...] = (), *, tools: bool = False
    ) -> None:
        self.limits = limits
        self.preload = preload
        self.tools = tools
        self.packages = package_folders(preload)
        fault = bwrap_fault()
        if fault is not None:
            raise SandboxUnavailable(fault)
        sweep_groups()

    def start(self) -> Slot:
        """Start one slot.

        Raises:
            SlotBroken: it did not come up.
        """
        program = filter_program()
        seccomp = None if program is None else memory_file(program)
        hosts = memory_file(_HOSTS)
        inherited = [hosts] if seccomp is None else [hosts, seccomp]
        group = make_group("slot", (self.limits.memory_mib + _GUEST_MIB) << 20)
        try:
            child = ChildProcess(
                self.command(hosts, seccomp, group),
                {"PATH": os.environ.get("PATH", os.defpath)},
                inherited=inherited,
            )
        except SlotBroken:
            if group is not None:
                group.remove()
            raise
        finally:
            for file in inherited:
                os.close(file)

        def end() -> None:
            child.kill()
            if group is not None:
                group.remove()

        def failure(hung_up: bool) -> str:
            """Return that the guest was killed from outside: no program of root's slots can."""
            if not (hung_up and group is not None and os.geteuid() == 0):
                return ""
            killed = child.exit_code(_EXIT_S) in (128 + signal.SIGKILL, -signal.SIGKILL)
            return "its guest was killed" if killed and not group.killed_for_memory() else ""

        return child.slot(Origin(self.name), end, failure)

    def command(self, hosts: int, seccomp: int | None, group: Group | None) -> list[str]:
        """Return a slot's command line, given descriptors of its /etc/hosts and its filter."""
        config = {
            "uid_base": foreign_uid(),
            "memory_cgroup": group is not None,
            "process_limit": os.geteuid() == 0 or _counts_by_namespace(),
            "preload": list(self.preload),
            "site": False,
            "paths": [_PACKAGES] if self.packages else [],
            "settings": NETWORK_SETTINGS,
        }
        more = ["--perms", "0444", "--ro-bind-data", str(hosts), "/etc/hosts"]
        if group is not None:
            # What the kernel keeps, in version 1 or 2; version 2 counts CPU time in the same group.
            more += group.view("memory.kmem.usage_in_bytes", "memory.stat", "cpu.stat")
        command = [
            *namespaces("sandbox", CAPABILITIES),
            *_view(self.limits.tmp_mib, self.packages, more, tools=self.tools),
            *([] if seccomp is None else ["--seccomp", str(seccomp)]),
            "--",
            *guest_command(os.path.realpath(sys.executable), config),
        ]
        start = ["/bin/sh", "-c", f'{_NO_CRASH_HANDLER} && exec "$@"', "sh"]
        return [*start, *(group.entering() if group is not None else []), *command]

    def close(self) -> None:
        """Do nothing: nothing outlives the slots."""


def memory_file(content: bytes) -> int:
    """Return a descriptor of this content, to inherit."""
    file = os.memfd_create("bwrap")
    os.write(file, content)
    os.lseek(file, 0, os.SEEK_SET)
    return file


def namespaces(hostname: str, capabilities: Sequence[str]) -> list[str]:
    """Return the start of a command line, with root's rights inside if root runs it."""
    command = ["bwrap", "--die-with-parent", "--as-pid-1", "--new-session", "--hostname", hostname]
    if os.geteuid() != 0:
        return [*command, "--unshare-all", "--cap-drop", "ALL"]
    # In a user namespace root would be the only user, and could become no other.
    command += ["--unshare-ipc", "--unshare-pid", "--unshare-net", "--unshare-uts"]
    command += ["--unshare-cgroup-try", "--cap-drop", "ALL"]
    for capability in capabilities:
        command += ["--cap-add", f"CAP_{capability}"]
    return command


def _view(
    tmp_mib: int,
    packages: Mapping[str, str] = MappingProxyType({}),
    more: Sequence[str] = (),
    *,
    tools: bool = False,
) -> list[str]:
    """Return what makes the files that a program sees: Python's read-only, /tmp its own."""
    tree, folders, hidden = _shown(tuple(packages.values()), tools)
    places = {**tree.files, **folders, **{f"{_PACKAGES}/{n}": p for n, p in packages.items()}}

    def inside(path: str) -> bool:
        return any(path.startswith(f"{folder}/") for folder in folders)

    links = {path: target for path, target in tree.links.items() if not inside(path)}
    places = {path: source for path, source in places.items() if not inside(path)}
    view: list[str] = []
    # bwrap would make the folders above for their owner alone.
    above = {str(parent) for path in (*links, *places) for parent in Path(path).parents}
    for folder in sorted(above - {"/"} | {"/etc"}):
        view += ["--perms", "0755", "--dir", folder]
    for path, target in links.items():
        view += ["--symlink", target, path]
    for path, source in places.items():
        view += ["--ro-bind", source, path]
    for folder in filter(inside, hidden):
        view += ["--tmpfs", folder, "--remount-ro", folder]
    # A program is not root, so it writes no setting of the kernel; nor could it if it were, but
    # for those of its network, which the guest writes.
    view += ["--proc", "/proc", "--ro-bind", "/proc/sys", "/proc/sys", "--dev", "/dev"]
    view += ["--bind", "/proc/sys/net/ipv4", "/proc/sys/net/ipv4"]
    # Instead of terminals, of which the machine has 3,072 for all its containers together.
    view += ["--tmpfs", "/dev/pts", "--remount-ro", "/dev/pts"]
    for path, mib in ((_TMP, tmp_mib), ("/dev/shm", _SHM_MIB)):  # noqa: S108 - likewise
        view += ["--perms", "1777", "--size", str(mib << 20), "--tmpfs", path]
    view += [*more, "--remount-ro", "/dev", "--remount-ro", "/", "--chdir", _TMP]
    for name, value in {**ENVIRONMENT, "PATH": "/usr/bin:/bin"}.items():
        view += ["--setenv", name, value]
    return view


@functools.cache
def _shown(packages: tuple[str, ...], tools: bool) -> tuple[Tree, dict[str, str], set[str]]:
    """Find the files, the whole folders, and the folders in these that stay hidden.

    Raises:
        ImageUnavailable: programs cannot be shown this Python.
    """
    tree = Tree()
    add_interpreter(tree)
    add_libraries(tree, [path for folder in packages for path in libraries_of(folder)])
    folders = {folder: folder for folder in python_folders()}
    hidden = set(left_out())
    if tools:
        for path in _TOOLS:
            if os.path.islink(path):
                tree.links[path] = os.readlink(path)
            elif os.path.exists(path):
                folders[path] = path
        hidden |= {path for pattern in _PYTHON_PACKAGES for path in glob.glob(pattern)}
        # All of our own, with its answers: the folder that this package, the sandbox, is in.
        hidden.add(str(Path(__file__).resolve().parents[2]))
    # A link among them leads elsewhere: what counts is whether programs see that.
    return tree, folders, {os.path.realpath(path) for path in hidden}


def _counts_by_namespace() -> bool:
    """Return whether RLIMIT_NPROC counts per user namespace, as it does since Linux 5.14."""
    major, minor = platform.release().split(".")[:2]
    return (int(major), int("".join(c for c in minor if c.isdigit()) or 0)) >= (5, 14)


@functools.cache
def bwrap_fault() -> str | None:
    """Return why bubblewrap cannot be used here, or ``None`` if it can."""
    if shutil.which("bwrap") is None:
        return "bubblewrap is not installed: apt-get install bubblewrap"
    python = [os.path.realpath(sys.executable), "-I", "-S", "-c", ""]
    try:
        command = [*namespaces("sandbox", CAPABILITIES), *_view(1), "--", *python]
        done = subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)
    except ImageUnavailable as error:
        return str(error)
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"bubblewrap does not run: {error}"
    if done.returncode:
        return f"bubblewrap cannot make a sandbox here: {done.stderr.strip()[:300]}"
    return None
