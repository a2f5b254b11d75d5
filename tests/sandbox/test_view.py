"""What files a program sees: the interpreter's own, what was asked for, and nothing else."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import sysconfig
from importlib.metadata import PathDistribution
from pathlib import Path

import pytest

from assay.sandbox import ImageDescription, ImageUnavailable, Limits, ProgrammingLanguage, RunStatus
from assay.sandbox.images import host_files
from assay.sandbox.images.build import image_tree

pytestmark = pytest.mark.slow

STDLIB = os.path.realpath(sysconfig.get_path("stdlib"))
SCRIPT = ProgrammingLanguage("script", "main.py", command=("python3", "main.py"))
EVERYTHING = """
import os, json
found = []
for above, folders, files in os.walk('/'):
    if above == '/': folders[:] = [f for f in folders if f not in ('proc', 'sys', 'dev', 'tmp')]
    found += [os.path.join(above, name) for name in files]
print(json.dumps(found))
"""
CHEAT = """
import os, tomllib
for above, folders, files in os.walk('/'):
    if above == '/': folders[:] = [f for f in folders if f not in ('proc', 'sys')]
    if 'code_repair.toml' in files:
        print(tomllib.load(open(above + '/code_repair.toml', 'rb'))['task'][0]['solution'])
    if above.endswith('-packages') and (folders or files): print(above, folders, files)
"""


@pytest.mark.bwrap
def test_neither_can_a_program_in_another_language(make_bwrap) -> None:
    """It sees compilers and commands, and no Python packages beside them."""
    with make_bwrap(slots=1) as box:
        result = box.run(CHEAT, language=SCRIPT, limits=Limits(cpu_s=60.0))
        assert result.status is RunStatus.OK, result
        # Other programs of this machine bring Pythons of their own.
        of_python = ("/usr/lib/python", "/usr/local/lib/python", "def ", sys.base_prefix)
        assert not [line for line in result.stdout.splitlines() if line.startswith(of_python)]
        if shutil.which("gcc", path="/usr/bin"):
            assert box.run("command -v gcc", language="bash").stdout == "/usr/bin/gcc\n"
        code = "import shutil; print(shutil.which('sh'), shutil.which('gcc'))"
        assert box.run(code).stdout == "None None\n"


@pytest.mark.bwrap
def test_our_own_folder_is_hidden_from_other_languages(
    make_bwrap, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Wherever it is installed: here among the commands of this machine."""
    from assay.sandbox.backends import bwrap

    ours = Path(bwrap.__file__).resolve().parents[2]  # with all rooms, envs and its answers too
    monkeypatch.setattr(bwrap, "_TOOLS", (*bwrap._TOOLS, str(ours.parent)))
    bwrap._shown.cache_clear()
    try:
        with make_bwrap(slots=1) as box:
            found = box.run(f"ls -A {ours} | wc -l; ls {ours.parent}", language="bash").stdout
        assert found.splitlines()[0] == "0"
        # That the folder beside it is shown; of /tmp a program has its own.
        assert ours.name in found.split() or ours.is_relative_to("/tmp")
    finally:
        bwrap._shown.cache_clear()


def test_both_backends_show_the_same_files(make_docker, make_bwrap) -> None:
    """Bubblewrap shows folders of Python whole, so all that lies in them beside modules too."""
    seen = []
    for make in (make_docker, make_bwrap):
        with make(slots=1) as box:
            result = box.run(EVERYTHING)
            seen.append(set(json.loads(result.stdout)))
    docker, bwrap = seen
    assert not {path for path in docker - bwrap if not path.startswith(("/etc/", "/.dockerenv"))}
    folders = tuple(f"{folder}/" for folder in host_files.python_folders())
    assert not {path for path in bwrap - docker if not path.startswith(folders)}


def test_time_zones_and_the_locale_are_there_and_this_machines_own_zone_is_not(make_box) -> None:
    code = (
        "import datetime, locale, os, zoneinfo\n"
        "zone = zoneinfo.ZoneInfo('Europe/Berlin')\n"
        "print(datetime.datetime(2024, 7, 1, tzinfo=zone).utcoffset())\n"
        "print(locale.setlocale(locale.LC_ALL, 'C.UTF-8'))\n"
        "print(*map(os.path.exists, ('/etc/localtime', '/usr/share/zoneinfo/localtime')))"
    )
    if not os.path.isdir("/usr/share/zoneinfo"):
        pytest.skip("this machine has no time zones")
    with make_box(slots=1) as box:
        assert box.run(code).stdout == "2:00:00\nC.UTF-8\nFalse False\n"


