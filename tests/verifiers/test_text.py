"""The package through which verifiers read: numbers, boxes, labels, fences and markup."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Json, Math, MultipleChoice, ShortAnswer, XmlStructure
from assay.verifiers.text.beside import sign_and_unit
from assay.verifiers.text.extract import final_answer
from assay.verifiers.text.fences import unfenced
from assay.verifiers.text.labels import strip_label
from assay.verifiers.text.language import language_of, own_share
from assay.verifiers.text.markup import TEXT_COMMANDS, strip_markup, unwrap_text
from assay.verifiers.text.sentences import sentences
from assay.verifiers.text.thought import after_thinking
from assay.verifiers.text.words import (
    canonical,
    count_distinct,
    count_occurrences,
    distinct_words,
    folded_words,
    has_content,
    words,
)

NUMBER = ("last_number",)


@given(st.text("0123456789 -−–.,/^_{}()[]\\$*%eExfrac!?of", max_size=40))
def test_any_mix_of_signs_is_read_or_refused(text: str) -> None:
    found = final_answer(text, NUMBER)
    assert (found.text is None) == bool(found.reason)


@given(
    st.text("-+*/^_=$\\{}()[]|<>!% 1xab.\n", max_size=20),
    st.text("-+*/^_=$\\{}()!% 1xa\n", max_size=20),
)
def test_what_stands_beside_a_box_is_always_read(before: str, after: str) -> None:
    found = sign_and_unit(f"{before}\\boxed{{5}}{after}", len(before), len(before) + 9)
    assert found is None or all(isinstance(part, str) for part in found)


def test_a_label_goes_from_the_beginning_of_a_text() -> None:
    assert strip_label("The solution is: A, B") == "A, B"
    assert strip_label("答案是 A") == "A"


@pytest.mark.parametrize("command", TEXT_COMMANDS)
def test_every_text_command_is_read_by_every_verifier(command: str) -> None:
    choice = {"answer": "B", "options": ["Oslo", "Bergen"]}
    assert MultipleChoice().verify(rf"\boxed{{\{command}{{B}}}}", choice).score == 1.0
    assert ShortAnswer().verify(rf"\boxed{{\{command}{{Bergen}}}}", "Bergen").score == 1.0
    assert unwrap_text(rf"\{command}{{a}}") == "a"


def test_colours_sizes_bold_and_dollars_are_no_part_of_an_answer() -> None:
    for text in (r"$\textcolor{red}{B}$", r"\Large B", "**B**", "__B__", "`B`", r"\(B\)"):
        assert strip_markup(text) == "B", text


MARKS = ("```", "````", "~~~", "~~~~~")


@pytest.mark.parametrize("mark", MARKS)
def test_a_fence_of_any_length_is_read_by_every_verifier(mark: str) -> None:
    def fenced(text: str, language: str = "") -> str:
        return f"{mark}{language}\n{text}\n{mark}"

    assert Math(extract=("fence",)).verify(fenced("8"), "8").score == 1.0
    assert Math().verify("Answer:\n" + fenced("8"), "8").score == 1.0
    assert ShortAnswer().verify(fenced("Oslo"), "Oslo").score == 1.0
    assert Json().verify(fenced('{"a": 1}', "json"), None).score == 1.0
    assert XmlStructure().verify(fenced("<a>8</a>", "xml"), ["a"]).score == 1.0


@given(st.sampled_from(MARKS), st.text("abc\n {}", max_size=20).filter(lambda t: t.strip() == t))
def test_a_fence_around_a_text_comes_off(mark: str, text: str) -> None:
    assert unfenced(f"{mark}\n{text}\n{mark}") == text


def test_end_tokens_are_no_part_of_what_follows_a_thought() -> None:
    assert after_thinking("<think>8</think>9<|im_end|>\n<|endoftext|>") == "9"


@pytest.mark.parametrize(
    ("opened", "closed"),
    [
        ("<think>", "</think>"),
        ("[THINK]", "[/THINK]"),
        ("◁think▷", "◁/think▷"),
        ("<seed:think>", "</seed:think>"),
        ("<|channel|>analysis<|message|>", "<|end|><|start|>assistant<|channel|>final<|message|>"),
    ],
)
def test_a_thought_is_not_judged_whatever_marks_it(opened: str, closed: str) -> None:
    for reply in (f"{opened}8{closed}9", f"8{closed}9", f"{opened}7{closed}{opened}8{closed}9"):
        assert after_thinking(reply) == "9"
    for reply in (f"{opened}8", f"{opened}8{closed}9{opened}8"):
        assert after_thinking(reply) is None


HIDDEN = "\u00ad\u200b\u200c\u200d\u2060\ufeff\u034f\u180e\u3164\ufe0f\x00"
MIXED = st.text(max_size=200) | st.text(
    "ab A-’'.,!?…。। \n\t#*>_1\u0301\u200bаеéß漢かกี한\ud800", max_size=200
)
TOLD = settings(deadline=None, derandomize=True, max_examples=200)


@TOLD
@given(MIXED)
def test_no_text_raises(text: str) -> None:
    assert count_distinct(text) <= len(folded_words(text))
    assert distinct_words(text, enough=2) >= min(2, distinct_words(text))
    assert has_content(text) or not words(text) or "\ud800" in text
    for found in (sentences(text), sentences(text, headings=True)):
        assert all(piece == piece.strip() and words(piece.replace("_", "")) for piece in found)
    assert count_occurrences(text, "ab") <= canonical(text).count("ab")


@TOLD
@given(MIXED, st.lists(st.tuples(st.integers(0, 200), st.sampled_from(HIDDEN)), max_size=20))
def test_invisible_characters_change_no_word_and_no_sentence(text, inserts) -> None:
    padded = text
    for at, hidden in inserts:
        padded = padded[:at] + hidden + padded[at:]
    assert words(padded) == words(text)
    assert count_distinct(padded) == count_distinct(text)
    assert distinct_words(padded) == distinct_words(text)
    assert len(sentences(padded)) == len(sentences(text))
    assert count_occurrences(padded, "ab") == count_occurrences(text, "ab")


@TOLD
@given(st.lists(st.sampled_from(["It rained.", "Did it?", "So!", "We left… at 3.15 p.m. today."])))
def test_joined_sentences_are_split_where_they_were_joined(pieces: list[str]) -> None:
    assert sentences(" ".join(pieces)) == pieces
    assert sentences("\n\n".join(pieces)) == pieces
    assert sentences("\n".join(f"- {piece}" for piece in pieces)) == [f"- {p}" for p in pieces]


@TOLD
@given(
    st.lists(st.text("abcxyz", min_size=1, max_size=5)), st.sampled_from([" ", "\n", ", ", " — "])
)
def test_words_are_those_that_were_joined(pieces: list[str], space: str) -> None:
    assert words(space.join(pieces)) == pieces
    assert count_distinct(space.join(pieces)) == len(set(pieces))


@TOLD
@given(st.text("abcdeo", min_size=1, max_size=8), st.text("\u0300\u0301\u0302\u0308\u0338\u20dd"))
def test_accents_and_stacked_marks_make_no_word_a_different_one(word: str, marks: str) -> None:
    assert count_distinct(f"{word} {word}{marks}") == 1


@pytest.mark.parametrize(
    ("disguised", "plain"),
    [
        ("w\u0456nd", "wind"),  # a Cyrillic letter
        ("\u039fcean", "ocean"),  # a Greek capital
        ("ｗｉｎｄ", "wind"),
        ("𝐰𝐢𝐧𝐝", "wind"),
        ("ⓦⓘⓝⓓ", "wind"),
        ("w\u0338ind", "wind"),
        ("w\u00adi\u200bnd", "wind"),
        ("Don’t", "don't"),
        ("море", "море"),
        ("résumé", "résumé"),
    ],
)
def test_disguised_letters_are_read_as_what_they_look_like(disguised: str, plain: str) -> None:
    assert folded_words(disguised) == [plain]
    assert count_occurrences(f"A {disguised}, so.", plain) == 1


def test_hyphens_join_a_few_parts_and_no_more() -> None:
    assert words("a state-of-the-art well-known one") == [
        "a", "state-of-the-art", "well-known", "one",
    ]  # fmt: skip
    assert len(words("-".join("abcdefgh"))) == 2
    assert count_distinct("sea-sky sky-sea sea-sea sky-sky sea sky") == 2


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Docker 让开发者可以在任何机器上运行同样的程序。", "zh"),
        ("昨日は Tokyo Dome で Taylor Swift を見ました。", "ja"),
        ("API는 두 프로그램(Application Program)이 서로 말하는 방법입니다.", "ko"),
        ("Το GitHub είναι μια πλατφόρμα για κώδικα.", "el"),
        ("ฉันใช้ Python ทุกวันเพื่อทำงานของฉัน", "th"),
        ("We went home early today. 我们回家了。 It rained all day long there.", None),
        ("Мы читали книгу Linear Algebra вечером.", "ru"),
    ],
)
def test_a_script_of_its_own_borrows_latin_words(text: str, language: str | None) -> None:
    assert language_of(text) == language


def test_a_sentence_all_in_latin_is_foreign_to_another_script() -> None:
    assert own_share("今天很好。This is all in English now.", "zh") < 0.5
    assert own_share("今天 OK 很好。", "zh") == 1.0
    assert own_share("Мы читаем слова. This is all in English now.", "ru") < 0.5
