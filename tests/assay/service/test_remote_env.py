"""A served environment is an environment: rollouts, vectors, learners cannot tell."""

import asyncio
import pickle

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from assay.envs import Completion, FunctionPolicy, GroupVectorEnv, arollout, rollout
from assay.service import RemoteEnv, RemoteError, ServiceLimits
from assay.verifiers import Rubric, Status

TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture
def sums(sums_server):
    env = RemoteEnv(sums_server, TOKEN)
    yield env
    env.close()


@pytest.fixture
def guess(guess_server):
    env = RemoteEnv(guess_server, TOKEN)
    yield env
    env.close()


def answers(conversations):
    """The sum where the first number is even; else something else."""
    found = []
    for messages in conversations:
        a = int(messages[0]["content"].split()[0])
        found.append(Completion(str(a + 17 if a % 2 == 0 else a)))
    return found


def halving(conversations):
    """Finds a number below 100 in seven guesses, so in six for some."""
    found = []
    for messages in conversations:
        low, high = 0, 99
        for before, after in zip(messages[1::2], messages[2::2], strict=False):
            said = int(before["content"])
            low, high = (said + 1, high) if after["content"] == "more" else (low, said - 1)
        found.append(Completion(str((low + high) // 2)))
    return found


class Policy:
    """A function of all conversations."""

    def __init__(self, answer):
        self.answer = answer

    def __call__(self, conversations):
        return self.answer(conversations)


def told(groups):
    """What must agree, references and reasons aside: those stay on the server."""
    return [
        (
            group.task.id,
            group.task.messages,
            [
                (e.turns, e.status, e.reward, e.rewards, e.step_rewards, e.truncated)
                for e in group.episodes
            ],
        )
        for group in groups
    ]


def test_a_rollout_from_afar_is_the_rollout_at_home(sums, served) -> None:
    at_home = rollout(served.Sums(), Policy(answers), 20, 3, seed=4)
    from_afar = rollout(sums, Policy(answers), 20, 3, seed=4)
    assert told(from_afar) == told(at_home)
    assert {e.reward for g in from_afar for e in g.episodes} == {0.0, 1.0}


def test_a_game_from_afar_is_the_game_at_home(guess, served) -> None:
    at_home = rollout(served.Guess(), Policy(halving), 40, 2, seed=1)
    from_afar = rollout(guess, Policy(halving), 40, 2, seed=1)
    assert told(from_afar) == told(at_home)
    assert any(e.truncated for g in from_afar for e in g.episodes)  # seven guesses are too many
    assert any(e.reward == 1.0 for g in from_afar for e in g.episodes)


def test_a_turn_that_was_cut_off_ends_the_game_as_at_home(guess, served) -> None:
    def cut(conversations):
        return [Completion("5", finish="length") for _ in conversations]

    assert told(rollout(guess, Policy(cut), 10, 2)) == told(
        rollout(served.Guess(), Policy(cut), 10, 2)
    )


@pytest.mark.parametrize("turns", [["50", "20", "60", "x", "3", "4"], ["7"]])
def test_step_by_step_it_is_the_game_at_home(guess, served, turns) -> None:
    home = served.Guess()
    assert guess.reset(options={"task": 7}) == home.reset(options={"task": 7})
    for turn in turns:
        mine, theirs = guess.step(turn), home.step(turn)
        mine[-1].pop("reason", None), theirs[-1].pop("reason", None)
        assert mine == theirs


def test_groups_of_a_vector_environment(sums, served) -> None:
    mine, theirs = (GroupVectorEnv(env, num_envs=6, group_size=2) for env in (sums, served.Sums()))
    seen, _ = mine.reset(seed=9)
    assert seen == theirs.reset(seed=9)[0]
    replies = [c.text for c in answers([[{"content": text}] for text in seen])]
    np.testing.assert_array_equal(mine.step(replies)[1], theirs.step(replies)[1])


def test_several_threads_ask_at_one_time(guess) -> None:
    async def policy(messages):
        return halving([messages])[0]

    async def rolled():
        tasks = [guess.task(i) for i in range(12)]
        return [group async for group in arollout(guess, policy, tasks, 2)]

    groups = asyncio.run(rolled())
    assert len(groups) == 12
    assert all(e.reward is not None for g in groups for e in g.episodes)


def test_gymnasium_finds_nothing_amiss(host, served) -> None:
    for made in (served.Sums(), served.Guess(), served.Echoed()):
        with host(made) as (url, _):
            env = RemoteEnv(url, TOKEN)
            check_env(env, skip_render_check=True)
            env.close()


def test_no_reference_comes_over(sums) -> None:
    task = sums.task(3)
    assert (task.reference, task.solution) == (3, None)
    assert sums.task(3) is task  # kept
    sums.reset(options={"task": 3})
    assert sums.step("4")[-1]["reason"] == ""  # "expected '20'" would tell


def test_it_pickles(sums) -> None:
    again = pickle.loads(pickle.dumps(sums.rubric))
    assert again.verify("20", 3).score == 1.0
    again.close()


def test_half_a_surrogate_pair_spoils_nobody_elses_score(sums) -> None:
    found = sums.rubric.verify_many(["20", "\ud800", "21"], [3, 3, 4])
    assert [v.score for v in found] == [1.0, 0.0, 1.0]


def test_a_batch_that_is_too_large_for_one_request_is_split(sums) -> None:
    found = sums.rubric.verify_many(["20"] * 2500, [3] * 2500)
    assert [v.score for v in found] == [1.0] * 2500


def test_a_reply_that_the_server_will_not_read_is_wrong_alone(sums) -> None:
    found = sums.rubric.verify_many(["20", "2" * 300_000, "20"], [3, 3, 3])
    assert [v.score for v in found] == [1.0, 0.0, 1.0]
    assert found[1].status is Status.UNPARSEABLE
    assert "300000 characters" in found[1].reason
    assert "at most 200000" in found[1].reason


def test_a_wrong_token_is_refused_at_once(sums_server) -> None:
    with pytest.raises(RemoteError, match="answered 401"):
        RemoteEnv(sums_server, "another-token-0123456789")


def test_no_server_is_told_with_a_remedy() -> None:
    with pytest.raises(RemoteError, match="Is 'assay serve' running"):
        RemoteEnv("http://127.0.0.1:9", TOKEN, retries=0)
    with pytest.raises(ValueError, match="must begin with http"):
        RemoteEnv("127.0.0.1:8000")


def test_a_server_that_goes_away_gives_no_score_and_never_zero(host, served) -> None:
    with host(served.Guess()) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        env.reset(options={"task": 9})
        env.step("50")
    _, reward, terminated, _, info = env.step("9")
    env.close()
    assert np.isnan(reward)
    assert (terminated, info["status"]) == (True, "verifier_error")


def test_an_episode_that_a_new_server_does_not_know_has_no_score(host, served) -> None:
    with host(served.Guess()) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        env.reset(options={"task": 9})
        env.step("50")
        env.remote.post("/v1/episodes/close", {"episodes": [env._state.data.episode]})
        assert np.isnan(env.step("9")[1])
        env.close()


def test_one_turn_that_must_be_played_is_scored_as_at_home(host, served) -> None:
    """Its rubric alone would say that ``a cat`` is wrong."""
    policy = FunctionPolicy(lambda messages: "a cat")
    with host(served.Echoed()) as (url, _):
        env = RemoteEnv(url, TOKEN)
        from_afar = rollout(env, policy, 1, 2)
        env.reset(seed=1)
        assert env.step("a dog")[1] == 0.0
        env.close()
    assert told(from_afar) == told(rollout(served.Echoed(), policy, 1, 2))
    assert from_afar[0].rewards == (1.0, 1.0)


def test_the_servers_group_rewards_are_those_at_home(host, served) -> None:
    def answer(conversations):
        total = int(conversations[0][0]["content"].split()[0]) + 17
        texts = [f"{total}", f"{total} or rather, as one may see, {total}", "cat", f"so {total}"]
        return [Completion(text) for text in texts]

    with host(served.Brief()) as (url, _):
        env = RemoteEnv(url, TOKEN)
        from_afar = rollout(env, Policy(answer), 1, 4)
        env.close()
    assert told(from_afar) == told(rollout(served.Brief(), Policy(answer), 1, 4))
    assert len(set(from_afar[0].rewards)) > 2
    assert {"rubric", "short"} <= set(from_afar[0].episodes[0].rewards)


def test_an_episode_too_long_for_its_group_is_wrong_alone(host, served) -> None:
    def answer(conversations):
        total = int(conversations[0][0]["content"].split()[0]) + 17
        ends = [str(total), f"{'x ' * 25_000}{total}", f"{'y ' * 20_000}{total}", f"so {total}"]
        return [Completion(text) for text in ends]

    with host(served.Brief(), ServiceLimits(body_bytes=80_000)) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        (group,) = rollout(env, Policy(answer), 1, 4)
        env.close()
    assert [reward and reward > 0 for reward in group.rewards] == [True, 0.0, True, True]
    assert "by group" in group.episodes[1].verdict.reason


def test_an_environment_that_raises_for_one_reply_scores_the_others(host, served) -> None:
    def said(conversations):
        return [Completion(text) for text in ("boom", "x", "boom", "7")]

    with host(served.Guess()) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        states = [env.begin(env.task(7)) for _ in range(4)]
        env.advance(states, said(None))
        found = [(state.ended, state.verdict and state.verdict.score) for state in states]
        env.close()
    assert found == [("done", None), ("", None), ("done", None), ("done", 1.0)]
    assert [said and said.status.value for said in (state.verdict for state in states)] == [
        "verifier_error",
        None,
        "verifier_error",
        "correct",
    ]


def test_a_server_that_goes_away_leaves_groups_without_rewards(host, served) -> None:
    with host(served.Brief()) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        (group,) = rollout(env, Policy(answers), 1, 2)
        assert group.masked == 0
    judged = env.group_rubric.judged(group.task, group.episodes)
    env.close()
    assert [e.reward for e in judged] == [None, None]


def test_tools_are_told_and_called_on_the_server(host, served) -> None:
    call = '<tool_call>{"name": "add", "arguments": {"a": 3, "b": 17}}</tool_call>'
    with host(served.Adding()) as (url, _):
        env, home = RemoteEnv(url, TOKEN), served.Adding()
        for turns in (None, call, "20"):
            mine, theirs = (
                e.reset(options={"task": 3}) if turns is None else e.step(turns)
                for e in (env, home)
            )
            mine[-1].pop("reason", None), theirs[-1].pop("reason", None)
            assert mine == theirs
        assert env.schemas == home.schemas
        env.close()


def test_episodes_that_are_left_are_given_back(host, served) -> None:
    with host(served.Guess()) as (url, app):
        env, held = RemoteEnv(url, TOKEN), app.state.service.budget
        for task in range(5):
            env.reset(options={"task": task})
            env.step("99")
        assert held.episodes.total() == 1
        env.close()
        assert held.episodes.total() == 0


def test_an_environment_that_raises_gives_no_score(guess) -> None:
    policy = FunctionPolicy(lambda messages: "boom")
    (group,) = rollout(guess, policy, 1, 2)
    assert group.rewards == (None, None)
    assert "KeyError" not in group.episodes[0].verdict.reason  # nor its message: the answer


def test_rewards_of_any_range_are_served(host, served):
    def pays(reply, reference):
        return {"right": 3, "wrong": -3}.get(reply, -9)

    env = served.Sums()
    env.rubric = Rubric({"pays": pays}, ranges={"pays": (-3, 3)})
    env.group_rubric = served.GroupRubric({"short": served.ShortReplies()}, gate=False)
    with host(env) as (url, _):
        remote = RemoteEnv(url, TOKEN)
        assert remote.rubric.score_range == (-3.0, 3.0)
        found = remote.rubric.verify_many(["right", "wrong", "odd"], [0, 1, 2])
        assert [v.score for v in found] == [3.0, -3.0, None]
        assert found[2].status is Status.VERIFIER_ERROR
        said = iter(["right", "wrong"])
        (group,) = rollout(remote, FunctionPolicy(lambda _: next(said)), 1, 2)
        remote.close()
    assert group.rewards == ((3 + 0.5) / 2, -3 / 2)
