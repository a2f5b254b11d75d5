"""What a rollout does to the weights, beside a loop over its episodes' tokens in float64.

Nothing of the arithmetic is shared with what is tested: advantages, ratios, penalties and means
are written out again, episode by episode, each read alone through the model's own logits.
"""

from __future__ import annotations

import math
import random
import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import torch

from assay.envs import Episode, EpisodeGroup, Span, Task
from assay.grpo import GRPOConfig, Learner, load_model
from assay.grpo.update import minibatches
from assay.verifiers import Status, Verdict

pytestmark = pytest.mark.slow

torch.set_num_threads(1)

RATE = 0.05
Reader = Callable[["Loose"], torch.Tensor]


@pytest.fixture
def wide(model_dir: Path) -> Any:
    """A model in float64, with differences between its tokens."""
    model = load_model(model_dir)[0].double()
    noise = torch.Generator().manual_seed(0)
    with torch.no_grad():
        for p in model.parameters():
            p.add_(0.05 * torch.randn(p.shape, generator=noise, dtype=torch.float64))
    return model


def read(model: Any, ids: Sequence[int], heat: float) -> tuple[torch.Tensor, torch.Tensor]:
    """Log-probability of each token but the first, and the entropy it was drawn at."""
    z = model(input_ids=torch.tensor([list(ids)])).logits[0, :-1] / heat
    log_p = z - z.exp().sum(-1, keepdim=True).log()
    entropy = -(log_p.exp() * log_p).sum(-1)
    return log_p.gather(1, torch.tensor(list(ids))[1:, None])[:, 0], entropy


def made(model: Any, heat: float, *, off: float = 0.3) -> list[EpisodeGroup]:
    """Groups of 4, 2, 3, 3 and 1, two of them of one prompt; episodes of one and two turns.

    Some are cut off, one has no reward, one group has no variance. The sampler was ``off`` by
    that much a token.
    """
    chance = random.Random(0)  # noqa: S311  # no secret
    prompts = [(5, 6, 7), (9,), (5, 6, 7), (8, 8), (4, 4, 4)]
    rewards = [(1.0, 0.0, None, 0.25), (0.0, 1.0), (0.5, 1.0, 0.0), (0.1, 0.1, 0.1), (1.0,)]
    groups = []
    for p, (prompt, of_group) in enumerate(zip(prompts, rewards, strict=True)):
        task = Task(f"{p}?", "", id=str(p))
        episodes = []
        for i, reward in enumerate(of_group):
            turns = 1 + (p + i) % 2
            spans, steps = [Span("environment", prompt)], []
            for turn in range(turns):
                if turn:
                    spans.append(Span("environment", tuple(chance.choices(range(3, 90), k=2))))
                ids = tuple(chance.choices(range(3, 90), k=chance.randint(1, 5)))
                before = [t for s in spans for t in s.ids]
                with torch.no_grad():
                    own = read(model, [*before, *ids], heat)[0][len(before) - 1 :]
                noisy = tuple(float(x) + chance.uniform(-off, off) for x in own)
                spans.append(Span("model", ids, noisy))
                missing = turn == 0 and p == 0 and i == 1
                steps.append(None if missing else chance.choice([0.0, 0.5, 1.0]))
            parts = {"a": float(i % 2), "b": chance.random()}
            verdict = (
                Verdict.fault(Status.SANDBOX_ERROR, "gone")
                if reward is None
                else Verdict(_status(reward), reward, "", parts=parts)
            )
            words = tuple({"role": "assistant", "content": "x"} for _ in range(turns))
            cut = (p, i) in ((0, 0), (1, 1))
            episodes.append(Episode(task.id, words, verdict, tuple(steps), cut, tuple(spans)))
        groups.append(EpisodeGroup(task, tuple(episodes)))
    return groups


def _status(reward: float) -> Status:
    return Status.CORRECT if reward >= 0.5 else Status.INCORRECT


@dataclass
class Loose:
    """One scored episode, as plain lists."""

    place: tuple[int, int]
    ids: list[int]
    mine: list[bool]  # of each token but the first
    old: list[float]
    cut: bool
    right: bool
    reward: float
    parts: dict[str, float]
    steps: list[tuple[float | None, int]]  # reward, and the place of the turn's last token
    advantage: list[float]


def loosened(groups: Sequence[EpisodeGroup]) -> list[list[Loose]]:
    found = []
    for g, group in enumerate(groups):
        found.append([])
        for i, e in enumerate(group.episodes):
            if e.reward is None:
                continue
            ids, mine, old, ends = [], [], [], []
            for span in e.spans:
                ids += span.ids
                mine += [span.author == "model"] * len(span.ids)
                old += span.logprobs or [0.0] * len(span.ids)
                if span.author == "model":
                    ends.append(len(ids) - 2)
            steps = list(zip(e.step_rewards, ends, strict=True))
            parts = {k: float(v or 0.0) for k, v in e.rewards.items()}
            right = e.status is Status.CORRECT
            values = e.truncated, right, e.reward, parts, steps
            one = Loose((g, i), ids, mine[1:], old[1:], *values, [])
            found[-1].append(one)
    return found


