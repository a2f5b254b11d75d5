"""Several turns of plain text in TRL's GRPOTrainer: trained for real, token for token."""

import math
import pickle
import warnings

import pytest

from assay.envs import Generated, State, Task, TextEnv, TRLSpec, Turn, register
from assay.verifiers import Rubric, Status, Verdict

pytestmark = pytest.mark.slow

trl = pytest.importorskip("trl")
torch = pytest.importorskip("torch")


class Alternate(TextEnv):
    """Say a, and when asked again b: two turns that count alike."""

    def __init__(self, split: str = "train", max_turns: int = 2, breaks: bool = False) -> None:
        rubric = Rubric({"first": says(0, "a"), "second": says(1, "b")})
        # All prompts are alike: the words do not tell which task it is.
        source = Generated(lambda rng: Task("?", str(rng.integers(9))), name="Alternate")
        source.in_split = lambda prompt: True  # one prompt cannot be split
        source.split = split
        super().__init__(source, rubric, max_turns=max_turns)
        self.breaks = breaks

    def respond(self, state: State, reply: str) -> Turn:
        if self.breaks and reply.startswith("a"):
            return Turn.end(Verdict.fault(Status.SANDBOX_ERROR, "it went away"))
        return Turn.end() if len(state.step_rewards) == 1 else Turn.say("!?")

    def answer(self, state: State) -> str:
        return ".".join(m["content"] for m in state.turns if m["role"] == "assistant")


def says(turn: int, letter: str):
    return lambda reply, _: reply.split(".")[turn : turn + 1] == [letter]


register("test-trl/Alternate-v0", Alternate)
SPEC = TRLSpec("test-trl/Alternate-v0", size=64)


def test_training_on_episodes_of_two_turns_raises_the_reward(pocket, train, rewards) -> None:
    trainer = train(SPEC, *pocket("ab!?"), steps=30)
    found = rewards(trainer)
    assert sum(found[:3]) / 3 < 0.3
    assert sum(found[-3:]) / 3 > 0.8
    last = trainer.state.log_history[-2]
    for name in ("rewards/test_trl_Alternate_v0/mean", "parts/first", "parts/second"):
        assert name in last
    assert last["episode/turns"] > 1.8
    assert last["parts/first"] + last["parts/second"] == pytest.approx(2 * last["reward"], abs=1e-3)


class Watch:
    """What a trainer generates, what a rollout gives it, and where its loss has a gradient."""

    def __init__(self) -> None:
        self.sampled, self.outputs, self.losses, self.hidden = [], [], [], []

    def __call__(self, trainer) -> None:
        generate, roll, loss = (
            trainer._generate_single_turn,
            trainer.rollout_func,
            trainer._compute_loss,
        )

        def watched_generate(prompts, *rest):
            found = generate(prompts, *rest)
            self.sampled += [[*p, *ids] for p, ids in zip(prompts, found[0], strict=True)]
            return found

        def watched_roll(prompts, trainer):
            self.outputs.append(roll(prompts, trainer))
            return self.outputs[-1]

        def watched_loss(model, inputs):
            self.losses.append(inputs)
            return loss(model, inputs)

        def watched_norm(module, given, out) -> None:
            if out.requires_grad:
                out.retain_grad()
                self.hidden.append(out)

        trainer._generate_single_turn, trainer.rollout_func = watched_generate, watched_roll
        trainer._compute_loss = watched_loss
        trainer.model.model.norm.register_forward_hook(watched_norm)


@pytest.fixture
def watched(pocket, train):
    watch = Watch()
    train(SPEC, *pocket("ab!?"), prepare=watch)
    return watch


def test_an_episodes_tokens_are_those_that_the_model_sampled(watched) -> None:
    (output,) = watched.outputs
    sampled = {tuple(ids) for ids in watched.sampled}
    assert 0 in {mask for masks in output["env_mask"] for mask in masks}
    rows = zip(
        output["prompt_ids"],
        output["completion_ids"],
        output["env_mask"],
        output["assay_episode"],
        strict=True,
    )
    for prompt, ids, mask, episode in rows:
        # After the last turn nothing is added; at 8 tokens it is cut off.
        assert any(whole[: len(prompt + ids)] == (*prompt, *ids) for whole in sampled)
        assert len(ids) == len(mask) <= 8
        if 0 not in mask:
            assert len(episode.turns) < 3
            continue
        first = mask.index(0)
        assert (*prompt, *ids[:first]) in sampled
        assert mask == [1] * first + [0, 0] + [1] * (len(mask) - first - 2)
        assert len(episode.turns) == 3
    assert output["logprobs"] is None  # as TRL has it, where transformers generates


