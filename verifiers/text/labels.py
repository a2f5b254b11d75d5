"""Read labels of answers: "The answer is", "Final Answer:", 答案是, "La respuesta es"."""

from __future__ import annotations

import functools
import re
from collections.abc import Iterator

from .answer import MAX_ANSWER, Answer
from .fences import fenced_blocks
from .hedging import OR_OTHER, is_denied, is_retracted, is_supposed
from .markup import DELIMITERS, TAGS, blank_text

_LEAD = (
    r"(?:(?:so|thus|hence|therefore),?\s{1,3})?(?:(?:the|my|our)\s{1,3})?"
    r"(?:(?:final|correct|right|best)\s{1,3})?"
)
_MARKS = r"[ \t*_]{0,4}"
_IS = rf"(?:{_MARKS}[:=：]|\s{{1,4}}(?:is|are)\b\s{{0,4}}[:：]?)"
_VERB = (  # before a formula or a number
    r"(?:\sto\s(?:the|this|our)\s[a-z]{4,10})?\s{1,3}(?:is|are|must\sbe|will\sbe|should\sbe|has\sto\sbe"
    r"|comes\s(?:out\s)?to(?:\sbe)?|turns\sout\sto\sbe|equals)\b:?(?=[\s*_:]{0,4}(?:[$\\([{\d]|-\d|(?-i:[A-H])(?![A-Za-z])))"
    r"|\s[-–—](?=\s[$\\*])"
)
_CHINESE = r"答案\**(?:应该|应)?(?:[是为為：:=]{1,2}|[选選][:：]?)"
_CHOSEN = (  # 故选C
    r"[^不没][选選][择擇项項]?[是为為：:]?(?=\s?[*$(（{\\]{0,4}(?-i:[A-H]{1,6})(?![A-Za-z]))"
)
_ABROAD = (  # Spanish, Portuguese, French, Italian, German, Russian, Korean, Japanese
    r"\b(?:respuesta|resposta|réponse|risposta|antwort|ответ)"
    r"(?:\s(?:final(?:e|is)?|correct[ae]|finale\scorrecte))?"
    rf"(?:{_MARKS}[:：]|\s(?:es|est|ist|lautet|é|è|равен|это)\b\s{{0,4}}:?)"
    rf"|(?:정답|答え|正解)(?:{_MARKS}[:：]|[은는はが]\s?:?)"
)
_NO_VALUE = (  # "The solution is to add them" introduces no answer
    r"(?![\s*_]{0,6}(?:a|an|as|below|by|correct|found|given|in|obtained|of|set|shown|simple|"
    r"that|the|this|to|unique|valid)\b)"
)
_LABEL = re.compile(  # read from its noun on
    rf"(?<![A-Za-z])answers?(?:{_IS}|{_VERB})(?:\s{{0,4}}(?:therefore|thus|hence|then|simply|just|exactly"
    r"|indeed|in\s+fact|clearly|definitely|certainly|actually|obviously|really|precisely|option|choice"
    r"|equal\s+to|given\s+by|found\s+to\s+be)\b:?)?"
    rf"|(?<![A-Za-z])solutions?{_IS}{_NO_VALUE}"
    rf"|(?:(?<=correct )|(?<=right )|(?<=best ))(?:option|choice)s?{_IS}"
    r"(?=[\n $*_({\\-]{0,9}(?-i:[A-Z])\b)"
    rf"|{_CHINESE}|{_CHOSEN}|{_ABROAD}",
    re.IGNORECASE,
)
_FIELD = re.compile(  # of JSON: "answer": "B"
    r'(?:(?<=")|(?<="final[_ ])|(?<="correct[_ ]))answer"\s{0,3}:\s{0,9}'
    r'(?:"((?>(?:[^"\\\n]|\\.)*))"|(-?\d[\d.]{0,60}))[ \t]{0,9}(?:,(?!\d)|[}.\n]|\Z)[\s}`]{0,9}',
    re.IGNORECASE,
)
_HEADING = re.compile(rf"answer{_MARKS}:?{_MARKS}$", re.IGNORECASE | re.MULTILINE)
_HEADING_START = re.compile(r"(?:\A|\n)[ \t#*_]{0,6}(?:final\s)?\Z", re.IGNORECASE)
_LEADING = re.compile(
    rf"(?:\#{{1,6}}\s{{1,3}})?(?:\*\*|__)?(?:{_LEAD}(?:answers?|solutions?)\b[ *_]{{0,3}}"
    rf"(?:[:=：]|\n|\b(?:is|are)\b\s{{0,3}}[:：]?)|(?:最终|最終)?{_CHINESE})[\s*]{{0,9}}(?=\S)",
    re.IGNORECASE,
)
_SPOKEN = re.compile(rf"\s{{0,9}}{_LEAD}(?:answers?\b|{_CHINESE})", re.IGNORECASE)
_CHOICE = re.compile(
    rf"{_LEAD}(?:(?:answer|option|choice)s?\s*(?:is|are|would\sbe|[:：])?\s*[:：]?\s*)+", re.I
)
_LINE = re.compile(
    rf"^[ \t#*_>]{{0,8}}(?:{_LEAD}answers?{_IS}|{_CHINESE}|\#{{4}}(?!\#)|<answer>)"
    r"(?=[\s*_$\\({[]{0,12}-?(?:\d|[A-Z]\b(?!\s[a-z])"
    r"|(?<=\\)(?:[dt]?frac|sqrt|pi|infty|text|textbf|mathrm|begin|pm|emptyset|varnothing)(?![A-Za-z])))",
    re.IGNORECASE | re.MULTILINE,
)
_NOUNS = (
    "nswer",
    "NSWER",
    "olution",
    "OLUTION",
    "案",
    "选",
    "選",
    "ption",
    "hoice",
    "espuesta",
    "esposta",
    "isposta",
    "éponse",
    "ntwort",
    "твет",
    "답",
    "え",
    "解",
)  # without the letter of either case
_OR_ELSE = re.compile(r"\bor\s{1,4}(?:the\s{1,4})?(?:final\s|correct\s)?\Z", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?](?=\s|$)|\n|[。！？]")
_CLAUSE = re.compile(
    r",?\s\(?(?:since|because|as|which)\s|,\s(?:where|who(?:se)?|when)\s|\s?(?:です|입니다|이다)"
    r"|\s\((?:I\s)?(?:see|by|from|using|(?:double-)?checked|verified)\b"
)
_STATEMENT = re.compile(  # "The largest $n$ is 34": the value stands after the verb
    r"(?:(?:the|its|their|his|her)\s[^=\n]{1,120}\s(?:is|are|was|equals)|(?:there\s(?:are|is|were))"
    r"|(?:it|this|that)\s(?:is|equals))\s{1,3}\*{0,2}(?=[-−$\\\d]|(?-i:[A-Z]))",
    re.IGNORECASE,
)
_TO_VALUE = re.compile(  # marks, the brace of \textbf{Answer:}, a bullet or an arrow
    r"(?:&nbsp;|</?[a-z]{1,6}>|[ \t*_:}])*[\r\n*_ ]*"
    r"(?:(?:[-•>→⇒]|=>|->)\s{1,3}(?=[$\\*\d])|(?<=\n)[-•>]\s{1,3}(?=\(?[A-H]\b))?"
)
_LETTER = re.compile(r"\(?[A-Z]\)?")
_LETTERS_BELOW = re.compile(
    r"[.)*]{0,3}((?:\s{0,9}\n[ \t*•>-]{0,4}\(?[A-Z]\)?[.)*]{0,3}(?=\s{0,9}(?:\n|\Z)))+)"
)
_DOLLAR = re.compile(r"(?<!\\)\$")
_MONEY = re.compile(r"\$\d")
_WORD = re.compile(r"(?<![\\A-Za-z])[A-Za-z]{3,}")
_WIDEST_GAP = 60
_MORE = re.compile(
    r"\s{0,3}(?:\(?(?:or|not|o|ou|oder|или|не|nicht)\b|(?:and|to)\b(?=[^.\n]{0,20}[$\d\\])|[或和与、]"
    r"|[-–/|+*](?=\s{0,3}(?:[$\\({\d]|[A-Za-z](?![A-Za-z])))|[;=<>±×·÷\d]"
    r"|(?:hundred|thousand|[bmtr]{1,2}illion|dozen|percent|[xyz])(?![A-Za-z-])"
    r"|\\(?!(?:hfill|q?quad|blacksquare|square|qed|checkmark)(?![A-Za-z]))"
    r"|,\s{0,3}(?:or\b|and\b|[$\d\\]))"
)


