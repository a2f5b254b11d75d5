"""The same environment trains through TRL's own GRPOTrainer, on a tiny model, for real."""

import importlib
import pickle
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import numpy as np
import pytest

from assay.envs import (
    Generated,
    GroupRubric,
    Rows,
    ShortReplies,
    State,
    Task,
    TextEnv,
    TRLSpec,
    Turn,
    make,
    register,
)
from assay.envs.trl import CombinedReward
from assay.verifiers import Exact, FunctionVerifier, Rubric, Verdict

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")

ENV = "assay/Arithmetic-v1"


def test_completions_are_judged_standard_and_conversational() -> None:
    (reward,) = TRLSpec(ENV, size=2).reward_funcs
    env = make(ENV)
    answers = [env.task(i).reference for i in (0, 1)]
    metrics, extra = {}, {}
    given = {"assay_task": [0, 1], "prompts": [None] * 2, "trainer_state": None}
    replies = [answers[0], "I cannot say what it is"]
    scores = reward(completions=replies, log_metric=metrics.__setitem__, **given)
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
    assert score(("assistant", {"text": answer})) == 0.0
    assert score(("assistant", [answer, {"text": int(answer)}, {"type": "image"}])) == 0.0
    for nothing in (None, [], [answer], {"role": "assistant"}, [{"role": "assistant"}]):
        assert reward(completions=[nothing], assay_task=[0]) == [0.0]


class Own(TextEnv):
    """Judge itself, a number by its last character, and its own way on each split."""

    def __init__(self, split: str = "train", case: bool = True) -> None:
        super().__init__(Rows([Task(split, "Ab")], split), Exact(case=case))

    def respond(self, state: State, reply: str) -> Turn:
        return Turn.end(Verdict.correct() if reply == "own" else None)

    def answer(self, state: State) -> str:
        return state.reply.removeprefix("Answer: ")


register("test-trl/Own-v0", Own)


def test_a_reply_is_judged_as_the_environment_judges_it() -> None:
    (reward,) = TRLSpec("test-trl/Own-v0", eval_kwargs={"case": False}).reward_funcs
    given = {"completions": ["own", "Answer: Ab", "ab", "ab"], "assay_task": [0] * 4}
    assert reward(**given) == [1.0, 1.0, 0.0, 0.0]
    assert reward(**given, assay_split=["test", "test", None, "test"]) == [1.0, 1.0, 0.0, 1.0]
    for column in (None, [0, 0, None, 0]):
        with pytest.raises(ValueError, match="in the column 'assay_task', which is missing"):
            reward(**{**given, "assay_task": column})
    with pytest.raises(ValueError, match="4 replies and 1 references"):
        reward(**{**given, "assay_task": [0]})


def brief(completions, **kwargs):
    """Pay short completions."""
    return [1.0 if len(c) < 3 else 0.0 for c in completions]


def test_a_reply_without_a_score_keeps_none_beside_a_second_function() -> None:
    """TRL's own sum would give 0 + 0.5 for a fault of ours."""
    (reward,) = TRLSpec(ENV, size=2).reward_funcs
    judge = FunctionVerifier(lambda reply, gold: 1 / 0 if reply == "5" else reply == gold)
    reward.env.rubric = Rubric({"accuracy": judge})
    answer = reward.env.task(0).reference
    both = CombinedReward(reward, brief, weights=(1.0, 0.5))
    metrics = {}
    found = both(
        completions=["5", answer, "none"], assay_task=[0] * 3, log_metric=metrics.__setitem__
    )
    assert found == [None, 1.0 + 0.5 * (len(answer) < 3), 0.0]
    assert both.__name__ == "assay_Arithmetic_v1+brief"
    assert metrics["rewards/assay_Arithmetic_v1"] == 0.5
    with pytest.raises(ValueError, match="2 functions and 1 weights"):
        CombinedReward(reward, brief, weights=(1.0,))

    async def later(completions, **kwargs):
        return [0.0]

    with pytest.raises(TypeError, match="later is a coroutine function"):
        CombinedReward(reward, later)
    with pytest.raises(TypeError, match=r"use CombinedReward\(one, other\), got \["):
        CombinedReward([reward, brief])
    with pytest.raises(ValueError, match="got 1 where brief gave 2"):
        CombinedReward(brief, lambda **_: [0.5])(completions=["5", "7"])


@pytest.mark.parametrize(
    ("column", "words"),
    [
        (None, "must give a list of numbers or None, got None"),
        (["good"], "must give a list of numbers or None, got .'good'"),
        ([float("inf")], "must give finite rewards, got .inf"),
    ],
)
def test_what_is_no_reward_is_refused(column, words) -> None:
    """One infinite reward makes the advantages of its whole group NaN."""
    with pytest.raises((TypeError, ValueError), match=words):
        CombinedReward(brief, lambda **_: column)(completions=["5"])