def test_logprobs_are_handed_on_where_the_generation_gives_them(pocket, train) -> None:
    """As vLLM does, which has None where it was NaN."""
    watch = Watch()

    def prepare(trainer) -> None:
        generate = trainer._generate_single_turn

        def with_logprobs(prompts, *rest):
            found, _ = generate(prompts, *rest)
            return found, [[None, *[-0.5] * (len(ids) - 1)] for ids in found]

        trainer._generate_single_turn = with_logprobs
        watch(trainer)

    train(SPEC, *pocket("ab!?"), prepare=prepare)
    (output,) = watch.outputs
    for logprobs, mask in zip(output["logprobs"], output["env_mask"], strict=True):
        assert [p == 0.0 for p in logprobs] == [not mine for mine in mask]
        assert math.isnan(logprobs[0])


def test_tokens_of_the_environment_have_a_gradient_of_exactly_zero(watched) -> None:
    (inputs,), (hidden,) = watched.losses, watched.hidden
    width = inputs["prompt_ids"].shape[1]
    learnt = hidden.grad.abs().sum(-1) > 0  # [B, L]: what predicts a token that is learnt
    mine = (inputs["completion_mask"] * inputs["tool_mask"]).bool()
    useful = mine & (inputs["advantages"] != 0)[:, None]
    environments = inputs["completion_mask"].bool() & ~inputs["tool_mask"].bool()
    predicting = learnt[:, width - 1 : -1]
    assert environments.sum() > 10
    assert useful.sum() > 10
    assert not predicting[environments].any()
    assert torch.equal(predicting, useful)
    assert not learnt[:, : width - 1].any()


def test_what_leaves_no_score_is_left_out(pocket, train) -> None:
    spec = TRLSpec("test-trl/Alternate-v0", size=64, env_kwargs={"breaks": True})
    trainer = train(spec, *pocket("ab!?"))
    log = trainer.state.log_history[0]
    assert 0 < log["status/sandbox_error"] < 1
    assert log["parts/first"] == 0  # over those that were judged


def test_an_episode_is_evaluated_on_the_test_split(pocket, train) -> None:
    spec = TRLSpec("test-trl/Alternate-v0", size=64, eval_size=16)
    assert spec.eval_dataset[3]["assay_split"] == "test"
    assert spec.eval_dataset[3]["prompt"][0]["assay_split"] == "test"
    trainer = train(spec, *pocket("ab!?"), per_device_eval_batch_size=16)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # transformers' about its own ways
        found = trainer.evaluate()
    assert "eval_parts/first" in found
    assert "eval_rewards/test_trl_Alternate_v0/mean" in found


def test_a_limit_of_tokens_is_for_the_whole_episode(pocket, train) -> None:
    watch = Watch()
    train(SPEC, *pocket("ab!?"), prepare=watch, max_completion_length=3)
    (output,) = watch.outputs
    assert max(map(len, output["completion_ids"])) == 3
    # A turn of two tokens and the environment's two leave no room: it is judged as it stands.
    cut = [e for e in output["assay_episode"] if len(e.turns) == 2]
    assert cut
    assert all(e.truncated and e.turns[-1]["content"] == "!?" for e in cut)
    assert {len(e.turns) for e in output["assay_episode"]} == {1, 2}


def test_the_prompt_says_which_task_it_is() -> None:
    rows = SPEC.train_dataset
    rollout = pickle.loads(pickle.dumps(SPEC.rollout_func))
    assert rows[0]["prompt"][-1]["assay_task"] == rows[0]["assay_task"]
    with pytest.raises(ValueError, match=r"names its task as 'assay_task', which is missing"):
        rollout([[{"role": "user", "content": "?"}]], None)
    mixed = [[{**rows[0]["prompt"][0], "assay_split": s}] for s in (None, "test")]
    with pytest.raises(ValueError, match="of one split"):
        rollout(mixed, None)
