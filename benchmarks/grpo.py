"""A training step: ours and TRL's GRPOTrainer in turn, in one run, and the ratio.

The same model, prompts, G = 8, lengths, loss (token mean, clip 0.2), AdamW and rewards on both
sides. TRL is set up as it is fastest on a CPU: float32, no checkpointing, one micro-batch where
that is faster. Each measurement is a process of its own, on one thread: process CPU seconds,
which another load on the machine hardly changes, the parts they went to, and the highest
resident memory above that with the model built. The sides run several times, in turn, and
medians are compared, and the least of both, which others on the machine disturb less. The
floor is the time that the update's matrix products alone would take, at the speed of a plain
product of their size in the same process.

    python benchmarks/grpo.py [--rounds 3] [--steps 3] [--only S-64 ...]
    python benchmarks/grpo.py --gpu      # 0.5B shapes in bfloat16, wall seconds
"""

from __future__ import annotations

import argparse
import json
import math
import random
import statistics
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from measuring import in_turn, last_json, resident_mib
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from assay.envs import Episode, EpisodeGroup, Policy, Span, Task
from assay.grpo import GRPOConfig, Learner, load_model
from assay.grpo.decoder import choose_decoder
from assay.grpo.logprobs import FORWARDS
from assay.verifiers import Verdict

GROUP = 8


@dataclass(frozen=True)
class Shape:
    """One load. The ragged one has prompts of 64 to 192 tokens and log-normal replies."""

    hidden: int
    layers: int
    heads: int
    key_values: int
    intermediate: int
    vocabulary: int
    prompt: int
    reply: int
    prompts: int = 8
    ragged: bool = False
    flat: int = 0  # groups in which every reply earns the same
    beta: float = 0.0
    micro: int = 64  # rows of TRL's micro-batches
    tokens: int = 3072  # of ours
    dtype: str = "float32"
    device: str = "cpu"


_S, _M = (128, 4, 4, 4, 384, 64 + 40), (256, 4, 4, 4, 768, 4096)
_HALF = (896, 24, 14, 2, 4864, 151936)  # Qwen2 0.5B
_GPU: dict[str, Any] = {"dtype": "bfloat16", "device": "cuda", "micro": 16, "tokens": 1 << 15}
SHAPES = {
    "S-64": Shape(*_S, 64, 64),
    "S-256": Shape(*_S, 256, 64),
    "S-256-kl": Shape(*_S, 256, 64, beta=0.04),
    "M-256": Shape(*_M, 256, 64),
    "S-ragged": Shape(*_S, 192, 128, ragged=True, flat=3),
    "M-ragged": Shape(*_M, 192, 128, ragged=True, flat=3, micro=8),
    "gpu-256": Shape(*_HALF, 256, 512, **_GPU),
    "gpu-1024": Shape(*_HALF, 1024, 512, **_GPU),
}


