"""A model is trained behind a program: on what it sampled there, and on nothing else."""

from __future__ import annotations

import json
import sys
from dataclasses import replace

import pytest

pytest.importorskip("torch")
pytest.importorskip("fastapi")

import torch

from assay.envs import Episode, EpisodeGroup, Rows, Span, Task, TextEnv
from assay.gateway.agent_env import AgentEnv
from assay.gateway.policy_engine import AgentPlayer
from assay.grpo import (
    GRPOConfig,
    Learner,
    ModelPolicy,
    Objective,
    accumulate_gradient,
    choose_forward,
    load_model,
    read_metrics,
    training_tasks,
)
from assay.grpo.credit import credit, rows_of
from assay.verifiers import FunctionVerifier, Verdict

# Each turn rewrites the history: what the model said is sent back in capitals, so it begins a
# branch; the second request goes on from the first.
PROGRAM = """
first = {"role": "user", "content": sys.stdin.read()}
on = {"role": "user", "content": "on"}
asked = {"temperature": 0.0, "seed": 1}
said = ask([first], **asked)
ask([first, said, on], **asked)
ask([first, {**said, "content": "W" + said["content"]}, on], **asked)
"""


def verdict_of(reply: str, reference: str) -> float:
    return sum(c.isdigit() for c in reply) / max(1, len(reply))


@pytest.fixture
def agent(written) -> AgentEnv:
    env = TextEnv(
        Rows([Task(f"{i}+1=", "", id=str(i)) for i in range(4)]), FunctionVerifier(verdict_of)
    )
    return AgentEnv(env, [sys.executable, str(written(PROGRAM))], unsafe=True)


def test_each_branch_is_trained_on_what_was_sampled_there(agent, loaded) -> None:
    model, tokenizer = loaded
    policy = ModelPolicy(model, tokenizer, max_new_tokens=5, seed=2)
    groups = AgentPlayer(agent)(policy, [agent.env.task(0)], 3)
    (group,) = groups
    for episode in group.episodes:
        assert len(episode.branches) == 1
        (edited, kept) = (episode.spans, *episode.branches)
        assert [s.author for s in edited] == ["environment", "model"]
        assert [s.author for s in kept] == ["environment", "model"] * 2
    # Sampled at the learner's temperature with seeds of its own, whatever the program asked for.
    assert len({e.branches[0][1].ids for e in group.episodes}) > 1
    rows = credit(groups, rows_of(groups), Objective())
    assert len(rows) == 6
    for i, row in enumerate(rows):
        assert len(set(row.advantages)) == 1
        assert row.advantages[0] == rows[i % 3].advantages[0]
    for row in rows:  # the recorded log-probabilities are the model's own
        ids = torch.tensor([[*row.prompt, *row.reply]])
        own = model(ids).logits[0, len(row.prompt) - 1 : -1].log_softmax(-1)
        own = own[torch.arange(len(row.reply)), torch.tensor(row.reply)]
        mask = torch.tensor(row.written)
        assert (own - torch.tensor(row.logprobs))[mask].abs().max() < 1e-5


def test_branches_share_the_outcome_and_do_not_count_twice_in_the_baseline() -> None:
    def episode(reward: float, branches: int) -> Episode:
        spans = (Span("environment", (1,)), Span("model", (2,), (-1.0,)))
        verdict = Verdict.wrong("", score=reward)
        return Episode("a", (), verdict, spans=spans, branches=(spans,) * branches)

    group = EpisodeGroup(Task("?", "", id="a"), (episode(1, 5), episode(0, 0)))
    rows = credit([group], rows_of([group]), Objective(advantage_std="none"))
    assert [row.advantages for row in rows] == [(0.5,), (-0.5,), *[(0.5,)] * 5]


def test_the_gradient_is_that_of_the_sampled_tokens_alone(agent, model_dir) -> None:
    """The learner's, against one written out from the tree's own tokens and masks."""
    model, tokenizer = load_model(model_dir)
    policy = ModelPolicy(model, tokenizer, max_new_tokens=5, seed=2)
    groups = AgentPlayer(agent)(policy, [agent.env.task(0)], 3)
    rows = credit(groups, rows_of(groups), Objective())
    rows = [replace(row, advantages=(i + 1.0,) * len(row.reply)) for i, row in enumerate(rows)]
    assert any(not all(row.written) for row in rows)
    _, forward = choose_forward(model)
    accumulate_gradient(model, forward, rows, GRPOConfig(beta=0.0), denominator=1.0)
    found = {name: p.grad.clone() for name, p in model.named_parameters()}
    model.zero_grad()
    spans = [s for e in groups[0].episodes for s in [e.spans]]
    spans += [s for e in groups[0].episodes for s in e.branches]
    for i, branch in enumerate(spans):
        ids = torch.tensor([[token for span in branch for token in span.ids]])
        logprobs = model(ids).logits[0].log_softmax(-1)
        at = 0
        for span in branch:
            for token in span.ids:
                if span.author == "model":
                    (-(i + 1.0) * logprobs[at - 1, token]).backward(retain_graph=True)
                at += 1
    for name, p in model.named_parameters():
        torch.testing.assert_close(found[name], p.grad, rtol=1e-3, atol=1e-4, msg=name)


@pytest.mark.slow
def test_a_model_learns_behind_a_program(agent, model_dir, tmp_path) -> None:
    model, tokenizer = load_model(model_dir)
    config = GRPOConfig(
        steps=12,
        prompts_per_step=1,
        group_size=8,
        max_new_tokens=4,
        learning_rate=4e-2,
        eval_every=0,
        save_every=0,
        advantage_std="none",
    )
    agent.at_once = 8
    rollout = training_tasks(agent.env, config, play_tasks=AgentPlayer(agent))
    Learner(
        model, tokenizer, rollout, config, tmp_path / "run", progress=False, trackers=()
    ).train()
    rows = read_metrics(tmp_path / "run" / "metrics.jsonl")
    rewards = [row["reward"] for row in rows if "reward" in row]
    assert sum(rewards[-3:]) / 3 > sum(rewards[:3]) / 3 + 0.2, rewards


def test_the_command_trains_in_the_sandbox(run, box, model_dir, written, tmp_path) -> None:
    rows = [json.dumps({"question": f"{n}+1=", "answer": f"#### {n + 1}"}) for n in range(4)]
    (tmp_path / "rows.jsonl").write_text("\n".join(rows))
    words = ["train", "assay/GSM8K-v1", "--data", str(tmp_path / "rows.jsonl")]
    words += ["--model", str(model_dir), "--out", str(tmp_path / "run"), "--steps", "1"]
    words += ["--prompts", "2", "--group-size", "2", "--max-new-tokens", "4", "--eval-every", "0"]
    words += [
        "--agent",
        "python3 program.py",
        "--agent-file",
        written(PROGRAM),
        "--tracker",
        "none",
    ]
    words += ["--agent-image", box._options.image] if box.backend == "docker" else []
    code, _, err = run(*words, "--agent-backend", box.backend)
    assert code == 0, err
    (row,) = [r for r in read_metrics(tmp_path / "run" / "metrics.jsonl") if r["step"] == 1]
    assert row["reward"] is not None
