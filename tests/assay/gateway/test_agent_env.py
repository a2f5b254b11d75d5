"""Programs play tasks: sound ones, and all that can go wrong with one."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")

from assay.envs import Episode, Rows, Task, TextEnv
from assay.gateway.agent_env import AgentEnv
from assay.gateway.engine import EngineError, Sampled
from assay.gateway.episodes import GatewayConfig
from assay.gateway.transformers_engine import TransformersEngine
from assay.verifiers import FunctionVerifier, Status


def tasks(*prompts: str) -> list[Task]:
    return [Task(prompt, "x", id=prompt) for prompt in prompts]


def env_of(found: list[Task], judge=lambda reply, reference: float(bool(reply))) -> TextEnv:
    return TextEnv(Rows(found), FunctionVerifier(judge))


@pytest.fixture
def engine(loaded) -> Iterator[TransformersEngine]:
    made = TransformersEngine(*loaded, name="tiny")
    yield made
    asyncio.run(made.close())


@pytest.mark.slow
def test_a_program_that_fails_ends_its_own_episode_alone(program, engine) -> None:
    """Twenty at once, with one of each kind of failure among them."""
    odd = ["killed 0", "forever 0", "garbage 0", "fails 0", "silent 0"]
    sound = [f"sound {i}" for i in range(15)]
    asked = tasks(*sound[:7], *odd, *sound[7:])
    agent = AgentEnv(
        env_of(asked), program, unsafe=True, answer_file="answer.txt", time_s=15, at_once=20
    )
    groups = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=6))
    by_task = {g.task.id: g.episodes[0] for g in groups}
    assert [g.task.id for g in groups] == [t.id for t in asked]
    for name in sound:
        assert by_task[name].reward == 1
        assert sum(s.author == "model" for s in by_task[name].spans) == 3
    assert {name: by_task[name].status for name in odd} == {
        "killed 0": Status.SANDBOX_ERROR,
        "forever 0": Status.TIMEOUT,
        "garbage 0": Status.VERIFIER_ERROR,
        "fails 0": Status.RUNTIME_ERROR,
        "silent 0": Status.VERIFIER_ERROR,
    }
    assert [by_task[name].reward for name in odd] == [None, 0, None, 0, None]
    assert "it broke" in by_task["fails 0"].verdict.reason
    for episode in by_task.values():
        assert Episode.from_json(episode.to_json()) == episode


def test_episodes_of_a_group_differ_and_repeat_with_the_seed(program, engine) -> None:
    asked = tasks("sound 1")
    agent = AgentEnv(env_of(asked), program, unsafe=True)

    def play(seed: int) -> list[Any]:
        (group,) = agent.play(engine, asked, 4, seed=seed, config=GatewayConfig(max_tokens=6))
        return [[s.ids for s in e.spans] for e in group.episodes]

    first = play(0)
    assert len({str(spans) for spans in first}) == 4
    assert play(0) == first
    assert play(1) != first


@pytest.mark.parametrize("fault", ["raises", "hangs"])
def test_a_fault_of_the_engine_is_no_score(program, engine, fault: str) -> None:
    async def broken(request):
        if fault == "hangs":
            await asyncio.sleep(60)
        raise EngineError("the server is gone")

    engine.sample = broken
    asked = tasks("sound 1")
    agent = AgentEnv(env_of(asked), program, unsafe=True)
    (group,) = agent.play(engine, asked, 2, config=GatewayConfig(timeout_s=0.5))
    assert [e.status for e in group.episodes] == [Status.VERIFIER_ERROR] * 2
    assert group.rewards == (None, None)
    assert "the model gave no reply" in group.episodes[0].verdict.reason


def test_a_program_that_runs_out_of_turns_is_judged_as_it_stands(program, engine) -> None:
    asked = tasks("sound 1")
    agent = AgentEnv(env_of(asked, lambda reply, reference: 0.5), program, unsafe=True)
    (group,) = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=2, max_turns=2))
    (episode,) = group.episodes
    assert (episode.truncated, episode.reward) == (True, 0.5)


def test_nothing_of_a_program_is_left(program, engine, tmp_path: Path) -> None:
    """Neither children that it left behind, nor its directory."""
    note = tmp_path / "note"
    program[2:] = ["{prompt}"]
    Path(program[1]).write_text(
        Path(program[1]).read_text()
        + f"""
