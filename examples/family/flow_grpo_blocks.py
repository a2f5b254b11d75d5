"""Flow-GRPO on images of 8 x 8 pixels: light as many blocks as the prompt says."""

from __future__ import annotations

import math
from collections.abc import Mapping
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from assay.family._flows import fit, load_base, save_base
from assay.family.units import FlowPolicy, UnitConfig, UnitLearner, Units, clamped
from assay.family_cli import run_script
from assay.study import Claim, Outcome, Results, Study, Trial, watched
from assay.study.picture import draw_curve

SIDE, CELLS, MOST = 8, 9, 4  # pixels, places of blocks, the largest prompt
CORNERS = [(row, column) for row in (0, 3, 6) for column in (0, 3, 6)]  # of blocks of 2 x 2
SOONEST = 0.02  # below this time a velocity is not divided by it: less than one step of 40
CAPTIONS = 0.6  # share of the base model's captions that are true for sure
STEPS = 200


class BlockNet(nn.Module):
    """A velocity of images: a perceptron of 0.2 million parameters guesses the clean image."""

    waves: Tensor

    def __init__(self, width: int = 256) -> None:
        super().__init__()
        self.prompt = nn.Embedding(MOST + 1, 32)
        self.register_buffer("waves", torch.logspace(0, math.log10(200), 8))
        self.enter = nn.Linear(SIDE * SIDE + 16 + 32, width)
        self.layers = nn.ModuleList(nn.Linear(width, width) for _ in range(2))
        self.leave = nn.Linear(width, SIDE * SIDE)

    def forward(self, x: Tensor, t: Tensor, prompts: Tensor) -> Tensor:
        """Compute velocities [N, 8, 8] at x [N, 8, 8] and t [N], for prompts [N]."""
        phase = t[:, None] * self.waves
        seen = torch.cat([x.flatten(1), phase.sin(), phase.cos(), self.prompt(prompts)], dim=1)
        hidden = nn.functional.silu(self.enter(seen))
        for layer in self.layers:
            hidden = hidden + nn.functional.silu(layer(hidden))
        clean = self.leave(hidden).tanh().view(x.shape)  # what it takes the image to be
        velocity: Tensor = (x - clean) / t.clamp(min=SOONEST)[:, None, None]
        return velocity


def images(lit: Tensor) -> Tensor:
    """Render blocks [N, 9] of bool as images [N, 8, 8]: 1 where lit, else -1."""
    found = torch.full((len(lit), SIDE, SIDE), -1.0)
    for place, (row, column) in enumerate(CORNERS):
        found[lit[:, place], row : row + 2, column : column + 2] = 1.0
    return found


def captioned(count: int, generator: torch.Generator) -> tuple[Tensor, Tensor]:
    """Draw images [N, 8, 8] and captions [N], some of which are wrong."""
    blocks = asked(count, generator)
    order = torch.rand(count, CELLS, generator=generator).argsort(dim=1).argsort(dim=1)
    true = torch.rand(count, generator=generator) < CAPTIONS
    captions = torch.where(true, blocks, asked(count, generator))
    return images(order < blocks[:, None]), captions


def asked(count: int, generator: torch.Generator) -> Tensor:
    """Draw prompts [N]: numbers of blocks."""
    return torch.randint(1, MOST + 1, (count,), generator=generator)


def lit_blocks(x: Tensor) -> Tensor:
    """Which blocks of images [N, 8, 8] are bright on average: [N, 9] of bool."""
    means = [x[:, row : row + 2, column : column + 2].mean(dim=(1, 2)) for row, column in CORNERS]
    return torch.stack(means, dim=1) > 0


def counted(units: Units) -> Mapping[str, Tensor]:
    """1 for as many bright blocks as the prompt says, else 0."""
    prompts = units.prompts.repeat_interleave(units.group_size)
    right = lit_blocks(units.outputs).sum(dim=1) == prompts
    return {"count": right.float().view(-1, units.group_size)}


def measure(net: nn.Module, trial: Trial, each: int) -> tuple[dict[str, float], Tensor]:
    """Judge ``each`` images of every prompt, drawn by the ODE in 40 steps; and these images.

    Returns:
        ``accuracy``; ``blur``, the mean square distance of a pixel from the nearest image that
        the base model could have seen; ``variety``, in how many of its 9 blocks an image
        differs from another to the same prompt.
    """
    prompts = torch.arange(1, MOST + 1).repeat_interleave(each)
    generator = torch.Generator().manual_seed(10_000 + trial.seed)
    x = FlowPolicy(net, (SIDE, SIDE)).draw(prompts, generator, steps=40)
    lit = lit_blocks(x)
    right = lit.sum(dim=1) == prompts
    share = lit.view(MOST, each, CELLS).float().mean(dim=1)  # [4, 9]
    differ = (2 * share * (1 - share)).sum(dim=1) * each / (each - 1)
    values = {
        "accuracy": float(right.float().mean()),
        "variety": float(differ.mean()),
        "blur": float((x - images(lit)).square().mean()),
    }
    return values, x.view(MOST, each, SIDE, SIDE)


def start(trial: Trial) -> None:
    """Fit the base model of a seed to the captioned images."""
    torch.manual_seed(trial.seed)
    net = BlockNet()
    fit(net, captioned, 60 if trial.short else 3000, seed=trial.seed, batch=256)
    save_base(net, trial)


