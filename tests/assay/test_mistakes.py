"""Mistakes of a first afternoon: each gives one sentence with value, rule and remedy."""

import json
from pathlib import Path

import pytest

from assay import (
    Exact,
    Limits,
    Math,
    Rubric,
    Sandbox,
    Task,
    TRLSpec,
    environment,
    make,
    register_rows,
    rollout,
)
from assay.envs import DataError, check, read_completions, score
from assay.evaluation import read_groups

ROW = '{"task": 0, "completion": "5"}\n'
FILES = {
    "good.jsonl": ROW,
    "semicolons.csv": "question;answer\nWhat is 1 + 1?;2\n",
    "named.txt": "x",
    "wrong.py": "def f(:\n",
    "raising.py": "1 / 0\n",
    "importing.py": "import not_installed\n",
    "mine_of_mistakes.py": (
        "from assay import Exact, Task, Verdict, Verifier, environment\n\n"
        "def reply(messages):\n    return '5'\n\n"
        "def broken(messages):\n    raise RuntimeError('out of order')\n\n"
        "def empty():\n    return '5'\n\n"
        "class Own(Verifier):\n"
        "    def judge(self, reply, reference):\n        return Verdict.wrong('')\n\n"
        "@environment('mistakes/Text-v0', rubric=Exact())\n"
        "def text(rng):\n    return 'no task'\n"
    ),
}
MINE = "mine_of_mistakes"
SUMS = "eval assay/Arithmetic-v1 --limit 2 -o out -p"
COMMANDS = {
    "score assay/GuessNumber-v1 good.jsonl": "judges an episode, and a row has only its last reply",
    "score good.jsonl assay/GSM8K-v1": "the environment comes first: assay score assay/GSM8K-v1",
    "score xyzzy good.jsonl": "`assay list` lists them",
    "score assay/GSM8K-v1 good.jsonl --data semicolons.csv": "must be separated by commas",
    f"score {MINE}:mistakes/Txt-v0 good.jsonl": "Did you mean mistakes/Text-v0?",
    f"score {MINE}:mistakes/Text-v0 good.jsonl": "must return a Task, got 'no task'",
    "score wrong:x/Y-v0 good.jsonl": "wrong cannot be imported: SyntaxError: invalid syntax",
    "score raising:x/Y-v0 good.jsonl": "raising cannot be imported: ZeroDivisionError",
    "score importing:x/Y-v0 good.jsonl": "No module named 'not_installed'",
    f"{SUMS} raising:reply": "raising cannot be imported: ZeroDivisionError",
    f"{SUMS} localhost:8000": "a server's address begins with http://",
    f"audit {MINE}:reply": "nor makes one without messages",
    f"audit {MINE}:Own": "Own needs references to be audited with: give --data FILE",
    "report evaluated": "is an evaluation: `assay view evaluated` shows it",
    "train --resume --out evaluated": "nothing to resume: 'evaluated' holds no training run",
    "serve assay/Arithmetic-v1 --certificate named.txt --key named.txt": "must be a chain and its",
}


@pytest.fixture
def folder(tmp_path, monkeypatch) -> Path:
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    (tmp_path / "evaluated").mkdir()
    (tmp_path / "evaluated" / "groups.jsonl").write_text("")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_that_cannot_run_says_why_and_writes_nothing(run, folder, command) -> None:
    before = sorted(p for p in folder.rglob("*") if p.name != "__pycache__")
    code, _, shown = run(*command.split())
    assert code == 2
    assert COMMANDS[command] in " ".join(shown.split())
    assert len(shown.strip().splitlines()) == 1
    after = [p for p in folder.rglob("*") if "__pycache__" not in str(p)]
    assert sorted(after) == before


@pytest.mark.parametrize("policy", ["broken", "empty"])
def test_a_policy_that_raises_is_named_with_its_line(run, folder, policy) -> None:
    code, _, shown = run(*f"{SUMS} {MINE}:{policy}".split())
    assert code == 2
    assert f"{MINE}:{policy} raised" in shown
    assert (f"{MINE}.py, line 7" in shown) == (policy == "broken")
    assert list(read_groups(folder / "out")) == []  # it is no wrong answer


QUESTION = {"prompt": "{q}", "reference": "a", "rubric": "Exact"}
ROWS = [{"q": f"q {n}", "a": str(n)} for n in range(20)]


def registered(rows, **changes):
    register_rows("mistakes/Rows-v0", rows, **{**QUESTION, **changes})
    return make("mistakes/Rows-v0")


def brief(reply):
    return len(reply) < 9


CALLS = {
    "rows must be a list of dicts, .* got None": lambda: registered(None),
    "rows must be a list of dicts, .* got 3": lambda: registered(3),
    "prompt must be a template .* got 3": lambda: registered(ROWS, prompt=3),
    "reference must name a column, or several, got None": lambda: registered(ROWS, reference=None),
    "test_share must be between 0 and 1, got '0.1'": lambda: registered(ROWS, test_share="0.1"),
    "row 0: Exceeds the limit": lambda: registered([{"q": 10**5000, "a": "1"}, *ROWS]),
    "must take one argument, a random": lambda: environment("x/Y-v0", rubric=Math())(lambda: 1),
    "prompt must be text or chat messages, got 3": lambda: Task(3, reference="1"),
    "size must be a whole number of at least 1, got '4'": lambda: TRLSpec("x/Y-v0", size="4"),
    "parts must be a dict of verifiers by name": lambda: Rubric([Math()]),
    "a reward must be a function or a Verifier, got 3": lambda: Rubric({"accuracy": 3}),
    "replies must be a list, got one text: '12'": lambda: Math().verify_many("12", [1, 2]),
    "references must be a list, got one text": lambda: Exact().verify_many(["1", "2"], "12"),
    "'brief' must take a reply and a reference": lambda: Rubric({"brief": brief}),
    "rubric must be .* 'brief' must take": lambda: registered(ROWS, rubric=brief),
    "no verifier is called 'Exat'. Did you mean Exact": lambda: Rubric({"a": "Exat"}),
    r"as in Completion\(text\), got '1'": lambda: rollout(
        make("assay/Arithmetic-v1"), lambda asked: ["1"] * len(asked), groups=1, group_size=2
    ),
    "cpu_s must be positive and at most a day, got '2'": lambda: Limits(cpu_s="2"),
    "limits must be Limits, as in": lambda: Sandbox(limits={"cpu_s": 2}),
    r"read_completions\('f.jsonl', source\)": lambda: score(make("assay/Arithmetic-v1"), "f.jsonl"),
    "check takes an environment": lambda: check("assay/Arithmetic-v1"),
}


@pytest.mark.parametrize("words", CALLS)
def test_a_call_with_a_wrong_argument_names_it(words) -> None:
    with pytest.raises((ValueError, TypeError, DataError), match=words):
        CALLS[words]()


def test_a_file_of_completions_of_the_wrong_kind_is_named(tmp_path) -> None:
    (tmp_path / "array.jsonl").write_text(json.dumps([json.loads(ROW)], indent=1))
    with pytest.raises(DataError, match="A line must be one JSON object"):
        read_completions(tmp_path / "array.jsonl", make("assay/Arithmetic-v1").source)
