"""Tools of a policy: functions of yours, and Python in a sandbox with state between turns."""

import json
import warnings

from assay import Math, Sandbox, Task
from assay.envs import Completion, FunctionPolicy, Rows, play
from assay.envs.tools import FileTools, PythonTool, ToolEnv, ToolError, Workspace
from assay.sandbox import SandboxError

PRICES = {"apple": 3, "pear": 5}


def price(fruit: str) -> int:
    """Look up what a fruit costs.

    Args:
        fruit: Its name, in small letters.
    """
    if fruit not in PRICES:
        raise ToolError(f"we sell no {fruit!r}, only {', '.join(PRICES)}")
    return PRICES[fruit]


def call(name, /, **arguments):
    """Write a call in the form of Hermes and Qwen."""
    return f"<tool_call>{json.dumps({'name': name, 'arguments': arguments})}</tool_call>"


def shopper(messages):
    """Stand in for a model: ask for both prices, then add them up."""
    heard = [m["content"] for m in messages if m["role"] == "tool"]
    if len(heard) < 2:
        return call("price", fruit=("apple", "pear")[len(heard)])
    return rf"\boxed{{{2 * int(heard[0]) + int(heard[1])}}}"


shop = ToolEnv(
    Rows([Task("What do two apples and a pear cost? Box the answer.", reference="11")]),
    Math(),
    tools=[price],
)
(group,) = play(shop, FunctionPolicy(shopper), [shop.task(0)], group_size=1)
for message in group.episodes[0].turns:
    print(f"{message['role']:>9}: {message['content']}")
print("   reward:", group.episodes[0].reward)
assert group.episodes[0].reward == 1.0

files = Workspace({"sales.csv": "fruit,sold\napple,40\npear,2\n"})
try:
    with warnings.catch_warnings(), Sandbox(slots=1) as sandbox:
        warnings.simplefilter("ignore")  # without Docker it says that bubblewrap is used
        desk = ToolEnv(
            Rows([Task("How much fruit was sold?", reference="42")]),
            Math(),
            tools=[FileTools(files), PythonTool(files)],
            sandbox=sandbox,
        )
        state = desk.begin(desk.task(0))
        for code in (
            "import csv\nrows = list(csv.DictReader(open('sales.csv')))",
            "sum(int(row['sold']) for row in rows)",
        ):
            desk.advance([state], [Completion(call("python", code=code))])
        print(
            "   python:", state.turns[-1]["content"].strip() if not state.ended else state.verdict
        )
        assert state.ended or state.turns[-1]["content"] == "42\n"
except SandboxError as error:
    print(f"the Python tool was left out: {error}")
