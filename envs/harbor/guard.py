"""Keep the agent's code out of the process that runs the tests.

The tests' Python imports this file as ``sitecustomize``. It runs in a container and uses the
standard library and the sandbox's guest, which lies beside it as ``_assay``. Root runs the tests:

- A module that lies where the agent could write is imported in another process, of the agent's
  user; the tests see its objects through :mod:`assay.sandbox.guest.channel`. A module of the image
  always comes first, so ``/app/json.py`` replaces nothing.
- Whatever the tests start (``subprocess``, ``os.system``) runs as the agent's user, and cannot read
  the tests or write the reward.
- Code from the agent's files is not executed here by any other way, no pickle loads classes, no
  link of the agent's leads ``open`` to the tests, and no archive of its leads out of its folder.
- When this process ends, so do the agent's, unless the grader runs its code outside of this too.
"""

from __future__ import annotations

import atexit
import contextlib
import importlib.abc
import importlib.machinery
import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
import tarfile
import time
import types
from collections.abc import Iterator
from typing import Any

HERE = os.path.dirname(os.path.abspath(__file__))
_BIN = "/assay/bin"
_OWN = ("ASSAY_GUARD", "ASSAY_SETTINGS", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # each user's files are its own in these
_CANDIDATE = """\
import json, os, sys
sys.path[:0] = [{here!r}]
import _assay.candidate_modules as serve
sys.path.remove({here!r})
serve.main({fd}, {path!r})
"""


class Guard:
    """The rules of one process.

    Args:
        config: ``clean``: folders of the image that the agent cannot write, and the tests;
            ``agents``: its files in these; ``closed``: folders that only the tests may read;
            ``uid`` and ``home``: of the agent's user; ``separate``: nothing but this process runs
            its code. Folders end in a slash.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.clean = tuple(config["clean"])
        self.agents = tuple(config["agents"])
        self.closed = tuple(config["closed"])
        self.uid, self.home = config["uid"], config["home"]
        self.separate = config["separate"]
        self.settings = json.loads(os.environ.get("ASSAY_SETTINGS") or "{}")
        self.peer: Any = None
        self.started = False

    def is_agents(self, path: Any) -> bool:
        """Return whether the agent could have written this file or folder."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        path = os.path.realpath(os.fsdecode(path or ".")) + "/"
        return path.startswith(self.agents) or not path.startswith(self.clean)

    def install(self) -> None:
        """Put all rules into force."""
        os.umask(0)
        sys.dont_write_bytecode = True
        archive: Any = tarfile.TarFile
        if hasattr(tarfile, "data_filter"):  # else the Python is older than such filters
            archive.extraction_filter = staticmethod(tarfile.data_filter)
        sys.path += filter(None, self.settings.get("PYTHONPATH", "").split(":"))
        self._hide()
        self._imports()
        self._processes()
        sys.addaudithook(self.audit)

    def _hide(self) -> None:
        """Erase the command line, which every user can read: it may hold what the tests expect."""
        with open("/proc/self/stat", "rb") as stat:
            numbers = stat.read().rpartition(b") ")[2].split()
        begin, end = int(numbers[45]), int(numbers[46])
        with open("/proc/self/mem", "r+b", buffering=0) as memory:
            memory.seek(begin)
            memory.write(b"\0" * (end - begin))

    # -- imports -------------------------------------------------------------------------------

    def _imports(self) -> None:
        find = importlib.machinery.PathFinder.find_spec
        from_file = importlib.util.spec_from_file_location

        def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
            entries = [str(e) for e in (sys.path if path is None else path)]
            agents = [e for e in entries if self.is_agents(e)]
            found = find(name, [e for e in entries if e not in agents], target)
            if found is not None and found.loader is not None:
                return self._remote(name, found) if self.is_agents(found.origin) else found
            theirs = find(name, agents, target) if agents else None
            return found if theirs is None else self._remote(name, theirs)

        def spec_from_file_location(name: str, location: Any = None, **options: Any) -> Any:
            if location is not None and self.is_agents(location):
                path = os.path.abspath(os.fsdecode(location))
                loader = RemoteLoader(self, path)
                return importlib.machinery.ModuleSpec(name, loader, origin=path)
            return from_file(name, location, **options)

        finder: Any = importlib.machinery.PathFinder
        finder.find_spec = find_spec
        importlib.util.spec_from_file_location = spec_from_file_location

    def _remote(self, name: str, found: importlib.machinery.ModuleSpec) -> Any:
        spec = importlib.machinery.ModuleSpec(
            name, RemoteLoader(self, ""), origin=found.origin, is_package=False
        )
        if found.submodule_search_locations is not None:
            spec.submodule_search_locations = list(found.submodule_search_locations)
        return spec

    def names(self, module: str, file: str, name: str) -> Any:
        """Return a name of a module in the agent's process.

        Raises:
            ImportError: the module cannot be imported there.
            AttributeError: it has no such name.
        """
        if self.peer is None:
            self.peer = self._start()
        entries = [os.path.abspath(p) for p in sys.path if os.path.abspath(p) != HERE]
        key = name + "\n" + json.dumps([module, file, entries])
        found = self.peer.names([key, "!"])
        if key in found:
            return found[key]
        if "!" in found:
            raise ImportError(f"{module}: {found['!']}")
        raise AttributeError(f"module {module!r} has no attribute {name!r}")

    def _start(self) -> Any:
        from _assay.channel import Peer  # type: ignore[import-not-found]
        from _assay.tester import _may  # type: ignore[import-not-found]

        ours, theirs = socket.socketpair()
        code = _CANDIDATE.format(here=HERE, fd=theirs.fileno(), path=os.getcwd())
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a grader may read what the tests print
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        return Peer(ours.detach(), _may)

    # -- processes -----------------------------------------------------------------------------

    def _processes(self) -> None:
        start = subprocess.Popen.__init__
        mkdir, open_file = os.mkdir, os.open

        def popen(process: Any, args: Any, *rest: Any, **options: Any) -> None:
            if len(rest) < 3 and options.get("stdin") is None:  # this one's may hold the tests
                options["stdin"] = subprocess.DEVNULL
            if not self.started:
                self.started = True
                atexit.register(self.end)
            given = options.get("env")
            options["env"] = self.environment(os.environ if given is None else given)
            options.update(user=self.uid, group=self.uid, extra_groups=[])
            start(process, args, *rest, **options)

        def system(command: Any) -> int:
            code = subprocess.call(command, shell=True)  # noqa: S602  # as os.system does
            return code << 8 if code >= 0 else -code

        def open_mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            # tmp_path is for one user only, and the agent's programs are another's.
            mkdir(path, 0o777 if mode == 0o700 else mode, dir_fd=dir_fd)

        def readable(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
            return open_file(path, flags, 0o644 if mode == 0o600 else mode, **options)

        kind: Any = subprocess.Popen
        kind.__init__ = popen
        os.system = system
        os.mkdir = open_mkdir
        os.open = readable

    def environment(self, given: Any) -> dict[str, str]:
        """Return a program's environment without what belongs to the tests' own Python."""
        env = {
            name: value
            for name, value in given.items()
            if name not in _OWN and not (name[:6] == "PYTHON" and os.environ.get(name) == value)
        }
        env |= {
            name: v for name, v in self.settings.items() if given.get(name) == os.environ.get(name)
        }
        if "PATH" in env:
            env["PATH"] = env["PATH"].replace(_BIN + ":", "")
        if env.get("HOME") == os.environ.get("HOME"):
            env["HOME"] = self.home
        return env

    def audit(self, event: str, args: Any) -> None:
        """Refuse what would run the agent's code in this process, or follow its links."""
        if event == "open":
            if isinstance(args[0], str | bytes):
                self._check_open(path := os.fsdecode(args[0]))
                os.umask(0o022 if os.path.dirname(os.path.abspath(path)) in _SHARED else 0)
        elif event == "sqlite3.connect":
            if isinstance(args[0], str | bytes):
                self._check_open(os.fsdecode(args[0]))
        elif event == "exec":
            if self.is_agents(args[0].co_filename) and args[0].co_filename[:1] == "/":
                raise ImportError(f"{args[0].co_filename} is the agent's: it is not run here")
        elif event == "pickle.find_class":
            raise PermissionError("a pickle may hold code of the agent's: it is not loaded here")
        elif event == "ctypes.dlopen":
            named = isinstance(args[0], str | bytes) and "/" in os.fsdecode(args[0])
            if named and self.is_agents(args[0]):
                raise PermissionError(f"{args[0]} is the agent's: it is not loaded here")
        elif event in ("os.exec", "os.posix_spawn"):
            raise PermissionError(f"{event}: use subprocess, which runs it as the agent's user")

    def end(self) -> None:
        """Kill the agent's processes, and drop its links to the tests: a shell follows them."""
        if not self.separate:
            return
        for _ in range(1000):
            self._kill()
            if not any(self._running()):
                break
            time.sleep(0.001)
        kept = (*self.clean, *self.closed)
        folders = ["/"]  # os.walk recurses, and the agent's folders may be deep
        while folders:
            entries: list[os.DirEntry[str]] = []
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as found:
                entries += found
            for entry in (e for e in entries if not f"{e.path}/".startswith(kept)):
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_symlink() and os.path.realpath(entry.path).startswith(self.closed):
                    os.unlink(entry.path)

    def _kill(self) -> None:
        """Kill all processes of the agent's user at one stroke, which none of them outruns."""
        try:
            child = os.fork()
        except OSError:  # they leave no room for one more
            for process in self._running():
                with contextlib.suppress(OSError):
                    os.kill(process, signal.SIGKILL)
            return
        if child:
            os.waitpid(child, 0)
            return
        try:
            os.setgroups([])
            os.setresgid(self.uid, self.uid, self.uid)
            os.setresuid(self.uid, self.uid, self.uid)
            os.kill(-1, signal.SIGKILL)
        finally:
            os._exit(0)

    def _running(self) -> Iterator[int]:
        for number in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError), open(f"/proc/{number}/stat", "rb") as stat:
                dead = stat.read().rpartition(b") ")[2][:1] in b"ZX"
                if not dead and os.stat(f"/proc/{number}").st_uid == self.uid:
                    yield int(number)

    def _check_open(self, path: str) -> None:
        plain, real = os.path.abspath(path), os.path.realpath(path)
        if real.startswith(self.closed) and not plain.startswith((*self.closed, *self.clean)):
            raise PermissionError(f"{path} leads to {real}, which is the tests' own")


class RemoteLoader(importlib.abc.Loader):
    """Loads a module of the agent's: its names are asked for one by one."""

    def __init__(self, guard: Guard, file: str) -> None:
        self.guard, self.file = guard, file

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        """Make an empty module."""
        return types.ModuleType(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        """Let the module find its names in the agent's process."""
        name, file, guard = module.__name__, self.file, self.guard
        guard.names(name, file, "__name__")

        def get(attribute: str) -> Any:
            if attribute == "__all__":
                return guard.names(name, file, "*")
            if attribute.startswith("__") and attribute != "__version__":
                raise AttributeError(attribute)
            return guard.names(name, file, attribute)

        module.__getattr__ = get  # type: ignore[method-assign]  # what PEP 562 asks for


def _main() -> None:
    with open(os.path.join(HERE, "config.json"), encoding="utf-8") as file:
        config = json.load(file)
    if os.getuid() == 0 and os.environ.get("ASSAY_GUARD") == "1":
        Guard(config).install()
        sys.path.append(os.getcwd())  # which python -m has first, so that the image's come first


if __name__ == "sitecustomize":
    _main()
