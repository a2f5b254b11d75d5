"""Run the update's own code on fake tensors: bytes by torch's MemTracker, operations counted.

Tensors of integers and masks are real, as shapes depend on their values; weights and all that is
computed of them are fake, shapes without numbers. A number that is read from a fake tensor is 1.

A build of torch without CUDA has no fake CUDA tensors with gradients, so all is traced as on a
CPU; for a GPU, attention and what is computed of each logit are replaced by what its kernels
keep and compute.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any
from unittest import mock

import torch
from torch import Tensor
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.distributed._tools.mem_tracker import MemTracker
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map
from torch.utils.flop_counter import FlopCounterMode
from transformers import AutoModelForCausalLM
from transformers.integrations import moe

from ..grpo import logprobs, prefix
from ..grpo.batch import Batch, Row, group_by_prompt, micro_batches
from ..grpo.config import GRPOConfig
from ..grpo.loading import LoRA, add_lora
from ..grpo.logprobs import Forward
from ..grpo.model import set_autocast, set_checkpointing
from ..grpo.update import accumulate_gradient

_aten = torch.ops.aten
_KINDS = {
    "Parameter": "weights",
    "Gradient": "gradients",
    "Optstate": "optimizer",
    "Activation": "activations",
    "Buffer": "activations",
    "Other": "activations",
    "Temp": "temporary",
}


class FakeModel:
    """A causal LM without numbers, and the modes under which our code runs on it.

    Args:
        config: of transformers; it is copied.
        dtype: of the weights.
        autocast: compute in bfloat16.
        gradient_checkpointing: compute layers again backward.
        lora: adapters to train in place of all weights.
        gpu: count attention as a GPU's kernels compute it, and not as on a CPU.
    """

    def __init__(
        self,
        config: Any,
        *,
        dtype: torch.dtype = torch.float32,
        autocast: bool = False,
        gradient_checkpointing: bool = False,
        lora: LoRA | None = None,
        gpu: bool = False,
    ) -> None:
        self._fake = FakeTensorMode(allow_non_fake_inputs=True)
        self._gpu, self._attention_flops = gpu, 0
        with torch.device("meta"):
            model: Any = AutoModelForCausalLM.from_config(  # type: ignore[no-untyped-call]
                copy.deepcopy(config), dtype=dtype
            )
            if lora is not None:
                model = add_lora(model, lora)
        with self._fake:
            model.to_empty(device="cpu")
            (model.get_base_model() if lora is not None else model).tie_weights()
        if gradient_checkpointing:
            set_checkpointing(model, True)
        if autocast:
            set_autocast(model, torch.bfloat16)
        self.model = model.eval()
        self.trained = [p for p in model.parameters() if p.requires_grad]

    def give_gradients(self) -> None:
        """Give each trained weight a gradient."""
        with self._fake:
            for p in self.trained:
                p.grad = torch.empty_like(p)

    @contextmanager
    def counting(self) -> Iterator[dict[str, float]]:
        """Within it our code runs on the model; afterwards the dict has ``flops``."""
        found: dict[str, float] = {}
        self._attention_flops = 0
        counter = FlopCounterMode(display=False, custom_mapping=_UNCOUNTED)
        counter.mod_tracker = _NoModules()  # type: ignore[assignment]
        with ExitStack() as stack:
            # The product of torch's own has no fake result in float32.
            stack.enter_context(mock.patch.object(moe, "_can_use_grouped_mm", return_value=False))
            if self._gpu:
                vocabulary = self.model.config.get_text_config().vocab_size
                stack.enter_context(
                    mock.patch.multiple(
                        logprobs,
                        CHUNK_ELEMENTS=logprobs.CHUNK_TOKENS * vocabulary,
                        _read_logits=_read_logits,
                        _slope_of_logits=_slope_of_logits,
                    )
                )
                attend = mock.patch.object(prefix, "attend_by_copies", self._attend)
                stack.enter_context(attend)
            stack.enter_context(_Shapes(self._fake))
            stack.enter_context(counter)
            yield found
        found["flops"] = float(counter.get_total_flops() + self._attention_flops)

    @contextmanager
    def tracked(self, *others: Any) -> Iterator[dict[str, float]]:
        """As :meth:`counting`; the dict gets the bytes at the peak by kind, and ``flops``.

        Args:
            others: an optimizer whose state is held.
        """
        tracker: Any = MemTracker()
        tracker._mod_tracker = _NoModules()
        tracker.track_external(self.model, *others)
        found: dict[str, float] = dict.fromkeys(_KINDS.values(), 0.0)
        with self.counting() as counted, tracker:
            yield found
        peak = tracker.get_tracker_snapshot("peak").get(torch.device("cpu"), {})
        for kind, size in peak.items():
            if kind != "Total":
                found[_KINDS[kind.value]] += size
        found |= counted

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, layout: Any, scale: float, window: Any
    ) -> Tensor:
        """Stand in for flex attention: memory of its kernels, operations of the pairs seen."""
        s = layout.prompt.there.sum(1)
        t = layout.reply.there.sum(1)
        pairs = int((s * (s + 1)).sum() // 2 + (t * (t + 1)).sum() // 2)
        pairs += int((t * s.repeat_interleave(layout.replies)).sum())
        found: Tensor = _Attention.apply(query, key, value, self, pairs)  # type: ignore[no-untyped-call]  # torch
        return found

    def add_attention(self, products: int, pairs: int, query: Tensor) -> None:
        """Count some products of [pairs, head size] in all heads."""
        self._attention_flops += 2 * products * pairs * query.shape[1] * query.shape[2]


def _read_logits(z: Tensor, *_: Any) -> tuple[Tensor, Tensor, Tensor]:
    """Stand in for the kernel that reads logits on a GPU, which keeps three numbers of a token."""
    found = z.new_empty(3, z.shape[0], dtype=torch.promote_types(z.dtype, torch.float32))
    return found[0], found[1], found[2]


def _slope_of_logits(z: Tensor, *_: Any) -> Tensor:
    """Stand in for the kernel that computes the gradient of logits on a GPU."""
    return torch.empty_like(z)


class _NoModules:
    """Stand in for the trackers of modules, whose hooks keep what checkpointing computes again."""

    parents: frozenset[str] = frozenset({"Global"})

    @property
    def is_bw(self) -> bool:
        return torch._C._current_graph_task_id() != -1

    def register_user_hooks(self, *_: Any) -> None:
        pass

    def clear_user_hooks(self) -> None:
        pass

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        pass


class _Attention(torch.autograd.Function):
    """What a fused attention kernel keeps: its inputs, its output, a number per query and head."""

    @staticmethod
    def forward(
        ctx: Any, query: Tensor, key: Tensor, value: Tensor, model: FakeModel, pairs: int
    ) -> Tensor:
        out, normalizer = torch.empty_like(query), query.new_empty(query.shape[:2])
        ctx.save_for_backward(query, key, value, out, normalizer.float())
        ctx.model, ctx.pairs = model, pairs
        model.add_attention(2, pairs, query)
        return out

    @staticmethod
    def backward(ctx: Any, *_: Tensor) -> tuple[Tensor | None, ...]:
        query, key, value, _out, normalizer = ctx.saved_tensors
        ctx.model.add_attention(5, ctx.pairs, query)
        _delta = torch.empty_like(normalizer)
        return torch.empty_like(query), torch.empty_like(key), torch.empty_like(value), None, None


class _Shapes(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Run what is real as it is; make what meets fake tensors fake; read 1 from these."""

    def __init__(self, fake: FakeTensorMode) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self._fake = fake

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not any(isinstance(x, FakeTensor) for x in tree_leaves((args, kwargs))):
            return func(*args, **kwargs)
        if func is _aten._local_scalar_dense.default:
            return torch.ones((), dtype=args[0].dtype).item()
        if func is _aten.index.Tensor:  # a mask's shape is known only while it is real
            args = args[0], [y for x in args[1] for y in _positions(x)]
        args, kwargs = tree_map(self._faked, (args, kwargs))
        return func(*args, **kwargs)

    def _faked(self, x: Any) -> Any:
        if not isinstance(x, Tensor) or isinstance(x, FakeTensor) or not x.dim():
            return x
        with self._fake:
            return torch.empty_strided(x.shape, x.stride(), dtype=x.dtype)


