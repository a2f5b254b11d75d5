"""The real mini-swe-agent on a Harbor task, with a scripted model behind OpenAI's route.

``ASSAY_MINI_SWE_PYTHON`` names an interpreter with ``pip install mini-swe-agent assay``.
"""

import json
import os
import subprocess
from pathlib import Path

import pytest

PYTHON = os.environ.get("ASSAY_MINI_SWE_PYTHON")
TASK = Path(__file__).parents[3] / "examples" / "harbor" / "text-top-words"
SOLVE = "printf 'the 6\\nfox 5\\na 4\\nhen 4\\nand 2\\n' > top.txt"
DONE = "echo COMPLETE_TASK_AND_SUBMIT_FINAL_OUTPUT"
SCRIPT = """
import sys
from assay.adapters.mini_swe_agent import MiniSWEAgent
from assay.envs.harbor import load_tasks, run_trial
from assay.sandbox import Sandbox

(task,) = load_tasks(sys.argv[1])
agent = MiniSWEAgent("openai/scripted", base_url=sys.argv[2], api_key="none")
with Sandbox(backend="docker") as box:
    trial = run_trial(task, agent, box, name="mini-swe-agent")
print(trial.agent_log, file=sys.stderr)
print(trial.reward)
"""

pytestmark = pytest.mark.skipif(
    PYTHON is None, reason="ASSAY_MINI_SWE_PYTHON names no interpreter with mini-swe-agent"
)


@pytest.fixture
def scripted(serving):
    """A server whose model calls its tool with one command after the other; its address."""
    commands: list[str] = []

    def answer(_, asked):
        turn = sum(m["role"] == "assistant" for m in asked["messages"])
        function = {"name": "bash", "arguments": json.dumps({"command": commands[turn]})}
        call = {"id": f"call{turn}", "type": "function", "function": function}
        message = {"role": "assistant", "content": "So.", "tool_calls": [call]}
        choice = {"index": 0, "finish_reason": "tool_calls", "message": message}
        usage = {"prompt_tokens": 1, "completion_tokens": 1, "total_tokens": 2}
        about = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}
        return 200, {**about, "choices": [choice], "usage": usage}

    with serving(answer) as url:
        yield f"{url}/v1", commands


@pytest.mark.slow
@pytest.mark.parametrize(
    ("solve", "reward"), [(SOLVE, "1.0"), ("exit 3", "0.0"), ("echo \0", "0.0")]
)
def test_it_works_in_the_container_and_is_graded(
    scripted, shell_image, tmp_path, solve, reward
) -> None:
    url, commands = scripted
    commands += ["ls", solve, DONE]
    home = {"MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": str(tmp_path)}
    done = subprocess.run(
        [PYTHON, "-c", SCRIPT, TASK, url],
        env={**os.environ, **home, "NO_PROXY": "127.0.0.1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[-1] == reward
    assert "story.txt" in done.stderr  # what ls printed in the container
    assert "[Submitted]" in done.stderr
