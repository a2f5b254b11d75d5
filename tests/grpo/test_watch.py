"""What a run leaves behind while it goes on: rows, samples, trackers, a line on a terminal."""

from __future__ import annotations

import importlib.util
import io
import json
import os
import re
import resource
import subprocess
import sys
import threading
import time
import warnings
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.console import Console

from assay.envs import Episode, EpisodeGroup, Span, Task
from assay.envs.group_summary import rollout_metrics, sample_groups
from assay.grpo import GRPOConfig, Learner, read_metrics
from assay.grpo.log import (
    BackgroundTracker,
    MetricsLog,
    Progress,
    keeps_samples,
    progress_text,
    require_trackers,
)
from assay.grpo.records import WatchWarning, read_about
from assay.verifiers import Status, Verdict
from assay.verifiers.visible import escape_invisible

torch.set_num_threads(1)


def group(name: str, *rewards: float | None, text: str = "reply") -> EpisodeGroup:
    return EpisodeGroup(
        Task(f"{name}?", "", id=name),
        tuple(
            Episode(
                name,
                ({"role": "assistant", "content": f"{text} {i}"},),
                Verdict.fault(Status.SANDBOX_ERROR, "gone")
                if r is None
                else Verdict(Status.CORRECT if r == 1 else Status.INCORRECT, r, "because"),
                spans=(Span("environment", (1,)), Span("model", (2,) * (i + 1), (-1.0,) * (i + 1))),
            )
            for i, r in enumerate(rewards)
        ),
    )


def test_metrics_of_a_rollout_by_hand() -> None:
    row = rollout_metrics([group("a", 1.0, 0.0, None), group("b", 1.0, 1.0, 0.0)])
    assert row["reward"] == pytest.approx(3 / 5)
    # Deviations: of (1, 0) a half; of (1, 1, 0) the root of 2/9.
    assert row["reward_std"] == pytest.approx((0.5 + (2 / 9) ** 0.5) / 2)
    assert row["none_share"] == pytest.approx(1 / 6)
    assert {k: v for k, v in row.items() if k.startswith("status/")} == {
        "status/correct": 3 / 6,
        "status/incorrect": 2 / 6,
        "status/sandbox_error": 1 / 6,
    }
    assert (row["tokens/sampled"], row["tokens/longest"], row["tokens/reply"]) == (12, 3, 2)


def test_samples_are_the_most_varied_the_best_and_the_worst() -> None:
    groups = [group("mid", 0.5, 0.5), group("low", 0.0, 0.1), group("top", 1.0, 0.9)]
    groups += [group("mixed", 0.0, 1.0), group("none", None, None)]
    found = sample_groups(groups, range(5), count=3, advantages=list(range(10)))
    assert [(g["kept_as"], g["task"]) for g in found] == [
        ("most varied", "mixed"),
        ("best", "top"),
        ("worst", "low"),
    ]
    first = found[0]
    assert (first["prompt"], first["size"]) == ("mixed?", 2)
    assert first["replies"][1] == {
        "text": "reply 1",
        "reward": 1.0,
        "rewards": {},
        "status": "correct",
        "reason": "because",
        "advantage": 7,
        "tokens": 2,
        "truncated": False,
    }
    assert len(sample_groups(groups, range(5), count=9)) == 5
    assert sample_groups(groups, range(5))[0]["replies"][0]["advantage"] is None
    assert sample_groups([], []) == []
    equal = [group(str(i), 0.5, 0.5) for i in range(4)]
    assert [g["task"] for g in sample_groups(equal, [2, 0, 3, 1])] == ["2", "0", "3"]


def test_samples_are_bounded() -> None:
    big = group("big", *[i / 100 for i in range(100)], text="x" * 50_000)
    found = sample_groups([big], [0])
    assert len(json.dumps(found)) < 30_000
    kept = [r["reward"] for r in found[0]["replies"]]
    assert len(kept) == 8
    assert {0.0, 0.99} < set(kept)  # the best and the worst are among them
    assert sum(keeps_samples(step, 10_000) for step in range(1, 10_001)) <= 202
    assert all(keeps_samples(step, 100) for step in range(1, 101))
    assert keeps_samples(1, 5000)
    assert keeps_samples(4999, 4999)


class Recorder:
    """A tracker that keeps what it is given."""

    def __init__(self) -> None:
        self.rows: list[Any] = []
        self.groups: list[Any] = []
        self.closed = 0

    def write(self, row: Any) -> None:
        self.rows.append(row)

    def samples(self, step: int, groups: Any) -> None:
        self.groups.append((step, groups))

    def close(self) -> None:
        self.closed += 1


class Broken(Recorder):
    """A tracker whose network is down."""

    def write(self, row: Any) -> None:
        super().write(row)
        raise ConnectionError("no route to host")


class Hanging(Recorder):
    """A tracker whose network never answers."""

    def __init__(self) -> None:
        super().__init__()
        self.go_on = threading.Event()

    def write(self, row: Any) -> None:
        self.go_on.wait(60)


