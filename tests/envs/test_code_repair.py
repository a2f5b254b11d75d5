"""Code repair: who sees which tests, what ends an episode, and what it is worth."""

import json

import pytest

from assay.envs import DataError, FunctionPolicy, play
from assay.envs.tools.code_repair import CodeRepair, Submission, sample, submission
from assay.sandbox import Limits, Sandbox, SandboxUnavailable

pytestmark = [pytest.mark.bwrap, pytest.mark.filterwarnings("ignore::UserWarning")]
ROWS = [
    {
        "id": "double",
        "entry_point": "double",
        "description": "Double a number.",
        "buggy_code": "def double(n):\n    return n + 2\n",
        "tests": "assert double(2) == 4\nassert double(0) == 0",
        "hidden_tests": "assert double(3) == 6\nassert double(73_421) == 146_842",
    }
]
HIDDEN = "73_421", "73421", "146_842", "146842"


@pytest.fixture(scope="module")
def box():
    with Sandbox(backend="bwrap", slots=2, limits=Limits(cpu_s=2, memory_mib=128)) as made:
        yield made


@pytest.fixture
def env(box, tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, ROWS)))
    return CodeRepair(path, sandbox=box)


def call(name, /, **arguments) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>"


def test_a_bug_is_found_mended_and_submitted(env) -> None:
    prompt, _ = env.reset(seed=0)
    assert "return n + 2" in prompt
    assert "assert double(0) == 0" in prompt
    said, reward, *_ = env.step(call("run_tests"))
    assert said.startswith("1 of 2 tests passed\n")
    assert reward == 0.0
    assert env.step(call("python", code="from solution import double\ndouble(5)"))[0] == "7\n"
    edit = call("edit_file", path="solution.py", old="n + 2", new="n * 2")
    assert env.step(f"There it is.\n{edit}")[0] == "edited"
    again = call("python", code="print(double(5))\nfrom solution import double\ndouble(5)")
    assert env.step(again)[0] == "7\n10\n"
    assert env.step(call("run_tests"))[0] == "2 of 2 tests passed"
    _, reward, terminated, truncated, info = env.step(call("submit"))
    assert (reward, terminated, truncated, info["status"]) == (1.0, True, False, "correct")
    assert info["rewards"] == {"accuracy": 1.0}


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("I am done.", "the turn makes no call"),
        ("", "the turn makes no call"),
        (call("run_tests") * 2, "2 calls in one turn, at most 1"),
        ("<tool_call>{</tool_call>", "the call cannot be read"),
        (call("rm", path="/"), "there is no tool 'rm'"),
        (call("run_tests", fast=True), "run_tests takes no argument 'fast'"),
        (call("submit", code=3), "code must be a string, got 3"),
        ("<think>" + call("submit") + "</think>", "the turn makes no call"),
    ],
)
def test_a_format_error_ends_the_episode_with_nothing(env, reply, words) -> None:
    env.reset(seed=0)
    env.step(call("edit_file", path="solution.py", old="n + 2", new="n * 2"))  # right, and lost
    _, reward, terminated, truncated, info = env.step(reply)
    assert (reward, terminated, truncated, info["status"]) == (0.0, True, False, "unparseable")
    assert info["reason"].startswith("format error: ")
    assert words in info["reason"]


def test_a_tool_that_fails_is_no_format_error(env) -> None:
    env.reset(seed=0)
    said, _, terminated, *_ = env.step(call("edit_file", path="solution.py", old="zzz", new=""))
    assert said.startswith("error: 'old' must stand in solution.py exactly once")
    assert not terminated


def test_the_last_turn_is_judged_as_the_file_stands(box) -> None:
    fixing = call("write_file", path="solution.py", content=sample("train")[0]["solution"])
    for reply, score in ((fixing, 1.0), (call("list_files"), 0.0)):
        env = CodeRepair(max_turns=2, sandbox=box)
        ((episode,),) = [
            g.episodes for g in play(env, FunctionPolicy(lambda _, r=reply: r), [env.task(0)], 1)
        ]
        assert (episode.truncated, episode.reward, len(episode.turns)) == (True, score, 4)


