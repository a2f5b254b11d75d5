"""The command line: tables, errors with a remedy, exit codes, whole files."""

import contextlib
import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from pathlib import Path

import pytest

from assay.cli import app

COLUMNS = 1000
ROOT = Path(__file__).parents[2]
GSM8K = [
    {"question": f"What is {n} and {n}?", "answer": f"It is {2 * n}.\n#### {2 * n}"}
    for n in range(1, 31)
]


@pytest.fixture
def data(tmp_path):
    return write(tmp_path / "gsm8k.jsonl", GSM8K)


def write(path, rows):
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


def golds(path):
    return write(path, [{"task": i, "completion": row["answer"]} for i, row in enumerate(GSM8K)])


def test_list_names_every_environment_and_its_needs(run) -> None:
    code, shown, _ = run("list")
    assert code == 0
    assert all(name in shown for name in ("assay/GSM8K-v1", "assay/Countdown-v1", "a sandbox"))


def test_golds_score_full_marks_and_are_written(run, tmp_path, data) -> None:
    out = tmp_path / "verdicts.jsonl"
    code, shown, _ = run(
        "score", "assay/GSM8K-v1", golds(tmp_path / "c.jsonl"), "--data", data, "--out", out
    )
    assert code == 0
    assert "accuracy" in shown
    assert "1.0000" in shown
    rows = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(rows) == 30
    assert {"task", "status", "score", "rewards", "reason", "extracted"} <= set(rows[0])
    assert all(r["score"] == 1.0 and r["rewards"] == {"accuracy": 1.0} for r in rows)


def test_several_completions_of_a_task_give_pass_at_k(run, tmp_path, data) -> None:
    rows = [{"task": i % 5, "completion": str(2 * (i % 5 + 1) if i < 5 else 0)} for i in range(20)]
    _, shown, _ = run("score", "assay/GSM8K-v1", write(tmp_path / "c", rows), "--data", data)
    assert "incorrect" in shown
    # One of four is right: pass@1 .25, pass@2 .5, pass@4 1.
    for name, value in (("pass@1", "0.2500"), ("pass@2", "0.5000"), ("pass@4", "1.0000")):
        assert any(name in line and value in line for line in shown.splitlines()), shown


