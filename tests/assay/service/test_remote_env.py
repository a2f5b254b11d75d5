"""A served environment is an environment: rollouts, vectors, learners cannot tell."""

import asyncio
import contextlib
import pickle

import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env

from assay.envs import (
    Completion,
    FunctionPolicy,
    GroupVectorEnv,
    TRLSpec,
    arollout,
    register,
    rollout,
)
from assay.service import RemoteEnv, RemoteError, ServiceLimits
from assay.verifiers import Rubric, Status

TOKEN = "a-token-of-the-tests-0123456789"


@pytest.fixture
def sums(sums_server):
    with contextlib.closing(RemoteEnv(sums_server, TOKEN)) as env:
        yield env


@pytest.fixture
def guess(guess_server):
    with contextlib.closing(RemoteEnv(guess_server, TOKEN)) as env:
        yield env


@contextlib.contextmanager
def remote(host, env, limits=None, **kwargs):
    """A client of an environment that is served from a thread."""
    with host(env, limits) as (url, _), contextlib.closing(RemoteEnv(url, TOKEN, **kwargs)) as far:
        yield far


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


def visible(groups):
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


def cut(conversations):
    return [Completion("5", finish="length") for _ in conversations]


def brief(conversations):
    total = int(conversations[0][0]["content"].split()[0]) + 17
    texts = [f"{total}", f"{total} or rather, as one may see, {total}", "cat", f"so {total}"]
    return [Completion(text) for text in texts]


@pytest.mark.parametrize(
    ("name", "policy", "groups", "size", "found"),
    [
        ("Sums", answers, 20, 3, {0.0, 1.0}),
        ("Guess", halving, 40, 2, {0.0, 1.0}),  # seven guesses are too many
        ("Guess", cut, 10, 2, {0.0}),
        ("Brief", brief, 1, 4, None),
        # Its rubric alone would say that ``a cat`` is wrong.
        ("Echoed", lambda found: [Completion("a cat") for _ in found], 1, 2, {1.0}),
    ],
)
def test_a_rollout_from_afar_is_the_rollout_at_home(
    host, served, name, policy, groups, size, found
) -> None:
    with remote(host, getattr(served, name)()) as env:
        from_afar = rollout(env, policy, groups, size, seed=4)
    at_home = getattr(served, name)()
    assert visible(from_afar) == visible(rollout(at_home, policy, groups, size, seed=4))
    episodes = [e for g in from_afar for e in g.episodes]
    assert (
        found is None or {e.reward if e.reward in (0.0, None) else 1.0 for e in episodes} == found
    )
    assert any(e.truncated for e in episodes) is (name == "Guess")
    if name == "Brief":
        assert len({e.reward for e in episodes}) > 2
        assert {"rubric", "short"} <= set(episodes[0].rewards)


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
        with remote(host, made) as env:
            check_env(env, skip_render_check=True)


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


def test_rewards_of_trl_are_the_servers(sums_server) -> None:
    pytest.importorskip("datasets")
    register("served/Remote-v0", "assay.service:RemoteEnv")
    spec = TRLSpec("served/Remote-v0", size=6, env_kwargs={"url": sums_server, "token": TOKEN})
    (reward,) = spec.reward_funcs
    rows = spec.train_dataset
    right = [str(int(row["prompt"][0]["content"].split()[0]) + 17) for row in rows]
    found = reward(completions=[*right, "no"], assay_task=[*rows["assay_task"], 1])
    assert found == [1.0] * 6 + [0.0]
    reward.env.close()
    spec._environment.at().close()


def test_a_batch_that_is_too_large_for_one_request_is_split(sums) -> None:
    found = sums.rubric.verify_many(["20", "\ud800", "20"] * 800, [3] * 2400)
    assert [v.score for v in found] == [1.0, 0.0, 1.0] * 800


def test_a_wrong_token_is_refused_at_once(sums_server) -> None:
    with pytest.raises(RemoteError, match="answered 401"):
        RemoteEnv(sums_server, "another-token-0123456789")


def test_no_server_is_reported_with_a_remedy() -> None:
    with pytest.raises(RemoteError, match="Is 'assay serve' running"):
        RemoteEnv("http://127.0.0.1:9", TOKEN, retries=0)
    with pytest.raises(ValueError, match="must begin with http"):
        RemoteEnv("127.0.0.1:8000")


