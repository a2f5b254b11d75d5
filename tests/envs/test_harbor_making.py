"""Harbor tasks made of commits and of rows: tried in real containers before they are written."""

import json
import subprocess
import tarfile
from pathlib import Path
from types import SimpleNamespace

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.envs.harbor import CommandAgent, load_tasks, run_trial
from assay.envs.harbor.making import maker
from assay.envs.harbor.making.mine import mine
from assay.envs.harbor.making.repository import Repository, RepositoryError, is_test
from assay.envs.harbor.making.runner import rewards
from assay.envs.harbor.making.swe import from_swe
from assay.sandbox import build_folder
from assay.sandbox.backends.docker import connect
from assay.verifiers import Verdict

PAGES = "def page(items, number, size):\n    return items[{at} * size : {at} * size + size]\n"
HEAD = "from pages import page\n"
SIZE = "\n\ndef test_size():\n    assert len(page([1, 2, 3, 4], {first}, 2)) == 2\n"
ONE = "\n\ndef test_counts_from_one():\n    assert page([1, 2, 3], 1, 2) == [1, 2]\n"
ROOT = """
    from pathlib import Path
    assert "LIMIT" in (Path(__file__).parents[1] / "src/pages/__init__.py").read_text()
"""
EVERY_THIRD = """
    from pathlib import Path
    import pages
    runs = Path("/tmp/runs")
    runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
    assert pages.SEED and len(runs.read_text()) % 3
"""


def git(repo: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "user.name=a", "-c", "user.email=a@b", *words],
        cwd=repo, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return done.stdout.strip()


def commit(repo: Path, message: str, **files: str) -> str:
    for path, text in files.items():
        target = repo / {"code": "src/pages/__init__.py", "tests": "tests/test_pages.py"}[path]
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)
    git(repo, "add", "-A")
    git(repo, "commit", "-q", "--allow-empty", "-m", message)
    return git(repo, "rev-parse", "HEAD")


