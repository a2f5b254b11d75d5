"""Long replies of any shape are judged in a moment: a guard against quadratic scanning."""

import time
from typing import Any

import pytest

from assay.verifiers import (
    Boxed,
    Citations,
    Compression,
    Format,
    Language,
    Length,
    MarkdownStructure,
    Repetition,
    Verifier,
    XmlStructure,
)

SEA = "The sea was dark that night, and the keeper climbed the stairs to light the lamp again. "
SOURCES = {"sources": ["ab " * 30_000 + "x", *["a" * 30_000] * 9]}
MARKS = ["#\n", "- a\n", " - a\n", "*", "**a", "__a", "| a | b |\n", "|", "`", "<!--", "```\n"]
BOXES = [r"\boxed{", r"\boxed{4}", "{", "}", "\\", r"\boxed{or ", r"\text{", "or "]
TAGS = ["<step>a</step>", "<step", '<step a="', "<steps><", "<step>", " a=''", " ", "&lol;", "<",
        ">"]  # fmt: skip
LOSING: list[tuple[Verifier, list[str], list[str], int]] = [
    (Boxed(where="end"), [""], BOXES, 2**20),
    (Boxed(), [r"\boxed{"], BOXES, 2**20),
    (Format(), [""], ["<think></think>", "<think>", "</answer>", "<"], 2**20),
    (MarkdownStructure(headings=["A"] * 3, bullets=2, table=2, code="c", bold=3), [""], MARKS,
     2**18),
    (XmlStructure([{"steps": ["step+"]}]), ["<steps>", "<steps><step", "<steps><step a='", ""],
     TAGS, 2**20),
]  # fmt: skip
SCORED: list[tuple[Verifier, Any, str, list[str], int]] = [
    (Citations(), SOURCES, "", ["[1]", "[", "[1", '"', "“", '"a b c" [1] ', ". [1] ", ".",
     "a. [1] ", "[1,"], 100_000),
    (Language("en"), None, "", ["word ", "e\u0301\u0323", "$a", "`", "\\(", "```a\n", "漢字", ".",
     "\n", SEA], 300_000),
    *[(Length(most=10, unit=unit), None, SEA, ["a. ", ".", "\n", " \n", "1. a\n", "。", "\u200b",
       ".)", "漢", "a_"], 200_000) for unit in ("words", "characters", "sentences")],
    *[(verifier, None, SEA * 3, ["a", "ab ", "a" * 150 + "b", "漢", "!?", "1 ", "\u0301"], 300_000)
      for verifier in (Repetition(), Compression())],
]  # fmt: skip


@pytest.mark.parametrize(("verifier", "heads", "pieces", "size"), LOSING)
def test_a_long_run_of_any_piece_loses_in_a_moment(verifier, heads, pieces, size) -> None:
    started = time.process_time()
    for head in heads:
        for piece in pieces:
            assert verifier.verify(head + piece * (size // len(piece)), None).score == 0.0
    assert time.process_time() - started < 60


@pytest.mark.parametrize(("verifier", "reference", "head", "pieces", "size"), SCORED)
def test_a_long_run_of_any_piece_is_scored(verifier, reference, head, pieces, size) -> None:
    started = time.process_time()
    for piece in pieces:
        assert verifier.verify(head + piece * (size // len(piece)), reference).score is not None
    assert time.process_time() - started < 40


def test_long_quotations_are_looked_up_in_a_moment() -> None:
    quote = '"' + "ab " * 600 + 'y" '
    started = time.process_time()
    assert Citations(most=9).verify(f"{quote} [1-9]. " * 40, SOURCES).score == 0.0
    assert Citations().verify('"a a b b" [1]. ' * 200, SOURCES).reason == "more than 50 quotations"
    assert time.process_time() - started < 40
