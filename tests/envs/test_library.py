"""Environments over data: each layout read, each fault named, and the sample not mistaken."""

import gzip
import json
import math
import os
import warnings
from pathlib import Path

import pytest

from assay.envs import DataError, Rows, make, make_group
from assay.envs.datasets.library import LIBRARY
from assay.envs.datasets.library.choices import options_of, right_letter
from assay.envs.datasets.library.data_env import sample_of

IDS = [f"assay/{name}-v1" for name in LIBRARY]
GSM8K = [
    {
        "question": f"Ann has {n} pens and buys {n}. How many?",
        "answer": f"{n}+{n}={2 * n}\n#### {2 * n:,}",
    }
    for n in (3, 700, 12)
]
HUMANEVAL = [
    {
        "task_id": f"HumanEval/{i}",
        "prompt": f'def {name}(a, b):\n    """{name} two numbers."""\n',
        "entry_point": name,
        "canonical_solution": f"    return a {sign} b\n",
        "test": f"def check(candidate):\n    assert candidate(6, 3) == {value}\n",
    }
    for i, (name, sign, value) in enumerate([("add", "+", 9), ("take", "-", 3)])
]
MBPP = [
    {
        "task_id": 11,
        "text": "Write a function to double a number.",
        "code": "def double(n):\r\n  return 2 * n",
        "test_setup_code": "",
        "test_list": ["assert double(2) == 4", "assert double(0) == 0"],
        "challenge_test_list": [],
    }
]
IFEVAL = [
    {
        "key": 7,
        "prompt": "Write of the sea in 2 bullet points such as * this. Do not use commas.",
        "instruction_id_list": ["detectable_format:number_bullet_lists", "punctuation:no_comma"],
        "kwargs": [{"num_bullets": 2.0, "keywords": None}, {}],
    },
    {
        "key": 8,
        "prompt": "Name a season. Wrap your reply in double quotation marks.",
        "instruction_id_list": ["startend:quotation"],
        "kwargs": [{}],
    },
]
APPS = {"question": "Double it.", "input_output": '{"inputs": ["2\\n"], "outputs": ["4\\n"]}'}
CONTEST = {
    "question_content": "Double it.",
    "public_test_cases": '[{"input": "2", "output": "4", "testtype": "stdin"}]',
    "private_test_cases": "",
}


def over(tmp_path, name, *rows, **kwargs):
    path = tmp_path / "rows.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    return make(f"assay/{name}-v1", data=str(path), **kwargs)


# -- the sample --------------------------------------------------------------------------------


@pytest.mark.parametrize("id_", IDS)
def test_without_data_there_is_a_sample_and_a_warning(id_) -> None:
    with pytest.warns(UserWarning, match=r"only the sample: .* Do not train on it, and report no"):
        env = make(id_)
    env.close()
    assert env.data == "sample"
    assert 8 <= env.source.size <= 12


def test_the_sample_can_be_asked_for_in_silence() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert make("assay/GSM8K-v1", data="sample").data == "sample"


def test_samples_are_read_as_users_files_are() -> None:
    env = make("assay/SVAMP-v1", data="sample")
    again = make("assay/SVAMP-v1", data=sample_of(type(env)))
    assert again.source.tasks == env.source.tasks


ANSWERS = [
    ({"answer": ["2", "2.0 m"]}, ["2", "2.0 m"], "2", "3"),
    ({"answers": [r"\frac14", "14"]}, [r"\frac14", "14"], "0.25", "4"),
    ({"answers": ["9"], "solution": r"\boxed{8}"}, "9", "9", "8"),
    ({"final_answer": ["$11$"], "error": None, "is_multiple_answer": False}, "$11$", "11", "1"),
    (
        {"final_answer": ["1", "-1"], "is_multiple_answer": True, "solution": ["a", "b"]},
        "1, -1",
        "-1, 1",
        "1",
    ),
    (
        {"final_answer": ["0.34"], "error": "1e-2"},
        {"answer": "0.34", "tolerance": 0.01},
        "0.346",
        "0.36",
    ),
    ({"answer": 50, "tolerance": 2}, {"answer": "50", "tolerance": 2.0}, "51.5", "53"),
    (
        {"answer": "200", "relative_tolerance": 0.1},
        {"answer": "200", "relative_tolerance": 0.1},
        "215",
        "225",
    ),
    ({"solution": r"As \boxed{5}.", "tolerance": ""}, "5", "5", "5.01"),
    ({"solution": r"Not $\boxed 2$ but $\boxed 5$."}, "5", "5", "2"),
]