def _positions(index: Any) -> Sequence[Any]:
    if isinstance(index, Tensor) and index.dtype is torch.bool:
        if isinstance(index, FakeTensor):  # at most all of it
            index = torch.ones(index.shape, dtype=torch.bool)
        found: Sequence[Any] = index.nonzero(as_tuple=True)
        return found
    return (index,)


def rows_of_step(config: GRPOConfig, prompt_tokens: int) -> list[Row]:
    """Make the rows of a rollout in which every reply is ``max_new_tokens`` long and teaches."""
    t, prompts = config.max_new_tokens, range(config.prompts_per_step)
    reply, written, logprobs = (0,) * t, (True,) * t, (-1.0,) * t
    reference = logprobs if config.beta else ()
    return [
        Row((i, *(0,) * (prompt_tokens - 1)), reply, written, logprobs, (1.0,) * t, reference)
        for i in prompts
        for _ in range(config.group_size)
    ]


def trace_step(
    model_config: Any, config: GRPOConfig, prompt_tokens: int, forward: Forward, **settings: Any
) -> dict[str, float]:
    """Trace the phases of a training step on its largest micro-batch.

    Args:
        model_config: a transformers config.
        config: the batch and the objective.
        prompt_tokens: of each prompt.
        forward: how log-probabilities are computed.
        settings: of :class:`FakeModel`.

    Returns:
        Bytes: ``weights``, ``gradients``, ``optimizer``; ``cache`` of a token; ``gathered``, of
        what FSDP2 has in one piece at a time; ``PHASE/KIND`` at the peak of each of ``decode``,
        ``reading``, ``update`` and ``step``. Operations of all micro-batches: ``forward flops``
        and ``update flops``. Numbers: ``parameters``, ``trained``,
        ``largest`` (of one weight), ``batches``, ``vocabulary``.
    """
    fake = FakeModel(model_config, **settings)
    model, trained = fake.model, fake.trained
    batches = micro_batches(
        group_by_prompt(rows_of_step(config, prompt_tokens)), budget=config.tokens_per_batch
    )
    rows = [row for group in batches[0] for row in group]
    share = config.prompts_per_step * config.group_size / len(rows)
    optimizer = torch.optim.AdamW(trained, lr=1e-6, fused=True)
    fake.give_gradients()
    with fake.counting():
        optimizer.step()  # which makes its state
    found = {
        "parameters": float(sum(p.numel() for p in model.parameters())),
        "trained": float(sum(p.numel() for p in trained)),
        "weights": _size(model.parameters()),
        "gradients": _size(trained),
        "optimizer": _size(x for state in optimizer.state.values() for x in state.values()),
        "gathered": _gathered(model),
        "largest": float(max(p.numel() for p in model.parameters())),
        "vocabulary": float(model.config.get_text_config().vocab_size),
        "batches": float(len(batches)),
        "cache": _cache_of_token(fake),
    }
    side_by_side = min(config.rows_per_batch, config.prompts_per_step * config.group_size)
    phases: dict[str, dict[str, float]] = {}
    with torch.no_grad():
        with fake.tracked(optimizer) as phases["decode"]:
            model(torch.zeros(side_by_side, 1, dtype=torch.long), use_cache=False)
        with fake.tracked(optimizer) as phases["reading"]:
            forward(model, Batch.of(batches[0]), config.temperature)
    if len(batches) == 1:  # gradients are made anew by the first
        optimizer.zero_grad(set_to_none=True)
    with fake.tracked(optimizer) as phases["update"]:
        accumulate_gradient(model, forward, rows, config)
    with fake.tracked(optimizer) as phases["step"]:
        torch.nn.utils.clip_grad_norm_(trained, config.max_grad_norm)
        optimizer.step()
    found["forward flops"] = share * phases["reading"]["flops"]
    found["update flops"] = share * phases["update"]["flops"]
    return found | {f"{p}/{kind}": x for p, kinds in phases.items() for kind, x in kinds.items()}


