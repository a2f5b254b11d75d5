"""Runs verl's reward managers and OpenRLHF's executor, the real ones; prints what they paid.

Both want other pins than ours, so they may live in a virtual environment of their own: what Assay
needs is then added behind it, from the folder that the first argument names. What neither can do
here is generate, without a GPU: tokens of written replies take the place of an engine's.
"""

import asyncio
import json
import site
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

if len(sys.argv) > 1:
    site.addsitedir(sys.argv[1])

import torch

from assay import make
from assay.adapters import to_openrlhf, to_verl, verl_agent_loop
from assay.grpo.loading import character_tokenizer
from assay.verifiers import Exact, Status, Verdict

ENV = make("assay/Arithmetic-v1")
TOKENS = character_tokenizer(["<|im_end|>"])
SIZE = 6
REWARD = """
from assay import make
from assay.adapters import {maker}

{name} = {maker}(make("assay/Arithmetic-v1"))
"""


def replies(indices):
    """Right, wrong and no answer at all, in turn."""
    made = []
    for place, index in enumerate(indices):
        known = ENV.task(index).solution
        made.append([known, r"\boxed{-1}", "I have no idea what this asks."][place % 3])
    return made


def by_verl(folder):
    """The parquet through its data set; each reply through three of its managers."""
    from omegaconf import OmegaConf
    from verl import DataProto
    from verl.experimental.reward_loop.reward_manager import get_reward_manager_cls
    from verl.trainer.ppo.reward import get_custom_reward_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.reward_manager import get_reward_manager_cls as get_older

    to_verl(ENV, folder / "train.parquet", size=SIZE)
    config = OmegaConf.create({"cache_dir": str(folder), "filter_overlong_prompts": True})
    rows = RLHFDataset(str(folder / "train.parquet"), TOKENS, config)
    (folder / "verl_reward_file.py").write_text(
        REWARD.format(maker="verl_reward", name="compute_score")
    )
    asked = {"path": str(folder / "verl_reward_file.py"), "name": "compute_score"}
    settings = OmegaConf.create(
        {
            "reward": {"custom_reward_function": asked, "reward_kwargs": {}},
            "data": {"reward_fn_key": "data_source"},
        }
    )
    score = get_custom_reward_fn(settings)

    served = [rows[i] for i in range(len(rows))]
    written = replies([row["extra_info"]["index"] for row in served])
    prompts = [TOKENS.apply_chat_template(r["raw_prompt"], tokenize=False) for r in served]
    asked_ids, asked_mask = _padded(prompts, left=True)
    given_ids, given_mask = _padded([f"{reply}<eos>" for reply in written], left=False)
    batch = DataProto.from_single_dict(
        {
            "prompts": asked_ids,
            "responses": given_ids,
            "attention_mask": torch.cat([asked_mask, given_mask], 1),
            **{
                name: _objects([row[name] for row in served])
                for name in ("data_source", "reward_model", "extra_info")
            },
        }
    )
    found = {}
    for name in ("naive", "dapo"):
        manager = get_reward_manager_cls(name)(settings, TOKENS, score)

        async def paid(manager=manager):
            return [await manager.run_single(batch[i : i + 1]) for i in range(SIZE)]

        answers = manager.loop.run_until_complete(paid())
        found[name] = [answer["reward_score"] for answer in answers]
        found["status"] = [answer["reward_extra_info"]["status"] for answer in answers]
    older = get_older("batch")(TOKENS, 0, score)(batch, return_dict=True)
    found["batch"] = older["reward_tensor"].sum(1).tolist()
    found["last token"] = (older["reward_tensor"] != 0).nonzero()[:, 1].tolist()
    found["lengths"] = given_mask.sum(1).tolist()
    return found


class Flaky(Exact):
    """Right or wrong by the text; "down" finds no sandbox."""

    def judge(self, reply, reference):
        if reply == "down":
            return Verdict.fault(Status.SANDBOX_ERROR, "no sandbox")
        return super().judge(reply, reference)


