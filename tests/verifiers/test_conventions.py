# ruff: noqa: E501  # a row of examples is read as a row
"""Each convention by name, the reason that names it, and JSON that keeps it."""

from typing import Any

import pytest

from assay.verifiers import Math, Status, Verifier

OPTIONS: list[tuple[dict[str, Any], str, str, bool]] = [
    ({"percent": "unit"}, "50", r"50\%", True),
    ({"percent": "unit"}, "0.5", r"50\%", False),
    ({"percent": "value"}, "0.5", r"50\%", True),
    ({"percent": "value"}, r"\frac{\sqrt2}{2}", r"50\sqrt2\%", True),
    ({"percent": "value"}, "50", r"50\%", False),
    ({"rounded_digits": None}, r"\sqrt2", "1.414214", False),
    ({"rounded_digits": 3}, r"\sqrt2", "1.414", True),
    ({"rounded_digits": 3}, r"\sqrt2", "1.415", False),
    ({"units": False}, "5", "5 cm", False),
    ({"units": False}, r"2\pi", r"2\pi\text{ cm}", False),
    ({"units": False}, "204_5", "204", False),
    ({"units": False}, r"3:30\text{ PM}", "3:30", False),
    ({"case": True}, "Paris", "paris", False),
    ({"case": True}, "Paris", r"\text{Paris}", True),
    ({"ordered": True}, "1, 2, 3", "1, 3, 2", False),
    ({"ordered": True}, "1, 2, 3", "1, 2, 3", True),
    ({"ordered": True}, r"\{1, 2\}", r"\{2, 1\}", True),
    ({"brackets": False}, "(1, 2)", "1, 2", True),
    ({"brackets": False}, "(1, 2)", "2, 1", False),
    ({"members": "some"}, "1, 2, 3", "1, 3", True),
    ({"members": "some"}, "1, 2, 3", "3", True),
    ({"members": "some"}, "1, 2, 3", "1, 4", False),
    ({"members": "more"}, "1, 2", "1, 2, 3", True),
    ({"members": "more"}, "1, 2", "1, 3", False),
    ({"members": "more"}, "1, 2", "1,2,3,4,5", False),
    ({}, r"12\%", r"12 \text{ percentage points}", True),
    ({}, r"12\%", r"12 \text{ points}", False),
    ({"dates": False}, "12 May 2024", "2024-05-12", False),
    ({"dates": False}, "12 May 2024", r"12 \text{ May } 2024", True),
]
REASONS = [
    ("50", r"50\%", "as a percentage"), ("1/3", "0.333333", "rounded to 6 digits"), (r"\sqrt2", "1.414214", "rounded to 6 digits"),
    ("5", "5 cm", "a unit is left out"), (r"2\pi", r"2\pi\text{ cm}", "a unit is left out"), ("204_5", "204", "the base is left out"),
    ("5", "x = 5", "given by name"), ("x = 5", "5", "the name is left out"), (r"(3,\infty)", "x>3", "as a set of numbers"),
    (r"3:30\text{ PM}", "15:30", "as a date or time"), ("(B) 12", "12", "by the option's text"), ("7", "7.0", "equal"),
]  # fmt: skip


def boxed(answer: str) -> str:
    return rf"So $\boxed{{{answer}}}$."


@pytest.mark.parametrize(("options", "gold", "answer", "same"), OPTIONS)
def test_a_convention_decides(options: dict[str, Any], gold: str, answer: str, same: bool) -> None:
    math = Math(**options)
    assert math.verify(boxed(answer), gold).score == float(same)
    back = Verifier.from_json(math.to_json())
    assert back == math
    assert back.verify(boxed(answer), gold).score == float(same)


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
