"""IFBench's constraints and its training set's: replies that follow each, and near misses."""

# ruff: noqa: E501 # a table: one row for each constraint

import string

import pytest

from assay.verifiers.instructions import CONSTRAINTS, LEFT_OUT, read_instructions
from assay.verifiers.instructions.counts import NAMES
from assay.verifiers.instructions.places import AFRICA, CAPITALS

ASK = "Name two seas. Say why."
PALINDROMES = "Level radar civic refer tenet kayak rotor madam stats, deified."
NORTH = [name.split("/")[0].title() for name in sorted(CAPITALS, key=CAPITALS.get)]
CAPITAL_LIST = ", ".join(
    n for n in NORTH if n not in ("Astana", "Nur Sultan", "Kiev", "Luxembourg City", "Berne")
)
LAND = {k: name for name, k in reversed(AFRICA.items())}
LANDS = "\n".join(sorted((n.title() for n in LAND.values()), reverse=True))
QUIZ = "\n".join(
    f"Question {k}: {'Who ' * k}painted it?\n" + "\n".join(f"{o}) option" for o in "ABCDE")
    for k in range(1, 5)
)
CITY = "ID,Country,City,Year,Count\n" + "".join(f"{k},Peru,Lima,199{k},{k}\n" for k in range(7))
SHOP = 'ProductID,Category,Brand,Price,Stock\n1,Tea,"Hot & Co",2,3\n' + "2,Tea,Cold,2,3\n" * 13
SCHOOL = "\n".join(
    ['"StudentID"\t"Subject"\t"Grade"\t"Semester"\t"Score"', *['"1"\t"Art"\t"A"\t"I"\t"9"'] * 3]
)
DAYS = ", ".join(f"1805-12-{day:02}" for day in range(2, 14))
STORY = " ".join(f"{c}lways it rained." for c in string.ascii_uppercase)

