"""Attacks on the grading of Harbor tasks, and honest work, in sandboxes of each backend."""

import tomllib
from pathlib import Path

import pytest

from assay.envs.harbor import CommandAgent, HarborEnv, HarborTask, nop, run_trial
from assay.envs.tools.calls import written_call
from assay.sandbox import Sandbox
from assay.sandbox.sessions.bwrap import sessions_fault

TABLE = tomllib.loads(Path(__file__).with_name("harbor_attacks.toml").read_text("utf-8"))
COMPARE = """#!/bin/bash
if diff -q /app/answer /tests/expected.txt; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""
PYTEST = """#!/bin/bash
python3 -m pytest -q /tests/test_outputs.py
if [ $? -eq 0 ]; then echo 1; else echo 0; fi > /logs/verifier/reward.txt
"""


pytestmark = pytest.mark.slow
FAULT = sessions_fault()
BACKENDS = [pytest.param(name, marks=getattr(pytest.mark, name)) for name in ("bwrap", "docker")]
of_each = pytest.mark.parametrize("box", BACKENDS, indirect=True)


def rows(kind: str) -> pytest.MarkDecorator:
    """Give a test the rows of a kind: all in the quicker backend, and those of ``both`` again."""
    whole = BACKENDS[bool(FAULT)]
    found = [
        pytest.param(*one.values, row, marks=one.marks, id=f"{one.values[0]}-{row['name']}")
        for one in BACKENDS
        for row in TABLE[kind]
        if one is whole or row.get("both")
    ]
    return pytest.mark.parametrize(("box", "row"), found, indirect=["box"])


@pytest.fixture(scope="module")
def box(request, shell_image):
    """A sandbox of a backend; Docker builds the images of both."""
    if request.param == "bwrap" and FAULT:
        pytest.skip(FAULT)
    with Sandbox(backend=request.param) as made:
        yield made


def purelib(box) -> str:
    """Return the folder of packages in the image, whose Python may be another than ours."""
    with box.session("assay-shell:latest") as session:
        line = "import sysconfig; print(sysconfig.get_paths()['purelib'], end='')"
        return session.exec(["python3", "-c", line]).text


@pytest.fixture
def task(tmp_path, box):
    """A function that writes a task folder and loads it."""

    def make(tests=None, docker="", toml="") -> HarborTask:
        files = {"expected.txt": "zq17\n", **(tests or {})}
        files.setdefault("test.sh", PYTEST if "test_outputs.py" in files else COMPARE)
        (tmp_path / "environment").mkdir()
        (tmp_path / "tests").mkdir()
        toml = toml.replace("PURELIB", purelib(box)) if "PURELIB" in toml else toml
        (tmp_path / "task.toml").write_text(toml)
        (tmp_path / "instruction.md").write_text("Write `/app/answer`.")
        dockerfile = f"FROM assay-shell:latest\nWORKDIR /app\n{docker}\n"
        (tmp_path / "environment" / "Dockerfile").write_text(dockerfile)
        for name, text in files.items():
            text = text.strip().replace("LONG", f"# {'x' * 70_000}")
            (tmp_path / "tests" / name).parent.mkdir(exist_ok=True)
            (tmp_path / "tests" / name).write_text(f"{text}\n")
        return HarborTask.load(tmp_path)

    return make


@rows("attack")
def test_no_attack_is_paid(box, task, row) -> None:
    made = task(row.get("tests"), row.get("docker", ""), row.get("toml", ""))
    trial = run_trial(made, CommandAgent(TABLE["common"] + row["agent"]), box)
    if row.get("shared"):  # it cannot be held off, and is named
        assert trial.graded.grading == "shared", trial
    else:
        assert (trial.reward, trial.graded.grading) == (0.0, "separate"), trial.to_json()


@rows("honest")
def test_honest_work_is_paid(box, task, row) -> None:
    made = next((r for r in TABLE["attack"] if r["name"] == row.get("same_as")), row)
    built = task(made.get("tests"), made.get("docker", ""), made.get("toml", ""))
    trial = run_trial(built, CommandAgent(row["agent"]), box)
    assert trial.reward == 1.0, trial.graded.log
    assert run_trial(built, nop, box).reward == 0.0


def two_steps(made: HarborTask) -> HarborTask:
    """Return a task of two steps, of which the second brings files to the working folder."""
    for name in ("one", "two"):
        folder = made.folder / "steps" / name
        (folder / "workdir").mkdir(parents=True)
        (folder / "workdir" / "given").write_text("zq17\n")
        (folder / "instruction.md").write_text(f"Do step {name}.")
    (made.folder / "task.toml").write_text("[[steps]]\nname = 'one'\n[[steps]]\nname = 'two'\n")
    return HarborTask.load(made.folder)


SPOILED = (
    "rm -rf /app && ln -s /tmp /app",
    "rm -rf /app && touch /app",
    "mv /bin/sh /bin/true-sh; printf '#!/bin/true-sh\\necho x\\n' > /bin/sh; chmod 755 /bin/sh",
)


@of_each
@pytest.mark.parametrize("spoil", SPOILED)
def test_a_step_that_the_agent_spoils_is_no_fault(box, task, spoil) -> None:
    """Else it could have no score instead of a low one, or end the whole batch."""
    trial = run_trial(two_steps(task()), CommandAgent(spoil), box)
    assert trial.reward == 0.0, trial.to_json()


@pytest.mark.parametrize("box", BACKENDS[bool(FAULT) :][:1], indirect=True)
@pytest.mark.parametrize("spoil", SPOILED[:2])
def test_a_policy_that_spoils_its_next_step_keeps_its_score(box, task, spoil) -> None:
    env = HarborEnv(two_steps(task()).folder, sandbox=box)
    env.reset(seed=0)
    env.step(written_call("bash", {"command": spoil}))
    _, reward, done, *_ = env.step(written_call("submit", {}))
    assert (reward, done) == (0.0, True)
    env.close()


@of_each
def test_tools_have_the_rights_of_the_agents_user(box, task) -> None:
    """Files that it may not read are not read for it, and those of others are not replaced."""
    hidden = (
        "RUN mkdir -m 700 /hidden && echo zq17 > /hidden/x && echo a > /given && chmod 777 /app"
    )
    env = HarborEnv(task(docker=hidden, toml="agent.user = 1000").folder, sandbox=box)
    env.reset(seed=0)

    def call(tool: str, **arguments: object) -> str:
        return env.step(written_call(tool, arguments))[0]

    said = [
        call("read_file", path="/hidden/x"),
        call("write_file", path="/hidden/y", content="1"),
        call("write_file", path="/usr/bin/diff", content="1"),
        call("edit", path="/given", old="a", new="b"),
    ]
    assert all("Permission denied" in text for text in said), said
    assert "zq17" not in "".join(said)
    assert "written" in call("write_file", path="/app/new/run", content="#!/bin/sh\necho 1\n")
    call("bash", command="chmod 700 /app/new/run")
    assert "edited" in call("edit", path="/app/new/run", old="echo 1", new="echo zq17")
    assert "zq17" in call("bash", command="/app/new/run")
    call("bash", command="printf 'caf\\351 one' > /app/latin")
    assert "edited" in call("edit", path="/app/latin", old="one", new="zwei")
    assert "636166e9207a776569" in call("bash", command="od -An -tx1 /app/latin | tr -d ' '")
    env.close()