ENV, SUMS, NOWHERE = "assay/GSM8K-v1", "assay/Arithmetic-v1", "http://127.0.0.1:1"
HARBOR = ROOT / "examples" / "harbor"
# Command lines that a person can mend, and words that say how; names in capitals are files.
FAULTS = {
    "missing file": (["score", ENV, "NONE", "--data", "DATA"], "no such file"),
    "missing data": (["score", ENV, "GOOD", "--data", "NONE"], "no such file"),
    "broken line": (["score", ENV, "GOOD", "--data", "BROKEN"], "line 17: not JSON"),
    "missing field": (["score", ENV, "GOOD", "--data", "SHORT"], "line 4: no field 'answer'"),
    "unknown id": (["score", "assay/GSM8k-v1", "GOOD"], "Did you mean assay/GSM8K-v1"),
    "bad gold": (["score", ENV, "GOOD", "--data", "UNREADABLE"], "line 4"),
    "unknown task": (
        ["score", ENV, "BEYOND", "--data", "DATA"],
        "line 1: task must be from 0 to 29, got 99",
    ),
    "no argument": (["score", ENV], "Missing argument"),
    "bad setting": (["score", ENV, "GOOD", "--set", "think"], "--set takes name=value"),
    "unknown setting": (["score", ENV, "GOOD", "--set", "thnk=1"], "takes no 'thnk'"),
    "lonely resume": (["score", ENV, "GOOD", "--data", "DATA", "--resume"], "--resume needs --out"),
    "group of one": (
        ["train", SUMS, "--model", "FOLDER", "--group-size", 1],
        "group_size must be at least 2, got 1",
    ),
    "no model": (["train", SUMS, "--model", "NONE"], "no model directory"),
    "wrong type": (
        ["train", SUMS, "--model", "FOLDER", "--beta", "abc"],
        "--beta must be a valid number, got 'abc'",
    ),
    "no module": (["score", "nomod:me/X-v0", "GOOD"], "there is no module 'nomod': give a file"),
    "no policy": (
        ["eval", SUMS, "-p", "assay.demo:hastyy"],
        "--policy: assay.demo has no 'hastyy'. Did you mean hasty?",
    ),
    "a folder": (["score", ENV, "FOLDER", "--data", "DATA"], "that is a folder: "),
    "no token file": (["serve", SUMS, "--token-file", "NONE"], "NONE: no such file or directory"),
    "no number": (
        ["eval", SUMS, "-p", "f", "--limit", "abc"],
        "unable to parse string as an integer, got 'abc'",
    ),
    "budget below 0": (["audit", "Exact", "--budget=-5"], "or equal to 0, got '-5'"),
    "steps below 0": (["demo", "--steps", -1], "or equal to 0, got '-1'"),
    "option of a verifier": (
        ["diff", "Math", 'Math:{"percent": "valu"}', "GOOD"],
        "error: percent must be one of either, unit, value, got 'valu' (END)",
    ),
    "plan": (
        ["plan", "qwen2.5-0.5b", "--set", "group_size=x"],
        "error: --set group_size must be of type int, got 'x'",
    ),
    "preset": (["presets", "dappo"], "error: no preset is called 'dappo'. Did you mean dapo?"),
    "no text": (["sandbox", "run", "BINARY"], "BINARY is not UTF-8 text"),
    "no text for stdin": (["sandbox", "run", "GOOD", "--stdin", "BINARY"], "is not UTF-8 text"),
    "no program": (["sandbox", "run", "NONE"], "no such file"),
    "no token": (["serve", SUMS, "--host", "0.0.0.0"], "there is no token"),  # noqa: S104
    "unknown limit": (["serve", SUMS, "--limit", "btach=3"], "there is no limit 'btach'"),
    "limit of no number": (["serve", SUMS, "--limit", "batch=x"], "must be a whole number"),
    "limit of nothing": (["serve", SUMS, "--limit", "batch=0"], "must be above 0"),
    "limit above all": (["serve", SUMS, "--limit", "token_share=2"], "most 1"),
    "lonely key": (["serve", SUMS, "--key", "key.pem"], "go together"),
    "proxy of nothing": (["gateway", "--port", 0, "--engine", "proxy"], "needs --server"),
    "gateway of nothing": (["gateway", "--port", 0], "needs --model"),
    "model and server": (
        ["gateway", "--port", 0, "--model", "x", "--server", NOWHERE],
        "goes with --engine vllm",
    ),
    "server without a model": (
        ["gateway", "--port", 0, "--engine", "proxy", "--server", NOWHERE],
        "serves no model",
    ),
    "agent without policy": (["harbor", "run", HARBOR, "--agent", "policy"], "needs --policy"),
    "policy without agent": (["harbor", "run", HARBOR, "--policy", "m:f"], "with --agent policy"),
    "trials into a folder": (
        ["harbor", "run", HARBOR, "--agent", "nop", "-o", HARBOR],
        "is a folder",
    ),
    "unknown harbor task": (["harbor", "run", HARBOR, "--task", "nothing"], "has no task"),
    "no harbor tasks": (["harbor", "check", "NONE"], "holds no task folder"),
    "unknown command": (["scroe"], "Did you mean 'score'"),
    "unknown verifier": (["verifiers", "Mth"], "Did you mean Math"),
    "unknown verifier of diff": (["diff", "mathh", "Exact", "f"], "Did you mean Math"),
    "unknown study": (["family", "run", "dapoo"], "Did you mean dapo"),
}


@pytest.fixture
def files(tmp_path, data):
    """Files that the command lines above name, most of them with a fault."""
    broken = tmp_path / "BROKEN"
    broken.write_text("\n".join([*data.read_text().splitlines()[:16], '{"question": ']))
    (tmp_path / "BINARY").write_bytes(b"\xff")
    (tmp_path / "FOLDER").mkdir()
    return {
        "DATA": data,
        "GOOD": golds(tmp_path / "GOOD"),
        "SHORT": write(tmp_path / "SHORT", [*GSM8K[:3], {"question": "?"}]),
        "UNREADABLE": write(
            tmp_path / "UNREADABLE", [*GSM8K[:3], {"question": "?", "answer": "#### a b"}]
        ),
        "BEYOND": write(tmp_path / "BEYOND", [{"task": 99, "completion": ""}]),
        **{name: tmp_path / name for name in ("NONE", "BROKEN", "BINARY", "FOLDER")},
    }


