"""Addresses decide randomness."""

import numpy as np

from assay.envs.seeding import rng_at, share


def test_the_same_address_gives_the_same_numbers() -> None:
    assert rng_at("a", 1, 2).integers(1 << 40) == rng_at("a", 1, 2).integers(1 << 40)


def test_neighbouring_addresses_are_unrelated() -> None:
    draws = [int(rng_at("a", s, i).integers(1 << 62)) for s in range(30) for i in range(30)]
    assert len(set(draws)) == 900


def test_parts_of_an_address_do_not_run_together() -> None:
    assert len({share("a", 1), share("a1"), share("a", "1"), share("a", 1, 0)}) == 4


def test_global_randomness_is_left_alone() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    rng_at("a").integers(10, size=100)
    assert (np.random.get_state()[1] == before).all()


def test_shares_are_spread_over_the_unit_interval() -> None:
    shares = [share("x", i) for i in range(2000)]
    assert 0 <= min(shares) < 0.01
    assert 0.99 < max(shares) < 1
    assert abs(sum(shares) / 2000 - 0.5) < 0.03