import subprocess
child = subprocess.Popen(["sleep", "600"])
open({str(note)!r}, "w").write(f"{{child.pid}} {{os.getcwd()}}")
"""
    )
    asked = tasks("sound 1")
    AgentEnv(env_of(asked), program, unsafe=True).play(
        engine, asked, 1, config=GatewayConfig(max_tokens=2)
    )
    pid, folder = note.read_text().split()
    assert not os.path.exists(folder)
    for _ in range(100):
        state = Path(f"/proc/{pid}/stat")
        if not state.exists() or state.read_text().split(")")[1].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("a child of the program still runs")


def test_an_answer_file_is_never_a_link_out(program, engine, tmp_path: Path) -> None:
    secret = tmp_path / "secret"
    secret.write_text("secret")
    path = Path(program[1])
    path.write_text(
        path.read_text().replace(
            'open("answer.txt", "w")', f"os.symlink({str(secret)!r}, 'answer.txt') #"
        )
    )
    asked = tasks("sound 1")
    agent = AgentEnv(
        env_of(asked),
        program,
        unsafe=True,
        answer_file="answer.txt",
    )
    (group,) = agent.play(engine, asked, 1, config=GatewayConfig(max_tokens=2))
    assert group.rewards == (0,)


def test_it_must_be_vouched_for_and_can_be_missing(engine) -> None:
    asked = tasks("sound 1")
    with pytest.raises(ValueError, match="unsafe=True"):
        AgentEnv(env_of(asked), ["true"])
    with pytest.raises(ValueError, match="are of a sandbox"):
        AgentEnv(env_of(asked), ["true"], unsafe=True, image="x")
    with pytest.raises(ValueError, match="there is no /x"):
        AgentEnv(env_of(asked), ["true"], unsafe=True, files=["/x"])
    with pytest.raises(ValueError, match="list of words"):
        AgentEnv(env_of(asked), "true", unsafe=True)
    (group,) = AgentEnv(env_of(asked), ["/there/is/none"], unsafe=True).play(engine, asked, 1)
    assert group.episodes[0].status is Status.VERIFIER_ERROR
    assert "cannot be started" in group.episodes[0].verdict.reason


def test_a_loop_with_the_openai_sdk_needs_no_change(engine, by_sdk) -> None:
    pytest.importorskip("openai")
    asked = tasks("1+1=")
    agent = AgentEnv(env_of(asked), by_sdk, unsafe=True)
    (group,) = agent.play(engine, asked, 2, config=GatewayConfig(max_tokens=6))
    for episode in group.episodes:
        assert [s.author for s in episode.spans] == ["environment", "model"] * 2
        assert not episode.branches
        assert episode.turns[0]["content"] == "1+1="


def test_a_reply_sampled_for_a_program_that_is_gone_is_dropped(program, loaded) -> None:
    class Late:
        name, tokenizer, longest = "late", loaded[1], None

        async def sample(self, request):
            await asyncio.sleep(0.2)
            return Sampled([5], [-1.0], "stop")

        async def close(self) -> None:
            pass

    Path(program[1]).write_text(
        Path(program[1])
        .read_text()
        .replace(
            "for turn",
            "import threading\nthreading.Thread(target=ask, args=[messages]"
            ", daemon=True).start(); time.sleep(0.1); os._exit(0)\nfor turn",
        )
    )
    asked = tasks("sound 1")
    (group,) = AgentEnv(env_of(asked), program, unsafe=True).play(Late(), asked, 1)
    assert group.episodes[0].spans == ()
    assert group.episodes[0].reward is None
