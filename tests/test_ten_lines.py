"""The README's ten lines, and no other code, are an environment for everything.

They are taken out of the README itself and put into a module; each test is one of its uses.
"""

import importlib
import json
import re
import sys
from pathlib import Path

import gymnasium
import pytest

from assay import TRLSpec, make, make_group, rollout
from assay.cli import main
from assay.envs import FunctionPolicy, GroupVectorEnv, TextEnv

ROOT = Path(__file__).parent.parent
ID, MODULE = "me/Halves-v0", "ten_lines_of_the_readme"
RIGHT = r"\boxed{%s}"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the module in it and nothing else."""
    (block,) = re.findall(
        r"^## A task in ten lines\n+```python\n(.*?)^```", (ROOT / "README.md").read_text(),
        re.S | re.M,
    )  # fmt: skip
    folder = tmp_path_factory.mktemp("ten_lines")
    (folder / f"{MODULE}.py").write_text(block)
    sys.path.insert(0, str(folder))
    importlib.import_module(MODULE)
    yield folder
    sys.path.remove(str(folder))


def test_it_is_a_gymnasium_id(folder) -> None:
    env = gymnasium.make(f"{MODULE}:{ID}")
    assert isinstance(env.unwrapped, TextEnv)
    question, _ = env.reset(seed=0)
    _, reward, terminated, truncated, info = env.step(RIGHT % halved(question))
    assert (reward, terminated, truncated, info["status"]) == (1.0, True, False, "correct")


def test_it_is_a_grouped_vector_environment(folder) -> None:
    env = gymnasium.make_vec(ID, num_envs=6, group_size=3)
    assert isinstance(env, GroupVectorEnv)
    questions, _ = env.reset(seed=0)
    assert len(set(questions)) == 2
    replies = ["none", "\\boxed{-1}", RIGHT % halved(questions[0])]
    _, rewards, *_ = env.step([*replies, "", "", RIGHT % halved(questions[3])])
    assert list(rewards) == [0, 0, 1, 0, 0, 1]
    assert [len(group.episodes) for group in env.groups] == [3, 3]
    assert make_group(ID, prompts=2, group_size=4).num_envs == 8


def test_it_is_rolled_out_with_any_policy(folder) -> None:
    policy = FunctionPolicy(lambda messages: RIGHT % halved(messages[-1]["content"]))
    groups = rollout(make(ID), policy, groups=3, group_size=2)
    assert [e.verdict.score for g in groups for e in g.episodes] == [1.0] * 6


def test_it_is_a_data_set(folder) -> None:
    pytest.importorskip("datasets")
    rows = TRLSpec(ID, size=5).train_dataset
    assert len(rows) == 5
    assert rows[0]["prompt"][0]["content"].startswith("What is half of ")
    other = TRLSpec(ID, size=5, eval_size=5).eval_dataset
    assert not {r["prompt"][0]["content"] for r in rows} & {
        r["prompt"][0]["content"] for r in other
    }


class TestCommandLine:
    """``assay score`` and ``assay audit`` by ``module:id``, in the module's folder."""

    @pytest.fixture
    def run(self, folder, capsys, monkeypatch):
        monkeypatch.chdir(folder)
        monkeypatch.setenv("COLUMNS", "1000")

        def run_one(*args):
            monkeypatch.setattr(sys, "argv", ["assay", *map(str, args)])
            with pytest.raises(SystemExit) as ended:
                main()
            shown = capsys.readouterr()
            return ended.value.code, shown.out + shown.err

        return run_one

    def test_completions_are_scored(self, run, tmp_path) -> None:
        env = make(ID)
        replies = [RIGHT % env.task(i).reference if i % 2 else "nothing" for i in range(10)]
        rows = [{"task": i, "completion": reply} for i, reply in enumerate(replies)]
        (tmp_path / "c.jsonl").write_text("\n".join(map(json.dumps, rows)))
        code, shown = run("score", f"{MODULE}:{ID}", tmp_path / "c.jsonl")
        assert code == 0, shown
        assert "0.5000" in shown

    def test_rewards_are_audited(self, run) -> None:
        code, shown = run(
            "audit", f"{MODULE}:{ID}", "--check", "null", "--check", "splits", "--tasks", 4
        )
        assert code == 0, shown
        assert "2 hold, 0 fail" in shown

    def test_it_is_listed(self, run) -> None:
        code, shown = run("list")
        assert code == 0
        row = next(line for line in shown.splitlines() if ID in line)
        assert "Halve a" in row
        assert MODULE[:12] in row


def halved(question):
    return int(question.removeprefix("What is half of ").partition("?")[0]) / 2
