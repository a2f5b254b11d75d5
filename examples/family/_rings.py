"""What the studies of flows share: eight spots on a ring, of which a prompt allows two."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from assay.grpo import FlowPolicy, Scorer, UnitConfig, UnitLearner, Units, clamped, matching_loss
from assay.study import Outcome, Trial, every

SPOTS, RADIUS, SPREAD, NEAR = 8, 2.0, 0.12, 0.4
PROMPTS = 4  # prompt c allows spots c and c + 4
CAPTIONS = 0.5  # share of the base model's captions that are true for sure
LOOKED_AT = 400  # samples of each prompt at each look; ten times as many at the end would be 0.3 %
_ANGLES = torch.arange(SPOTS) * (2 * math.pi / SPOTS)
CENTRES = RADIUS * torch.stack([_ANGLES.cos(), _ANGLES.sin()], dim=1)  # [8, 2]


class RingNet(nn.Module):
    """A velocity in the plane: a perceptron of 40 thousand parameters."""

    def __init__(self, width: int = 128) -> None:
        super().__init__()
        self.prompt = nn.Embedding(PROMPTS, 32)
        self.register_buffer("waves", torch.logspace(0, math.log10(200), 8))
        sizes = [2 + 16 + 32, width, width, width]
        hidden = [
            m for a, b in itertools.pairwise(sizes) for m in (nn.Linear(a, b), nn.SiLU())
        ]
        self.layers = nn.Sequential(*hidden, nn.Linear(width, 2))

    def forward(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        """Velocities [N, 2] at x [N, 2] and t [N], for prompts [N]."""
        phase = t[:, None] * self.waves
        return self.layers(torch.cat([x, phase.sin(), phase.cos(), self.prompt(prompts)], dim=1))


def captioned(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Samples [N, 2] and their captions [N], half of which may be wrong."""
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
    steps = 100 if trial.short else 3000
    fit(net, captioned, steps, seed=trial.seed)
    torch.save(net.state_dict(), trial.start / "base.pt")


def fit(
    net: nn.Module,
    data: Callable[[int, torch.Generator], tuple[Tensor, Tensor]],
    steps: int,
    *,
    seed: int,
    batch: int = 512,
) -> None:
    """Train a velocity by flow matching, the learning rate falling from 2e-3 to 0."""
    generator = torch.Generator().manual_seed(seed)
    optimizer = torch.optim.AdamW(net.parameters(), lr=2e-3)
    schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, steps)
    for _ in range(steps):
        loss = matching_loss(net, *data(batch, generator), generator)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        schedule.step()


def base(trial: Trial) -> RingNet:
    """The seed's base model."""
    net = RingNet()
    net.load_state_dict(torch.load(trial.start / "base.pt", weights_only=True))
    return net


def nearest(x: Tensor) -> tuple[Tensor, Tensor]:
    """Distance to the nearest spot, and which it is: [N] each."""
    distance, spot = torch.cdist(x, CENTRES).min(dim=1)
    return distance, spot


def right(x: Tensor, prompts: Tensor) -> Tensor:
    """Whether samples [N, 2] lie at one of the two spots that their prompts [N] allow."""
    distance, spot = nearest(x)
    return (distance < NEAR) & (spot % PROMPTS == prompts)


def binary(units: Units) -> Mapping[str, Tensor]:
    """1 for a sample at an allowed spot, else 0."""
    asked = units.prompts.repeat_interleave(units.group_size)
    return {"right": right(units.outputs, asked).float().view(-1, units.group_size)}


def graded(units: Units) -> Mapping[str, Tensor]:
    """The nearer to an allowed spot the more, from 0 to 1."""
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


def drawn(
    net: nn.Module, seed: int, *, count: int = LOOKED_AT, steps: int = 40
) -> tuple[Tensor, Tensor]:
    """Samples by the ODE, ``count`` for each prompt, and these prompts."""
    prompts = torch.arange(PROMPTS).repeat_interleave(count)
    generator = torch.Generator().manual_seed(10_000 + seed)
    return FlowPolicy(net, (2,)).draw(prompts, generator, steps=steps), prompts


def some(count: int, generator: torch.Generator) -> Tensor:
    """Prompts of a training step."""
    return torch.randint(PROMPTS, (count,), generator=generator)


def trained(
    trial: Trial,
    policy: FlowPolicy,
    config: UnitConfig,
    *,
    scorer: Scorer = binary,
) -> Outcome:
    """Train from the seed's base model, and look at samples of the ODE with 40 steps."""
    learner = UnitLearner(policy, some, scorer, config, credit=clamped(5.0))
    curves: dict[str, list[tuple[float, float]]] = {
        name: [] for name in ("accuracy", "width", "network calls", "zero-variance share")
    }
    look = every(config.steps, 12)

    def calls() -> float:
        return (policy.calls + (learner.reference.calls if learner.reference else 0)) / 1e6

    def look_at(step: float) -> None:
        found = measure(*drawn(policy.net, trial.seed))
        for name in ("accuracy", "width"):
            curves[name].append((step, found[name]))
        curves["network calls"].append((step, calls()))

    def note(row: dict[str, float]) -> None:
        curves["zero-variance share"].append((row["step"], row["zero_variance"]))
        if look(int(row["step"])):
            look_at(row["step"])

    look_at(0)
    learner.train(note)
    return finished(policy.net, trial, curves, calls())


def finished(
    net: nn.Module,
    trial: Trial,
    curves: Mapping[str, list[tuple[float, float]]] | None = None,
    calls: float = 0.0,
) -> Outcome:
    """Final numbers of 4,000 samples, some of which are kept for the picture."""
    x, prompts = drawn(net, trial.seed, count=100 if trial.short else 1000)
    values = measure(x, prompts)
    if curves is not None:
        values["million calls"] = calls
        by_step = dict(curves["network calls"])
        reached = [by_step[step] for step, y in curves["accuracy"] if y >= 0.95]
        values["of these to 95 %"] = reached[0] if reached else float("nan")
    shown = x.view(PROMPTS, -1, 2)[:, :100].round(decimals=3)
    return Outcome(values, curves or {}, {"samples": shown.tolist()})
