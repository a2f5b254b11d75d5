"""Boxes for the tests: every contract test runs under each backend."""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest

from assay.sandbox import ImageUnavailable, Limits, Sandbox, build_image, describe
from assay.sandbox.bwrap import bwrap_fault
from assay.sandbox.docker import connect, daemon_fault

IMAGE = f"assay-tests:{os.getpid()}"  # two runs of the tests must not remove each other's


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """An image of this Python, in the daemon; skips without one."""
    fault = daemon_fault()
    if fault is not None:
        if os.environ.get("ASSAY_REQUIRE_DOCKER") == "1":
            pytest.fail(fault)
        pytest.skip(fault)
    build_image(IMAGE)
    yield IMAGE
    client = connect()
    client.remove_image(IMAGE, force=True)
    client.close()


@pytest.fixture(scope="session")
def toolchains(image: str) -> Iterator[str]:
    """An image with this machine's C, C++, JavaScript and bash; skips where it lacks them."""
    tag = f"assay-tests-toolchains:{os.getpid()}"
    try:
        build_image(tag, describe("toolchains"))
    except ImageUnavailable as error:
        if os.environ.get("ASSAY_REQUIRE_DOCKER") == "1":
            pytest.fail(str(error))
        pytest.skip(str(error))
    yield tag
    client = connect()
    client.remove_image(tag, force=True)
    client.close()


@pytest.fixture(scope="session")
def make_docker(image: str):
    """Make boxes under Docker."""
    return lambda **options: Sandbox(image, **options)


@pytest.fixture(scope="session")
def make_bwrap():
    """Make boxes under bubblewrap; skips where it cannot be used."""
    fault = bwrap_fault()
    if fault is not None:
        pytest.skip(fault)
    return lambda **options: Sandbox(backend="bwrap", **options)


@pytest.fixture(
    scope="session",
    params=[
        pytest.param("docker", marks=pytest.mark.docker),
        pytest.param("bwrap", marks=pytest.mark.bwrap),
    ],
)
def make_box(request: pytest.FixtureRequest):
    """Make boxes under one backend after the other."""
    return request.getfixturevalue(f"make_{request.param}")


@pytest.fixture(scope="session")
def box(make_box) -> Iterator[Sandbox]:
    """A warm box of one slot: what one program leaves, the next would find."""
    with make_box(slots=1, limits=Limits(cpu_s=2.0, wall_s=20.0, memory_mib=128)) as found:
        yield found


@pytest.fixture(scope="session")
def backend_name(make_box) -> str:
    """The backend that ``make_box`` makes boxes under."""
    with make_box(slots=1) as found:
        return found.backend
