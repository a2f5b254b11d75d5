"""Instructions: what no content earns, strict and loose, and how references are read."""

import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from assay.verifiers import Instructions, Status
from assay.verifiers.instructions import (
    CONSTRAINTS,
    LEFT_OUT,
    constraint,
    language_of,
    read_instructions,
    table,
)
from assay.verifiers.text.sentences import sentences
from assay.verifiers.text.words import count_occurrences, words

PAGE = Path(__file__).parents[2] / "docs" / "instructions.md"
ARGUMENTS = {
    "N": 3, "capital_frequency": 2, "capital_relation": "less than", "end_phrase": "So it is.",
    "first_word": "we", "forbidden_words": ["zebra"], "frequency": 2, "keyword": "sea",
    "keyword1": "a", "keyword2": "b", "keyword3": "c", "keyword4": "d", "keyword5": "e",
    "keywords": ["sea"], "language": "en", "last_word": "sea", "let_frequency": 9,
    "let_relation": "less than", "letter": "q", "m": 1, "max_words": 900, "min_words": 0, "n": 1,
    "n_end": 1, "n_start": 0, "n_sent": 2, "n_words": 3, "nth_paragraph": 1, "num_bullets": 1,
    "num_highlights": 1, "num_paragraphs": 1, "num_placeholders": 1, "num_sections": 1,
    "num_sentences": 9, "num_words": 99, "options": "one/two", "percentage": 90,
    "phrase": "a sea of rain", "postscript_marker": "P.S.", "prompt_to_repeat": "Say it again.",
    "reference_text": "a sea of rain", "relation": "less than", "section_spliter": "Day",
    "sep": "...", "small_n": 9, "word": "sea",
}  # fmt: skip
EMPTY = [
    "", " ", "\n\n\t", ".", "...", "?!", "* ", "***", "\u200b\ufeff", "\x00", "🙂" * 9,
    "I don't know.", "I do not know", "I cannot help with that.", "Sorry, I can't help.",
    "As an AI, I cannot.", "None", "The answer is", "<think>It rains on the sea, so it is.",
    "<think>It rains.</think>", "<think></think><answer></answer>", "{}", "[]", '""', "``` \n```",
    "\ud800", "<<>>", "[ ]",
]  # fmt: skip


def reference(id_):
    """An instruction with arguments that would let almost anything through."""
    return [
        {
            "id": id_,
            **{name: ARGUMENTS[name] for name in CONSTRAINTS[id_].rules if name in ARGUMENTS},
        }
    ]


@pytest.mark.parametrize("mode", ["strict", "loose"])
@pytest.mark.parametrize("id_", sorted(CONSTRAINTS))
def test_nothing_earns_nothing(id_, mode) -> None:
    verifier = Instructions(mode=mode, partial=True)
    for reply in EMPTY:
        verdict = verifier.verify(reply, reference(id_))
        assert (verdict.score, set(verdict.parts.values())) == (0.0, {0.0}), (reply, verdict)


def test_nothing_earns_nothing_beside_a_short_option() -> None:
    both = [{"id": "format:options", "options": "yes/no"}, {"id": "punctuation:no_comma"}]
    verifier = Instructions(partial=True)
    assert verifier.verify("Yes", both).parts == {
        "format:options": 1.0,
        "punctuation:no_comma": 1.0,
    }
    assert verifier.verify("Yes " * 9, both).parts == {
        "format:options": 0.0,
        "punctuation:no_comma": 0.0,
    }


def test_what_follows_strictly_follows_loosely() -> None:
    for id_ in CONSTRAINTS:
        for reply in (
            "We sail the sea. So it is.",
            "* a sea\n* of rain",
            "<<Sea>> is *what* we see.",
        ):
            strict, loose = (
                Instructions(mode=m).verify(reply, reference(id_)) for m in ("strict", "loose")
            )
            assert strict.score <= loose.score


KEPT = [
    ("startend:end_checker", {"end_phrase": "That is all."}, "The sea is wide. That is all."),
    ("startend:quotation", {}, '"The sea is very wide."'),
    ("detectable_format:json_format", {}, '{"sea": "wide"}'),
    ("change_case:english_capital", {}, "THE SEA IS VERY WIDE TODAY."),
    ("keywords:start_end", {}, "Sea is wide sea"),
    (
        "language:response_language",
        {"language": "ko"},
        "태양은 아침에 떠서 골짜기를 따뜻하게 한다.",
    ),
]


@pytest.mark.parametrize(("id_", "arguments", "reply"), KEPT, ids=[id_ for id_, _, _ in KEPT])
def test_marks_that_a_decoder_kept_are_no_part_of_a_reply(id_, arguments, reply) -> None:
    wanted = [{"id": id_, **arguments}]
    for kept in (reply, reply + "<|im_end|>", reply + "<|endoftext|>" * 500, f"\ufeff{reply}\r\n"):
        assert Instructions().verify(kept, wanted).score == 1.0, kept[:99]


def test_each_instruction_is_a_part_and_repeated_ones_are_numbered() -> None:
    wanted = [{"id": "keywords:existence", "keywords": [word]} for word in ("sea", "sky")]
    verdict = Instructions(partial=True).verify("The sea is very wide.", wanted)
    assert (verdict.status, verdict.score) == (Status.INCORRECT, 0.5)
    assert verdict.parts == {"keywords:existence": 1.0, "keywords:existence (2)": 0.0}
    assert verdict.reason == "not followed: keywords:existence (2)"
    assert Instructions().verify("The sea is very wide.", wanted).score == 0.0