def by_verl_agent():
    """Two groups through its agent loop, its advantages and its losses."""
    from omegaconf import OmegaConf
    from verl.experimental.agent_loop.agent_loop import DictConfigWrap
    from verl.trainer.ppo.core_algos import agg_loss, get_adv_estimator_fn
    from verl.utils.dataset.rl_dataset import RLHFDataset
    from verl.workers.rollout.replica import TokenOutput

    class Server:
        async def generate(self, **_):
            ids = TOKENS(f"{self.reply}<eos>", add_special_tokens=False)["input_ids"]
            return TokenOutput(token_ids=ids)

    rollout = {"prompt_length": 64, "response_length": 16}
    config = OmegaConf.create({"actor_rollout_ref": {"rollout": rollout}, "data": {}})
    server = Server()
    loop = verl_agent_loop({"words": Flaky()})(
        DictConfigWrap(config), server, TOKENS, None, RLHFDataset, DictConfigWrap(config.data)
    )
    row = {"raw_prompt": [{"role": "user", "content": "?"}], "data_source": "words"}
    row["reward_model"] = {"ground_truth": '"yes"'}
    written = ["yes", "no", "down", "yes", "yes", "down"]
    groups = _objects(["a", "a", "a", "a", "b", "b"])

    async def played():
        found = []
        for server.reply in written:
            found.append((await loop.run({}, **row)).as_dict())
        return found

    answers = loop.loop.run_until_complete(played())
    width = max(len(answer["responses"]) for answer in answers)

    def stacked(name):
        rows = [torch.nn.functional.pad(a[name], (0, width - len(a[name]))) for a in answers]
        return torch.stack(rows)

    def advantages(estimator, places):
        return get_adv_estimator_fn(estimator)(
            token_level_rewards=stacked("rm_scores")[places],
            response_mask=stacked("response_mask")[places],
            index=groups[places],
            config=OmegaConf.create({"norm_adv_by_std_in_grpo": True}),
        )[0]

    mask, ours = stacked("response_mask"), advantages("assay_grpo", list(range(len(written))))
    gradients = {}
    for mode in ("token-mean", "seq-mean-token-sum", "seq-mean-token-mean"):
        logprobs = torch.zeros(mask.shape, requires_grad=True)
        agg_loss(-ours * logprobs.exp(), mask, mode).backward()
        gradients[mode] = logprobs.grad.abs().sum(1).tolist()
    return {
        "status": [a["extra_fields"]["reward_extra_info"]["status"] for a in answers],
        "ours": ours[:, 0].tolist(),
        "theirs without it": advantages("grpo", [0, 1, 3])[:, 0].tolist(),
        "gradients": gradients,
    }


def _padded(texts, *, left):
    ids = [TOKENS(text, add_special_tokens=False)["input_ids"] for text in texts]
    width = max(map(len, ids))
    rows, masks = [], []
    for row in ids:
        pad, no, yes = [TOKENS.pad_token_id] * (width - len(row)), [0] * (width - len(row)), [1]
        rows.append(pad + row if left else row + pad)
        masks.append(no + yes * len(row) if left else yes * len(row) + no)
    return torch.tensor(rows), torch.tensor(masks)


def _objects(values):
    import numpy as np

    return np.fromiter(values, dtype=object, count=len(values))


def by_openrlhf(folder):
    """The JSONL through its prompt data set; each reply through its executor."""
    from datasets import load_dataset
    from openrlhf.datasets.prompts_dataset import PromptDataset
    from openrlhf.utils.agent import SingleTurnAgentExecutor

    to_openrlhf(ENV, folder / "train.jsonl", size=SIZE, seed=3)
    (folder / "reward.py").write_text(REWARD.format(maker="openrlhf_reward", name="reward_func"))
    data = load_dataset(
        "json", data_files=str(folder / "train.jsonl"), split="train", cache_dir=str(folder)
    )
    keys = SimpleNamespace(input_key="prompt", label_key="label", apply_chat_template=True)
    strategy = SimpleNamespace(args=SimpleNamespace(data=keys), is_rank_0=lambda: False)
    rows = PromptDataset(data, TOKENS, strategy)
    written = replies([ENV.source.schedule(i, 3) for i in range(SIZE)])
    executor = SingleTurnAgentExecutor(str(folder / "reward.py"))
    sampling = SimpleNamespace(max_tokens=32, logprobs=None)

    async def paid():
        found = []
        for place, reply in enumerate(written):
            _, prompt, label, _ = rows[place]
            engine = Written(f"{reply}<|im_end|><eos>")
            found.append(await executor.execute(prompt, label, sampling, 512, TOKENS, engine))
        return found

    found = asyncio.run(paid())
    return {
        "reward": [one["reward"].item() for one in found],
        "scores": [one["scores"].item() for one in found],
        "unparseable": [one["extra_logs"]["unparseable"].item() for one in found],
    }


class Written:
    """Where vLLM would be: gives the tokens of a reply that is there already."""

    def __init__(self, reply):
        self.ids = TOKENS(reply, add_special_tokens=False)["input_ids"]

    async def generate(self, prompt_ids, params, multi_modal_data=None):
        output = SimpleNamespace(token_ids=self.ids, finish_reason="stop", logprobs=None)
        return SimpleNamespace(outputs=[output])


torch.set_num_threads(1)
with tempfile.TemporaryDirectory() as scratch:
    result = {"verl": by_verl(Path(scratch)), "openrlhf": by_openrlhf(Path(scratch))}
    result["agent"] = by_verl_agent()
sys.stdout.write(json.dumps(result) + "\n")
