"""A study's start, made once, and shortened runs from it."""

from collections.abc import Callable
from pathlib import Path

import pytest
import torch

from assay.family import _sums
from assay.study import Outcome, Study, Trial


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
