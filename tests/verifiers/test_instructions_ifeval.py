"""IFEval's 25 constraints: replies that follow each, and near misses."""

# ruff: noqa: E501 # a table: one row for each constraint

import pytest

from assay.verifiers.instructions import CONSTRAINTS, read_instructions

AT_LEAST, LESS = "at least", "less than"
FOUR = "Who, then? We, say! He/she? I {am}."

CASES = [
    ("keywords:existence", {"keywords": ["river", "Mona Lisa"]},
     ["The RIVER runs past the Mona\nLisa.", "_river_, “Mona Lisa”"],
     ["Rivers run past the Mona Lisa.", "A driver saw the Mona Lisa.", "A river."]),
    ("keywords:existence", {"keywords": ["a+", "(x"]}, ["I got an a+ for (x and y)."],
     ["I got an aa for x.", "I got an a for (x."]),
    ("keywords:existence", {"keywords": ["don't"]}, ["Don’t go."], ["Do not go."]),
    ("keywords:existence", {"keywords": ["猫"]}, ["我的猫很大"], ["我的狗很大"]),
    ("keywords:frequency", {"keyword": "  sea ", "frequency": 3, "relation": AT_LEAST},
     ["Sea, SEA; sea.", "*sea\n*Sea\n*SEA"], ["Sea, sea, seaside.", "the other sea"]),
    ("keywords:frequency", {"keyword": "the", "frequency": 2, "relation": LESS},
     ["The other theory, there."], ["The sea and the sky."]),
    ("keywords:forbidden_words", {"forbidden_words": ["GENE", "tex.t"]},
     ["A general generates text.", "tex t"], ["One gene is enough.", "It is TEX.T here."]),
    ("keywords:frequency", {"keyword": "!", "frequency": 2, "relation": AT_LEAST},
     ["Rain! It rains!"], ["Rain! It rains."]),
    ("keywords:forbidden_words", {"forbidden_words": ["?", ".net"]}, ["It nets."], ["Why?", "ASP.NET it is."]),
    ("keywords:letter_frequency", {"letter": "q", "let_frequency": 2, "let_relation": AT_LEAST},
     ["Quick question", "QQ"], ["Quick answer", "two"]),
    ("keywords:letter_frequency", {"letter": "#", "let_frequency": 2, "let_relation": LESS},
     ["# one"], ["# one #"]),
    ("language:response_language", {"language": "es"},
     ["Hoy desayunamos en Joe's con toda la familia.", "HOY HACE MUCHO CALOR EN LA CIUDAD"],
     ["Today we have breakfast with the whole family.", "Hola", "12345", "?!"]),
    ("language:response_language", {"language": "en"}, ["This answer is in English", "Now we see the Prado"],
     ["Das ist eine Antwort auf Deutsch", "OK", "今日は天気がいい"]),
    ("language:response_language", {"language": "hi"}, ["मेरा नाम राम है और मैं दिल्ली में रहता हूँ"],
     ["मी मराठी बोलतो आणि पुण्यात राहतो", "My name is Ram and I live in Delhi"]),
    ("language:response_language", {"language": "ko"}, ["안녕하세요 여러분"], ["今日は天気がいい", "Hello to all of you"]),
    ("language:response_language", {"language": "fr"},
     ["Il fait beau aujourd'hui et nous allons nous promener au bord de la mer avec les enfants.\n" * 3],
     ["Il fait beau aujourd'hui et nous allons nous promener au bord de la mer avec les enfants.\n"
      "The weather is fine today and we are going for a walk by the sea with all of the children."]),
    ("length_constraints:number_sentences", {"num_sentences": 4, "relation": AT_LEAST},
     [FOUR, "one. two! three? four", "* one thing\n* two things\n* three\n* four"],
     ["Mr. Smith, i.e. J. Smith of the U.S. Army, paid 3.50 to Dr. No. He left. 😀", "One... two. Three!"]),
    ("length_constraints:number_sentences", {"num_sentences": 4, "relation": LESS},
     ["He works at 5 p.m. in Acme Inc. offices. We saw it, e.g. here. Fine."], [FOUR]),
    ("length_constraints:number_paragraphs", {"num_paragraphs": 3},
     ["one\n***\ntwo\n***\nthree", "***\none\n * * *\ntwo\n***\nthree\n***\n"],
     ["one\n***\ntwo\n***\n***\nthree", "one\n\ntwo\n\nthree", "one ***bold*** two\n***\nthree", "***"]),
    ("length_constraints:number_words", {"num_words": 8, "relation": AT_LEAST},
     ["d3sCRi8e a m0del w1th 20 w0rds or so."], ["one two three four five six seven - !"]),
    ("length_constraints:number_words", {"num_words": 5, "relation": LESS},
     ["Don't use well-known words.", "हिन्दी में लिखो यह", "It costs 10,000.50 today."],
     ["-".join("abcdefghijklmnopqrst"), "今日は天気", "one two three four five"]),
    ("length_constraints:nth_paragraph_first_word",
     {"num_paragraphs": 3, "nth_paragraph": 2, "first_word": "Well"},
     ["One.\n\n\"Well! It is so.\n\nThree.", "One.\n\n \n\nwell, two\n\nThree."],
     ["One.\n\nWell two", "One.\n\nWe'll see\n\nThree.", "One.\n\nWe!ll\n\nThree.", "One\nWell\nThree"]),
    ("detectable_content:number_placeholders", {"num_placeholders": 2},
     ["Dear [name], see [address]."], ["Dear [name].", "[ ] [1] [](x)", "[a](http://b) and [c](d)"]),
    ("detectable_content:postscript", {"postscript_marker": "P.S."},
     ["All is well.\n\nP.S. Write soon.", "All is well. p. s. write soon.", "Stop. P.S. Write soon."],
     ["P.S. Write soon.", "All is well.\n\nP.S.", "All is well. PS: write.", "Fine.\nP.P.S. Write soon."]),
    ("detectable_content:postscript", {"postscript_marker": "P.P.S"},
     ["Fine.\np.p.s what now?", "Fine.\nP.P.S. What now?\n\nBye."], ["Fine.\nP.S. What now?", "p.p.speak"]),
    ("detectable_format:number_bullet_lists", {"num_bullets": 3},
     ["Lines with (*) marks:\n* one\n*(without a space) two\n  * three\nEnd.", "- a\n-b\n- c", "• a\n+ b\n* c"],
     ["* one\n* two\n* ", "a\n***\nb\n***\n* c", "**a**\n**b**\n**c**", "- a\n---\n-5 degrees", "*a* b\n* c\n* d"]),
    ("detectable_format:constrained_response", {},
     ["\n My answer is no.\n", "My answer is yes. I have thought about it for long."],
     ["My answer is yes. My answer is no.", "no", "My answer is unclear."]),
    ("detectable_format:number_highlighted_sections", {"num_highlights": 2},
     ["Use *one* and **two**.", "*two parts* on *one line*"],
     ["** ** and ****", "*not closed\n*closed*\n*not closed", "2 * 3 * 4 is *one*", "****\n*x*"]),
    ("detectable_format:multiple_sections", {"section_spliter": "Section", "num_sections": 2},
     ["Section 1\nOne.\nSection 2\nTwo.", "## Section 1: a\nOne.\n**Section 2**\nAs in Section 1.",
      "[Section 1]\nOne.\n(Section 2)\nTwo.", "<h2>Section 1</h2>\nOne.\n📌 Section  2\nTwo.",
      "Section 1\na\nSection 2\nb\nSection 3\nc", "Plan\nSection 1\na\nSection 2\nb\nPlan\nSection 1\nc"],
     ["Section 1\nOne.\nSection X\nTwo.", "Section 1\n\nSection 2\nTwo.", "Section 1\na\nSection 1\nb",
      "See Section 1 and Section 2."]),
    ("detectable_format:json_format", {},
     ['{"sea": "blue"}', '```json\n["a", "b"]\n```', '```\n{"a": 1}\n```\n', f'{{"n": {"9" * 5000}}}',
      '```json\r\n{"a": 1}\r\n```\r\n', '```json {"a": 1} ```', '```JSON\n{"a": "b ```"}```'],
     ["{}", "[null]", '{"": ""}', '"text"', "42", "null", '{"a": NaN}', '{"a": 1} That is all.', "```json\n```", "{'a': 1}", "[" * 10**5]),
    ("detectable_format:title", {}, ["<<Of Joy>>\nIt was.", "See <<<this>>>."],
     ["<< >>", "<<>>", "<<***>>", "<<of\njoy>>", "<of joy>"]),
    ("combination:two_responses", {}, ["One way.\n******\nAnother way.", "******\na\n******\nb\n******"],
     ["Same.\n******\nsame!", "a\n******\nb\n******\nc", "a\n***\nb", "a\n******\n", "a\n*******\nb"]),
    ("combination:repeat_prompt", {"prompt_to_repeat": "Write a poem."},
     ["write a  poem. Roses are red.", "\nWrite a poem.\n\nRoses."],
     ["Write a poem.", "Sure! Write a poem. Roses.", "Write a good poem. Roses."]),
    ("startend:end_checker", {"end_phrase": "Is that \"all\"?"},
     ["It is so. Is that \"all\"?", "So. **is that “all”?**\n"],
     ["Is that \"all\"?", "So. Is that \"all\"? Yes.", "So. Is that all?"]),
    ("startend:quotation", {}, ['"It is so."', "“It is so.”\n"], ['""', '"It is so.', '"', '"..."', "'It is so.'"]),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": AT_LEAST},
     ["NASA and the EU met.", "WELL-KNOWN U.S. law"], ["NASA met them.", "NASa and eU"]),
    ("change_case:capital_word_frequency", {"capital_frequency": 2, "capital_relation": LESS},
     ["NASA met them."], ["NASA and the EU met."]),
    ("change_case:english_capital", {}, ["THE SEA IS WIDE AND DEEP, 100%.", "WE ARE GOING TO THE BEACH NOW", "OK", "HARBOR LIGHT TOURS"],
     ["THE SEA IS WIDe AND DEEP", "DAS MEER IST WEIT UND TIEF", "1 2 3", "ESTÁ BIEN", "МОРЕ"]),
    ("change_case:english_lowercase", {}, ["the sea is wide and deep, 100%.", "no"],
     ["The sea is wide and deep.", "das meer ist weit und tief", "...", "sí"]),
    ("punctuation:no_comma", {}, ["The sea is wide; it is deep."], ["The sea, it is deep.", "海，很深"]),
]  # fmt: skip


def follows(id_, kwargs, reply):
    (instruction,) = read_instructions([{"id": id_, **kwargs}])
    return instruction.followed_by(reply)


@pytest.mark.parametrize(("id_", "kwargs", "wins", "loses"), CASES, ids=[c[0] for c in CASES])
def test_it_is_told_who_follows(id_, kwargs, wins, loses) -> None:
    for reply in wins:
        assert follows(id_, kwargs, reply), f"should be followed: {reply[:200]!r}"
    for reply in loses:
        assert not follows(id_, kwargs, reply), f"should not be followed: {reply[:200]!r}"


def test_all_25_are_here() -> None:
    told = {case[0] for case in CASES}
    assert len(told) == 25
    assert told <= set(CONSTRAINTS)
