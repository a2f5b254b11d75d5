"""Boxes for the tests: every contract test runs under each backend."""

from __future__ import annotations

import contextlib
import gc
import os
import shutil
import signal
import subprocess
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from assay.sandbox import Limits, Sandbox, SandboxError, build_image, describe
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.sandbox.backends.docker import connect
from assay.sandbox.backends.registry import BACKENDS
from assay.sandbox.sessions.bwrap import sessions_fault


@pytest.fixture(scope="session")
def build(skip_or_fail: Callable[[str], NoReturn]) -> Iterator[Callable[[str], str]]:
    """Build images of this machine's files under tags of this run's; skips where that fails."""
    tags = []

    def make(recipe: str) -> str:
        tag = f"assay-tests-{recipe}:{os.getpid()}"  # two runs may overlap
        try:
            build_image(tag, describe(recipe))
        except SandboxError as error:
            skip_or_fail(str(error))
        tags.append(tag)
        return tag

    yield make
    for tag in tags:
        with contextlib.closing(connect()) as client:
            client.remove_image(tag, force=True)


@pytest.fixture(scope="session")
def image(build: Callable[[str], str]) -> str:
    return build("python")


@pytest.fixture(scope="session")
def toolchains(build: Callable[[str], str]) -> str:
    """An image with this machine's C, C++, JavaScript and bash."""
    return build("toolchains")


@pytest.fixture(scope="session")
def session_image(build: Callable[[str], str]) -> str:
    """An image of this machine's shell, git, C and Python, for sessions."""
    return build("shell")


@pytest.fixture(
    scope="session",
    params=[pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("docker", "bwrap")],
)
def session_box(request: pytest.FixtureRequest) -> Iterator[Sandbox]:
    """A box that opens sessions of these files, under each backend."""
    if request.param == "docker":
        image = request.getfixturevalue("session_image")
    elif fault := sessions_fault():
        pytest.skip(fault)
    else:
        image = None
    with Sandbox(image, backend=request.param) as found:
        yield found


@pytest.fixture(scope="session")
def make_docker(image: str):
    return lambda **options: Sandbox(image, **options)


@pytest.fixture(scope="session")
def make_bwrap():
    """Make boxes under bubblewrap; skips where it cannot be used."""
    fault = bwrap_fault()
    if fault is not None:
        pytest.skip(fault)
    return lambda **options: Sandbox(backend="bwrap", **options)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Run a test under each backend that isolates, or those that its module's BACKENDS names."""
    if "make_box" in metafunc.fixturenames:
        safe = [name for name, entry in BACKENDS.items() if entry.safe]
        names = getattr(metafunc.module, "BACKENDS", safe)
        params = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in names]
        metafunc.parametrize("make_box", params, indirect=True, scope="session")


@pytest.fixture(scope="session")
def make_box(request: pytest.FixtureRequest):
    """Make boxes under one backend after the other."""
    if request.param in ("docker", "bwrap"):
        return request.getfixturevalue(f"make_{request.param}")
    return lambda **options: Sandbox(backend=request.param, **options)


@pytest.fixture(scope="session")
def box(make_box) -> Iterator[Sandbox]:
    """A warm box of one slot: what one program leaves, the next would find."""
    with make_box(slots=1, limits=Limits(cpu_s=10.0, wall_s=40.0, memory_mib=128)) as found:
        yield found


@pytest.fixture(scope="session")
def backend_name(make_box) -> str:
    """The backend that ``make_box`` makes boxes under."""
    with make_box(slots=1) as found:
        return found.backend


@pytest.fixture
def collected() -> Iterator[None]:
    """docker-py leaves a socket open where a daemon stops answering: let it go in here."""
    yield
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()


