import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import MarkdownStructure, Status


def keeps(reply: str, **rules: Any) -> bool:
    verdict = MarkdownStructure().verify(reply, rules)
    assert verdict.score is not None, verdict
    return verdict.score == 1.0


@pytest.mark.parametrize(
    ("reply", "headings", "kept"),
    [
        ("# Plan\na\n# Result\nb", ["Plan", "Result"], True),
        ("# Plan\na\n## Result\nb", ["Plan", "## Result"], True),
        ("# Plan\na\n## Result\nb", ["Plan", "# Result"], False),
        ("# Plan\na\n# Other\nc\n# Result\nb", ["Plan", "Result"], True),
        ("# Result\nb\n# Plan\na", ["Plan", "Result"], False),
        ("# Plan\n# Result\nb", ["Plan", "Result"], False),
        ("# Plan\n## Step\na\n# Result\nb", ["Plan", "Result"], True),
        ("# Plan\n## Step\n# Result\nb", ["Plan", "Result"], False),
        ("# Plan\na\n# Plan\nb", ["Plan"], False),
        ("# **PLAN**: ##\na", ["plan"], True),
        ("   ###### plan\na", ["###### Plan"], True),
        ("#Plan\na", ["Plan"], False),
        ("####### Plan\na", ["Plan"], False),
        ("    # Plan\na", ["Plan"], False),
        ("Plan\na", ["Plan"], False),
        ("Plan: a", ["Plan"], False),
        ("# The Plan\na", ["Plan"], False),
        ("# C#\na", ["C#"], True),
        ("# Plan\n...\n", ["Plan"], False),
        ("# Plan\n---\n***\n", ["Plan"], False),
        ("# Plan\n<!-- a -->\n", ["Plan"], False),
        ("# Plan\n<!-- a\n# Result\n--> b", ["Plan"], True),
        ("# Plan\nSee `<!--` here.\n# Result\nb", ["Plan", "Result"], True),
        ("<!--\n# Plan\na\n-->", ["Plan"], False),
        ("```\n# Plan\na\n```", ["Plan"], False),
        ("```markdown\n# Plan\na\n```", ["Plan"], True),
        ("```markdown\r\n# Plan\r\na\r\n```\r\n", ["Plan"], True),
        ("\ufeff# Plan\na<|im_end|>", ["Plan"], True),
        ("# Plan\n```\nx = 1\n```", ["Plan"], True),
        ("# Plan\n```\n\n```", ["Plan"], False),
        ("# Plan\na\n```\nx", ["Plan"], False),
        ("# A\na\n## B\nb\n## C\nc", ["#", "##", "##"], True),
        ("# A\na\n## B\nb", ["#", "##", "##"], False),
        ("# Plan\r\na\r\n# Result\r\nb", ["Plan", "Result"], True),
        ("<think># Plan\na</think># Plan\nb", ["Plan"], True),
        ("<think># Plan\na</think>b", ["Plan"], False),
        ("## \na", ["##"], False),
    ],
)
def test_headings(reply: str, headings: list[str], kept: bool) -> None:
    assert keeps(reply, headings=headings) == kept


@pytest.mark.parametrize(
    ("reply", "bullets", "numbers"),
    [
        ("- a\n- b\n- c", 3, 0),
        ("* a\n+ b\n\n- c", 3, 0),
        ("- a\n  - b\n  - c", 1, 0),
        ("- a\n\t- b\n- c", 2, 0),
        ("1. a\n   - b\n   - c\n2. d", 2, 2),
        ("1) a\n2) b", 0, 2),
        ("- a\n- a\n- A", 1, 0),
        ("- a\n- \n- .\n-", 1, 0),
        ("-a\n*b*\n**c**", 0, 0),
        ("- - -\n* * *\n---", 0, 0),
        ("```\n- a\n```", 0, 0),
        ("    - a", 0, 0),
        ("- a\n\ntext\n\n- b", 2, 0),
        ("1999. a\n3.14 is\n10. b", 0, 2),
        ("- [ ] a\n- [x] b", 2, 0),
    ],
)
def test_items(reply: str, bullets: int, numbers: int) -> None:
    for number in range(1, 5):
        assert keeps(reply, bullets=number) == (bullets == number)
        assert keeps(reply, numbers=number) == (numbers == number)
        assert keeps(reply, bullets=[number, None]) == (bullets >= number)
        assert keeps(reply, numbers=[number, number + 1]) == (number <= numbers <= number + 1)


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("| Name | Age |\n|---|---|\n| Ada | 36 |", True),
        ("Name | Age\n:-- | --:\nAda | 36", True),
        ("| **name** | AGE: |\n|-|-|\n| a\\|b | 36 |\n| | 1 |", True),
        ("|Other|\n|-|\n|x|\n\n| Name | Age |\n|---|---|\n| Ada | 36 |", True),
        ("| Name | Age |\n|---|---|", False),
        ("| Name | Age |\n|---|---|\n| - | |", False),
        ("| Name | Age |\n|---|---|\n| Ada | 36 | x |", False),
        ("| Name | Age |\n| Ada | 36 |", False),
        ("| Name | Age |\n|---|\n| Ada | 36 |", False),
        ("| Age | Name |\n|---|---|\n| 36 | Ada |", False),
        ("```\n| Name | Age |\n|---|---|\n| Ada | 36 |\n```", False),
        ("Name, Age\nAda, 36", False),
    ],
)
def test_tables(reply: str, kept: bool) -> None:
    assert keeps(reply, table=["Name", "Age"]) == kept
    assert keeps(reply, table=2) == (kept or "| Age | Name" in reply)


