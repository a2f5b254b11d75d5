"""Tiny models, made once for the whole folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch

from assay.grpo import load_model, tiny_model

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
