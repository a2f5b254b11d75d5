"""Freed memory is kept for the next batch."""

from __future__ import annotations

import resource

import pytest
import torch

from assay.grpo.run.heap import keep_freed_memory

torch.set_num_threads(1)


def faults_of_a_batch() -> int:
    """New pages for eight tensors of 16 MiB, which are freed again."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    tensors = [torch.ones(1 << 22) for _ in range(8)]
    del tensors
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before


def test_a_batch_takes_the_pages_of_those_before() -> None:
    if not keep_freed_memory():
        pytest.skip("malloc is not glibc's, or has the user's settings")
    found = [faults_of_a_batch() for _ in range(6)]
    assert found[-1] < 3000, found  # of 32,768 pages, some rounds after the first


def test_the_users_own_settings_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MALLOC_TRIM_THRESHOLD_", "1000000")
    assert not keep_freed_memory.__wrapped__()
