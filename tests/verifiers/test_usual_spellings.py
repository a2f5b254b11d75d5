"""Usual ways to write an answer that are read as the strict one is, and their near misses."""

import pytest

from assay.verifiers import Countdown, Exact, GraphPath, KnightsAndKnaves, XmlStructure

NUMBERS = {"numbers": [8, 8, 3, 3], "target": 24}
SUM = {"numbers": [3, 7, 25], "target": 46}
GRAPH = {"edges": [["A", "B"], ["B", "D"], ["A", "D"], ["D", "E"]], "start": "A", "goal": "D"}
WITH_TO = {"edges": [["A", "to"], ["to", "D"]], "start": "A", "goal": "D"}
ISLAND = {
    "people": ["Ann", "Bob"],
    "statements": [["says", 0, ["and", ["knight", 0], ["knave", 0]]], ["says", 1, ["knave", 0]]],
}
STEPS = ["plan", "answer"]
ROWS = [
    (Countdown(), SUM, "25 + 7x3", 1.0),
    (Countdown(), SUM, "25 + 7 X 3 = 46.0", 1.0),
    (Countdown(), SUM, "25 + 7x3 = 46.5", 0.0),
    (Countdown(), SUM, "25 + x7*3", 0.0),
    (Countdown(), NUMBERS, r"\boxed{\frac{8}{3-\frac{8}{3}}}", 1.0),
    (Countdown(), NUMBERS, r"\boxed{\frac{8}{3+\frac{8}{3}}}", 0.0),
    (Countdown(), NUMBERS, r"\frac{" * 200, 0.0),
    (GraphPath(), GRAPH, "A to B to D", 1.0),
    (GraphPath(), GRAPH, "A to E to D", 0.0),
    (GraphPath(), WITH_TO, "A, to, D", 1.0),
    (KnightsAndKnaves(), ISLAND, "Ann is a liar, Bob is a truth-teller", 1.0),
    (KnightsAndKnaves(), ISLAND, "Ann is a truth-teller, Bob is a liar", 0.0),
    (KnightsAndKnaves(), ISLAND, "Ann is not a liar, Bob is a truth-teller", 0.0),
    (XmlStructure(), STEPS, "<plan>a</plan><answer>b</answer>", 1.0),
    (XmlStructure(), STEPS, "<plan><!-- a -->b</plan><answer>c</answer>", 1.0),
    (XmlStructure(), STEPS, "<plan><!-- a --></plan><answer>b</answer>", 0.0),
    (XmlStructure(), STEPS, "<plan>&nbsp;&#32;</plan><answer>b</answer>", 0.0),
    (XmlStructure(), STEPS, "<plan><!-- a</plan><answer>b</answer>", 0.0),
    (Exact(), "\u00c5ngstr\u00f6m", "A\u030angstro\u0308m", 1.0),
    (Exact(), "\u00c5ngstr\u00f6m", "Angstrom", 0.0),
]


@pytest.mark.parametrize(("verifier", "reference", "reply", "score"), ROWS)
def test_a_usual_spelling_is_read(verifier, reference, reply, score) -> None:
    assert verifier.verify(reply, reference).score == score
