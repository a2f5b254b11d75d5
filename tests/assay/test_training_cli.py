"""``assay train`` from a file, killed and resumed; its help; what it refuses before training."""

from __future__ import annotations

import json
import os
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from assay.grpo import read_metrics

torch.set_num_threads(1)
ROWS = [{"question": f"{n}+1=", "answer": f"#### {n + 1}"} for n in range(1, 17)]


@pytest.fixture
def recipe(model: Path, tmp_path: Path) -> Path:
    """A file of settings, with a preset and a curriculum."""
    for name in ("train", "test"):
        rows = ROWS[:12] if name == "train" else ROWS[12:]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in rows))
    path = tmp_path / "run.yaml"
    path.write_text(
        f"""
preset: dr_grpo
env: assay/GSM8K-v1
data: {tmp_path / "train.jsonl"}
held_out_data: {tmp_path / "test.jsonl"}
model: {model}
curriculum: prioritised
curriculum_exponent: 2
steps: 6
prompts_per_step: 4
group_size: 4
max_new_tokens: 3
learning_rate: 1e-3
warmup_steps: 1
eval_every: 3
save_every: 1
trackers: []
"""
    )
    return path


LETTERS = """
from assay import register
from assay.envs import Rows, Task, TextEnv
from assay.verifiers import FunctionVerifier

def begins(reply, letter):
    return reply[:1].lower() <= letter

def letters(split="train"):
    first = 0 if split == "train" else 13
    some = [chr(ord("a") + first + i) for i in range(13)]
    return TextEnv(Rows([Task(f"up to {c}:", c, id=c) for c in some]), FunctionVerifier(begins))

register("mine/Letters-v0", letters, summary="letters")
"""


def test_a_run_is_killed_and_goes_on_from_its_directory_alone(
    run: Any, recipe: Path, tmp_path: Path, monkeypatch: Any, caplog: Any
) -> None:
    (tmp_path / "assay_test_letters.py").write_text(LETTERS)
    monkeypatch.chdir(tmp_path)  # where the module is
    monkeypatch.syspath_prepend(tmp_path)
    text = "".join(x for x in recipe.read_text().splitlines(True) if "data:" not in x)
    recipe.write_text(text.replace("assay/GSM8K-v1", "assay_test_letters:mine/Letters-v0"))
    whole, killed = tmp_path / "whole", tmp_path / "killed"
    flags = ["--config", recipe, "--loss", "grpo", "--no-mask-truncated", "--steps", 6]
    code, shown, told = run("train", *flags, "--out", whole)
    assert code == 0, told
    assert "learning_curve.png" in shown
    assert (whole / "learning_curve.png").read_bytes().startswith(b"\x89PNG")
    assert [row["step"] for row in read_metrics(whole / "metrics.jsonl")] == [*range(7)]
    assert run("train", *flags, "--out", whole)[0] == 2  # a run is there already
    assert sum(row.get("updates", 0) for row in read_metrics(whole / "metrics.jsonl")) > 3

    command = [sys.executable, "-m", "assay", "train", *map(str, flags), "--out", str(killed)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    process = subprocess.Popen(command, env=environment, stderr=subprocess.PIPE)
    deadline = time.monotonic() + 120
    while not (killed / "checkpoints" / "step-000002").exists() and process.poll() is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)

    assert run("train", "--resume", "--out", killed)[0] == 0
    last = [load_file(d / "checkpoints/step-000006/model.safetensors") for d in (whole, killed)]
    assert last[0].keys() == last[1].keys()
    assert all(torch.equal(tensor, last[1][name]) for name, tensor in last[0].items())
    stored = [json.loads((d / "config.json").read_text())["config"] for d in (whole, killed)]
    assert {k for k in stored[0] if stored[0][k] != stored[1][k]} == {"out_dir"}
    assert stored[0]["loss"] == "grpo"  # the flag, over the preset
    assert stored[0]["advantage_std"] == "none"  # the preset
    assert stored[0]["curriculum_exponent"] == 2.0  # the file
    tasks = json.loads((killed / "checkpoints/step-000006/tasks.json").read_text())
    assert tasks["sampler"] == "Prioritised"

    for other, words in (
        (["--curriculum", "target_rate", "--curriculum-exponent", 1], "curriculum='prioritised'"),
        (["--set", "think=true"], "was made with env_args={}"),
        (["--seed", 5], "made with other settings: {'seed': 0}"),
    ):
        code, _, told = run("train", "--resume", "--out", killed, *other)
        assert code == 2
        assert words in " ".join(told.split())

    moved = killed.rename(tmp_path / "moved")
    assert run("train", "--resume", "--out", moved, "--steps", 7)[0] == 0
    assert json.loads((moved / "config.json").read_text())["config"]["steps"] == 7
    with caplog.at_level("WARNING", "assay"):
        assert run("train", "--resume", "--out", moved, "--steps", 7)[0] == 0
    assert "has done 7 steps, and steps is 7: nothing is left to train" in caplog.text


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--max-new-tokens", 512], "the model is made for 512 tokens, prompt and reply together"),
        (["--warmup-steps", 7], "warmup_steps=7 is more than steps=6"),
        (["--preset", "dappo"], "Did you mean dapo?"),
        (["--curriculum", "easy_to_hard", "--curriculum-exponent", 1], "has no difficulty"),
        (["--lora-targets", "nowhere", "--lora-rank", 2], "nowhere"),
        (["--clip-high", "high"], "--clip-high must be a valid number, got 'high'"),
        (["--tracker", "wandbb", "--model", "nowhere"], "there is no tracker 'wandbb'"),
        (["--surogate", "clip"], "No such option"),
        (["--resume"], "nothing to resume"),
        (["--dual-clip", 1.1], "dual_clip must be above"),
        (["--dtype", "float16"], "--dtype must be 'float32' or 'bfloat16', got 'float16'"),
        (["--server", "http://127.0.0.1:9"], "leave it at None, or set engine to vllm"),
        (["--engine", "vllm", "--server", "127.0.0.1:9"], "must be an address such as 'http://"),
        (["--engine", "vllm", "--server", "http://127.0.0.1:9"], "Is it running? If not, start it"),
        (
            ["--engine", "vllm", "--server", "http://127.0.0.1:9", "--max-model-len", 99],
            "no effect with a server that is running already",
        ),
        (["--engine", "vllm", "--max-model-len", 3], "leaves no room for a prompt"),
        (["--server-sleep"], "no effect with engine='transformers'"),
        (["--engine", "vllm", "--server-sleep", "--max-staleness", 1], "max_staleness must be 0"),
        (
            ["--engine", "vllm", "--vllm-executable", "no-vllm", "--model", "nowhere"],
            "pip install vllm, or name its",
        ),
    ],
)
def test_what_is_refused_leaves_nothing_behind(
    run: Any, recipe: Path, tmp_path: Path, flags: list[Any], words: str
) -> None:
    out = tmp_path / "out"
    code, _, told = run("train", "--config", recipe, "--out", out, *flags)
    assert code == 2, told
    assert words in " ".join(told.replace("│", " ").split()), told
    assert "Traceback" not in told
    assert not list(out.rglob("*"))