class Clock:
    """Seconds by part; a part's own excludes those inside it."""

    def __init__(self, device: str) -> None:
        self.gpu = device != "cpu"
        self.parts: dict[str, float] = defaultdict(float)
        self.marks: list[tuple[float, dict[str, float]]] = []

    def now(self) -> float:
        """CPU seconds of this process, or wall seconds where a GPU works."""
        if self.gpu:
            torch.cuda.synchronize()
            return time.perf_counter()
        return time.process_time()

    @contextmanager
    def part(self, name: str) -> Iterator[None]:
        """What runs within counts to ``name``."""
        started, inside = self.now(), sum(self.parts.values())
        yield
        self.parts[name] += self.now() - started - (sum(self.parts.values()) - inside)

    def timed(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """The call, counted."""

        def counted(*arguments: Any, **options: Any) -> Any:
            with self.part(name):
                return call(*arguments, **options)

        return counted

    def mark(self) -> None:
        """A step is done."""
        self.marks.append((self.now(), dict(self.parts)))

    def means(self) -> dict[str, float]:
        """Seconds of a step and of its parts, from the first mark to the last."""
        (begin, before), (end, after) = self.marks[0], self.marks[-1]
        steps = len(self.marks) - 1
        found = {name: (after[name] - before.get(name, 0.0)) / steps for name in after}
        total = (end - begin) / steps
        return {"step": total, **found, "overhead": total - sum(found.values())}


class EndingHead(torch.nn.Linear):
    """An output layer that ends replies with log-normal lengths (median 40), where told to.

    It counts the calls of a rollout in ``step``, and does nothing of its own before the first.
    """

    def __init__(self, embedding: Tensor, end: int, ragged: bool) -> None:
        super().__init__(embedding.shape[1], embedding.shape[0], bias=False)
        self.weight, self.end, self.ragged = embedding, end, ragged
        self.step: int | None = None

    def forward(self, x: Tensor) -> Tensor:
        """Logits; of single tokens, with the end as likely as the distribution of lengths says."""
        z = super().forward(x)
        single = x.dim() == 2 or x.shape[-2] == 1
        if self.step is None or torch.is_grad_enabled() or not single:
            return z
        self.step += 1
        z[..., self.end] = -torch.inf
        if self.ragged:
            z[..., self.end] = z.logsumexp(-1) + _log_odds(self.step)
        return z


def _log_odds(step: int) -> float:
    """Of ending at this step, having come so far: lengths with log of mean log 40, spread 0.57."""

    def beyond(t: float) -> float:
        return 0.5 * math.erfc(math.log(t / 40) / 0.57 / math.sqrt(2))

    hazard = min(1 - 1e-6, max(1e-9, 1 - beyond(step + 0.5) / beyond(max(step - 0.5, 1e-3))))
    return math.log(hazard / (1 - hazard))


def make_model(shape: Shape, directory: Path) -> tuple[Any, Any]:
    """A Llama from nothing, with a tokenizer of as many tokens as it has."""
    from tokenizers import Regex, Tokenizer, decoders, models, pre_tokenizers
    from transformers import PreTrainedTokenizerFast

    words = ["<pad>", "<eos>", "<unk>", *(chr(48 + i) for i in range(64))]
    words += [f"w{i} " for i in range(shape.vocabulary - len(words))]
    tokenizer = Tokenizer(models.WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Split(Regex(r"[\s\S]"), behavior="isolated")
    tokenizer.decoder = decoders.Fuse()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token="<pad>",
        eos_token="<eos>",
        unk_token="<unk>",
        clean_up_tokenization_spaces=False,
        padding_side="left",
    )
    config = LlamaConfig(
        vocab_size=shape.vocabulary,
        hidden_size=shape.hidden,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        num_key_value_heads=shape.key_values,
        intermediate_size=shape.intermediate,
        max_position_embeddings=2048,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=fast.eos_token_id,
        pad_token_id=fast.pad_token_id,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(directory)
    fast.save_pretrained(directory)
    model, tokenizer = load_model(directory, device=shape.device, dtype=shape.dtype)
    model.lm_head = EndingHead(
        model.get_input_embeddings().weight, tokenizer.eos_token_id, shape.ragged
    )
    return model, tokenizer


def prompts(shape: Shape) -> list[str]:
    """Different prompts, in characters and so in tokens of the length that is asked for."""
    source = random.Random(0)  # noqa: S311 - no secret
    lengths = [source.randint(64, 192) if shape.ragged else shape.prompt for _ in range(99)]
    return ["".join(source.choices("0123456789=", k=n)) for n in lengths[: shape.prompts]]


def score(text: str, flat: bool) -> float:
    """Cheap, and different from reply to reply unless the group is to have no variance."""
    return 0.5 if flat else sum(map(ord, text)) % 97 / 97


def ours(shape: Shape, root: Path, steps: int) -> dict[str, Any]:
    """Seconds and parts of a step, the first left out."""
    clock = Clock(shape.device)
    model, tokenizer = make_model(shape, root / "model")
    model.generation_config.eos_token_id = None
    how, _ = choose_decoder(model.eval())  # before the output layer counts its calls
    texts, work, lengths = prompts(shape), [0, 0], []

    def rollout(policy: Policy, step: int) -> list[EpisodeGroup]:
        tasks = [Task(t, "", id=t) for t in texts]
        model.lm_head.step = 0
        with clock.part("generate"):
            replies = iter(policy([t.messages for t in tasks for _ in range(GROUP)]))
        groups = []
        for place, task in enumerate(tasks):
            episodes = []
            for _ in range(GROUP):
                reply = next(replies)
                spans = (
                    Span("environment", reply.prompt_ids),
                    Span("model", reply.ids, reply.logprobs),
                )
                with clock.part("rewards"):
                    verdict = Verdict.wrong("", score=score(reply.text, place < shape.flat))
                episodes.append(Episode(task.id, (), verdict, spans=spans))
                lengths.append(len(reply.ids))
            groups.append(EpisodeGroup(task, tuple(episodes)))
            if step > 1 and (place >= shape.flat or shape.beta):
                work[0] += len(spans[0].ids) + sum(lengths[-GROUP:]) - GROUP
                work[1] += sum(lengths[-GROUP:])
        return groups

    config = GRPOConfig(
        steps=steps + 1,
        prompts_per_step=shape.prompts,
        group_size=GROUP,
        max_new_tokens=shape.reply,
        advantage_std="sample",
        beta=shape.beta,
        tokens_per_batch=shape.tokens,
        learning_rate=1e-6,
    )
    for kind, plain in list(FORWARDS.items()):
        FORWARDS[kind] = _counted(plain, clock)
    learner = Learner(
        model,
        tokenizer,
        rollout,
        config,
        root / "run",
        progress=False,
        trackers=(),  # as TRL's report_to=[]
        on_step=lambda row: clock.mark() if row["step"] else None,
    )
    _clock_backward(clock)
    memory = Memory(shape.device)
    learner.train()
    s = shape
    body = s.layers * s.hidden * (2 * s.hidden + 2 * s.hidden * s.key_values / s.heads)
    body += s.layers * 3 * s.hidden * s.intermediate
    products = 6 * (work[0] * body + work[1] * s.hidden * s.vocabulary) / steps
    return {
        **clock.means(),
        "memory": memory.above(),
        "tokens": statistics.mean(lengths),
        "floor": products / speed(shape),
        "how": f"{learner.forward_name} forward, {how} decoder",
    }


def trl(shape: Shape, root: Path, steps: int) -> dict[str, Any]:
    """The same for TRL."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig as TRLConfig
    from trl import GRPOTrainer

    clock = Clock(shape.device)
    texts, lengths = prompts(shape), []
    flat = set(texts[: shape.flat])

    class Marks(TrainerCallback):
        def on_step_end(self, *args: Any, **kwargs: Any) -> None:
            clock.mark()

    def reward(
        prompts: list[Any], completions: list[Any], completion_ids: list[Any], **kwargs: Any
    ) -> list[float]:
        lengths.extend(map(len, completion_ids))
        with clock.part("rewards"):
            return [score(c, p in flat) for p, c in zip(prompts, completions, strict=True)]

    rows = shape.prompts * GROUP
    config = TRLConfig(
        output_dir=str(root / "run"),
        per_device_train_batch_size=min(shape.micro, rows),
        gradient_accumulation_steps=max(1, rows // shape.micro),
        num_generations=GROUP,
        max_completion_length=shape.reply,
        max_steps=steps + 1,
        learning_rate=1e-6,
        beta=shape.beta,
        loss_type="dapo",
        bf16=shape.dtype == "bfloat16",
        gradient_checkpointing=False,
        report_to=[],
        save_strategy="no",
        disable_tqdm=True,
        logging_strategy="no",
        use_cpu=shape.device == "cpu",
        dataloader_pin_memory=False,
    )
    model, tokenizer = make_model(shape, root / "model")
    generate = model.generate

    def generate_anew(*arguments: Any, **options: Any) -> Any:
        model.lm_head.step = 0
        with clock.part("generate"):
            return generate(*arguments, **options)

    model.generate = generate_anew
    trainer = GRPOTrainer(
        model=model,
        processing_class=tokenizer,
        reward_funcs=reward,
        args=config,
        train_dataset=Dataset.from_dict({"prompt": texts}),
        callbacks=[Marks()],
    )
    read = trainer._get_per_token_logps_and_entropies

    def logprobs(*arguments: Any, **options: Any) -> Any:
        with clock.part("forward" if torch.is_grad_enabled() else "reference"):
            return read(*arguments, **options)

    trainer._get_per_token_logps_and_entropies = logprobs
    trainer._compute_loss = clock.timed("forward", trainer._compute_loss)
    _clock_backward(clock)
    memory = Memory(shape.device)
    trainer.train()
    return {**clock.means(), "memory": memory.above(), "tokens": statistics.mean(lengths)}


class Memory:
    """The highest memory from now on above that of now, in MiB."""

    def __init__(self, device: str) -> None:
        self.gpu = device != "cpu"
        if self.gpu:
            torch.cuda.reset_peak_memory_stats()
            self.base = torch.cuda.memory_allocated() / 2**20
        else:
            Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
            self.base = resident_mib()

    def above(self) -> float:
        """In MiB."""
        now = torch.cuda.max_memory_allocated() / 2**20 if self.gpu else resident_mib("VmHWM")
        return now - self.base


def _counted(plain: Callable[..., Any], clock: Clock) -> Callable[..., Any]:
    """A forward whose seconds are counted, with a gradient or without."""

    def forward(*arguments: Any) -> Any:
        with clock.part("forward" if torch.is_grad_enabled() else "reference"):
            return plain(*arguments)

    return forward


def _clock_backward(clock: Clock) -> None:
    torch.Tensor.backward = clock.timed("backward", torch.Tensor.backward)


def speed(shape: Shape) -> float:
    """Floating-point operations a second of one plain product of the model's size."""
    clock = Clock(shape.device)
    dtype = getattr(torch, shape.dtype)
    a = torch.randn(shape.tokens, shape.hidden, device=shape.device, dtype=dtype)
    b = torch.randn(shape.hidden, shape.intermediate, device=shape.device, dtype=dtype)
    rates = []
    for _ in range(20):
        started = clock.now()
        for _ in range(10):
            a @ b
        rates.append(10 * 2 * a.numel() * b.shape[1] / (clock.now() - started))
    return statistics.median(rates)


def report(name: str, found: dict[str, list[dict[str, Any]]]) -> None:
    """Medians of both sides, and their ratios."""
    median: dict[str, dict[str, float]] = {}
    parts = ("step", "generate", "reference", "forward", "backward", "rewards", "overhead")
    for side, runs in found.items():
        keys = (*parts, "memory", "tokens", "floor")
        median[side] = {k: statistics.median(r.get(k, 0.0) for r in runs) for k in keys}
        cells = "  ".join(f"{k} {median[side][k]:.3f}" for k in parts)
        more = f"{median[side]['memory']:.0f} MiB, {median[side]['tokens']:.1f} tokens a reply"
        how = runs[0].get("how", "")
        print(f"{name:9} {side:5}  {cells}  {more}  {how}")
    a, b = median["assay"], median["TRL"]
    least = {side: min(run["step"] for run in runs) for side, runs in found.items()}
    update_a, update_b = (x["forward"] + x["backward"] for x in (a, b))
    print(
        f"{name:9} TRL / assay: step {b['step'] / a['step']:.2f} (least of all rounds "
        f"{least['TRL'] / least['assay']:.2f}), generate "
        f"{b['generate'] / a['generate']:.2f}, forward + backward {update_b / update_a:.2f}; "
        f"memory assay / TRL {a['memory'] / b['memory']:.2f}; products alone "
        f"{a['floor']:.3f} s, {a['floor'] / update_a:.0%} of forward + backward",
        flush=True,
    )


def main() -> None:
    """Run both in turn, and print medians and ratios."""
    arguments = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--steps", type=int, default=3)
    arguments.add_argument("--only", nargs="+", choices=SHAPES)
    arguments.add_argument("--gpu", action="store_true")
    arguments.add_argument("--child", nargs=2, metavar=("SIDE", "SHAPE"), help=argparse.SUPPRESS)
    given = arguments.parse_args()
    if given.child:
        side, name = given.child
        torch.set_num_threads(1)
        with tempfile.TemporaryDirectory() as folder:
            step = ours if side == "assay" else trl
            print(json.dumps(step(SHAPES[name], Path(folder), given.steps)))
        return
    if given.gpu and not torch.cuda.is_available():
        print(
            "no GPU here: the loads of 0.5B shapes were not measured. Run this where there is one"
        )
        return
    for name in given.only or [n for n in SHAPES if n.startswith("gpu") == given.gpu]:
        steps = ["--steps", str(given.steps)]
        commands = {
            side: partial(last_json, [sys.executable, __file__, "--child", side, name, *steps])
            for side in ("assay", "TRL")
        }
        report(name, in_turn(commands, given.rounds))


if __name__ == "__main__":
    main()