def standard(values: list[float], c: GRPOConfig, spread: str | None = None) -> list[float]:
    """Values of a group less their mean, over their deviation."""
    spread = spread or c.advantage_std
    if len(set(values)) < 2:
        return [0.0] * len(values)
    mean = statistics.fmean(values)
    by = {"population": statistics.pstdev, "sample": statistics.stdev}.get(spread)
    return [(v - mean) / (1.0 if by is None else by(values) + c.advantage_eps) for v in values]


def whitened(values: list[float], c: GRPOConfig) -> list[float]:
    return standard(values, c, "sample")


def compare(groups: list[list[Loose]], c: GRPOConfig) -> None:
    """Fill in each episode's advantages."""
    every = [e for g in groups for e in g]
    if c.advantage == "process":
        for g in groups:
            rewards = [r for e in g for r, _ in e.steps if r is not None]
            scores = iter(standard(rewards, c))
            for e in g:
                ended = [(next(scores), end) for r, end in e.steps if r is not None]
                e.advantage = [sum(s for s, end in ended if end >= t) for t in range(len(e.mine))]
        return
    outcomes: list[float] = []
    for g in groups:
        r = [e.reward for e in g]
        if c.advantage == "group" and c.advantage_std == "batch":
            deviation = statistics.stdev(e.reward for e in every) + c.advantage_eps
            mean = statistics.fmean(r)
            outcomes += [(x - mean) / deviation if len(set(r)) > 1 else 0.0 for x in r]
        elif c.advantage == "group":
            outcomes += standard(r, c)
        elif c.advantage == "leave_one_out":
            for i, x in enumerate(r):
                others = r[:i] + r[i + 1 :]
                outcomes.append(x - statistics.fmean(others) if others else 0.0)
        elif c.advantage == "maxrl":
            mean = statistics.fmean(r)
            outcomes += [(x - mean) / mean if len(set(r)) > 1 else 0.0 for x in r]
        elif c.advantage == "reinforce_pp":
            outcomes += r
        elif c.advantage == "reinforce_pp_baseline":
            outcomes += standard(r, c, "none")
        elif c.advantage == "opo":
            lengths = [sum(e.mine) for e in g]
            base = sum(n * x for n, x in zip(lengths, r, strict=True)) / sum(lengths)
            outcomes += [x - base if len(set(r)) > 1 else 0.0 for x in r]
        else:
            weights = c.reward_weights or {}
            scores = [
                [weights.get(k, 1.0) * x for x in standard([e.parts[k] for e in g], c)]
                for k in ("a", "b")
            ]
            outcomes += [sum(x) for x in zip(*scores, strict=True)]
    if c.advantage in ("reinforce_pp", "reinforce_pp_baseline", "gdpo"):
        flat = [o == 0.0 for o in outcomes]
        outcomes = whitened(outcomes, c)
        if c.advantage != "reinforce_pp":
            outcomes = [0.0 if was else o for was, o in zip(flat, outcomes, strict=True)]
    if c.hard_weight != c.easy_weight:
        shares = [statistics.fmean(e.right for e in g) for g in groups for _ in g]
        outcomes = [a * difficulty(s, a, c) for s, a in zip(shares, outcomes, strict=True)]
    for e, outcome in zip(every, outcomes, strict=True):
        e.advantage = [outcome] * len(e.mine)


def difficulty(share: float, advantage: float, c: GRPOConfig) -> float:
    share = share if advantage > 0 else 1 - share
    bend = 1 + math.exp(c.difficulty_slope * (share - c.difficulty_middle))
    return c.easy_weight + (c.hard_weight - c.easy_weight) / bend


def gain(ratio: Any, log_p: Any, a: float, c: GRPOConfig) -> Any:
    """Of one token; GSPO's and GMPO's ratio is the reply's."""
    if c.surrogate == "cispo":
        return min(max(float(ratio.detach()), c.cispo_floor), c.cispo_cap) * a * log_p
    if c.surrogate == "sapo":
        tau = c.sapo_temperature if a > 0 else c.sapo_temperature_negative
        return a * (4 / tau) * torch.sigmoid(tau * (ratio - 1))
    if c.surrogate == "gmpo":
        return ratio * a
    if a >= 0:
        return a * min(ratio, torch.tensor(1 + c.upper_clip, dtype=torch.float64))
    worst = max(ratio, torch.tensor(1 - c.clip, dtype=torch.float64))
    if c.dual_clip is not None:
        worst = min(worst, torch.tensor(c.dual_clip, dtype=torch.float64))
    return a * worst


