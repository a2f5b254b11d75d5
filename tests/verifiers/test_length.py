import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import (
    Compression,
    CosineLength,
    Exact,
    Length,
    Repetition,
    Rubric,
    SoftOverlong,
    Status,
    Verifier,
)
from assay.verifiers.form.measure import length
from assay.verifiers.form.repetition import _longest_run, _repeated
from assay.verifiers.text.sentences import sentences
from assay.verifiers.text.words import distinct_words, folded_words

SEA = "Water boils when its vapour presses as hard as the air above it."  # 13 words, 12 different


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []), ("  ,. ", []), ("It's 3.5 m.", ["it's", "3.5", "m"]),
        ("naïve naI\u0308ve", ["naïve", "naïve"]), ("हिन्दी भाषा।", ["हिन्दी", "भाषा"]),
        ("שָׁלוֹם", ["שלום"]), ("東京 Tower", ["東", "京", "tower"]),
        ("wo\u200brd \ufeffwo\u00adrd", ["word", "word"]), ("한국어 좋아", ["한국어", "좋아"]),
    ],
)  # fmt: skip
def test_words_of_any_script(text: str, found: list[str]) -> None:
    assert folded_words(text) == found


def test_numbers_and_commands_are_no_different_words() -> None:
    assert distinct_words("0 or 1 or 2 or x3 or x4 or \\frac{1}{2} or \\sqrt 5") == 2
    assert distinct_words("a b c d e f", enough=3) == 3


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Dr. Smith, e.g. at 3.15 p.m. left. J. K. Rowling stayed.", 2),
        ("He said: “Go.” She went.", ["He said: “Go.”", "She went."]),
        ("今天好。明天呢？好！", ["今天好。", "明天呢？", "好！"]),
        ("यह एक है। वह दो है।", 2),
        ("# Title\n\nText goes on\nhere.\n- an item\n- another\n1. first\n2. second", 6),
        ("... ! ? 。", []),
        ("Wait... what?", 1),
        ("Really?! Yes.", 2),
    ],
)
def test_sentences(text: str, found: int | list[str]) -> None:
    read = sentences(text, headings=True)
    assert (len(read) if isinstance(found, int) else read) == found


def test_blanks_and_invisible_characters_make_nothing_longer() -> None:
    assert length("a  b\n\n\tc ", "characters") == 5
    assert length("a\u200b\u200b\ufeffb", "characters") == 2
    padded = Length(least=100, unit="characters", content=2)
    assert padded.verify("two words" + " \n" * 500 + "\u200b" * 500 + ".", None).score == 0.0


def test_filling_earns_nothing() -> None:
    long = Length(least=400)  # takes 20 different words
    assert long.verify("word " * 1000, None).score == 0.0
    assert long.verify((SEA + " ") * 100, None).score == 0.0
    assert Length(least=3, unit="sentences").verify((SEA + " ") * 3, None).score == 0.0
    assert Length(most=2, unit="sentences").verify((SEA + " ") * 3, None).score == 0.0


def dapo(found: int, most: int, cache: int) -> float:
    """Equation 13, as it stands in the paper."""
    if found <= most - cache:
        return 0.0
    return ((most - cache) - found) / cache if found <= most else -1.0


@settings(deadline=None, derandomize=True, max_examples=100)
@given(st.integers(1, 60), st.integers(1, 40), st.integers(0, 20))
def test_soft_overlong_is_the_papers_and_one(found: int, cache: int, free: int) -> None:
    soft = SoftOverlong(free + cache, cache, content=1)
    verdict = soft.verify("word " * found, None)
    assert verdict.score == pytest.approx(1 + dapo(found, free + cache, cache))
    assert (verdict.status is Status.CORRECT) == (found <= free)


def test_soft_overlong_pays_no_silence() -> None:
    soft = SoftOverlong(100, 10)
    assert soft.verify("", None).score == 0.0
    assert soft.verify(SEA, None).score == 0.0
    assert soft.verify("<think>" + SEA, None).score == 0.0


BOXED = Exact(extract=("boxed",))


def cos_fn(t: float, limit: float, low: float, high: float) -> float:
    """The paper's function, from its text."""
    return low + 0.5 * (high - low) * (1 + math.cos(t * math.pi / limit))


@pytest.mark.parametrize("more", [0, 1, 7, 20, 48, 49, 50, 90])
def test_cosine_is_the_papers_on_another_scale(more: int) -> None:
    shaped = CosineLength(BOXED, most=50, long=11 / 12, wrong_long=10 / 12)
    t = min(more + 2, 50)  # "boxed" and the answer are words
    right = shaped.verify("so " * more + r"\boxed{4}", "4").score
    wrong = shaped.verify("so " * more + r"\boxed{5}", "4").score
    assert right == pytest.approx((cos_fn(t, 50, 1, 2) + 10) / 12)
    assert wrong == pytest.approx((cos_fn(t, 50, 0, -10) + 10) / 12)


def test_cosine_leaves_faults_alone_and_survives_json() -> None:
    rubric = Rubric({"a": BOXED, "b": Exact(extract=("answer",))})
    shaped = CosineLength(rubric, most=50, free=5)
    assert Verifier.from_json(shaped.to_json()) == shaped
    half = shaped.verify(r"\boxed{4} <answer>5</answer>", "4")
    assert half.score == pytest.approx(0.5 * (0.5 + 0.5))
    assert shaped.verify(r"\boxed{4}", {"no": "text"}).status is Status.BAD_GOLD
    assert CosineLength(BOXED, most=9, free=3).oracle_reply("4") == r"\boxed{4}"


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
