"""``assay audit`` and ``assay diff``."""

import json

import pytest

from assay.envs import AuditReport, DataError, read_referenced
from assay.naming import resolve
from assay.verifiers import FunctionVerifier, Math

MINE = '''
from assay import Math, Task, Verdict, Verifier, environment
from assay.envs import Rows, TextEnv

def lenient(reply, reference):
    return float(reference in reply)

class Shout(Verifier):
    """Pays for the reference in capitals."""

    def __init__(self, *, loud=True):
        self.loud = loud

    def judge(self, reply, reference):
        right = reply == (reference.upper() if self.loud else reference)
        return Verdict.correct() if right else Verdict.wrong("not that")

    def oracle_reply(self, reference):
        return reference.upper() if self.loud else reference

def build(split="train", seed=0):
    """An environment in ten lines: whatever the split, the same rows."""
    return TextEnv(Rows([Task(f"Add 1 to {n}.", str(n + 1)) for n in range(40, 60)]), Math())

halves = TextEnv(Rows([Task("Half of 8?", "4"), Task("Half of 90?", "45")]), Math())
number = 7

@environment("mine/Double-v0", rubric=Math())
def double(rng):
    n = int(rng.integers(10, 10**6))
    return Task(f"Double {n}.", str(2 * n), solution=str(2 * n))
'''


COLUMNS = 80


@pytest.fixture
def mine():
    return "mine_for_audit", MINE


def write(path, rows):
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def test_what_holds_is_shown_and_written_whole(run, tmp_path) -> None:
    report = tmp_path / "deep" / "report.json"
    code, shown, _ = run(
        "audit", 'Exact:{"case": false}', "--check", "gold", "--check", "null", "--check", "echo",
        "--out", report,
    )  # fmt: skip
    assert code == 0
    assert "a known answer earns full marks" in shown
    assert "a verifier by itself has no prompt" in shown
    assert "2 hold, 0 fail, 1 not checked" in shown
    assert all(len(line) <= 80 for line in shown.splitlines() if line.startswith(("│", "┏")))
    assert AuditReport.from_json(json.loads(report.read_text())).failing == []


def test_what_fails_is_shown_with_its_input_and_a_remedy(run, tmp_path) -> None:
    rows = [{"reference": "42", "reply": "It is 42."}, {"reference": "17"}]
    report = tmp_path / "report.json"
    code, shown, _ = run(
        "audit", "mine_for_audit:lenient", "--data", write(tmp_path / "known.jsonl", rows),
        "--skip", "time", "--skip", "memory", "--skip", "determinism", "--out", report,
    )  # fmt: skip
    assert code == 1
    found = json.loads(report.read_text())
    assert found["failing"] == ["near", "final", "spam", "hedge", "injection"]
    assert "hedge fails for" in shown
    assert "What to do: refuse 'or', 'not', ranges" in shown
    spam = next(finding for finding in found["findings"] if finding["check"] == "spam")
    whole = spam["failures"][0]["reply"]
    assert len(whole) > 100
    assert "42" in whole


def test_ones_own_classes_environments_and_ids_are_audited(run) -> None:
    only = ["--check", "gold", "--check", "splits"]
    code, shown, _ = run("audit", "mine_for_audit:mine/Double-v0", *only, "--tasks", 3)
    assert code == 0, shown
    assert "2 hold" in shown
    code, shown, _ = run("audit", "mine_for_audit:build", *only)
    assert code == 1
    assert "is in both splits" in shown
    code, shown, _ = run("audit", "mine_for_audit:halves", *only)
    assert code == 0
    assert "2 tasks" in shown


def test_what_is_not_played_is_said_and_does_not_pass_for_checked(run, tmp_path) -> None:
    report = tmp_path / "report.json"
    few = ["--check", "gold", "--check", "splits", "--tasks", 2, "--prompts", 40]
    code, shown, _ = run("audit", "assay/GuessNumber-v1", *few, "--out", report)
    assert code == 0
    assert "Not tried: Replies were put to the rubric, as the answer of an episode." in shown
    assert AuditReport.from_json(json.loads(report.read_text())).note in " ".join(shown.split())
    assert "Not tried" not in run("audit", "assay/Arithmetic-v1", *few)[1]
    code, shown, _ = run("audit", "assay/CodeRepair-v1", "--check", "hedge", "--check", "echo")
    assert "a program says one thing" in " ".join(shown.split())


def test_the_data_of_the_other_split_is_compared(run, tmp_path) -> None:
    rows = [{"question": f"What is {n} and {n}?", "answer": f"#### {2 * n}"} for n in range(10, 20)]
    one, two = write(tmp_path / "a.jsonl", rows[:6]), write(tmp_path / "b.jsonl", rows[5:])
    args = ["audit", "assay/GSM8K-v1", "--data", one, "--check", "splits"]
    assert run(*args)[0] == 1  # nothing could be checked
    code, shown, _ = run(*args, "--other", two)
    assert code == 1
    assert "splits fails for 1 of 11 cases" in shown
    assert run(*args, "--other", write(tmp_path / "c.jsonl", rows[6:]))[0] == 0


