# ruff: noqa: E501  # a row of examples is read as a row
"""Each convention by name, the reason that names it, and JSON that keeps it."""

import pytest

from assay.verifiers import Math, Status

REASONS = [
    ("50", r"50\%", "as a percentage"), ("1/3", "0.333333", "rounded to 6 digits"), (r"\sqrt2", "1.414214", "rounded to 6 digits"),
    ("5", "5 cm", "a unit is left out"), (r"2\pi", r"2\pi\text{ cm}", "a unit is left out"), ("204_5", "204", "the base is left out"),
    ("5", "x = 5", "given by name"), ("x = 5", "5", "the name is left out"), (r"(3,\infty)", "x>3", "as a set of numbers"),
    (r"3:30\text{ PM}", "15:30", "as a date or time"), ("(B) 12", "12", "by the option's text"), ("7", "7.0", "equal"),
]  # fmt: skip


def boxed(answer: str) -> str:
    return rf"So $\boxed{{{answer}}}$."


@pytest.mark.parametrize(("gold", "answer", "reason"), REASONS)
def test_the_reason_names_it(gold: str, answer: str, reason: str) -> None:
    verdict = Math().verify(boxed(answer), gold)
    assert verdict.status is Status.CORRECT
    assert reason in verdict.reason


def test_unknown_conventions_are_refused() -> None:
    with pytest.raises(ValueError, match="members must be one of exact, some, more"):
        Math(members="all")
    with pytest.raises(TypeError, match=r"no option 'percnt'\. Did you mean percent\?"):
        Math(percnt="value")
    with pytest.raises(TypeError, match="colour"):
        Math(colour="red")


def test_bad_references_are_listed_by_position() -> None:
    assert list(Math().bad_references(["7", "", r"\frac{1}{", "x+1", None])) == [1, 2, 4]