@pytest.mark.parametrize(("args", "words"), FAULTS.values(), ids=FAULTS)
def test_faults_are_sentences_with_exit_code_2_and_nothing_is_written(
    args, words, run, tmp_path, files, monkeypatch
) -> None:
    (tmp_path / "cwd").mkdir()
    monkeypatch.chdir(tmp_path / "cwd")
    if args[0] == "score" and "--resume" not in args:
        args = [*args, "--out", tmp_path / "cwd" / "out"]
    code, _, shown = run(*(files.get(arg, arg) for arg in args))
    assert code == 2
    assert words in " ".join([*shown.split(), "(END)"]), shown
    assert "Traceback" not in shown
    assert list((tmp_path / "cwd").iterdir()) == []


def test_a_model_directory_without_tokenizer_is_named(run, tmp_path) -> None:
    from assay.grpo import tiny_model

    model = tiny_model(tmp_path / "model")
    for path in model.glob("token*"):
        path.unlink()
    code, _, shown = run("train", "assay/Arithmetic-v1", "--model", model, "--out", tmp_path / "o")
    assert code == 2
    assert "has no tokenizer" in " ".join(shown.split())
    assert not (tmp_path / "o").exists()


def test_an_earlier_result_is_not_overwritten_but_completed(run, tmp_path, data) -> None:
    args = ["score", "assay/GSM8K-v1", golds(tmp_path / "c"), "--data", data, "--out"]
    out = tmp_path / "out.jsonl"
    assert run(*args, out)[0] == 0
    before = out.read_text()
    code, _, shown = run(*args, out)
    assert code == 2
    assert "exists" in shown
    rows = [json.loads(line) for line in before.splitlines()]
    rows[7] |= {"status": "sandbox_error", "score": None, "rewards": {"accuracy": None}}
    write(out, rows)
    assert run(*args, out, "--resume")[0] == 0
    assert out.read_text() == before


def test_verdicts_of_another_environment_are_not_resumed_from(run, tmp_path) -> None:
    rows = [{"task": i, "completion": "5"} for i in range(9)]
    out = tmp_path / "out.jsonl"
    args = ["score", "assay/Arithmetic-v1", write(tmp_path / "c", rows), "--out", out]
    assert run(*args, "--set", "digits=1")[0] == 0
    before = out.read_text()
    for other in (["--set", "digits=2"], ["--set", "think=true", "--set", "digits=1"]):
        code, _, shown = run(*args, *other, "--resume")
        assert code == 2
        assert "nothing to resume" in shown
        assert out.read_text() == before


def test_brackets_in_names_are_shown_as_they_stand(run, tmp_path, data) -> None:
    out = tmp_path / "[b]x[" / "i].jsonl"
    code, shown, _ = run("score", "assay/GSM8K-v1", golds(tmp_path / "c"), "--data", data,
                         "--out", out)  # fmt: skip
    assert code == 0
    assert str(out) in shown


def test_a_lost_verifier_loses_no_verdict(run, tmp_path, data, monkeypatch) -> None:
    from assay.verifiers import Rubric

    judged = Rubric.verify_many
    rows = [{"task": 0, "completion": str(i)} for i in range(300)]

    def dies(self, replies, references):
        if "299" in replies:
            raise MemoryError("no memory left")
        return judged(self, replies, references)

    monkeypatch.setattr(Rubric, "verify_many", dies)
    out = tmp_path / "out.jsonl"
    with pytest.raises(MemoryError):
        run("score", "assay/GSM8K-v1", write(tmp_path / "c", rows), "--data", data, "--out", out)
    assert len(out.read_text().splitlines()) == 256


