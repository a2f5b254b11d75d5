"""One poisoned reply in a batch: it alone scores 0.0, on every way on which batches are judged."""

import asyncio
import json
import subprocess
import sys

import httpx
import pytest
from websockets.sync.client import connect

from assay import rewards
from assay.adapters import openrlhf_reward, verl_reward
from assay.envs import Completion, PolicyJudge, TRLSpec, rollout
from assay.envs.scoring import read_completions, score
from assay.sandbox import Limits, RaySandbox, Sandbox
from assay.service import RemoteEnv, ServiceLimits
from assay.verifiers import Code, Judge, PairwiseJudge, RayVerifier, Rubric

pytestmark = [
    pytest.mark.filterwarnings("ignore"),
    pytest.mark.slow,
]  # of Ray, at its start and end
TOKEN = "a-token-of-the-tests-0123456789"
HEADERS = {"authorization": f"Bearer {TOKEN}", "content-type": "application/json"}
MODULE = r'''
from assay.envs import GroupRubric, Rows, ShortReplies, Task, TextEnv, Turn, register
from assay.verifiers import Exact, Math
from assay.verifiers.maths.worker import WorkerLimits


class Words(TextEnv):
    """Say one text."""

    def __init__(self):
        super().__init__(Rows([Task("?", "20", id="one")]), Exact())


class Roots(TextEnv):
    """Say one formula, which takes algebra to compare."""

    def __init__(self):
        limits = WorkerLimits(cpu_s=0.3, memory_mib=600)
        super().__init__(Rows([Task("?", r"3\sqrt{13}", id="one")]), Math(limits=limits))


class Turns(Words):
    """Say one text, in one turn that must be played."""

    def respond(self, state, reply):
        return Turn.end()


class Groups(Words):
    """Say one text; the group is judged too."""

    def __init__(self):
        super().__init__()
        self.group_rubric = GroupRubric({"short": ShortReplies()}, weights={"short": 0.0})


register("poisoned/Words-v0", Words)
register("poisoned/Roots-v0", Roots)
register("poisoned/Turns-v0", Turns)
register("poisoned/Groups-v0", Groups)
'''
BODY = 2**20  # of a request, here
TEXTS = {
    "over the limit": "2" * 200_001,
    "four bytes each": "\U0001f600" * 50_000,
    "twelve bytes each in JSON": "\U0001f600" * 100_000,  # within reply_chars, over a request
    "more than a request": "x" * (BODY + 1),
    "NUL": "\0" * 100_000,
    "quotes": '"\\' * 100_000,
    "half a pair": "\ud800",
    "two halves": "\udc00\ud800",
    "bytes that are no text": b"\xff\xfe".decode("utf-8", "surrogateescape"),
    "deep": "[" * 100_000,
    "deep object": '{"a":' * 30_000,
    "digits": "9" * 100_000,
    "NaN": "NaN",
    "exponent": "1e999999999",
    "nothing": "",
}
MATHS = {
    "integral": r"\boxed{\int_0^1 x^{x^{x^{x}}}\,dx}",
    "memory": r"\boxed{(a+b+c+d+e+f+g)^{1000}}",
    "recursion": r"\boxed{" + "(" * 900 + "x" + ")" * 900 + "}",
    "roots": r"\boxed{" + r"\sqrt{" * 55 + "2" + "}" * 55 + "}",
    "tower": r"\boxed{9^{9^{9^{9}}} + x}",
    "half a pair": "\\boxed{4\ud8002}",
}
PROGRAMS = {
    "long": f"x = '{'2' * 300_000}'",
    "NUL": "print(20)\0",
    "half a pair": "print('\ud800')",
    "deep": "[" * 100_000,
    "signs": "-" * 200_000 + "1",
    "loop": "while True: pass",
    "memory": "x = bytearray(10**10)",
    "crash": "import ctypes; ctypes.string_at(0)",
    "recursion": "import sys; sys.setrecursionlimit(10**9)\ndef f(): f()\nf()",
    "output": "while True: print('x' * 10_000)",
    "bytes": r"import sys; sys.stdout.buffer.write(b'\xed\xa0\x80\xff' * 1000)",
    "kill": "import os; os.kill(os.getppid(), 9); os.kill(-1, 9)",
    "zeros": "print('0' * 1_000_000)",
}


