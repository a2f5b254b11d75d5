"""What is computed both in one process and in two."""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import Any

from assay.grpo import Row


def load(path: Path) -> Any:
    """A module by its path: tests are no package."""
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


Digits = load(Path(__file__).parent.parent / "conftest.py").Digits

SETTINGS: dict[str, Any] = {
    "steps": 2,
    "prompts_per_step": 7,
    "group_size": 4,
    "max_new_tokens": 3,
    "learning_rate": 3e-3,
    "warmup_steps": 2,
    "tokens_per_batch": 60,
}
RUN: dict[str, Any] = {
    "beta": 0.05,
    "advantage_std": "batch",
    "minibatches": 2,
    "num_iterations": 2,
    "eval_every": 1,
    "save_every": 1,
}


def row(prompt: int, place: int, length: int, advantage: float) -> Row:
    """Some tokens of a prompt and a reply; which does not matter."""
    reply = tuple(5 + (7 * prompt + 3 * place + t) % 90 for t in range(length))
    old = tuple(-3.0 - 0.1 * ((place + t) % 5) for t in range(length))
    return Row(
        tuple(5 + (prompt + i) % 90 for i in range(3 + prompt % 4)),
        reply,
        (True,) * length,
        old,
        (advantage,) * length,
        reference=tuple(x + 0.2 for x in old),
    )


def _groups(sizes: list[int]) -> list[Row]:
    return [
        row(p, i, 1 + (3 * p + i) % 9, (-1.0) ** i * (0.5 + 0.1 * p))
        for p, size in enumerate(sizes)
        for i in range(size)
    ]


GRADIENTS: dict[str, tuple[list[Row], dict[str, Any]]] = {
    "uneven groups": (_groups([4, 1, 3, 4, 2, 4, 4]), {"max_grad_norm": 1e9}),
    "one row": ([row(0, 0, 5, 1.0), row(0, 1, 5, 0.0)], {"max_grad_norm": 1e9}),
    "penalty": (_groups([4, 4, 4]), {"beta": 0.1, "loss": "grpo", "max_grad_norm": 1e9}),
    "cut": (_groups([4, 4, 4]), {"max_grad_norm": 1e-3, "loss": "dr_grpo"}),
}
