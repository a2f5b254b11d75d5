"""Tiny models, made once for the whole folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Completion, Episode, EpisodeGroup, Policy, Span, Task
from assay.grpo import load_model, tiny_model
from assay.verifiers import Status, Verdict

torch.set_num_threads(1)


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


@pytest.fixture(params=["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"])
def device(request: pytest.FixtureRequest) -> str:
    """Each device of the machine that runs the tests."""
    name: str = request.param
    return name


class Digits:
    """Stands where an environment does: a reply that begins with a digit earns 1.

    Args:
        prompts: how many tasks a step has; they change with the step.
        none: episodes of these places in each group have no reward.
    """

    def __init__(self, prompts: int = 4, group_size: int = 4, none: tuple[int, ...] = ()) -> None:
        self.prompts, self.group_size, self.none = prompts, group_size, none
        self.groups: list[EpisodeGroup] = []

    def __call__(self, policy: Policy, step: int) -> list[EpisodeGroup]:
        """Roll out the step's tasks."""
        tasks = [Task(f"{step % 7}.{i}?", "", id=f"{step}-{i}") for i in range(self.prompts)]
        conversations = [t.messages for t in tasks for _ in range(self.group_size)]
        completions = iter(policy(conversations))
        self.groups = [
            EpisodeGroup(t, tuple(self._episode(t, next(completions), i) for i in self._places))
            for t in tasks
        ]
        return self.groups

    @property
    def _places(self) -> range:
        return range(self.group_size)

    def _episode(self, task: Task, reply: Completion, place: int) -> Episode:
        if place in self.none:
            verdict = Verdict.fault(Status.SANDBOX_ERROR, "the sandbox went away")
        elif reply.text[:1].isdigit():
            verdict = Verdict.correct()
        else:
            verdict = Verdict.wrong("no digit")
        return Episode(
            task.id,
            ({"role": "assistant", "content": reply.text},),
            verdict,
            truncated=reply.finish == "length",
            spans=(
                Span("environment", reply.prompt_ids),
                Span("model", reply.ids, reply.logprobs),
            ),
        )


@pytest.fixture
def digits() -> type[Digits]:
    """The stand-in's class."""
    return Digits
