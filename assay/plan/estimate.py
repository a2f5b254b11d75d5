"""Estimate what a training run needs, before it runs: memory of each phase, operations, least time.

Nothing of the model's size is allocated: :mod:`.trace` runs the update on shapes alone. With
several GPUs weights, gradients and optimizer state are divided by their number, and what FSDP2
gathers is added.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import torch
from transformers import AutoConfig, Qwen2Config

from ..grpo.config import GRPOConfig
from ..grpo.credit import reads_policy
from ..grpo.loading import LoRA
from ..grpo.logprobs import FORWARDS
from .trace import trace_step

GIB = 2**30
HEADROOM = 0.08
"""Share of a GPU's memory left for the CUDA context, cuBLAS and fragmentation."""
SERVER_EXTRA = 2 * GIB
"""What a vLLM server takes beside weights and cache: activations and CUDA graphs (an estimate)."""


@dataclass(frozen=True, slots=True)
class GPU:
    """A device: what torch reports as its memory, and its data sheet's dense peaks.

    Attributes:
        memory_gib: total memory that torch reports.
        tflops: bfloat16 tensor cores, accumulating in float32, without sparsity.
        tflops_float32: without tensor cores.
        gb_per_s: bandwidth of its memory.
        source: of the peaks.
    """

    memory_gib: float
    tflops: float
    tflops_float32: float
    gb_per_s: float
    source: str


GPUS = {
    "a100-40gb": GPU(39.4, 312, 19.5, 1555, "NVIDIA A100 data sheet, PCIe/SXM 40 GB"),
    "a100-80gb": GPU(79.1, 312, 19.5, 2039, "NVIDIA A100 data sheet, SXM 80 GB"),
    "h100-80gb": GPU(79.1, 989, 66.9, 3350, "NVIDIA H100 data sheet, SXM"),
    "h200-141gb": GPU(139.7, 989, 66.9, 4800, "NVIDIA H200 data sheet, SXM"),
    "l4-24gb": GPU(22.0, 121, 30.3, 300, "NVIDIA L4 data sheet"),
    "rtx4090-24gb": GPU(23.6, 165.2, 82.6, 1008, "NVIDIA Ada GPU architecture paper, appendix A"),
}


# As published: https://huggingface.co/Qwen/Qwen2.5-1.5B/blob/main/config.json and the like.
_QWEN = {
    "qwen2.5-0.5b": (896, 4864, 24, 14, 2, 151936, True),
    "qwen2.5-1.5b": (1536, 8960, 28, 12, 2, 151936, True),
    "qwen2.5-7b": (3584, 18944, 28, 28, 4, 152064, False),
}


def read_config(name: str) -> Any:
    """Return the transformers config of a known model, a folder or a hub name; no weights.

    Raises:
        ValueError: there is none.
    """
    if name.lower() in _QWEN:
        hidden, wide, layers, heads, kv, vocabulary, tied = _QWEN[name.lower()]
        return Qwen2Config(
            hidden_size=hidden,
            intermediate_size=wide,
            num_hidden_layers=layers,
            num_attention_heads=heads,
            num_key_value_heads=kv,
            vocab_size=vocabulary,
            tie_word_embeddings=tied,
            max_position_embeddings=32768,
            max_window_layers=layers,
        )
    try:
        return AutoConfig.from_pretrained(name, trust_remote_code=False)
    except (OSError, ValueError) as error:
        raise ValueError(
            f"no config at {name!r}: give {', '.join(_QWEN)}, a folder with config.json, or the "
            f"name of a model on the Hugging Face hub ({str(error).splitlines()[0]:.200})"
        ) from error


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What is to be planned.

    Attributes:
        model: a transformers config of a causal LM.
        config: the batch and the objective. Every reply is taken to have ``max_new_tokens``.
        prompt_tokens: of each prompt.
        gpu: a key of ``GPUS``; None plans memory for a CPU.
        count: GPUs, with weights, gradients and optimizer state in shards (FSDP2).
        engine: what samples: the trained model itself, or a vLLM server elsewhere.
        dtype: of the weights.
        autocast: compute in bfloat16.
        gradient_checkpointing: compute layers again backward.
        lora: adapters to train in place of all weights.

    Raises:
        ValueError: a setting is out of its range.
    """

    model: Any
    config: GRPOConfig
    prompt_tokens: int = 256
    gpu: str | None = "h100-80gb"
    count: int = 1
    engine: Literal["transformers", "vllm"] = "transformers"
    dtype: torch.dtype = torch.float32
    autocast: bool = True
    gradient_checkpointing: bool = False
    lora: LoRA | None = None

    def __post_init__(self) -> None:
        if self.gpu is not None and self.gpu not in GPUS:
            raise ValueError(f"gpu must be one of {', '.join(GPUS)}, got {self.gpu!r}")
        for name in ("count", "prompt_tokens"):
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        most = getattr(self.model.get_text_config(), "max_position_embeddings", None)
        tokens = self.prompt_tokens + self.config.max_new_tokens
        if most is not None and tokens > most:
            raise ValueError(
                f"prompt_tokens and max_new_tokens are {tokens} together, more than the {most} "
                "positions of the model: lower one of them"
            )

    @property
    def compute_bytes(self) -> int:
        """Bytes of a number in matrix products."""
        return 2 if self.autocast else self.dtype.itemsize

    @property
    def replies(self) -> int:
        """Replies of a rollout."""
        return self.config.prompts_per_step * self.config.group_size

    @property
    def readings(self) -> int:
        """Passes over a rollout without a gradient: of the reference and of the policy."""
        return int(self.config.beta != 0) + int(reads_policy(self.config))


@dataclass(frozen=True, slots=True)
class Work:
    """Lower bounds of one part of a step, on each GPU."""

    tflop: float
    gigabytes: float
    seconds: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a job needs. Memory is in bytes on each GPU.

    Attributes:
        parameters: of the model.
        trained: of these, how many are trained.
        forward: how log-probabilities are computed: ``shared``, ``padded`` or ``full``.
        phases: memory at the peak of each phase, by kind.
        server: least memory of the vLLM server by kind, if there is one.
        work: operations, bytes and the least seconds of a step by part; empty without a GPU.
        limit: memory that may be used; None without a GPU.
        advice: what to change until it fits, the cheapest first.
    """

    parameters: int
    trained: int
    forward: str
    phases: dict[str, dict[str, float]]
    server: dict[str, float]
    work: dict[str, Work]
    limit: float | None
    advice: list[str] = field(default_factory=list)

    @property
    def peak(self) -> float:
        """The most that any phase holds."""
        return max(sum(kinds.values()) for kinds in self.phases.values())

    @property
    def fits(self) -> bool | None:
        """Whether the peak is within the limit; None without a limit."""
        return None if self.limit is None else self.peak <= self.limit

    @property
    def least_seconds(self) -> float:
        """Lower bound of a step's time: the sum of its parts'."""
        return sum(work.seconds for work in self.work.values())


