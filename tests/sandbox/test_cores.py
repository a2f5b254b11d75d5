"""How many cores may be used: affinity and quotas, as files that the kernel would show."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from assay.sandbox import Sandbox
from assay.sandbox import cores as cores_module
from assay.sandbox.cores import usable_cores


@pytest.fixture
def many(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that may run on 64 cores."""
    monkeypatch.setattr(cores_module.os, "sched_getaffinity", lambda pid: set(range(64)))


def group(folder: Path, **files: str) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name.replace("_", ".", 1)).write_text(text)


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(
    ("inner", "outer", "expected"),
    [
        ("max 100000", "max 100000", 64),
        ("200000 100000", "max 100000", 2),
        ("150000 100000", "max 100000", 2),  # one and a half: the half is worth a slot
        ("max 100000", "400000 100000", 4),
        ("800000 100000", "300000 100000", 3),  # the tightest of all groups binds
        ("5000 100000", "max 100000", 1),
        ("nonsense", "", 64),
    ],
)
def test_quotas_of_version_2(tmp_path: Path, inner: str, outer: str, expected: int) -> None:
    (tmp_path / "groups").write_text("0::/job/step\n")
    group(tmp_path / "fs" / "job" / "step", cpu_max=inner)
    group(tmp_path / "fs" / "job", cpu_max=outer)
    assert usable_cores(tmp_path / "groups", tmp_path / "fs") == expected


@pytest.mark.usefixtures("many")
@pytest.mark.parametrize(("quota", "expected"), [("250000", 3), ("-1", 64)])
def test_quotas_of_version_1(tmp_path: Path, quota: str, expected: int) -> None:
    (tmp_path / "groups").write_text("4:memory:/x\n3:cpu,cpuacct:/docker/abc\n0::/\n")
    # In a container the mount shows its own group as the root.
    folder = tmp_path / "fs" / "cpu,cpuacct"
    folder.mkdir(parents=True)
    (folder / "cpu.cfs_quota_us").write_text(quota)
    (folder / "cpu.cfs_period_us").write_text("100000")
    assert usable_cores(tmp_path / "groups", tmp_path / "fs") == expected


def test_affinity(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(cores_module.os, "sched_getaffinity", lambda pid: {3, 5, 7})
    assert usable_cores(tmp_path / "none", tmp_path) == 3
    assert Sandbox(slots=9).slots == 9


def test_here() -> None:
    assert 1 <= usable_cores() <= len(os.sched_getaffinity(0))
    assert Sandbox().slots == usable_cores()
