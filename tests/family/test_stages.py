"""Pipelines: done once, whole or not there, and the same bits however often they are killed."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from assay.family.trainers import Stage, fingerprints, run_stages
from assay.grpo import CheckpointError, begun

pytestmark = pytest.mark.slow

ran: list[str] = []


def write(folder: Path, before: dict[str, Path], *, text: str) -> dict[str, float]:
    ran.append(folder.name.partition("-")[0])
    told = [(path / "text").read_text() for path in before.values()]
    (folder / "text").write_text("".join([*told, text]))
    return {"length": float(len(text))}


def chain(*texts: str) -> list[Stage]:
    return [Stage("abc"[i], write, {"text": text}) for i, text in enumerate(texts)]


@pytest.fixture(autouse=True)
def forget() -> None:
    ran.clear()


def test_a_stage_reads_those_before_it_and_is_run_once(tmp_path: Path) -> None:
    done = run_stages(chain("x", "y", "z"), tmp_path)
    assert [one.name for one in done] == ["a", "b", "c"]
    # a: x. b: what a wrote, and y. c: what a and b wrote, and z.
    assert (done[2].folder / "text").read_text() == "xxyz"
    assert done[2].found == {"length": 1.0}
    again = run_stages(chain("x", "y", "z"), tmp_path)
    assert ran == ["a", "b", "c"]
    assert [one.skipped for one in again] == [True] * 3
    assert [(one.folder, one.found) for one in again] == [(one.folder, one.found) for one in done]
    assert sorted(p.name for p in tmp_path.iterdir() if p.is_dir()) == [
        f"{name}-{mark}"
        for name, mark in zip("abc", fingerprints(chain("x", "y", "z")), strict=True)
    ]


def test_a_changed_setting_runs_its_stage_and_those_after_it_beside_what_was_there(
    tmp_path: Path,
) -> None:
    first = run_stages(chain("x", "y", "z"), tmp_path)
    ran.clear()
    changed = run_stages(chain("x", "Y", "z"), tmp_path)
    assert ran == ["b", "c"]
    assert (changed[2].folder / "text").read_text() == "xxYz"
    assert [one.folder.is_dir() for one in first] == [True] * 3
    ran.clear()
    assert run_stages(chain("x", "y", "z"), tmp_path)[2].folder == first[2].folder
    assert ran == []


def test_a_stage_that_raises_leaves_what_it_had_and_goes_on_there(tmp_path: Path) -> None:
    def twice(folder: Path, before: dict[str, Path]) -> None:
        if not (folder / "half").exists():
            (folder / "half").write_text("done")
            raise RuntimeError("out of memory")
        (folder / "whole").write_text((folder / "half").read_text())

    stages = [*chain("x"), Stage("twice", twice)]
    with pytest.raises(RuntimeError, match="out of memory"):
        run_stages(stages, tmp_path)
    assert [p.name for p in tmp_path.glob("twice-*")] == [
        f"twice-{fingerprints(stages)[1]}.unfinished"
    ]
    done = run_stages(stages, tmp_path)
    assert ran == ["a"]
    assert (done[1].folder / "whole").read_text() == "done"
    assert list(tmp_path.glob("*.unfinished")) == []


def test_numbers_come_back_as_they_were_given(tmp_path: Path) -> None:
    stages = [Stage("a", lambda folder, before: {"pair": [1, 0.1], "none": None})]
    assert [run_stages(stages, tmp_path)[0].found for _ in range(2)] == [
        {"pair": [1, 0.1], "none": None}
    ] * 2
    record = json.loads((run_stages(stages, tmp_path)[0].folder / "stage.json").read_text())
    assert (record["stage"], record["settings"], record["before"]) == ("a", {}, {})


@pytest.mark.parametrize("settings", [{"x": (1, 2)}, {"x": Path("a")}, {1: 2}, {"x": float("nan")}])
def test_settings_that_json_does_not_give_back_are_refused(settings: dict) -> None:
    with pytest.raises(ValueError, match=r"settings of stage 'a' must be JSON values"):
        Stage("a", write, settings)


@pytest.mark.parametrize("name", ["", "a/b", "..", "a b"])
def test_names_that_are_no_folders_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="must be letters, digits"):
        Stage(name, write)


def test_two_stages_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="a name of its own, got a, a"):
        run_stages([*chain("x"), *chain("y")], tmp_path)


def test_two_processes_do_not_work_in_one_folder(tmp_path: Path) -> None:
    code = (
        "import fcntl, sys, time\n"
        "with open(sys.argv[1] + '/.lock', 'w') as lock:\n"
        "    fcntl.lockf(lock, fcntl.LOCK_EX); print('in', flush=True); time.sleep(60)"
    )
    other = subprocess.Popen(
        [sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "in\n"
        with pytest.raises(CheckpointError, match="another process"):
            run_stages(chain("x"), tmp_path)
    finally:
        os.kill(other.pid, signal.SIGKILL)
        other.communicate()
    assert len(run_stages(chain("x"), tmp_path)) == 1


def test_begun_tells_whether_there_is_a_run(tmp_path: Path) -> None:
    assert not begun(tmp_path / "none")
    (tmp_path / "config.json").write_text("{}")
    assert begun(tmp_path)
