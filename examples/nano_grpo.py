"""GRPO in one file: a tiny model learns two-digit sums from rewards alone.

Plain torch and transformers; only the tasks, the rewards and the untrained model are Assay's. The
equations are those of DeepSeekMath (arXiv 2402.03300). ``assay train`` runs the same algorithm
with memory bounds, checkpoints, guards and many more objectives.

    python examples/nano_grpo.py              # held-out pass@1 rises by about 0.25
    python examples/nano_grpo.py --steps 2    # a quick look

Shapes: P prompts, G replies to each, B = P * G replies, T tokens of the longest reply.
"""

import argparse
import copy
import tempfile
import time

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from assay import make
from assay.grpo import tiny_model

parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
parser.add_argument("--steps", type=int, default=200, help="rollouts, each trained on MU times")
parser.add_argument("--seed", type=int, default=0)

# --- Config
PROMPTS, GROUP = 32, 8  # P and G
MAX_NEW_TOKENS = 6
TEMPERATURE = 1.0
LEARNING_RATE = 1e-3  # a pretrained model takes 1e-6
WARMUP_STEPS = 10  # to the full learning rate, which then falls to 0
MAX_GRAD_NORM = 1.0
MU = 2  # optimizer steps on each rollout
CLIP = 0.2  # epsilon of eq. 3
BETA = 0.0  # weight of the KL penalty of eq. 3; at 0 no reference model is run
EPS = 1e-6  # keeps a group of equal rewards at an advantage of 0
WARM = 0.3  # held-out pass@1 at which GRPO takes over from worked examples


# --- Rollout: replies from the policy, each prompt GROUP times
@torch.no_grad()
def sample(model, tokenizer, tasks, group_size):
    """Sample ``group_size`` replies to each task; prompts are padded on the left.

    Returns:
        Token ids [B, L] of prompt and reply, which of them are not padding [B, L], and which
        the policy wrote [B, L]: the reply up to and including its end-of-sequence token.
    """
    prompts = tokenizer.apply_chat_template(
        [list(task.messages) for task in tasks],
        add_generation_prompt=True,
        padding=True,
        return_dict=True,
        return_tensors="pt",
    )
    ids, there = (
        prompts[name].repeat_interleave(group_size, dim=0)
        for name in ("input_ids", "attention_mask")
    )
    sampled = model.generate(
        input_ids=ids,
        attention_mask=there,
        do_sample=True,
        temperature=TEMPERATURE,
        top_k=0,  # the whole distribution, so that log-probabilities are those of the model
        top_p=1.0,
        max_new_tokens=MAX_NEW_TOKENS,
        pad_token_id=tokenizer.pad_token_id,
    )
    replies = sampled[:, ids.shape[1] :]
    ends = (replies == tokenizer.eos_token_id).long()
    written = ends.cumsum(1) - ends == 0  # no end before it
    return (
        sampled,
        torch.cat([there.bool(), written], dim=1),
        torch.cat([torch.zeros_like(there, dtype=torch.bool), written], dim=1),
    )


def judge(env, tokenizer, tasks, ids, written, group_size):
    """Return the reward of each reply [P, G]; NaN where the verifier failed, which is not 0."""
    texts = [
        tokenizer.decode(row[mine], skip_special_tokens=True)
        for row, mine in zip(ids, written, strict=True)
    ]
    references = [task.reference for task in tasks for _ in range(group_size)]
    scores = [verdict.score for verdict in env.rubric.verify_many(texts, references)]
    rewards = [float("nan") if score is None else score for score in scores]
    return torch.tensor(rewards).view(len(tasks), group_size)


# --- Model: log-probabilities of each token given those before it
def logprobs_of(model, ids, there):
    """Return log p(ids[:, t] | ids[:, :t]) for t from 1 on. [B, L - 1]."""
    positions = (there.cumsum(1) - 1).clamp(min=0)
    logits = model(input_ids=ids, attention_mask=there.long(), position_ids=positions).logits
    logprobs = (logits[:, :-1] / TEMPERATURE).log_softmax(-1)
    return logprobs.gather(2, ids[:, 1:, None])[:, :, 0]


# --- Advantage, section 4.1.2:  A_i = (r_i - mean(r)) / std(r), over the group of one prompt
def advantages_of(rewards):
    """Compare each reply with the others to its prompt. [P, G] to [P, G]; NaN becomes 0."""
    centred = rewards - rewards.nanmean(dim=1, keepdim=True)
    std = centred.square().nanmean(dim=1, keepdim=True).sqrt()
    return (centred / (std + EPS)).nan_to_num(0.0)


