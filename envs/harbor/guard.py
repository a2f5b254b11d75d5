"""Keep the agent's code out of the process that runs the tests.

The tests' Python imports this file as ``sitecustomize``. It runs in a container and uses the
standard library and the sandbox's guest, which lies beside it as ``_assay``. Root runs the tests:

- A module that lies where the agent could write is imported in another process, of the agent's
  user; the tests see its objects through :mod:`assay.sandbox.guest.channel`. A module of the image
  always comes first, so ``/app/json.py`` replaces nothing.
- Whatever the tests start (``subprocess``, ``os.system``) runs as the agent's user, and cannot read
  the tests or write the reward.
- What the agent's objects call of the tests' own is done with the rights of the agent's user.
- Code from the agent's files is not executed here by any other way, no pickle loads classes, no
  link of the agent's leads to the tests or to a tool that is written, and no archive of its leads
  out of its folder.
- When this process ends, so do the agent's, unless the grader runs its code outside of this too.
"""

from __future__ import annotations

import atexit
import builtins
import contextlib
import glob
import importlib.abc
import importlib.machinery
import importlib.util
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tarfile
import time
import types
from collections.abc import Iterator
from typing import Any
from urllib.parse import unquote, urlsplit

HERE = os.path.dirname(os.path.abspath(__file__))
_BIN = "/assay/bin"
_OWN = ("ASSAY_GUARD", "ASSAY_SETTINGS", "PYTEST_ADDOPTS", "PYTEST_CURRENT_TEST")
_SHARED = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  # each user's files are its own in these
_OPEN = ("/dev/shm/", "/dev/mqueue/", "/run/lock/")  # noqa: S108
"""Folders of the system's that everybody may write in."""

_PRIVATE = ("/tests", "/logs/verifier")
_RUNNING = "/assay/running"
"""Holds a file for each process of the tests that has started the agent's and not ended them."""

_FOLLOWING = frozenset(("os.chmod", "os.chown", "os.truncate", "os.utime", "os.setxattr"))
_LISTING = frozenset(("os.listdir", "os.scandir"))
_NAMING = frozenset(("os.mkdir", "os.rmdir", "os.remove", "os.rename", "os.link", "os.symlink"))
_CANDIDATE = """\
import json, os, sys
sys.path[:0] = [{here!r}]
import _assay.candidate_modules as serve
sys.path.remove({here!r})
serve.main({fd}, {libraries})
"""