@pytest.mark.parametrize(("fields", "reference", "right", "wrong"), ANSWERS)
def test_math_takes_several_answers_and_the_tolerance_of_a_row(
    tmp_path, fields, reference, right, wrong
) -> None:
    env = over(tmp_path, "MATH", {"question": "How much?", **fields})
    task = env.task(0)
    assert task.reference == reference
    scores = [env.rubric.verify(rf"\boxed{{{text}}}", reference).score for text in (right, wrong)]
    assert scores == [1.0, 0.0]
    if "answers" not in fields or "solution" not in fields:
        assert env.rubric.verify(task.solution, reference).score == 1.0


@pytest.mark.bwrap
@pytest.mark.filterwarnings("ignore:programs run under:RuntimeWarning")
def test_sanitized_mbpp_and_mbpp_plus_are_read(tmp_path) -> None:
    row = {
        "task_id": "Mbpp/16",
        "prompt": "Write a function to floor a number.",
        "code": "import math\ndef floor(x):\n  return math.floor(x)",
        "test_imports": ["import math"],
        "test_list": ["assert floor(2.5) == math.floor(2.5)"],
    }
    env = over(tmp_path, "MBPP", row)
    task = env.task(0)
    assert task.id == "MBPP/16"
    assert task.text.startswith("Write a function to floor a number.\nReply")
    assert task.reference["setup"] == "import math"
    assert env.rubric.verify(task.solution, task.reference).score == 1.0
    wrong = task.solution.replace("math.floor", "math.ceil")
    assert env.rubric.verify(wrong, task.reference).score == 0.0
    with pytest.raises(DataError, match="'text' must be text"):
        over(tmp_path, "MBPP", {**row, "prompt": None})


# -- layouts -----------------------------------------------------------------------------------


def test_rows_keep_the_ids_of_their_data(tmp_path) -> None:
    mbpp = over(tmp_path, "MBPP", *MBPP)
    assert isinstance(mbpp.source, Rows)
    assert mbpp.task(0).id == "MBPP/11"
    assert over(tmp_path, "HumanEval", *HUMANEVAL).task(1).id == "HumanEval/1"
    assert over(tmp_path, "GSM8K", *GSM8K).task(1).reference == "1,400"


@pytest.mark.parametrize(
    ("row", "gold", "metadata"),
    [
        (
            {"solution": r"So \boxed{1}, then \boxed{\frac{1}{2}}.", "level": "Level 3"},
            r"\frac{1}{2}",
            {"level": 3},
        ),
        ({"solution": "?", "answer": 12, "level": 5}, "12", {"level": 5}),
        ({"answer": "x", "level": "Level ?", "type": "Algebra"}, "x", {"type": "Algebra"}),
    ],
)
def test_competition_problems_have_their_answer_in_a_box_or_apart(
    tmp_path, row, gold, metadata
) -> None:
    env = over(tmp_path, "MATH", {"problem": "?", **row})
    task = env.task(0)
    assert (task.reference, task.metadata) == (gold, metadata)
    assert env.rubric.verify(task.solution, task.reference).score == 1.0


@pytest.mark.parametrize("name", ["MATH", "AIME", "GSM8K", "SVAMP", "AMC"])
def test_a_number_is_no_calculation_that_comes_to_it(tmp_path, name) -> None:
    layouts = {
        "GSM8K": {"question": "?", "answer": "#### 13"},
        "SVAMP": {"Body": "?", "Answer": 13.0},
    }
    row = layouts.get(name, {"problem": "?", "answer": 13})
    env = over(tmp_path, name, row | {"Question": "?"} if name == "SVAMP" else row)
    replies = [r"It is \boxed{2^3+5}.", r"It is \boxed{2^3+5 = 13}.", r"It is \boxed{13}."]
    assert [v.score for v in env.rubric.verify_many(replies, [env.task(0).reference] * 3)] == [
        0,
        1,
        1,
    ]