def test_passing_the_visible_tests_only_is_not_enough(env) -> None:
    env.reset(seed=0)
    cheat = "def double(n):\n    return {2: 4, 0: 0}[n]\n"
    env.step(call("write_file", path="solution.py", content=cheat))
    assert env.step(call("run_tests"))[0] == "2 of 2 tests passed"
    assert env.step(call("submit"))[1] == 0.0


def test_hidden_tests_are_nowhere_to_be_found(env) -> None:
    """Not in prompts, infos or answers, nor in anything that a candidate's process can read."""
    search = (
        "import gc, os, sys\n"
        "def look():\n"
        "    found = [open(f'/proc/self/{f}', 'rb').read() for f in ('cmdline', 'environ')]\n"
        "    found += [repr(o).encode() for o in gc.get_objects() if isinstance(o, (dict, list))\n"
        "              and len(o) < 500 and type(o).__repr__ in (dict.__repr__, list.__repr__)]\n"
        "    for folder, _, names in os.walk('/tmp'):\n"
        "        found += [open(os.path.join(folder, n), 'rb').read() for n in names]\n"
        "    return b' '.join(found)\n"
    )
    marks = "['7' + '3_421', '7' + '3421', '14' + '6_842', '14' + '6842']"
    search += f"print([m in look().decode(errors='replace') for m in {marks}])\n"
    seen = [str(env.reset(seed=0))]
    for reply in (
        call("python", code=search),
        call("write_file", path="solution.py", content=search + "def double(n): return 2 * n"),
        call("run_tests"),
        call("list_files"),
    ):
        *_, info = env.step(reply)
        seen.append(str(info))
    assert "[False, False, False, False]" in info["messages"][3]["content"]
    assert "2 of 2 tests passed" in info["messages"][-3]["content"]
    assert not [mark for mark in HIDDEN for text in seen if mark in text]
    *_, info = env.step(call("submit"))
    assert info["status"] == "correct"
    assert not [mark for mark in HIDDEN if mark in str(info)]


def test_every_bug_of_the_sample_fails_both_kinds_of_tests_and_every_mend_passes(box) -> None:
    rows = [*sample("train"), *sample("test")]
    tasks = [t for split in ("train", "test") for t in CodeRepair(split=split).source.tasks]
    assert len(rows) >= 8
    for row, task in zip(rows, tasks, strict=True):
        for key in ("tests", "hidden_tests"):
            problem = {"tests": row[key], "entry_point": row["entry_point"]}
            assert not box.check_problem(row["buggy_code"], problem).solved, (task.id, key)
            assert box.check_problem(row["solution"], problem).solved, (task.id, key)
        assert row["solution"].strip() not in task.text


def test_a_submission_says_what_it_submits() -> None:
    verifier = Submission()
    program = 'x = "</tool_call> ``` <think>"'
    assert verifier.program(submission(program), {}) == (program, "")
    assert verifier.to_json()["name"] == "Submission"
    for reply in ("", "```python\nx\n```", call("submit"), call("submit", code=" "), "<tool_call>"):
        assert verifier.program(reply, {})[0] is None


def test_a_sandbox_that_is_gone_leaves_no_score(env, monkeypatch) -> None:
    def gone(*_, **__):
        raise SandboxUnavailable("gone")

    env.reset(seed=0)
    monkeypatch.setattr(env.sandbox, "check_problem", gone)
    *_, info = env.step(call("run_tests"))
    assert info["status"] == "sandbox_error"


def test_rows_that_cannot_be_used_stop_the_load(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({**ROWS[0], "hidden_tests": "double(1)"}))
    with pytest.raises(DataError, match=r"row 0: hidden_tests cannot be used: .*assert nothing"):
        CodeRepair(path)
    with pytest.raises(ValueError, match="split must be 'train' or 'test', got 'dev'"):
        CodeRepair(split="dev")
    path.write_text(json.dumps({"description": "x"}))
    with pytest.raises(DataError, match="buggy_code"):
        CodeRepair(path)