def test_help_fits_a_screen_with_an_example(run, monkeypatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    commands = [(), *((name,) for name in groups)]
    for path, found in [((), app), *(((name,), group) for name, group in groups.items())]:
        commands += [(*path, c.name or c.callback.__name__) for c in found.registered_commands]
    for command in commands:
        code, shown, _ = run(*command, "-h")
        assert code == 0
        assert len(shown.splitlines()) <= 45, command
        assert f"Example: {' '.join(['assay', *command])} " in shown
    assert "--install-completion" in run("-h")[1]


def test_help_all_has_the_options_that_help_leaves_out(run) -> None:
    rare = {
        "eval": ["--top-p", "--agent-image", "--price-in"],
        "serve": ["--certificate", "--no-access-log", "--drain"],
        "audit": ["--tolerance", "--longest"],
        "gateway": ["--max-turns", "--vllm-executable"],
    }
    for command, flags in rare.items():
        short, whole = run(command, "-h")[1], run(command, "--help-all")[1]
        assert "--help-all" in short
        for flag in flags:
            assert flag not in short
            assert f"{flag} " in whole
    assert "Port; 0 for any free one. [8000]" in run("serve", "--help-all")[1]
    assert "Port. [8000]" in run("serve", "-h")[1]
    assert "─ Agent programs ─" in run("eval", "--help-all")[1]


def test_completion_proposes_what_help_leaves_out() -> None:
    words = {"COMP_WORDS": "assay serve --cert", "COMP_CWORD": "2"}
    script = "import sys\nfrom assay.cli import main\nsys.argv[0] = 'assay'\nmain()"
    done = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, **words, "_ASSAY_COMPLETE": "complete_bash"},
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.stdout.split() == ["--certificate"], done.stderr


def test_report_writes_a_page(run, tmp_path) -> None:
    write(tmp_path / "metrics.jsonl", [{"step": step, "reward": 0.5} for step in range(3)])
    code, shown, _ = run("report", tmp_path)
    assert code == 0
    assert f"Report: {tmp_path / 'report.html'}" in shown
    assert str(tmp_path / "x.html") in run("report", tmp_path, "-o", tmp_path / "x.html")[1]
    code, _, complaint = run("report", tmp_path / "none")
    assert (code, "is no run" in complaint) == (2, True)