def _cache_of_token(fake: FakeModel, tokens: int = 16) -> float:
    """Return the bytes of one token's cache, in the dtype of computation."""
    with torch.no_grad(), fake.counting():
        output = fake.model(torch.zeros(1, tokens, dtype=torch.long), use_cache=True)
    layers = getattr(output.past_key_values, "layers", ())
    return _size(x for layer in layers for x in vars(layer).values()) / tokens


def _gathered(model: Any) -> float:
    """Return the bytes of two layers (one is prefetched) and of weights outside layers."""
    names = set(model._no_split_modules or ())
    layers = [_size(m.parameters()) for m in model.modules() if type(m).__name__ in names]
    return _size(model.parameters()) - sum(layers) + 2 * max(layers, default=0.0)


def _size(tensors: Any) -> float:
    """Return the bytes of tensors; skip other values."""
    return float(sum(x.numel() * x.element_size() for x in tensors if isinstance(x, Tensor)))


def _attended(query: Any, key: Any, *_: Any, out_shape: Any = None, **__: Any) -> int:
    b, h, q, e = query
    return int(4 * b * h * q * key[2] * e)


def _attended_backward(
    _: Any, query: Any, key: Any, *__: Any, out_shape: Any = None, **___: Any
) -> int:
    return _attended(query, key) * 5 // 2


def _added(_: Any, a: Any, b: Any, *__: Any, out_shape: Any = None, **___: Any) -> int:
    return int(2 * a[0] * a[1] * b[1])


def _of_experts(a: Any, b: Any, *others: Any, out_shape: Any = None, **_: Any) -> int:
    """Count a product in each token's experts; with a third shape, the two of its gradient."""
    return int(2 * a[0] * b[1] * b[2] * (2 if len(others) > 1 else 1))


# What FlopCounterMode passes over.
_UNCOUNTED = {
    torch.ops.transformers.grouped_mm_fallback: _of_experts,
    torch.ops.transformers.grouped_mm_fallback_backward: _of_experts,
    _aten.addmm: _added,  # with a dtype of its result
    _aten.addmm_: _added,
    _aten._scaled_dot_product_flash_attention_for_cpu: _attended,
    _aten._scaled_dot_product_flash_attention_for_cpu_backward: _attended_backward,
}