def test_nan_is_none_and_weights_are_finite() -> None:
    metrics = {}
    gap = CombinedReward(brief, lambda **_: [float("nan"), 0.5])
    assert gap(completions=["5", "7"], log_metric=metrics.__setitem__) == [None, 1.5]
    assert metrics["rewards/<lambda>"] == 0.5
    for weights in ((1.0, None), "12", (1.0, float("nan"))):
        with pytest.raises(ValueError, match="weights must be finite numbers"):
            CombinedReward(brief, brief, weights=weights)


@pytest.mark.parametrize(
    ("tasks", "words"),
    [
        ([float("nan")], "'assay_task', which is missing"),
        ([1.5], r"holds whole numbers, got 1\.5"),
        ([float(2**61 + 1)], "holds whole numbers, got"),
    ],
)
def test_a_column_that_names_no_task_is_refused(tasks, words) -> None:
    """A join leaves floats and gaps; 1.5 was task 1, and 2**61 + 1 as a float was task 2**61."""
    (reward,) = TRLSpec(ENV, size=2).reward_funcs
    with pytest.raises(ValueError, match=words):
        reward(completions=["5"], assay_task=tasks)
    answer = reward.env.task(2**61 + 1).reference
    assert reward(completions=[answer], assay_task=[2**61 + 1]) == [1.0]
    assert reward(completions=["x"], assay_task=[1.0]) == [0.0]


class Digit(TextEnv):
    """Say a and nothing else; that it is short counts too."""

    def __init__(self, split: str = "train") -> None:
        rubric = Rubric(
            {"right": lambda reply, _: reply[:1] == "a", "short": lambda reply, _: len(reply) == 1}
        )
        super().__init__(Generated(draw, name="Digit", split=split), rubric)


def draw(rng) -> Task:
    return Task("?" * int(rng.integers(1, 30)), reference="a")


register("test-trl/Digit-v0", Digit)
register("test-trl/Whole-v0", lambda: Digit())


@pytest.mark.slow  # training with tools, in test_trl_tools.py, is quick
@pytest.mark.parametrize("trainer", ["GRPO", "RLOO"])
def test_training_raises_the_reward(pocket, train, rewards, trainer: str) -> None:
    spec = TRLSpec("test-trl/Digit-v0", size=64)
    settings = {"steps": 20, "beta": 0.0, "max_completion_length": 3}
    trained = train(spec, *pocket("ab?"), trainer=trainer, **settings)
    found = rewards(trained)
    assert sum(found[:3]) / 3 < 0.4
    assert sum(found[-3:]) / 3 > 0.6
    last = trained.state.log_history[-2]
    for name in ("rewards/test_trl_Digit_v0/mean", "parts/right", "parts/short"):
        assert name in last


def test_a_spawned_process_judges_and_plays_as_this_one(tmp_path, monkeypatch) -> None:
    """As AsyncGRPO's does, which is handed pickles; the id was never registered there."""
    (tmp_path / "far_away.py").write_text(FAR_AWAY)
    monkeypatch.syspath_prepend(tmp_path)
    register("test-trl/Far-v0", "far_away:Far")
    (reward,) = TRLSpec("test-trl/Far-v0").reward_funcs
    factory = TRLSpec("test-trl/Far-v0", own_reward=True).environment_factory
    (arithmetic,) = TRLSpec(ENV).reward_funcs
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        given = {"completions": ["a", "b"], "assay_task": [0, 1]}
        assert pool.submit(reward, **given).result(60) == [1.0, 0.0] == reward(**given)
        assert pool.submit(arithmetic, **given).result(60) == [0.0, 0.0]
        spawned = importlib.import_module("far_away")
        assert pool.submit(spawned.play, factory).result(60) == spawned.play(factory)


FAR_AWAY = '''
from assay.envs import Rows, Task, TextEnv, Turn
from assay.verifiers import Exact


def press() -> str:
    """Press the button."""


class Far(TextEnv):
    tools = {"press": press}

    def __init__(self):
        super().__init__(Rows([Task("?", "a"), Task("!", "a")]), Exact(), max_turns=2)

    def respond(self, state, reply):
        return Turn.say("pressed", role="tool")


def play(factory):
    episode = factory()
    episode.reset(assay_task=1)
    return type(episode).__name__, episode.press(), episode.get_reward()
'''