def test_a_calculation_may_be_the_known_answer(tmp_path) -> None:
    env = over(tmp_path, "MATH", {"problem": "?", "answer": "2^{100}"})
    assert env.rubric.verify(r"It is \boxed{2^{100}}.", "2^{100}").score == 1.0


def test_a_level_of_competition_problems(tmp_path) -> None:
    rows = [{"problem": f"{i}", "answer": i, "level": f"Level {i % 2 + 1}"} for i in range(6)]
    assert [t.reference for t in over(tmp_path, "MATH", *rows, level=2).source.tasks] == [*"135"]
    with pytest.raises(DataError, match="6 rows, and none is what was asked for"):
        over(tmp_path, "MATH", *rows, level=4)


@pytest.mark.parametrize(("answer", "gold"), [(7, "7"), ("025", "25"), (999.0, "999"), ("0", "0")])
def test_answers_of_three_digits(tmp_path, answer, gold) -> None:
    env = over(tmp_path, "AIME", {"problem": "?", "answer": answer})
    assert env.task(0).reference == gold
    assert env.rubric.verify(rf"\boxed{{{gold}}}", gold).score == 1.0


def test_contest_problems_with_a_number_instead_of_options(tmp_path) -> None:
    env = over(tmp_path, "AMC", {"problem": "?", "answer": 142.0, "year": 2022})
    assert env.task(0).reference == "142"
    assert env.task(0).metadata == {"year": 2022}
    assert "letter" not in env.task(0).text


def test_word_problems_in_two_parts(tmp_path) -> None:
    row = {"Body": "Ann has 3 pens", "Question": "How many?", "Answer": "3.0", "ID": "chal-1"}
    env = over(tmp_path, "SVAMP", row)
    assert env.task(0).text.startswith("Ann has 3 pens. How many?\n\n")
    assert (env.task(0).id, env.task(0).reference) == ("chal-1", "3")


ANSWERS = ["Rome", "Paris", "Bern", "Oslo"]
CHOICES = {
    "MMLU": {"question": "?", "subject": "geography", "choices": ANSWERS, "answer": 1},
    "MMLU-Pro": {"question": "?", "options": ANSWERS, "answer": "B", "answer_index": 1},
    "ARC": {
        "question": "?",
        "choices": {"text": ANSWERS, "label": ["A", "B", "C", "D"]},
        "answerKey": "B",
    },
    "ARC, numbered": {
        "question": "?",
        "choices": {"text": ANSWERS, "label": ["1", "2", "3", "4"]},
        "answerKey": "2",
    },
    "by text": {"question": "?", "choices": ANSWERS, "answer": "Paris"},
    "a table of two layouts": {
        "question": "?",
        "choices": None,
        "options": ANSWERS,
        "answerKey": None,
        "answer": "B",
    },
}


@pytest.mark.parametrize("layout", CHOICES)
def test_options_in_every_layout(tmp_path, layout) -> None:
    env = over(tmp_path, "MultipleChoice", CHOICES[layout])
    assert env.task(0).reference == {"answer": "B", "options": ANSWERS}
    assert "B) Paris" in env.task(0).text


def test_options_of_which_the_first_is_right_are_shuffled(tmp_path) -> None:
    wrong = {f"Incorrect Answer {i}": f"no {i}" for i in (1, 2, 3)}
    rows = [{"Question": f"{i}?", "Correct Answer": "A", **wrong} for i in range(40)]
    env = over(tmp_path, "MultipleChoice", *rows)
    letters = [t.reference["answer"] for t in env.source.tasks]
    assert set(letters) == set("ABCD")
    for task in env.source.tasks:
        right = "ABCD".index(task.reference["answer"])
        assert task.reference["options"][right] == "A"
    again = [t.reference for t in over(tmp_path, "MultipleChoice", *rows).source.tasks]
    assert again == [t.reference for t in env.source.tasks]
    other = over(tmp_path, "MultipleChoice", *rows, seed=1)
    assert [t.reference for t in other.source.tasks] != again


def test_options_are_shuffled_where_that_is_asked(tmp_path) -> None:
    rows = [{**CHOICES["MMLU"], "question": f"{i}?"} for i in range(30)]
    env = over(tmp_path, "MultipleChoice", *rows, shuffle=True)
    assert {t.reference["answer"] for t in env.source.tasks} == set("ABCD")
    assert all(env.rubric.verify("Paris", t.reference).score == 1.0 for t in env.source.tasks)