def after_label(text: str) -> Answer | None:
    """Return what follows the last label, to the end of the sentence or of its formula."""
    found = False
    for start in sorted((at for noun in _NOUNS for at in _places(text, noun)), reverse=True):
        if field := _FIELD.match(text, start):
            if is_supposed(text, text.rfind("{", 0, start)):
                return Answer(None, reason="the answer is only supposed, or denied")
            value = re.sub(r'\\([\\"/])', r"\1", field[1] or field[2] or "")
            return _stood_by(text, value, field.end())
        last = _LABEL.match(text, start) or _heading(text, start)
        found = found or last is not None
        if last is not None and not is_supposed(text, start):
            break
    else:
        return Answer(None, reason="the answer is only supposed, or denied") if found else None
    if _OR_ELSE.search(text, max(0, start - _WIDEST_GAP), start):
        return Answer(None, reason="the answer is one of several")
    rest = text[last.end() : last.end() + 4 * MAX_ANSWER]
    begin = _TO_VALUE.match(rest)
    return _value(rest[begin.end() :] if begin else rest)


def _places(text: str, noun: str) -> list[int]:
    """Return the index of a noun, one character before the part that is searched."""
    places, at = [], text.find(noun, 1)
    while at >= 0:
        places.append(at - 1)
        at = text.find(noun, at + 1)
    return places