def plan(job: Job, *, advise: bool = True) -> Plan:
    """Plan a job, in seconds to a minute.

    Args:
        job: what is to be planned.
        advise: if it does not fit, look for changes until it does.
    """
    found = _assemble(job)
    if found.fits is False and advise:
        found.advice.extend(_advice(job))
    return found


def _advice(job: Job) -> Iterator[str]:
    """Try changes one after the other, each on top of those before, until the job fits."""
    budget, rows = job.config.tokens_per_batch, job.config.rows_per_batch
    least = job.prompt_tokens + job.config.max_new_tokens

    # What each changes of the job, and of its config.
    changes: list[tuple[str, dict[str, Any], dict[str, Any]]] = []
    if not job.gradient_checkpointing:
        changes.append(("gradient_checkpointing=true", {"gradient_checkpointing": True}, {}))
    for tokens in (budget // 2, budget // 4, budget // 8):
        if tokens >= least:
            changes.append((f"tokens_per_batch={tokens}", {}, {"tokens_per_batch": tokens}))
    if job.engine == "transformers":
        for part in (2, 4):
            fewer = max(1, min(rows, job.replies) // part)
            changes.append((f"rows_per_batch={fewer}", {}, {"rows_per_batch": fewer}))
        changes.append(("engine=vllm, on another GPU", {"engine": "vllm"}, {}))
    if job.lora is None:
        changes.append(("lora_rank=16", {"lora": LoRA()}, {}))
    if job.dtype != torch.bfloat16:
        changes.append(("dtype=bfloat16", {"dtype": torch.bfloat16}, {}))
    changes += [(f"count={n}", {"count": n}, {}) for n in (2, 4, 8, 16) if n > job.count]
    before = _assemble(job)
    step = before.phases["step"]
    states = sum(step.get(kind, 0.0) for kind in ("weights", "gradients", "optimizer"))
    if states > (before.limit or 0):
        # No smaller batch helps: the states alone are too large.
        changes = [c for c in changes if c[0].split("=")[0] in ("lora_rank", "dtype", "count")]
    for name, of_job, of_config in changes:
        job = replace(job, config=replace(job.config, **of_config), **of_job)
        after = _assemble(job)
        if after.peak < 0.995 * before.peak:
            verdict = "fits" if after.fits else "does not fit yet"
            yield f"{name}: peak {after.peak / GIB:.1f} GiB, {verdict}"
            before = after
        if after.fits:
            return
    yield f"no change here makes it fit: take a larger GPU than {job.gpu}, or a smaller model"


def _assemble(job: Job) -> Plan:
    """Trace a step, add what is not traced, divide between GPUs."""
    name, n = _traced(job)
    kept = _memory(job, n)
    gpu = GPUS[job.gpu] if job.gpu else None
    limit = gpu.memory_gib * GIB * (1 - HEADROOM) if gpu else None
    work = _work(job, n, gpu) if gpu else {}
    server = {}
    if job.engine == "vllm":
        tokens = job.config.prompts_per_step * job.prompt_tokens
        tokens += job.replies * job.config.max_new_tokens
        server = {"weights": n["parameters"] * job.compute_bytes, "KV cache": n["cache"] * tokens}
        server["other"] = float(SERVER_EXTRA)
    return Plan(round(n["parameters"]), round(n["trained"]), name, kept, server, work, limit)


def _memory(job: Job, n: dict[str, float]) -> dict[str, dict[str, float]]:
    """Return the bytes at each phase's peak on one GPU, by kind."""
    c, config = job.count, job.config
    states = {kind: n[kind] / c for kind in ("weights", "gradients", "optimizer")}
    if config.beta and job.lora is None:
        states["reference"] = n["weights"]
    held = {**states, "activations": 0.0, "temporary": 0.0}
    phases = {"rollout": {**held, "gradients": 0.0}}
    if job.engine == "transformers":
        rows = min(config.rows_per_batch, -(-job.replies // c))
        groups = -(-rows // config.group_size)
        tokens = groups * job.prompt_tokens + rows * config.max_new_tokens
        phases["rollout"] |= {
            "KV cache": n["cache"] * tokens,
            # Logits, their softmax and its running sum, all float32.
            "activations": n["decode/activations"] + 3 * 4 * rows * n["vocabulary"],
            "gathered": n["weights"] * (1 - 1 / c) if c > 1 else 0.0,
        }
    gathered = n["gathered"] * (1 - 1 / c)
    for phase in ("reading", "update", "step"):
        if phase == "reading" and not job.readings:
            continue
        phases[phase] = dict(held)
        for kind in ("weights", "gradients", "optimizer"):
            phases[phase][kind] = n[f"{phase}/{kind}"] / c
        share = c if phase == "step" else 1
        for kind in ("activations", "temporary"):
            phases[phase][kind] = n[f"{phase}/{kind}"] / share
        if c > 1 and phase != "step":
            trains = n["trained"] / n["parameters"]
            phases[phase]["gathered"] = gathered * (1 + (trains if phase == "update" else 0))
    if job.engine == "vllm":
        phases["sync"] = held | {"temporary": n["largest"] * (job.compute_bytes + 4 * (c > 1))}
    return {
        phase: {kind: size for kind, size in kinds.items() if size >= 1}
        for phase, kinds in phases.items()
    }


def _work(job: Job, n: dict[str, float], gpu: GPU) -> dict[str, Work]:
    """Operations, bytes that have to move, and the least seconds of each part of a step."""
    config, c = job.config, job.count
    weights = n["parameters"] * job.compute_bytes
    reply, rows = config.max_new_tokens, job.replies / c
    side_by_side = rows if job.engine == "vllm" else min(rows, config.rows_per_batch)
    # A decoded token reads the weights, its group's prompt once and its own reply so far.
    seen = rows * reply / 2 + rows / config.group_size * job.prompt_tokens
    decoding = reply * (math.ceil(rows / side_by_side) * weights + n["cache"] * seen)
    batches = n["batches"] / c
    update = batches * (2 * weights + 2 * n["gradients"] + 2 * n["update/activations"])
    updates = config.num_iterations * config.minibatches
    parts = {
        "rollout": (n["forward flops"], decoding),
        "reading": (job.readings * n["forward flops"], job.readings * batches * weights),
        "update": (config.num_iterations * n["update flops"], config.num_iterations * update),
        # AdamW reads weight, gradient and two moments, and writes all but the gradient.
        "step": (0.0, updates * 7 * n["gradients"] / c),
    }
    bf16 = job.compute_bytes == 2
    peak = (gpu.tflops if bf16 else gpu.tflops_float32) * 1e12
    found = {}
    for name, (flops, moved) in parts.items():
        if flops or moved:
            seconds = max(flops / c / peak, moved / (gpu.gb_per_s * 1e9))
            found[name] = Work(flops / c / 1e12, moved / 1e9, seconds)
    return found


def _traced(job: Job) -> tuple[str, dict[str, float]]:
    """Trace with the forward that the model allows, and name it."""
    settings = job.model.get_text_config().to_dict()
    caps = [k for k, v in settings.items() if "logit" in k and "cap" in k and "attn" not in k and v]
    for name in ("full",) if caps else ("shared", "padded", "full"):
        try:
            return name, trace_step(
                job.model,
                job.config,
                job.prompt_tokens,
                FORWARDS[name],
                dtype=job.dtype,
                autocast=job.autocast,
                gradient_checkpointing=job.gradient_checkpointing,
                lora=job.lora,
                gpu=job.gpu is not None,
            )
        except ValueError as error:  # such as attention that cannot share a prompt
            refused = error
    raise refused