def test_passages_with_answers_and_without(tmp_path) -> None:
    known = {"text": ["Bern", "Bern", "in Bern"], "answer_start": [0, 0, 0]}
    env = over(
        tmp_path,
        "ShortAnswer",
        {"id": "a", "context": "It is in Bern.", "question": "Where?", "answers": known},
        {"id": "b", "context": "", "question": "When?", "answers": {"text": []}},
        {"id": "c", "question": "Who?", "answers": ["Eva", "Eva Rask"]},
    )
    assert [t.reference for t in env.source.tasks] == [["Bern", "in Bern"], [], ["Eva", "Eva Rask"]]
    assert env.rubric.verify("Unanswerable.", env.task(1).reference).score == 1.0
    assert env.rubric.verify("Bern", env.task(1).reference).score == 0.0
    assert env.rubric.verify("Eva Rask", env.task(2).reference).score == 1.0


def test_programs_are_asked_for_by_what_judges_them(tmp_path) -> None:
    method = {
        "question": "Double it.",
        "starter_code": "class Solution:\n    def double(self, n: int) -> int:\n",
        "input_output": {"fn_name": "double", "inputs": [[2]], "outputs": [4]},
        "difficulty": "interview",
    }
    env = over(tmp_path, "APPS", APPS, method)
    assert "reads standard input" in env.task(0).text
    assert "the method double of a class Solution" in env.task(1).text
    assert env.task(1).metadata == {"difficulty": "interview"}
    assert over(tmp_path, "APPS", APPS, method, difficulty="interview").source.size == 1
    env.close()


def test_contests_since_a_day(tmp_path) -> None:
    rows = [
        {**CONTEST, "question_id": f"q{m}", "contest_date": f"2024-0{m}-01T00:00:00"}
        for m in (3, 8, 9)
    ]
    for day in ("2024-08-01", "20240801"):
        env = over(tmp_path, "LiveCodeBench", *rows, since=day)
        assert [t.id for t in env.source.tasks] == ["LiveCodeBench/q8", "LiveCodeBench/q9"]
    with pytest.raises(ValueError, match="since must be a date as 2024-08-01, got 'August'"):
        over(tmp_path, "LiveCodeBench", *rows, since="August")


@pytest.mark.parametrize(
    ("options", "reward"), [({}, 0.0), ({"partial": True}, 0.5), ({"mode": "loose"}, 1.0)]
)
def test_instructions_are_strict_unless_told(tmp_path, options, reward) -> None:
    env = over(tmp_path, "IFEval", *IFEVAL, **options)
    env.reset(options={"task": 0})
    assert env.step("Sure, here you are:\n* The sea is wide.\n* It is salt.")[1] == reward


@pytest.mark.bwrap
@pytest.mark.filterwarnings("ignore::UserWarning")  # without Docker the sandbox says so
def test_groups_of_programs_are_judged_in_one_batch(tmp_path) -> None:
    data = over(tmp_path, "MBPP", *MBPP).data
    group = make_group("assay/MBPP-v1", prompts=1, group_size=3, data=data)
    group.reset(seed=0)
    replies = ["def double(n): return n + n", "def double(n): return 4", "def d("]
    _, rewards, *_ = group.step(replies)
    group.close()
    assert list(rewards) == [1.0, 0.0, 0.0]


# -- faults ------------------------------------------------------------------------------------


@pytest.mark.parametrize("answer", ["no marker", "#### many", "####", "1 #### 2 or 3"])
def test_golds_that_cannot_be_used_stop_the_load(tmp_path, answer) -> None:
    with pytest.raises(DataError, match=r"line 4: 'answer' must end in '####' and the gold"):
        over(tmp_path, "GSM8K", *GSM8K, {"question": "?", "answer": answer})


