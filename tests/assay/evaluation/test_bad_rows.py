"""Rows that cannot be used, on the command line: refused and listed, or left out and recorded."""

import json

import pytest

# The command line shows warnings itself; the tests' own rule would make errors of them.
pytestmark = pytest.mark.filterwarnings("always")


@pytest.fixture
def rows(tmp_path):
    path = tmp_path / "mine.jsonl"
    good = [{"problem": f"{n} + {n} =", "answer": str(2 * n)} for n in range(4)]
    bad = [{"problem": "Nothing is boxed"}, {"problem": "Half?", "solution": r"\boxed{}"}]
    path.write_text("\n".join(map(json.dumps, [*good, *bad])))
    return path


def test_bad_rows_are_listed_and_nothing_runs(run, rows, tmp_path) -> None:
    code, _, err = run("eval", "assay/MATH-v1", "-p", "mine_for_eval:silent", "--data", rows)
    assert code == 2
    assert "2 of 6 rows" in err
    assert "line 5" in err
    assert "line 6" in err
    assert "on_bad_rows='skip'" in err
    assert not (tmp_path / "runs").exists()


def test_rows_that_are_left_out_are_reported_and_recorded(run, rows, tmp_path) -> None:
    skip = ("--data", rows, "--set", "on_bad_rows=skip", "-o", "run")
    code, shown, err = run("eval", "assay/MATH-v1", "-p", "mine_for_eval:torn", *skip)
    assert code == 0, shown
    assert "2 of 6 rows" in err
    record = json.loads((tmp_path / "run" / "run.json").read_text())
    left_out = record["environment"]["bad_rows"]
    assert left_out["left_out"] == 2
    assert [row["index"] for row in left_out["first"]] == [4, 5]
    assert "boxed" in left_out["first"][0]["reason"]
    assert record["data"]["tasks"] == 4
