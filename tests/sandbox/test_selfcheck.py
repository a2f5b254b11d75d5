"""The look at the isolation: what holds is ok, what is missing is named with its remedy."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from assay.sandbox import CheckResult, Limits, Result, RunStatus, Sandbox, survey
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.sandbox.diagnostics.selfcheck import self_check


def by_name(findings: list[CheckResult]) -> dict[str, CheckResult]:
    assert len({finding.name for finding in findings}) == len(findings)
    return {finding.name: finding for finding in findings}


@pytest.mark.slow
def test_a_box_of_ours_holds(make_box) -> None:
    with make_box(slots=1, limits=Limits(cpu_s=2.0, memory_mib=96, pids=24)) as box:
        findings = by_name(box.check())
        backend = box.backend
    assert [f for f in findings.values() if not f.ok] == []
    assert len(findings) == 16
    assert findings["processes"].detail == "at most 24"
    assert findings["no network"].detail.startswith("interfaces: lo")
    assert findings["crashes"].detail == "a crash starts nothing"
    if backend == "docker" or os.geteuid() == 0:
        assert findings["users"].level == "ok"
    if backend == "docker":
        assert findings["memory, whole program"].detail == "eight processes share 96 MiB"


class LeakyBox:
    """A box where every program says the same, and ends as it would on a bare machine."""

    limits = Limits()

    def __init__(self, said: str, status: RunStatus = RunStatus.OK) -> None:
        self.said = said
        self.status = status

    def run(self, code: str, stdin: str = "", *, limits: Limits | None = None) -> Result:
        if "6 * 7" in code:
            return Result(RunStatus.OK, stdout="3.11.7 42\n")
        return Result(self.status, stdout=self.said)


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("0\nROOT\n", "users"),
        ("HOLDS capabilities 3fff", "no rights"),
        ("GAINS rights", "no rights"),
        ("ALLOWED ptrace", "system calls"),
        ("ALLOWED 32-bit", "system calls"),
        ("CONNECTED to 1.1.1.1", "no network"),
        ("WROTE /etc", "files"),
        ("SEES processes [7]", "other processes"),
        ("READS mem of process 1", "other processes"),
        ("5000", "processes"),
        ("['left']\n[7]\n", "left behind"),
    ],
)
def test_a_leak_is_named_with_its_remedy(said: str, name: str) -> None:
    finding = by_name(self_check(LeakyBox(said)))[name]
    assert finding.level == "no"
    assert said.split()[0] in finding.detail
    assert finding.remedy.endswith(".")


def test_programs_that_nobody_stops_are_a_fault() -> None:
    findings = by_name(self_check(LeakyBox("")))
    for name in ("CPU time", "output", "memory, one process", "sockets"):
        assert findings[name].level == "no"


def test_memory_of_each_process_only_is_a_warning() -> None:
    finding = by_name(self_check(LeakyBox("8\n")))["memory, whole program"]
    assert (finding.level, finding.ok) == ("warning", True)
    assert finding.detail == "each process may have 256 MiB, up to 64 processes"


def test_settings_of_the_machine_that_help_programs_are_warnings() -> None:
    findings = by_name(self_check(LeakyBox("a crash starts |/usr/share/apport/apport %p")))
    assert (findings["crashes"].level, findings["crashes"].ok) == ("warning", True)
    assert "core_pattern" in findings["crashes"].remedy
    findings = by_name(self_check(LeakyBox("32768")))
    assert findings["socket buffers"].level == "warning"
    assert findings["socket buffers"].detail == "32768 KiB for each of 256 sockets"


@pytest.fixture
def no_daemon(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


@pytest.fixture
def no_bwrap(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("PATH", "/nowhere")
    bwrap_fault.cache_clear()
    yield
    monkeypatch.undo()
    bwrap_fault.cache_clear()


@pytest.mark.usefixtures("no_daemon", "no_bwrap")
def test_with_neither_backend_both_remedies_are_given() -> None:
    findings = by_name(survey())
    assert "Install Docker" in findings["Docker"].remedy
    assert (findings["bubblewrap"].ok, "apt-get" in findings["bubblewrap"].remedy) == (False, True)


@pytest.mark.bwrap
@pytest.mark.usefixtures("no_daemon")
def test_without_docker_bubblewrap_will_do() -> None:
    assert all(finding.ok for finding in survey())
    assert by_name(survey())["Docker"].level == "warning"
    assert by_name(survey("docker"))["Docker"].level == "no"


@pytest.mark.docker
def test_a_daemon_is_described(image: str) -> None:
    findings = by_name(survey("docker", image))
    assert list(findings) == ["Docker", "runtime", "seccomp", "cgroups", "image"]
    assert all(finding.ok for finding in findings.values())
    missing = by_name(survey("docker", "assay-no-such-image:1"))["image"]
    assert (missing.level, missing.remedy) == ("no", "assay sandbox build")


def test_a_box_that_cannot_run_is_one_finding(
    monkeypatch: pytest.MonkeyPatch, no_daemon: None
) -> None:
    monkeypatch.delenv("ASSAY_SANDBOX", raising=False)
    with Sandbox(backend="docker") as box:
        (finding,) = box.check()
    assert (finding.name, finding.level) == ("runs programs", "no")
