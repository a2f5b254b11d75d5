"""Arithmetic of more than two terms: text and known answer agree, by an evaluator of its own."""

from __future__ import annotations

import ast
import operator
from typing import Any

import pytest

from assay.envs import check, make

OPERATORS: dict[type[ast.operator], Any] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def value(node: ast.AST) -> int:
    """What a parsed expression is worth."""
    match node:
        case ast.Expression(body):
            return value(body)
        case ast.Constant(int(number)):
            return number
        case ast.BinOp(left, sign, right):
            return int(OPERATORS[type(sign)](value(left), value(right)))
    raise AssertionError(f"no arithmetic: {ast.dump(node)}")


def numbers(text: str) -> list[ast.Constant]:
    return [x for x in ast.walk(ast.parse(text, mode="eval")) if isinstance(x, ast.Constant)]


@pytest.mark.parametrize(
    ("terms", "operators", "digits"),
    [(3, "+-*", 2), (4, "-", 1), (6, "*-", 3), (5, "*", 1), (30, "+-*", 12)],
)
def test_the_known_answer_is_what_the_text_is_worth(terms, operators, digits) -> None:
    env = make("assay/Arithmetic-v1", terms=terms, operators=operators, digits=digits)
    for index in range(100):
        task = env.task(index)
        text = task.text.removesuffix("=")
        assert str(value(ast.parse(text, mode="eval"))) == task.reference
        assert len(numbers(text)) == terms
        assert set(text) <= set(operators) | set("()0123456789")


def test_parentheses_stand_only_where_they_count() -> None:
    env = make("assay/Arithmetic-v1", terms=5, operators="+-*", digits=1)
    seen = 0
    for index in range(200):
        text = env.task(index).text.removesuffix("=")
        known = value(ast.parse(text, mode="eval"))
        for at, mark in enumerate(text):
            if mark != "(":
                continue
            depth, end = 0, at
            while True:
                depth += (text[end] == "(") - (text[end] == ")")
                if not depth:
                    break
                end += 1
            bare = text[:at] + text[at + 1 : end] + text[end + 1 :]
            seen += 1
            tree = ast.dump(ast.parse(text, mode="eval"))
            assert ast.dump(ast.parse(bare, mode="eval")) != tree, (text, bare, known)
    assert seen > 100


def test_more_terms_keep_to_the_contract() -> None:
    check(make("assay/Arithmetic-v1", terms=4, operators="+-*"))


@pytest.mark.parametrize("terms", [1, 31, 0])
def test_terms_out_of_range_are_refused(terms) -> None:
    with pytest.raises(ValueError, match=f"terms must be from 2 to 30, got {terms}"):
        make("assay/Arithmetic-v1", terms=terms)


def test_products_are_as_long_as_a_reply_may_be() -> None:
    """Those of more than 160 digits were refused, and of 2,000 had no score."""
    env = make("assay/Arithmetic-v1", digits=100, terms=20, operators="*")
    task = env.task(0)
    assert env.rubric.verify(task.reference, task.reference).score == 1.0
    with pytest.raises(ValueError, match="at most 2000, got 3000"):
        make("assay/Arithmetic-v1", digits=100, terms=30, operators="+*")


def test_two_terms_are_the_sums_they_were() -> None:
    plain, named = make("assay/Arithmetic-v1"), make("assay/Arithmetic-v1", terms=2)
    assert [plain.task(i) for i in range(20)] == [named.task(i) for i in range(20)]
