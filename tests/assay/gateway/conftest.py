"""A tiny model whose chat template shows tools, behind a gateway that listens."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

for package in ("torch", "transformers", "fastapi", "uvicorn"):
    pytest.importorskip(package)

import torch

from assay.gateway.app import served
from assay.gateway.episodes import Gateway, GatewayConfig
from assay.gateway.transformers_engine import TransformersEngine
from assay.grpo import load_model, tiny_model

torch.set_num_threads(1)
TEMPLATE = (
    "{% if tools %}T{{ tools | tojson }}<eos>{% endif %}"
    "{% for m in messages %}{{ m.role[0] }}:{{ m.content }}<eos>\n{% endfor %}"
    "{% if add_generation_prompt %}a:{% endif %}"
)


@pytest.fixture(scope="session")
def model_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tiny_model(
        tmp_path_factory.mktemp("model"),
        hidden_size=32,
        heads=4,
        intermediate_size=48,
        max_length=2048,
    )
    _, tokenizer = load_model(folder)
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def loaded(model_dir: Path) -> tuple[Any, Any]:
    """The model and its tokenizer."""
    return load_model(model_dir)


Start = Callable[..., tuple[Gateway, str]]


@pytest.fixture
def start(loaded: tuple[Any, Any]) -> Iterator[Start]:
    """Start a gateway; its settings, or an engine, may be given."""
    with ExitStack() as stack:

        def begin(*, engine: Any = None, **settings: Any) -> tuple[Gateway, str]:
            engine = engine or TransformersEngine(*loaded, name="tiny")
            gateway = Gateway(engine, GatewayConfig(**{"max_tokens": 8, **settings}))
            return gateway, stack.enter_context(served(gateway))

        yield begin