STORED = [
    {"reference": "42", "completion": r"\boxed{42}"},
    {"reference": "50%", "completion": r"\boxed{0.5}", "task": "half"},
    {"reference": "50%", "completion": r"\boxed{50}"},
    {"reference": "7", "completion": "eight"},
]


def test_diff_shows_where_two_verifiers_disagree(run, tmp_path) -> None:
    stored, out = write(tmp_path / "stored.jsonl", STORED), tmp_path / "diff.json"
    code, shown, _ = run("diff", "Math", 'Math:{"percent": "unit"}', stored, "--out", out)
    assert code == 1
    assert "task half" in shown
    assert "The same score on 3 of 4 rows (75.00%)" in shown
    found = json.loads(out.read_text())
    assert (found["rows"], found["agree"]) == (4, 3)
    (row,) = found["disagreements"]
    assert (row["task"], row["completion"]) == ("half", r"\boxed{0.5}")
    assert (row["first"]["score"], row["second"]["score"]) == (1.0, 0.0)


def test_diff_of_a_verifier_and_itself_is_empty(run, tmp_path) -> None:
    code, shown, _ = run("diff", "Math", "Math", write(tmp_path / "stored.jsonl", STORED))
    assert code == 0
    assert "The same score on 4 of 4 rows" in shown


def test_diff_takes_the_tasks_of_an_environment(run, tmp_path) -> None:
    rows = [
        {"task": n, "completion": answer} for n, answer in ((0, "4"), (1, "45"), (1, "It's 45"))
    ]
    stored = write(tmp_path / "stored.jsonl", rows)
    for names in (
        ("mine_for_audit:halves", "Exact"),
        ("Math", "Exact", "--env", "mine_for_audit:halves"),
    ):
        code, shown, _ = run("diff", *names[:2], stored, *names[2:])
        assert code == 1
        assert 'row 2, task 1: "It\'s 45"' in shown
        assert "The same score on 2 of 3 rows" in shown


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("Maths", "no verifier is called 'Maths'"),
        ('Math:{"percent": ', "the options in 'Math:{\"percent\": ' are not JSON"),
        ('Math:{"percnt": 1}', "Math cannot be made from"),
        ("assay/GSM8k-v9", "Did you mean assay/GSM8K-v1"),
        ("mine_for_audit:nothing", "mine_for_audit has no 'nothing'"),
        ("mine_for_audit:number", "is neither an environment nor a verifier, but 7"),
        ('mine_for_audit:halves:{"a": 1}', "is made already and takes no options"),
        ('mine_for_audit:Shout:{"lout": 1}', "takes no 'lout'; it takes loud"),
        ("no_such_module_here:x", "No module named 'no_such_module_here'"),
        ("Boxed:[1]", "No module named 'Boxed'. Give an environment id"),
        ('Format:{"graded": "false"}', "graded of Format must be true or false, got 'false'"),
    ],
)
def test_names_that_stand_for_nothing_are_reported(run, name, words) -> None:
    code, _, err = run("audit", name)
    assert code == 2
    assert words in " ".join(err.split())


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (["audit", "Exact", "--check", "nul"], "there is no check 'nul'"),
        (["audit", "Exact", "--prompts", "1"], "prompts must be at least 20, got 1"),
        (["audit", "Exact", "--longest", "9"], "longest must be at least 16384 characters, got 9"),
        (["audit", "Exact", "--other", "x"], "--other goes with an environment"),
        (["audit", "Exact", "--data", "none.jsonl"], "no such file: none.jsonl"),
        (["diff", "Math", "Exact", "none.jsonl"], "no such file: none.jsonl"),
        (["diff", "Math", "Exact", "mine_for_audit.py"], "line 2: not JSON"),
        (["audit", "Exact", "--out", "."], ". is a folder"),
    ],
)
def test_what_a_person_can_mend_is_a_sentence(run, args, words) -> None:
    code, _, err = run(*args)
    assert code == 2
    assert words in " ".join(err.split())


def test_an_empty_file_of_references_is_refused(run, tmp_path) -> None:
    """The verifier's own samples were judged in their place, and held."""
    (tmp_path / "known.jsonl").write_text("\n")
    code, _, err = run("audit", "Math", "--data", str(tmp_path / "known.jsonl"))
    assert code == 2
    assert "known.jsonl holds no rows" in " ".join(err.split())


def test_rows_without_a_reference_need_an_environment(tmp_path) -> None:
    stored = write(tmp_path / "stored.jsonl", [{"task": 0, "completion": "4"}])
    with pytest.raises(DataError, match="name the environment"):
        read_referenced(stored)
    with pytest.raises(DataError, match=r"completion must be text, or .*, got int"):
        read_referenced(write(stored, [{"reference": 1, "completion": 4}]))


def test_names_stand_for_what_they_say(run) -> None:
    assert resolve('Math:{"percent": "unit"}').thing == Math(percent="unit")
    assert isinstance(resolve("mine_for_audit:lenient").thing, FunctionVerifier)
    assert resolve('mine_for_audit:Shout:{"loud": false}').thing.loud is False
    assert resolve("assay/Arithmetic-v1", {"digits": 3}).sibling("test", 1).seed == 1