def finished(trial: Trial, net: nn.Module, curves: Mapping[str, Any] | None = None) -> Outcome:
    """Final numbers of 2,000 images, some of which are kept for the picture."""
    values, x = measure(net, trial, 20 if trial.short else 500)
    shown = x[:, :4].round(decimals=1).tolist()
    return Outcome(values, curves or {}, {"images": shown} if trial.seed == 0 else {})


def untrained(trial: Trial) -> Outcome:
    """Measure the base model."""
    return finished(trial, load_base(BlockNet(), trial))


def train(trial: Trial, *, beta: float = 0.0) -> Outcome:
    """Train with so much of a KL penalty."""
    policy = FlowPolicy(load_base(BlockNet(), trial), (SIDE, SIDE), steps=10)
    config = UnitConfig(
        steps=2 if trial.short else STEPS,
        prompts_per_step=8,
        group_size=24,
        learning_rate=3e-4,
        advantage_std="batch",
        advantage_eps=1e-4,
        beta=beta,
        seed=trial.seed,
    )
    curves, note = watched(config.steps, lambda: measure(policy.net, trial, 100)[0])
    note({"step": 0})
    learner = UnitLearner(policy, asked, counted, config, credit=clamped(5.0))
    learner.train(note)
    return finished(trial, policy.net, curves)


def draw(figure: Any, results: Results) -> None:
    """Four images of each prompt by seed 0 above, by the arms; curves below."""
    figure.set_size_inches(12.5, 8.2)
    above, below = figure.subfigures(2, 1)
    shown = [arm for arm, found in results.items() if "images" in found[0].outcome.data]
    places = above.subplots(1, len(shown), squeeze=False)[0] if shown else ()
    for axes, name in zip(places, shown, strict=True):
        x = torch.tensor(results[name][0].outcome.data["images"])
        page = nn.functional.pad(x, (1, 1, 1, 1), value=0.0)  # [4, 4, 10, 10]
        rows = page.permute(0, 2, 1, 3).flatten(0, 1).flatten(1).tolist()
        axes.imshow(rows, cmap="gray", vmin=-1, vmax=1)
        axes.set(title=name, xticks=(), yticks=[10 * i + 5 for i in range(MOST)])
        axes.set_yticklabels([str(i + 1) for i in range(MOST)])
    panels = below.subplots(1, 3)
    for axes, name in zip(panels, ("accuracy", "variety", "blur"), strict=True):
        draw_curve(axes, results, name)
    handles, labels = panels[0].get_legend_handles_labels()
    if labels:
        figure.legend(handles, labels, loc="outside lower center", ncols=len(labels))


STUDY = Study(
    title="Flow-GRPO on images of blocks",
    source="Liu et al., arXiv 2505.05470",
    says="On images too GRPO teaches a flow to count (GenEval from 63 to 95 %), and with a KL "
    "penalty neither quality nor variety is lost.",
    load=f"Images of 8 x 8 pixels with 1 to {MOST} lit blocks of 2 x 2 in 9 places; the prompt "
    "is the number, and the reward is 1 where as many blocks are brighter than the middle, "
    "however clean the image. The base model (0.2 million parameters, 3,000 steps) learned "
    f"from captions that are wrong in 3 of 10 cases. {STEPS} steps of 8 prompts x 24 images, "
    "10 denoising steps, one update each, a = 0.7, the batch's standard deviation, AdamW at "
    "3e-4, the same for all arms. Judged by 2,000 images of the ODE in 40 steps. Variety: "
    "in how many blocks two images to a prompt differ; blur: mean square distance of a "
    "pixel from the nearest clean image. KL .004 is the paper's code with 0.04.",
    tried=(
        "On one seed: a base model that gives the velocity itself, not the clean image, hardly "
        "counted, and sixteen places were harder still. Up to six blocks, and 300 or 400 steps, "
        "were given up before the first results."
    ),
    equation=(
        r"J = \mathbb{E}\Bigl[\tfrac{1}{T}\sum_t \min(\rho_t A, \mathrm{clip}(\rho_t) "
        r"A)\Bigr] - \beta\, D_{\mathrm{KL}}(\pi_\theta \,\|\, \pi_{\mathrm{ref}})"
    ),
    claims=(
        Claim(
            "Without a KL penalty accuracy rises by .2 at least",
            "accuracy",
            arm="no KL",
            margin=0.2,
        ),
        Claim(
            "A KL penalty of .04 keeps variety within .5 of the base model's",
            "variety",
            arm="KL .04",
            than="base",
            margin=-0.5,
        ),
        Claim(
            "A KL penalty of .004, the paper's, keeps variety within .5 of the base model's",
            "variety",
            arm="KL .004",
            than="base",
            margin=-0.5,
        ),
        Claim(
            "A KL penalty of .04 keeps images cleaner than none",
            "blur",
            arm="KL .04",
            than="no KL",
            higher=False,
        ),
        Claim(
            "A KL penalty of .04 ends within .05 of the accuracy without one",
            "accuracy",
            arm="KL .04",
            than="no KL",
            margin=-0.05,
        ),
    ),
    remark=(
        "Without a penalty, what is left is one image for each prompt with smeared blocks "
        "that the reward counts all the same: reward hacking. A penalty of .004 is a slower "
        "fall and no middle way."
    ),
    arms={
        "base": untrained,
        "no KL": train,
        "KL .004": partial(train, beta=0.004),
        "KL .04": partial(train, beta=0.04),
    },
    prepare=start,
    columns=("accuracy", "variety", "blur"),
    draw=draw,
)

if __name__ == "__main__":
    run_script(__file__)