HOW_MUCH = {"problem": "How much?"}
FAULTS = [
    ("MATH", {"problem": "?", "solution": "none"}, "must have an 'answer', or a 'solution'"),
    ("MATH", {"problem": "?", "solution": r"\boxed{1"}, "must have an 'answer', or a 'solution'"),
    ("MATH", {"problem": "?", "answer": ""}, "the reference '' cannot be used"),
    ("AIME", {"problem": "?", "answer": 1000}, "whole number from 0 to 999, got 1000"),
    ("AIME", {"problem": "?", "answer": 2.5}, "whole number from 0 to 999, got 2.5"),
    (
        "AIME",
        {"problem": "?", "answer": True},
        "'answer' must be a str or a int or a float, got True",
    ),
    ("AIME", {"problem": "?", "answer": "seven"}, "got 'seven'"),
    ("AIME", {"problem": "?", "answer": "nan"}, "got 'nan'"),
    ("MATH", {"problem": "?", "answer": math.nan}, "'answer' must be .*, got nan"),
    ("MATH", {"problem": "?", "answers": [3, math.nan]}, "must be text or a number, got nan"),
    ("MultipleChoice", {"question": "?", "choices": ["1", math.nan], "answer": 0}, "got nan"),
    ("AMC", {"problem": "?", "answer": "Z"}, "'answer' must be a number, got 'Z'"),
    ("AMC", {"problem": "?", "choices": ["1", "2"], "answer": "Z"}, "must name an option"),
    ("AMC", {"problem": "?", "choices": ["1", "1"], "answer": "A"}, "two options are the same"),
    ("SVAMP", {"Body": "b", "Question": "q", "Answer": "x"}, "'Answer' must be a number, got 'x'"),
    ("SVAMP", {"Body": "b", "Question": "q"}, "no field 'Answer'"),
    ("SVAMP", {"Body": "b", "Question": "q", "Answer": []}, "must be a str or a int or a float"),
    ("MultipleChoice", {"question": "?"}, "must have from 2 to 26 options, got None"),
    ("MultipleChoice", {"choices": ["1", "2"], "answer": 0}, "'question' must be text .* got None"),
    ("MultipleChoice", {**CHOICES["MMLU"], "answer": 4}, "must name an option .*, got 4"),
    (
        "MultipleChoice",
        {**CHOICES["MMLU"], "answer": True},
        "'answer' must be a str or a int, got True",
    ),
    ("MultipleChoice", {**CHOICES["ARC"], "answerKey": "E"}, r"option \(A, B, C, D\), got 'E'"),
    ("ShortAnswer", {"question": "?", "answers": {}}, "'answers' must have a list 'text'"),
    ("ShortAnswer", {"question": "?", "answers": ["!"]}, "needs a letter or a digit"),
    ("ShortAnswer", {"question": "?", "answers": [1]}, "'answers' must be a list of texts, got 1"),
    ("APPS", {"question": "?", "input_output": ""}, "'input_output' must be JSON"),
    ("APPS", {"question": "?", "input_output": "{}"}, "must have 'inputs' and 'outputs'"),
    ("LiveCodeBench", {"question_content": "?"}, "has no test cases"),
    (
        "IFEval",
        {**IFEVAL[1], "kwargs": [{"num_bullets": 2}]},
        "startend:quotation takes no argument 'num_bul",
    ),
    ("MBPP", {**MBPP[0], "test_list": ["assert double(2 == 4"]}, r"\(MBPP/11\): "),
    ("MBPP", {**MBPP[0], "test_list": []}, r"\(MBPP/11\): 'test_list' must"),
    ("MBPP", {**MBPP[0], "test_list": [1]}, r"\(MBPP/11\): 'test_list' must"),
    ("ShortAnswer", {"question": "q", "answers": [["a"]]}, r"'answers' .* got \['a'\] in it"),
    ("ShortAnswer", {"question": "q", "context": 5, "answers": ["a"]}, "'context' must be a s"),
    (
        "MATH",
        {"problem": "p", "solution": 5},
        "'solution' must be a str or a list, got 5.*Correct or remove this row",
    ),
    ("MATH", HOW_MUCH | {"answers": []}, "'answers' must hold at least one answer"),
    ("MATH", HOW_MUCH | {"answer": ["1", None]}, "an answer must be text or a number, got None"),
    ("MATH", HOW_MUCH | {"final_answer": [None], "is_multiple_answer": True}, "or a number"),
    ("MATH", HOW_MUCH | {"answer": "1", "tolerance": "wide"}, "'tolerance' must be a number of"),
    ("MATH", HOW_MUCH | {"answer": "1", "tolerance": -1}, "'tolerance' must be a number of at"),
    ("MATH", HOW_MUCH | {"final_answer": ["1"], "error": "0.1,0.2"}, "'error' must be a number"),
]