@pytest.mark.parametrize("lost", ["server", "episode"])
def test_an_episode_that_is_lost_has_no_score_and_never_zero(host, served, lost) -> None:
    with contextlib.ExitStack() as stack:
        url, app = stack.enter_context(host(served.Guess()))
        env = RemoteEnv(url, TOKEN, retries=0)
        env.reset(options={"task": 9})
        env.step("50")
        if lost == "server":
            stack.close()
        else:
            service = app.state.service
            service.sessions.limits = ServiceLimits(idle_s=1e-9)
            service.sessions.forget_idle()
        _, reward, terminated, _, info = env.step("9")
        env.close()
    assert np.isnan(reward)
    assert (terminated, info["status"]) == (True, "verifier_error")


def test_an_episode_too_long_for_its_group_is_wrong_alone(host, served) -> None:
    def answer(conversations):
        total = int(conversations[0][0]["content"].split()[0]) + 17
        ends = [str(total), f"{'x ' * 25_000}{total}", f"{'y ' * 20_000}{total}", f"so {total}"]
        return [Completion(text) for text in ends]

    with remote(host, served.Brief(), ServiceLimits(body_bytes=80_000), retries=0) as env:
        (group,) = rollout(env, answer, 1, 4)
    assert [reward and reward > 0 for reward in group.rewards] == [True, 0.0, True, True]
    assert "by group" in group.episodes[1].verdict.reason


def test_an_environment_that_raises_for_one_reply_scores_the_others(host, served) -> None:
    replies = [Completion(text) for text in ("boom", "x", "boom", "7")]
    with remote(host, served.Guess(), retries=0) as env:
        states = [env.begin(env.task(7)) for _ in range(4)]
        env.advance(states, replies)
    fault = ("done", "verifier_error", None)
    assert [
        (s.ended, s.verdict and s.verdict.status.value, s.verdict and s.verdict.score)
        for s in states
    ] == [fault, ("", None, None), fault, ("done", "correct", 1.0)]
    assert "KeyError" not in states[0].verdict.reason  # nor its message: the answer


def test_a_server_that_goes_away_leaves_groups_without_rewards(host, served) -> None:
    with host(served.Brief()) as (url, _):
        env = RemoteEnv(url, TOKEN, retries=0)
        (group,) = rollout(env, answers, 1, 2)
        assert group.masked == 0
    judged = env.group_rubric.judged(group.task, group.episodes)
    env.close()
    assert [e.reward for e in judged] == [None, None]


def test_tools_are_described_and_called_on_the_server(host, served) -> None:
    call = '<tool_call>{"name": "add", "arguments": {"a": 3, "b": 17}}</tool_call>'
    home = served.Adding()
    with remote(host, served.Adding()) as env:
        assert env.reset(options={"task": 3}) == home.reset(options={"task": 3})
        for turn in (call, "20"):
            mine, theirs = env.step(turn), home.step(turn)
            mine[-1].pop("reason", None), theirs[-1].pop("reason", None)
            assert mine == theirs
        assert env.schemas == home.schemas


def test_episodes_that_are_left_are_given_back(host, served) -> None:
    with host(served.Guess()) as (url, app):
        env, held = RemoteEnv(url, TOKEN), app.state.service.sessions
        for task in range(5):
            env.reset(options={"task": task})
            env.step("99")
        assert held.episodes.total() == 1
        env.close()
        assert held.episodes.total() == 0


def test_rewards_of_any_range_are_served(host, served):
    def pays(reply, reference):
        return {"right": 3, "wrong": -3}.get(reply, -9)

    env = served.Sums()
    env.rubric = Rubric({"pays": pays}, ranges={"pays": (-3, 3)})
    env.group_rubric = served.GroupRubric({"short": served.ShortReplies()}, gate=False)
    with remote(host, env) as far:
        assert far.rubric.score_range == (-3.0, 3.0)
        found = far.rubric.verify_many(["right", "wrong", "odd"], [0, 1, 2])
        assert [v.score for v in found] == [3.0, -3.0, None]
        assert found[2].status is Status.VERIFIER_ERROR
        replies = iter(["right", "wrong"])
        (group,) = rollout(far, FunctionPolicy(lambda _: next(replies)), 1, 2)
    assert group.rewards == ((3 + 0.5) / 2, -3 / 2)
