"""Rows, a prompt and a rubric are an environment; so are a generator and a rubric."""

import gzip
import json
import sys

import gymnasium as gym
import pandas
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.envs import DataError, Task, audit, check, environment, make, register_rows
from assay.envs.datasets.table import fill
from assay.verifiers import Exact, Math, Rubric

SUMS = [{"a": a, "b": b, "sum": str(a + b)} for a in range(10, 30) for b in range(31, 36)]
SUM = {"prompt": "What is {a} + {b}? Box it.", "reference": "sum", "rubric": Math()}

register_rows("rowtests/Sums-v0", SUMS, **SUM, solution=r"\boxed{{{sum}}}", metadata=["a"])


def product(rng):
    a, b = (int(n) for n in rng.integers(2, 100, size=2))
    return {"a": a, "b": b, "product": str(a * b)}


register_rows(
    "rowtests/Products-v0", product, prompt="{a} * {b} =", reference="product", rubric=Math()
)


@environment("rowtests/ByFunction-v0", rubric=Math(), rows=SUMS)
def difference(row):
    """Take one from the other."""
    return Task(f"{row['b']} - {row['a']} =", reference=str(row["b"] - row["a"]))


@pytest.mark.parametrize(
    ("name", "split"), [("Sums", "train"), ("Products", "test"), ("ByFunction", "train")]
)
def test_one_call_makes_an_environment_that_holds_to_contract_and_audit(name, split) -> None:
    env = make(f"rowtests/{name}-v0", split=split)
    check(env)
    report = audit(env, checks=["references", "leakage", "splits"])
    assert report.failing == []
    assert gym.make(f"rowtests/{name}-v0").reset(seed=1)[0]


def test_slots_are_filled_and_other_braces_stay() -> None:
    task = make("rowtests/Sums-v0").task(0)
    assert task.text == "What is 10 + 31? Box it."
    assert task.reference == "41"
    assert task.metadata == {"a": 10}
    assert task.solution == r"\boxed{41}"


ROW = {"a": 1, "b": "{a}", "two words": 2.5, "in": {"x": 3, "y": {"z": "4"}}, "a.b": 5}


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("{a}{b}", "1{a}"),  # what is put in is not read again
        (r"\boxed{} x^{2} {} {a", r"\boxed{} x^{2} {} {a"),
        ("{{a}} is {a}", "{a} is 1"),
        (r"\boxed{{{a}}} {{{{a}}}}", r"\boxed{1} {{a}}"),
        (r"\sqrt{\frac{a}{2}}", r"\sqrt{\frac1{2}}"),
        ("{two words}", "2.5"),
        ("{in.x} {in.y.z} {{in.x}} {a.b}", "3 4 {in.x} 5"),
        ("{a.__class__} {a[0]} {a!r} {a:>9}", "{a.__class__} {a[0]} {a!r} {a:>9}"),
    ],
)
def test_templates(template, text) -> None:
    assert fill(template, ROW) == text


@given(st.text(), st.text())
@settings(deadline=None, derandomize=True)
def test_whatever_a_row_holds_stands_in_the_prompt_as_it_is(before, value) -> None:
    kept = before.replace("{", "(").replace("}", ")")
    assert fill(kept + "{x}", {"x": value}) == kept + value


@pytest.mark.parametrize(
    ("row", "words"),
    [
        ({"b": 1, "sum": "1"}, r"row 0: no column 'a' for the slot {a}; the row has b, sum"),
        ({"a": [1], "b": 1, "sum": "1"}, r"row 0: column 'a' must be text or a number"),
        ({"a": 1, "b": 1}, r"row 0: no column 'sum'; the row has a, b"),
    ],
)
def test_a_row_without_what_is_needed_is_named(row, words) -> None:
    id_ = f"rowtests/Bad{len(row)}{'a' in row}-v0"
    register_rows(id_, [row], **SUM)
    with pytest.raises(DataError, match=words):
        make(id_)


def test_a_row_that_the_function_cannot_use_is_named(tmp_path) -> None:
    path = tmp_path / "rows.jsonl"
    path.write_text('{"a": 1, "b": 2}\n{"a": 1}\n')
    with pytest.raises(DataError, match=r"rows\.jsonl, line 2: no 'b'"):
        make("rowtests/ByFunction-v0", data=str(path))