@pytest.mark.parametrize(("name", "row", "words"), FAULTS)
def test_a_row_that_cannot_be_used_stops_the_load_and_is_named(tmp_path, name, row, words) -> None:
    with pytest.raises(DataError, match=rf"rows\.jsonl, line 1[\s\S]*{words}"):
        over(tmp_path, name, row)


def test_options_and_numbers_do_not_mix(tmp_path) -> None:
    options = {"problem": "?", "choices": ["1", "2"], "answer": "A"}
    with pytest.raises(DataError, match="line 2: the first row has 'choices', so every row must"):
        over(tmp_path, "AMC", options, {"problem": "?", "answer": 1})


def test_labels_and_texts_of_another_number() -> None:
    with pytest.raises(ValueError, match="'choices' must have a label for each option"):
        options_of({"text": ["a", "b"], "label": ["1"]})
    assert right_letter(" b ", ["a", "b"]) == "B"
    for answer, letter in (("A", "A"), ("B", "B"), ("y", "B")):  # MedQA's answer is a text
        assert right_letter(answer, ["B", "y"], ["A", "B"]) == letter
    assert options_of({"A": "x", "B": "y"}) == (["x", "y"], ["A", "B"])


# -- files and folders -------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", ["jsonl", "jsonl.gz", "json", "json, in lines", "parquet"])
def test_files_of_every_kind_read_alike(tmp_path, suffix) -> None:
    kind = suffix.partition(",")[0]
    path = tmp_path / f"rows.{kind}"
    lines = "\n".join(map(json.dumps, GSM8K))
    if kind == "parquet":
        pytest.importorskip("pyarrow")
        from pyarrow import Table, parquet

        parquet.write_table(Table.from_pylist(GSM8K), path)
    elif kind == "jsonl.gz":
        path.write_bytes(gzip.compress(lines.encode()))
    else:
        path.write_text(json.dumps(GSM8K, indent=1) if suffix == "json" else lines)
    assert [t.reference for t in make("assay/GSM8K-v1", data=path).source.tasks] == [
        "6",
        "1,400",
        "24",
    ]


@pytest.mark.parametrize("inner", ["", "data", "main"])
def test_a_folder_has_a_file_or_more_for_each_split(tmp_path, inner) -> None:
    folder = tmp_path / inner
    folder.mkdir(exist_ok=True)
    (folder / "test-00000-of-00002.jsonl").write_text(json.dumps(GSM8K[0]))
    (folder / "test-00001-of-00002.jsonl").write_text(json.dumps(GSM8K[1]))
    (folder / "train.json").write_text(json.dumps([GSM8K[2]]))
    (folder / "README.md").write_text("about")
    found = {
        split: [
            t.reference for t in make("assay/GSM8K-v1", data=tmp_path, split=split).source.tasks
        ]
        for split in ("test", "train")
    }
    assert found == {"test": ["6", "1,400"], "train": ["24"]}


@pytest.mark.parametrize(
    ("name", "content", "words"),
    [
        ("a.parquet", b"PAR1", "not a whole Parquet file"),
        ("a.json", b"{oops", "line 1: not JSON"),
        ("a.json", b"[1]", "row 0: expected a JSON object, got int"),
        ("a.json", b"[]", "holds no rows"),
        ("a.json", b"{}", "no field 'question'"),
    ],
)
def test_a_file_that_cannot_be_read_is_named(tmp_path, name, content, words) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=words):
        make("assay/GSM8K-v1", data=tmp_path / name)


# -- the real data, where they are -------------------------------------------------------------


@pytest.mark.skipif("ASSAY_DATA" not in os.environ, reason="ASSAY_DATA names no folder")
@pytest.mark.parametrize(
    ("name", "file", "size"),
    [
        ("GSM8K", "gsm8k_test.jsonl", 1319),
        ("HumanEval", "HumanEval.jsonl.gz", 164),
        ("MBPP", "mbpp.jsonl", 974),
    ],
)
def test_the_real_data_are_read(name, file, size) -> None:
    env = make(f"assay/{name}-v1", data=Path(os.environ["ASSAY_DATA"]) / file)
    assert env.source.size == size
    env.close()
