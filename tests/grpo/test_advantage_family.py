"""Advantages of every kind: by hand, and against loops over replies, steps and tokens."""

from __future__ import annotations

import math
import statistics
from functools import partial
from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from assay import Exact, Rubric, Task
from assay.envs import Rows as TaskRows
from assay.envs import TextEnv
from assay.grpo import GRPOConfig, Objective, training_tasks
from assay.grpo.advantage import (
    gdpo,
    group_advantages,
    leave_one_out,
    maxrl,
    mo_grpo,
    opo,
    outcome_advantages,
    process_advantages,
    reinforce_pp,
    whiten,
)

torch.set_num_threads(1)

NAN = float("nan")
ARTICLE = torch.tensor([[0.9, 0.3, 0.8, 0.2]], dtype=torch.float64)
EPS = 1e-6

Rows = list[list[float]]
reward = st.one_of(st.just(NAN), st.sampled_from([0.0, 0.1, 1.0]), st.floats(-2, 2, width=32))


def tables(p: int, g: int) -> st.SearchStrategy[Rows]:
    return st.lists(st.lists(reward, min_size=g, max_size=g), min_size=p, max_size=p)


batches = st.tuples(st.integers(1, 3), st.integers(1, 4)).flatmap(lambda s: tables(*s))


def held(row: list[float]) -> list[float]:
    return [r for r in row if not math.isnan(r)]


def teaches(row: list[float]) -> bool:
    return len(set(held(row))) > 1


def tensor(rows: Any) -> torch.Tensor:
    return torch.tensor(rows, dtype=torch.float64)


def same(found: torch.Tensor, wanted: Any) -> bool:
    """Equal, and zero exactly where zero is wanted."""
    wanted = tensor(wanted)
    zeros = found[wanted == 0].eq(0).all()
    return bool(zeros) and torch.allclose(found, wanted, rtol=1e-9, atol=1e-9)


def naive_whiten(rows: Rows) -> Rows:
    """Mean 0, deviation 1 of the sample, over all that is not NaN."""
    there = [r for row in rows for r in row if not math.isnan(r)]
    if len(set(there)) < 2:
        return [[0.0] * len(row) for row in rows]
    mean = sum(there) / len(there)
    deviation = math.sqrt(sum((r - mean) ** 2 for r in there) / (len(there) - 1)) + EPS
    return [[0.0 if math.isnan(r) else (r - mean) / deviation for r in row] for row in rows]


def centred(rows: Rows) -> Rows:
    return [
        [NAN if math.isnan(r) else r - statistics.fmean(held(row)) for r in row]
        if teaches(row)
        else [NAN if math.isnan(r) else 0.0 for r in row]
        for row in rows
    ]


def test_article_example_in_every_convention() -> None:
    """Mean .55: distances .35, -.25, .25, -.35; deviations .3041 and .3512."""
    for std, high, low in (
        ("population", 1.1508, 0.8220),
        ("sample", 0.9966, 0.7119),
        ("batch", 0.9966, 0.7119),  # the batch is one group
        ("none", 0.35, 0.25),
    ):
        found = group_advantages(ARTICLE, std=std)
        assert torch.allclose(found, tensor([[high, -low, low, -high]]), atol=1e-4)
    # The others' means: (.3 + .8 + .2) / 3 and so on; 4/3 of the distances from the mean.
    assert same(leave_one_out(ARTICLE), [[0.35 * 4 / 3, -1 / 3, 1 / 3, -0.35 * 4 / 3]])


@pytest.mark.parametrize("std", ["population", "sample", "batch", "none"])
def test_zero_without_variance_also_at_eps_0(std: Any) -> None:
    rewards = torch.tensor([[0.1] * 8, [1.0, *[NAN] * 7], [NAN] * 8])
    assert group_advantages(rewards, std=std, eps=0.0).eq(0).all()