def test_async_grpo_scores_with_pickles_of_what_a_spec_gives(pocket) -> None:
    """TRL's own loop, which the trainer starts in a spawned process; only its server is missing."""
    worker = pytest.importorskip("trl.experimental.async_grpo.async_rollout_worker")
    _, tokenizer = pocket("ab?")
    tokenizer.response_template = {"defaults": {"role": "assistant"}, "fields": {}}
    spec = TRLSpec("test-trl/Digit-v0", size=4)
    given = pickle.loads(pickle.dumps(spec.kwargs()))
    shared = ("rollout_buffer", "model_version_value", "heartbeat_value", "failed_event")
    loop = worker._AsyncRolloutLoop(
        model_name="pocket",
        dataset=given["train_dataset"],
        reward_funcs=given["reward_funcs"],
        processing_class=tokenizer,
        eos_token_ids=[tokenizer.eos_token_id],
        **dict.fromkeys((*shared, "exception_info_queue", "metrics_queue")),
    )
    (row, *_) = given["train_dataset"]
    words = ["a", "ab", "b"]
    group = worker.RolloutGroup(
        prompts=[row["prompt"]] * 3,
        reward_kwargs={"assay_task": [row["assay_task"]] * 3},
        completions=[[{"role": "assistant", "content": w}] for w in words],
        completions_ids=[[0]] * 3,
        completions_sequences=[[worker.TrainingSequence([0], [1], [0.0], None)] for _ in words],
        tool_call_counts=[0] * 3,
        tool_failure_counts=[0] * 3,
        model_version=0,
        group_id=0,
        env_rewards=[None] * 3,
        rollout_rewards=[None] * 3,
    )
    importlib.import_module("accelerate.state").PartialState()  # as its process does
    samples = loop._loop.run_until_complete(loop._score_group(group))
    loop._loop.run_until_complete(loop._loop.shutdown_default_executor())
    loop._loop.close()
    assert [s.metrics["rewards/test_trl_Digit_v0"] for s in samples] == [1.0, 0.5, 0.5]
    assert [round(s.advantage, 3) for s in samples] == [1.414, -0.707, -0.707]


def test_the_mode_is_what_the_environment_is() -> None:
    assert TRLSpec(ENV).resolved() == "single"
    assert TRLSpec(ENV, mode="turns").resolved() == "turns"
    assert set(TRLSpec(ENV, size=1).kwargs()) == {"train_dataset", "reward_funcs"}
    assert set(TRLSpec(ENV, size=1, mode="turns").kwargs()) == {
        "train_dataset",
        "reward_funcs",
        "rollout_func",
    }
    assert "assay_task" not in TRLSpec(ENV, size=1).train_dataset[0]["prompt"][0]
    with pytest.raises(ValueError, match=r"mode must be one of .*, got 'both'"):
        TRLSpec(ENV, mode="both")


def test_a_data_set_for_evaluation_is_of_the_test_split() -> None:
    test = make(ENV, split="test")
    (reward,) = TRLSpec(ENV).reward_funcs
    answers = [test.task(i).reference for i in range(3)]
    assert reward(completions=answers, assay_task=[0, 1, 2], assay_split=["test"] * 3) == [1.0] * 3
    with pytest.raises(ValueError, match="takes no 'split'"):
        TRLSpec("test-trl/Whole-v0", eval_size=1).kwargs()


def test_a_group_rubric_is_refused() -> None:
    """It was not applied, without a word."""
    register("test-trl/Grouped-v0", Grouped)
    with pytest.raises(ValueError, match="Grouped-v0 has a group_rubric"):
        TRLSpec("test-trl/Grouped-v0", size=1).kwargs()


class Grouped(TextEnv):
    """Has a reward for short replies of a group."""

    def __init__(self) -> None:
        super().__init__(Rows([Task("2 + 3 =", reference="5")]), Exact())
        self.group_rubric = GroupRubric({"length": ShortReplies()})


def test_numbers_of_a_spec_are_whole_and_may_be_of_numpy() -> None:
    plain, numpy = TRLSpec(ENV, size=3, seed=5), TRLSpec(ENV, size=np.int64(3), seed=np.int64(5))
    assert numpy.train_dataset.to_list() == plain.train_dataset.to_list()
    for numbers, least in (
        ({"seed": "a"}, ""),
        ({"seed": None}, ""),
        ({"size": True}, ""),
        ({"eval_size": 1.0}, ""),
        ({"size": 0}, " of at least 1, got 0"),
        ({"eval_size": -1}, " of at least 0, got -1"),
    ):
        with pytest.raises(ValueError, match=f"must be a whole number{least}"):
            TRLSpec(ENV, **numbers)