def test_the_whole_standard_library_can_be_imported(make_box) -> None:
    """With every shared library that it loads."""
    names = "bz2 ctypes curses dbm hashlib lzma readline sqlite3 ssl uuid zlib zoneinfo _decimal"
    code = f"import importlib\nfor name in {names.split()!r}: importlib.import_module(name)"
    with make_box(slots=1) as box:
        result = box.run(f"{code}\nimport ssl, sqlite3; print(ssl.OPENSSL_VERSION_INFO[0] > 0)")
        assert result.stdout == "True\n", result


def test_a_container_shows_nothing_of_its_daemons_network(make_docker) -> None:
    code = "print(open('/etc/resolv.conf').read(), open('/etc/hostname').read(), end='')"
    with make_docker(slots=1) as box:
        assert box.run(code).stdout == "nameserver 127.0.0.1\noptions ndots:1\n sandbox\n"


def test_this_package_is_never_shown(make_bwrap) -> None:
    with pytest.raises(ImageUnavailable, match="holds the answers"):
        image_tree(ImageDescription("x", pip=("assay",)))
    with (
        make_bwrap(slots=1, preload=("assay",)) as box,
        pytest.raises(ImageUnavailable, match="leave it, and what needs it, out"),
    ):
        box.run("print(1)")


@pytest.mark.bwrap
def test_packages_come_with_the_libraries_that_they_load_and_nobody_elses(make_bwrap) -> None:
    with make_bwrap(slots=1, preload=("numpy",)) as box:
        result = box.run(
            "import numpy, os\n"
            "print(numpy.linalg.inv(numpy.diag([2.0, 4.0])).tolist())\n"
            "print(*sorted(n for n in os.listdir('/opt/packages') if '-info' not in n))"
        )
    assert result.stdout.splitlines()[0] == "[[0.5, 0.0], [0.0, 0.25]]", result
    assert set(result.stdout.splitlines()[1].split()) <= {"numpy", "numpy.libs"}


def test_of_a_namespace_only_the_wanted_part_is_shown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    files = ("space/mine/__init__.py", "space/mine/inner/a.py", "space-1.dist-info/METADATA",
             "single.py", "__pycache__/single.cpython-311.pyc")  # fmt: skip
    for name in (*files, "space/answers/__init__.py"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("Name: space\nVersion: 1\n" if name == files[2] else "")
    record = tmp_path / "space-1.dist-info" / "RECORD"
    record.write_text("".join(f"{name},,\n" for name in files))
    monkeypatch.syspath_prepend(tmp_path)
    assert PathDistribution(record.parent).files is not None
    assert host_files.package_folders(["space.mine"]) == {
        name: str(tmp_path / name) for name in ("space/mine", "space-1.dist-info", "single.py")
    }


def test_a_python_in_a_programs_own_folder_is_refused(tmp_path: Path) -> None:
    """Not started, only to be found missing under the programs' /tmp."""
    python = tmp_path / "bin" / "python3"
    python.parent.mkdir()
    shutil.copy(os.path.realpath(sys.executable), python)
    (tmp_path / "lib").mkdir()
    for name in os.listdir(os.path.dirname(STDLIB)):
        (tmp_path / "lib" / name).symlink_to(os.path.join(os.path.dirname(STDLIB), name))
    code = (
        "import site\n"
        f"for folder in {[p for p in sys.path if p.endswith('-packages')]}:\n"
        "    site.addsitedir(folder)\n"
        "from assay.sandbox import ImageDescription, ImageUnavailable\n"
        "from assay.sandbox.backends.bwrap import bwrap_fault\n"
        "from assay.sandbox.images.build import image_tree\n"
        "print(bwrap_fault())\n"
        "try: image_tree(ImageDescription('x'))\n"
        "except ImageUnavailable as error: print(error)"
    )
    done = subprocess.run([python, "-c", code], capture_output=True, text=True, check=False)
    words = f"programs cannot be shown {python}, since /tmp is their own"
    assert done.stdout.count(words) == 2, done


@pytest.mark.skipif(shutil.which("gcc") is None, reason="needs a compiler")
def test_a_library_that_this_machine_is_configured_with_gets_a_link(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A sandbox has neither /etc/ld.so.cache nor LD_LIBRARY_PATH, by which it is found here."""
    (tmp_path / "x.c").write_text("int x(void) { return 1; }")
    library = tmp_path / "libassayview.so.1"
    subprocess.run(["gcc", "-shared", "-o", library, tmp_path / "x.c"], check=True)
    user = tmp_path / "user.so"
    (tmp_path / "y.c").write_text("int x(void); int y(void) { return x(); }")
    subprocess.run(["gcc", "-shared", "-o", user, tmp_path / "y.c", library], check=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
    tree = host_files.Tree()
    host_files.add_libraries(tree, [str(user)])
    assert str(library) in tree.files
    libc = next(path for path in tree.files if "/libc.so" in path)
    assert tree.links.get(f"{os.path.dirname(libc)}/{library.name}") == str(library)
