"""Secrets that a run is given stand in none of its files, in no line of its output, in no repr."""

from __future__ import annotations

import http.server
import json
import pickle
import stat
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
import torch

from assay import TRLSpec
from assay.cli import main
from assay.train_config import TrainConfig
from assay.verifiers import Judge

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

CANARY = "c4n4ry-0f-mine"
URL = f"http://me:{CANARY}@host/"
ID = "mine/Locked-v0"

LOCKED = f'''
from assay import register
from assay.envs import Rows, Task, TextEnv
from assay.verifiers import Verdict, Verifier

class Locked(Verifier):
    """Judges by a service that wants a token."""

    def __init__(self, token="", site=""):
        self.token, self.site = token, site

    def judge(self, reply, reference):
        return Verdict.correct() if reply[:1] <= reference else Verdict.wrong("no")

def locked(split="train", token="", headers=None, site=""):
    if token != {CANARY!r} or site not in ("", {URL!r}):
        raise ValueError(f"401 of {{site}} for {{token}}, {{headers}}")
    first = 0 if split == "train" else 13
    letters = [chr(ord("a") + first + i) for i in range(13)]
    return TextEnv(Rows([Task(f"to {{c}}:", c, id=c) for c in letters]), Locked(token, site))

register("mine/Locked-v0", locked, kwargs={{"headers": {{"X-Mine": {CANARY!r}}}}})
'''

Run = Callable[..., tuple[int, str]]