@pytest.fixture(scope="module", autouse=True)
def end_of_ray():
    """End Ray if a test has started it."""
    yield
    if "ray" in sys.modules:
        sys.modules["ray"].shutdown()


def with_ray():
    """Start Ray, once for all tests of this file; its workers find the environments' module."""
    ray = pytest.importorskip("ray")
    if not ray.is_initialized():
        ray.init(address="local", num_cpus=2, log_to_driver=False, include_dashboard=False)


def batch_of(right, wrong, poisons):
    return [reply for poison in poisons for reply in (right, poison, wrong)]


WORDS = batch_of("20", "21", TEXTS.values())
ROOTS = batch_of(r"\boxed{\sqrt{117}}", r"\boxed{\sqrt{118}}", MATHS.values())


@pytest.fixture(scope="module")
def module(tmp_path_factory):
    """The environments' module, imported, and its folder."""
    folder = tmp_path_factory.mktemp("poisoned")
    (folder / "poisoned_envs.py").write_text(MODULE)
    sys.path.insert(0, str(folder))
    import poisoned_envs

    yield poisoned_envs, folder
    sys.path.remove(str(folder))


def scores(verdicts):
    return [verdict.score for verdict in verdicts]


def at_home(env, replies, _):
    return scores(env.rubric.verify_many(replies, [env.task(0).reference] * len(replies)))


def awaited(env, replies, _):
    references = [env.task(0).reference] * len(replies)
    return scores(asyncio.run(env.rubric.averify_many(replies, references)))


def in_a_rubric(env, replies, _):
    rubric = Rubric({"one": env.rubric, "other": env.rubric}, weights={"other": 0.5})
    return scores(rubric.verify_many(replies, [env.task(0).reference] * len(replies)))


def with_trl(env, replies, _):
    reward = TRLSpec(f"poisoned/{type(env).__name__}-v0").reward_funcs[0]
    plain = reward(completions=replies, assay_task=[0] * len(replies))
    said = [[{"role": "assistant", "content": reply}] for reply in replies]
    assert reward(completions=said, assay_task=[0] * len(replies)) == plain
    return plain


def with_verl(env, replies, _):
    truth = json.dumps(env.task(0).reference)
    rows = verl_reward(env)(
        data_sources=["x"] * len(replies),
        solution_strs=replies,
        ground_truths=[truth] * len(replies),
    )
    return [row["score"] for row in rows]


def with_openrlhf(env, replies, _):
    pytest.importorskip("torch")
    labels = [json.dumps(env.task(0).reference)] * len(replies)
    queries = [f"?{reply}" for reply in replies]
    return openrlhf_reward(env)(queries, ["?"] * len(replies), labels)["rewards"].tolist()


def with_a_column(env, replies, _):
    boxed = [rf"\boxed{{{reply}}}" if reply.isalnum() else reply for reply in replies]
    return rewards.accuracy_reward(boxed, [env.task(0).reference] * len(replies))


def from_a_file(env, replies, folder):
    rows = [{"task": "one", "completion": reply} for reply in replies]
    file = folder / "completions.jsonl"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    scored = scores(s.verdict for s in score(env, read_completions(file, env.source)))
    name = f"poisoned_envs:poisoned/{type(env).__name__}-v0"
    runs = [folder / f"{type(env).__name__}{k}" for k in range(2)]
    for arguments in (
        ("eval", name, "--policy", str(file), "--out", str(runs[0])),
        ("rescore", str(runs[0]), "--out", str(runs[1])),
    ):
        command = [sys.executable, "-m", "assay", *arguments]
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    for run in runs:
        (group,) = [json.loads(line) for line in (run / "groups.jsonl").open()]
        assert [e["verdict"]["score"] for e in group["episodes"]] == scored
    return scored


def over_ray(env, replies, _):
    with_ray()
    verifier = RayVerifier(env.rubric, per_node=1)
    try:
        return scores(verifier.verify_many(replies, [env.task(0).reference] * len(replies)))
    finally:
        verifier.close()


HERE = [
    at_home,
    awaited,
    in_a_rubric,
    with_trl,
    with_verl,
    with_openrlhf,
    with_a_column,
    from_a_file,
    over_ray,
]


