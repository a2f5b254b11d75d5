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
    ("reply", "bullets", "numbers"),
    [
        ("- a\n- b\n- c", 3, 0), ("* a\n+ b\n\n- c", 3, 0), ("- a\n  - b\n  - c", 1, 0),
        ("- a\n\t- b\n- c", 2, 0), ("1. a\n   - b\n   - c\n2. d", 2, 2), ("1) a\n2) b", 0, 2),
        ("- a\n- a\n- A", 1, 0), ("- a\n- \n- .\n-", 1, 0), ("-a\n*b*\n**c**", 0, 0),
        ("- - -\n* * *\n---", 0, 0), ("```\n- a\n```", 0, 0), ("    - a", 0, 0),
        ("- a\n\ntext\n\n- b", 2, 0), ("1999. a\n3.14 is\n10. b", 0, 2), ("- [ ] a\n- [x] b", 2, 0),
    ],
)  # fmt: skip
def test_items(reply: str, bullets: int, numbers: int) -> None:
    for number in range(1, 5):
        assert keeps(reply, bullets=number) == (bullets == number)
        assert keeps(reply, numbers=number) == (numbers == number)
        assert keeps(reply, bullets=[number, None]) == (bullets >= number)
        assert keeps(reply, numbers=[number, number + 1]) == (number <= numbers <= number + 1)


def test_grades_are_the_share_of_rules_kept() -> None:
    rules = {"headings": ["A", "B"], "bullets": 2, "code": "sql", "bold": [1, None]}
    graded = MarkdownStructure(**rules, graded=True)
    verdict = graded.verify("# A\n- x\n- y\n# B\n**z**", None)
    assert (verdict.score, verdict.status) == (0.75, Status.UNPARSEABLE)
    assert verdict.parts == {"headings": 1.0, "bullets": 1.0, "code": 0.0, "bold": 1.0}
    assert MarkdownStructure(**rules).verify("# A\n- x\n- y\n# B\n**z**", None).score == 0.0
    assert graded.verify("# A\n- x\n- y\n# B\n**z**\n```sql\nx", None).score == 0.0
    assert graded.verify("# A\n- x\n- y\n# B\n**z**", {"code": "c", "bullets": 3}).score == 0.5


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
    winner = str(verifier.oracle_reply(None))
    assert verifier.verify(winner, None).score == 1.0
    last = winner.rstrip().rpartition("\n")[0]
    assert verifier.verify(last, None).score == 0.0
