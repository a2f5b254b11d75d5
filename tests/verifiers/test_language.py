import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import pytest

from assay.verifiers import Language, Status
from assay.verifiers.form.prose import part_of, prose
from assay.verifiers.text.language import (
    WRITTEN_IN,
    are_merged,
    detect_language,
    is_in,
    language_code,
    script,
    scripts,
)

SENTENCES = {
    "en": "The train leaves at noon and arrives at three.",
    "de": "Der Zug fährt um zwölf ab und kommt um drei an.",
    "fr": "Le train part à midi et arrive à trois heures.",
    "es": "El tren sale a mediodía y llega a las tres.",
    "pt": "O trem sai ao meio-dia e chega às três.",
    "it": "Il treno parte a mezzogiorno e arriva alle tre.",
    "nl": "De trein vertrekt om twaalf uur en komt om drie uur aan.",
    "sv": "Tåget går klockan tolv och kommer fram klockan tre.",
    "da": "Toget kører klokken tolv og ankommer klokken tre.",
    "fi": "Juna lähtee kahdeltatoista ja saapuu kolmelta.",
    "pl": "Pociąg odjeżdża w południe i przyjeżdża o trzeciej.",
    "cs": "Vlak odjíždí v poledne a přijíždí ve tři.",
    "hu": "A vonat délben indul és háromkor érkezik.",
    "ro": "Trenul pleacă la prânz și ajunge la ora trei.",
    "tr": "Tren öğlen kalkıyor ve üçte varıyor.",
    "vi": "Tàu khởi hành lúc trưa và đến lúc ba giờ.",
    "id": "Kereta berangkat tengah hari dan tiba pukul tiga.",
    "sw": "Treni inaondoka saa sita mchana na kufika saa tisa.",
    "hr": "Vlak polazi u podne i stiže u tri sata.",
    "ru": "Поезд отправляется в полдень и прибывает в три.",
    "uk": "Потяг вирушає опівдні й прибуває о третій.",
    "bg": "Влакът тръгва на обяд и пристига в три часа.",
    "ar": "يغادر القطار ظهراً ويصل في الثالثة.",
    "fa": "قطار ظهر حرکت می‌کند و ساعت سه می‌رسد.",
    "ur": "ٹرین دوپہر کو روانہ ہوتی ہے اور تین بجے پہنچتی ہے۔",
    "hi": "ट्रेन दोपहर को चलती है और तीन बजे पहुँचती है।",
    "mr": "गाडी दुपारी निघते आणि तीन वाजता पोहोचते.",
    "el": "Το τρένο φεύγει το μεσημέρι και φτάνει στις τρεις.",
    "he": "הרכבת יוצאת בצהריים ומגיעה בשלוש.",
    "th": "รถไฟออกตอนเที่ยงและถึงตอนบ่ายสาม",
    "ko": "기차는 정오에 출발하여 세 시에 도착합니다.",
    "ja": "列車は正午に出発し、三時に到着します。",
    "zh": "火车中午出发，三点到达。",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_a_short_sentence_is_told_from_all_others(language: str) -> None:
    sentence = SENTENCES[language]
    won = [other for other in SENTENCES if Language(other).verify(sentence, None).score == 1.0]
    assert won == [language]
    assert Language().verify(sentence, language).score == 1.0


@pytest.mark.parametrize("language", SENTENCES)
def test_a_reply_that_says_each_sentence_twice_is_in_no_language(language: str) -> None:
    other = SENTENCES["de" if language == "en" else "en"]
    assert Language(language).verify(f"{SENTENCES[language]} {other} " * 3, None).score == 0.0


@pytest.mark.parametrize("language", ["en", "de", "fr", "es", "ru", "el", "pl", "tr"])
def test_capitals_change_nothing(language: str) -> None:
    """Other detectors take capitals in English for German."""
    loud = SENTENCES[language].upper()
    won = [other for other in SENTENCES if Language(other).verify(loud, None).score == 1.0]
    assert won == [language]


@pytest.mark.parametrize(
    "reply",
    [
        "", " ", "Hola", "OK", "42", "...", "I don't know", "x = 42", "\\boxed{42}", "😀" * 40,
        "aaaaaaaaaaaaaaaaaaaa", "xqzv brfk plmn wrtz kjhg", "𝐓𝐡𝐞 𝐚𝐧𝐬𝐰𝐞𝐫 𝐢𝐬 𝐟𝐨𝐫𝐭𝐲-𝐭𝐰𝐨", "or " * 100,
        "```\nThe train leaves at noon and arrives at three.\n```", "ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ ᏣᎳᎩ ᎦᏬᏂᎯᏍᏗ",
        "https://example.org/the/train/leaves/at/noon", "$the train leaves at noon$",
        "<think>The train leaves at noon and arrives", "\ud800" * 40, "e\u0301\u0323" * 40,
    ],
)  # fmt: skip
def test_what_cannot_be_told_is_no_pass_in_any_language(reply: str) -> None:
    for language in WRITTEN_IN:
        assert Language(language, part="answer").verify(reply, None).score == 0.0


def test_the_same_again_and_again_here_in_threads_and_elsewhere() -> None:
    """The detector that IFEval uses answers one sentence in several ways."""
    replies = ["THE TRAIN LEAVES AT NOON", "Hola", "OK", "기차는 정오에", *SENTENCES.values()]
    verifier = Language("en", graded=True)
    first = [verifier.verify(reply, None) for reply in replies]
    for reply, verdict in zip(replies, first, strict=True):
        detect_language.cache_clear()
        assert all(verifier.verify(reply, None) == verdict for _ in range(3))
    one = SENTENCES["en"]
    answers = set()
    for _ in range(20):
        detect_language.cache_clear()
        answers.add(detect_language(one))
    assert len(answers) == 1
    with ThreadPoolExecutor(4) as threads:
        for found in threads.map(lambda _: verifier.verify_many(replies, [None] * 37), range(4)):
            assert found == first
    code = (
        "from assay.verifiers.text.language import detect_language\n"
        f"print([detect_language(text) for text in {list(SENTENCES.values())!r}])"
    )
    printed = subprocess.run(
        [sys.executable, "-c", code],
        env={"PYTHONHASHSEED": "7", "PATH": "/usr/bin", "PYTHONIOENCODING": "utf-8"},
        capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert printed == f"{[detect_language(text) for text in SENTENCES.values()]}\n"


EN, ZH, DE = SENTENCES["en"], SENTENCES["zh"], SENTENCES["de"]


def test_code_formulas_and_addresses_are_not_read() -> None:
    code = "```python\ndef durchschnitt(werte):\n    # the mean of all the values given\n```"
    reply = f"{DE}\n{code}\nSiehe https://example.org/the-train `for x in the_list` und $a+b=c$."
    assert Language("de").verify(reply, None).score == 1.0
    assert prose("a `b c` $d$ \\(e\\) \\[f\\] \\frac www.g.h").split()[0] == "a"
    assert not set("bcdefgh") & set(prose("a `b c` $d$ \\(e\\) \\[f\\] \\frac www.g.h"))


def test_only_the_part_that_is_asked_for_is_read() -> None:
    reply = f"<think>{EN}</think>{DE}"
    for part, language in (("thought", "en"), ("answer", "de")):
        assert Language(language, part=part).verify(reply, None).score == 1.0
    assert Language("en").verify(reply, None).score == 0.0
    assert Language("en", part="thought").verify(f"{EN}</think>{DE}", None).score == 1.0
    verdict = Language("en", part="thought").verify(EN, None)
    assert (verdict.status, verdict.score) == (Status.UNPARSEABLE, 0.0)
    assert part_of("a</think>b<think>c", "thought") is None


def test_tags_of_languages() -> None:
    assert [language_code(tag) for tag in ("de", "pt-BR", "pt_br", "EN", "nb", "es-419")] == [
        "de", "pt", "pt", "en", "no", "es",
    ]  # fmt: skip
    assert [language_code(tag) for tag in ("", "x", "zh-Hant", "klingon", "de-", "-")] == [None] * 6
    assert are_merged("hr", "sr")
    assert not are_merged("da", "no")


def test_scripts_of_letters() -> None:
    assert [script(c) for c in "é\u0301ñΩЖ٣م๕กが漢한ⅷ²"] == [
        "Latin", None, "Latin", "Greek", "Cyrillic", None, "Arabic", None, "Thai", "Kana", "Han",
        "Hangul", None, None,
    ]  # fmt: skip
    assert scripts("a1 я!") == {"Latin": 1, "Cyrillic": 1}


@pytest.mark.parametrize(
    ("code", "text"),
    [
        ("ar", "أدرس في Cambridge وأكتب برامج Rust كل يوم"),
        ("hi", "वह Amazon में नौकरी करती है और Excel सीख रही है।"),
        ("ru", "Мы поставили Ubuntu и запустили Docker вчера вечером."),
    ],
)
def test_languages_that_share_a_script_other_than_latin_borrow_names(code, text) -> None:
    assert is_in(text, code) is True
    assert is_in(f"{text} This whole sentence is English and so is foreign.", code) is not True