@pytest.mark.parametrize("way", HERE, ids=lambda way: way.__name__)
@pytest.mark.parametrize(("name", "replies"), [("Words", WORDS), ("Roots", ROOTS)])
def test_a_poisoned_reply_spoils_no_neighbour_here(module, way, name, replies) -> None:
    envs, folder = module
    env = getattr(envs, name)()
    assert way(env, replies, folder) == [1.0, 0.0, 0.0] * (len(replies) // 3)
    env.close()


def remote(url, replies):
    env = RemoteEnv(url, TOKEN, retries=0)
    found = env.rubric.verify_many(replies, [0] * len(replies))
    env.close()
    for reply, verdict in zip(replies, found, strict=True):
        if len(reply) > 200_000:
            assert str(len(reply)) in verdict.reason
            assert "at most 200000" in verdict.reason
    return scores(found)


def remote_rollout(url, replies):
    env = RemoteEnv(url, TOKEN, retries=0)

    def policy(conversations):
        return [Completion(reply) for reply in replies]

    (group,) = rollout(env, policy, 1, len(replies))
    env.close()
    return list(group.rewards)


PATHS = {"score": "/v1/score", "reset": "/v1/episodes", "step": "/v1/episodes/step"}


def asked(ask, replies):
    """Score replies, and play them, by one message each."""
    found = ask("score", replies=replies, tasks=[0] * len(replies))["verdicts"]
    begun = ask("reset", tasks=[0], group_size=len(replies))["episodes"]
    steps = [
        {"episode": row["episode"], "reply": reply, "turn": 0}
        for row, reply in zip(begun, replies, strict=True)
    ]
    outcomes = ask("step", steps=steps, reset={"tasks": [0]})["outcomes"]
    assert [o["verdict"]["score"] for o in outcomes] == [v["score"] for v in found]
    return [verdict["score"] for verdict in found]


def over_http(url, replies):
    with httpx.Client(base_url=url, headers=HEADERS, timeout=60) as client:
        return asked(
            lambda op, **body: client.post(PATHS[op], content=json.dumps(body)).json(), replies
        )


def over_websocket(url, replies):
    with connect(f"ws{url[4:]}/v1/ws", additional_headers=HEADERS, max_size=None) as socket:

        def ask(op, **fields):
            socket.send(json.dumps({"op": op, "id": 1, **fields}))
            return json.loads(socket.recv())

        return asked(ask, replies)


def over_openenv(url, replies):
    found = []
    with connect(f"ws{url[4:]}/openenv/ws", additional_headers=HEADERS, max_size=None) as socket:
        for reply in replies:
            for message in (
                {"type": "reset", "data": {"task": 0}},
                {"type": "step", "data": {"reply": reply}},
            ):
                socket.send(json.dumps(message))
                answer = json.loads(socket.recv())
            found.append(answer["data"]["reward"])
    return found


def small(replies):
    """What a client that cannot split may send: a few replies in a message."""
    return [replies[k : k + 3] for k in range(0, len(replies), 3) if size(replies[k + 1]) < BODY]


def size(reply):
    return len(json.dumps(reply)) + 1000


@pytest.mark.parametrize(
    ("name", "replies", "ways", "small_ways"),
    [
        ("Words", WORDS, [remote, remote_rollout], [over_http, over_websocket, over_openenv]),
        ("Roots", ROOTS, [remote, remote_rollout], []),
        ("Turns", WORDS, [remote_rollout], []),
        ("Groups", WORDS, [remote_rollout], []),
    ],
)
def test_a_poisoned_reply_spoils_no_neighbour_far_away(
    module, host, name, replies, ways, small_ways
) -> None:
    with host(getattr(module[0], name)(), ServiceLimits(body_bytes=BODY)) as (url, _):
        for way in ways:
            assert way(url, replies) == [1.0, 0.0, 0.0] * (len(replies) // 3), way
        for way in small_ways:
            for part in small(replies):
                assert way(url, part) == [1.0, 0.0, 0.0], (way, part[1][:20])


def test_a_poisoned_reply_spoils_no_neighbour_before_several_processes(start) -> None:
    replies = batch_of("17", "18", TEXTS.values())
    with start("served/Sums-v0", "--workers=2", "--no-access-log") as (url, _):
        assert remote(url, replies) == [1.0, 0.0, 0.0] * len(TEXTS)
        for way in (over_http, over_websocket):
            for part in small(replies):
                assert way(url, part) == [1.0, 0.0, 0.0], (way, part[1][:20])


def examine(_, body):
    """Find ``20`` right and best, then ``22``; fail on NUL and halves of surrogate pairs."""
    shown = body["messages"][-1]["content"]
    if "Reply A:" in shown:
        first, second = (shown.split(f"Reply {x}:\n")[1].split("\n")[1] for x in "AB")
        said = f"Verdict: {'A' if first == '20' or (first == '22' and second != '20') else 'B'}"
    else:
        right = shown.split("Reply to judge:")[-1].split("]\n")[1].startswith("20\n")
        said = f"Verdict: {'CORRECT' if right else 'INCORRECT'}"
    status = 500 if any(c in shown for c in "\0\ud800\udc00") else 200
    choice = {"index": 0, "message": {"role": "assistant", "content": said}}
    return status, {"choices": [{**choice, "finish_reason": "stop"}]}


def test_a_poisoned_reply_spoils_no_neighbour_before_a_judge(serving) -> None:
    pytest.importorskip("openai")
    with serving(examine) as address:
        url = f"{address}/v1"
        judge = Judge("m", base_url=url)
        found = judge.verify_many(WORDS, [{"question": "?", "answer": "20"}] * len(WORDS))
        pairwise = PairwiseJudge("m", base_url=url)
        better = pairwise.verify_many(WORDS, [{"question": "?", "answer": "22"}] * len(WORDS))
    assert scores(found) == [1.0, 0.0, 0.0] * len(TEXTS)
    assert scores(better) == [1.0, 0.0, 0.0] * len(TEXTS)


def test_a_poisoned_reply_spoils_no_neighbour_before_a_policy() -> None:
    def policy(conversations):
        pairs = []
        for (message,) in conversations:
            message["content"].encode()  # as tokenizers do
            pairs.append([message["content"].split(f"Reply {x}: ")[1].split("\n")[0] for x in "AB"])
        right = [a == "20" or (a == "22" and b != "20") for a, b in pairs]
        return [Completion(f"<answer>{'A' if first else 'B'}</answer>") for first in right]

    replies = [*WORDS, *batch_of("20", "21", [f"7{text}" for text in TEXTS.values()])]
    found = PolicyJudge(policy).verify_many(replies, ["22"] * len(replies))
    assert scores(found) == [1.0, 0.0, 0.0] * (2 * len(TEXTS))


BOXES = [
    pytest.param({"backend": "bwrap"}, marks=pytest.mark.bwrap, id="bwrap"),
    pytest.param({"backend": "docker"}, marks=pytest.mark.docker, id="docker"),
    pytest.param({"hosts": ["unix:///var/run/docker.sock"]}, marks=pytest.mark.docker, id="hosts"),
    pytest.param({"ray": True}, marks=pytest.mark.bwrap, id="ray"),
]


@pytest.mark.parametrize("options", BOXES)
def test_a_poisoned_program_spoils_no_neighbour(options) -> None:
    limits = Limits(cpu_s=0.5, wall_s=6.0, memory_mib=128)
    if "ray" in options:
        with_ray()
        box = RaySandbox(slots=2, limits=limits, backend="bwrap")
    else:
        box = Sandbox(slots=2, limits=limits, **options)
    programs = batch_of("print(20)", "print(21)", PROGRAMS.values())
    wanted = [True, False, False] * len(PROGRAMS)
    with box:
        found = box.run_many(programs)
        assert [r.status.value == "ok" and r.stdout == "20\n" for r in found] == wanted
        checks = box.map(lambda code: box.check_stdio(code, [("", "20")], tolerance=0.1), programs)
        assert [check.solved for check in checks] == wanted
        defined = [f"def f(x): return x\n{code}" for code in programs]
        defined[2::3] = ["def f(x): return x + 1"] * len(PROGRAMS)
        calls = box.map(lambda code: box.check_calls(code, "f", [((1,), 1)]), defined)
        tests = box.map(lambda code: box.check_tests(code, "assert f(1) == 1"), defined)
        for found in (calls, tests):
            assert [check.solved for check in found][::3] == [True] * len(PROGRAMS)
            assert [check.solved for check in found][2::3] == [False] * len(PROGRAMS)
        statuses = {c.status.value for c in (*checks, *calls, *tests)}
        assert "sandbox_error" not in statuses
        code = Code(box)
        judged = code.verify_many(
            [f"```python\n{program}\n```" for program in programs],
            [{"stdio": [["", "20"]]}] * len(programs),
        )
        assert scores(judged) == [float(solved) for solved in wanted]