# --- Loss
def loss_of(logprobs, old_logprobs, advantages, mask, replies, reference_logprobs=None):
    """Compute the negated objective of eq. 3, to be minimised.

        J = 1/G sum_i 1/|o_i| sum_t { min[ rho A_i, clip(rho, 1 - eps, 1 + eps) A_i ] - beta KL }
        rho = pi(o_it | q, o_i<t) / pi_old(o_it | q, o_i<t)
        KL  = pi_ref / pi - log(pi_ref / pi) - 1                                         (eq. 4)

    Args:
        logprobs: [B, L] under the policy that is trained; the only input with a gradient.
        old_logprobs: [B, L] under the policy that sampled.
        advantages: [B].
        mask: [B, L] of bool, True on the tokens that the policy wrote.
        replies: number of replies of the step that have a reward, those that are left out here
            because they have no gradient included.
        reference_logprobs: [B, L] under the reference policy; needed if BETA is not 0.
    """
    rho = (logprobs - old_logprobs).exp()
    advantages = advantages[:, None]
    gain = torch.minimum(rho * advantages, rho.clamp(1 - CLIP, 1 + CLIP) * advantages)
    if BETA:
        log_ratio = reference_logprobs - logprobs
        gain = gain - BETA * (log_ratio.exp() - log_ratio - 1)
    return -(gain.masked_fill(~mask, 0.0).sum(1) / mask.sum(1)).sum() / replies


# --- Evaluation: the share of right replies to held-out tasks, one sampled reply to each
def pass_at_1(model, tokenizer, env, tasks):
    """Return the mean reward of one reply to each task; a failed verifier is not counted."""
    ids, _, written = sample(model, tokenizer, tasks, 1)
    return float(judge(env, tokenizer, tasks, ids, written, 1).nanmean())


# --- Loop
def optimize(model, optimizer, loss):
    """Take one optimizer step down the gradient of the loss."""
    optimizer.zero_grad()
    loss.backward()
    torch.nn.utils.clip_grad_norm_(model.parameters(), MAX_GRAD_NORM)
    optimizer.step()


def warm_up(model, tokenizer, env, test, held_out):
    """Train on worked sums until some replies are right: GRPO needs rewards that differ."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-3, weight_decay=0.01)
    for step in range(2000):
        if step % 20 == 0 and pass_at_1(model, tokenizer, test, held_out) >= WARM:
            return
        tasks = [env.task(i % 3000) for i in range(128 * step, 128 * step + 128)]
        texts = [task.text + task.solution + tokenizer.eos_token for task in tasks]
        batch = tokenizer(texts, padding=True, return_tensors="pt")
        ids, there = batch["input_ids"], batch["attention_mask"].bool()
        prompts = torch.tensor([len(tokenizer(task.text)["input_ids"]) for task in tasks])
        mask = (there.cumsum(1) > prompts[:, None])[:, 1:]
        optimize(model, optimizer, -logprobs_of(model, ids, there)[mask].mean())


def train(model, tokenizer, env, steps):
    """Roll out, compare, and update: algorithm 1 with rewards by rule."""
    reference = copy.deepcopy(model) if BETA else None
    optimizer = torch.optim.AdamW(model.parameters(), lr=LEARNING_RATE, weight_decay=0.0)
    # A few first steps at the full rate can lead to rewards of 0, where no gradient leads back.
    rates = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda step: min((step + 1) / WARMUP_STEPS, 1.0) * (1.0 - step / steps)
    )
    for step in range(steps):
        tasks = [env.task(i) for i in range(PROMPTS * step, PROMPTS * (step + 1))]
        ids, there, written = sample(model, tokenizer, tasks, GROUP)
        rewards = judge(env, tokenizer, tasks, ids, written, GROUP)
        advantages = advantages_of(rewards).flatten()
        # Without the KL penalty the others have no gradient: leaving them out is exact.
        kept = ~rewards.flatten().isnan() if BETA else advantages != 0
        ids, there, mask = ids[kept], there[kept], written[kept, 1:]
        scored = int((~rewards.isnan()).sum())
        with torch.no_grad():
            known = logprobs_of(reference, ids, there) if reference else None
        old = None
        for _ in range(MU if kept.any() else 0):
            logprobs = logprobs_of(model, ids, there)
            old = logprobs.detach() if old is None else old  # the policy that sampled is the first
            loss = loss_of(logprobs, old, advantages[kept], mask, scored, known)
            optimize(model, optimizer, loss)
        rates.step()
        if step % 10 == 0:
            print(f"step {step:4d}  mean reward {float(rewards.nanmean()):.3f}", flush=True)


def main():
    """Make a model, warm it up, train it, and compare it with how it began."""
    arguments = parser.parse_args()
    started = time.perf_counter()
    torch.manual_seed(arguments.seed)
    torch.set_num_threads(1)  # more gain nothing on so small a model
    with tempfile.TemporaryDirectory() as folder:  # any folder that transformers loads will do
        tiny_model(folder, seed=arguments.seed)
        model = AutoModelForCausalLM.from_pretrained(folder).eval()  # no dropout
        tokenizer = AutoTokenizer.from_pretrained(folder, padding_side="left")
    env, test = (make("assay/Arithmetic-v1", split=split) for split in ("train", "test"))
    held_out = list({task.text: task for task in map(test.task, range(1000))}.values())
    warm_up(model, tokenizer, env, test, held_out)
    before = pass_at_1(model, tokenizer, test, held_out)
    print(f"warm start: {time.perf_counter() - started:.0f} s", flush=True)
    train(model, tokenizer, env, arguments.steps)
    after = pass_at_1(model, tokenizer, test, held_out)
    print(f"held-out pass@1 of {len(held_out)} sums: {before:.3f} before, {after:.3f} after")
    print(f"{time.perf_counter() - started:.0f} s")


if __name__ == "__main__":
    main()
