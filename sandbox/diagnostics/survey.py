"""Report what this machine offers to sandboxes, before any program is run."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from typing import Any

from ..backends.bpf import filter_program
from ..backends.bwrap import bwrap_fault
from ..backends.cgroup import can_group
from ..backends.docker import DEFAULT_IMAGE, connect
from ..backends.registry import BACKENDS
from ..errors import SandboxUnavailable
from ..result import CheckResult

_GET_DOCKER = (
    "Install Docker (https://docs.docker.com/engine/install), start it, and join the group "
    "docker; or set DOCKER_HOST to where one runs."
)
_NO_ROOT = (
    'Programs are no root in any case. For more, set "userns-remap": "default" in '
    "/etc/docker/daemon.json, or use rootless Docker."
)
_GET_SECCOMP = "Use a kernel with CONFIG_SECCOMP_FILTER and a Docker built with seccomp."
_GET_CONTROLLERS = "Enable these controllers: on the kernel's command line, or delegate them."
_GET_BWRAP = "apt-get install bubblewrap (or dnf, pacman, ...: the package has that name)."
_GET_NAMESPACES = (
    "Allow user namespaces (sysctl user.max_user_namespaces=10000; on Ubuntu also "
    "kernel.apparmor_restrict_unprivileged_userns=0; in a container also --security-opt "
    "seccomp=unconfined), run as root, or use Docker."
)


def survey(backend: str | None = None, image: str | None = None) -> list[CheckResult]:
    """Report whether backends can be used here; of Docker and bubblewrap, how well they isolate.

    Args:
        backend: report on this one only; default: on Docker and bubblewrap.
        image: the container image to look for.
    """
    found: list[CheckResult] = []
    if backend in (None, "docker"):
        found += _docker(image or DEFAULT_IMAGE, needed=backend == "docker")
    if backend in (None, "bwrap"):
        usable = any(f.name == "image" and f.ok for f in found)
        found += _bubblewrap(needed=backend == "bwrap" or not usable)
    if backend in BACKENDS.keys() - {"docker", "bwrap"}:
        fault = BACKENDS[backend].fault()
        found.append(CheckResult(backend, fault is None, fault or "it can be used here"))
    return found


def _docker(image: str, *, needed: bool) -> list[CheckResult]:
    import docker.errors

    try:
        client = connect(10)
    except SandboxUnavailable as error:
        return [CheckResult("Docker", not needed, str(error), _GET_DOCKER)]
    try:
        info: dict[str, Any] = client.info()
        found = [_daemon(info), _runtime(info), _filters(info), _cgroups(info)]
        try:
            about = client.inspect_image(image)
            found.append(CheckResult("image", True, f"{image}, {about['Id'][:19]}"))
        except docker.errors.ImageNotFound:
            said = f"the daemon has no image {image}"
            found.append(CheckResult("image", not needed, said, "assay sandbox build"))
    finally:
        client.close()
    return found


def _options(info: dict[str, Any]) -> str:
    return " ".join(info.get("SecurityOptions") or [])


def _daemon(info: dict[str, Any]) -> CheckResult:
    where = os.environ.get("DOCKER_HOST", "the local socket")
    said = f"version {info.get('ServerVersion', '?')} at {where}"
    for word, shown in (("rootless", "rootless"), ("userns", "with user namespaces")):
        if word in _options(info):
            return CheckResult("Docker", True, f"{said}, {shown}: what breaks out is no root")
    return CheckResult("Docker", True, f"{said}, run by root, without user namespaces", _NO_ROOT)


def _runtime(info: dict[str, Any]) -> CheckResult:
    name = os.environ.get("ASSAY_SANDBOX_RUNTIME") or info.get("DefaultRuntime", "?")
    kernel = f"share the machine's kernel, Linux {info.get('KernelVersion', '?')}"
    if "runsc" in name:
        kernel = "have a kernel of their own, gVisor's"
    return CheckResult("runtime", True, f"{name}: programs {kernel}")


def _filters(info: dict[str, Any]) -> CheckResult:
    options = _options(info)
    if "seccomp" not in options:
        said = "the daemon does not filter system calls"
        return CheckResult("seccomp", False, said, _GET_SECCOMP)
    more = [name for name in ("apparmor", "selinux") if name in options]
    return CheckResult("seccomp", True, " and ".join(["our own list of system calls", *more]))


def _cgroups(info: dict[str, Any]) -> CheckResult:
    said = f"version {info.get('CgroupVersion', '?')}, driver {info.get('CgroupDriver', '?')}"
    limits = (("memory", "MemoryLimit"), ("processes", "PidsLimit"))
    missing = " and ".join(word for word, key in limits if info.get(key) is False)
    if missing:
        return CheckResult("cgroups", False, f"{said}; no limit on {missing}", _GET_CONTROLLERS)
    if info.get("SwapLimit") is False:
        said += "; swap is not limited, so a program may use that on top of its memory"
        return CheckResult("cgroups", True, said, "Boot with swapaccount=1, or without swap.")
    return CheckResult("cgroups", True, f"{said}: memory, swap and processes are limited")


def _bubblewrap(*, needed: bool) -> list[CheckResult]:
    fault = bwrap_fault()
    if fault is not None:
        remedy = _GET_BWRAP if shutil.which("bwrap") is None else _GET_NAMESPACES
        return [CheckResult("bubblewrap", not needed, fault, remedy)]
    version = subprocess.run(["bwrap", "--version"], capture_output=True, text=True, check=False)
    who = "root" if os.geteuid() == 0 else "this user, in a user namespace"
    said = f"{version.stdout.strip()}, started by {who}"
    found = [CheckResult("bubblewrap", True, said)]
    if needed and filter_program() is None:
        said = f"no filter of system calls for {platform.machine()}"
        remedy = "Use Docker, whose filter knows this machine."
        found.append(CheckResult("seccomp", False, said, remedy))
    if needed and can_group():
        found.append(CheckResult("cgroups", True, "each slot has one of its own, for memory"))
    return found