@pytest.fixture
def run(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> Iterator[Run]:
    """Run ``assay ...`` where the module is; the canary must not be printed."""
    (tmp_path / "assay_test_locked.py").write_text(LOCKED)
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv("COLUMNS", "200")

    def run_one(*args: object) -> tuple[int, str]:
        monkeypatch.setattr(sys, "argv", ["assay", *map(str, args)])
        with pytest.raises(SystemExit) as ended:
            main()
        shown = "".join(capfd.readouterr())
        assert CANARY not in shown
        assert isinstance(ended.value.code, int)
        return ended.value.code, shown

    hook = sys.excepthook
    yield run_one
    sys.excepthook = hook


def refuse_canary(folder: Path) -> None:
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert files
    assert [path for path in files if CANARY.encode() in path.read_bytes()] == []


_GIVEN = (f"token={CANARY}", f"site={URL}", f'headers={{"X": "{CANARY}"}}')
SECRETS = [word for pair in _GIVEN for word in ("--set", pair)]


def training(model: Path, out: Path) -> list[object]:
    steps = ("--steps", 2, "--save-every", 1, "--eval-every", 1, "--prompts", 2, "--group-size", 2)
    return ["--model", model, "--out", out, "--max-new-tokens", 2, *steps, "--allow-overlap"]


def test_training_keeps_no_secret_and_asks_for_it_again(
    run: Run, model: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out"
    flags = training(model, out)
    code, shown = run("train", f"assay_test_locked:{ID}", *SECRETS, *flags)
    assert code == 0, shown
    refuse_canary(out)
    kept = [out / "config.json", out / "run.json", *out.glob("checkpoints/*/state.json")]
    assert len(kept) > 2
    assert {stat.S_IMODE(path.stat().st_mode) for path in kept} == {0o600}

    again = ("train", "--resume", "--out", out, "--steps", 3)
    code, shown = run(*again)
    assert (code, "env_args.token is a secret" in shown) == (2, True)
    assert "give it again with --set" in shown
    code, shown = run(*again, *SECRETS, "--set", "token=other")
    assert (code, "401 of" in shown) == (2, True)
    code, shown = run(*again, *SECRETS)
    assert code == 0, shown
    assert (out / "checkpoints" / "step-000003").is_dir()
    refuse_canary(out)


@pytest.mark.parametrize("kind", ["yaml", "toml", "json"])
def test_a_file_of_settings_may_hold_secrets(
    run: Run, model: Path, tmp_path: Path, kind: str
) -> None:
    settings = {
        "env": f"assay_test_locked:{ID}",
        "model": str(model),
        "env_args": {"token": CANARY, "site": URL},
        **{"steps": 1, "prompts_per_step": 2, "group_size": 2, "max_new_tokens": 2},
        **{"allow_overlap": True, "out_dir": str(tmp_path / "out")},
    }
    path = tmp_path / f"run.{kind}"
    if kind == "toml":
        args = settings.pop("env_args")
        lines = [f"{name} = {json.dumps(value)}" for name, value in settings.items()]
        lines += ["[env_args]", *(f"{name} = {json.dumps(v)}" for name, v in args.items())]
        path.write_text("\n".join(lines))
    else:
        path.write_text(json.dumps(settings))
    code, shown = run("train", "--config", path)
    assert code == 0, shown
    refuse_canary(tmp_path / "out")
    code, shown = run("train", "--config", path, "--print-config")
    assert (code, "token: <redacted>" in shown) == (0, True)
    (tmp_path / "shown.yaml").write_text(shown)
    assert run("train", "--config", tmp_path / "shown.yaml", "--out", tmp_path / "o")[0] == 2
    for broken in (path.read_text()[:-2] + "}}]", path.read_text() + f"\nx = = {CANARY}"):
        path.write_text(broken)
        assert run("train", "--config", path)[0] == 2
    path.write_text(json.dumps([settings | {"token": CANARY}]))
    assert run("train", "--config", path)[0] == 2


def test_an_evaluation_keeps_no_secret_and_asks_for_it_again(run: Run, tmp_path: Path) -> None:
    out = tmp_path / "out"
    (tmp_path / "mine.py").write_text("def a(messages): return 'a'\n")
    command = ("eval", f"assay_test_locked:{ID}", "-p", "mine:a", "--out", out)
    code, shown = run(*command, *SECRETS)
    assert code == 0, shown
    refuse_canary(out)
    assert stat.S_IMODE((out / "run.json").stat().st_mode) == 0o600
    code, shown = run(*command, *SECRETS, "--resume")
    assert code == 0, shown
    code, shown = run("rescore", out)
    assert (
        code,
        "is a secret, which the run does not keep: give it again with --set" in shown,
    ) == (2, True)
    code, shown = run("rescore", out, *SECRETS, "--out", tmp_path / "again")
    assert code == 0, shown
    refuse_canary(tmp_path / "again")


def test_an_audit_names_no_secret(run: Run, tmp_path: Path) -> None:
    options = json.dumps({"token": CANARY, "site": URL})
    report = tmp_path / "audit" / "report.json"
    code, shown = run("audit", f"assay_test_locked:{ID}:{options}", "--out", report)
    assert code in (0, 1), shown
    refuse_canary(report.parent)
    assert run("audit", f"assay_test_locked:{ID}:{options[:-1]}")[0] == 2


class Refusing(http.server.BaseHTTPRequestHandler):
    """Answers 401, and quotes the key."""

    def do_POST(self) -> None:
        body = json.dumps({"error": self.headers["Authorization"]}).encode()
        self.send_response(401)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Log nothing."""


def test_a_key_in_the_environment_is_written_nowhere(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_KEY", CANARY)
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}/v1"
        out = tmp_path / "out"
        options = ("--model", "m", "--api-key-env", "MY_KEY", "--out", out, "--retries", 0)
        code, shown = run("eval", "assay/Arithmetic-v1", "-p", url, *options, "--limit", 2)
        assert (code, "answered 401" in shown) == (2, True)
        refuse_canary(out)
        judge = Judge("m", base_url=url, api_key_env="MY_KEY")
        verdict = judge.verify("a", "b")
        server.shutdown()
    assert verdict.score is None
    assert CANARY not in f"{verdict} {judge!r} {judge.to_json()}"


def test_addresses_with_passwords_are_refused_without_them(run: Run) -> None:
    for place in ("v1", "v1?api_key=1"):
        with pytest.raises(ValueError, match="no key, user or password") as refused:
            Judge("m", base_url=f"{URL}{place}")
        assert CANARY not in str(refused.value)
    code, shown = run("eval", "assay/Arithmetic-v1", "-p", URL, "--model", "m")
    assert (code, "no key, user or password" in shown) == (2, True)
    assert run("eval", "assay/GSM8K-v1", "-p", "mine:a", "--data", URL)[0] == 2


def test_what_holds_settings_shows_no_secret(run: Run) -> None:
    args = {"token": CANARY, "headers": {"X": CANARY}, "site": URL}
    config = TrainConfig(env=ID, model="m", env_args=args)
    __import__("assay_test_locked")
    spec = TRLSpec(ID, env_kwargs=args, eval_kwargs={"password": CANARY})
    reward = spec.reward_funcs[0]
    shown = f"{config!r} {spec!r} {reward!r} {reward.env.rubric!r} {reward.env!r}"
    assert "env_args={'token': '<redacted>', 'headers': '<redacted>'" in shown
    assert CANARY not in shown
    assert pickle.loads(pickle.dumps(spec)).env_kwargs == args  # what it works with is whole
