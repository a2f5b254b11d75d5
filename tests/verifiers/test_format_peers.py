import runpy
from pathlib import Path

import pytest

trl = pytest.importorskip("trl")

BENCHMARK = runpy.run_path(str(Path(__file__).parents[2] / "benchmarks" / "format.py"))
SHAPES = BENCHMARK["SHAPES"]


@pytest.mark.parametrize("shape", SHAPES, ids=lambda shape: shape.name)
def test_every_shape_is_judged_right(shape) -> None:
    assert BENCHMARK["ours"](shape) == shape.right
    assert BENCHMARK["ours"](shape, bare=True) == shape.bare


def wrong(judge: str, by: str) -> set[str]:
    full = [BENCHMARK[judge](shape.reply) == 1.0 for shape in SHAPES]
    return {s.name for s, paid in zip(SHAPES, full, strict=True) if paid != getattr(s, by)}


def test_what_the_public_rewards_judge_wrong() -> None:
    """TRL's is the real one, held to a thought and a bare answer, which is what it asks for."""
    assert len(SHAPES) == 18
    assert wrong("trl", "bare") == {
        "the prompt opened the thought", "the thought is opened again", "an empty thought",
        "an answer of white space", "no answer", "</think> five times",
    }  # fmt: skip
    assert wrong("open_r1", "right") == {
        "an end token is left", "the prompt opened the thought", "the thought is opened again",
        "an empty thought", "an answer of white space", "two answers", "text after, on a new line",
        "</think> five times", "all of it twice", "a thought in a thought",
        "an answer in the thought",
    }  # fmt: skip
    assert wrong("tag_count", "right") >= {
        "text before", "text between", "text after", "the answer comes first",
    }  # fmt: skip
