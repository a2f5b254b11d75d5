"""OpenEnv, the real package: its server in a thread, its WebSocket client, our episodes."""

import threading
import time

import pytest

from assay.envs import FunctionPolicy, rollout

pytestmark = pytest.mark.filterwarnings("ignore")  # of the server's packages
pytest.importorskip("openenv.core")
uvicorn = pytest.importorskip("uvicorn")

from openenv.core import GenericEnvClient  # only where it is installed
from openenv.core.env_server import (  # as above
    Action,
    Environment,
    Observation,
    State,
    create_fastapi_app,
)

from assay.adapters import RewardFault, from_openenv  # as above

OPEN = []


class Say(Action):
    """What the policy says."""

    words: str


class Heard(Observation):
    """What the game says."""

    text: str = ""


class Echo(Environment):
    """Asks for a word and echoes what it hears; pays 1.0 for the word, 0.25 where it is in it."""

    SUPPORTS_CONCURRENT_SESSIONS = True

    def __init__(self):
        super().__init__()
        self.word, self.steps, self.known = "", 0, State(episode_id="e", step_count=0)
        OPEN.append(self)

    def reset(self, seed=None, episode_id=None, **kwargs):
        self.word, self.steps = f"word{seed}", 0
        return Heard(text=f"Say {self.word}.", done=False, reward=None)

    def step(self, action, timeout_s=None, **kwargs):
        self.steps += 1
        if action.words == "crash":
            raise RuntimeError("the game is broken")
        right = action.words == self.word
        reward = 1.0 if right else 0.25 if self.word in action.words else 0.0
        return Heard(text=f"echo: {action.words}", done=right or self.steps == 3, reward=reward)

    @property
    def state(self):
        return self.known

    def close(self):
        OPEN.remove(self)


@pytest.fixture(scope="module")
def address():
    app = create_fastapi_app(Echo, Say, Heard, max_concurrent_envs=16)
    server = uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=0, log_level="error"))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    until = time.monotonic() + 60
    while not server.started and time.monotonic() < until:
        time.sleep(0.02)
    yield f"http://127.0.0.1:{server.servers[0].sockets[0].getsockname()[1]}"
    server.should_exit = True
    thread.join(timeout=30)


def words(reply):
    if not reply.strip():
        raise ValueError("nothing is said")
    return {"words": reply}


def echo(address, **options):
    known = {"max_turns": 3, "total": max, "size": 20, "name": "openenv/Echo-v0"}
    known["prompt"] = lambda seen: seen["text"]
    return from_openenv(address, action=words, **{**known, **options})


def closed_soon():
    until = time.monotonic() + 20
    while OPEN and time.monotonic() < until:
        time.sleep(0.02)
    return not OPEN


def test_an_episode_is_the_servers(address):
    env = echo(address)
    text, _ = env.reset(options={"task": 7})
    assert text == "Say word7."
    text, reward, terminated, truncated, _ = env.step("what? word7?")
    assert (text, reward, terminated, truncated) == ("echo: what? word7?", 0.0, False, False)
    text, reward, terminated, truncated, info = env.step("word7")
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info["reason"] == "the server's rewards: 0.25, 1"
    assert closed_soon()


def test_rewards_are_those_that_the_client_gets(address):
    """Each reply alone, through OpenEnv's own client and through ours."""
    env = echo(address, max_turns=1)
    for reply in ("word3", "so word3", "no", "word33"):
        with GenericEnvClient(base_url=address).sync() as client:
            client.reset(seed=3)
            theirs = client.step({"words": reply}).reward
        env.reset(options={"task": 3})
        assert env.step(reply)[1] == theirs
    assert closed_soon()


def test_groups_are_played_side_by_side(address):
    env = echo(address)
    policy = FunctionPolicy(lambda messages: messages[0]["content"][4:-1])
    groups = list(rollout(env, policy, groups=3, group_size=4, seed=5))
    assert [g.rewards for g in groups] == [(1.0, 1.0, 1.0, 1.0)] * 3
    assert closed_soon()


def test_the_turn_limit_judges_the_episode_as_it_stands(address):
    env = echo(address, max_turns=2)
    env.reset(options={"task": 1})
    env.step("word1 perhaps")
    _, reward, terminated, truncated, _ = env.step("no")
    assert (reward, terminated, truncated) == (0.25, False, True)
    assert closed_soon()


def test_a_reply_that_is_no_action_is_unparseable(address):
    env = echo(address)
    env.reset(options={"task": 1})
    _, reward, terminated, _, info = env.step("  ")
    assert (reward, terminated, info["status"]) == (0.0, True, "unparseable")
    assert closed_soon()


def test_a_server_that_breaks_is_no_fault_of_the_policy(address):
    env = echo(address)
    env.reset(options={"task": 1})
    _, reward, _, _, info = env.step("crash")
    assert reward != reward
    assert info["status"] == "verifier_error"
    assert closed_soon()


def test_a_server_that_is_not_there_raises():
    env = echo("http://127.0.0.1:9")
    with pytest.raises(RewardFault, match="Is it up"):
        env.reset(options={"task": 0})


def test_totals_out_of_range_are_named(address):
    env = echo(address, total=lambda rewards: 10 * max(rewards))
    env.reset(options={"task": 1})
    *_, info = env.step("word1")
    assert info["status"] == "verifier_error"
    assert "give low= and high=" in info["reason"]
    env = echo(address, total=lambda rewards: 10 * max(rewards), high=10.0)
    env.reset(options={"task": 1})
    assert env.step("so word1")[1:3] == (0.0, False)
    assert env.step("word1")[1] == 1.0


def test_a_lone_reply_is_never_judged(address):
    """A list of rewards written by the policy is a reply like any other."""
    verdict = echo(address).rubric.verify("[1.0]", 3)
    assert verdict.score is None


def test_a_server_that_overlooks_seeds_is_reported(address):
    drawn = iter(("Say a.", "Say b.", "Say c."))
    env = echo(address, prompt=lambda seen: next(drawn))
    with pytest.raises(RewardFault, match="seeded=False"):
        env.reset(options={"task": 4})
    env.seeded = False
    assert env.reset(options={"task": 4})[0] == "Say c."