class Daemon:
    """A Docker daemon of our own, which may be stopped, killed and started again."""

    def __init__(self, options: tuple[str, ...] = (), disk_mib: int = 0) -> None:
        self.root = Path(tempfile.mkdtemp(prefix="assay-dockerd-"))
        if disk_mib:  # a disk of its own, which may be filled
            (self.root / "data").mkdir()
            command = ["mount", "-t", "tmpfs", "-o", f"size={disk_mib}m", "assay-tests"]
            subprocess.run([*command, str(self.root / "data")], check=True)
        self.url = f"unix://{self.root}/docker.sock"
        self.options = options
        self._log = (self.root / "log").open("w")
        self._process: subprocess.Popen[bytes] | None = None
        self.start()

    def start(self) -> None:
        root = self.root
        command = ["dockerd", "--data-root", f"{root}/data", "--exec-root", f"{root}/exec"]
        command += ["-H", self.url, "-p", f"{root}/pid", "--iptables=false"]
        if "-H" not in self.options:
            # A daemon without a bridge removes docker0, so it gets a network of its own.
            command = ["unshare", "--net", *command, "--bridge=none"]
        self._process = subprocess.Popen(
            [*command, *self.options], stdout=self._log, stderr=self._log, start_new_session=True
        )
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            with contextlib.suppress(SandboxError):
                connect(10, self.url).close()
                return
            time.sleep(0.1)
        raise RuntimeError(f"dockerd does not start: {(root / 'log').read_text()[-2000:]}")

    @property
    def runs(self) -> bool:
        return self._process is not None

    def stop(self, number: signal.Signals = signal.SIGTERM) -> None:
        """Send it a signal, and wait for its end."""
        if self._process is not None:
            self._process.send_signal(number)
            self._process.wait(60)
            self._process = None
        if number == signal.SIGKILL:  # its containerd dies with it; a new one looks for it
            for pid in self.processes("containerd.toml"):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)
            (self.root / "exec/containerd/containerd.pid").unlink(missing_ok=True)

    def processes(self, word: str = "") -> list[int]:
        """Those whose command line names our folder: containerd, and a shim for each container."""
        found = []
        for path in Path("/proc").glob("[0-9]*/cmdline"):
            with contextlib.suppress(OSError):
                line = path.read_bytes().replace(b"\0", b" ").decode("utf-8", "replace")
                if str(self.root) in line and word in line:
                    found.append(int(path.parent.name))
        return found

    def mounts(self) -> list[str]:
        """What is mounted below our folder."""
        lines = Path("/proc/self/mounts").read_text().splitlines()
        return [point for point in (line.split()[1] for line in lines) if str(self.root) in point]

    def load(self, image: str) -> None:
        first, own = connect(), connect(60, self.url)
        with contextlib.closing(first), contextlib.closing(own):
            own.load_image(b"".join(first.get_image(image)))

    def fill_disk(self) -> None:
        """Leave no byte of its disk free."""
        with (self.root / "data" / "ballast").open("wb", buffering=0) as file:
            for size in (1 << 20, 512):
                with contextlib.suppress(OSError):
                    while True:
                        file.write(bytes(size))

    def end(self) -> None:
        self.stop(signal.SIGKILL)
        for pid in self.processes():
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
        for point in reversed(self.mounts()):
            subprocess.run(["umount", "-l", point], check=False)
        self._log.close()
        shutil.rmtree(self.root, ignore_errors=True)


@pytest.fixture(scope="session")
def start_daemon(
    image: str, skip_or_fail: Callable[[str], NoReturn]
) -> Iterator[Callable[..., Daemon]]:
    """Start Docker daemons of our own, which have the tests' image; skips where that cannot be."""
    if os.geteuid() or shutil.which("dockerd") is None:
        skip_or_fail("a second daemon needs root and dockerd")
    daemons = []

    def start(*options: str, disk_mib: int = 0) -> Daemon:
        daemon = Daemon(options, disk_mib)
        daemons.append(daemon)
        daemon.load(image)
        return daemon

    yield start
    for daemon in daemons:
        daemon.end()


@pytest.fixture(scope="session")
def _second(start_daemon: Callable[..., Daemon]) -> Daemon:
    return start_daemon()


@pytest.fixture
def second(_second: Daemon) -> Daemon:
    """A second daemon, which runs; tests may stop it."""
    if not _second.runs:
        _second.start()
    return _second
