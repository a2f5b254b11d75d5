"""Settings of ``assay train``: those of the learner, of the tasks, the model and the sampler."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, Literal

from .envs import EasyToHard, Prioritised, Sampler, Source, TargetRate
from .grpo.config import (
    ABOVE_0,
    RULES,
    GRPOConfig,
    Rule,
    Unread,
    check,
    contradictions,
    least,
    unread,
)
from .sandbox.redaction import redacted_repr

if TYPE_CHECKING:
    from .grpo import LoRA

Curriculum = Literal["uniform", "easy_to_hard", "target_rate", "prioritised"]
Precision = Literal["float32", "bfloat16"]
Sampling = Literal["transformers", "vllm"]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainConfig(GRPOConfig):
    """Settings of ``assay train``: those of GRPOConfig, and these.

    Attributes:
        env: environment id, such as ``assay/Arithmetic-v1``, or ``module:id``.
        env_args: arguments of the environment.
        levels: mix these values of one of the environment's arguments, ``{"digits": [1, 2, 3]}``.
            Where tasks never end, a curriculum chooses among them.
        data: the environment's data: a file, a folder, a hub name. Of several splits it takes
            ``train``.
        held_out_data: the same for the tasks of evaluation; of several splits it takes ``test``.
            By default the split ``test`` of ``data`` or of the environment, if it has one.
        held_out: how many tasks to evaluate on.
        agent: a program that plays the tasks, as a shell would split it: it reads the prompt from
            stdin or as ``{prompt}`` and asks the model at ``OPENAI_BASE_URL``. See docs/gateway.md.
        unsafe_agent: the program runs as a process of this machine, isolated from nothing; without
            it, in a session of the sandbox, from which only the model can be reached.
        agent_backend: of that sandbox: ``docker``, which is the default, or ``bwrap``.
        agent_image: of that sandbox; ``None`` for that of ``assay sandbox build shell``.
        agent_memory_mib: memory of a program in the sandbox, MiB.
        agent_file: a file or folder that a program finds in its working directory.
        agent_answer: file that is judged, in the program's working directory; ``None`` for the
            model's last message.
        agent_time_s: seconds that the program may run, without those it waits for the model.
        agent_turns: most replies of the model in an episode.
        agents_at_once: programs that run side by side.
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
        model: transformers directory, or hub name; a folder with weights and tokenizer, or a model
            of the Hugging Face hub.
        device: ``cpu``, ``cuda``, ``cuda:1``; ``auto`` for a GPU if there is one.
        shard: under torchrun, cut weights, gradients and optimizer up between processes (FSDP2).
        dtype: of the weights. Less than ``float32`` loses small updates.
        autocast: compute in bfloat16, whatever the weights are; ``None`` does so on CUDA alone.
        gradient_checkpointing: compute each layer again backward, in place of keeping what it
            computed forward: slower, in less memory; ``None`` does so on an accelerator for a
            model of a billion parameters or more.
        lora_rank: rank of adapters (LoRA); only they are trained; 0 trains all weights.
        lora_alpha: the adapters' product is scaled by ``lora_alpha`` / ``lora_rank``.
        lora_targets: names of the linear layers that get adapters; ``all-linear`` for all but
            the head.
        engine: what samples: ``transformers`` or ``vllm``; for training and evaluation.
        server: of ``vllm``: address of a running server of the model, such as
            ``http://127.0.0.1:8000``; it must read ``out_dir`` under the same path. ``None``
            starts one, with its log in ``out_dir/vllm.log``, and ends it with the run.
        vllm_executable: of ``vllm``, if it starts one: the command.
        server_dtype: of ``vllm``, if it starts one: of weights and computation; ``None`` for that
            in which the model computes.
        max_model_len: of ``vllm``, if it starts one: most tokens of a prompt and its reply;
            ``None`` for the model's own limit.
        server_options: of ``vllm``, if it starts one: more options of ``vllm serve``, such as
            ``--gpu-memory-utilization 0.5``.
        server_sleep: of ``vllm``: free the server's GPU memory while the model is trained, for one
            GPU for both. A running server must have been started with ``--enable-sleep-mode``.
        sync_dir: of ``vllm``: folder in which weights are passed on, of this run alone, such as
            ``/dev/shm/my-run``, which is memory and fastest; ``None`` for ``out_dir/vllm``.
        out_dir: the run's directory; checkpoints, metrics, the picture and ``config.json``.
        trackers: where the numbers go beside ``metrics.jsonl``: ``tensorboard``, ``wandb``,
            ``trackio``; ``None`` for TensorBoard, if it is installed.
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
    agent: str | None = None
    unsafe_agent: bool = False
    agent_backend: Literal["docker", "bwrap"] | None = None
    agent_image: str | None = None
    agent_memory_mib: int = 1024
    agent_file: str | None = None
    agent_answer: str | None = None
    agent_time_s: float = 600.0
    agent_turns: int = 50
    agents_at_once: int = 16
    curriculum: Curriculum = "uniform"
    curriculum_steps: int | None = None
    curriculum_start: float = 0.1
    curriculum_target: float = 0.5
    curriculum_width: float = 0.15
    curriculum_exponent: float = 1.0
    curriculum_floor: float = 0.02
    model: str
    device: str = "auto"
    shard: bool = False
    dtype: Precision = "float32"
    autocast: bool | None = None
    gradient_checkpointing: bool | None = None
    lora_rank: int = 0
    lora_alpha: float = 32.0
    lora_targets: str | tuple[str, ...] = "all-linear"
    engine: Sampling = "transformers"
    server: str | None = None
    vllm_executable: str = "vllm"
    server_dtype: Precision | None = None
    max_model_len: int | None = None
    server_options: str = ""
    server_sleep: bool = False
    sync_dir: str | None = None
    out_dir: str = "runs/train"
    trackers: tuple[str, ...] | None = None
    samples: int = 3
    eval_every: int = 50
    save_every: int = 50

    def __post_init__(self) -> None:
        check(self, TrainConfig, RULES | _RULES, _unread(self), _contradictions(self))
        self.lora()  # which validates its settings

    __repr__ = redacted_repr

    def learner(self) -> GRPOConfig:
        """Return the settings of the learner."""
        return GRPOConfig(**{f.name: getattr(self, f.name) for f in fields(GRPOConfig)})

    def about(self) -> dict[str, Any]:
        """Return the settings that the learner does not read; they identify the run too."""
        learners = {f.name for f in fields(GRPOConfig)}
        return {k: v for k, v in self.to_json().items() if k not in {*learners, "out_dir"}}

    def lora(self) -> LoRA | None:
        """Return the adapters to train, or None to train all weights."""
        if not self.lora_rank:
            return None
        from .grpo import LoRA

        return LoRA(rank=self.lora_rank, alpha=self.lora_alpha, targets=self.lora_targets)

    def sampler(self, source: Source) -> Sampler | None:
        """Return the sampler of tasks; None for the environment's own order.

        Raises:
            ValueError: tasks have no difficulty, or are never repeated.
        """
        seed = self.seed
        if self.curriculum != "uniform" and source.size is None and self.levels is None:
            raise ValueError(
                f"curriculum={self.curriculum!r} chooses among tasks that are repeated, and "
                f"{self.env} generates new ones without end: let it choose among levels, such as "
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


# Of a server that is started here.
_SERVER = ("vllm_executable", "server_dtype", "max_model_len", "server_options")
_OF_VLLM = ("server", "server_sleep", "sync_dir", *_SERVER)
_PLACE = ("out_dir", "model", "device", "shard", "trackers", "samples", "engine")
# Settings that may change when a run is resumed, besides those that the learner lets change.
MOVABLE = (*_PLACE, *_OF_VLLM)
_SANDBOX = ("agent_backend", "agent_image", "agent_memory_mib")

_READS: dict[str, tuple[str, ...]] = {
    "uniform": (),
    "easy_to_hard": ("curriculum_steps", "curriculum_start"),
    "target_rate": ("curriculum_target", "curriculum_width", "curriculum_floor"),
    "prioritised": ("curriculum_exponent", "curriculum_floor"),
}
"""The settings that each curriculum reads."""

_RULES: dict[str, Rule] = {
    "server": (
        "an address such as 'http://127.0.0.1:8000'",
        lambda url: url.startswith(("http://", "https://")),
    ),
    **dict.fromkeys(("curriculum_start", "curriculum_floor"), ("in (0, 1]", lambda v: 0 < v <= 1)),
    "curriculum_target": ("in (0, 1)", lambda rate: 0 < rate < 1),
    **dict.fromkeys(("curriculum_width", "agent_time_s"), ABOVE_0),
    **dict.fromkeys(("curriculum_steps", "agent_memory_mib"), least(1)),
    **dict.fromkeys(("agent_turns", "agents_at_once"), least(1)),
    "held_out": ("at least 1 (for no evaluation set eval_every to 0)", lambda tasks: tasks >= 1),
}


def _unread(config: TrainConfig) -> Iterator[Unread]:
    yield from unread(config)
    for each in fields(TrainConfig):
        readers = [curriculum for curriculum, names in _READS.items() if each.name in names]
        if readers and config.curriculum not in readers:
            remedy = f"set curriculum to {' or '.join(readers)}"
            yield (each.name,), f"curriculum={config.curriculum!r}", remedy
    if config.agent is None:
        of_agents = ("agent_file", "agent_answer", "agent_time_s", "agent_turns", "agents_at_once")
        yield ("unsafe_agent", *_SANDBOX, *of_agents), "no agent", "give agent"
    elif config.unsafe_agent:
        yield _SANDBOX, "unsafe_agent", "leave out unsafe_agent"
    if not config.eval_every:
        names = ("held_out_data", "eval_samples", "eval_temperature")
        yield names, "eval_every=0, as nothing is evaluated", "set eval_every above 0"
    if not config.lora_rank:
        yield ("lora_alpha", "lora_targets"), "lora_rank=0", "set lora_rank, 16 for example"
    if config.engine != "vllm":
        yield _OF_VLLM, f"engine={config.engine!r}", "set engine to vllm"
    elif config.server is not None:
        yield _SERVER, "a server that is running already", "start that server so"


def _contradictions(config: TrainConfig) -> Iterator[str]:
    yield from contradictions(config)
    for name in set(config.levels or ()) & set(config.env_args):
        yield f"env_args and levels both have {name}: give one of them"
    if "data" in config.env_args:
        yield "env_args has data: give it as data"
    if config.agent is not None and config.max_staleness:
        yield "max_staleness must be 0 with agent, which samples as it trains"
    if config.server_sleep and config.max_staleness:
        yield "max_staleness must be 0 with server_sleep: it samples while the model is trained"
    if config.max_model_len is not None and config.max_model_len <= config.max_new_tokens:
        yield (
            f"max_model_len={config.max_model_len} leaves no room for a prompt before "
            f"max_new_tokens={config.max_new_tokens}: raise it, or lower max_new_tokens"
        )