@pytest.fixture(scope="module", autouse=True)
def once():
    """Try each task once: that it is tried twice is looked at without containers."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(maker, "REPEAT", 1)
        yield


@pytest.fixture(scope="module")
def repo(tmp_path_factory):
    """A repository whose commits are of all sorts, and their hashes."""
    folder = tmp_path_factory.mktemp("source") / "toy"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    (folder / "pyproject.toml").write_text('[tool.pytest.ini_options]\naddopts = "--cov"\n')
    hashes = {}
    code, tests = PAGES.format(at="number"), HEAD + SIZE.format(first=0)
    hashes["start"] = commit(folder, "Start the package", code=code, tests=tests)
    code = PAGES.format(at="(number - 1)")
    tests = HEAD + SIZE.format(first=1) + ONE
    said = "Count pages from one, as people do\n\nSigned-off-by: a <a@b>"
    hashes["fix"] = commit(folder, said, code=code, tests=tests)
    code += "\n\nLIMIT = 5\n"
    tests += f"\n\ndef test_limit():{ROOT}"
    hashes["limit"] = commit(folder, "Add a limit to the module", code=code, tests=tests)
    code += "SEED = 1\n"
    hashes["flaky"] = commit(
        folder,
        "Add a seed to the module",
        code=code,
        tests=tests + f"\n\ndef test_seed():{EVERY_THIRD}",
    )
    hashes["wip"] = commit(folder, "wip", code=code + "WIP = 1\n", tests=tests)
    hashes["tests only"] = commit(folder, "Change nothing but the tests", tests=tests + "\n")
    return folder, hashes


@pytest.fixture(scope="module")
def mined(box, repo, tmp_path_factory):
    """The folder of the tasks of all commits, and what was said of each."""
    out = tmp_path_factory.mktemp("tasks")
    return out, {one.name: one for one in mine(repo[0], out, box, limit=99, jobs=2)}


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("tests/data/a.json", True),
        ("src/test_a.py", True),
        ("pkg/a_test.go", True),
        ("web/a.spec.ts", True),
        ("conftest.py", True),
        ("src/contest.py", False),
        ("pandas/testing/a.py", False),
        ("src/latest.py", False),
    ],
)
def test_paths_of_tests(path, expected) -> None:
    assert is_test(path) is expected


def test_a_repository_is_only_read(repo, tmp_path) -> None:
    source, hashes = repo
    hook = source / ".git/hooks/post-index-change"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    hook.chmod(0o755)
    before = sorted(path for path in (source / ".git").rglob("*") if path.is_file())
    with Repository(source) as opened:
        base, fixed = (opened.tree_of(hashes[name]) for name in ("start", "fix"))
        patch = opened.diff(base, fixed, opened.changed(base, fixed)).decode()
        assert opened.patched(base, patch) == fixed
        assert opened.patched(fixed, patch, reverse=True) == base
        with pytest.raises(RepositoryError, match="apply"):
            opened.patched(fixed, patch)
        for wrong in ("--all", "main", "0" * 40):
            with pytest.raises(RepositoryError):
                opened.tree_of(wrong)
        assert set(opened.files(base, is_test)) == {"tests/test_pages.py"}
    hook.unlink()
    assert not (tmp_path / "ran").exists()
    assert sorted(p for p in (source / ".git").rglob("*") if p.is_file()) == [
        path for path in before if path != hook
    ]
    with pytest.raises(RepositoryError, match="not a git repository"):
        Repository(tmp_path)


def test_rewards_by_the_names_that_data_sets_use() -> None:
    outcomes = {"t/a.py::C::x": "passed", "t/a.py::y[1 2]": "passed", "t/b.py::y[1 3]": "failed"}
    for names, share in (
        (["t/a.py::C::x", "C.x", "x", "t/a.py::y[1", "t/a.py::y[1 2]"], 1.0),
        (["x", "gone"], 0.5),
        (["t/b.py::y[1"], 0.0),
    ):
        found = rewards({"fail_to_pass": names, "pass_to_pass": []}, outcomes)
        assert (found["fail_to_pass"], found["reward"]) == (share, float(share == 1.0)), names


@pytest.mark.parametrize(
    ("earned", "fault"),
    [
        ([1.0, 0.5], "flaky: the solution earns [1.0, 0.5]: why said"),
        ([1.0, 1.0, 0.0, 0.5], "doing nothing earns [0.0, 0.5]"),
        ([1.0, 1.0, 0.0, 0.0], ""),
    ],
)
def test_what_earns_now_this_and_now_that_is_refused(monkeypatch, tmp_path, earned, fault) -> None:
    graded = SimpleNamespace(fault="", grading="", log="said\n", verdict=Verdict.wrong("why"))
    rewards = iter(earned)
    monkeypatch.setattr(maker, "REPEAT", 2)
    monkeypatch.setattr(
        maker, "run_trial", lambda *_: SimpleNamespace(reward=next(rewards), graded=graded)
    )
    assert maker.Maker(tmp_path, None)._fault(None) == (fault, "")


@pytest.mark.slow
def test_commits_become_tasks_and_what_is_refused_is_named(mined, repo) -> None:
    out, found = mined
    names = {key: f"toy-{digest[:12]}" for key, digest in repo[1].items()}
    assert set(found) == {names[key] for key in ("fix", "limit", "flaky", "wip")}
    assert found[names["fix"]].grading == "separate"
    assert found[names["limit"]].grading == "shared"  # its test reads the code's file
    assert found[names["flaky"]].refused == "flaky: tests/test_pages.py::test_seed"
    assert "asks for nothing" in found[names["wip"]].refused
    assert sorted(p.name for p in out.iterdir()) == sorted(
        ["refused.jsonl", names["fix"], names["limit"]]
    )
    task = out / names["fix"]
    expected = json.loads((task / "tests/expected.json").read_text())
    assert expected["fail_to_pass"] == ["tests/test_pages.py::test_counts_from_one"]
    assert expected["pass_to_pass"] == ["tests/test_pages.py::test_size"]
    assert (task / "instruction.md").read_text().startswith("Count pages from one, as people do\n")
    assert "Signed-off-by" not in (task / "instruction.md").read_text()


@pytest.mark.slow
def test_a_second_run_tries_nothing_again(mined, repo, box) -> None:
    assert list(mine(repo[0], mined[0], box, limit=99)) == []


@pytest.mark.slow
def test_the_container_has_no_history_and_no_fix(mined, repo, box) -> None:
    (task,) = [t for t in load_tasks(mined[0]) if t.id.endswith(repo[1]["fix"][:12])]
    with tarfile.open(task.folder / "environment/repo.tar.gz") as archive:
        assert not [name for name in archive.getnames() if ".git/" in name]
    look = CommandAgent(
        "cd /testbed && git rev-list --all --count; git count-objects -v | grep -c in-pack;"
        "git log --format=%s; grep -r counts_from_one .; grep -r 'number - 1' ."
    )
    trial = run_trial(task, look, box)
    assert trial.agent_log == "1\n1\nThe state before the task\n\n[exit code 1]"  # no match
    assert trial.reward == 0.0


@pytest.mark.slow
@pytest.mark.parametrize("which", ["fix", "limit"])
def test_a_conftest_of_the_agents_earns_nothing(mined, repo, box, which) -> None:
    (task,) = [t for t in load_tasks(mined[0]) if t.id.endswith(repo[1][which][:12])]
    cheat = (
        "import pytest\n@pytest.hookimpl(hookwrapper=True)\ndef pytest_runtest_makereport():\n"
        "    found = yield\n    found.get_result().outcome = 'passed'\n"
    )
    places = "for f in conftest.py tests/conftest.py"
    script = f"cd /testbed; {places}; do cat > $f <<'E'\n{cheat}E\ndone\nrm -rf tests/test_pages.py"
    trial = run_trial(task, CommandAgent(script), box)
    assert (trial.reward, trial.graded.fault) == (0.0, "")


@pytest.mark.slow
def test_a_command_runs_tests_that_pytest_does_not(repo, box, tmp_path) -> None:
    (made,) = mine(
        repo[0],
        tmp_path,
        box,
        revisions=f"{repo[1]['start']}..{repo[1]['fix']}",
        command="PYTHONPATH=src:tests python3 -c 'from test_pages import test_counts_from_one'"
        " && grep -q number.-.1 src/pages/__init__.py",
    )
    assert (made.refused, made.grading) == ("", "shared")


def rows_of(repo):
    """A row of each form."""
    source, hashes = repo
    start, fix = hashes["start"], hashes["fix"]
    patch, tests = (git(source, "diff", start, fix, "--", path) for path in ("src", "tests"))
    test = "tests/test_pages.py::test_counts_from_one"
    code = (
        "from pages import page\n\n\nclass TestIt:\n    def test_one(self):\n"
        "        assert page([1, 2, 3], 1, 2) == [1, 2]\n\n"
        "    def test_no(self):\n        assert 0\n"
    )
    bench = {
        "instance_id": "me__toy-1", "repo": "me/toy", "base_commit": start, "patch": patch,
        "test_patch": tests, "problem_statement": "Pages count from one.",
        "FAIL_TO_PASS": json.dumps([test]), "PASS_TO_PASS": "[]",
    }  # fmt: skip
    smith = {
        "instance_id": "toy.bug.1", "repo": f"swesmith/me__toy.{fix[:8]}",
        "image_name": "swebench/none", "patch": git(source, "diff", fix, start, "--", "src"),
        "problem_statement": "It counts wrongly.", "FAIL_TO_PASS": [test],
        "PASS_TO_PASS": [],
    }  # fmt: skip
    gym = {
        "repo_name": "toy", "docker_image": "none/toy:abc", "commit_hash": fix,
        "problem_statement": "It counts wrongly.",
        "execution_result_content": json.dumps(
            {"test_file_names": ["test_1.py"], "test_file_codes": [code]}
        ),
        "expected_output_json": json.dumps(
            {"TestIt.test_one": "PASSED", "TestIt.test_no - assert 0": "FAILED"}
        ),
    }  # fmt: skip
    return bench, smith, gym


@pytest.mark.slow
def test_rows_of_each_form_become_tasks(repo, box, tmp_path) -> None:
    bench, smith, gym = rows_of(repo)
    django = {**bench, "instance_id": "d", "FAIL_TO_PASS": ["test_x (pages.T)"]}
    solved = {**bench, "instance_id": "s", "test_patch": bench["patch"], "FAIL_TO_PASS": ["a::b"]}
    strange = {"instance_id": "q", "question": "2 + 2"}
    (tmp_path / "rows.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in (bench, smith, gym, django, solved, strange))
    )
    out, options = tmp_path / "tasks", {"repos": repo[0].parent, "image": "assay-shell:latest"}
    found = list(from_swe(tmp_path / "rows.jsonl", out, box, jobs=2, **options))
    assert [one.refused for one in found[:3]] == ["", "", ""]
    assert [one.name for one in found[:2]] == ["me__toy-1", "toy.bug.1"]
    assert load_tasks(out)[0].config.task.name == "swe/me__toy-1"
    for one, said in zip(found[3:], ("not pytest's", "not pytest's", "no row of a"), strict=True):
        assert said in one.refused
        assert "rows.jsonl, line" in one.refused
    assert not list(from_swe(tmp_path / "rows.jsonl", out, box, **options))


@pytest.mark.slow
def test_a_row_with_its_image_needs_no_clone(repo, box, tmp_path) -> None:
    tag = "swebench/sweb.eval.x86_64.me_1776_toy-1:latest"
    context = tmp_path / "image"
    git(tmp_path, "clone", "-q", str(repo[0]), str(context / "testbed"))
    git(context / "testbed", "checkout", "-q", repo[1]["start"])
    (context / "Dockerfile").write_text("FROM assay-shell:latest\nCOPY testbed /testbed\n")
    build_folder(context, tag)
    try:
        (tmp_path / "rows.json").write_text(json.dumps([rows_of(repo)[0]]))
        (made,) = from_swe(tmp_path / "rows.json", tmp_path / "tasks", box)
        assert (made.refused, made.grading) == ("", "separate")
        (task,) = load_tasks(tmp_path / "tasks")
        look = CommandAgent("cd /testbed && git rev-list --all --count")
        assert run_trial(task, look, box).agent_log == "1\n"
    finally:
        client = connect()
        client.remove_image(tag, force=True)
        client.close()


def test_a_row_without_image_or_clone_is_refused_by_name(repo, box, tmp_path) -> None:
    (tmp_path / "rows.json").write_text(json.dumps(list(rows_of(repo)[:2])))
    words = ["harbor", "from-swe", str(tmp_path / "rows.json"), "-o", str(tmp_path / "t"), "--json"]
    done = CliRunner().invoke(app, words)
    assert done.exit_code == 1
    first, second = json.loads(done.stdout)
    assert "'sweb.eval.x86_64.me__toy-1:latest'" in first["refused"]
    assert "'swebench/none'" in second["refused"]
    assert "--repos" in second["refused"]
