"""Programs in sessions of the sandbox: they reach their gateway, and nothing else."""

from __future__ import annotations

import asyncio
import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")

from assay.envs import Episode, Rows, Task, TextEnv
from assay.envs.harbor import HarborEnv
from assay.gateway import AgentEnv, GatewayConfig
from assay.gateway.engine import Sampled
from assay.gateway.transformers_engine import TransformersEngine
from assay.sandbox import Sandbox, SessionLimits
from assay.sandbox.backends.docker import connect
from assay.sandbox.sessions import network
from assay.verifiers import FunctionVerifier, Status, Verdict

LIMITS = SessionLimits(memory_mib=192, pids=64, disk_mib=64)
PROGRAM = """
url, key = os.environ["OPENAI_BASE_URL"], os.environ["OPENAI_API_KEY"]
def note(name, fails):
    try:
        noted[name] = str(fails())
    except Exception as error:
        noted[name] = type(error).__name__
kind, noted = sys.stdin.read(), {}
assert kind == sys.argv[1] == json.load(open("task.json"))["prompt"][0]["content"]
if kind != "silent":
    messages = [{"role": "user", "content": kind}]
    messages += [ask(messages), {"role": "user", "content": "on"}]
    ask(messages)
if kind == "memory":
    b"x" * (1 << 30)
if kind == "killed":
    os.kill(os.getpid(), signal.SIGKILL)
while kind in ("forever", "lost"):
    time.sleep(1)
if kind == "disk":
    with open("large", "wb") as file:
        while True:
            file.write(b"x" * (1 << 20))
            file.flush()
if kind == "attack":
    server = open("helper.txt").read()
    note("gateway itself", lambda: socket.create_connection(("127.0.0.1", int(server)), 2))
    note("internet", lambda: socket.create_connection(("1.1.1.1", 53), 2))
    note("host", lambda: socket.create_connection(("172.17.0.1", int(server)), 2))
    note("name", lambda: socket.getaddrinfo("pypi.org", 443))
    note("devices", lambda: sorted(n for _, n in socket.if_nameindex()))
    note("other key", lambda: ask([{"role": "user", "content": "?"}], "assay-" + "x" * 32))
    root = url.removesuffix("/v1")
    for path in ("/episodes", "/e/x/../../episodes/" + key, "/e/%2e%2e/episodes", "/docs"):
        note(path[:10], lambda: urllib.request.urlopen(root + path).status)
    note("open", lambda: urllib.request.urlopen(root + "/episodes", b"").status)
subprocess.Popen(["sleep", "1000"])
open("answer.txt", "w").write(json.dumps(noted))
sys.exit(3 if kind == "fails" else 0)
"""


def tasks(*prompts: str) -> list[Task]:
    return [Task(prompt, "x", id=prompt) for prompt in prompts]


@pytest.fixture
def program(written) -> Path:
    return written(PROGRAM)


@pytest.fixture
def engine(loaded) -> Iterator[TransformersEngine]:
    made = TransformersEngine(*loaded, name="tiny")
    yield made
    asyncio.run(made.close())


def agent_of(box: Sandbox, asked: list[Task], program: Path, judge=None, **more: Any) -> AgentEnv:
    rubric = FunctionVerifier(lambda reply, reference: float(bool(reply)))
    return AgentEnv(
        TextEnv(Rows(asked), rubric),
        ["python3", "program.py", "{prompt}"],
        **{"sandbox": box, "files": [program], "limits": LIMITS, "judge": judge, **more},
    )


@pytest.mark.slow
def test_how_a_program_ends_decides_whose_fault_it_is(box, program, engine) -> None:
    expected = {
        "sound": Status.CORRECT,
        "memory": Status.MEMORY,
        "killed": Status.RUNTIME_ERROR,  # by itself: nobody else can send it a signal
        "forever": Status.TIMEOUT,
        "disk": Status.BROKE_SANDBOX,
        "fails": Status.RUNTIME_ERROR,
        "silent": Status.VERIFIER_ERROR,
    }
    asked = tasks(*expected)
    agent = agent_of(box, asked, program, answer_file="answer.txt", time_s=6, at_once=4)
    groups = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=4))
    episodes = {g.task.id: g.episodes[0] for g in groups}
    found = {name: e.status for name, e in episodes.items()}
    if found["disk"] is Status.RUNTIME_ERROR:  # writing failed before the session was ended
        expected["disk"] = Status.RUNTIME_ERROR
    assert found == expected
    assert [e.reward for e in episodes.values()] == [1, 0, 0, 0, 0, 0, None]
    for name, episode in episodes.items():
        assert sum(s.author == "model" for s in episode.spans) == (0 if name == "silent" else 2)
        assert Episode.from_json(episode.to_json()) == episode


