"""Settings: :class:`Objective`, what is maximised, and :class:`GRPOConfig`, a whole run."""

from __future__ import annotations

import json
import math
import numbers
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints

Average = Literal["dapo", "grpo", "bnpo", "dr_grpo"]
Ratio = Literal["token", "sequence"]
Surrogate = Literal["clip", "gmpo", "cispo", "sapo"]
Estimator = Literal["k1", "k2", "k3"]
KLPlace = Literal["loss", "reward"]
Correction = Literal["none", "token_truncate", "token_mask", "sequence_truncate", "sequence_mask"]
Advantage = Literal[
    "group",
    "leave_one_out",
    "maxrl",
    "reinforce_pp",
    "reinforce_pp_baseline",
    "opo",
    "mo_grpo",
    "gdpo",
    "process",
    "reward",
]
Spread = Literal["population", "sample", "batch", "none"]
Schedule = Literal["constant", "linear", "cosine"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Objective:
    """All options of the loss and of the advantages.

    A field that the other choices leave unread must keep its default: a setting that does
    nothing is refused with the reason. Equations and sources: :mod:`assay.grpo.loss` and
    :mod:`assay.grpo.advantage`, and the table in docs/learner.md.

    Attributes:
        loss: how tokens are averaged, see :func:`~assay.grpo.loss.average_tokens`: ``dapo`` over
            all tokens, ``grpo`` within each reply first, ``dr_grpo`` over the longest reply's
            length; ``bnpo`` is ``dapo`` here.
        ratio: p / p_old of each ``token``, or the geometric mean over the reply
            (``sequence``, GSPO; its clip is about 3e-4 and its clip_high 4e-4).
        surrogate: what is made of ratio and advantage: ``clip`` (PPO), ``gmpo``, ``cispo``,
            ``sapo``; see :mod:`~assay.grpo.loss`.
        clip: of ``clip``: how far below 1 (and above) a ratio may usefully move, 1 for no
            bound below; of ``gmpo``: the same of the ratio's logarithm (its authors take 0.4).
        clip_high: how far above, where it differs ("clip-higher").
        dual_clip: of ``clip``: where the advantage is negative, the ratio counts for no more
            than this, which must be above 1 + clip_high. ``delta`` in TRL, ``clip_ratio_c``
            (3 by default) in verl: one and the same bound. ``None`` for none.
        off_policy_mask_threshold: replies whose mean log(p_old / p) is above this, in nats a token,
            lose the gradient of their negative advantages (DeepSeek-V3.2); TRL's name. ``None``
            for no such bound.
        cispo_cap: of ``cispo``: the most a ratio may weigh, itself and not its distance from
            1. TRL's ``epsilon_high``; 1 + ``clip_ratio_high`` in verl and the paper.
        cispo_floor: of ``cispo``: the least it may weigh; verl's 1 - ``clip_ratio_low``.
        sapo_temperature: of ``sapo``: how fast the gain saturates where A > 0.
        sapo_temperature_negative: the same where A <= 0.
        beta: weight of the KL penalty to the reference; 0 needs no reference.
        kl: the penalty's estimator, see :func:`~assay.grpo.loss.kl_estimate`.
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
            (``mask``), see :func:`~assay.grpo.loss.mismatch_weights`.
        correction_cap: the cap, at least 1.
        correction_floor: the same below, at most 1; 0 for none.
        advantage: how replies are compared, see :mod:`~assay.grpo.advantage`; ``reward``
            compares nothing and takes the reward itself (REINFORCE without a baseline), which
            with rewards of 1 and 0 is Online RFT (DeepSeekMath, section 5.2).
        advantage_std: advantages are divided by the ``population`` or ``sample`` standard
            deviation of their group, by the ``batch``'s, or by nothing (``none``).
        advantage_eps: added to that deviation, in the unit of a reward.
        reward_weights: of ``mo_grpo`` and ``gdpo``: weight of each named reward; ``None``
            for 1 each.
        hard_weight: what an advantage is multiplied by where the outcome it speaks for is rare in
            its group, see :func:`~assay.grpo.advantage.difficulty_weights` (GRPO-LEAD takes 1.5).
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
    off_policy_mask_threshold: float | None = None
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
        check(self, Objective, RULES, unread(self), _contradictions(self))

    @property
    def upper_clip(self) -> float:
        """``clip_high``, or ``clip`` if it is not set."""
        return self.clip if self.clip_high is None else self.clip_high

    @property
    def penalised(self) -> bool:
        """Whether the loss has a KL penalty, and so needs the reference."""
        return self.beta != 0 and self.kl_in == "loss"

    @property
    def weighs_difficulty(self) -> bool:
        """Whether advantages are weighed by the share of right replies."""
        return self.hard_weight != self.easy_weight


@dataclass(frozen=True, slots=True, kw_only=True)
class GRPOConfig(Objective):
    """Settings of a training run; those of the loss and the advantages are Objective's.

    Attributes:
        steps: rollouts to train on; each is followed by its updates.
        prompts_per_step: P, tasks of a rollout.
        group_size: G, replies to each task; at least 2.
        learning_rate: of AdamW, after the warm-up. The default suits a pretrained model; a tiny
            one made from nothing takes 3e-4.
        warmup_steps: steps over which it rises linearly. Without any, a few steps at full rate
            can drive all rewards to zero, where no gradient leads back.
        schedule: of the learning rate after the warm-up: ``constant``, or a ``linear`` or
            ``cosine`` decay to 0 after the last step.
        weight_decay: of AdamW.
        max_grad_norm: longer gradients are scaled down to this length.
        num_iterations: times each rollout is trained on, mu in the papers.
        minibatches: optimizer steps into which one pass over a rollout is cut.
        temperature: of sampling; log-probabilities are taken at the same.
        max_new_tokens: maximum tokens of a reply; the rest is cut off.
        max_prompt_tokens: tasks with a longer prompt are left out of training; 0 for no limit. A
            step then has fewer tasks, which ``prompts/too_long`` counts.
        chat_template_kwargs: given to the tokenizer's chat template, such as
            ``{"enable_thinking": False}``.
        rows_per_batch: replies decoded side by side.
        tokens_per_batch: padded tokens of one forward and backward pass. It changes memory and
            speed, not the gradient.
        rollout_chunks: parts in which the tasks of a rollout are played, in turn: one is sampled
            while environments judge and answer another. 0: as many as ``rows_per_batch`` cuts it
            into in any case. More of them hide slow verifiers, at the price of smaller batches.
        max_refills: dynamic sampling (DAPO, arXiv 2503.14476, section 3.2): rollouts that a step
            may take beyond its first, until it has ``prompts_per_step`` groups whose replies
            differ; 0 takes the groups as they come.
        max_staleness: steps by which rollouts may run ahead of training, on an engine that samples
            meanwhile; their log-probabilities stay the sampler's. At 0 rollouts and updates take
            turns.
        max_none_share: the run stops where more than this share of a rollout has no reward.
        max_rollout_s: the run stops if a rollout or an evaluation, verifiers included, takes more
            than so many seconds; 0 for no limit.
        max_mismatch: the run stops where the policy is further than this from the one that
            sampled, in nats a token, before any update; 0 for no bound.
        max_drift: the same after updates on the same rollout.
        alarm_patience: rollouts in a row with nothing to learn from after which the run stops;
            0 only warns.
        reference_every: steps after which the model of the KL penalty becomes the policy as it
            is then, again and again; 0 keeps the first.
        eval_every: steps between evaluations; 0 for never. They are on held-out tasks.
        eval_samples: replies to each held-out task, for pass@k; pass it on to ``held_out_tasks``.
        eval_temperature: of sampling there; ``temperature`` where it is ``None``, and 0 takes the
            most likely token.
        keep_best: keep the model with the best held-out reward in ``best/``.
        early_stop: evaluations in a row without a better held-out reward that end the run; 0 for
            never.
        save_every: steps between checkpoints; 0 for only at the end.
        keep_checkpoints: how many of the newest are kept.
        seed: of sampling and of minibatches.
        allow_test_split: train on a split that is for evaluation: test, validation, eval.
        allow_overlap: train on prompts that the held-out tasks have too.
        allow_sample: train on the few rows that the package ships to try an environment with.

    Raises:
        TypeError: a number or a switch is of another type.
        ValueError: a setting is out of its range.
    """

    steps: int = 300
    prompts_per_step: int = 64
    group_size: int = 8
    learning_rate: float = 1e-6
    warmup_steps: int = 10
    schedule: Schedule = "constant"
    weight_decay: float = 0.0
    max_grad_norm: float = 1.0
    num_iterations: int = 1
    minibatches: int = 1
    temperature: float = 1.0
    max_new_tokens: int = 256
    max_prompt_tokens: int = 0
    chat_template_kwargs: Mapping[str, Any] | None = None
    rows_per_batch: int = 512
    tokens_per_batch: int = 16384
    rollout_chunks: int = 0
    max_refills: int = 0
    max_staleness: int = 0
    max_none_share: float = 0.5
    max_rollout_s: float = 3600.0
    max_mismatch: float = 0.02
    max_drift: float = 1.0
    alarm_patience: int = 10
    reference_every: int = 0
    eval_every: int = 0
    eval_samples: int = 1
    eval_temperature: float | None = None
    keep_best: bool = False
    early_stop: int = 0
    save_every: int = 0
    keep_checkpoints: int = 2
    seed: int = 0
    allow_test_split: bool = False
    allow_overlap: bool = False
    allow_sample: bool = False

    def __post_init__(self) -> None:
        check(self, GRPOConfig, RULES, unread(self), contradictions(self))

    def rate(self, step: int) -> float:
        """Return the learning rate of a step, counted from 1."""
        rate = self.learning_rate * min(1.0, step / max(1, self.warmup_steps))
        if self.schedule == "constant" or step <= self.warmup_steps:
            return rate
        left = (self.steps + 1 - step) / (self.steps + 1 - self.warmup_steps)
        return rate * (left if self.schedule == "linear" else (1 - math.cos(math.pi * left)) / 2)

    def to_json(self) -> dict[str, Any]:
        """Return the settings as plain JSON values."""
        return asdict(self)


Rule = tuple[str, Callable[[Any], bool]]
Unread = tuple[Sequence[str], str, str]
"""Names of settings that nothing reads, beside what, and the remedy."""


def least(number: float) -> Rule:
    """Return the rule that a number is not below another."""
    return f"at least {number}", lambda v: v >= number


def _weights(value: Any) -> bool:
    numeric = isinstance(value, Mapping) and all(isinstance(w, int | float) for w in value.values())
    return numeric and all(map(math.isfinite, value.values()))


def _json_object(value: Any) -> bool:
    try:
        json.dumps(value)
    except (TypeError, ValueError):
        return False
    return isinstance(value, Mapping)


ABOVE_0: Rule = "above 0", lambda v: v > 0
_ANY: Rule = "anything", lambda v: True
_SHARE: Rule = "in [0, 1]", lambda v: 0 <= v <= 1

# Of what is not None. Other numbers must be at least 0.
RULES: dict[str, Rule] = {
    # R1's epsilon of 10 bounds nothing from below, as no ratio is under 0: that is clip=1.
    "clip": ("in (0, 1], where 1 is no bound below; clip_high may be larger", lambda v: 0 < v <= 1),
    "top_entropy": ("in (0, 1]", lambda v: 0 < v <= 1),
    "learning_rate": ("above 0 and at most 1", lambda v: 0 < v <= 1),
    "reward_weights": ("None or a finite number for each name", _weights),
    "chat_template_kwargs": ("None or a dict of JSON values", _json_object),
    "group_size": least(2),
    "seed": _ANY,
    **dict.fromkeys(("clip_high", "temperature", "max_grad_norm"), ABOVE_0),
    **dict.fromkeys(("sapo_temperature", "sapo_temperature_negative"), ABOVE_0),
    **dict.fromkeys(("hard_weight", "easy_weight", "difficulty_slope"), ABOVE_0),
    **dict.fromkeys(("cispo_floor", "correction_floor", "difficulty_middle"), _SHARE),
    "max_none_share": _SHARE,
    **dict.fromkeys(("cispo_cap", "correction_cap"), least(1)),
    **dict.fromkeys(("prompts_per_step", "num_iterations", "minibatches"), least(1)),
    **dict.fromkeys(("max_new_tokens", "rows_per_batch", "tokens_per_batch"), least(1)),
    **dict.fromkeys(("eval_samples", "keep_checkpoints"), least(1)),
}
# A bound that is infinite is none.
_MAY_BE_INFINITE = ("max_grad_norm", "cispo_cap", "correction_cap", "clip_high", "dual_clip")
_REASONS = {
    "group_size": ": a reply is compared with the others to its prompt, and alone it has no "
    "advantage. 8 is a good start",
    "learning_rate": ": AdamW moves every weight by about so much. 1e-6 is usual",
    "temperature": ": at 0 the replies of a group are equal, and teach nothing",
    "cispo_cap": ": it bounds the ratio itself",
}
_SPREADS = {
    "group": get_args(Spread),
    "process": ("population", "sample", "none"),
    "mo_grpo": ("population", "sample"),
    "gdpo": ("population", "sample"),
}


def unread(o: Objective) -> Iterator[Unread]:
    """Yield the settings that the others leave unread."""
    surrogate, advantage = f"surrogate={o.surrogate!r}", f"advantage={o.advantage!r}"
    if o.surrogate == "cispo":
        yield ("clip", "clip_high"), surrogate, "use cispo_cap and cispo_floor"
    else:
        yield ("cispo_cap", "cispo_floor"), surrogate, "set surrogate='cispo'"
    if o.surrogate == "sapo":
        yield ("clip", "clip_high"), surrogate, "use sapo_temperature"
    else:
        names = ("sapo_temperature", "sapo_temperature_negative")
        yield names, surrogate, "set surrogate='sapo'"
    if o.surrogate != "clip":
        yield ("dual_clip",), surrogate, "set surrogate='clip'"
    if not o.beta:
        remedy = "set beta above 0, as DeepSeekMath's 0.04"
        yield ("kl", "kl_in", "kl_correction"), "beta=0", remedy
    if o.correction == "none":
        remedy = "set correction='token_truncate' or another"
        yield ("correction_cap", "correction_floor"), "correction='none'", remedy
    if o.advantage not in _SPREADS:
        yield ("advantage_std",), advantage, f"set advantage to one of {tuple(_SPREADS)}"
    if o.advantage not in ("mo_grpo", "gdpo"):
        remedy = "set advantage='mo_grpo' or 'gdpo', or weigh the rewards in the environment"
        yield ("reward_weights",), advantage, remedy
    if not o.weighs_difficulty:
        remedy = "set easy_weight=0.4 and hard_weight=1.5"
        yield ("difficulty_middle", "difficulty_slope"), "hard_weight=easy_weight", remedy


def _contradictions(o: Objective) -> Iterator[str]:
    if o.dual_clip is not None and o.dual_clip <= 1 + o.upper_clip:
        yield (
            f"dual_clip must be above 1 + clip_high ({1 + o.upper_clip:g}), got {o.dual_clip!r}: "
            "below, it would cut into the range that the clip leaves free"
        )
    if o.surrogate == "gmpo" and o.ratio == "sequence":
        yield (
            "surrogate='gmpo' takes the geometric mean of clipped token ratios itself: "
            "leave ratio='token', or set surrogate='clip' for GSPO"
        )
    if o.kl_in == "reward" and o.kl_correction:
        yield (
            "kl_correction=True mends the gradient of a penalty in the loss; with "
            "kl_in='reward' the penalty has none: leave kl_correction=False"
        )
    if o.kl_in == "reward" and o.advantage in ("mo_grpo", "gdpo", "process"):
        yield (
            f"kl_in='reward' takes the penalty off a reply's one total reward, and "
            f"advantage={o.advantage!r} does not read it: set kl_in='loss'"
        )
    if o.beta and o.kl_in == "reward" and o.advantage == "maxrl":
        yield (
            "advantage='maxrl' divides by the group's mean reward, and kl_in='reward' makes "
            "rewards negative: set kl_in='loss'"
        )
    if o.penalised and o.kl == "k1" and not o.kl_correction:
        yield (
            "kl='k1' in the loss has a gradient of mean zero, whatever the reference: set "
            "kl='k2' or 'k3', kl_in='reward' or kl_correction=True"
        )
    spreads = _SPREADS.get(o.advantage, get_args(Spread))
    if o.advantage_std not in spreads:
        yield (
            f"advantage_std must be one of {spreads} with advantage={o.advantage!r}, "
            f"got {o.advantage_std!r}"
        )
    if o.hard_weight == o.easy_weight != 1:
        yield f"easy_weight must be 1 where hard_weight is the same, got {o.easy_weight!r}"
    if o.weighs_difficulty and o.advantage == "process":
        yield (
            f"hard_weight={o.hard_weight!r} weighs replies that are right or wrong, and "
            "advantage='process' compares steps: leave it and easy_weight at 1.0"
        )


def contradictions(o: GRPOConfig) -> Iterator[str]:
    """Yield what in the settings of a run contradicts something else."""
    yield from _contradictions(o)
    for name in ("minibatches", "rollout_chunks"):
        if (value := getattr(o, name)) > o.prompts_per_step:
            yield f"{name} must be at most prompts_per_step ({o.prompts_per_step}), got {value}"
    for name in ("keep_best", "early_stop"):
        if getattr(o, name) and not o.eval_every:
            yield f"{name} needs evaluations, and eval_every is 0: set eval_every above 0"
    if o.reference_every and not o.beta:
        yield (
            "reference_every refreshes the model of the KL penalty, and beta is 0: set beta "
            "above 0, or leave reference_every at 0"
        )
    if o.eval_temperature == 0 and o.eval_samples > 1:
        yield (
            "eval_samples above 1 asks for several replies to a task, and eval_temperature=0 "
            "gives the same one each time: set one of them otherwise"
        )


_KINDS: dict[Any, type] = {bool: bool, int: numbers.Integral, float: numbers.Real}


def check(
    o: Objective,
    settings: type[Objective],
    rules: Mapping[str, Rule],
    unread: Iterable[Unread],
    contradictions: Iterable[str],
) -> None:
    """Check types and ranges, then that each setting is read and none contradicts another.

    Args:
        o: the settings, of a class that may add others.
        settings: the class whose fields are checked.
        rules: of its fields, by name.
        unread: settings that nothing reads.
        contradictions: messages about settings that exclude each other.

    Raises:
        TypeError: a number or a switch is of another type.
        ValueError: another fault, with the remedy.
    """
    for name, hint in get_type_hints(settings).items():
        value = getattr(o, name)
        kinds = get_args(hint) if get_origin(hint) in (Union, UnionType) else (hint,)
        if value is None and NoneType in kinds:
            continue
        kind = next((kind for kind in kinds if kind in _KINDS), None)
        if kind is not None and (
            not isinstance(value, _KINDS[kind]) or isinstance(value, bool) is not (kind is bool)
        ):
            raise TypeError(f"{name} must be of type {kind.__name__}, got {value!r}")
        if kind in (int, float) and type(value) not in (int, float):  # numpy's: JSON takes none
            value = int(value) if isinstance(value, numbers.Integral) else float(value)
            object.__setattr__(o, name, value)
        words = next((get_args(kind) for kind in kinds if get_origin(kind) is Literal), ())
        usual = (f"one of {words}", words.__contains__) if words else _ANY
        rule, holds = rules.get(name, least(0) if kind in (int, float) else usual)
        if kind is float and not (
            math.isfinite(value) or (value == math.inf and name in _MAY_BE_INFINITE)
        ):
            raise ValueError(f"{name} must be finite, got {value!r}")
        if not holds(value):
            raise ValueError(f"{name} must be {rule}, got {value!r}{_REASONS.get(name, '')}")
    defaults = {field.name: field.default for field in fields(o)}
    for names, beside, remedy in unread:
        for name in names:
            if (value := getattr(o, name)) != defaults[name]:
                raise ValueError(
                    f"{name}={value!r} has no effect with {beside}: leave it at "
                    f"{defaults[name]!r}, or {remedy}"
                )
    for message in contradictions:
        raise ValueError(message)