def _divides(row):
    return Task(row["q"], reference=str(1 // row["a"]))


def _exits(row):
    return Task(row["q"], reference="1") if row["a"] else sys.exit(3)


@pytest.mark.parametrize(
    ("build", "words"), [(_divides, "ZeroDivisionError: integer"), (_exits, "SystemExit: 3")]
)
def test_a_function_that_fails_for_a_row_costs_that_row_alone(build, words) -> None:
    rows = {"train": [{"q": f"q{a}", "a": a} for a in (1, 0, 2)]}
    name = f"rowtests/{build.__name__}-v0"
    environment(name, rubric="Exact", rows=rows)(build)
    with pytest.raises(DataError, match=f"row 1: {words}"):
        make(name)
    with pytest.warns(UserWarning, match="1 of 3 rows"):
        assert make(name, on_bad_rows="skip").source.size == 2


def test_a_generator_that_fails_names_its_task() -> None:
    register_rows(
        "rowtests/Exits-v0", lambda rng: sys.exit(3), prompt="{q}", reference="a", rubric="Exact"
    )
    with pytest.raises(RuntimeError, match=r"Exits-v0, task 7 of seed 0: .* sys\.exit\(3\)"):
        make("rowtests/Exits-v0").task(7)


class _Strict(Exact):
    def check_reference(self, reference):
        if reference == "b":
            raise LookupError("not in the list")


def test_a_check_of_references_that_raises_names_the_row() -> None:
    rows = {"train": [{"q": "1", "a": "a"}, {"q": "2", "a": "b"}]}
    register_rows("rowtests/Strict-v0", rows, prompt="{q}", reference="a", rubric=_Strict)
    with pytest.raises(DataError, match=r"row 1 .* raised LookupError: not in the list"):
        make("rowtests/Strict-v0")


def test_an_id_belongs_to_the_call_that_registered_it() -> None:
    """A second call with the same prompt replaced the first one's rows."""
    columns = {"prompt": "{q}", "reference": "a", "rubric": "Exact"}
    register_rows("rowtests/Again-v0", [{"q": "1", "a": "a"}], **columns)
    with pytest.raises(ValueError, match="rowtests/Again-v0 is registered already"):
        register_rows("rowtests/Again-v0", [{"q": "2", "a": "b"}], **columns)


class TestSplits:
    """Which rows are for training, and in which order they come."""

    def test_a_list_is_split_by_the_hash_of_the_prompt(self) -> None:
        train, test = (make("rowtests/Sums-v0", split=s).source for s in ("train", "test"))
        assert train.size + test.size == len(SUMS) == 100
        assert 2 <= test.size <= 20
        assert {t.id for t in train.tasks} | {t.id for t in test.tasks} == {
            f"row-{i}" for i in range(100)
        }

    def test_seed_0_keeps_the_order_and_another_shuffles(self) -> None:
        kept, other, again = (make("rowtests/Sums-v0", seed=s).source.tasks for s in (0, 1, 1))
        numbers = [int(t.id.removeprefix("row-")) for t in kept]
        assert numbers == sorted(numbers)
        assert kept != other == again
        assert sorted(t.id for t in kept) == sorted(t.id for t in other)

    def test_rows_by_split_stay_as_they_are(self, tmp_path) -> None:
        path = tmp_path / "test.jsonl.gz"
        with gzip.open(path, "wt") as file:
            file.write("\n".join(map(json.dumps, SUMS[:7])))
        register_rows("rowtests/Split-v0", {"train": SUMS[7:], "test": path}, **SUM)
        assert make("rowtests/Split-v0", split="test").source.size == 7
        assert make("rowtests/Split-v0").source.size == 93
        register_rows("rowtests/TestOnly-v0", {"test": str(path)}, **SUM)
        assert make("rowtests/TestOnly-v0").source.size == 7
        with pytest.raises(DataError, match="has no split 'train'; it has test"):
            make("rowtests/TestOnly-v0", split="train")

    def test_faults_are_told(self, tmp_path) -> None:
        with pytest.raises(ValueError, match="split must be 'train' or 'test', got 'dev'"):
            make("rowtests/Sums-v0", split="dev")
        register_rows("rowtests/One-v0", SUMS[:1], **SUM)
        with pytest.raises(DataError, match="none of 1 rows is in the split 'test'"):
            make("rowtests/One-v0", split="test")
        with pytest.raises(
            ValueError, match=r"rows by split are 'train' and 'test', got \['dev'\]"
        ):
            register_rows("rowtests/Dev-v0", {"dev": SUMS}, **SUM)
        with pytest.raises(ValueError, match="test_share must be between 0 and 1, got 1"):
            register_rows("rowtests/Share-v0", SUMS, **SUM, test_share=1)
        register_rows("rowtests/Absent-v0", tmp_path / "absent.jsonl", **SUM)
        with pytest.raises(DataError, match="no such file"):
            make("rowtests/Absent-v0")


def test_several_columns_make_a_reference_and_messages_a_prompt() -> None:
    register_rows(
        "rowtests/Chat-v0",
        {"train": [{"name": "x", "a": 1, "b": 2}]},
        prompt=[
            {"role": "system", "content": "You are {name}."},
            {"role": "user", "content": "{a}?"},
        ],
        reference=["a", "b"],
        rubric=Rubric({"any": lambda reply, gold: reply == str(gold["a"] + gold["b"])}),
        task_id="name",
    )
    env = make("rowtests/Chat-v0")
    assert env.reset(seed=0)[1]["messages"][0] == {"role": "system", "content": "You are x."}
    assert env.step("3")[1] == 1.0
    assert env.task(0).id == "x"
    twice = {"train": SUMS[:2]}
    register_rows("rowtests/Twice-v0", twice, **SUM, task_id="a")
    with pytest.raises(ValueError, match="row 1: the id '10' must be this row's alone"):
        make("rowtests/Twice-v0")


def test_a_column_may_hold_the_messages_and_a_column_of_objects_the_reference(tmp_path) -> None:
    ask = [{"role": "system", "content": "Box {it}."}, {"role": "user", "content": "2 + 3 ="}]
    row = {"prompt": ask, "reward_model": {"style": "rule", "ground_truth": "5"}, "level": {"n": 2}}
    file = tmp_path / "train.parquet"
    pandas.DataFrame([row]).to_parquet(file)
    for number, rows in enumerate(([row], pandas.DataFrame([row]), file)):
        register_rows(
            f"rowtests/Messages{number}-v0",
            {"train": rows},
            prompt="{prompt}",
            reference="reward_model.ground_truth",
            metadata=["level.n"],
            rubric=Math(),
        )
        env = make(f"rowtests/Messages{number}-v0")
        assert env.reset()[1]["messages"] == ask  # slots in a row's own text are not filled
        assert env.step(r"\boxed{5}")[1] == 1.0
        assert env.task(0).metadata == {"level.n": 2}


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ({"prompt": "{chat}"}, "must end before the reply, and the last is the assistant's"),
        ({"prompt": "So: {chat}"}, "or chat messages to be all of it, got"),
        ({"prompt": "{words}"}, "a message needs 'role' and 'content', got 'a'"),
        ({"prompt": "{none}"}, "column 'none' must be text or a number"),
        ({"reference": "gold.answer"}, "no column 'answer'; the row has value"),
        ({"reference": "words.answer"}, "no column 'words.answer'; the row has"),
        ({"task_id": "null"}, "column 'null' holds the task's id, which is missing"),
    ],
)
def test_columns_that_hold_no_prompt_or_reference_are_refused(columns, words) -> None:
    said = [{"role": "user", "content": "2 + 3 ="}, {"role": "assistant", "content": "5"}]
    row = {"q": "1", "chat": said, "words": ["a"], "none": [], "gold": {"value": "5"}, "null": None}
    name = f"rowtests/Refused{len(str(columns))}{len(words)}-v0"
    columns = {"prompt": "{q}", "reference": "q"} | columns
    register_rows(name, {"train": [row]}, **columns, rubric=Exact())
    with pytest.raises(DataError, match=words):
        make(name)


