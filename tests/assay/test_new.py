"""``assay new``: what it writes installs, passes its own tests, and is listed."""

import importlib.util
import os
import subprocess
import sys
import sysconfig
import venv

import pytest

from assay.new_cli import write_package

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def interpreter(tmp_path_factory):
    """An interpreter of its own that sees this one's packages; nothing here is changed."""
    for needed in ("pip", "setuptools"):
        if importlib.util.find_spec(needed) is None:
            pytest.skip(f"needs {needed} to install a package")
    home = tmp_path_factory.mktemp("venv")
    venv.create(home, with_pip=False, symlinks=True)
    python = home / "bin" / "python"
    site = next((home / "lib").glob("python*")) / "site-packages"
    here = sysconfig.get_path("purelib")
    # As a directory of packages, not a mere path: an editable install has a .pth of its own.
    (site / "here.pth").write_text(f"import site; site.addsitedir({here!r})\n")
    return python


def run(*command, **kwargs):
    done = subprocess.run(
        list(map(str, command)), capture_output=True, text=True, check=False, timeout=250, **kwargs
    )
    return done.returncode, done.stdout + done.stderr


def test_a_new_package_installs_passes_its_tests_and_is_listed(interpreter, tmp_path) -> None:
    made = write_package("my-halves", tmp_path / "a folder")
    assert made == tmp_path / "a folder" / "my-halves"
    installed = run(
        sys.executable, "-m", "pip", "--python", interpreter, "--disable-pip-version-check",
        "install", "--no-deps", "--no-build-isolation", "--quiet", "--editable", made,
    )  # fmt: skip
    assert installed[0] == 0, installed[1]
    tested = run(interpreter, "-m", "pytest", "-q", "-p", "no:cacheprovider", made, cwd=tmp_path)
    assert "2 passed" in tested[1], tested[1]
    asked = (
        "import gymnasium, assay, assay.cli; print(assay.make('my_halves/Halves-v0').task(3).id); "
        "print(gymnasium.make('my_halves/Halves-v0').reset(seed=0)[0]); assay.cli.main()"
    )
    wide = {**os.environ, "COLUMNS": "160"}
    listed = run(interpreter, "-c", asked, "list", cwd=tmp_path, env=wide)
    assert listed[0] == 0, listed[1]
    assert listed[1].startswith("train-0-3\nWhat is half of "), listed[1]
    row = next(line for line in listed[1].splitlines() if "my_halves/Halves-v0" in line)
    assert "Halve a number." in row
    assert "my-halves 0.1.0" in row or "my_halves 0.1.0" in row


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("My-Task", "small letters and digits"),
        ("9lives", "begins with a letter"),
        ("a--b", "got 'a--b'"),
        ("../up", "small letters"),
        ("", "small letters"),
        ("class", "no word of Python's"),
        ("json", "would be imported as json, which there is already"),
        ("assay", "would be imported as assay"),
        ("taken", "taken exists: choose another name, or another --dir"),
    ],
)
def test_names_that_cannot_be_are_refused_and_nothing_is_written(tmp_path, name, words) -> None:
    (tmp_path / "taken").mkdir()
    with pytest.raises(ValueError, match=words):
        write_package(name, tmp_path)
    assert [path.name for path in tmp_path.rglob("*")] == ["taken"]


def test_a_folder_that_cannot_be_written_to_is_left_alone(tmp_path) -> None:
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OSError, match="file"):
        write_package("my-task", tmp_path / "file")
    assert (tmp_path / "file").read_text() == "mine"


def test_half_a_package_is_not_left_behind(tmp_path, monkeypatch) -> None:
    monkeypatch.setitem(
        write_package.__globals__, "_FILES", {"pyproject.toml.txt": "x", "none.txt": "y"}
    )
    with pytest.raises(FileNotFoundError):
        write_package("my-task", tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_a_plugin_that_cannot_be_imported_is_listed_with_its_fault(tmp_path) -> None:
    (tmp_path / "plug_bad.py").write_text("import assay\n1 / 0\n")
    info = tmp_path / "plug_bad-2.1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: plug-bad\nVersion: 2.1\n")
    (info / "entry_points.txt").write_text("[assay.envs]\nbad = plug_bad\n")
    wide = {**os.environ, "COLUMNS": "160", "PYTHONPATH": str(tmp_path)}
    code, shown = run(sys.executable, "-m", "assay", "list", env=wide)
    assert code == 0
    assert "assay/Arithmetic-v1" in shown
    expected = (
        "plug-in 'bad' of plug-bad 2.1 (plug_bad): it cannot be imported: "
        f"ZeroDivisionError: division by zero ({tmp_path / 'plug_bad.py'}, line 2)"
    )
    assert shown.count("plug-in 'bad'") == 1
    assert expected in shown
    code, shown = run(sys.executable, "-m", "assay", "audit", "bad/Thing-v0", env=wide)
    assert code == 2
    assert "no environment is called 'bad/Thing-v0'" in shown
    assert "ZeroDivisionError" in shown