def test_a_newcomer_adds_a_constraint_in_five_lines() -> None:
    @constraint("test:no_semicolon")
    def no_semicolon(reply: str) -> bool:
        """The reply has no semicolon."""
        return ";" not in reply

    try:
        wanted = [{"id": "test:no_semicolon"}]
        replies = ["The sea is wide.", "The sea; it is wide.", ""]
        scores = [v.score for v in Instructions().verify_many(replies, [wanted] * 3)]
        assert scores == [1.0, 0.0, 0.0]
        assert "| test:no_semicolon |  | The reply has no semicolon. |" in table()
        with pytest.raises(ValueError, match="registered already"):
            constraint("test:no_semicolon")(no_semicolon)
    finally:
        del CONSTRAINTS["test:no_semicolon"]
    with pytest.raises(TypeError, match="count needs a type with a rule"):
        constraint("test:odd")(_odd)


def _odd(reply: str, *, count: int) -> bool:
    return len(reply) == count


TOLD = [
    ("THE WEATHER IS FINE AND WE ARE GOING TO THE BEACH", "en"),
    ("Ich bin heute leider zu müde für das Kino", "de"), ("Мне нравится читать книги", "ru"),
    ("我喜欢看书", "zh"), ("私は本を読むのが好きです", "ja"), ("أحب قراءة الكتب في المساء", "ar"),
    ("من کتاب خواندن را دوست دارم", "fa"), ("ಕನ್ನಡ ಭಾಷೆ", "kn"), ("Hola", None), ("OK", None),
    ("", None), ("12 + 5", None), ("\ud800", None), ("Я love книги and море", None),
]  # fmt: skip


@pytest.mark.parametrize(("text", "language"), TOLD)
def test_languages_are_told_or_not_and_always_the_same(text, language) -> None:
    assert {language_of(text) for _ in range(20)} == {language}


def test_words_are_those_of_readers() -> None:
    text = "Don’t use state-of-the-art e.g. U.S. 10,000.5 and/or _well_ हिन्दी 猫犬 naïve…"
    assert words(text) == [
        "Don’t", "use", "state-of-the-art", "e.g.", "U.S.", "10,000.5", "and", "or", "well",
        "हिन्दी", "猫", "犬", "naïve",
    ]  # fmt: skip


def test_sentences_are_those_of_readers() -> None:
    text = (
        "# A heading\nMr. J. Smith, of Acme Inc. in the U.S. Army, paid 3.50 etc. to us. "
        'He said: "Why?" Nobody knows... So!! 🎉\n\n'
        "1. First\n2. Second. With two\n今日は雨。寒い！\n## End"
    )
    assert sentences(text) == [
        "Mr. J. Smith, of Acme Inc. in the U.S. Army, paid 3.50 etc. to us.",
        'He said: "Why?"', "Nobody knows...", "So!! 🎉", "1. First", "2. Second.",
        "With two\n今日は雨。", "寒い！",
    ]  # fmt: skip


@settings(deadline=None, derandomize=True, max_examples=200)
@given(
    st.lists(
        st.sampled_from(["sea", "Sea", "seas", "nausea", "a+", "(x", "-", "'", " "]), max_size=12
    )
)
def test_keywords_are_counted_as_a_plain_reader_would(pieces) -> None:
    text = " , ".join(pieces)
    assert count_occurrences(text, "sea") == sum(p.lower() == "sea" for p in pieces)
    assert count_occurrences(text, "a+") == pieces.count("a+")
    assert count_occurrences(text, "(x") == pieces.count("(x")


@settings(deadline=None, derandomize=True, max_examples=25)
@given(st.text(max_size=60) | st.text(" .*-\n\"'<>[](){}#aA1:,!?P", max_size=60))
def test_no_reply_raises(reply) -> None:
    for mode in ("strict", "loose"):
        for id_ in CONSTRAINTS:
            verdict = Instructions(mode=mode).verify(reply, reference(id_))
            assert verdict.score in (0.0, 1.0), (id_, verdict)


def test_the_page_tells_of_every_constraint_as_it_is() -> None:
    page = PAGE.read_text("utf-8")
    told = re.findall(r"^\| ([a-z_]+:[a-z0-9_-]+)(?: ‡)? \|", page, re.MULTILINE)
    assert sorted(told) == sorted(CONSTRAINTS)
    remedy = "print(assay.verifiers.instructions.table()) and put it in docs/instructions.md"
    assert table() in page, remedy
    assert all(f"`{name}`" in page for name in LEFT_OUT)


TEXT = Path(__file__).with_name("instructions.jsonl").read_text(encoding="utf-8")
ROWS = [json.loads(line) for line in TEXT.splitlines()]


@pytest.mark.parametrize("row", ROWS, ids=[row["id"] for row in ROWS])
def test_it_is_told_who_follows(row) -> None:
    (instruction,) = read_instructions([{"id": row["id"], **row["arguments"]}])
    for reply in row["follow"]:
        assert instruction.followed_by(reply), f"should be followed: {reply[:200]!r}"
    for reply in row["do_not"]:
        assert not instruction.followed_by(reply), f"should not be followed: {reply[:200]!r}"


def test_all_are_here_but_two() -> None:
    told = {row["id"] for row in ROWS}
    assert told == set(CONSTRAINTS)
    assert len(told) == 25 + 58 + 29 - len(LEFT_OUT)