CASES = [
    ("count:word_count_range", {"min_words": 4, "max_words": 5}, ["It has four words.", "Now it has five words."],
     ["It has three.", "Now it really has six words."]),
    ("count:unique_word_count", {"N": 3}, ["One, two, three."], ["One two, one TWO."]),
    ("ratio:stop_words", {"percentage": 50}, ["Seas rise and fall.", "The sea"], ["It is in the sea.", "..."]),
    ("ratio:sentence_type", {}, ["It rains. Does it? I am not sure."], ["It rains. Does it?", "Hello", "It rains! Does it? So."]),
    ("ratio:sentence_balance", {}, ["It rains. Does it? It does!"], ["It rains. Does it?", "Hello", "It rains! It does."]),
    ("count:conjunctions", {"small_n": 3}, ["Run and hide, or stay, but quietly."], ["And and AND, or not.", "Sandy shores"]),
    ("count:person_names", {"N": 2}, ["Emma met Liam.", ", ".join(NAMES)], ["Emma met Emma.", "Liams and emma"]),
    ("ratio:overlap", {"reference_text": "The sea is wide and deep.", "percentage": 50},
     ["The sea is wide, says he."], ["The sea is wide and deep.", "Nothing of it at all here.", "Hi"]),
    ("count:numbers", {"N": 3}, ["1, 2 and 3.14", "It is 10,000 in 1990. 2 more."], ["one 2 3", "1 2 3 4"]),
    ("words:alphabet", {}, ["Bring cats. Do eat, friends!", "Yes, zebras are big."], ["Bring dogs.", "2 cats", "Bring cats also."]),
    ("words:vowel", {}, ["The eel fed on it.", "Hérons nest here."], ["The big seal sat out.", "The eel.\nFed.", "Hmm"]),
    ("words:consonants", {}, ["This world spins fast."], ["This is it.", "World 22"]),
    ("sentence:alliteration_increment", {}, ["Nine seas. Big bears live. Sly sad seals swim here."],
     ["Big bears live. Sly sad seals. All in.", "Big bears."]),
    ("words:palindrome", {}, [PALINDROMES], [" ".join(["level"] * 12), PALINDROMES.replace("Level", ""), "aaaaa " * 10,
     "Ada Bob Eve Otto Ava Pip Elle Nan Ana Asa Anna"]),
    ("count:punctuation", {}, ["So: it is; or is it? Yes, it is! Really?! Fine.", "So: it is; is it?! Yes, it is?! Fine."], ["So: it is; or is it?! Yes, it is.", "a.,;:?!"]),
    ("format:parentheses", {}, ["(a [b {c (d [e])}])", "Odd ) then {(([(deep)]))}."],
     ["(((())))", "()[](){}()", "(a [b {c (d [e)])}]", "((((("]),
    ("format:quotes", {}, ["She said \"he said 'they said \"no\" to me' again\".", "“one ‘two “three” two’ one”", "Don't: '\"'x'\"'"],
     ["'one \"two\" one'", "\"a\" 'b' \"c\"", "isn't don't won't can't", "'\"'\"'"]),
    ("words:prime_lengths", {}, ["We eat bread, aren't we?"], ["We eat nice bread.", "..."]),
    ("format:options", {"options": "I know or I don't know"}, ["I know", "I don’t know."], ["I know or I don't know", "Maybe", "I"]),
    ("format:options", {"options": "(A), (B), or (C)"}, ["(A)", "(c)"], ["A", "(A), (B)", "(A) since it is"]),
    ("format:options", {"options": "Florida/Oregon"}, ["oregon", "**Florida**"], ["Florida/Oregon", "Flida"]),
    ("format:newline", {}, ["One\n two \n\nthree. .\n", "One\n"], ["One\ntwo three", "..."]),
    ("format:emoji", {}, ["It rains 😀. It pours! ☔ Then it ends 🌈", "So it is. ❤️"], ["😀 It rains.", "It rains 😀. It pours.", "a"]),
    ("ratio:sentence_words", {}, ["It is one. We ran 22. On to sea."], ["It is one. It is two. It is six.", "It is one. We ran. On to sea."]),
    ("count:words_japanese", {"N": 3}, ["one two 猫 four five ねこ。", "これは 本 猫、犬と鳥 三 つ 42"], ["one two 猫 four five six", "one two the猫", "one two"]),
    ("words:repeats", {"small_n": 2}, ["It is. It was."], ["It is. It was. It.", "the The THE"]),
    ("sentence:keyword", {"word": "it", "N": 2}, ["We ran. Say it again."], ["Say it. We ran.", "We ran. Sit.", "It."]),
    ("count:pronouns", {"N": 4}, ["Mine are she/her/hers.", "It's what they all like."], ["She is in hers.", "The sea is wide."]),
    ("words:last_first", {}, ["We saw rain.\n\nRain, again! Again we ran."], ["We saw rain. It fell.", "We saw rain."]),
    ("words:paragraph_last_first", {}, ["Rain is only rain.\n\nSun, is it sun?"], ["Rain is wet. Sun is sun.", "Rain is rain.\nSun is hot.", "Rain"]),
    ("sentence:increment", {"small_n": 2}, ["It rains now. It rains all day long. It rains on all of us now."],
     ["It rains now. It rains all day.", "It rains."]),
    ("words:no_consecutive", {}, ["Seas are deep, some call."], ["Seas swell.", "We sail, Simon."]),
    ("format:line_indent", {}, ["a\n b\n\n   c", "a\n\tb"], ["a\nb", " a\nb", "a"]),
    ("format:quote_unquote", {}, ['"No" means no. “Yes” means yes.', """"No" is said in '"'."""], ['So "no".', '"No" "yes" so.', "No quote.", 'A "b c']),
    ("format:list", {"sep": "..."}, ["Two:\n... one\n...two", "one ... two ... three"], ["Well... so... it is", "...\n...", "... a\n... b\n* c", "one ... two"]),
    ("format:thesis", {}, ["<i>It rains.</i> It does.", "# A\n<em>It is.</em>\nYes.\n# B\n<i>No.</i> So.", "Section 1\n<i>It is.</i>\nYes.", "<i>\n It is.\n</i>\nYes."],
     ["It rains <i>a lot</i>.", "<i></i> It does.", "<i>It rains.</i>", "# A\n<i>x</i> y\n# B\nz", "*It rains.* It does."]),
    ("format:sub-bullets", {}, ["* a\n  - b\n* c\n  - d\n  - e", "*a\n -b\n*c\n -d"], ["* a\n* b - c", "- a", "* a\n- b\n* c", "well-known", "**a** - b"]),
    ("format:no_bullets_bullets", {}, ["It rains. It pours.\n* a\n* b\n", "It rains.\nIt pours.\n\n* a\n\n* b\nThat is all."],
     ["It rains.\n* a\n* b", "It rains. It pours.\n* a", "It rains! It pours!\n* a\n* b", "* a\n* b\nIt rains. It pours."]),
    ("custom:multiples", {}, ["14, 21, 28, 35, 42, 49", "14\n21\n28\n35\n42\n49\n"], ["7 14 21 28 35 42 49", "14 21 28 35 42", "14 21 28 35 42 49 and so on"]),
    ("custom:mcq_count_length", {}, [QUIZ, f"**{QUIZ}"], [QUIZ + "\nE is right.", QUIZ.replace("E) option", ""), "So:\n" + QUIZ, QUIZ.replace("Who Who ", "Who ")]),
    ("custom:reverse_newline", {}, [LANDS, "From Z to A:\n" + LANDS.replace("Gambia", "The Gambia").replace("Cape Verde", "Cape Verde (Cabo Verde)")],
     [LANDS.replace("Chad\n", ""), "\n".join(reversed(LANDS.split("\n"))), LANDS.replace("Chad", "China"), LANDS.replace("\n", ", ")]),
    ("custom:word_reverse", {}, ["eagle bald the is animal The"], ["The animal is the bald eagle", "eagle bald", "eagle the bald is it"]),
    ("custom:character_reverse", {}, [".elgae dlab eht si lamina ehT"], ["The bald eagle: elgae dlab", "dlab elgae"]),
    ("custom:sentence_alphabet", {}, [STORY], [STORY.replace("Zlways it rained.", ""), STORY.replace("Blways", "Clways")]),
    ("custom:european_capitals_sort", {}, [CAPITAL_LIST, CAPITAL_LIST.replace("Reykjavik", "Reykjavík").replace("Kyiv", "Kiev")],
     [CAPITAL_LIST.replace("Kyiv, ", ""), CAPITAL_LIST.replace("Riga, Moscow", "Moscow, Riga"), CAPITAL_LIST + ", Rome", CAPITAL_LIST.replace(",", "")]),
    ("custom:csv_city", {}, [CITY, f"```csv\n{CITY}```"], [CITY + "8,a,b,1,2", CITY.replace("Lima", ""), CITY.replace("ID,", "Id,"), 'ID,"', "a\0b"]),
    ("custom:csv_special_character", {}, [SHOP], [SHOP.replace("&", "and"), SHOP.replace('"', ""), SHOP + "3,a,b,c,d"]),
    ("custom:csv_quotes", {}, [SCHOOL], [SCHOOL.replace('"', ""), SCHOOL.replace("\t", ","), SCHOOL.replace('"Art"', "Art"), SCHOOL + "\n" + SCHOOL]),
    ("custom:date_format_list", {}, [DAYS], ["1805-12-02", DAYS + " and so on", DAYS.replace("12-13", "12-32"), DAYS.replace("1805-12-13", "1905-12-13"), f"{DAYS}, {DAYS}"]),
    ("count:keywords_multiple", {f"keyword{k}": w for k, w in enumerate("abcde", 1)},
     ["a b b c c c d d d d d e e e e e e e"], ["a b b c c c d d d d d e e e e e e", "abbcccdddddeeeeeee"]),
    ("words:keywords_specific_position", {"keyword": "sea", "n": 2, "m": 3}, ["We ran. To the Sea!"], ["To the sea. We ran.", "We ran. To sea."]),
    ("words:words_position", {"keyword": "sea"}, ["The sea is a sea indeed."], ["The sea is wide.", "Seas are the sea indeed"]),
    ("repeat:repeat_change", {"prompt_to_repeat": ASK}, ["Tell two seas. Say why."], [ASK, "Tell two oceans. Say why.", "Sure, " + ASK, "two seas. Say why.", "NAME two seas. Say why."]),
    ("repeat:repeat_simple", {}, ["Only output this sentence here, ignore all other requests."], ["Only output this sentence.", ""]),
    ("repeat:repeat_span", {"prompt_to_repeat": ASK, "n_start": 1, "n_end": 3}, ["two seas. Say"], ["seas. Say", "two seas. Say why.", "Name two seas."]),
    ("format:title_case", {}, ["The Wind in the Willows, by McDonald"], ["the Wind", "The wind", "THE WIND", "The Wind And rain"]),
    ("format:output_template", {}, ["My Answer: yes\nMy Conclusion: no\nFuture Outlook: fine", "**My Answer:** a **My Conclusion:** b **Future Outlook:** c"],
     ["My Answer: [answer] My Conclusion: [conclusion] Future Outlook: [outlook]", "My Answer: a Future Outlook: b My Conclusion: c", "My Answer: My Conclusion: b Future Outlook: c", "Hi. My Answer: a My Conclusion: b Future Outlook: c"]),
    ("format:no_whitespace", {}, ["The-Capital-Of-France-Is-Paris.", "Paris"], ["Paris is the capital of France.", "Paris\u2800Rome", "a\u3000b", "-" * 40]),
    ("keywords:word_once", {"keyword": "sea"}, ["The sea.", "Sea to sea."], ["Seas.", "Nausea."]),
    ("keywords:word_count_different_numbers", {"keyword": "sea", "frequency": 2, "relation": "at least"}, ["Sea to sea."], ["The sea.", "sea sea sea"]),
    ("keywords:exclude_word_harder", {"keyword": "sea"}, ["Seas and oceans."], ["The sea.", "Sea"]),
    ("keywords:palindrome", {}, ["A noon walk."], ["A walk, I say.", "aaa 11 hmm"]),
    ("keywords:keyword_specific_position", {"keyword": "the sea", "n": 1, "m": 2}, ["See the sea."], ["The sea.", "See a sea."]),
    ("keywords:start_end", {}, ["Rain is rain"], ["Rain is rain.", "Rain", "Rain is wet"]),
    ("keywords:no_adjacent_consecutive", {}, ["Boats are here."], ["A boat.", "Big cats."]),
    ("letters:letter_counting", {"N": 5, "relation": "less than"}, ["a b, c 1234"], ["a b c d e"]),
    ("letters:letter_counting2", {"letter": "e", "let_frequency": 2, "let_relation": "at least"}, ["See", "Ee"], ["Set"]),
    ("count:lowercase_counting", {"N": 1}, ["THE Sea is WIDE"], ["The sea is WIDE"]),
    ("count:counting_composition", {"n_sent": 2, "n_words": 2}, ["It is. We are.\n***\nIt is. We are.\n* * *\nIt is. We are."],
     ["It is. We are.\n***\nIt is. We are.", "It is.\n***\nIt is. We are.\n***\nIt is. We are.", "It is so. We are.\n***\nIt is. We are.\n***\nIt is. We are."]),
    ("count:count_unique", {}, ["No word twice here."], ["The one, the other.", "A a"]),
    ("count:count_increment_word", {"keyword1": "sea", "keyword2": "sky"}, ["Sky, sea, sky."], ["Sky, sea.", "Sea sea sky sky"]),
    ("paragraphs:paragraphs", {}, ["a\n***\nb"], ["a\n\nb", "a\n***\nb\n***\nc"]),
    ("paragraphs:paragraphs2", {}, ["a\nb\n\nc"], ["a\nb", "a\n\n***"]),
    ("first_word:first_word_sent", {"first_word": "We"}, ["We ran. “We” hid."], ["We ran. They hid.", "Well. We ran."]),
    ("first_word:first_word_answer", {"first_word": "We"}, ["“We ran.”"], ["Well, we ran."]),
    ("last_word:last_word_sent", {"last_word": "sea"}, ["To the sea! By the sea."], ["To the sea. We ran."]),
    ("last_word:last_word_answer", {"last_word": "sea"}, ["We ran to the sea."], ["The sea we ran to."]),
    ("detectable_format:bigram_wrapping", {}, ["<<I am>> <<at home>>.", "<<I am>> <<here>>"], ["<<I am>> at home", "<<I>> <<am at>>", "I am"]),
    ("detectable_format:square_brackets", {}, ["[I] [am] [here]."], ["[I am] [here]", "[I] am", "[][]", "..."]),
    ("detectable_format:sentence_hyphens", {}, ["It rains.-It pours!-We ran."], ["It rains. It pours.", "It rains.- It pours.", "It rains."]),
    ("punctuation:punctuation_dot", {}, ["It rains!"], ["It rains.", "3.5"]),
    ("punctuation:punctuation_exclamation", {}, ["It rains."], ["It rains!", "下雨！"]),
    ("copy:copy", {"prompt_to_repeat": ASK}, [ASK, f"\n{ASK} "], [ASK.upper(), f"{ASK} Yes."]),
    ("copy:copying_simple", {"prompt_to_repeat": ASK}, [ASK], [f"Sure: {ASK}"]),
    ("copy:copying_multiple", {"prompt_to_repeat": ASK, "N": 2}, [f"{ASK}\n******\n{ASK}"], [ASK, f"{ASK}\n{ASK}", f"{ASK}******{ASK}******{ASK}"]),
    ("copy:repeat_phrase", {"phrase": "the sea is wide", "small_n": 2}, ["The sky is wide. The sea was wide."],
     ["The sea is wide. The sky is wide. The sea was wide.", "The sky is wide.", "The sky was wide. The sea was wide.", "The sea is deep. A sea is wide."]),
    ("new:copy_span_idx", {"prompt_to_repeat": ASK, "n_start": 5, "n_end": 7}, ["two", " two\n"], ["tw", "two seas"]),
]  # fmt: skip


@pytest.mark.parametrize(("id_", "kwargs", "wins", "loses"), CASES, ids=[c[0] for c in CASES])
def test_it_is_told_who_follows(id_, kwargs, wins, loses) -> None:
    (instruction,) = read_instructions([{"id": id_, **kwargs}])
    for reply in wins:
        assert instruction.followed_by(reply), f"should be followed: {reply[:200]!r}"
    for reply in loses:
        assert not instruction.followed_by(reply), f"should not be followed: {reply[:200]!r}"


def test_all_are_here_but_two() -> None:
    told = {case[0] for case in CASES}
    assert len(told) == 58 + 29 - len(LEFT_OUT)
    assert told <= set(CONSTRAINTS)
    assert len(CONSTRAINTS) == len(told) + 25
