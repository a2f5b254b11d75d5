"""Settings of ``assay train``: those of the learner, of the tasks, the model and the sampler."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, get_args

from .envs import EasyToHard, Prioritised, Sampler, Source, TargetRate
from .grpo import GRPOConfig, LoRA
from .sandbox.redaction import redacted_repr

Curriculum = Literal["uniform", "easy_to_hard", "target_rate", "prioritised"]
Precision = Literal["float32", "bfloat16"]
Sampling = Literal["transformers", "vllm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(GRPOConfig):
    """Settings of ``assay train``: those of GRPOConfig, and these.

    Attributes:
        env: id of the environment, such as ``assay/Arithmetic-v1``, or ``module:id``.
        env_args: arguments of the environment.
        levels: mix these values of one of the environment's arguments, ``{"digits": [1, 2, 3]}``.
            Where tasks never end, a curriculum chooses among them.
        data: where the environment's tasks are, if it reads any: a file, a folder, a hub name. Of
            several splits it takes ``train``.
        held_out_data: the same for the tasks of evaluation; of several splits it takes ``test``.
            By default the split ``test`` of ``data`` or of the environment, if it has one.
        held_out: how many tasks to evaluate on.
        curriculum: which tasks a step takes: ``uniform`` all in turn; ``easy_to_hard`` the
            easiest first; ``target_rate`` those solved about as often as ``curriculum_target``;
            ``prioritised`` those of which most is to be learned. See docs/environments.md.
        curriculum_steps: of ``easy_to_hard``: the step at which all tasks are in; ``None``
            for the last.
        curriculum_start: of ``easy_to_hard``: the share of tasks to begin with.
        curriculum_target: of ``target_rate``: the pass rate to look for.
        curriculum_width: of ``target_rate``: how far around it.
        curriculum_exponent: of ``prioritised``: 0 prefers none; the larger, the more the best.
        curriculum_floor: of ``target_rate`` and ``prioritised``: no task is drawn with less than
            this share of the largest weight.
        model: a transformers directory (weights and tokenizer), or the name of a model on the
            Hugging Face hub.
        device: where to train: ``cpu``, ``cuda``, ``cuda:1``.
        shard: under torchrun, cut weights, gradients and optimizer up between processes (FSDP2).
        dtype: of the weights. Less than ``float32`` loses small updates.
        autocast: compute in bfloat16, whatever the weights are; ``None`` does so on CUDA alone.
        gradient_checkpointing: compute each layer again backward, in place of keeping what it
            computed forward: slower, in less memory.
        lora_rank: train only adapters (LoRA) of this rank, 16 for example; 0 trains all weights.
        lora_alpha: the adapters' product is scaled by ``lora_alpha`` / ``lora_rank``.
        lora_targets: names of the linear layers that get adapters; ``all-linear`` for all but
            the head.
        engine: what samples the replies of training and evaluation.
        server: of ``vllm``: address of a running server of the model, such as
            ``http://127.0.0.1:8000``; it must read ``out_dir`` under the same path. ``None``
            starts one, with its log in ``out_dir/vllm.log``, and ends it with the run.
        vllm_executable: of ``vllm``, if it starts one: the command.
        server_dtype: of ``vllm``, if it starts one: of weights and computation; ``None`` for that
            in which the model computes.
        max_model_len: of ``vllm``, if it starts one: most tokens of a prompt and its reply;
            ``None`` for the model's own limit.
        out_dir: for checkpoints, metrics, the picture and ``config.json``.
        trackers: where the numbers go beside ``metrics.jsonl``: ``tensorboard``, ``wandb``,
            ``trackio``; ``None`` for TensorBoard, where it is installed.
        samples: groups of replies that are kept of a step, to be read; 0 for none.

    Raises:
        ValueError: a setting is out of its range, or does nothing beside the others.
    """

    env: str
    env_args: Mapping[str, Any] = field(default_factory=dict)
    levels: Mapping[str, tuple[Any, ...]] | None = None
    data: str | None = None
    held_out_data: str | None = None
    held_out: int = 200
    curriculum: Curriculum = "uniform"
    curriculum_steps: int | None = None
    curriculum_start: float = 0.1
    curriculum_target: float = 0.5
    curriculum_width: float = 0.15
    curriculum_exponent: float = 1.0
    curriculum_floor: float = 0.02
    model: str
    device: str = "cpu"
    shard: bool = False
    dtype: Precision = "float32"
    autocast: bool | None = None
    gradient_checkpointing: bool = False
    lora_rank: int = 0
    lora_alpha: float = 32.0
    lora_targets: str | tuple[str, ...] = "all-linear"
    engine: Sampling = "transformers"
    server: str | None = None
    vllm_executable: str = "vllm"
    server_dtype: Precision | None = None
    max_model_len: int | None = None
    out_dir: str = "runs/train"
    trackers: tuple[str, ...] | None = None
    samples: int = 3
    eval_every: int = 50
    save_every: int = 50

    def __post_init__(self) -> None:
        GRPOConfig.__post_init__(self)
        _check_curriculum(self)
        _check_tasks(self)
        _check_model(self)
        _check_engine(self)

    __repr__ = redacted_repr

    def learner(self) -> GRPOConfig:
        """The part that the learner reads."""
        return GRPOConfig(**{f.name: getattr(self, f.name) for f in fields(GRPOConfig)})

    def about(self) -> dict[str, Any]:
        """What the learner does not read, and what tells this run from others nevertheless."""
        learners = {f.name for f in fields(GRPOConfig)}
        return {k: v for k, v in self.to_json().items() if k not in {*learners, "out_dir"}}

    def bfloat16_products(self) -> bool:
        """Return ``autocast`` as it is on the device."""
        return self.device.startswith("cuda") if self.autocast is None else self.autocast

    def lora(self) -> LoRA | None:
        """The adapters to train, where only they are."""
        if not self.lora_rank:
            return None
        return LoRA(rank=self.lora_rank, alpha=self.lora_alpha, targets=self.lora_targets)

    def sampler(self, source: Source) -> Sampler | None:
        """What chooses tasks; None where they come in the environment's own order.

        Raises:
            ValueError: tasks tell no difficulty, or never come again.
        """
        seed = self.seed
        if self.curriculum != "uniform" and source.size is None and self.levels is None:
            raise ValueError(
                f"curriculum={self.curriculum!r} chooses among tasks that come again, and "
                f"{self.env} makes new ones for ever: let it choose among levels, such as "
                "--levels '{\"digits\": [1, 2, 3]}'"
            )
        if self.curriculum == "easy_to_hard":
            steps = self.curriculum_steps or max(1, self.steps)
            return EasyToHard(source, steps=steps, start=self.curriculum_start, seed=seed)
        floor = self.curriculum_floor
        if self.curriculum == "target_rate":
            target, width = self.curriculum_target, self.curriculum_width
            return TargetRate(source, target=target, width=width, floor=floor, seed=seed)
        if self.curriculum == "prioritised":
            exponent = self.curriculum_exponent
            return Prioritised(source, exponent=exponent, floor=floor, seed=seed)
        return None


# What may differ when a run is resumed, beside what the learner lets change.
_SERVER = ("vllm_executable", "server_dtype", "max_model_len")  # for one that is started here
_PLACE = ("out_dir", "model", "device", "shard", "trackers", "samples", "engine", "server")
MOVABLE = (*_PLACE, *_SERVER)

_READS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "easy_to_hard": ("curriculum_steps", "curriculum_start"),
    "target_rate": ("curriculum_target", "curriculum_width", "curriculum_floor"),
    "prioritised": ("curriculum_exponent", "curriculum_floor"),
}


def _check_curriculum(config: TrainConfig) -> None:
    words = get_args(Curriculum)
    if config.curriculum not in words:
        raise ValueError(f"curriculum must be one of {words}, got {config.curriculum!r}")
    for each in fields(TrainConfig):
        value = getattr(config, each.name)
        if not each.name.startswith("curriculum_") or value == each.default:
            continue
        if each.name not in _READS[config.curriculum]:
            readers = [name for name, reads in _READS.items() if each.name in reads]
            raise ValueError(
                f"{each.name}={value!r} has no effect with curriculum={config.curriculum!r}: leave "
                f"it at {each.default!r}, or set curriculum to {' or '.join(readers)}"
            )
    for name in ("curriculum_start", "curriculum_floor"):
        if not 0 < getattr(config, name) <= 1:
            raise ValueError(f"{name} must be in (0, 1], got {getattr(config, name)}")
    if not 0 < config.curriculum_target < 1:
        raise ValueError(f"curriculum_target must be in (0, 1), got {config.curriculum_target}")
    if config.curriculum_width <= 0:
        raise ValueError(f"curriculum_width must be above 0, got {config.curriculum_width}")
    if config.curriculum_exponent < 0:
        raise ValueError(
            f"curriculum_exponent must be at least 0, got {config.curriculum_exponent}"
        )
    if config.curriculum_steps is not None and config.curriculum_steps < 1:
        raise ValueError(f"curriculum_steps must be at least 1, got {config.curriculum_steps}")


def _check_tasks(config: TrainConfig) -> None:
    if config.held_out < 1:
        raise ValueError(
            f"held_out must be at least 1, got {config.held_out}: for no evaluation set "
            "eval_every to 0"
        )
    for name, default in (("held_out_data", None), ("eval_samples", 1), ("eval_temperature", None)):
        if not config.eval_every and getattr(config, name) != default:
            raise ValueError(
                f"{name}={getattr(config, name)!r} has no effect with eval_every=0, as nothing is "
                f"evaluated: leave it at {default}, or set eval_every above 0"
            )
    for name in set(config.levels or ()) & set(config.env_args):
        raise ValueError(f"env_args and levels both have {name}: give one of them")
    if "data" in config.env_args:
        raise ValueError("env_args has data: give it as data")


def _check_model(config: TrainConfig) -> None:
    if config.dtype not in get_args(Precision):
        raise ValueError(f"dtype must be one of {get_args(Precision)}, got {config.dtype!r}")
    if config.samples < 0:
        raise ValueError(f"samples must be at least 0, got {config.samples}")
    if config.lora_rank < 0:
        raise ValueError(f"lora_rank must be at least 0, got {config.lora_rank}: 0 is no LoRA")
    if config.lora_rank:
        config.lora()  # which looks to the rest
        return
    for name, default in (("lora_alpha", 32.0), ("lora_targets", "all-linear")):
        if getattr(config, name) != default:
            raise ValueError(
                f"{name}={getattr(config, name)!r} has no effect with lora_rank=0: set lora_rank, "
                f"16 for example, or leave it at {default!r}"
            )


def _check_engine(config: TrainConfig) -> None:
    if config.engine not in get_args(Sampling):
        raise ValueError(f"engine must be one of {get_args(Sampling)}, got {config.engine!r}")
    if config.server_dtype not in (None, *get_args(Precision)):
        raise ValueError(
            f"server_dtype must be one of {get_args(Precision)} or None, got "
            f"{config.server_dtype!r}"
        )
    started_here = config.engine == "vllm" and config.server is None
    for each in fields(TrainConfig):
        value = getattr(config, each.name)
        if value == each.default or started_here:
            continue
        if each.name in ("server", *_SERVER) and config.engine != "vllm":
            raise ValueError(
                f"{each.name}={value!r} has no effect with engine={config.engine!r}: set engine to "
                f"vllm, or leave {each.name} at {each.default!r}"
            )
        if each.name in _SERVER:
            raise ValueError(
                f"{each.name}={value!r} has no effect on a server that is running already: start "
                "that one so, or leave server at None"
            )
    if config.server is not None and not config.server.startswith(("http://", "https://")):
        raise ValueError(
            f"server must be an address such as 'http://127.0.0.1:8000', got {config.server!r}"
        )
    if config.max_model_len is not None and config.max_model_len <= config.max_new_tokens:
        raise ValueError(
            f"max_model_len={config.max_model_len} leaves no room for a prompt before "
            f"max_new_tokens={config.max_new_tokens}: raise it, or lower max_new_tokens"
        )
    if config.engine == "vllm" and config.eval_temperature is not None:
        raise ValueError(
            f"eval_temperature={config.eval_temperature} has no effect with engine='vllm', which "
            "evaluates as it trains: leave it at None"
        )