def of_group(how: str, rewards: list[float], lengths: list[int]) -> list[float]:
    """Compare rewards that differ, as the papers do."""
    mean, n = statistics.fmean(rewards), len(rewards)
    if how == "leave_one_out":
        return [r - (sum(rewards) - r) / (n - 1) for r in rewards]
    if how == "opo":
        pairs = zip(rewards, lengths, strict=True)
        mean = sum(r * length for r, length in pairs) / sum(lengths)
    scale = {
        "population": statistics.pstdev(rewards) + EPS,
        "sample": statistics.stdev(rewards) + EPS,
        "maxrl": mean,
    }
    return [(r - mean) / scale.get(how, 1.0) for r in rewards]


@pytest.mark.parametrize("how", ["population", "sample", "none", "leave_one_out", "maxrl", "opo"])
@settings(deadline=None, derandomize=True, max_examples=60)
@given(batches, st.integers(0, 2**31))
def test_groups_are_compared_as_by_the_loop(how: Any, rows: Rows, seed: int) -> None:
    """And OPO's advantages have mean zero over a group's tokens."""
    generator = torch.Generator().manual_seed(seed)
    lengths = torch.randint(1, 9, (len(rows), len(rows[0])), generator=generator)
    if how == "maxrl":
        rows = [[abs(r) for r in row] for row in rows]
    wanted = []
    for row, of_row in zip(rows, lengths.tolist(), strict=True):
        there = [n for r, n in zip(row, of_row, strict=True) if not math.isnan(r)]
        compared = iter(of_group(how, held(row), there) if teaches(row) else [0.0] * len(row))
        wanted.append([0.0 if math.isnan(r) else next(compared) for r in row])
    kinds = {"leave_one_out": leave_one_out, "maxrl": maxrl, "opo": lambda r: opo(r, lengths)}
    by_std = partial(group_advantages, std=how, eps=EPS)
    found = kinds.get(how, by_std)(tensor(rows))
    assert torch.allclose(found, tensor(wanted), rtol=1e-9, atol=1e-9)
    for row, advantages in zip(rows, found, strict=True):
        assert teaches(row) or advantages.eq(0).all()
    if how == "opo":
        assert torch.allclose((found * lengths).sum(1), torch.zeros(1).double(), atol=1e-9)


@settings(deadline=None, derandomize=True)
@given(batches)
def test_the_deviation_of_a_batch_is_the_loop(rows: Rows) -> None:
    every = [r for row in rows for r in held(row)]
    deviation = statistics.stdev(every) + EPS if len(every) > 1 else 1.0
    wanted = [[0.0 if math.isnan(r) else r / deviation for r in row] for row in centred(rows)]
    assert same(group_advantages(tensor(rows), std="batch", eps=EPS), wanted)


@settings(deadline=None, derandomize=True)
@given(batches, st.booleans())
def test_reinforce_pp_is_the_loop(rows: Rows, baseline: bool) -> None:
    wanted = naive_whiten(centred(rows) if baseline else rows)
    if baseline:
        wanted = [w if teaches(r) else [0.0] * len(r) for w, r in zip(wanted, rows, strict=True)]
    found = reinforce_pp(tensor(rows), baseline=baseline, eps=EPS)
    assert torch.allclose(found, tensor(wanted), rtol=1e-6, atol=1e-7)
    for row, advantages in zip(rows, found, strict=True):
        assert not baseline or teaches(row) or advantages.eq(0).all()


def test_shapes_and_ranges_are_checked() -> None:
    with pytest.raises(ValueError, match=r"at least 0, got -1: pay 1 and 0"):
        maxrl(tensor([[1.0, -1.0]]))
    with pytest.raises(ValueError, match=r"lengths must be \[P, G\] = \[1, 4\].*got \[4\]"):
        opo(ARTICLE, torch.ones(4))
    with pytest.raises(ValueError, match=r"rewards must be \[K, P, G\]"):
        gdpo(ARTICLE)
    with pytest.raises(ValueError, match=r"\[P, G\], got \(3,\)"):
        group_advantages(torch.zeros(3))
    with pytest.raises(ValueError, match="std must be"):
        group_advantages(torch.zeros(1, 2), std="unbiased")


