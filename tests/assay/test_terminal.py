"""What a model or a program wrote moves no cursor, sets no title and passes for no line of ours."""

from __future__ import annotations

import json
import logging
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from assay.cli import main
from assay.sandbox.backends.bwrap import bwrap_fault
from assay.serve_cli import _log_to_stderr

pytestmark = pytest.mark.slow

EVIL = (
    "\x1b]0;owned\x07\x1b[2J\x1b[1A\rover\x9b31m\x85\u061c\u200f\u2028\u202etxet\u2066\nFORGED: 1.0"
)
OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]|^\\s*FORGED", re.M
)
MINE = f"""
import warnings
from assay import Task, register
from assay.envs import Rows, TextEnv
from assay.verifiers import Status, Verdict, Verifier

EVIL = {EVIL!r}

class Quotes(Verifier):
    def judge(self, reply, reference):
        return Verdict.wrong(f"read {{reply}}")

class Pays(Quotes):
    def judge(self, reply, reference):
        return Verdict.correct(f"read {{reply}}")

class Faults(Quotes):
    def judge(self, reply, reference):
        return Verdict.fault(Status.VERIFIER_ERROR, f"read {{reply}}")

class Raises(Quotes):
    def judge(self, reply, reference):
        raise ValueError(EVIL)

def env(rubric="Quotes"):
    return TextEnv(Rows([Task("?", "4", id="t")]), globals()[rubric]())

register("mine/Hostile-v0", env)

def says(messages):
    warnings.warn(EVIL)
    return EVIL

def raises(messages):
    raise RuntimeError(EVIL)
"""
Run = Callable[..., tuple[str, str]]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Run:
    """Run a command line in a folder with hostile replies."""
    (tmp_path / "mine_for_terminal.py").write_text(MINE)
    row = {"task": "t", "completion": EVIL, "reference": "4"}
    (tmp_path / "replies.jsonl").write_text(json.dumps(row) + "\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])
    monkeypatch.setattr(sys, "excepthook", sys.excepthook)

    def run_one(*args: str) -> tuple[str, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *args])
        try:
            main()
        except SystemExit:
            pass
        except RuntimeError:
            sys.excepthook(*sys.exc_info())
        return tuple(capsys.readouterr())

    return run_one


HOSTILE = "mine_for_terminal:mine/Hostile-v0"
EVAL = ("eval", HOSTILE, "-p")
COMMANDS = {
    "score": ("score", HOSTILE, "replies.jsonl", "--set", "rubric=Faults"),
    "diff of verifiers": (
        "diff",
        "mine_for_terminal:Quotes",
        "mine_for_terminal:Pays",
        "replies.jsonl",
    ),
    "audit": ("audit", "mine_for_terminal:Raises", "--data", "replies.jsonl", "--budget", "20"),
    "eval": (*EVAL, "mine_for_terminal:says", "-o", "a"),
    "audit as JSON": (
        "audit",
        "mine_for_terminal:Raises",
        *("--data", "replies.jsonl", "--budget", "20", "--json"),
    ),
    "diff of verifiers as JSON": (
        "diff",
        "mine_for_terminal:Quotes",
        "mine_for_terminal:Pays",
        *("replies.jsonl", "--json"),
    ),
    "a policy that raises": (*EVAL, "mine_for_terminal:raises", "-o", "a"),
}


@pytest.mark.filterwarnings("default::UserWarning")
@pytest.mark.parametrize("name", COMMANDS)
def test_a_reply_says_nothing_to_the_terminal(run: Run, name: str) -> None:
    shown = run(*COMMANDS[name])
    assert "owned" in "".join(shown)
    for text in shown:
        ours, _, trace = text.partition("\nTraceback")  # whose message may have lines
        assert not OBEYED.search(ours + trace.replace("\nFORGED", "")), text


@pytest.mark.filterwarnings("default::UserWarning")
def test_runs_are_compared_without_obeying_their_replies(run: Run) -> None:
    shown = run(*EVAL, "mine_for_terminal:says", "-o", "a")
    shown += run(*EVAL, "mine_for_terminal:says", "-o", "b", "--set", "rubric=Pays")
    compared = run("diff", "a", "b")
    assert "owned" in "".join(compared)
    for text in (*shown, *compared):
        assert not OBEYED.search(text), text


@pytest.mark.skipif(bwrap_fault() is not None, reason="needs bubblewrap")
def test_a_programs_output_is_escaped_for_a_terminal_alone(tmp_path: Path) -> None:
    file = tmp_path / "p.py"
    code = f"import sys\nprint({EVIL!r}, end='')\nprint({EVIL!r}, file=sys.stderr)\n"
    file.write_text(f"{code}raise ValueError({EVIL!r})")
    command = [sys.executable, "-m", "assay", "sandbox", "run", "--backend", "bwrap", str(file)]
    piped = subprocess.run(command, capture_output=True, timeout=60, check=False)
    assert piped.stdout.decode() == EVIL  # as it is, for whoever reads it
    terminal, end = pty.openpty()
    subprocess.run(command, stdout=end, stderr=end, timeout=60, check=False)
    os.close(end)
    shown = b""
    try:
        while piece := os.read(terminal, 1 << 16):
            shown += piece
    except OSError:
        pass  # Linux's way to say that nobody holds the other end
    os.close(terminal)
    text = shown.decode().replace("\r\n", "\n")
    assert "owned" in text
    assert not OBEYED.search(text.replace("\nFORGED", "")), text  # lines are the program's own
    assert re.search(r"^\[runtime_error.*FORGED", text, re.M)


def test_a_services_log_obeys_no_client(capsys: pytest.CaptureFixture[str]) -> None:
    log = logging.getLogger("assay.service")
    before = log.handlers[:], log.propagate
    try:
        _log_to_stderr(access=False)
        log.warning("a client said %s", EVIL.replace("\n", ""))
    finally:
        log.handlers[:], log.propagate = before
    shown = capsys.readouterr().err
    assert "owned" in shown
    assert not OBEYED.search(shown)
