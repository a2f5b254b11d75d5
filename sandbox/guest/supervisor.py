"""The guest: process 1 of a slot. It runs one program at a time and reports how each ended.

It talks to the host over its stdin and stdout, in frames: a length (4 bytes, big-endian), then
JSON. A request's frame is followed by its blobs, the program and its input; a reply's by what the
program wrote to stdout, to stderr and to its report descriptor.

Nothing a program reads or writes enters this process's heap, from which every later program is
forked: it all goes through memory files. The facts in a reply come from the kernel.
"""

from __future__ import annotations

import contextlib
import gc
import importlib
import json
import mmap
import os
import random
import resource
import select
import signal
import socket
import sys
import time
from typing import Any, NoReturn

from . import candidate, child, commands, tester
from .cleanup import Files, OwnFolder, kill_all, settle
from .clock import GroupClock, cpu_of, delay_of
from .kernel_memory import KernelMemory, number_after, opened
from .process_tree import ProcessTree, tasks_of_user
from .streams import Capture, Host

_PRELOAD = """
abc ast bisect builtins collections contextlib copy dataclasses datetime decimal enum
fractions functools heapq inspect io itertools json math operator queue random re
statistics string sys threading time traceback types typing unittest
"""
"""Modules that programs often import. The fork has them for nothing."""

_LIMITS = (
    *("cpu_s", "wall_s", "ceiling_s", "memory_mib"),
    *("pids", "output_bytes", "files", "tmp_mib"),
)

CLOCKS_DIFFER = 0.1  # seconds by which two of the kernel's counts of a run may differ
SHORTEST_CHECK = 0.02  # seconds between looks at the times of all processes
_SLACK = 1 << 20  # bytes below a limit, for one that is reached
KERNEL_CHECK = 0.01  # seconds between looks at what the kernel keeps for them