def test_trackers_get_every_row_and_none_stops_another(tmp_path: Path) -> None:
    recorder, broken = Recorder(), Broken()
    log = MetricsLog(tmp_path, trackers=(broken, recorder))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(20):
            log.write({"step": step, "loss": float("nan")})
        log.samples(19, [{"kept_as": "best"}])
        log.close()
        log.close()
    (told,) = caught  # once, not at each row
    assert told.category is WatchWarning
    assert "tracker Broken: ConnectionError: no route to host" in str(told.message)
    assert [row["step"] for row in recorder.rows] == list(range(20))
    assert recorder.rows[0]["loss"] is None
    assert recorder.groups == [(19, [{"kept_as": "best"}])]
    assert (recorder.closed, broken.closed, len(broken.rows)) == (1, 1, 20)
    assert len(read_metrics(log.path)) == 20


def test_a_tracker_that_hangs_does_not_slow_the_run(tmp_path: Path) -> None:
    hanging = Hanging()
    tracker = BackgroundTracker("hanging", lambda: hanging, waiting=5, closing_s=0.2)
    started = time.monotonic()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(100):
            tracker.put(lambda t, row={"step": step}: t.write(row))
        tracker.close()
    (told,) = caught
    assert "5 rows wait for it" in str(told.message)
    assert time.monotonic() - started < 30  # a guard against a hang; each row waits for a minute
    hanging.go_on.set()


def test_trackers_are_asked_for_by_name() -> None:
    with pytest.raises(ValueError, match="no tracker 'mlflow': expected one of tensorboard, wandb"):
        require_trackers(("tensorboard", "mlflow"))
    if importlib.util.find_spec("wandb") is None:
        with pytest.raises(ImportError, match="run pip install wandb"):
            require_trackers(("wandb",))


