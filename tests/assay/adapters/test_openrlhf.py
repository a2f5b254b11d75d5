"""OpenRLHF: the reward file that it loads, and the JSONL that its prompt data set reads."""

import importlib.util
import json

import pytest

from assay import Exact, make
from assay.adapters import RewardFault, openrlhf_reward, to_openrlhf
from assay.adapters.openrlhf import reply_of
from assay.verifiers import Status, Verdict, Verifier

torch = pytest.importorskip("torch")
torch.set_num_threads(1)

REWARD_FILE = """
from assay import make
from assay.adapters import openrlhf_reward

reward_func = openrlhf_reward(make("assay/Arithmetic-v1"))
"""


def loaded(path):
    """As OpenRLHF does: a module by its path, and its ``reward_func``."""
    spec = importlib.util.spec_from_file_location("reward_func", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.reward_func


def test_the_reward_file_judges_the_written_rows(tmp_path):
    env = make("assay/Arithmetic-v1")
    assert to_openrlhf(env, tmp_path / "rows.jsonl", size=6, seed=3) == 6
    rows = [json.loads(line) for line in (tmp_path / "rows.jsonl").read_text().splitlines()]
    (tmp_path / "reward.py").write_text(REWARD_FILE)
    reward_func = loaded(tmp_path / "reward.py")
    tasks = [env.task(env.source.schedule(i, 3)) for i in range(6)]
    assert [row["prompt"] for row in rows] == [[dict(m) for m in t.messages] for t in tasks]
    prompts = [f"<|user|>{row['prompt'][-1]['content']}<|assistant|>" for row in rows]
    replies = [task.solution if i < 4 else "I have no idea of it" for i, task in enumerate(tasks)]
    queries = [p + r + "<|im_end|>" for p, r in zip(prompts, replies, strict=True)]
    found = reward_func(queries, prompts, [row["label"] for row in rows])
    assert found["rewards"].tolist() == [1.0, 1.0, 1.0, 1.0, 0.0, 0.0]
    assert found["scores"].tolist() == found["rewards"].tolist()
    assert found["extra_logs"]["acc"].tolist() == found["rewards"].tolist()
    assert found["extra_logs"]["unparseable"].tolist() == [0.0, 0.0, 0.0, 0.0, 1.0, 1.0]


def test_one_reply_at_a_time_gives_one_value_of_each():
    found = openrlhf_reward(Exact())(["q:Paris"], ["q:"], ['"Paris"'])
    for value in (found["rewards"], found["scores"], *found["extra_logs"].values()):
        assert value.shape == (1,)
        assert value.dtype == torch.float32


@pytest.mark.parametrize(
    "end", ["", "<|im_end|>", "<|im_end|>\n<|endoftext|><|endoftext|>", "</s></s>", "<|eot_id|>"]
)
def test_tokens_that_end_the_reply_are_not_judged(end):
    """OpenRLHF decodes with special tokens; ``Paris<|im_end|>`` must equal ``Paris``."""
    found = openrlhf_reward(Exact())([f"<s>q:Paris{end}"], ["q:"], ['"Paris"'])
    assert found["rewards"].tolist() == [1.0]


def test_ends_of_another_tokenizer_can_be_named():
    ask = ["q:Paris<stop>"], ["q:"], ['"Paris"']
    assert openrlhf_reward(Exact())(*ask)["rewards"].tolist() == [0.0]
    assert openrlhf_reward(Exact(), ends=["<stop>"])(*ask)["rewards"].tolist() == [1.0]
    with pytest.raises(ValueError, match="give a list"):
        openrlhf_reward(Exact(), ends="<stop>")


def test_the_question_is_never_judged():
    """The answer stands in the prompt; only the reply counts."""
    found = openrlhf_reward(Exact(extract=("boxed",)))(
        [r"As in \boxed{7}, what is it? none"], [r"As in \boxed{7}, what is it?"], ['"7"']
    )
    assert found["rewards"].tolist() == [0.0]
    assert reply_of("<s> 2+2= 4", "2+2=") == " 4"
    with pytest.raises(ValueError, match="does not hold its prompt"):
        reply_of("+2= 4", "2+2=")


def test_a_fault_of_ours_raises():
    class Broken(Verifier):
        def judge(self, reply, reference):
            return Verdict.fault(Status.VERIFIER_ERROR, "out of order")

    with pytest.raises(RewardFault, match="out of order"):
        openrlhf_reward(Broken())(["q:a"], ["q:"], ["null"])