def naive_several(table: list[Rows], weights: list[float], std: str) -> Rows:
    p, g = len(table[0]), len(table[0][0])
    total = [[0.0] * g for _ in range(p)]
    deviate = statistics.pstdev if std == "population" else statistics.stdev
    for weight, rows in zip(weights, table, strict=True):
        for i, row in enumerate(rows):
            if teaches(row):
                mean, deviation = statistics.fmean(held(row)), deviate(held(row)) + EPS
                for j, r in enumerate(row):
                    total[i][j] += 0.0 if math.isnan(r) else weight * (r - mean) / deviation
    return total


three = st.tuples(st.integers(1, 3), st.integers(1, 3), st.integers(1, 4)).flatmap(
    lambda s: st.lists(tables(s[1], s[2]), min_size=s[0], max_size=s[0])
)


@settings(deadline=None, derandomize=True)
@given(three, st.sampled_from(["population", "sample"]))
def test_several_rewards_are_the_loop(table: list[Rows], std: Any) -> None:
    weights = [1.0, 0.5, 2.0][: len(table)]
    summed = naive_several(table, weights, std)
    found = mo_grpo(tensor(table), tensor(weights), std=std, eps=EPS)
    assert torch.allclose(found, tensor(summed), rtol=1e-6, atol=1e-6)
    white = gdpo(tensor(table), tensor(weights), std=std, eps=EPS)
    for i, advantages in enumerate(white):
        if not any(teaches(rows[i]) for rows in table):
            assert advantages.eq(0).all()
    if len({round(a, 6) for row in summed for a in row}) > 1:
        gone = [
            [all(math.isnan(t[i][j]) for t in table) for j in range(len(r))]
            for i, r in enumerate(summed)
        ]
        rows = [[NAN if gone[i][j] else a for j, a in enumerate(r)] for i, r in enumerate(summed)]
        wanted = naive_whiten(rows)
        taught = [any(teaches(rows[i]) for rows in table) for i in range(len(summed))]
        wanted = [w if t else [0.0] * len(w) for w, t in zip(wanted, taught, strict=True)]
        assert torch.allclose(white, tensor(wanted), rtol=1e-4, atol=1e-4)


def test_two_rewards_by_hand() -> None:
    """Rewards (0, 0), (1, 0) and (0, 0), (1, 1): their sums' z-scores are the same, these not."""
    one, both = tensor([[[0.0, 1.0]], [[0.0, 0.0]]]), tensor([[[0.0, 1.0]], [[0.0, 1.0]]])
    root = math.sqrt(0.5)
    assert torch.allclose(mo_grpo(one, std="sample", eps=0.0), tensor([[-root, root]]))
    assert torch.allclose(mo_grpo(both, std="sample", eps=0.0), tensor([[-2 * root, 2 * root]]))
    scaled = both * tensor([[[100.0]], [[1.0]]]) + 7
    assert torch.allclose(mo_grpo(scaled, eps=0.0), mo_grpo(both, eps=0.0))


steps = st.tuples(st.integers(1, 2), st.integers(1, 3), st.integers(1, 3)).flatmap(
    lambda s: st.lists(tables(s[1], s[2]), min_size=s[0], max_size=s[0])
)


@settings(deadline=None, derandomize=True)
@given(steps, st.sampled_from(["population", "sample", "none"]), st.integers(0, 2**31))
def test_process_is_the_loop(table: list[Rows], std: Any, seed: int) -> None:
    p, g, k, t = len(table), len(table[0]), len(table[0][0]), 5
    ends = torch.randint(0, t, (p, g, k), generator=torch.Generator().manual_seed(seed))
    found = process_advantages(tensor(table), ends, t, std=std, eps=EPS)
    for i in range(p):
        flat = [r for row in table[i] for r in row]
        if not teaches(flat):
            assert found[i].eq(0).all()
            continue
        mean = statistics.fmean(held(flat))
        scale = {
            "population": statistics.pstdev(held(flat)) + EPS,
            "sample": statistics.stdev(held(flat)) + EPS,
            "none": 1.0,
        }[std]
        for j in range(g):
            for at in range(t):
                wanted = sum(
                    (r - mean) / scale
                    for r, end in zip(table[i][j], ends[i, j].tolist(), strict=True)
                    if not math.isnan(r) and end >= at
                )
                assert found[i, j, at].item() == pytest.approx(wanted, rel=1e-6, abs=1e-6)