@pytest.mark.slow
def test_a_stopped_run_logs_its_steps_and_says_how_to_go_on(recipe: Path, tmp_path: Path) -> None:
    words = ["assay", "train", "--config", str(recipe), "--steps", "9999", "--out", "it's here"]
    words += ["--max-drift", "1e9", "--alarm-patience", "0"]
    for number, code, stop in ((signal.SIGINT, 130, 2), (signal.SIGTERM, 143, 4)):
        lines = []
        with subprocess.Popen(
            [sys.executable, "-m", *words], cwd=tmp_path, stderr=subprocess.PIPE, text=True
        ) as process:
            for line in process.stderr or ():
                lines.append(line)
                if f" step {stop}/9999 " in line:
                    process.send_signal(number)
        assert process.returncode == code, lines
        for step in (stop - 1, stop):
            (logged,) = (line for line in lines if f" step {step}/9999  " in line)
            assert all(name in logged for name in ("reward", "tok/s"))
        (go_on,) = (line for line in lines if line.startswith("To go on: "))
        words = shlex.split(go_on.removeprefix("To go on: "))
        assert words == ["assay", "train", "--resume", "--out", "it's here"]


def test_a_check_that_stops_the_run_says_why_without_a_traceback(
    run: Any, recipe: Path, tmp_path: Path, monkeypatch: Any
) -> None:
    module = LETTERS.replace("mine/", "no/").replace("reply[:1].lower() <= letter", "None")
    (tmp_path / "assay_test_no_letters.py").write_text(module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    text = "".join(x for x in recipe.read_text().splitlines(True) if "data:" not in x)
    recipe.write_text(text.replace("assay/GSM8K-v1", "assay_test_no_letters:no/Letters-v0"))
    code, _, told = run("train", "--config", recipe, "--out", tmp_path / "out")
    assert code == 1
    assert "TooManyUnscored: step 1: 16 of 16 episodes have no reward" in told
    assert "Traceback" not in told
    before_the_model = ["--out", tmp_path / "out", "--model", "nowhere"]
    assert "holds a run" in run("train", "--config", recipe, *before_the_model)[2]


def test_an_evaluation_that_was_asked_for_needs_tasks(
    run: Any, recipe: Path, tmp_path: Path
) -> None:
    recipe.write_text(
        "".join(x for x in recipe.read_text().splitlines(True) if not x.startswith("held_out"))
    )
    code, _, told = run("train", "--config", recipe, "--out", tmp_path / "a")
    assert code == 2
    assert "eval_every needs held-out tasks" in told
    text = recipe.read_text().replace("eval_every: 3", "").replace("steps: 6", "steps: 1")
    recipe.write_text(text)
    code, shown, _ = run("train", "--config", recipe, "--out", tmp_path / "b")
    assert code == 0
    assert "No held-out tasks" in shown
    assert run("train", "--resume", "--out", tmp_path / "b")[0] == 0  # what was settled stays so


def test_the_help_fits_a_screen_and_help_all_has_every_flag(run: Any) -> None:
    from assay.train_flags import flag
    from assay.train_settings import groups

    code, shown, _ = run("train", "-h")
    assert code == 0
    assert len(shown.splitlines()) <= 50
    assert "--help-all" in shown
    assert "Example: assay train " in shown
    code, shown, _ = run("train", "--help-all")
    assert code == 0
    assert max(map(len, shown.splitlines())) <= 100
    for heading, names in groups().items():
        assert f"─ {heading} ─" in shown or heading == "Tasks"
        assert all(flag(name).removesuffix("-dir") in shown for name in names)
    assert "…" not in shown  # nothing is cut short


def test_names_of_trl_are_known(run: Any) -> None:
    flags = ["--num-generations", 4, "--max-completion-length", 9, "--max-steps", 7, "--prompts", 3]
    _, shown, _ = run("train", *flags, "--print-config")
    for line in ("group_size: 4", "max_new_tokens: 9", "steps: 7", "prompts_per_step: 3"):
        assert f"\n{line}\n" in shown


@pytest.mark.slow
def test_printed_settings_give_the_same_run(run: Any, model: Path, tmp_path: Path) -> None:
    given = ["--preset", "dapo", "--model", model, "--set", "digits=1", "--clip-high", "none"]
    given += ["--steps", 1, "--prompts", 16, "--max-refills", 0, "--max-new-tokens", 2]
    code, shown, _ = run("train", "assay/Arithmetic-v1", *given, "--print-config")
    assert code == 0
    (tmp_path / "run.yaml").write_text(shown)
    assert run("train", "--config", tmp_path / "run.yaml", "--print-config")[1] == shown
    for line in ("clip_high: null", "mask_truncated: true", "env_args: {digits: 1}"):
        assert f"\n{line}\n" in shown
    kept = []
    for name, args in (
        ("a", ["assay/Arithmetic-v1", *given]),
        ("b", ["--config", tmp_path / "run.yaml"]),
    ):
        code, _, error = run("train", *args, "--out", tmp_path / name)
        assert code == 0, error
        kept.append(json.loads((tmp_path / name / "config.json").read_text())["config"])
    assert {key for key in kept[0] if kept[0][key] != kept[1][key]} == {"out_dir"}
    assert "\n# env:\n" in run("train", "--print-config")[1]


def test_presets_are_listed_and_shown(run: Any, tmp_path: Path) -> None:
    from assay.grpo import PRESETS
    from assay.train_settings import from_file

    _, shown, _ = run("presets")
    assert all(f" {name} " in shown for name in PRESETS)
    code, shown, _ = run("presets", "r1_zero")
    assert code == 0
    (tmp_path / "r1.yaml").write_text(shown)
    assert from_file(tmp_path / "r1.yaml") == PRESETS["r1_zero"].overrides


def test_a_curriculum_chooses_among_levels_where_tasks_never_end(
    run: Any, model: Path, tmp_path: Path
) -> None:
    told = ["train", "assay/Arithmetic-v1", "--model", model, "--out", tmp_path, "--steps", 1,
            "--prompts", 2, "--group-size", 2, "--max-new-tokens", 2, "--eval-every", 0,
            "--curriculum", "target_rate"]  # fmt: skip
    code, _, error = run(*told)
    assert code == 2
    assert "generates new ones without end" in error
    code, _, error = run(*told, "--levels", '{"digits": [1, 2]}')
    assert code == 0, error
    tasks = json.loads((tmp_path / "checkpoints/step-000001/tasks.json").read_text())
    assert set(tasks["rates"]["tasks"]) <= {"digits=1", "digits=2"}
    assert tasks["rates"]["tasks"]