def naive_loss(model: Any, part: list[Loose], c: GRPOConfig, of_reference: Reader) -> torch.Tensor:
    total = torch.zeros((), dtype=torch.float64)
    tokens = 0
    for e in part:
        masked = c.mask_truncated and e.cut
        mine = [t for t, m in enumerate(e.mine) if m and not masked]
        tokens += len(mine)
        if not mine:
            continue
        log_p, entropy = read(model, e.ids, c.temperature)
        log_ratio = {t: log_p[t] - e.old[t] for t in mine}
        ratios = {t: x.exp() for t, x in log_ratio.items()}
        if c.ratio == "sequence" or c.surrogate == "gmpo":
            outcome = e.advantage[mine[0]]
            cut = log_ratio
            if c.surrogate == "gmpo":
                cut = {
                    t: x.clamp(max=c.upper_clip) if outcome >= 0 else x.clamp(min=-c.clip)
                    for t, x in log_ratio.items()
                }
            whole = torch.stack(list(cut.values())).mean().exp()
            ratios = dict.fromkeys(mine, whole)
        reply = torch.zeros((), dtype=torch.float64)
        strayed = -sum(float(x.detach()) for x in log_ratio.values()) / max(1, len(mine))
        most = c.off_policy_mask_threshold
        for t in mine:
            if e.advantage[t] >= 0 or most is None or strayed <= most:
                reply = reply + gain(ratios[t], log_p[t], e.advantage[t], c)
            if c.beta and c.kl_in == "loss":
                d = log_p[t] - of_reference(e)[t]
                kl = {"k1": d, "k2": d * d / 2, "k3": (-d).exp() - 1 + d}[c.kl]
                reply = reply - c.beta * (kl * log_ratio[t].exp() if c.kl_correction else kl)
            reply = reply + c.entropy_bonus * entropy[t]
        total = total + (reply / len(mine) if c.loss == "grpo" else reply)
    by = {"grpo": len(part), "dr_grpo": len(part) * c.max_new_tokens}.get(c.loss, tokens)
    return -total / max(1, by)


def weigh(model: Any, every: list[Loose], c: GRPOConfig) -> None:
    """What is multiplied into advantages before the first update."""
    with torch.no_grad():
        found = [read(model, e.ids, c.temperature) for e in every]
    rows = [(e, h) for e, (_, h) in zip(every, found, strict=True)]
    kept = [(e, h) for e, h in rows if not (c.mask_truncated and e.cut)]
    entropies = sorted(float(h[t]) for e, h in kept for t, m in enumerate(e.mine) if m)
    least = entropies[math.ceil((len(entropies) - 1) * (1 - c.top_entropy) - 1e-9)]
    for e, (log_p, entropy) in zip(every, found, strict=True):
        mine = [t for t, m in enumerate(e.mine) if m]
        strayed = {t: float(log_p[t]) - e.old[t] for t in mine}
        if c.correction.startswith("sequence"):
            strayed = dict.fromkeys(mine, sum(strayed.values()))
        for t in mine:
            weight = math.exp(strayed[t])
            if c.correction.endswith("truncate"):
                weight = min(max(weight, c.correction_floor), c.correction_cap)
            elif not c.correction_floor <= weight <= c.correction_cap:
                weight = 0.0
            if c.correction != "none":
                e.advantage[t] *= weight
                e.old[t] = float(log_p[t])
            if float(entropy[t]) < least:
                e.advantage[t] = 0.0


def naive_step(
    model: Any, groups: list[list[Loose]], parts: list[list[Loose]], c: GRPOConfig, reference: Any
) -> None:
    """Descend once for each part."""

    def of_reference(e: Loose) -> torch.Tensor:
        with torch.no_grad():
            return read(reference, e.ids, c.temperature)[0]

    if c.beta and c.kl_in == "reward":
        for e in (e for g in groups for e in g):
            q = of_reference(e)
            d = [e.old[t] - float(q[t]) for t, m in enumerate(e.mine) if m]
            e.reward -= c.beta * sum({"k1": x, "k3": math.exp(-x) - 1 + x}[c.kl] for x in d)
    compare(groups, c)
    if c.correction != "none" or c.top_entropy < 1:
        weigh(model, [e for g in groups for e in g], c)
    for part in parts:
        model.zero_grad()
        naive_loss(model, part, c, of_reference).backward()
        with torch.no_grad():
            for p in model.parameters():
                p.sub_(RATE * p.grad)


