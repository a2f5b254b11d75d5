"""What is maximised: one dataclass for the GRPO family, with its contradictions refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, Literal, get_args

Average = Literal["dapo", "grpo", "bnpo", "dr_grpo"]
Ratio = Literal["token", "sequence"]
Surrogate = Literal["clip", "gmpo", "cispo", "sapo"]
Estimator = Literal["k1", "k2", "k3"]
KLPlace = Literal["loss", "reward"]
Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
Advantage = Literal[
    "group",
    "leave_one_out",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "opo",
    "mo_grpo",
    "gdpo",
    "process",
    "reward",
]
Spread = Literal["population", "sample", "batch", "none"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """All options of the loss and of the advantages.

    A field that the other choices leave unread must keep its default: a setting that does
    nothing is refused with the reason. Equations and sources: :mod:`assay.grpo.loss` and
    :mod:`assay.grpo.advantage`, and the table in docs/learner.md.

    Attributes:
        loss: how tokens are averaged, see :func:`~assay.grpo.average_tokens`: ``dapo`` over all
            tokens, ``grpo`` within each reply first, ``dr_grpo`` over the longest reply's
            length; ``bnpo`` is ``dapo`` here.
        ratio: p / p_old of each ``token``, or the geometric mean over the reply
            (``sequence``, GSPO; its clip is about 3e-4 and its clip_high 4e-4).
        surrogate: what is made of ratio and advantage: ``clip`` (PPO), ``gmpo``, ``cispo``,
            ``sapo``; see :mod:`surrogate`.
        clip: of ``clip``: how far below 1 (and above) a ratio may usefully move, 1 for no
            bound below; of ``gmpo``: the same of the ratio's logarithm (its authors take 0.4).
        clip_high: how far above, where it differs ("clip-higher").
        dual_clip: of ``clip``: where the advantage is negative, the ratio counts for no more
            than this, which must be above 1 + clip_high. ``delta`` in TRL, ``clip_ratio_c``
            (3 by default) in verl: one and the same bound. ``None`` for none.
        cispo_cap: of ``cispo``: the most a ratio may weigh, itself and not its distance from
            1. TRL's ``epsilon_high``; 1 + ``clip_ratio_high`` in verl and the paper.
        cispo_floor: of ``cispo``: the least it may weigh; verl's 1 - ``clip_ratio_low``.
        sapo_temperature: of ``sapo``: how fast the gain saturates where A > 0.
        sapo_temperature_negative: the same where A <= 0.
        beta: weight of the KL penalty to the reference; 0 needs no reference.
        kl: the penalty's estimator, see :func:`~assay.grpo.kl_estimate`.
        kl_in: whether the penalty is part of the ``loss``, or is taken off the ``reward``
            before advantages are computed.
        kl_correction: multiply the penalty in the loss by the token's ratio, so that its
            gradient is the KL divergence's (DeepSeek-V3.2; ``use_bias_correction_kl`` in TRL).
        entropy_bonus: weight of the mean entropy of the policy, which is added.
        top_entropy: share of a step's tokens, those of highest entropy, that have an
            advantage; 1 for all.
        mask_truncated: the tokens of replies that were cut off leave the mask (DAPO, section
            3.4); their rewards count for the others' advantages. To pay less for long
            replies instead: ``assay.verifiers.SoftOverlong``.
        correction: weigh tokens by p_trainer / p_sampler at the time of sampling, of each
            token or the whole reply, cut at the cap (``truncate``) or left out beyond it
            (``mask``), see :func:`~assay.grpo.mismatch_weights`.
        correction_cap: the cap, at least 1.
        correction_floor: the same below, at most 1; 0 for none.
        advantage: how replies are compared, see the functions of :mod:`advantage`; ``reward``
            compares nothing and takes the reward itself (REINFORCE without a baseline), which
            with rewards of 1 and 0 is Online RFT (DeepSeekMath, section 5.2).
        advantage_std: advantages are divided by the ``population`` or ``sample`` standard
            deviation of their group, by the ``batch``'s, or by nothing (``none``).
        advantage_eps: added to that deviation, in the unit of a reward.
        reward_weights: of ``mo_grpo`` and ``gdpo``: weight of each named reward; ``None``
            for 1 each.
        hard_weight: what an advantage is multiplied by where the outcome it speaks for is rare in
            its group, see :func:`~assay.grpo.difficulty_weights` (GRPO-LEAD takes 1.5).
        easy_weight: the same where it is common (GRPO-LEAD takes 0.4); equal to ``hard_weight``
            for the same weight everywhere.
        difficulty_middle: share of the group that is halfway between the two.
        difficulty_slope: how fast the weight changes there.

    Raises:
        ValueError: a value is out of its range, or has no effect beside the others.
    """

    loss: Average = "dapo"
    ratio: Ratio = "token"
    surrogate: Surrogate = "clip"
    clip: float = 0.2
    clip_high: float | None = None
    dual_clip: float | None = None
    cispo_cap: float = 5.0
    cispo_floor: float = 0.0
    sapo_temperature: float = 1.0
    sapo_temperature_negative: float = 1.05
    beta: float = 0.0
    kl: Estimator = "k3"
    kl_in: KLPlace = "loss"
    kl_correction: bool = False
    entropy_bonus: float = 0.0
    top_entropy: float = 1.0
    mask_truncated: bool = False
    correction: Correction = "none"
    correction_cap: float = 3.0
    correction_floor: float = 0.0
    advantage: Advantage = "group"
    advantage_std: Spread = "population"
    advantage_eps: float = 1e-6
    reward_weights: Mapping[str, float] | None = None
    hard_weight: float = 1.0
    easy_weight: float = 1.0
    difficulty_middle: float = 0.75
    difficulty_slope: float = 10.0

    def __post_init__(self) -> None:
        # Called by its class where it is inherited: with slots, super() finds the wrong class.
        _check_ranges(self)
        _check_surrogate(self)
        _check_kl(self)
        _check_correction(self)
        _check_advantage(self)
        _check_difficulty(self)

    @property
    def upper_clip(self) -> float:
        """``clip_high``, or ``clip`` where it is not set."""
        return self.clip if self.clip_high is None else self.clip_high

    @property
    def penalised(self) -> bool:
        """Whether the loss has a KL penalty, and so needs the reference."""
        return self.beta != 0 and self.kl_in == "loss"

    @property
    def weighs_difficulty(self) -> bool:
        """Whether advantages are weighed by the share of right replies."""
        return self.hard_weight != self.easy_weight


_WORDS: dict[str, tuple[str, ...]] = {
    "loss": get_args(Average),
    "ratio": get_args(Ratio),
    "surrogate": get_args(Surrogate),
    "kl": get_args(Estimator),
    "kl_in": get_args(KLPlace),
    "correction": get_args(Correction),
    "advantage": get_args(Advantage),
    "advantage_std": get_args(Spread),
}


def _check_ranges(o: Objective) -> None:
    for name, words in _WORDS.items():
        _require(o, name, getattr(o, name) in words, f"one of {words}")
    # R1's epsilon of 10 bounds nothing from below, as no ratio is under 0: that is clip=1.
    below = "in (0, 1], where 1 is no bound below; clip_high may be larger"
    _require(o, "clip", 0 < o.clip <= 1, below)
    _require(o, "clip_high", o.clip_high is None or o.clip_high > 0, "above 0")
    _require(o, "cispo_floor", 0 <= o.cispo_floor <= 1, "in [0, 1]")
    _require(o, "cispo_cap", o.cispo_cap >= 1, "at least 1: it bounds the ratio itself")
    for name in ("sapo_temperature", "sapo_temperature_negative"):
        _require(o, name, getattr(o, name) > 0, "above 0")
    for name in ("beta", "entropy_bonus", "advantage_eps"):
        _require(o, name, getattr(o, name) >= 0, "at least 0")
    _require(o, "top_entropy", 0 < o.top_entropy <= 1, "in (0, 1]")
    _require(o, "correction_cap", o.correction_cap >= 1, "at least 1")
    _require(o, "correction_floor", 0 <= o.correction_floor <= 1, "in [0, 1]")


def _check_surrogate(o: Objective) -> None:
    if o.surrogate in ("cispo", "sapo"):
        instead = "cispo_cap and cispo_floor" if o.surrogate == "cispo" else "sapo_temperature"
        _unread(o, ("clip", "clip_high"), f"surrogate={o.surrogate!r}", f"use {instead}")
    if o.surrogate != "cispo":
        names = ("cispo_cap", "cispo_floor")
        _unread(o, names, f"surrogate={o.surrogate!r}", "set surrogate='cispo'")
    if o.surrogate != "sapo":
        names = ("sapo_temperature", "sapo_temperature_negative")
        _unread(o, names, f"surrogate={o.surrogate!r}", "set surrogate='sapo'")
    if o.surrogate != "clip":
        _unread(o, ("dual_clip",), f"surrogate={o.surrogate!r}", "set surrogate='clip'")
    if o.dual_clip is not None and o.dual_clip <= 1 + o.upper_clip:
        raise ValueError(
            f"dual_clip must be above 1 + clip_high ({1 + o.upper_clip:g}), got {o.dual_clip!r}: "
            "below, it would cut into the range that the clip leaves free"
        )
    if o.surrogate == "gmpo" and o.ratio == "sequence":
        raise ValueError(
            "surrogate='gmpo' takes the geometric mean of clipped token ratios itself: "
            "leave ratio='token', or set surrogate='clip' for GSPO"
        )


def _check_kl(o: Objective) -> None:
    if not o.beta:
        names = ("kl", "kl_in", "kl_correction")
        _unread(o, names, "beta=0", "set beta above 0, as DeepSeekMath's 0.04")
    elif o.kl_in == "reward":
        if o.kl_correction:
            raise ValueError(
                "kl_correction=True mends the gradient of a penalty in the loss; with "
                "kl_in='reward' the penalty has none: leave kl_correction=False"
            )
        if o.advantage in ("mo_grpo", "gdpo", "process"):
            raise ValueError(
                f"kl_in='reward' takes the penalty off a reply's one total reward, and "
                f"advantage={o.advantage!r} does not read it: set kl_in='loss'"
            )
    elif o.kl == "k1" and not o.kl_correction:
        raise ValueError(
            "kl='k1' in the loss has a gradient of mean zero, whatever the reference: set "
            "kl='k2' or 'k3', kl_in='reward' or kl_correction=True"
        )


def _check_correction(o: Objective) -> None:
    if o.correction == "none":
        names = ("correction_cap", "correction_floor")
        _unread(o, names, "correction='none'", "set correction='token_truncate' or another")


def _check_advantage(o: Objective) -> None:
    allowed: dict[str, tuple[str, ...]] = {
        "group": get_args(Spread),
        "process": ("population", "sample", "none"),
        "mo_grpo": ("population", "sample"),
        "gdpo": ("population", "sample"),
    }
    spreads = allowed.get(o.advantage)
    if spreads is None:
        _unread(o, ("advantage_std",), f"advantage={o.advantage!r}", "which fixes its own")
    elif o.advantage_std not in spreads:
        raise ValueError(
            f"advantage_std must be one of {spreads} with advantage={o.advantage!r}, "
            f"got {o.advantage_std!r}"
        )
    if o.advantage not in ("mo_grpo", "gdpo"):
        remedy = "set advantage='mo_grpo' or 'gdpo', or weigh the rewards in the environment"
        _unread(o, ("reward_weights",), f"advantage={o.advantage!r}", remedy)


def _check_difficulty(o: Objective) -> None:
    for name in ("hard_weight", "easy_weight", "difficulty_slope"):
        _require(o, name, getattr(o, name) > 0, "above 0")
    _require(o, "difficulty_middle", 0 <= o.difficulty_middle <= 1, "in [0, 1]")
    if not o.weighs_difficulty:
        _require(o, "easy_weight", o.easy_weight == 1, "1 where hard_weight is the same")
        names = ("difficulty_middle", "difficulty_slope")
        _unread(o, names, "hard_weight=easy_weight", "set easy_weight=0.4 and hard_weight=1.5")
    elif o.advantage == "process":
        raise ValueError(
            f"hard_weight={o.hard_weight!r} weighs replies that are right or wrong, and "
            "advantage='process' compares steps: leave it and easy_weight at 1.0"
        )


_DEFAULTS: dict[str, Any] = {field.name: field.default for field in fields(Objective)}


def _unread(o: Objective, names: tuple[str, ...], beside: str, remedy: str) -> None:
    for name in names:
        if getattr(o, name) != _DEFAULTS[name]:
            raise ValueError(
                f"{name}={getattr(o, name)!r} has no effect with {beside}: leave it at "
                f"{_DEFAULTS[name]!r}, or {remedy}"
            )


def _require(o: Objective, name: str, holds: bool, rule: str) -> None:
    if not holds:
        raise ValueError(f"{name} must be {rule}, got {getattr(o, name)!r}")
