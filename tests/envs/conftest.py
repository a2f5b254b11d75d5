"""A sandbox with containers, and trainers of TRL's as tests run them."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from assay.sandbox import Sandbox


@pytest.fixture(scope="module")
def box(shell_image: str) -> Iterator[Sandbox]:
    """A sandbox with the image that sessions and tasks start from."""
    with Sandbox(backend="docker") as made:
        yield made


@pytest.fixture
def train(tmp_path: Path) -> Callable[..., Any]:
    """A function that trains with a trainer of TRL's on a TRLSpec."""

    def train(
        spec: Any,
        model: Any,
        tokenizer: Any,
        *,
        trainer: str = "GRPO",
        steps: int = 1,
        prepare: Callable[[Any], None] = lambda trainer: None,
        **settings: Any,
    ) -> Any:
        import trl

        given = {
            "output_dir": str(tmp_path),
            "use_cpu": True,
            "bf16": False,
            "max_steps": steps,
            "per_device_train_batch_size": 32,
            "num_generations": 16,
            "max_completion_length": 8,
            "learning_rate": 0.03,
            "lr_scheduler_type": "constant",
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "disable_tqdm": True,
            "seed": 0,
        }
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # TRL's and transformers' about their own ways
            config = getattr(trl, f"{trainer}Config")(**{**given, **settings})
            made = getattr(trl, f"{trainer}Trainer")(
                model, args=config, processing_class=tokenizer, **spec.kwargs()
            )
            prepare(made)
            made.train()
        return made

    return train


@pytest.fixture
def rewards() -> Callable[[Any], list[float]]:
    """A function from a trainer to the mean reward of each step."""
    return lambda trainer: [log["reward"] for log in trainer.state.log_history if "reward" in log]
