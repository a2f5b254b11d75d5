"""`pip install -e .`: imports, types and uninstalling, in an environment of its own."""

import importlib.util
import shutil
import subprocess
import sys
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(*command, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command], cwd=cwd, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def pip(folder: Path) -> list[str | Path]:
    return [sys.executable, "-m", "pip", "--python", folder / "venv/bin/python"]


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with a checkout, `checkout`, and an environment that has it, `venv`."""
    folder = tmp_path_factory.mktemp("editable")
    for name in ("assay", "envs", "verifiers", "sandbox", "grpo", "examples/family", "backend"):
        shutil.copytree(ROOT / name, folder / "checkout" / name)
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, folder / "checkout" / name)
    venv.create(folder / "venv", with_pip=False)
    (packages,) = (folder / "venv").glob("lib/*/site-packages")
    for_build = packages / "setuptools_of_the_tests.pth"
    setuptools = importlib.util.find_spec("setuptools")  # importing it would change this process
    for_build.write_text(f"{Path(setuptools.origin).parents[1]}\n")
    options = ["--quiet", "--no-deps", "--no-build-isolation"]
    run(*pip(folder), "install", *options, "-e", folder / "checkout", cwd=folder)
    for_build.unlink()
    return folder


@pytest.mark.slow
def test_type_checkers_follow_it(installed) -> None:
    """PEP 561: a folder of the path, without import hooks, has the package and py.typed."""
    code = "import sys; print(*sys.path, sep='\\n')"
    path = run(installed / "venv/bin/python", "-I", "-c", code, cwd=installed).splitlines()
    (folder,) = (Path(entry) for entry in path if Path(entry, "assay/py.typed").exists())
    for module in ("envs/__init__", "verifiers/maths/__init__", "family/dapo", "cli"):
        assert (folder / "assay" / f"{module}.py").read_text()


@pytest.mark.slow
def test_mypy_sees_the_types(installed) -> None:
    code = "from assay.verifiers import Exact\nreveal_type(Exact().verify('a', 'b').score)"
    mypy = [sys.executable, "-m", "mypy", "--python-executable", installed / "venv/bin/python"]
    assert '"float | None"' in run(*mypy, "-c", code, cwd=installed)


@pytest.mark.slow
def test_a_module_added_since_is_found(installed) -> None:
    """By the import hook. Nothing that the package depends on is installed here."""
    (installed / "checkout/assay/__init__.py").write_text("")
    (installed / "checkout/assay/added.py").write_text("value = 7\n")
    code = "import assay.added; print(assay.added.value)"
    assert run(installed / "venv/bin/python", "-I", "-c", code, cwd=installed) == "7\n"


def test_uninstalling_leaves_nothing(installed) -> None:
    run(*pip(installed), "uninstall", "--quiet", "--yes", "assay", cwd=installed)
    assert [*(installed / "venv/lib").rglob("*assay*")] == []
