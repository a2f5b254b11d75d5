"""What the studies of flows share: eight spots on a ring, of which a prompt allows two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping

import torch
from torch import Tensor, nn

from assay.family._flows import fit, load_base, save_base
from assay.family.units import FlowPolicy, Scorer, UnitConfig, UnitLearner, Units, clamped
from assay.study import Outcome, Trial, watched

SPOTS, RADIUS, SPREAD, NEAR = 8, 2.0, 0.12, 0.4
PROMPTS = 4  # prompt c allows spots c and c + 4
CAPTIONS = 0.5  # share of the base model's captions that are true for sure
LOOKED_AT = 250  # samples of each prompt while it trains
_ANGLES = torch.arange(SPOTS) * (2 * math.pi / SPOTS)
CENTRES = RADIUS * torch.stack([_ANGLES.cos(), _ANGLES.sin()], dim=1)  # [8, 2]


class RingNet(nn.Module):
    """A velocity in the plane: a perceptron of 40 thousand parameters."""

    waves: Tensor

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.prompt = nn.Embedding(PROMPTS, 32)
        self.register_buffer("waves", torch.logspace(0, math.log10(200), 8))
        sizes = [2 + 16 + 32, width, width, width]
        hidden = [m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.SiLU())]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 2))

    def forward(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        """Compute velocities [N, 2] at x [N, 2] and t [N], for prompts [N]."""
        phase = t[:, None] * self.waves
        seen = torch.cat([x, phase.sin(), phase.cos(), self.prompt(prompts)], dim=1)
        velocity: Tensor = self.layers(seen)
        return velocity


def captioned(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw samples [N, 2] and captions [N], half of which may be wrong."""
    prompts = torch.randint(PROMPTS, (count,), generator=generator)
    allowed = prompts + PROMPTS * torch.randint(2, (count,), generator=generator)
    anywhere = torch.randint(SPOTS, (count,), generator=generator)
    true = torch.rand(count, generator=generator) < CAPTIONS
    spots = torch.where(true, allowed, anywhere)
    return CENTRES[spots] + SPREAD * torch.randn(count, 2, generator=generator), prompts


def start(trial: Trial) -> None:
    """Fit the base model of a seed to the captioned samples."""
    torch.manual_seed(trial.seed)
    net = RingNet()
    steps = 100 if trial.short else 2000
    fit(net, captioned, steps, seed=trial.seed)
    save_base(net, trial)


def base(trial: Trial) -> RingNet:
    """Train the seed's base model."""
    return load_base(RingNet(), trial)


def nearest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Distance to the nearest spot, and which it is: [N] each."""
    distance, spot = torch.cdist(x, CENTRES).min(dim=1)
    return distance, spot


def right(x: Tensor, prompts: Tensor) -> Tensor:
    """Return whether samples [N, 2] lie at one of the two spots that their prompts [N] allow."""
    distance, spot = nearest(x)
    return (distance < NEAR) & (spot % PROMPTS == prompts)


def binary(units: Units) -> Mapping[str, Tensor]:
    """1 for a sample at an allowed spot, else 0."""
    asked = units.prompts.repeat_interleave(units.group_size)
    return {"right": right(units.outputs, asked).float().view(-1, units.group_size)}


def graded(units: Units) -> Mapping[str, Tensor]:
    """Score nearness to an allowed spot, from 0 to 1."""
    asked = units.prompts.repeat_interleave(units.group_size)
    both = torch.cdist(units.outputs, CENTRES).view(-1, 2, PROMPTS)  # spots c and c + 4
    mine = both.amin(dim=1).gather(1, asked[:, None])
    return {"near": (-mine / RADIUS).exp().view(-1, units.group_size)}


def measure(x: Tensor, prompts: Tensor) -> dict[str, float]:
    """Share of right samples; of these, their spread and how evenly they use both spots.

    Returns:
        ``accuracy``; ``width``, the standard deviation about a spot's mean over that of the data;
        ``spots``, the entropy of the choice between the two, in bits (1: evenly).
    """
    good, (_, spot) = right(x, prompts), nearest(x)
    widths, bits = [], []
    for prompt in range(PROMPTS):
        mine = good & (prompts == prompt)
        at = [mine & (spot == s) for s in (prompt, prompt + PROMPTS)]
        share = torch.tensor([float(s.sum()) for s in at])
        share = share / share.sum().clamp(min=1)
        bits.append(float(torch.special.entr(share).sum()) / math.log(2))
        spreads = [float(x[s].std(dim=0).mean()) if s.sum() > 1 else 0.0 for s in at]
        widths.append(float(share @ torch.tensor(spreads)) / SPREAD)
    return {
        "accuracy": float(good.float().mean()),
        "width": sum(widths) / PROMPTS,
        "spots (bits)": sum(bits) / PROMPTS,
    }


def drawn(net: nn.Module, seed: int, count: int) -> tuple[Tensor, Tensor]:
    """Sample by the ODE in 40 steps, ``count`` for each prompt; return the prompts too."""
    prompts = torch.arange(PROMPTS).repeat_interleave(count)
    generator = torch.Generator().manual_seed(10_000 + seed)
    return FlowPolicy(net, (2,)).draw(prompts, generator, steps=40), prompts


def some(count: int, generator: torch.Generator) -> Tensor:
    """Draw the prompts of a training step."""
    return torch.randint(PROMPTS, (count,), generator=generator)


def trained(
    trial: Trial, policy: FlowPolicy, config: UnitConfig, *, scorer: Scorer = binary
) -> Outcome:
    """Train the seed's base model, and look eight times at samples of its ODE."""
    learner = UnitLearner(policy, some, scorer, config, credit=clamped(5.0))

    def measured() -> dict[str, float]:
        found = measure(*drawn(policy.net, trial.seed, LOOKED_AT))
        others = learner.reference.calls if learner.reference is not None else 0
        calls = (policy.calls + others) / 1e6
        return {"accuracy": found["accuracy"], "width": found["width"], "million calls": calls}

    curves, note = watched(config.steps, measured, ("zero_variance",), looks=8)
    note({"step": 0})
    learner.train(note)
    curves["zero-variance share"] = curves.pop("zero_variance")
    spent = dict(curves["million calls"])
    reached = [spent[step] for step, y in curves["accuracy"] if y >= 0.95]
    end = finished(trial, policy)
    values = {
        **end.values,
        "million calls": spent[config.steps],
        "of these to .95": reached[0] if reached else float("nan"),
    }
    shares = curves["zero-variance share"]
    values["zero-variance share"] = sum(y for _, y in shares) / len(shares)
    return Outcome(values, curves, end.data)


def finished(trial: Trial, policy: FlowPolicy) -> Outcome:
    """Measure 4,000 samples of the ODE, and as many of the SDE used in training.

    Some of the first seed's are kept for the picture.
    """
    x, prompts = drawn(policy.net, trial.seed, 100 if trial.short else 1000)
    values = measure(x, prompts)
    generator = torch.Generator().manual_seed(20_000 + trial.seed)
    by_sde = policy.sample(prompts, 1, generator).outputs  # groups of 1: each its own noise
    values["accuracy by SDE"] = measure(by_sde, prompts)["accuracy"]
    shown = x.view(PROMPTS, -1, 2)[:, :100].round(decimals=2).tolist()
    return Outcome(values, {}, {"samples": shown} if trial.seed == 0 else {})
