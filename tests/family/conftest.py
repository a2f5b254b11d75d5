"""Tiny models, made once, and a stand-in for tasks."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Completion, Episode, EpisodeGroup, Policy, Span, Task
from assay.family import _sums
from assay.grpo import load_model, tiny_model
from assay.study import Outcome, Study, Trial
from assay.verifiers import Verdict


@pytest.fixture(autouse=True)
def _one_thread() -> None:
    torch.set_num_threads(1)


@pytest.fixture(scope="session")
def start(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("start")
    _sums.start(Trial(0, True, folder, folder))
    return folder


@pytest.fixture
def outcome(start: Path, tmp_path: Path) -> Callable[[Study, str], Outcome]:
    """An arm's shortened run from that start."""

    def run(study: Study, arm: str) -> Outcome:
        folder = tmp_path / str(list(study.arms).index(arm))
        folder.mkdir(exist_ok=True)
        return study.arms[arm](Trial(0, True, folder, start))

    return run


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of some 20,000 parameters, as a directory."""
    return tiny_model(
        tmp_path_factory.mktemp("model"), hidden_size=32, heads=4, intermediate_size=48
    )


@pytest.fixture
def model(model_dir: Path) -> Any:
    """The model, fresh from its directory."""
    return load_model(model_dir)[0]


@pytest.fixture(scope="session")
def tokenizer(model_dir: Path) -> Any:
    """Its tokenizer."""
    return load_model(model_dir)[1]


class Digits:
    """Rolls out ``prompts`` tasks, which change with the step; a digit at the beginning earns 1."""

    def __init__(self, prompts: int = 4, group_size: int = 4) -> None:
        self.prompts, self.group_size = prompts, group_size

    def __call__(self, policy: Policy, step: int) -> list[EpisodeGroup]:
        tasks = [Task(f"{step % 7}.{i}?", "", id=f"{step}-{i}") for i in range(self.prompts)]
        replies = iter(policy([t.messages for t in tasks for _ in range(self.group_size)]))
        return [
            EpisodeGroup(t, tuple(judged(t, next(replies)) for _ in range(self.group_size)))
            for t in tasks
        ]


def judged(task: Task, reply: Completion) -> Episode:
    spans = (Span("environment", reply.prompt_ids), Span("model", reply.ids, reply.logprobs))
    verdict = Verdict.correct() if reply.text[:1].isdigit() else Verdict.wrong("no digit")
    said = ({"role": "assistant", "content": reply.text},)
    return Episode(task.id, said, verdict, truncated=reply.finish == "length", spans=spans)


@pytest.fixture
def digits() -> type[Digits]:
    """The stand-in's class."""
    return Digits
