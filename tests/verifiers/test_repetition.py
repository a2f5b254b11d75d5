import time
from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Compression, Repetition, Status
from assay.verifiers.form.repetition import _longest_run, _repeated

PROSE = (
    "Water boils when its vapour presses as hard as the air above it, so on a mountain, where the "
    "air is thin, an egg takes longer to cook than at the sea. A lid that is locked keeps the "
    "vapour in: the pressure rises, the water gets hotter than it would in an open pot, and beans "
    "that need an hour are soft in a third of the time. Cooks in high towns have long known this, "
    "though few could have said why; they simply let the pot stand longer, or weigh down its lid."
)
CHINESE = (
    "水在蒸汽压力等于外面空气压力的时候沸腾，所以在高山上，空气稀薄，煮鸡蛋要比在海边花更长的时间。"
    "锅盖锁紧以后，蒸汽跑不出去，压力升高，水就比敞开的锅里更热，豆子很快就软了。"
)


def naive(numbers: list[int], n: int) -> float:
    """Count by looking back at everything before."""
    runs = [tuple(numbers[k : k + n]) for k in range(len(numbers) - n + 1)]
    return sum(run in runs[:k] for k, run in enumerate(runs)) / len(runs) if runs else 0.0


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.lists(st.integers(0, 3), max_size=40), st.integers(1, 6))
def test_the_share_and_the_run_are_those_of_brute_force(numbers: list[int], n: int) -> None:
    assert _repeated(numbers, n) == pytest.approx(naive(numbers, n))
    longest = 0
    for start in range(len(numbers)):
        end = start
        while end < len(numbers) and numbers[end] == numbers[start]:
            end += 1
        longest = max(longest, end - start)
    assert _longest_run(numbers) == longest


LOOPS = {
    "a sentence": "Wait, let me check it again. " * 100,
    "a paragraph": PROSE * 5,
    "a word": PROSE + " no" * 100,
    "a letter": PROSE + "a" * 1000,
    "a stop": PROSE + " ." * 1000,
    "a character without spaces": CHINESE + "好" * 300,
    "a Chinese sentence": CHINESE * 6,
    "capitals turn by turn": "".join(f"{PROSE.upper()} {PROSE} " for _ in range(4)),
    "other punctuation": "".join(f"{PROSE.replace(' ', sign)} " for sign in " ,;:-\u2003"),
    "invisible signs": "".join(f"{PROSE.replace('e', 'e' + z)} " for z in "\u200b\u200c\ufeff"),
}  # fmt: skip


@pytest.mark.parametrize("loop", LOOPS)
def test_loops_earn_nothing(loop: str) -> None:
    verdict = Repetition(content=3).verify(LOOPS[loop], None)
    assert (verdict.status, verdict.score) == (Status.INCORRECT, 0.0)


@pytest.mark.parametrize("loop", ["a sentence", "a Chinese sentence", "a letter", "a stop"])
def test_loops_compress(loop: str) -> None:
    score = Compression(content=3).verify(LOOPS[loop] * 4, None).score
    assert score == 0.0


@settings(deadline=None, derandomize=True, max_examples=150)
@given(st.text(max_size=300))
def test_no_text_raises(text: str) -> None:
    for verifier in (Repetition(content=1, n=2), Compression(content=1)):
        assert verifier.verify(text, None).score is not None
        assert verifier.verify(PROSE + text + "\ud800", None).score is not None


def test_long_texts_of_any_shape_are_read_in_a_moment() -> None:
    started = time.process_time()
    for piece in ("a", "ab ", "a" * 150 + "b", "漢", "!?", "1 ", "\u0301", f"{Counter}"):
        text = PROSE + piece * (300_000 // len(piece))
        for verifier in (Repetition(), Compression()):
            assert verifier.verify(text, None).score is not None
    assert time.process_time() - started < 30