def test_rows_that_are_none_are_named_and_iterators_are_kept() -> None:
    register_rows("rowtests/NoDicts-v0", ["France"], **SUM)
    with pytest.raises(DataError, match="row 0: expected a dict of columns, got 'France'"):
        make("rowtests/NoDicts-v0")
    register_rows("rowtests/Iterated-v0", iter(SUMS), **SUM)
    sizes = [make("rowtests/Iterated-v0", split=s).source.size for s in ("train", "test")]
    assert sum(sizes) == 100


def test_the_columns_of_a_reference_may_have_other_names() -> None:
    rows = [{"q": f"About {n}?", "final_answer": str(n), "error": 0.5} for n in range(20)]
    register_rows(
        "rowtests/Columns-v0",
        {"train": rows},
        prompt="{q}",
        reference={"answer": "final_answer", "tolerance": "error"},
        rubric=Math(),
    )
    env = make("rowtests/Columns-v0")
    assert env.task(3).reference == {"answer": "3", "tolerance": 0.5}
    env.reset(options={"task": 3})
    assert env.step(r"\boxed{3.4}")[1] == 1.0


@pytest.mark.parametrize("rubric", ["Exact", Exact, Exact()])
def test_a_rubric_may_be_named_or_a_class(rubric) -> None:
    """They were taken for functions, and every reward was NaN."""
    name = f"doctest/Rubric{len(str(rubric))}-v0"
    rows = [{"q": str(i), "a": str(i)} for i in range(4)]
    register_rows(name, rows, prompt="{q}", reference="a", rubric=rubric)
    env = make(name)
    env.reset(options={"task": 0})
    assert env.step(env.task(0).reference)[1] == 1.0