class Supervisor:
    """Runs requests until the host goes away.

    Args:
        config: ``uid_base`` (users to switch to start here), ``memory_cgroup`` (the kernel
            bounds the memory of the whole sandbox), ``process_limit`` (RLIMIT_NPROC may be used),
            ``preload`` (more modules to import), ``site`` (programs may import site-packages),
            ``paths`` (more folders to import from), ``settings`` (of the kernel, to make here if
            that is allowed),
            ``unsafe_folder`` (not process 1 but a process of the host: use this as /tmp).
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.config = config
        self.host = Host()
        folder = config.get("unsafe_folder", "")
        self.reads_all = False
        self.switches = os.getuid() == 0 and self._can_switch()
        self.runs = 0
        _prepare_interpreter(config)
        if not child.set_dumpable(False) and not self.switches:
            sys.exit("guest: cannot keep programs from reading its memory")
        self.memory = _Memory()
        self.kernel = KernelMemory(config.get("settings", {}), usable=not folder)
        self.clock = GroupClock(usable=config["memory_cgroup"])
        self.cores = os.cpu_count() or 1
        self.tree: ProcessTree | None = None
        self.files = Files() if not folder else self._be_unsafe(folder)
        self.own_limits = _own_limits()
        self.own_address_space = _address_space()
        gc.collect()
        gc.freeze()

    def _can_switch(self) -> bool:
        uid, folder = self.config["uid_base"], self.config.get("unsafe_folder")
        if not folder:
            return _can_be(uid, [])
        needs = [folder, os.path.dirname(os.__file__)]
        self.reads_all = not _can_be(uid, needs)
        return not self.reads_all or _can_be(uid, needs, reads_all=True)

    def _be_unsafe(self, folder: str) -> OwnFolder:
        """Do without namespaces: find and kill descendants only, and keep to one folder."""
        if os.getuid() == 0 and not self.switches:
            sys.exit("guest: will not run programs as root of this machine: be another user")
        tree, files = ProcessTree(), OwnFolder(folder)

        def clean_up() -> None:
            kill_all({}, {"cpu": 0.0, "rss": 0}, [], tree)
            files.remove()

        self.tree, self.host.before_end = tree, clean_up
        return files

    def serve(self) -> NoReturn:
        """Greet, then run one request after another."""
        self.host.write_frame(
            {"ready": 1, "python": sys.version.split()[0], "switches": self.switches}
        )
        while True:
            self.run(self.host.read_request())

    def run(self, request: dict[str, Any]) -> None:
        """Run one program, clean up after it, and reply."""
        limits = self._limits(request)
        blobs = [self.host.read_blob(size) for size in request["blobs"]]
        uids = self._fresh_users()
        captures = [Capture(limits["output_bytes"]) for _ in range(3)]
        started = time.monotonic()
        self.clock.start()
        self.kernel.start()
        processes = self._fork(request, blobs, captures, limits, uids)
        for capture in captures:
            os.close(capture.writer)
        for blob in blobs:
            os.close(blob)
        end = self._watch(processes, captures, limits, started)
        settle(processes, end)
        exits: dict[int, int] = {}
        usage = {"cpu": 0.0, "rss": 0}
        orphans = kill_all(exits, usage, processes, self.tree)
        for capture in captures:
            while not (capture.over or capture.ended) and capture.move():
                pass
        killed, full = self.memory.changes()
        if killed and not full and self.tree is None:  # for others' memory: the run is repeated
            sys.exit("guest: the machine ran out of memory, and not the sandbox")
        if end == "exit" and any(capture.over for capture in captures):
            end = "output"
        reply = {
            "id": request["id"],
            "end": end,
            "exits": [exits.get(pid) for pid in processes],
            "note": captures[2].head().decode("ascii", "replace"),
            "wall_s": time.monotonic() - started,
            "cpu_s": max(usage["cpu"], self.clock.used() - CLOCKS_DIFFER),
            "rss_kib": usage["rss"],
            "oom": self.tree is None and killed,
            "orphans": orphans,
            "clean": self.files.wipe(uids) and self._is_unharmed(),
            "sizes": [capture.kept for capture in captures],
            "cut": [capture.over for capture in captures],
        }
        self.host.write_frame(reply)
        for capture in captures:
            self.host.send_file(capture.file, capture.kept)
            capture.close()

    def _members(self) -> list[int]:
        """Return the processes of a run: all but this one, or its descendants on a shared host."""
        if self.tree is not None:
            return self.tree.members()
        return [int(name) for name in os.listdir("/proc") if name.isdigit() and name != "1"]

    def _limits(self, request: dict[str, Any]) -> dict[str, Any]:
        limits: dict[str, Any] = dict(request["limits"])
        for name in _LIMITS:
            value = limits[name]  # a number that the kernel takes for "none" must not come through
            if type(value) not in (int, float) or not 0 < value < 1 << 40:
                sys.exit(f"guest: {name} must be a positive number, got {value!r:.100}")
        bounded = self.config["memory_cgroup"] and not request["less_memory"]
        memory = limits["memory_mib"] << 20
        limits["address_space"] = 0 if bounded else memory + self.own_address_space
        # Deep recursion is common. Beside RLIMIT_AS the stacks of threads would not fit.
        limits["stack"] = memory if bounded else 0
        limits["reads_all"] = self.reads_all
        limits["processes"] = limits["pids"] if self.config["process_limit"] else 0
        if self.tree is not None and not self.switches:
            limits["processes"] += tasks_of_user()
        return commands.bounds(limits, request, bounded) if "exec" in request else limits

    def _is_unharmed(self) -> bool:
        """Return False if a program left what hurts later ones.

        That is sockets, ports that they may not bind, or, if it was of our own user, limits of
        this process.
        """
        if not self.kernel.is_released():
            return False
        return self.switches or _own_limits() == self.own_limits

    def _fresh_users(self) -> list[int | None]:
        """Return two users that no earlier run had: what one run leaves, the next may not touch."""
        self.runs += 1
        if not self.switches:
            return [None, None]
        first = self.config["uid_base"] + 2 * self.runs
        return [first, first + 1]

    def _fork(
        self,
        request: dict[str, Any],
        blobs: list[int],
        captures: list[Capture],
        limits: dict[str, Any],
        uids: list[int | None],
    ) -> list[int]:
        """Start the processes of a run. The first is the one whose end ends the run."""
        out, err, report = (capture.writer for capture in captures)
        code, text = blobs
        mode = request["mode"]
        if mode == "tests":
            ours, theirs = socket.socketpair()
            near = [None, err, err, report, ours.fileno()]
            far = [None, out, err, None, theirs.fileno()]
            pids = [
                self._child(tester.run_tests, text, request, near, limits, uids[1], True),
                self._child(candidate.serve, code, request, far, limits, uids[0]),
            ]
            ours.close()
            theirs.close()
        elif mode == "calls":
            streams = [None, out, err, report, text]
            pids = [self._child(candidate.answer, code, request, streams, limits, uids[0])]
        else:
            streams = [text, out, err, report]
            compiles = mode == "compile"
            body = {"run": commands.run_program, "compile": commands.compile_program}.get(
                mode, _run_main
            )
            pids = [self._child(body, code, request, streams, limits, uids[0], compiles)]
        return pids

    def _child(
        self,
        body: Any,
        blob: int,
        request: dict[str, Any],
        descriptors: list[int | None],
        limits: dict[str, Any],
        uid: int | None,
        secret: bool = False,
    ) -> int:
        pid = os.fork()
        if pid:
            return pid
        try:
            data = _read_file(blob)
            child.become_program(descriptors, limits, uid, secret=secret)
            body(data, request)
        except BaseException as error:  # nothing may unwind into the guest's loop
            with contextlib.suppress(BaseException):
                os.write(2, f"sandbox: {error!r}\n".encode()[:2000])
        finally:
            os._exit(1)

    def _watch(
        self, processes: list[int], captures: list[Capture], limits: dict[str, Any], started: float
    ) -> str:
        """Follow a run to its end, and return that: see ``Reply.end``."""
        process = os.pidfd_open(processes[0])
        poll = select.poll()
        poll.register(process, select.POLLIN)
        poll.register(self.host.reader, 0)  # hang-up only: then nobody wants this result
        by_fd = {capture.reader: capture for capture in captures}
        for fd in by_fd:
            poll.register(fd, select.POLLIN)
        deadline = started + limits["wall_s"]
        check = started + limits["cpu_s"] / self.cores
        look = started + KERNEL_CHECK
        try:
            while True:
                now = time.monotonic()
                if now >= deadline:
                    left = limits["wall_s"] - (now - started) + delay_of(processes, self._members())
                    if left <= 0 or now >= started + limits["ceiling_s"]:
                        return "wall"
                    deadline = min(started + limits["ceiling_s"], now + max(SHORTEST_CHECK, left))
                if now >= check:
                    left = limits["cpu_s"] - max(cpu_of(self._members()), self.clock.used())
                    if left <= 0:
                        return "cpu"
                    check = now + max(SHORTEST_CHECK, left / self.cores)
                if now >= look:
                    excess = self.kernel.excess(limits["files"])
                    if excess:
                        return excess
                    look = now + KERNEL_CHECK
                exited = False
                for fd, _ in poll.poll(max(1, (min(deadline, check, look) - now) * 1000)):
                    if fd == process:
                        exited = True
                    elif fd == self.host.reader:
                        self.host.gone()
                    else:
                        by_fd[fd].move()
                        if by_fd[fd].ended:
                            poll.unregister(fd)
                        if by_fd[fd].over:
                            return "output"
                if exited:
                    return "exit"
        finally:
            os.close(process)


def _run_main(code: bytes, request: dict[str, Any]) -> NoReturn:
    child.run_main(code)


def _own_limits() -> list[Any]:
    limits = [resource.getrlimit(which) for which in range(16)]  # RLIM_NLIMITS
    turn = (os.getpriority(os.PRIO_PROCESS, 0), os.sched_getscheduler(0), os.sched_getaffinity(0))
    return [*limits, *turn]


def _prepare_interpreter(config: dict[str, Any]) -> None:
    sys.path[:] = [path for path in sys.path if path]
    import site

    site.setquit()  # -S left out exit() and quit(), which programs call
    site.setcopyright()
    site.sethelper()
    if config["site"]:
        sys.path += [path for path in site.getsitepackages() if os.path.isdir(path)]
    sys.path += config.get("paths", [])
    # Before the imports: numpy reads there how many threads to use.
    child.set_environment(config.get("unsafe_folder", "/tmp"))  # noqa: S108 - its own
    for name in [*_PRELOAD.split(), *config["preload"]]:
        with contextlib.suppress(ImportError):
            importlib.import_module(name)
    _unignore_signals()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    os.umask(0o022)
    sys.set_int_max_str_digits(0)  # CPU time bounds it; programs of data sets print long integers
    random.seed(0)
    if "numpy" in sys.modules:
        sys.modules["numpy"].random.seed(0)
    child.open_streams()
    child.rehearse()


def _unignore_signals() -> None:
    """Reset ignored signals: shells ignore some for background jobs, and programs inherit that."""
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:  # Python's own wish
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)


def _can_be(uid: int, needs: list[str], *, reads_all: bool = False) -> bool:
    """Try to become another user, who gets into these folders, in a process of its own."""
    pid = os.fork()
    if pid == 0:
        try:
            child.become_user(uid, reads_all=reads_all)
            for folder in needs:
                os.chdir(folder)
            os._exit(0)
        except OSError:
            os._exit(1)
    return os.waitpid(pid, 0)[1] == 0


def _read_file(file: int) -> bytes:
    size = os.lseek(file, 0, os.SEEK_END)
    os.lseek(file, 0, os.SEEK_SET)
    return os.pread(file, size, 0)


def _address_space() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[0]) * mmap.PAGESIZE


class _Memory:
    """Counts of the sandbox's control group. Version 1 only says if the limit was ever reached."""

    def __init__(self) -> None:
        self.events = opened("/sys/fs/cgroup/memory.events")
        version_1 = ("oom_control", "max_usage_in_bytes", "limit_in_bytes")
        self.files = [opened(f"/sys/fs/cgroup/memory/memory.{name}") for name in version_1]
        self.before = self._read()

    def changes(self) -> tuple[bool, bool]:
        """Return whether the kernel killed a process since, and whether our limit was reached."""
        (kills, reached), self.before = self.before, self._read()
        full = self.before[1] > (-_SLACK if self.events is None else reached)
        return self.before[0] != kills, full

    def _read(self) -> tuple[int, int]:
        if self.events is not None:
            return number_after(self.events, b"oom_kill "), number_after(self.events, b"max ")
        kills, peak, limit = self.files
        return number_after(kills, b"oom_kill "), number_after(peak, b"") - number_after(limit, b"")


def main() -> NoReturn:
    """Be process 1. Anywhere else, kill(-1) would end everything the user runs."""
    config = json.loads(sys.argv[1])
    if os.getpid() != 1 and not config.get("unsafe_folder"):
        sys.exit("guest: must be process 1 of its own pid namespace, since it uses kill(-1)")
    guest = Supervisor(config)
    try:
        guest.serve()
    finally:
        guest.host.before_end()