def difference(
    model_dir: Path, tokenizer: Any, wide: Any, out: Path, order: Sequence[int], settings: Any
) -> tuple[float, float]:
    """How far a step of the learner leads, and how far from there the loop's does."""
    c = GRPOConfig(
        learning_rate=RATE, warmup_steps=0, max_grad_norm=1e9, max_new_tokens=16, temperature=0.8,
        max_mismatch=0, max_drift=0, prompts_per_step=5, tokens_per_batch=30, seed=3, **settings,
    )  # fmt: skip
    start = {name: p.detach().clone() for name, p in wide.named_parameters()}
    groups = made(wide, c.temperature)
    groups = [groups[i] for i in order]
    reference = load_model(model_dir)[0].double()
    learner = Learner(wide, tokenizer, lambda *_: groups, c, out, progress=False)
    # Along the gradient itself, where Adam would hide its length.
    learner.optimizer = learner._updater.optimizer = torch.optim.SGD(wide.parameters(), lr=RATE)
    if learner.reference is not None:  # another model than the policy, or the penalty is zero
        learner.reference.refresh(reference)
    buffer = learner._collect(1)
    learner._update(buffer)
    theirs = load_model(model_dir)[0].double()
    theirs.load_state_dict(start, strict=False)
    loose = loosened(groups)
    by_ids = {tuple(e.ids): e for g in loose for e in g}
    cut = minibatches(buffer.rows, c, 1)
    parts = [[by_ids[*row.prompt, *row.reply] for row in part] for part in cut]
    naive_step(theirs, loose, parts, c, reference)
    after = dict(theirs.named_parameters())
    moved = sum(float((p.detach() - start[n]).square().sum()) for n, p in wide.named_parameters())
    apart = sum(float((p - after[n]).detach().square().sum()) for n, p in wide.named_parameters())
    return math.sqrt(moved), math.sqrt(apart)


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"loss": "grpo"},
        {"loss": "dr_grpo", "advantage_std": "none"},
        {"advantage_std": "sample"},
        {"advantage_std": "batch"},
        {"advantage": "leave_one_out"},
        {"advantage": "maxrl"},
        {"advantage": "reinforce_pp"},
        {"advantage": "reinforce_pp_baseline"},
        {"advantage": "opo"},
        {"advantage": "mo_grpo", "reward_weights": {"b": 0.5}},
        {"advantage": "gdpo"},
        {"hard_weight": 1.5, "easy_weight": 0.4},
        {"hard_weight": 2.0, "difficulty_middle": 0.5, "difficulty_slope": 2.0, "loss": "grpo"},
        {"advantage": "process"},
        {"advantage": "process", "advantage_std": "none", "loss": "grpo"},
        {"clip": 0.1, "clip_high": 0.15, "dual_clip": 1.2},
        {"ratio": "sequence", "clip": 0.05},
        {"off_policy_mask_threshold": 0.002},
        {"surrogate": "gmpo", "clip": 0.1},
        {"surrogate": "cispo", "cispo_cap": 1.1, "cispo_floor": 0.9},
        {"surrogate": "sapo"},
        {"beta": 0.2},
        {"beta": 0.2, "kl": "k2"},
        {"beta": 0.2, "kl": "k1", "kl_correction": True},
        {"beta": 0.05, "kl": "k1", "kl_in": "reward"},
        {"beta": 0.05, "kl_in": "reward", "loss": "dr_grpo"},
        {"entropy_bonus": 0.1},
        {"top_entropy": 0.4},
        {"mask_truncated": True},
        {"mask_truncated": True, "loss": "grpo", "beta": 0.1, "entropy_bonus": 0.1},
        {"mask_truncated": True, "top_entropy": 0.4},
        {"correction": "token_truncate", "correction_cap": 1.1, "correction_floor": 0.8},
        {"correction": "token_mask", "correction_cap": 1.2, "correction_floor": 0.8},
        {"correction": "sequence_truncate", "correction_cap": 1.1},
        {"correction": "sequence_mask", "correction_cap": 1.5},
    ],
    ids=lambda s: ",".join(f"{k}={v}" for k, v in s.items()) or "default",
)
def test_updates_are_those_of_a_loop_over_tokens(
    model_dir: Path, tokenizer: Any, wide: Any, tmp_path: Path, settings: Any
) -> None:
    """Two passes in three parts, the later ones off-policy. Batches are float32, hence 3e-6."""
    whole = {**settings, "num_iterations": 2, "minibatches": 3}
    moved, apart = difference(model_dir, tokenizer, wide, tmp_path, range(5), whole)
    assert moved > 1e-4
    assert apart / moved < 3e-6


@pytest.mark.parametrize("settings", [{}, {"advantage": "gdpo"}, {"mask_truncated": True}])
def test_the_order_of_groups_is_of_no_account(
    model_dir: Path, tokenizer: Any, wide: Any, tmp_path: Path, settings: Any
) -> None:
    """One update over all; the two groups of one prompt come apart, and the other way round."""
    moved, apart = difference(model_dir, tokenizer, wide, tmp_path, (2, 4, 1, 0, 3), settings)
    assert moved > 1e-4
    assert apart / moved < 3e-6