def _heading(text: str, start: int) -> re.Match[str] | None:
    """Return the match of a label that is a line of its own."""
    found = _HEADING.match(text, start)
    return found if found and _HEADING_START.search(text[max(0, start - 16) : start]) else None


def _value(rest: str) -> Answer:
    """Return the answer that a text begins with."""
    if rest.startswith(("```", "~~~")):
        blocks, _ = fenced_blocks(rest)
        return Answer(blocks[0].text if blocks else None, reason="the fence is never closed")
    stop = _SENTENCE_END.search(rest)
    end = stop.start() if stop else len(rest)
    statement = _STATEMENT.match(rest, 0, end)
    if statement:
        return _value(rest[statement.end() :])
    sentence = rest[:end]
    for left, right in DELIMITERS:
        close = _closing(rest, left, right)
        if close > 0 and _MORE.match(rest, close + len(right)):  # $2$ or $3$
            sentence = sentence.replace(left, "").replace(right, "")
        elif close > 0:
            return _stood_by(rest, rest[len(left) : close], close + len(right))
    clause = _CLAUSE.search(sentence)
    if clause:
        sentence, end = sentence[: clause.start()], clause.start()
    sentence = TAGS.sub("", sentence) if "</" in sentence else sentence
    return _stood_by(rest, sentence.strip(" *`✅✓✔\ufe0f"), end)


def _closing(text: str, left: str, right: str) -> int:
    """Return the index that closes the formula at the start of a text, -1 if there is none."""
    if not text.startswith(left):
        return -1
    if left != "$":
        return text.find(right, len(left))
    found = _DOLLAR.search(text, 1)
    if found is None:
        return -1
    words = _WORD.search(blank_text(text[1 : found.start()]))
    if words and _MONEY.match(text):  # $15, since she had $20
        return -1
    return found.start()


def _stood_by(text: str, answer: str, end: int) -> Answer:
    if is_retracted(text, end):
        return Answer(None, reason="the answer is questioned or taken back")
    below = _LETTERS_BELOW.match(text, end) if _LETTER.fullmatch(answer) else None
    if below:  # one option on each line
        answer = ", ".join([answer, *re.findall("[A-Z]", below[1])])
    other = OR_OTHER.match(text, end, end + _WIDEST_GAP)  # 5. Or 6.
    return Answer(f"{answer} or {other[1]}" if other else answer)


_BOLD = re.compile(r"\s*\*\*([^*]+)\*\*\s*")


def answer_tag(text: str) -> Answer | None:
    """Return the answer that the last ``<answer>`` states, without a label or bold print."""
    found = tag(text)
    content = found and found.text
    if content is None:
        return found
    spoken = after_label(content) if _SPOKEN.match(content) else None
    bold = _BOLD.fullmatch(content)
    return spoken or Answer(bold[1] if bold else content)


def tag(text: str) -> Answer | None:
    """Return what the last ``<answer>`` holds."""
    if "<answer>" not in text:
        return None
    end = text.rfind("</answer>")
    start = text.rfind("<answer>", 0, end) if end >= 0 else text.rfind("<answer>")
    if start < 0:
        return None
    if end < 0 or "<answer>" in text[end:]:
        return Answer(None, reason="the last <answer> is never closed")
    if is_denied(text, start, end + len("</answer>")):
        return Answer(None, reason="the answer is denied or taken back")
    return Answer(text[start + len("<answer>") : end])


