"""What addresses draw never changes: a seed and an index put the same task in every release."""

import hashlib
import json

import numpy as np
import pytest

from assay.envs import make
from assay.envs.seeding import rng_at, share

ADDRESSES = [
    ("a", 3),
    ("a",),
    ("schedule", 0, 2**63),
    ("x", -1, 0, 0),
    ('quotes " and \\, é, \U0001f642', 7),
]


@pytest.mark.parametrize("address", ADDRESSES)
def test_a_generator_is_numpys_philox_keyed_by_the_address(address) -> None:
    digest = hashlib.blake2b(json.dumps(address).encode(), digest_size=16).digest()
    plain = np.random.Generator(np.random.Philox(key=int.from_bytes(digest, "big")))
    ours = rng_at(*address)
    for draw in (
        lambda rng: rng.integers(10, size=5).tolist(),
        lambda rng: rng.integers(1 << 62),
        lambda rng: rng.permutation(20).tolist(),
        lambda rng: rng.random(3).tolist(),
        lambda rng: rng.choice(list("abc"), size=4, p=[0.2, 0.3, 0.5]).tolist(),
        lambda rng: rng.standard_normal(),
    ):
        assert draw(ours) == draw(plain)


def test_a_share_is_pinned_and_spread_over_the_unit_interval() -> None:
    assert share("split", "a", 3) == 0.642900477507568
    assert len({share("a", 1), share("a1"), share("a", "1"), share("a", 1, 0)}) == 4
    shares = [share("x", i) for i in range(2000)]
    assert 0 <= min(shares) < 0.01
    assert 0.99 < max(shares) < 1
    assert abs(sum(shares) / 2000 - 0.5) < 0.03


def test_global_randomness_is_left_alone() -> None:
    np.random.seed(0)
    before = np.random.get_state()[1].copy()
    rng_at("a").integers(10, size=100)
    assert (np.random.get_state()[1] == before).all()


PINNED = [
    ("assay/Arithmetic-v1", {}, "79+78=", "157", "75+17="),
    (
        "assay/Arithmetic-v1",
        {"digits": 9, "operators": "+-*", "split": "test", "seed": 7},
        "519614771-429990223=",
        "89624548",
        "794342436-287592719=",
    ),
    (
        "assay/GuessNumber-v1",
        {"level": 2},
        "from 105720938 to 105720968.",
        "105720949",
        "from 101329535 to 101329565.",
    ),
    ("assay/FractionSum-v1", {"level": 3}, "1/1 - 7/6 + 5/2 + 2/9", "23/9", "4/1 + 19/7 - 15/2"),
    ("assay/Countdown-v1", {}, "6, 17, 17", {"numbers": [6, 17, 17], "target": 295}, "4, 15, 7"),
]


@pytest.mark.parametrize(("name", "options", "text", "reference", "later"), PINNED)
def test_tasks_are_pinned(name, options, text, reference, later) -> None:
    env = make(name, **options)
    first, far = env.task(0), env.task(2**61)
    assert text in first.text
    assert first.reference == reference
    assert later in far.text


def test_schedules_are_pinned() -> None:
    source = make("assay/Arithmetic-v1").source
    assert [source.schedule(p, 3) for p in range(2)] == [3709925607908593746, 1555462290843084071]
