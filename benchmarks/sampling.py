"""Tokens a CPU second: our sampler and transformers' `generate` in turn, in one run, and the ratio.

Eight prompts with eight replies each, all of the same length: no token ends them. Each side is
timed in process CPU seconds on one thread, which another load on the machine hardly changes, and
each runs several times, in turn; the ratio of the medians is printed. `copy` is our sampler with
transformers' cache copied to each reply, as it is used for models that the faster one does not
fit. `memory` is what each needs to hold of keys and values at the end of the replies.

    python benchmarks/sampling.py [--rounds 3] [--only S]
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from measuring import in_turn
from transformers import LlamaConfig, LlamaForCausalLM

from assay.grpo import decoder as decoders
from assay.grpo import sample

PROMPTS, GROUP = 8, 8
MODELS = {
    "S": {"hidden_size": 128, "intermediate_size": 384, "vocab_size": 64},
    "M": {"hidden_size": 256, "intermediate_size": 768, "vocab_size": 4096},
}
LENGTHS = ((64, 64), (256, 64), (64, 256))


def make_model(name: str) -> Any:
    """A Llama of four layers in which nothing ends a reply."""
    config = LlamaConfig(
        **MODELS[name],
        num_hidden_layers=4,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        tie_word_embeddings=True,
        bos_token_id=None,
        eos_token_id=None,
        pad_token_id=0,
    )
    torch.manual_seed(0)
    return LlamaForCausalLM(config).eval()


def sides(model: Any, prompt: int, reply: int) -> dict[str, Callable[[], object]]:
    """What is compared, by name; each makes ``PROMPTS * GROUP`` replies."""
    generator = torch.Generator().manual_seed(0)
    distinct = torch.randint(1, 64, (PROMPTS, prompt), generator=generator)
    ids = distinct.repeat_interleave(GROUP, dim=0)
    rows = ids.tolist()

    def ours(name: str) -> Callable[[], object]:
        def run() -> object:
            decoders.choose_decoder(model)
            state, _ = decoders._chosen[model]
            decoders._chosen[model] = state, name
            return sample(model, rows, max_new_tokens=reply)

        return run

    @torch.no_grad()
    def generate() -> object:
        return model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            do_sample=True,
            top_k=0,
            max_new_tokens=reply,
            min_new_tokens=reply,
        )

    return {"assay": ours("shared"), "copy": ours("copy"), "generate": generate}


def cpu_seconds(run: Callable[[], object]) -> float:
    """Call once, and return the process's seconds."""
    started = time.process_time()
    run()
    return time.process_time() - started


def main() -> None:
    """Run all in turn, and print medians and ratios."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--rounds", type=int, default=3)
    arguments.add_argument("--only", choices=list(MODELS))
    given = arguments.parse_args()
    torch.set_num_threads(1)
    for name in [given.only] if given.only else MODELS:
        model = make_model(name)
        for prompt, reply in LENGTHS:
            runs = sides(model, prompt, reply)
            turns = {side: partial(cpu_seconds, run) for side, run in runs.items()}
            found = in_turn(turns, given.rounds)
            seconds = {side: statistics.median(times) for side, times in found.items()}
            tokens = PROMPTS * GROUP * reply
            rates = ", ".join(f"{side} {tokens / s:,.0f}" for side, s in seconds.items())
            print(
                f"{name} {prompt} + {reply}: tokens a CPU second: {rates}; "
                f"assay / generate {seconds['generate'] / seconds['assay']:.2f}, "
                f"assay / copy {seconds['copy'] / seconds['assay']:.2f}; memory "
                f"{PROMPTS * prompt + PROMPTS * GROUP * reply:,} tokens against "
                f"{PROMPTS * GROUP * (prompt + reply):,}",
                flush=True,
            )


if __name__ == "__main__":
    main()
