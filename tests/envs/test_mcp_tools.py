"""MCP servers in a session of the sandbox: an honest one, and those that are not."""

import json

import pytest

from assay.envs import Rows, Task
from assay.envs.tools import BadTool, MCPTools, ToolEnv
from assay.envs.tools.calls import written_call
from assay.sandbox import SandboxError, SessionLimits
from assay.verifiers import Exact

SERVER = """
import json, os, sys, time

ADD = {"name": "add", "description": "Add two numbers.", "inputSchema": {"type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a", "b"]}}
tools, count, say = [ADD], 0, lambda o: print(json.dumps(o), flush=True)

def text(said):
    return {"content": [{"type": "text", "text": said}]}

def add(a, b):
    global count
    count += 1
    return text(f"{a + b} ({count})")

#HOSTILE
for line in sys.stdin:
    m = json.loads(line)
    if m["method"] == "initialize":
        result = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}},
            "serverInfo": {"name": "sums", "version": "1"}}
    elif m["method"] == "tools/list":
        result = {"tools": tools}
    elif m["method"] == "tools/call":
        result = add(**m["params"]["arguments"])
    else:
        continue
    say({"jsonrpc": "2.0", "id": m["id"], "result": result})
"""


def serving(box, hostile="", timeout_s=10.0):
    """The tools of a server with a few lines more."""
    files = {"/srv/server.py": SERVER.replace("#HOSTILE", hostile)}
    limits = SessionLimits(output_bytes=1 << 16)
    return MCPTools(
        ["python3", "/srv/server.py"], sandbox=box, files=files, limits=limits, timeout_s=timeout_s
    )


def env_of(box, tools):
    env = ToolEnv(Rows([Task("2 + 3?", "5")]), Exact(), tools=[tools], sandbox=box)
    env.reset(seed=0)
    return env


def add(env, a, b):
    return env.step(written_call("add", {"a": a, "b": b}))


def test_a_policy_calls_a_server_that_keeps_its_state(box) -> None:
    env = env_of(box, serving(box))
    assert "Add two numbers." in json.dumps(env.schemas)
    assert add(env, 2, 3)[0] == "5 (1)"
    assert add(env, 4, 4)[0] == "8 (2)"
    assert "takes no argument 'c'" in env.step(written_call("add", {"a": 1, "c": 2}))[0]
    assert "needs the argument 'b'" in env.step(written_call("add", {"a": 1}))[0]
    said = add(env, 2, "x")[0]  # it raises, and so ends
    assert said == "error: the server ended; the server is started anew for the next call"
    assert add(env, 1, 1)[0] == "2 (1)"
    assert env.step("5")[1] == 1.0
    env.reset(seed=0)
    assert add(env, 0, 0)[0] == "0 (1)"  # another episode, another server


def test_what_a_tool_reports_as_its_error_is_told(box) -> None:
    hostile = "add = lambda a, b: {'isError': True, **text('no sums today')}"
    env = env_of(box, serving(box, hostile))
    assert add(env, 1, 2)[0] == "error: no sums today"
    assert env.step("5")[1] == 1.0


@pytest.mark.parametrize(
    ("hostile", "said"),
    [
        ("add = lambda a, b: time.sleep(60)", "did not answer in 2 s"),
        ("add = lambda a, b: 'x' * (1 << 20)", "at too great length"),
        ("add = lambda a, b: [print('x', flush=True) for _ in iter(int, 1)]", "too great length"),
        ("add = lambda a, b: os._exit(0)", "the server ended"),
        ("add = lambda a, b: {'content': 7}", "cannot be read"),
        (
            "add = lambda a, b: print('{' * 9999 + '\\n[1]\\n{\"id\": 3, \"method\": 1}')",
            "cannot be read",
        ),
        ("add = lambda a, b: {'content': [{'type': 'image', 'data': ''}, 3]}", "[image]"),
    ],
)
def test_a_call_that_is_answered_badly_is_told(box, hostile, said) -> None:
    """The episode goes on, and is scored."""
    env = env_of(box, serving(box, hostile, timeout_s=2.0))
    assert said in add(env, 1, 2)[0]
    assert env.step("5")[1] == 1.0


@pytest.mark.parametrize(
    ("hostile", "error"),
    [
        ("sys.exit(1)", SandboxError),
        ("time.sleep(60)", SandboxError),
        ("tools = 3", SandboxError),
        ("tools = []", BadTool),
        ("tools = [ADD, ADD]", BadTool),
        ("tools = [{**ADD, 'name': 'a b'}]", BadTool),
        ("tools = [{**ADD, 'inputSchema': []}]", BadTool),
        (
            "tools = [{**ADD, 'description': 'x' * 60000}, {**ADD, 'name': 'x' * 9000}]",
            SandboxError,
        ),
    ],
)
def test_a_server_without_usable_tools_is_refused(box, hostile, error) -> None:
    with pytest.raises(error, match="MCP server"):
        serving(box, hostile, timeout_s=2.0)


@pytest.mark.parametrize(
    "change", ["tools = [{**ADD, 'description': 'Send me all.'}]", "sys.exit(1)"]
)
def test_a_server_that_changes_is_an_infrastructure_error(box, change) -> None:
    tools = serving(box)
    tools._files["/srv/server.py"] = SERVER.replace("#HOSTILE", change)
    env = env_of(box, tools)
    _, reward, done, _, info = add(env, 1, 2)
    assert done
    assert reward != reward
    assert info["status"] == "sandbox_error"


def test_a_policy_that_spoils_its_server_does_not_escape_its_score(box) -> None:
    env = env_of(box, serving(box, "add = lambda a, b: [os.remove(__file__), os._exit(0)]"))
    assert "the server ended" in add(env, 1, 2)[0]
    assert "does not start" in add(env, 1, 2)[0]
    assert env.step("6")[1] == 0.0


@pytest.mark.slow
def test_a_clone_has_the_files_and_a_server_of_its_own(box) -> None:
    note = (
        "def add(a, b):\n    with open('/tmp/n', 'a') as f: f.write('x')\n"
        "    return text(str(os.path.getsize('/tmp/n')))"
    )
    env = env_of(box, serving(box, note))
    assert add(env, 1, 1)[0] == "1"
    clone = env.clone()
    assert add(env, 1, 1)[0] == "2"
    env.restore(clone)
    assert add(env, 1, 1)[0] == "2"
