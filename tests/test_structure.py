"""The rooms: who may import whom, what ships, and what import assay costs."""

import ast
import importlib
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ROOMS = ("sandbox", "verifiers", "envs", "grpo", "assay")  # each imports only those before it
TRAINING = {"torch", "transformers", "trl", "accelerate", "datasets", "matplotlib"}
HEAVY = TRAINING | {"sympy", "docker", "ray", "math_verify"}


FAMILY = ROOT / "examples/family"


def imports(path: Path):
    """Rooms that a file imports, and other packages it imports when it is loaded."""
    tree = ast.parse(path.read_text())
    depth = len(path.relative_to(ROOT).parent.parts)
    lazy = {
        inner
        for node in ast.walk(tree)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        or (isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test))
        for inner in ast.walk(node)
    }
    rooms, packages = set(), set()
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom):
            module = (node.module or "").split(".")
            if node.level == 1 + depth or (node.level == 1 and path.parent.name == "assay"):
                rooms.add(module[0])
            elif module[0] == "assay":
                rooms.add(module[1] if len(module) > 1 else "assay")
            elif node.level == 0 and node not in lazy:
                packages.add(module[0])
        elif isinstance(node, ast.Import) and node not in lazy:
            packages |= {alias.name.split(".")[0] for alias in node.names}
    return rooms & set(ROOMS), packages


@pytest.mark.parametrize("room", ROOMS)
def test_arrows_point_one_way(room) -> None:
    allowed = set(ROOMS[: ROOMS.index(room)])
    for path in (ROOT / room).rglob("*.py"):
        rooms, packages = imports(path)
        assert rooms <= allowed, f"{path.name} imports {rooms - allowed}"
        assert room == "assay" or "assay.family" not in path.read_text() or path.stem == "_moved"
        if room in ("sandbox", "verifiers", "envs"):
            assert not packages & TRAINING, f"{path.name} imports {packages & TRAINING}"


def test_trainers_take_only_public_names_of_the_learner() -> None:
    """So the learner needs no hook for them, and may change within."""
    import assay.grpo

    for path in (*FAMILY.glob("trainers/*.py"), *FAMILY.glob("units/*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("assay."):
                assert node.module.split(".")[1] in (
                    "grpo",
                    "envs",
                    "verifiers",
                    "sandbox",
                    "family",
                )
                if node.module == "assay.grpo":
                    assert {a.name for a in node.names} <= set(assay.grpo.__all__)
                private = [a.name for a in node.names if a.name.startswith("_")]
                assert not private, f"{path.name} imports {private}"


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    import assay.grpo

    with pytest.raises(AttributeError, match=r"'assay\.grpo' has no attribute 'nothing'"):
        assay.grpo.nothing  # noqa: B018  # that is the point


def module_imports(path: Path, room: Path) -> set[Path]:
    """Files of the same room that a file imports when it is loaded."""
    found: set[Path] = set()
    nodes: list[ast.AST] = [ast.parse(path.read_text())]
    for node in nodes:  # grows as it is read
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes += node.orelse
        elif not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            nodes += ast.iter_child_nodes(node)
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            names = [base / alias.name for alias in node.names]
            files = [name.with_suffix(".py") for name in names if name.with_suffix(".py").exists()]
            found |= {file for file in files or [base.with_suffix(".py")] if file.exists()}
    return {file for file in found if file.is_relative_to(room)}


@pytest.mark.parametrize("room", ROOMS)
def test_no_file_of_a_room_imports_itself(room) -> None:
    files = {path: module_imports(path, ROOT / room) for path in (ROOT / room).rglob("*.py")}
    while leaves := [path for path, imported in files.items() if not imported & files.keys()]:
        for path in leaves:
            del files[path]
    assert not files, f"these import each other: {[str(path.relative_to(ROOT)) for path in files]}"


@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda p: p.stem)
def test_a_benchmark_imports_names_that_are_there(path) -> None:
    """No other test runs the benchmarks, most of which take minutes."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "assay":
            module = importlib.import_module(node.module)
            for alias in node.names:
                if not hasattr(module, alias.name):  # then it is a module
                    importlib.import_module(f"{node.module}.{alias.name}")


def test_every_folder_with_code_is_in_the_wheel() -> None:
    setup = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]
    folders = {
        str(path.parent.relative_to(ROOT)).replace("/", ".")
        for room in ROOMS
        for path in (ROOT / room).rglob("*.py")
    }
    names = {f if f.partition(".")[0] == "assay" else f"assay.{f}" for f in folders}
    places = {path.parent.relative_to(FAMILY.parent) for path in FAMILY.rglob("*.py")}
    names |= {f"assay.{str(place).replace('/', '.')}" for place in places}
    assert names == set(setup["packages"])


def test_importing_assay_is_light() -> None:
    heavy = HEAVY | {"assay.envs.puzzles.countdown"}
    code = (
        "import sys, time; t = time.process_time(); import assay; t = time.process_time() - t; "
        f"print(sorted(set(sys.modules) & {heavy!r}), t)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    found, _, seconds = done.stdout.rpartition(" ")
    assert found == "[]"
    assert float(seconds) < 2  # a guard against a heavy import, not a benchmark


@pytest.mark.parametrize("room", ROOMS)
def test_what_a_room_exports_is_there_and_sorted(room) -> None:
    name = "assay" if room == "assay" else f"assay.{room}"
    module = __import__(name, fromlist=["_"])
    assert all(hasattr(module, exported) for exported in module.__all__)
    assert len(set(module.__all__)) == len(module.__all__)
