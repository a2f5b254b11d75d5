"""Right and wrong answers to known answers of many kinds, and whole replies, by hand.

Each line of ``pairs.jsonl`` has a known answer, with ``right`` and ``wrong`` ones: the content of
a box (``of`` is ``answers``), or whole replies.
"""

import json
import random
from pathlib import Path

import pytest

from assay.verifiers import Math

PAIRS = Path(__file__).with_name("pairs.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in PAIRS.splitlines()]


def trials(of: str) -> list[tuple[str, str, float]]:
    """Return known answers, replies and their scores."""
    return [
        (row["gold"], rf"\boxed{{{text}}}" if of == "answers" else text, score)
        for row in ROWS
        if row["of"] == of
        for score, texts in ((1.0, row["right"]), (0.0, row["wrong"]))
        for text in texts
    ]


@pytest.mark.parametrize("of", ["answers", "replies"])
def test_right_answers_are_paid_and_wrong_ones_are_not(of: str) -> None:
    golds, replies, _ = zip(*trials(of), strict=True)
    verdicts = Math().verify_many(replies, golds)
    failing = [trial for trial, v in zip(trials(of), verdicts, strict=True) if v.score != trial[2]]
    assert failing == []


def test_known_answers_can_be_used_and_win() -> None:
    golds = list(dict.fromkeys(row["gold"] for row in ROWS))
    assert Math().bad_references(golds) == {}
    verdicts = Math().verify_many([rf"\boxed{{{gold}}}" for gold in golds], golds)
    assert [g for g, v in zip(golds, verdicts, strict=True) if v.score != 1.0] == []


def test_no_verdict_depends_on_the_batch_or_its_order() -> None:
    draw = random.Random(7)  # noqa: S311  # no secret
    pairs = draw.sample([(gold, reply) for gold, reply, _ in trials("answers")], 500)

    def judged(math: Math, part: list[tuple[str, str]]):
        return math.verify_many([reply for _, reply in part], [gold for gold, _ in part])

    expected = dict(zip(pairs, judged(Math(), pairs), strict=True))
    for size in (1, 7, 100):
        draw.shuffle(pairs)
        fresh = Math(memo=16)
        for k in range(0, len(pairs), size):
            part = pairs[k : k + size]
            assert judged(fresh, part) == [expected[pair] for pair in part]