def test_tables_of_pyarrow_are_rows() -> None:
    arrow = pytest.importorskip("pyarrow")
    table = arrow.table({"q": [f"q{n}" for n in range(20)], "a": [str(n) for n in range(20)]})
    columns = {"prompt": "{q}", "reference": "a", "rubric": "Exact"}
    for name, rows in (("Arrow", table), ("ArrowSplit", {"train": table})):
        register_rows(f"doctest/{name}-v0", rows, **columns)
        assert make(f"doctest/{name}-v0").task(0).reference == "0"


@pytest.mark.parametrize(
    ("prompt", "rows", "words"),
    [
        ([{"role": "user"}], [{"q": "1", "a": "1"}], "needs 'role' and 'content'"),
        (["{q}"], [{"q": "1", "a": "1"}], "needs 'role' and 'content'"),
        ("{q}", lambda: {"q": "1", "a": "1"}, "must take one argument, a random generator"),
    ],
)
def test_prompts_and_generators_that_cannot_be_used_are_refused_at_once(
    prompt, rows, words
) -> None:
    with pytest.raises(ValueError, match=words):
        register_rows("doctest/None-v0", rows, prompt=prompt, reference="a", rubric="Exact")


def test_what_makes_no_environment_is_refused() -> None:
    columns = {"prompt": "{q}", "reference": "a"}
    for rows, rubric, words in (
        ([], Exact(), "rows is empty: give at least one row"),
        ([{"q": "1", "a": "1"}], 3, "rubric must be a Verifier, .* got 3"),
        ([{"q": "1", "a": "1"}], dict, "rubric must be a Verifier"),
        ([{"q": "1", "a": "1"}], "Exakt", "Did you mean Exact"),
    ):
        with pytest.raises(ValueError, match=words) as refused:
            register_rows("doctest/Refused-v0", rows, **columns, rubric=rubric)
        assert "\n" not in str(refused.value)
    with pytest.raises(ValueError, match=r"metadata must be a list of columns, got 'q': \['q'\]"):
        register_rows("doctest/Refused-v0", [], **columns, rubric="Exact", metadata="q")


@pytest.mark.parametrize(("data", "words"), [("", "got ''"), (5, "got 5"), (True, "got True")])
def test_data_that_is_no_place_is_refused(data, words, tmp_path, monkeypatch) -> None:
    """An unset variable of the shell made it the current folder."""
    (tmp_path / "train.jsonl").write_text('{"a": 1, "b": 2}\n')
    monkeypatch.chdir(tmp_path)
    with pytest.raises(DataError, match=f"data must be a file, a folder.*{words}"):
        make("rowtests/Sums-v0", data=data)
    if not data:
        with pytest.raises(DataError, match="data must be a file, a folder or a hub name, got ''"):
            make("assay/GSM8K-v1", data=data)


def test_a_null_reference_is_a_bad_row_where_a_function_judges() -> None:
    """A function cannot say which references it takes."""
    rows = [{"q": f"q{n}", "a": None if n == 3 else "a"} for n in range(20)]
    for name, rubric in (
        ("Null-v0", lambda reply, gold: gold == reply),
        ("NullParts-v0", Rubric({"same": lambda reply, gold: gold == reply})),
        ("NullForm-v0", "Boxed"),
    ):
        columns = {"prompt": "{q}", "reference": "a", "rubric": rubric}
        register_rows(f"rowtests/{name}", rows, **columns)
    for name in ("Null-v0", "NullParts-v0"):
        with pytest.raises(ValueError, match=r"row 3: the reference, column 'a', is missing"):
            make(f"rowtests/{name}")
    assert make("rowtests/NullForm-v0").task(0).text
