"""Images: what describes them, what is in them, and the source that becomes process 1 there."""

from __future__ import annotations

import importlib.metadata
import io
import os
import sys
import tarfile

import pytest

from assay.sandbox import ImageDescription, ImageUnavailable, Sandbox, build_image, describe
from assay.sandbox.backends.bpf import filter_program
from assay.sandbox.backends.docker import connect
from assay.sandbox.backends.guest_source import guest_source
from assay.sandbox.backends.seccomp import ALLOWED_IF, NOT_SUPPORTED, docker_profile
from assay.sandbox.images.archive import archive, write_layer
from assay.sandbox.images.build import dockerfile, image_tree
from assay.sandbox.images.description import shipped_images
from assay.sandbox.images.host_files import Tree, distributions
from assay.sandbox.sessions.bwrap import sessions_fault

pytestmark = pytest.mark.slow

DIGEST = "sha256:" + "0123456789abcdef" * 4


def layer(description: ImageDescription) -> io.BytesIO:
    file = io.BytesIO()
    write_layer(image_tree(description), file)
    return file


def names_in(file: io.BytesIO) -> set[str]:
    file.seek(0)
    with tarfile.open(fileobj=file) as opened:
        return set(opened.getnames())


def test_an_image_is_the_same_bytes_each_time_and_holds_no_packages() -> None:
    first, second = layer(describe("python")), layer(describe("python"))
    assert first.getvalue() == second.getvalue()
    assert b"".join(archive(first, "x:1", {"a": "b"})) == b"".join(
        archive(second, "x:1", {"a": "b"})
    )
    names = names_in(first)
    assert "usr/bin/python3" in names
    assert any(name.endswith("/json/__init__.py") for name in names)
    assert any("/libc.so" in name for name in names)
    assert not any("site-packages" in name for name in names)


def test_an_archive_is_what_docker_save_writes() -> None:
    """Read back by tarfile: the layer, the configuration that names it, and the manifest."""
    file = io.BytesIO()
    write_layer(Tree(links={"/bin/x": "y"}), file)
    with tarfile.open(fileobj=io.BytesIO(b"".join(archive(file, "x:1", {})))) as opened:
        names = opened.getnames()
        inner = opened.extractfile("layer.tar")
        assert inner is not None
        assert inner.read() == file.getvalue()
    assert (names[0], names[2], len(names)) == ("layer.tar", "manifest.json", 3)


def test_links_on_the_way_to_a_file_are_kept(tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real" / "b").write_text("x")
    (tmp_path / "real" / "a").symlink_to("b")
    (tmp_path / "short").symlink_to("real")
    tree = Tree()
    tree.add(f"{tmp_path}/short/a")
    assert tree.files == {f"{tmp_path}/real/b": f"{tmp_path}/real/b"}
    assert tree.links == {f"{tmp_path}/short": "real", f"{tmp_path}/real/a": "b"}
    (tmp_path / "loop").symlink_to("loop")
    tree.add(f"{tmp_path}/loop")  # ends


def test_every_shipped_description_can_be_read() -> None:
    assert shipped_images() == ["python", "science", "shell", "toolchains"]
    for name in shipped_images():
        assert describe(name).name == name
        assert "@sha256:" in describe(name).base
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert describe("science").tag == f"assay-science:{version}"
    assert set(describe("science").preload) == {"numpy", "pandas", "sympy"}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("name = 'x", "is not TOML"),
        ("pip = ['numpy']", "lacks a name"),
        ("name = 'x'\npackages = []", "unknown key 'packages'"),
        ("name = 'x'\npip = 'numpy'", "pip must be a list"),
        ("name = 'X y'", "name must be lower-case"),
        ("name = 'x'\nbase = 'python:3.12'", "base must be an image by its digest"),
        ("name = 'x'\npip = ['numpy>=2']", "pip must be NAME or NAME==VERSION"),
        ("name = 'x'\npip = ['-r']", "pip must be"),
        ("name = 'x'\nsystem = ['gcc && true']", "system must be names of Debian packages"),
        ("name = 'x'\npreload = ['a\"\\nRUN x']", "preload must be names of modules"),
        ("name = 'x'\nsystem = [3]", "system must be names"),
    ],
)
def test_a_description_that_is_none_is_refused(tmp_path, text: str, words: str) -> None:
    file = tmp_path / "x.toml"
    file.write_text(text)
    with pytest.raises(ValueError, match=words):
        describe(str(file))


