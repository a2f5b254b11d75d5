"""Who takes what."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.grpo import Row, World
from assay.grpo.batch import balance_rows


def row(prompt: int, place: int, length: int) -> Row:
    n = (0.0,) * length
    return Row((prompt, 1), (place,) * length, (True,) * length, n, n)


def test_shares_have_about_as_many_tokens() -> None:
    """Groups of 2 + 9, 2 + 5, 2 + 4 and 2 + 1 tokens: 11 + 3 and 7 + 6."""
    rows = [row(p, 0, n) for p, n in enumerate((1, 9, 4, 5))]
    shares = balance_rows(rows, 2)
    assert [[len(r.reply) for r in share] for share in shares] == [[9, 1], [5, 4]]
    assert balance_rows([row(0, 0, 3)], 3) == [[row(0, 0, 3)], [], []]


@settings(deadline=None, derandomize=True, max_examples=80)
@given(st.lists(st.integers(1, 5), max_size=12), st.integers(1, 5))
def test_every_row_is_someones_and_only_once(sizes: list[int], processes: int) -> None:
    rows = [row(p, i, 1 + (p + i) % 7) for p, size in enumerate(sizes) for i in range(size)]
    shares = balance_rows(rows, processes)
    assert sorted(r.prompt + r.reply for s in shares for r in s) == sorted(
        r.prompt + r.reply for r in rows
    )
    if len(sizes) >= processes:
        homes = [{r.prompt for r in share} for share in shares]
        assert sum(len(home) for home in homes) == len(sizes)
        assert all(homes)


def test_one_process_alone_needs_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WORLD_SIZE", raising=False)
    world = World.join()
    assert (world.rank, world.size, world.is_main) == (0, 1, True)
    assert world.on_main(lambda: 3) == 3
    assert world.gather(4) == [4]
    with pytest.raises(KeyError):
        world.on_all(lambda: {}["no such key"])


def test_the_time_to_wait_is_a_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("ASSAY_TIMEOUT_S", "soon")
    with pytest.raises(ValueError, match=r"ASSAY_TIMEOUT_S must be a number of seconds .* 'soon'"):
        World.join()
