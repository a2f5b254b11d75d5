"""The image of the host's Python, and the source that becomes process 1 in it."""

from __future__ import annotations

import io
import subprocess
import sys
import tarfile

import pytest

from assay.sandbox import ImageUnavailable, SandboxUnavailable, build_image
from assay.sandbox.agent_source import agent_command, agent_source
from assay.sandbox.bpf import filter_program
from assay.sandbox.image import image_tar
from assay.sandbox.seccomp import docker_profile


def test_an_image_is_the_same_bytes_each_time_and_holds_no_packages() -> None:
    tar = image_tar()
    assert image_tar() == tar
    with tarfile.open(fileobj=io.BytesIO(tar)) as opened:
        names = opened.getnames()
    assert "usr/bin/python3" in names
    assert any(name.endswith("/json/__init__.py") for name in names)
    assert any("/libc.so" in name for name in names)
    assert not any("site-packages" in name for name in names)


@pytest.mark.docker
def test_what_cannot_be_pulled_is_named(image: str) -> None:
    with pytest.raises(ImageUnavailable, match="cannot pull"):
        build_image(image, pull="no-such-registry.invalid/python:3")


def test_no_daemon_builds_no_image(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(SandboxUnavailable, match="Start Docker"):
        build_image("x:1")


def test_the_agent_fits_one_argument() -> None:
    assert len(agent_source().encode()) < 100_000


def test_the_agent_runs_as_process_1_only() -> None:
    """It uses kill(-1), which would end whatever the user runs."""
    command = agent_command(sys.executable, {})
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    assert done.returncode == 1
    assert "must be process 1" in done.stderr


def test_the_filters_forbid_the_same() -> None:
    allowed = set(docker_profile()["syscalls"][0]["names"])
    assert not allowed & {
        "ptrace",
        "unshare",
        "mount",
        "shmget",
        "mq_open",
        "io_uring_setup",
        "bpf",
    }
    assert {"read", "execve", "setresuid", "memfd_create"} <= allowed
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0
    assert filter_program("pdp11") is None
