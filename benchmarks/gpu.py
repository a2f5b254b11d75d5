"""An update and a sampled token on this machine's GPU: seconds, memory, the longest kernels.

Of Qwen2.5-0.5B's shape with weights from nothing, float32 with products in bfloat16: 4 prompts of
192 tokens, 8 replies of 512 to each. Memory is that of ``assay plan`` without the optimizer's,
beside the most that torch allocated.

    python benchmarks/gpu.py [--tokens 4096 16384] [--rows 512]
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import AutoModelForCausalLM

from assay.grpo import GRPOConfig, Row, accumulate_gradient, choose_forward, sample
from assay.grpo.model import set_autocast
from assay.plan.estimate import Job, plan, read_config
from assay.plan.trace import rows_of_step

NAME, PROMPT, REPLY = "qwen2.5-0.5b", 192, 512


def say(line: str) -> None:
    """Print a line now."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def seconds(call: Callable[[], object], times: int = 3) -> float:
    """Return the mean of some calls, after one that compiles."""
    call()
    torch.cuda.synchronize()
    started = time.perf_counter()
    for _ in range(times):
        call()
    torch.cuda.synchronize()
    return (time.perf_counter() - started) / times


def show_kernels(call: Callable[[], object], most: int = 10) -> None:
    """Print the kernels of a call that take longest."""
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        call()
        torch.cuda.synchronize()
    kernels = [(e.self_device_time_total / 1e3, e.count, e.key) for e in found.key_averages()]
    say(f"  kernels: {sum(ms for ms, _, _ in kernels):.1f} ms")
    for ms, count, name in sorted(kernels, reverse=True)[:most]:
        say(f"  {ms:8.2f} ms {count:6d} x {name[:90]}")


def main() -> None:
    """Measure, and print as it goes."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--tokens", type=int, nargs="+", default=[4096, 16384])
    arguments.add_argument("--rows", type=int, default=512, help="that are sampled side by side")
    given = arguments.parse_args()
    if not torch.cuda.is_available():
        raise SystemExit("error: torch finds no CUDA device: run this on a machine with a GPU")
    say(f"{torch.cuda.get_device_name()}, torch {torch.__version__}, {NAME}")
    torch.manual_seed(0)
    with torch.device("cuda"):
        model = AutoModelForCausalLM.from_config(read_config(NAME)).eval()
    set_autocast(model, torch.bfloat16)
    name, forward = choose_forward(model)
    for tokens in given.tokens:
        config = GRPOConfig(prompts_per_step=4, max_new_tokens=REPLY, tokens_per_batch=tokens)
        rows = rows_of_step(config, PROMPT)

        def update(rows: list[Row] = rows, config: GRPOConfig = config) -> None:
            model.zero_grad(set_to_none=True)
            accumulate_gradient(model, forward, rows, config)

        took = seconds(update)
        torch.cuda.reset_peak_memory_stats()
        update()
        measured = torch.cuda.max_memory_allocated() / 2**20
        job = Job(model=model.config, config=config, prompt_tokens=PROMPT)
        kinds = plan(job).phases["update"]
        planned = (sum(kinds.values()) - kinds["optimizer"]) / 2**20
        say(
            f"update of {len(rows)} rows by {tokens} tokens, {name} forward: {took:.3f} s; "
            f"{planned:.0f} MiB planned, {measured:.0f} measured"
        )
        show_kernels(update)
    prompts = [(5 + i // 8, *range(PROMPT - 1)) for i in range(given.rows)]
    room = 64
    took = seconds(lambda: sample(model, prompts, max_new_tokens=room), 1) / room
    say(f"a token of each of {given.rows} rows: {1e3 * took:.1f} ms")


if __name__ == "__main__":
    main()