@pytest.mark.parametrize(
    ("reply", "kept"),
    [
        ("```python\nx = 1\n```", True),
        ("~~~ Python title=x\nx = 1\n~~~~", True),
        ("- run\n  ```python\n  x = 1\n  ```", True),
        ("````python\n```\nx\n````", True),
        ("```python\n```", False),
        ("```python\n# I don't know\n```", False),
        ("```python\nx = 1", False),
        ("```py\nx = 1\n```", False),
        ("```\nx = 1\n```", False),
        ("`python x = 1`", False),
    ],
)
def test_code(reply: str, kept: bool) -> None:
    assert keeps(reply, code="python") == kept


@pytest.mark.parametrize(
    ("reply", "number"),
    [
        ("**a** and __b__", 2),
        ("**a** **a** **A**", 1),
        ("***a***", 1),
        ("**a *b* c**", 1),
        ("** a ** 2 ** 3", 0),
        ("****", 0),
        ("`**a**`", 0),
        ("snake__case__name", 0),
        ("**a\nb**", 0),
        ("**.**", 0),
        ("| **a** | b |\n|-|-|\n| **c** | d |", 2),
    ],
)
def test_bold(reply: str, number: int) -> None:
    for count in range(1, 4):
        assert keeps(reply, bold=count) == (number == count)


def test_grades_are_the_share_of_rules_kept() -> None:
    rules = {"headings": ["A", "B"], "bullets": 2, "code": "sql", "bold": [1, None]}
    graded = MarkdownStructure(**rules, graded=True)
    verdict = graded.verify("# A\n- x\n- y\n# B\n**z**", None)
    assert (verdict.score, verdict.status) == (0.75, Status.UNPARSEABLE)
    assert verdict.parts == {"headings": 1.0, "bullets": 1.0, "code": 0.0, "bold": 1.0}
    assert MarkdownStructure(**rules).verify("# A\n- x\n- y\n# B\n**z**", None).score == 0.0
    assert graded.verify("# A\n- x\n- y\n# B\n**z**\n```sql\nx", None).score == 0.0
    assert graded.verify("# A\n- x\n- y\n# B\n**z**", {"code": "c", "bullets": 3}).score == 0.5


BAD = [
    {}, [], "x", 3, {"lists": 3}, {"headings": "A"}, {"headings": []}, {"headings": ["**"]},
    {"headings": [1]},
    {"bullets": 0}, {"bullets": True}, {"bullets": [0, None]}, {"bullets": [3, 2]},
    {"bullets": [1]}, {"bullets": 2.0}, {"table": 0}, {"table": [""]}, {"table": ["**"]},
    {"code": ""}, {"code": "a b"}, {"code": None}, {"bold": "many"}, None,
]  # fmt: skip


@pytest.mark.parametrize("rules", BAD)
def test_rules_that_cannot_be_used_are_refused(rules: Any) -> None:
    assert MarkdownStructure().check_reference(rules)
    assert MarkdownStructure().verify("# A\na", rules).status is Status.BAD_GOLD


def test_a_bad_rule_is_refused_when_the_verifier_is_made() -> None:
    with pytest.raises(ValueError, match=r"bullets must be a whole number .* got 0"):
        MarkdownStructure(bullets=0)


counts = st.none() | st.integers(1, 4) | st.tuples(st.integers(1, 3), st.none()).map(list)
texts = st.lists(st.sampled_from(["# A", "B", "## C", "##", "Plan: x"]), min_size=1, unique=True)


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.none() | texts, counts, counts, st.sampled_from([None, 1, 3, ["a", "b"]]),
    st.sampled_from([None, "python"]), counts,
)  # fmt: skip
def test_winning_replies_win_and_need_each_of_their_lines(
    headings: Any, bullets: Any, numbers: Any, table: Any, code: Any, bold: Any
) -> None:
    verifier = MarkdownStructure(
        headings=headings, bullets=bullets, numbers=numbers, table=table, code=code, bold=bold
    )
    if verifier.check_reference(None) is not None:
        return
    winner = str(verifier.winning_reply(None))
    assert verifier.verify(winner, None).score == 1.0
    last = winner.rstrip().rpartition("\n")[0]
    assert verifier.verify(last, None).score == 0.0


def test_a_long_run_of_any_mark_is_read_in_a_moment() -> None:
    verifier = MarkdownStructure(headings=["A"] * 3, bullets=2, table=2, code="c", bold=3)
    started = time.process_time()
    for piece in (
        "#\n",
        "- a\n",
        " - a\n",
        "*",
        "**a",
        "__a",
        "| a | b |\n",
        "|",
        "`",
        "<!--",
        "```\n",
    ):
        assert verifier.verify(piece * (2**18 // len(piece)), None).score == 0.0
    assert time.process_time() - started < 60