def test_settings_help_and_reports_need_no_torch(tmp_path) -> None:
    (tmp_path / "metrics.jsonl").write_text('{"step": 1, "reward/mean": 0.5}\n')
    commands = [["train", "-h"], ["presets", "dapo"], ["report", str(tmp_path)], ["-h"]]
    script = (
        "import sys\nsys.modules['torch'] = sys.modules['transformers'] = None\n"
        "from assay.cli import main\n"
        f"for words in {commands}:\n"
        "    sys.argv = ['assay', *words]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert end.code == 0, words\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "report.html").exists()


def test_missing_packages_are_named_with_the_command_that_installs_them(tmp_path) -> None:
    sums = "assay/Arithmetic-v1"
    commands = {
        "assay serve needs fastapi, .*'.[serve]'": ["serve", sums],
        "assay serve --mcp needs .*'.[serve,mcp]'": ["serve", sums, "--mcp"],
        "assay gateway needs .*'.[serve,train]'": ["gateway", "--model", str(tmp_path)],
        "assay plan needs torch, .*'.[train]'": ["plan", "qwen2.5-0.5b"],
        "as --policy needs torch, .*'.[train]'": ["eval", sums, "-p", str(tmp_path)],
        "as --policy needs openai, .*'.[judge]'": f"eval {sums} -p http://x/v1 --model m".split(),
    }
    script = (
        "import sys\nfor name in ('fastapi', 'mcp', 'torch', 'openai'): sys.modules[name] = None\n"
        "from assay.cli import main\n"
        f"for words in {list(commands.values())}:\n"
        "    sys.argv = ['assay', *words]\n"
        "    try: main()\n"
        "    except SystemExit as end: assert end.code == 2, words\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=120, cwd=tmp_path
    )
    assert done.returncode == 0, done.stderr
    shown = done.stderr.splitlines()
    assert len(shown) == len(commands)
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    for line, expected in zip(shown, commands, strict=True):
        assert re.search(expected.replace("[", r"\["), line), line
        assert line.endswith("]' in a checkout of Assay")
        for extra in line.rpartition("[")[2].partition("]")[0].split(","):
            assert extra in extras["optional-dependencies"]


def test_a_port_in_use_or_out_of_range_is_named(run) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        code, _, shown = run("serve", "assay/Arithmetic-v1", "--port", port)
        assert code == 2
        assert f"port {port} of 127.0.0.1 is in use: give another --port" in shown
    code, _, shown = run("serve", "assay/Arithmetic-v1", "--port", 99999)
    assert code == 2
    assert "65535, got '99999'" in shown


def test_a_result_is_printed_as_json(run, tmp_path, data) -> None:
    code, shown, _ = run(
        "score", "assay/GSM8K-v1", golds(tmp_path / "c.jsonl"), "--data", data, "--json"
    )
    summary = json.loads(shown)
    assert (code, summary["scored"], summary["pass_at"]["1"]["value"]) == (0, 30, 1.0)
    rows = write(tmp_path / "r.jsonl", [{"reference": "1", "completion": "#### 2"}])
    code, shown, _ = run("diff", "Math", "Exact", rows, "--json")
    assert (code, json.loads(shown)["rows"]) == (0, 1)
    kept = tmp_path / "diff.json"
    code, _, _ = run("diff", "Math", "Exact", rows, "--out", kept)
    assert (code, json.loads(kept.read_text())["agree"]) == (0, 1)


def _cpu_seconds_of_children(pid: int) -> float:
    ticks = 0
    for listed in Path(f"/proc/{pid}/task").glob("*/children"):
        with contextlib.suppress(OSError):  # a thread or a child may have ended meanwhile
            for child in listed.read_text().split():
                stat = Path(f"/proc/{child}/stat").read_text().rpartition(")")[2].split()
                ticks += int(stat[11]) + int(stat[12])
    return ticks / os.sysconf("SC_CLK_TCK")


@pytest.mark.slow
def test_ctrl_c_leaves_what_was_judged_in_a_whole_file(tmp_path) -> None:
    slow = r"\boxed{\int_0^1 \sin(x^x+%d) dx}"  # each costs the slow path its time limit
    rows = [{"task": 0, "completion": "I do not know."}] * 256
    rows += [{"task": 0, "completion": slow % i} for i in range(64)]
    out = tmp_path / "out.jsonl"
    (tmp_path / "patient.py").write_text(
        "from assay import Math, Task, environment\n\n"
        '@environment("me/Patient-v0", rubric=Math())\n'
        "def patient(rng):\n"
        '    return Task(f"{rng.integers(9)} + ...", reference=r"\\int_0^1 e^{\\cos(x^x)} dx")\n'
    )
    process = subprocess.Popen(
        [sys.executable, "-m", "assay", "score", "patient:me/Patient-v0",
         write(tmp_path / "c", rows), "--out", out],
        stderr=subprocess.PIPE, stdout=subprocess.DEVNULL, text=True, cwd=tmp_path,
    )  # fmt: skip
    # The first batch needs no worker: it is judged once one has worked beyond its imports.
    for _ in range(1200):
        if _cpu_seconds_of_children(process.pid) > 5:
            break
        time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    try:
        _, shown = process.communicate(timeout=60)
    finally:
        process.kill()
    assert process.returncode == 130, shown
    assert "--resume scores the rest" in " ".join(shown.split())
    assert "Interrupted." in shown
    kept = [json.loads(line) for line in out.read_text().splitlines()]
    assert len(kept) >= 256
    assert all(r["score"] is not None for r in kept)


@pytest.mark.bwrap
class TestSandbox:
    """``assay sandbox``, on the backend that needs no daemon."""

    def test_a_program_runs_and_its_ending_is_shown(self, run, tmp_path) -> None:
        (tmp_path / "p.py").write_text("print(input()[::-1])")
        (tmp_path / "in.txt").write_text("hello\n")
        words = [tmp_path / "p.py", "--stdin", tmp_path / "in.txt", "--backend", "bwrap"]
        code, shown, err = run("sandbox", "run", *words)
        assert (code, shown) == (0, "olleh\n")
        assert err.startswith("[ok, exit code 0; ")
        assert "in bwrap]" in err

    @pytest.mark.parametrize(
        ("program", "words"),
        [
            ("exit(3)", "[runtime_error, exit code 3"),
            ("def", "[compile_error"),
            ("while True: pass", "[timeout"),
        ],
    )
    def test_a_program_that_fails_gives_exit_code_1(self, run, tmp_path, program, words) -> None:
        (tmp_path / "p.py").write_text(program)
        code, _, err = run(
            "sandbox", "run", tmp_path / "p.py", "--cpu", "0.5", "--backend", "bwrap"
        )
        assert code == 1
        assert words in err

    def test_the_language_is_what_the_files_name_says(self, run, tmp_path) -> None:
        (tmp_path / "p.sh").write_text("echo $((6 * 7))")
        assert run("sandbox", "run", tmp_path / "p.sh", "--backend", "bwrap")[:2] == (0, "42\n")
        (tmp_path / "p").write_text("print(6 * 7)")
        assert run("sandbox", "run", tmp_path / "p", "--backend", "bwrap")[:2] == (0, "42\n")
        (tmp_path / "p.txt").write_text("echo $((6 * 7))")
        ended = run("sandbox", "run", tmp_path / "p.txt", "--backend", "bwrap", "--language", "sh")
        assert ended[:2] == (0, "42\n")
        code, _, err = run("sandbox", "run", tmp_path / "p.txt", "--backend", "bwrap")
        assert code == 2
        assert "name its language" in err
        ended = run("sandbox", "run", tmp_path / "p", "--language", "bahs", "--backend", "bwrap")
        assert ended[0] == 2
        assert "did you mean 'bash'" in ended[2]

    def test_the_isolation_is_checked(self, run) -> None:
        code, shown, _ = run("sandbox", "check", "--backend", "bwrap")
        assert code == 0, shown
        assert "no network" in shown
        assert "NO" not in shown.split()
        assert "Programs run in bwrap (asked for), and this sandbox holds." in shown

    @pytest.mark.slow
    def test_every_backend_is_checked_side_by_side(self, run, monkeypatch) -> None:
        monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
        code, shown, _ = run("sandbox", "check", "--all", "--markdown")
        assert code == 0, shown
        header, _, *rows = (
            [c.strip() for c in line.split("|")[1:-1]] for line in shown.splitlines()
        )
        assert header == ["", "docker", "bwrap"]
        cells = {row[0]: row[1:] for row in rows}
        assert cells["no network"] == ["", "interfaces: lo"]
        assert cells["Docker"][0].startswith("**no**")
        code, shown, _ = run("sandbox", "check", "--all", "--json")
        found = [(one["backend"], one["holds"]) for one in json.loads(shown)]
        assert (code, found) == (0, [("none", False), ("bwrap", True)])
        code, _, err = run("sandbox", "check", "--all", "--backend", "docker")
        assert code == 2
        assert "leave out --backend docker" in " ".join(err.split())

    def test_where_there_is_no_sandbox_the_check_says_how_to_get_one(
        self, run, monkeypatch
    ) -> None:
        monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere")
        code, shown, _ = run("sandbox", "check", "--backend", "docker")
        assert code == 1
        assert "Install Docker" in shown
        assert "there is no sandbox" in shown
        code, shown, _ = run("sandbox", "check", "--backend", "docker", "--json")
        found = json.loads(shown)
        assert (code, found["backend"], found["holds"]) == (1, "none", False)


@pytest.mark.docker
def test_the_image_is_built_where_no_registry_answers(run) -> None:
    code, shown, _ = run("sandbox", "build", "--from-host")
    assert code == 0
    assert "Image: sha256:" in shown
    code, _, err = run("sandbox", "build", "--pull", "no-such-registry.invalid/python:3")
    assert code == 2
    assert "cannot pull no-such-registry.invalid/python:3" in " ".join(err.split())
    code, _, err = run("sandbox", "build", "no-such-image", "--from-host")
    assert code == 2
    assert "give one of python, science, shell, toolchains" in " ".join(err.split())


@pytest.mark.bwrap
def test_a_program_may_print_what_the_terminal_cannot_show(tmp_path):
    (tmp_path / "p.py").write_text("print('h\\u00e9')")
    command = [sys.executable, "-m", "assay", "sandbox", "run", "--backend", "bwrap"]
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    done = subprocess.run(
        [*command, tmp_path / "p.py"], capture_output=True, env=environment, timeout=60, check=False
    )
    assert (done.returncode, done.stdout) == (0, b"h\\xe9\n")
