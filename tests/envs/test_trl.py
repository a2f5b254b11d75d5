"""The same environment trains through TRL's own GRPOTrainer, on a tiny model, for real."""

import pickle

import pytest

from assay.envs import TRLSpec, make
from assay.verifiers import FunctionVerifier, Rubric

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")

ENV = "assay/Arithmetic-v0"


def test_completions_are_judged_standard_and_conversational() -> None:
    (reward,) = TRLSpec(ENV, size=2).reward_funcs
    env = make(ENV)
    answers = [env.task(i).reference for i in (0, 1)]
    metrics, extra = {}, {}
    given = {"assay_task": [0, 1], "prompts": [None] * 2, "trainer_state": None}
    scores = reward(completions=[answers[0], "nothing"], log_metric=metrics.__setitem__, **given)
    assert scores == [1.0, 0.0]
    assert metrics == {"parts/accuracy": 0.5, "status/correct": 0.5, "status/unparseable": 0.5}
    conversational = [[{"role": "assistant", "content": a}] for a in answers]
    assert reward(completions=conversational, log_extra=extra.__setitem__, **given) == [1.0, 1.0]
    assert extra["status"] == ["correct", "correct"]


def test_only_the_policys_last_words_are_judged() -> None:
    (reward,) = TRLSpec(ENV, size=1).reward_funcs
    answer = make(ENV).task(0).reference

    def score(*turns):
        messages = [{"role": role, "content": content} for role, content in turns]
        return reward(completions=[messages], assay_task=[0])[0]

    assert score(("assistant", "0"), ("tool", answer)) == 0.0
    assert score(("assistant", answer), ("tool", "0")) == 1.0
    assert score(("assistant", answer), ("assistant", None)) == 0.0  # a lone tool call
    assert score(("assistant", [{"type": "text", "text": answer}])) == 1.0
    assert score() == 0.0
    assert reward(completions=[[{"role": "assistant"}]], assay_task=[0]) == [0.0]


def test_a_fault_of_ours_is_none_to_trl() -> None:
    (reward,) = TRLSpec(ENV, size=2).reward_funcs
    reward.env.rubric = Rubric({"accuracy": FunctionVerifier(lambda reply, gold: 1 / 0)})
    assert reward(completions=["1"], assay_task=[0]) == [None]


def test_a_spec_travels_between_processes() -> None:
    spec = TRLSpec(ENV, size=3, env_kwargs={"digits": 1})
    (before,), (after,) = spec.reward_funcs, pickle.loads(pickle.dumps(spec)).reward_funcs
    assert before(completions=["1"], assay_task=[0]) == after(completions=["1"], assay_task=[0])
    loaded = pickle.loads(pickle.dumps(before))
    assert loaded.__name__ == "assay_Arithmetic_v0"
    assert loaded(completions=["x"], assay_task=[0]) == [0.0]


@pytest.mark.filterwarnings("ignore")
def test_grpo_trainer_trains_on_an_environment(tmp_path) -> None:
    from transformers import AutoModelForCausalLM, AutoTokenizer

    from assay.grpo import tiny_model

    torch.set_num_threads(1)
    tiny_model(tmp_path / "tiny", seed=0)
    model = AutoModelForCausalLM.from_pretrained(tmp_path / "tiny")
    before = model.state_dict()["lm_head.weight"].clone()
    config = trl.GRPOConfig(
        output_dir=str(tmp_path / "out"),
        use_cpu=True,
        bf16=False,
        max_steps=3,
        per_device_train_batch_size=8,
        num_generations=8,
        max_completion_length=4,
        learning_rate=1e-3,
        logging_steps=1,
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        seed=0,
    )
    spec = TRLSpec(ENV, size=24, env_kwargs={"digits": 1})
    trainer = trl.GRPOTrainer(
        model,
        args=config,
        processing_class=AutoTokenizer.from_pretrained(tmp_path / "tiny"),
        **spec.kwargs(),
    )
    trainer.train()
    logs = [log for log in trainer.state.log_history if "reward" in log]
    assert len(logs) == 3
    assert all("rewards/assay_Arithmetic_v0/mean" in log for log in logs)
    assert any("parts/accuracy" in key for key in logs[0])
    rewarded = any(log["reward_std"] > 0 for log in logs)
    assert rewarded == (not torch.equal(before, model.state_dict()["lm_head.weight"]))


def test_an_empty_data_set_is_refused() -> None:
    with pytest.raises(ValueError, match="size must be at least 1, got 0"):
        TRLSpec(ENV, size=0)