def test_steps_past_the_reply_are_refused() -> None:
    with pytest.raises(ValueError, match=r"step_ends must be in \[-1, 4\).*got 4"):
        process_advantages(torch.zeros(1, 1, 1), torch.tensor([[[4]]]), 4)


def test_whiten_is_zero_where_nothing_differs() -> None:
    mask = torch.tensor([True, True, False])
    assert whiten(torch.tensor([0.1, 0.1, 5.0]), mask, eps=0.0).eq(0).all()
    assert whiten(torch.tensor([1.0, 3.0, 5.0]), mask, eps=0.0).tolist() == pytest.approx(
        [-math.sqrt(0.5), math.sqrt(0.5), 0.0]
    )


@pytest.mark.parametrize(
    ("how", "wanted"),
    [
        ("group", group_advantages(ARTICLE)),
        ("leave_one_out", leave_one_out(ARTICLE)),
        ("maxrl", maxrl(ARTICLE)),
        ("reinforce_pp", reinforce_pp(ARTICLE, baseline=False)),
        ("reinforce_pp_baseline", reinforce_pp(ARTICLE, baseline=True)),
        ("opo", opo(ARTICLE, torch.tensor([[1, 2, 3, 4]]))),
        ("mo_grpo", group_advantages(ARTICLE) + 2 * group_advantages(1 - ARTICLE**2)),
        ("gdpo", gdpo(torch.stack([ARTICLE, 1 - ARTICLE**2]), torch.tensor([1.0, 2.0]))),
    ],
)
def test_the_objective_chooses(how: Any, wanted: torch.Tensor) -> None:
    several = how in ("mo_grpo", "gdpo")
    o = Objective(advantage=how, reward_weights={"b": 2.0} if several else None)
    found = outcome_advantages(
        ARTICLE,
        o,
        lengths=torch.tensor([[1, 2, 3, 4]]),
        named={"b": 1 - ARTICLE**2, "a": ARTICLE},
    )
    assert torch.allclose(found, wanted)
    missing = ARTICLE.masked_fill(torch.tensor([[False, True, False, False]]), NAN)
    found = outcome_advantages(
        missing, o, lengths=torch.ones(1, 4), named={"b": 1 - ARTICLE**2, "a": ARTICLE}
    )
    assert found[0, 1] == 0


def test_what_the_objective_lacks_is_named() -> None:
    with pytest.raises(ValueError, match="opo' needs the replies' lengths"):
        outcome_advantages(ARTICLE, Objective(advantage="opo"))
    with pytest.raises(ValueError, match="gdpo' needs rewards by name"):
        outcome_advantages(ARTICLE, Objective(advantage="gdpo"))
    o = Objective(advantage="gdpo", reward_weights={"b": 1.0})
    with pytest.raises(ValueError, match=r"names \['b'\].*it gives \['a'\]"):
        outcome_advantages(ARTICLE, o, named={"a": ARTICLE})
    env = TextEnv(TaskRows([Task("?", "1")]), Rubric({"a": Exact()}))
    with pytest.raises(ValueError, match=r"names \['b'\].*it gives \['a'\]"):
        training_tasks(env, GRPOConfig(advantage="gdpo", reward_weights={"b": 1.0}))
    with pytest.raises(ValueError, match="use process_advantages"):
        outcome_advantages(ARTICLE, Objective(advantage="process"))