def test_tensorboard_shows_each_step_once_after_a_resume(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for steps, resume in ((range(6), None), (range(3, 8), 2)):
        with MetricsLog(tmp_path, resume_step=resume) as log:
            for step in steps:
                log.write({"step": step, "reward": step / 10, "alarm": "text"})
    events = EventAccumulator(str(tmp_path / "tensorboard"))
    events.Reload()
    assert [e.step for e in events.Scalars("reward")] == list(range(8))
    assert events.Tags()["scalars"] == ["reward"]


@pytest.mark.parametrize("name", ["wandb", "trackio"])
def test_trackers_of_others_work_without_a_network(tmp_path: Path, name: str) -> None:
    pytest.importorskip(name)
    code = f"""
from assay.grpo.log import MetricsLog
group = {{"kept_as": "best", "prompt": "\\ud800", "replies": [
    {{"text": "<b>", "reward": None, "status": "correct", "advantage": None}}]}}
for steps, resume in ((range(6), None), (range(3, 8), 2)):
    more = {{"resume_step": resume, "trackers": ({name!r},), "config": {{"a": 1}}}}
    with MetricsLog("run", **more) as log:
        for step in steps:
            log.write({{"step": step, "reward": step / 10}})
        log.samples(step, [group])
"""
    env = {**os.environ, "WANDB_MODE": "offline", "WANDB_SILENT": "true", "HF_HUB_OFFLINE": "1"}
    env |= {"TRACKIO_DIR": str(tmp_path / "trackio"), "PYTHONWARNINGS": "default"}
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=tmp_path, env=env, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "WatchWarning" not in done.stderr
    where = {"wandb": "run/wandb/offline-run-*", "trackio": "trackio/*.db"}[name]
    assert list(tmp_path.glob(where))


def test_rows_are_whole_where_the_disk_is_full(tmp_path: Path) -> None:
    """A file-size limit stands for the full disk: half of a row is written, and taken back."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    log = MetricsLog(tmp_path, trackers=())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for step in range(9):
            resource.setrlimit(resource.RLIMIT_FSIZE, (100 if step in (3, 4, 5) else hard, hard))
            try:
                log.write({"step": step, "text": "x" * 20})
            finally:
                resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
    log.close()
    (told,) = caught
    assert str(told.message).startswith("cannot write metrics.jsonl: ")
    assert [r["step"] for r in read_metrics(log.path)] == [0, 1, 2, 6, 7, 8]


def test_a_resumed_run_keeps_its_rows_samples_and_beginning(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    def learner(steps: int, **more: Any) -> Learner:
        config = GRPOConfig(steps=steps, prompts_per_step=3, group_size=2, max_new_tokens=2)
        return Learner(
            model, tokenizer, digits(3, 2), config, tmp_path, trackers=(), samples=2, **more
        )

    learner(2, about={"env": "Digits"}).train()
    with (tmp_path / "samples.jsonl").open("a") as file:  # as if it had been killed in step 4
        file.write(json.dumps({"step": 3, "groups": ["lost"]}) + "\n" + '{"step": 4, "gro')
    learner(4, resume=True).train()
    last = read_metrics(tmp_path / "metrics.jsonl")[-1]
    seconds = last["seconds/rollout"] + last["seconds/update"]
    assert last["tokens/s"] == pytest.approx(last["tokens/sampled"] / seconds)
    kept = read_metrics(tmp_path / "samples.jsonl")
    assert [row["step"] for row in kept] == [1, 2, 3, 4]
    assert all(len(row["groups"]) == 2 for row in kept)
    # Above, a group's rewards and advantages are in the same order.
    for reply in kept[0]["groups"][0]["replies"]:
        assert (reply["advantage"] > 0) == (reply["reward"] == 1) or reply["advantage"] == 0
    about = read_about(tmp_path)
    assert about["config"]["steps"] == 4
    assert about["about"] == {"env": "Digits"}
    assert about["versions"]["torch"] == torch.__version__.partition("+")[0] or "+" in str(about)
    assert len(about["started"]) == 2
    row = read_metrics(tmp_path / "metrics.jsonl")[-1]
    assert row["tokens/s"] > 0


def test_every_number_is_in_the_table_of_the_docs(
    model: Any, tokenizer: Any, digits: Any, tmp_path: Path
) -> None:
    settings: dict[str, Any] = {"steps": 2, "max_new_tokens": 2, "eval_every": 1, "beta": 0.1}
    config = GRPOConfig(prompts_per_step=3, group_size=2, **settings)
    rollout = digits(3, 2)
    Learner(model, tokenizer, rollout, config, tmp_path, trackers=(), held_out=rollout).train()
    page = (Path(__file__).parents[2] / "docs/learner.md").read_text()
    table = page[page.index("| name in `metrics.jsonl`") :].split("\n\n")[0]
    told = [name.replace("NAME", "*").replace("...", "*") for name in re.findall("`(.+?)`", table)]
    logged = {name for row in read_metrics(tmp_path / "metrics.jsonl") for name in row}
    assert {n for n in logged - {"step"} if not any(fnmatchcase(n, t) for t in told)} == set()
    assert {n for n in told if "*" not in n} - logged <= {
        "metrics.jsonl",
        "alarm",
        "ending",
        "accuracy/played",
        "Refill",
    }


def test_broken_rows_name_the_line(tmp_path: Path) -> None:
    path = tmp_path / "rows.jsonl"
    for line in ("nonsense", "[]", '{"loss": 1}', '{"step": "1"}', '{"step": true}'):
        path.write_text('{"step": 1}\n' + line + "\n")
        expected = "JSON" if line == "nonsense" else "an object with a num"
        with pytest.raises(ValueError, match=rf"rows\.jsonl, line 2: expected {expected}"):
            read_metrics(path)


@given(st.text(st.characters(), max_size=200))
@settings(deadline=None, derandomize=True)
def test_visible_text_obeys_nobody(text: str) -> None:
    shown = escape_invisible(text)
    shown.encode()  # no lone surrogates
    assert all(c.isprintable() or c in "\t\n" or ord(c) > 159 for c in shown)
    assert not set(shown) & set("\x1b\u202e\u2066\ufeff")


def test_visible_text_is_left_alone() -> None:
    assert escape_invisible("a\tb\r\nc \u4e2d\U0001f600 é") == "a\tb\nc \u4e2d\U0001f600 é"
    assert escape_invisible("\x1b[2J\ud800\u202e") == r"\x1b[2J\ud800\u202e"


ROW = {
    "step": 7,
    "reward": 0.5,
    "reward/format": 0.25,
    "zero_variance": 0.125,
    "none_share": 0.0,
    "entropy": 1.25,
    "tokens/s": 5200.0,
    "held_out/pass_at_1": 0.75,
}


def test_the_line_shows_the_numbers_of_a_row() -> None:
    assert progress_text(ROW) == (
        "reward 0.500  held-out 0.750  zero-var 12%  5,200 tok/s  entropy 1.25  format 0.250"
    )
    assert "none 25%" in progress_text({**ROW, "none_share": 0.25})
    assert progress_text({"step": 0, "reward": float("nan")}) == ""


def test_steps_are_logged_where_no_bar_is_shown(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "assay")
    for terminal in (True, False):
        console = Console(file=io.StringIO(), force_terminal=terminal)
        with Progress(9, 0, show=True, console=console) as progress:
            progress.update(ROW)
        assert bool(console.file.getvalue()) is terminal  # type: ignore[attr-defined]  # a StringIO
    assert caplog.messages == [f"step 7/9  {progress_text(ROW)}"]


@pytest.mark.parametrize("width", [40, 60, 80, 100, 200])
def test_the_line_fits_its_terminal(width: int) -> None:
    console = Console(file=io.StringIO(), force_terminal=True, width=width, color_system=None)
    with Progress(1000, 0, show=True, console=console) as progress:
        progress.update({"step": 0, "held_out/pass_at_1": 0.75})
        progress.update({name: v for name, v in ROW.items() if name != "held_out/pass_at_1"})
    shown = console.file.getvalue()  # type: ignore[attr-defined]  # a StringIO
    last = [line for line in shown.replace("\r", "\n").split("\n") if "7/1000" in line][-1]
    assert len(last.removeprefix("\x1b[2K")) <= width
    assert ("reward 0.500" in last) == (width >= 60)
    assert ("held-out 0.750" in last) == (width >= 80)
    assert ("5,200 tok/s" in last) == (width >= 100)