class Guard:
    """The rules of one process.

    Args:
        config: ``clean``: folders of the image that the agent cannot write, and the tests;
            ``agents``: its files in these; ``closed``: folders that only the tests may read;
            ``uid`` and ``home``: of the agent's user; ``separate``: nothing but this process runs
            its code; ``paths``: folders of the agent's modules;
            ``written``: a pattern of paths that the grader writes, ``globs`` for them, and
            ``replaced`` of those of which it leaves nothing; ``startup``: paths of
            start-up files of the tests' user. Folders end in a slash.
    """

    def __init__(self, config: dict[str, Any]) -> None:
        self.clean = tuple(config["clean"])
        self.agents = tuple(config["agents"])
        self.closed = tuple(config["closed"])
        self.uid, self.home = config["uid"], config["home"]
        self.separate = config["separate"]
        self.settings = json.loads(os.environ.get("ASSAY_SETTINGS") or "{}")
        self.written = re.compile(config["written"])
        self.replaced = re.compile(config["replaced"])
        self.globs = tuple(config["globs"])
        self.startup = tuple(config["startup"])
        self.paths = tuple(config["paths"])
        self.peer: Any = None
        self.place: Any = None
        self.started = False
        self.owner = os.getpid()
        self.serving = 0

    def is_agents(self, path: Any) -> bool:
        """Return whether the agent could have written this file or folder."""
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        path = os.path.realpath(os.fsdecode(path or ".")) + "/"
        return path.startswith(self.agents) or not self.is_clean(path)

    def is_clean(self, path: str) -> bool:
        """Return whether an absolute path is one that the agent cannot write, or the tests'."""
        return path.startswith(self.clean) and not path.startswith(_OPEN)

    def install(self) -> None:
        """Put all rules into force."""
        os.umask(0)
        sys.dont_write_bytecode = True
        archive: Any = tarfile.TarFile
        if hasattr(tarfile, "data_filter"):  # else the Python is older than such filters
            archive.extraction_filter = staticmethod(tarfile.data_filter)
        sys.path += filter(None, self.settings.get("PYTHONPATH", "").split(":"))
        version = ".".join(map(str, sys.version_info[:2]))
        sys.path += [f"{self.home}/.local/lib/python{version}/site-packages", *self.paths]
        self._hide()
        self._imports()
        self._files()
        self._processes()
        self.close_private()
        atexit.register(self.end)
        os.register_at_fork(after_in_parent=self._note)  # a fork of the tests may start them too
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

        # A class method as the original: pytest makes it an attribute of a class of its own.
        def find_spec(_: Any, name: str, path: Any = None, target: Any = None) -> Any:
            entries = [str(e) for e in (sys.path if path is None else path)]
            agents = [e for e in entries if self.is_agents(e)]
            found = find(name, [e for e in entries if e not in agents], target)
            if found is not None and (found.loader is not None or _holds_modules(found)):
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
        finder.find_spec = classmethod(find_spec)
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
        from _assay.wire import LIBRARIES  # type: ignore[import-not-found]

        ours, theirs = socket.socketpair()
        numpy = importlib.util.find_spec("numpy")
        if numpy is not None and not isinstance(numpy.loader, RemoteLoader):
            LIBRARIES.add("numpy")
        self.place = os.getcwd(), self.environment(os.environ)
        code = _CANDIDATE.format(here=HERE, fd=theirs.fileno(), libraries=[*LIBRARIES])
        self.process = subprocess.Popen(
            [sys.executable, "-s", "-c", code],
            pass_fds=[theirs.fileno()],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # a grader may read what the tests print
            stderr=subprocess.DEVNULL,
        )
        theirs.close()
        guard = self

        class Lowered(Peer):  # type: ignore[misc]
            def _ask(self, message: Any) -> Any:
                guard.move()
                return super()._ask(message)

            def answer(self, message: Any, before_reply: Any = None) -> None:
                with guard.lowered():
                    super().answer(message, before_reply)

            def _error(self, data: Any) -> Any:
                error = super()._error(data)
                return AgentsExit(*error.args) if isinstance(error, SystemExit) else error

        return Lowered(ours.detach(), _may)

    def move(self) -> None:
        """Have the agent's process follow the tests to another folder and other variables."""
        with contextlib.suppress(FileNotFoundError):  # the folder is gone
            now = (os.getcwd(), self.environment(os.environ))
            if now != self.place:
                self.place = now
                self.peer.names(["\n" + json.dumps(now)])

    @contextlib.contextmanager
    def lowered(self) -> Iterator[None]:
        """Act with the rights of the agent's user, and of nobody else."""
        self.serving += 1
        try:
            if self.serving == 1:
                os.setegid(self.uid)
                os.seteuid(self.uid)
            yield
        finally:
            self.serving -= 1
            if not self.serving:
                self._raise()

    def _raise(self) -> None:
        os.seteuid(0)
        os.setegid(0)

    @contextlib.contextmanager
    def raised(self) -> Iterator[None]:
        """Act as root again, also while an object of the agent's is served."""
        served, self.serving = self.serving, 0
        try:
            if served:
                self._raise()
            yield
        finally:
            if served:
                os.setegid(self.uid)
                os.seteuid(self.uid)
            self.serving = served

    def close_private(self) -> None:
        """Take the tests and the reward away from everybody else: a grader may have opened them."""
        for folder in _PRIVATE:
            with contextlib.suppress(OSError):
                self.chmod(folder, 0o700)

    # -- files ---------------------------------------------------------------------------------

    def _files(self) -> None:
        """Have files looked at once they are open, too: the agent's processes may turn a link."""
        open_plain, open_file, stat, chmod = io.open, os.open, os.stat, os.chmod
        self.chmod = chmod

        def is_plain(path: Any) -> bool:
            if not self.started or not isinstance(path, str | bytes | os.PathLike):
                return True
            name = os.path.abspath(os.fsdecode(path))
            return self.is_clean(name) or name.startswith(self.closed)

        def checked(file: int, path: Any, *, write: bool) -> int:
            try:
                self._check_real(os.fsdecode(path), os.readlink(f"/proc/self/fd/{file}"), write)
            except BaseException:
                os.close(file)
                raise
            return file

        def open_checked(path: Any, flags: int, mode: int = 0o777, **options: Any) -> int:
            mode = 0o644 if mode == 0o600 else mode  # the agent's programs are another user's
            if options.get("dir_fd") is not None or is_plain(path):
                return open_file(path, flags, mode, **options)
            file = open_file(path, flags & ~os.O_TRUNC, mode)
            checked(file, path, write=_writes(flags))
            if flags & os.O_TRUNC:
                os.ftruncate(file, 0)
            return file

        def opened(
            file: Any,
            mode: str = "r",
            buffering: int = -1,
            encoding: Any = None,
            errors: Any = None,
            newline: Any = None,
            closefd: bool = True,
            opener: Any = None,
        ) -> Any:
            if opener is None and not is_plain(file):
                opener = _open_for_all
            return open_plain(file, mode, buffering, encoding, errors, newline, closefd, opener)

        def _open_for_all(path: Any, flags: int) -> int:
            return open_checked(path, flags, 0o666)

        def look(path: Any) -> int:
            return checked(open_file(path, os.O_PATH | os.O_CLOEXEC), path, write=False)

        def stat_checked(path: Any, *, dir_fd: Any = None, follow_symlinks: bool = True) -> Any:
            if dir_fd is not None or not follow_symlinks or is_plain(path):
                return stat(path, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
            file = look(path)
            try:
                return stat(file)
            finally:
                os.close(file)

        def chmod_checked(
            path: Any, mode: int, *, dir_fd: Any = None, follow_symlinks: bool = True
        ) -> None:
            if dir_fd is not None or not follow_symlinks or is_plain(path):
                return chmod(path, mode, dir_fd=dir_fd, follow_symlinks=follow_symlinks)
            file = checked(open_file(path, os.O_PATH | os.O_CLOEXEC), path, write=True)
            try:
                return chmod(f"/proc/self/fd/{file}", mode)
            finally:
                os.close(file)

        anything: Any = builtins
        anything.open = opened
        anything = io
        anything.open = opened
        for name, attribute in (
            *(("tarfile", "bltn_open"), ("bz2", "_builtin_open"), ("tokenize", "_builtin_open")),
        ):
            if name in sys.modules:
                setattr(sys.modules[name], attribute, opened)
        anything = os
        anything.open, anything.stat, anything.chmod = open_checked, stat_checked, chmod_checked

    # -- processes -----------------------------------------------------------------------------

    def _processes(self) -> None:
        start = subprocess.Popen.__init__
        mkdir, leave = os.mkdir, os._exit

        def popen(process: Any, args: Any, *rest: Any, **options: Any) -> None:
            if len(rest) < 3 and options.get("stdin") is None:  # this one's may hold the tests
                options["stdin"] = subprocess.DEVNULL
            self._note()
            given = options.get("env")
            options["env"] = self.environment(os.environ if given is None else given)
            options.update(user=self.uid, group=self.uid, extra_groups=[])
            with self.raised():
                self.close_private()
                start(process, args, *rest, **options)

        def system(command: Any) -> int:
            code = subprocess.call(command, shell=True)  # noqa: S602  # as os.system does
            return code << 8 if code >= 0 else -code

        def open_mkdir(path: Any, mode: int = 0o777, *, dir_fd: int | None = None) -> None:
            # tmp_path is for one user only, and the agent's programs are another's.
            mkdir(path, 0o777 if mode == 0o700 else mode, dir_fd=dir_fd)

        def leave_clean(status: int) -> None:
            self.end()
            leave(status)

        kind: Any = subprocess.Popen
        kind.__init__ = popen
        os.system = system
        os.mkdir = open_mkdir
        os._exit = leave_clean  # type: ignore[assignment]

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
        if self.paths and given.get("PYTHONPATH") == os.environ.get("PYTHONPATH"):
            env["PYTHONPATH"] = ":".join(filter(None, [env.get("PYTHONPATH"), *self.paths]))
        return env

    def audit(self, event: str, args: Any) -> None:
        """Refuse what would run the agent's code in this process, or follow its links."""
        if event == "open":
            if isinstance(args[0], str | bytes):
                self._check(path := os.fsdecode(args[0]), write=_writes(args[2]))
                os.umask(0o022 if os.path.dirname(os.path.abspath(path)) in _SHARED else 0)
        elif event == "sqlite3.connect":
            if isinstance(args[0], str | bytes):
                name = os.fsdecode(args[0])
                for path in {name, unquote(urlsplit(name).path)}:  # it may be a URI
                    self._check(path, write=True)
        elif event in _FOLLOWING or event in _LISTING:
            if isinstance(args[0], str | bytes | os.PathLike):
                self._check(os.fsdecode(args[0]), write=event in _FOLLOWING)
        elif event in _NAMING:
            for path in args[:2]:
                if isinstance(path, str | bytes | os.PathLike):
                    self._check(os.path.dirname(os.fsdecode(path)) or ".", write=True)
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

    def _note(self) -> None:
        """Note that the agent's processes run: if this one is killed, nobody ends them."""
        if self.started:
            return
        self.started = True
        with contextlib.suppress(OSError), self.raised():
            os.close(os.open(f"{_RUNNING}/{self.owner}", os.O_CREAT | os.O_WRONLY))

    def end(self) -> None:
        """Kill the agent's processes, and drop what it has laid where the grader goes on."""
        if os.getpid() != self.owner or not self.started:
            return
        if self.separate:
            for _ in range(1000):
                self._kill()
                if not any(self._running()):
                    break
                time.sleep(0.001)
            self._sweep()
        with contextlib.suppress(OSError):
            os.unlink(f"{_RUNNING}/{self.owner}")

    def _sweep(self) -> None:
        """Drop links to the tests, those at paths that a shell will write, and start-up files."""
        for path in (name.rstrip("/") for name in self.startup):
            if self._is_of_agent(path):
                shutil.rmtree(path, ignore_errors=True)
                with contextlib.suppress(OSError):
                    os.unlink(path)
        for path in (path for each in self.globs for path in glob.glob(each)):
            if os.path.islink(path) and self._is_of_agent(path):
                with contextlib.suppress(OSError):
                    os.unlink(path)
        folders = ["/", *_OPEN]  # os.walk recurses, and the agent's folders may be deep
        while folders:
            entries: list[os.DirEntry[str]] = []
            with contextlib.suppress(OSError), os.scandir(folders.pop()) as found:
                entries += found
            for entry in entries:
                path = f"{entry.path}/"
                if self.is_clean(path) or path.startswith(self.closed):
                    continue
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif self._is_trap(entry):
                    os.unlink(entry.path)

    def _is_trap(self, entry: os.DirEntry[str]) -> bool:
        """Return whether a shell of root's would be misled by a file or link."""
        if not entry.is_symlink():
            mine = os.path.dirname(entry.path) in _SHARED and self._is_of_agent(entry.path)
            return mine and bool(self.replaced.fullmatch(entry.path))
        real = os.path.realpath(entry.path) + "/"
        if real.startswith(self.closed):
            return True
        if not self._is_of_agent(entry.path):
            return False
        # What is below /proc/self is another file for each who follows the link.
        target = os.path.join(os.path.dirname(entry.path), os.readlink(entry.path))
        ways = (real, target, os.path.realpath(os.path.dirname(target)) + "/")
        return any(way.startswith(("/proc/", "/dev/")) for way in ways) or bool(
            self.written.fullmatch(entry.path)
        )

    def _is_of_agent(self, path: str) -> bool:
        try:
            return bool(os.lstat(path).st_uid == self.uid)
        except OSError:
            return False

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

    def _check(self, path: str, *, write: bool) -> None:
        self._check_real(path, os.path.realpath(path), write)

    def _check_real(self, path: str, real: str, write: bool) -> None:
        """Refuse a way over the agent's links to the tests, or to a file of the image's to write.

        Raises:
            PermissionError: it is such a way.
        """
        plain, real = os.path.abspath(path), f"{real}/"
        if self.is_clean(plain) or f"{plain}/".startswith(self.closed):
            return
        if real.startswith(self.closed):
            raise PermissionError(f"{path} leads to {real}, which is the tests' own")
        if not write or real.startswith(self.agents) or real == "/dev/null/":
            return
        if (self.is_clean(real) or real.startswith(self.startup)) and self._by_agents_link(plain):
            raise PermissionError(f"{path} leads to {real}, which is the image's own")

    def _by_agents_link(self, path: str) -> bool:
        """Return whether a link on the way to a file is the agent's."""
        for _ in range(40):
            parts = path.split("/")
            for at in range(2, len(parts) + 1):
                above = "/".join(parts[:at])
                if os.path.islink(above):
                    if self._is_of_agent(above):
                        return True
                    target = os.path.join(os.path.dirname(above), os.readlink(above))
                    path = os.path.normpath("/".join([target, *parts[at:]]))
                    break
            else:
                return False
        return True


class AgentsExit(SystemExit):
    """What the agent's code exits with: the tests may look at it, but do not end as it says."""

    @property
    def code(self) -> Any:  # type: ignore[override]
        """The code that it gave; 1 for the interpreter, which asks from no frame of Python."""
        try:
            sys._getframe(1)
        except ValueError:
            return 1
        return self.args[0] if len(self.args) == 1 else (self.args or None)


def _holds_modules(spec: importlib.machinery.ModuleSpec) -> bool:
    """Return whether a folder is a namespace package, and not one of data that has its name."""
    folders = list(spec.submodule_search_locations or ())
    return any(n.endswith(".py") for folder in folders for n in os.listdir(folder))


def _writes(flags: Any) -> bool:
    return isinstance(flags, int) and bool(flags & (os.O_WRONLY | os.O_RDWR))


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