def test_it_reaches_the_gateway_alone_and_its_session_can_be_judged(box, program, engine) -> None:
    """The judge sees the files, and no process of the program's."""
    asked = tasks("attack")
    seen: dict[str, Any] = {}

    def judge(session, task, message) -> Verdict:
        seen.update(json.loads(session.get("/episode/answer.txt")))
        alive = session.exec("cat /proc/[0-9]*/comm").text
        return Verdict.wrong("", score=0.25) if "sleep" not in alive else Verdict.wrong(alive)

    helper = program.parent / "helper.txt"
    helper.write_text("1")
    agent = agent_of(box, asked, program, judge, files=[program, helper])
    started = agent._started

    def start(url, session, task):
        helper.write_text(url.rpartition(":")[2])  # where the gateway is, on this machine
        return started(url, session, task)

    agent._started = start
    (group,) = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=4))
    assert group.rewards == (0.25,), group.episodes[0].verdict
    assert seen.pop("devices") in ("['lo']", "['lo', 'sit0']", "['lo', 'tunl0']")
    assert seen.pop("gateway itself") == "ConnectionRefusedError"
    assert seen.pop("name") == "gaierror"
    assert set(seen.values()) <= {"OSError", "HTTPError", "ConnectionRefusedError"}, seen
    assert len(seen) == 8


def test_a_reply_may_take_longer_than_a_connection(box, program, loaded, monkeypatch) -> None:
    monkeypatch.setattr(network, "_CONNECT_S", 0.5)

    class Slow:
        name, tokenizer, longest = "slow", loaded[1], None

        async def sample(self, request):
            await asyncio.sleep(1.5 if len(request.prompt) < 12 else 0)
            return Sampled([5], [-1.0], "stop")

        async def close(self) -> None:
            pass

    asked = tasks("sound")
    (group,) = agent_of(box, asked, program, time_s=10).play(Slow(), asked, 1)
    assert group.episodes[0].reward is not None, group.episodes[0].verdict


HARBOR = Path(__file__).parents[3] / "examples" / "harbor"
SOLVE = """
assert sys.stdin.read() == sys.argv[1] and "submit" not in sys.argv[1], sys.argv
ask([{"role": "user", "content": sys.argv[1]}], max_tokens=4)
if len(sys.argv) > 2:
    open("/app/top.txt", "w").write("the 6\\nfox 5\\na 4\\nhen 4\\nand 2\\n")
"""


@pytest.mark.parametrize("solved", [True, False])
def test_a_harbor_task_is_played_in_its_container_and_judged_by_its_tests(
    box, engine, shell_image, written, solved: bool
) -> None:
    if box.backend != "docker":
        pytest.skip("a task folder's image is built by a daemon")
    env = HarborEnv(HARBOR / "text-top-words")
    words = ["python3", "program.py", "{prompt}", *["now"] * solved]
    agent = AgentEnv(env, words, sandbox=box, files=[written(SOLVE)])
    (group,) = agent.play(engine, [env.task(0)], 1, config=GatewayConfig(max_tokens=4))
    assert group.rewards == (float(solved),), group.episodes[0].verdict
    assert [s.author for s in group.episodes[0].spans] == ["environment", "model"]


def test_a_harbor_task_has_a_container_of_its_own(box) -> None:
    env = HarborEnv(HARBOR / "text-top-words")
    with pytest.raises(ValueError, match="of its own"):
        AgentEnv(env, ["true"], sandbox=box, limits=LIMITS)
    with pytest.raises(ValueError, match="of its own"):
        AgentEnv(env, ["true"], unsafe=True)


def test_a_harbor_task_with_hosts_of_its_own_is_refused(box, tmp_path) -> None:
    shutil.copytree(HARBOR / "text-top-words", tmp_path, dirs_exist_ok=True)
    settings = (tmp_path / "task.toml").read_text()
    hosts = 'network_mode = "allowlist"\nallowed_hosts = ["pypi.org"]'
    (tmp_path / "task.toml").write_text(settings.replace('network_mode = "no-network"', hosts))
    with pytest.raises(ValueError, match="'allowlist' of assay/text-top-words cannot be held"):
        AgentEnv(HarborEnv(tmp_path), ["true"], sandbox=box)


def test_a_lost_container_is_no_score(box, program, engine, monkeypatch) -> None:
    if box.backend != "docker":
        pytest.skip("only a daemon's containers are killed from outside")
    opened: list[Any] = []
    session, sample, asked = box.session, engine.sample, tasks("lost")

    def keep(*given: Any, **more: Any) -> Any:
        opened.append(session(*given, **more))
        return opened[-1]

    async def then_kill(request):
        if len(request.prompt) > 12:  # the second turn
            client = connect()
            client.kill(opened[0]._place._id)
            client.close()
        return await sample(request)

    monkeypatch.setattr(box, "session", keep)
    engine.sample = then_kill
    agent = agent_of(box, asked, program, time_s=60)
    (group,) = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=4))
    assert group.episodes[0].status is Status.SANDBOX_ERROR
    assert group.rewards == (None,)
