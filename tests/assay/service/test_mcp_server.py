"""``assay serve --mcp``, played by the real client."""

import asyncio
import sys

import pytest

pytest.importorskip("mcp", reason="needs the extra mcp")

from mcp import ClientSession, StdioServerParameters, stdio_client
from typer.testing import CliRunner

from assay.cli import app

MODULE = '''
from assay.envs import Rows, Task, TextEnv, register
from assay.envs.tools import ToolEnv, ToolError
from assay.verifiers import Exact, FunctionVerifier

def price(fruit: str) -> int:
    """Look up a price.

    Args:
        fruit: Its name.
    """
    if fruit != "apple":
        raise ToolError("we sell apples only")
    return 3

def shop():
    rows = Rows([Task("What do two apples cost?", "6")])
    return ToolEnv(rows, Exact(), tools=[price], max_turns=4)

def sums():
    return TextEnv(Rows([Task(f"1 + {i}?", str(1 + i)) for i in range(3)]), Exact())

def broken():
    def judge(reply, reference):
        raise OSError("no judge")
    return TextEnv(Rows([Task("?", "1")]), FunctionVerifier(judge))

class Raises(TextEnv):
    def respond(self, state, reply):
        raise ValueError(f"not {state.task.reference}")

def raising():
    return Raises(Rows([Task("?", "secret")]), Exact(), max_turns=2)

for make in (shop, sums, broken, raising):
    register(f"played/{make.__name__}-v0", make)
'''


def played(folder, name, calls):
    """Start the server, and return its tools and the results of the calls."""
    (folder / "mcp_envs.py").write_text(MODULE)
    words = ["-m", "assay", "serve", f"mcp_envs:played/{name}-v0", "--mcp"]
    parameters = StdioServerParameters(command=sys.executable, args=words, cwd=folder)

    async def play():
        async with stdio_client(parameters) as streams, ClientSession(*streams) as session:
            await session.initialize()
            tools = (await session.list_tools()).tools
            return tools, [await session.call_tool(*call) for call in calls]

    return asyncio.run(play())


def text(result):
    return result.content[0].text


def test_a_client_calls_the_environments_tools_and_submits(tmp_path) -> None:
    tools, results = played(
        tmp_path,
        "shop",
        [
            ("price", {"fruit": "apple"}),
            ("reset", {}),
            ("price", {"fruit": "pear"}),
            ("price", {"fruit": "apple"}),
            ("submit", {"answer": "6"}),
            ("submit", {"answer": "6"}),
            ("reset", {"task": 7}),
        ],
    )
    assert [tool.name for tool in tools] == ["reset", "price", "submit"]
    assert tools[1].input_schema["properties"]["fruit"]["type"] == "string"
    early, task, refused, price, end, late, missing = results
    assert early.is_error
    assert "call reset" in text(early)
    assert text(task) == "What do two apples cost?"
    assert text(refused) == "error: we sell apples only"
    assert text(price) == "3"
    assert text(end) == "[the episode is over: reward 1 (correct)]"
    assert end.structured_content == {"reward": 1.0, "status": "correct", "truncated": False}
    assert late.is_error
    assert missing.is_error


def test_a_client_replies_where_there_are_no_tools(tmp_path) -> None:
    tools, results = played(
        tmp_path, "sums", [("reset", {"task": 2}), ("step", {}), ("step", {"reply": "4"})]
    )
    assert [tool.name for tool in tools] == ["reset", "step"]
    assert text(results[0]) == "1 + 2?"
    assert text(results[1]) == "step needs reply, a string"
    assert results[2].structured_content["reward"] == 0.0


def test_a_fault_is_no_reward(tmp_path) -> None:
    _, results = played(tmp_path, "broken", [("reset", {}), ("step", {"reply": "1"})])
    assert results[1].is_error
    assert results[1].structured_content["reward"] is None
    assert "no judge" not in text(results[1])


def test_what_an_environment_raises_is_not_told(tmp_path) -> None:
    """It may quote the known answer."""
    calls = [("reset", {}), ("step", {"reply": "1"}), ("step", {"reply": "1"})]
    _, (_, fault, late) = played(tmp_path, "raising", calls)
    assert text(fault) == "[the episode is over: no reward: the environment raised ValueError]"
    assert fault.structured_content["status"] == "verifier_error"
    assert "call reset" in text(late)


def test_options_without_effect_are_refused() -> None:
    done = CliRunner().invoke(app, ["serve", "assay/Arithmetic-v1", "--mcp", "--port", "9"])
    assert "--port has no effect with --mcp" in str(done.exception)