def test_what_this_machine_lacks_is_named_with_its_remedy() -> None:
    with pytest.raises(ImageUnavailable, match=r"pip install no-such-thing numpy==0\.1"):
        image_tree(ImageDescription("x", pip=("numpy==0.1", "no-such-thing")))
    with pytest.raises(ImageUnavailable, match="apt-get install no-such-package"):
        image_tree(ImageDescription("x", system=("bash", "no-such-package")))


def test_packages_bring_what_they_need() -> None:
    names = {found.metadata["Name"].lower() for found in distributions(["pandas"])}
    assert {"pandas", "numpy", "python-dateutil"} <= names
    version = importlib.metadata.version("sympy")
    assert [d.metadata["Name"] for d in distributions([f"SymPy=={version}"])] == ["mpmath", "sympy"]


def test_system_packages_come_without_documents_and_settings_of_this_machine() -> None:
    tree = image_tree(ImageDescription("x", system=("bash", "mawk")))
    paths = {*tree.files, *tree.links}
    assert tree.links["/usr/bin/awk"] == "/usr/bin/mawk"
    assert {"/bin/bash", "/usr/bin/bash"} & paths
    assert not any(path.startswith(("/etc/", "/usr/share/doc/", "/root/.ssh")) for path in paths)


def test_a_dockerfile_installs_what_is_described() -> None:
    description = ImageDescription("x", pip=("numpy==2.0.0",), system=("gcc",), preload=("numpy",))
    assert dockerfile(description, f"python@{DIGEST}") == (
        f"FROM python@{DIGEST}\n"
        "RUN apt-get update && apt-get install --yes --no-install-recommends gcc"
        " && rm -rf /var/lib/apt/lists/*\n"
        "RUN pip install --no-cache-dir numpy==2.0.0\n"
        'LABEL assay.preload="numpy"\n'
    )


@pytest.mark.docker
def test_docker_builds_on_an_image_and_slots_preload_what_its_label_says(image: str) -> None:
    """The base is here already, so this needs no registry."""
    client = connect()
    tag = f"assay-tests-label:{os.getpid()}"
    base = client.inspect_image(image)["Id"]
    description = ImageDescription("x", preload=("xml.dom.minidom", "zipfile"))
    code = "import sys; print('zipfile' in sys.modules, 'csv' in sys.modules)"
    try:
        build_image(tag, description, pull=base)
        with Sandbox(tag, slots=1, preload=("csv",)) as box:
            assert box.run(code).stdout == "True True\n"
        build_image(tag, description)
        with Sandbox(tag, slots=1) as box:
            assert box.run(code).stdout == "True False\n"
        first = build_image(tag)
        assert build_image(tag) == first
    finally:
        client.remove_image(tag, force=True)
        client.close()


@pytest.mark.docker
def test_an_image_imports_its_packages_once(image: str) -> None:
    """With the libraries that they bring, and what they need."""
    tag = f"assay-tests-packages:{os.getpid()}"
    client = connect()
    try:
        build_image(tag, ImageDescription("x", pip=("pandas",), preload=("numpy",)))
        with Sandbox(tag, slots=1) as box:
            loaded = box.run("import sys; print('numpy' in sys.modules, 'pandas' in sys.modules)")
            assert loaded.stdout == "True False\n"
            code = (
                "import numpy, pandas\n"
                "print(numpy.linalg.inv(numpy.diag([2.0, 4.0])).tolist())\n"
                "print(pandas.Series([1, 2]).sum())"
            )
            result = box.run(code)
            assert result.stdout == "[[0.5, 0.0], [0.0, 0.25]]\n3\n", result
    finally:
        client.remove_image(tag, force=True)
        client.close()


def test_the_guest_fits_one_argument() -> None:
    assert len(guest_source().encode()) < 100_000


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
    assert {"read", "execve", "setresuid"} <= allowed
    assert not allowed & {*ALLOWED_IF, *NOT_SUPPORTED}
    for machine in ("x86_64", "aarch64"):
        program = filter_program(machine)
        assert program is not None
        assert len(program) % 8 == 0
    assert filter_program("pdp11") is None


@pytest.mark.bwrap
def test_sessions_under_bubblewrap_start_from_this_python(tmp_path, monkeypatch) -> None:
    """Their root is unpacked by every Python, also by those without filters of archives."""
    if fault := sessions_fault():
        pytest.skip(fault)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    with Sandbox(backend="bwrap") as box, box.session() as session:
        assert session.exec(["python3", "-c", "print(6 * 7)"]).text == "42\n"