_NUMBER_WITH_UNIT = re.compile(r"[-+$€£¥\\\s]{0,8}\d[\d,./\s]{0,60}[A-Za-z%°$€.\s]{0,40}")


def hash_line(text: str) -> Answer | None:
    """Return the last line with ``####``, unless it is a heading.

    A heading is words, with a text or a number after it.
    """
    at = text.rfind("####")
    if at < 0:
        return None
    line, _, below = text[at + 4 :].partition("\n")
    line = line.strip()
    if line.isdecimal():  # nearly always
        return Answer(line, "hash")
    line = line.lstrip("#").strip()
    worded = _WORD.search(line[:MAX_ANSWER]) and not _NUMBER_WITH_UNIT.fullmatch(line)
    heading = worded and (below.strip() or any(map(str.isdigit, line)))
    return None if heading or not line else Answer(line.strip("*` "))


def answer_line_after(text: str, start: int) -> bool:
    """Return whether a line that follows ``start`` states an answer: a label, then a value."""
    line = text.find("\n", start)
    return line >= 0 and _LINE.search(text, line) is not None


def strip_label(text: str, *nouns: str) -> str:
    """Remove "Final answer:" or "So the answer is" from the beginning of a text.

    Args:
        text: an answer.
        nouns: what the answer may be called as well; its label ends in a colon.

    Example:
        >>> [strip_label(text) for text in ("**Answer**: 5", "The answer is not 5", "Answer:")]
        ['5', 'not 5', 'Answer:']
        >>> strip_label("SQL: SELECT 1", "query", "sql")
        'SELECT 1'
    """
    label = _LEADING.match(text)
    if label is not None:
        rest = text[label.end() :]
        text = rest.removesuffix("**") if "**" in label.group() and rest.count("**") == 1 else rest
    named = _named(nouns).match(text) if nouns else None
    return text[named.end() :] if named else text


@functools.cache
def _named(nouns: tuple[str, ...]) -> re.Pattern[str]:
    noun = rf"\s*(?:\*\*)?(?:the )?(?:{'|'.join(nouns)})(?: is)?"
    return re.compile(rf"{noun}\s*(?::(?:\*\*)?\s?|\*\*:\s?|(?=`))", re.IGNORECASE)


def without_choice_label(text: str) -> str:
    """Remove "The answer is option" and the like from the beginning of a text."""
    label = _CHOICE.match(text)
    return text[label.end() :] if label else strip_label(text)


_LIST_WORDS_NAMES = """
answer arrangement assignment buttons cells coin coins colouring coloring colors colours edges
items knight ladder list move moves mst name names numbers order ordering path press pressed presses
result route schedule selection sequence set solution sorted square squares step steps subset task
tasks taken things tile tiles tour tree truth values vertices nodes walk word words
a an are as ascending alphabetical alphabetically be by chosen descending
fewest final find following follows for found from full here i in increasing decreasing is its
legal length minimal minimum my of one optimal possible satisfying selected shortest so some
spanning such take the then this these therefore thus to topological used valid value weight with
"""
_LIST_WORDS = frozenset(_LIST_WORDS_NAMES.split())
_LIST_LABEL_END = re.compile(r"[:=]")
_LIST_SIGN = re.compile(r"\n|[>→➡]")
_LIST_VERB = re.compile(r"\s(?:is|are)\s")
_PLAIN_WORD = re.compile(r"[^\W\d_]+")


def after_list_label(text: str) -> Iterator[str]:
    """Yield the text after ``Sorted list:``, then after "The path is", if either begins it."""
    sign = _LIST_LABEL_END.search(text, 0, 120)
    verb = _LIST_VERB.search(text, 0, sign.start() if sign else 120)
    for end in (sign, verb):
        if end is not None and _is_list_label(text[: end.start()]):
            rest = text[end.end() :].strip()
            # {"path": ["A", "B"]}
            yield rest[:-1] if text[:1] == "{" and rest[-1:] == "}" else rest


def _is_list_label(text: str) -> bool:
    words = _PLAIN_WORD.findall(text.casefold())
    ends = [w for w in words if w not in _LIST_WORDS]  # of "path from A to D"
    if _LIST_SIGN.search(text) or len(ends) > 2 - (len(ends) == len(words)):
        return False  # a list stands there, not a label
    return 0 < len(words) <= 12 and all(len(w) == 1 for w in ends)
