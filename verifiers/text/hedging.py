r"""Decide whether a reply commits to the number or answer that it names.

It may hedge ("5 or 6", "at least 6"), deny ("not 6"), drop it ("6 is wrong"), ask ("is it 6?"), or
hold it as a part of something else (the 6 of ``x^6``, ``5+6`` and "Step 6"). A model that is paid
for its last number must not earn by naming one that it does not commit to. Only the words and
signs right beside the number are read: words are refused by a list, signs are accepted by one.
"""

from __future__ import annotations

import re
import unicodedata

from ..maths.unit import read_unit
from .beside import LINKS
from .markup import unwrap_text

_REACH = 60  # characters that are read on either side
_OPEN = r"[ \t$*(\\]{0,6}\Z"
_COUNT = (
    r"(?:\d[%)}$]{0,3}|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|twenty|"
    r"thirty|forty|fifty|hundred|thousand|some|several|few|half|many))"
)
_ONE_OF_SEVERAL = (
    r"\d[^\n]{0,30}(?:\b(?:or|oder|ou|o|или)\b|或|または|또는)[^\n\d]{0,20}\Z"
    r"|\bbetween\b[^\n]{0,20}\d[^\n]{0,20}\band\b[^\n\d]{0,20}\Z"
    rf"|\bbetween\s{{1,3}}\S{{1,12}}\s{{1,3}}and{_OPEN}"
    r"|[(\[]\s{0,3}[^\s(),]{1,12}\s{0,3},\s{0,3}\Z"
    r"|\d[%)}$]{0,3}[ \t]{0,3}(?:\band|\bto|\bthrough|[,;|&]|[ \t])[ \t$*({\\]{0,6}\Z"
    rf"|{_COUNT}\s{{1,3}}and{_OPEN}"
    rf"|{_COUNT}\s{{1,3}}(?:[A-Za-z]{{2,14}}\s{{1,3}})?(?:in|(?:out\s{{1,3}})?of|for\s{{1,3}}every|per|to){_OPEN}"
    r"|\d[:–—]\Z|\d,\s{0,2}(?:\.{3}|…|\\[lc]?dots),?\s{0,2}\Z"
    r"|\d[^\n]{0,20}\s\(?[b-h][.)][ \t$*]{1,4}\Z"  # a) 4 b) 5
)
_DENIED_ABROAD = (
    r"\bn['’]est\s+pas|\b(?:no\s+es|não\s+é|non\s+è|nicht|не)(?!\w)"
    r"|不(?:可能|会)?(?:是|为|等于)|并非"
)
_DENIED = (
    r"(?:\b(?:not|never|neither|nor|cannot)\b|n['’]t\b|≠|!=|\\neq?)\s{0,4}"
    r"(?:(?:be|equal|to|the|number|answer|is)\s{1,4}){0,4}[-+$*\\({]{0,4}\Z"
    rf"|\b(?:wrong|incorrect):?\s{{0,2}}{_OPEN}"
    rf"|\bif\s[^.,\n]{{1,24}}\sw(?:ere|as){_OPEN}"
    rf"|\bwhether\s+(?:it|this|that|the\s+answer)(?:['’]s|\s+is){_OPEN}"
    rf"|\b(?:impossible|unable|hard|difficult)\s+to\s+\w{{2,10}}{_OPEN}"
    rf"|(?:{_DENIED_ABROAD}|第){_OPEN}"
    rf"|\b(?:wrong|incorrect|false|(?:un|not\s+)true)\s+that(?:\s+\S{{1,12}}){{0,3}}{_OPEN}"
    r"|\b(?:excluding|except|without|unlike|longer|hardly|barely|not\s+(?:quite|even)|near(?:ly)?|almost|far\s+from|instead\s+of|"
    r"close\s+to|(?:other|rather)\s+than|alternatively|(?:any|anything|all|nothing)\s+but|differs?\s+from|"
    r"(?:starting|beginning|begins|starts)\s+(?:with|at|from)|such\s+as|e\.g\.,?|for\s+(?:example|"
    r"instance),?|including|tried|trying)(?!\w)" + _OPEN
)
_DOUBTED = (
    r"\b(?:perhaps|maybe|possibly|probably|doubt\s+(?:that\s+)?it(?:['’]s|\s+is)|(?:could|might|may)\s+be|"
    rf"guess(?:\s+(?:is|was|would\s+be))?:?)(?!\w){_OPEN}"
    rf"|(?:可能|也许|或许|我猜)(?:会?是|为)?{_OPEN}"
)
_BOUND = (
    r"\b(?:exceeds?|over|under|above|below|"
    r"(?<!adds )(?<!add )(?<!sums )(?<!sum )(?<!comes )up\s+to|"
    r"at\s+(?:least|most)|than\s+or\s+equal\s+to|"
    r"(?:less|more|greater|fewer|smaller|larger|bigger|higher|lower)\s+than)\b"
    + _OPEN
    + rf"|(?:[大小多少]于|超过){_OPEN}"
)
_NAMED = re.compile(r"(?<![A-Za-z])\$?[A-Za-z](?:_\{?\w\}?)?\$?\s{0,3}=[ \t$*({]{0,4}\Z")
_PART_OF = (
    r"\b(?:negative|minus|plus|times|twice|thrice|half|double|triple|(?:multiplied|divided|"
    r"divisible)\s+by|log|ln|sin|cos|tan|sqrt|arc(?:sin|cos|tan)|exp|to\s+the|(?:roots?|squares?|cubes?|half|thirds?|quarters?|"
    r"reciprocal|inverse|opposite|negative|log(?:arithm)?|factorial|powers?|multiples?|factors?|"
    r"divisors?|complement)\s+of|power|mod|modulo|base|choose|"
    r"steps?|problems?|questions?|equations?|eqs?\.|examples?|exercises?|cases?|sections?|sec\.|"
    r"figures?|figs?\.|theorem|thm\.|lemma|corollary|proposition|prop\.|definition|def\.|remark|"
    r"claim|axiom|postulate|identity|formula|property|chapters?|ch\.|pages?|pp?\.|table|tab\.|"
    r"appendix|footnote|reference|ref\.|version|ver\.|v|no\.|nos?\.|part|stage|phase|note|vol\.|"
    r"volume|paragraph|clause|article|verse|line)(?!\w)"
    + _OPEN
    + r"|\d\s{0,3}[A-Za-z]\s{0,3}=[ \t$*({]{0,4}\Z"  # 42x = 5 does not say that x is 5
    r"|\b(?:let|suppose|assume)\s{1,3}\$?[A-Za-z]\$?\s{0,3}=[ \t$*({]{0,4}\Z"
)
_SEVERAL = re.compile(_ONE_OF_SEVERAL)  # both read lower case
_BEFORE = re.compile("|".join((_DENIED, _DOUBTED, _BOUND, _PART_OF)))
_WORDS_REACH = 36  # characters that the longest of these phrases takes
_DENIED_NAME = re.compile(f"{_DENIED}|{_DOUBTED}", re.IGNORECASE)
_PARTS = (
    r"hal(?:f|ves)|thirds?|quarters?|(?:four|fif|six|seven|eigh|nin|ten|eleven|twelf|"
    r"(?:thir|four|fif|six|seven|eigh|nine)teen|\w{3,5}tie|hundred|thousand)ths?|-?ths"
)
_AFTER = re.compile(
    r"[%*$)}\s(]{0,4}(?:(?:(?:is|was|be|seems|looks|must|would|does|can|an?|the)\s{1,4}){0,3}"
    r"(?:not|wrong|incorrect|false|excluded|impossible|extraneous|rejected)\b"
    r"|,\s+(?:is|was)\s+(?:wrong|incorrect|false)\b"
    r"|(?:is|was|does|ca)n['’]t\b|cannot\b|or\b|[?？吗]|是?错|是?不对|不是|是?不正确)"
    rf"|[\s)$-]{{0,4}}(?:(?:{_PARTS}|(?:th|st|nd|rd)\s+(?:powers?|roots?)|squared|cubed|factorial|pi|choose|plus|minus|over|divided|modulo|"
    r"mod|(?:in\s+)?base|k|[bmt]n|tn|dozens?|gross|lakhs?|crores?|doubled|tripled|halved|fold|percentage|"
    r"permille|ppm|basis\s+points?|point\s+(?:zero|one|two|three|four|five|six|seven|eight|nine)|"
    r"ish|at\s+(?:most|least)|and\s+(?:above|below|over|under|up|more)|if|unless|"
    r"raised|quadrillion|[a-z]{1,8}illion(?:th)?s|hundreds|thousands|tens|out\s+of|times\s+[b-z]|"
    r"(?:to|and)\s+(?:the|an?|one|two|three)\b(?=\s\w{0,12}(?:power|half|th|th?s|third|quarter)\b)|"
    r"(?:less|more|fewer|greater|smaller|larger)\s+than\s+(?:zero|[b-z]|one|two|three|ten)|(?:\w{1,12}\s+)?below\s+zero)(?![A-Za-z])"
    r"|(?:of|by|times)\s+(?:two|three|four|five|six|seven|eight|nine|ten|twelve|a\s+hundred)\b)",
    re.IGNORECASE,
)
_DENIED_QUANTITY = re.compile(
    r"[\s%)$*}-]{0,4}[A-Za-z]{1,14}[)$*}]{0,3}(?:\s?\?|,?\s{1,3}(?:(?:which|that|this)\s{1,3})?"
    r"(?:(?:is|was)\s{1,3}(?:wrong|incorrect|false|not\s{1,3}(?:right|correct|it|the)\b)|not[\s.!]*\Z))",
    re.IGNORECASE,
)  # 12 cm is wrong
_QUANTITY_BEFORE = re.compile(r"\d[%)}$]{0,3}\s{0,3}([A-Za-z]{1,12}),?\s{1,3}(?:and\s{1,3})?\Z")
_LETTERS_AFTER = re.compile(r"\s?([A-Za-z]+(?:&[A-Za-z]+)?)")
_NOUN_AHEAD = re.compile(r"\s+[A-Za-z]{2}")
_LOOSE_LETTERS = frozenset("aImgLlhsNJWVCF")
_ORDINALS = frozenset(("st", "nd", "rd", "th", "am", "pm"))
_SET_OFF = " \t\r\n$€£¥\"“”‘’'`"
_COMMAND = re.compile(r"\\([A-Za-z]+)\s{0,3}\Z")
_LINK_AHEAD = re.compile(r"\\([A-Za-z]+)")
_ARROW = re.compile(r"(?:>>|[-=]>|</?\w{1,20}>)\Z")
_DEGREE = re.compile(r"\s?\^\s?(?:\{\s?)?(?:\\circ|°|(?:st|nd|rd|th)\b)")
_CHINESE_MAGNITUDES = frozenset("十百千万亿萬億兆分")
_SYMBOLS = frozenset("=≈→⇒")
_NUMBER_LINE = re.compile(r"(?:\A|\n)[-+$* \t]{0,6}\d[\d,./%]{0,30}[* \t]{0,4}\Z")


def stands_alone(before: str, after: str) -> bool:
    """Return whether a number between two texts is a whole value that the reply commits to.

    Example:
        >>> stands_alone("so it is ", ""), stands_alone("5 or ", ""), stands_alone("", " squared")
        (True, False, False)
    """
    before, after = before[-_REACH:], after[:_REACH]
    for mark in ("_", "*"):  # Markdown's italics
        if before.endswith(mark) and after.startswith(mark):
            before, after = before[:-1], after[1:]
    if not _committed(before):
        return False
    if _AFTER.match(after) or _DENIED_QUANTITY.match(after) or _in_parts(before, after):
        return False
    named = _NAMED.search(before)  # not x = 5
    if named is not None and _DENIED_NAME.search(before[: named.start()]):
        return False
    return _opens_value(before) and _ends_value(after.partition("\n")[0], before)


def _committed(before: str) -> bool:
    """Return whether the words before a value neither hedge nor deny it, nor make it a part."""
    small = before.lower()
    reach = max(0, len(small) - _WORDS_REACH)
    return not (_SEVERAL.search(small) or _BEFORE.search(small, reach))


def _in_parts(before: str, after: str) -> bool:
    """Return whether a number is the second part of a quantity: the 45 of "3 hours 45 minutes"."""
    first, second = _QUANTITY_BEFORE.search(before), _LETTERS_AFTER.match(after)
    if first is None or second is None:
        return False
    return read_unit(first[1]) is not None and read_unit(second[1]) is not None


def _opens_value(before: str) -> bool:
    """Return whether the sign before a number leaves its value as it is."""
    if _in_brackets(before):
        return False
    while True:
        bare = before.rstrip(_SET_OFF)
        if "\n" in before[len(bare) :]:  # a line of its own, unless the line before goes on
            goes_on = bare[-1:] in {"+", "*", "/", "^", "×", "÷", "<", "±"}
            return not goes_on and _NUMBER_LINE.search(bare) is None  # one number in each line
        if bare[-2:] in {"\\(", "\\[", "\\$"}:
            before = bare[:-2]
        elif bare[-1:] != "(":
            break
        elif bare[-2:-1].isalnum() or (len(bare) > 1 and bare[-2] in ")}'-−–"):
            return False  # f(5), -(5)
        else:
            before = bare[:-1] + " "
    if not bare:
        return True
    last, glued = bare[-1], bare == before.rstrip("$€£¥\"“‘'`")
    if command := _COMMAND.search(bare):
        return command[1] in LINKS and "mod" not in command[1]
    if last.isalpha():
        if not last.isascii():
            return True
        word = re.search(r"[A-Za-z]+\Z", bare)
        long = word is not None and (len(word[0]) > 1 or word[0] in "aI" or bare[-2:-1] in "’'")
        return not glued and long
    if last.isdigit() or last in "^_/+×·÷√±~<|{[}@&%\\" or (last in ")]" and glued):
        return last == "\\" and bare.endswith("\\\\")
    if last == ">":
        return _ARROW.search(bare) is not None
    if last == "#":
        return bare.endswith("##")
    if last == "*":
        return not re.search(r"[\w)}]\s?\*{1,2}\Z", bare)
    if last in ",;" and glued:
        return not last.isascii()
    return last in _SYMBOLS or unicodedata.category(last) not in {"Sm", "No", "Nl"}


def _in_brackets(before: str) -> bool:
    r"""Return whether ``[``, ``{`` or ``\{`` is open before a number: a set, an index, a range."""
    depth = 0
    for at in range(len(before) - 1, -1, -1):
        char = before[at]
        if char in "]}":
            depth += 1
        elif char in "[{" and not (char == "[" and before[at - 1 : at] == "\\"):
            depth -= 1
            if depth < 0:
                return True
    return False


def _ends_value(after: str, before: str) -> bool:
    """Return whether the sign after a number leaves its value as it is."""
    if _DEGREE.match(after):
        return True
    letters = _LETTERS_AFTER.match(after)
    if letters:
        word = letters[1]
        if after[0] == " ":
            return len(word) > 1 or word in _LOOSE_LETTERS
        if word in _ORDINALS:
            return not _NOUN_AHEAD.match(after, len(word))  # the 42nd number is no 42
        return len(word) > 1 and read_unit(word) is not None
    rest = after.lstrip(" \t")
    if not rest:
        return True
    first, second, glued = rest[0], rest[1:2], rest == after
    if first == "\\":
        link = _LINK_AHEAD.match(rest)
        return link[1] in LINKS | {"circ"} if link else True
    if first in _CHINESE_MAGNITUDES or first in "^_+×·÷²³√π<>|[]@‰" or first == "{":
        return first == "<" and (second in "/|" or second.isalpha())
    if first == "!" or (first == ":" and second.isalnum()):
        return not glued
    if first == "," and before.rstrip(_SET_OFF).endswith("("):
        return False  # (5, x)
    if first == "'":
        return before.endswith("'")
    if first == "*":
        return not (second.isalnum() or second in " (")
    if first in "-−–/":
        return not re.match(r".\s{0,3}(?:[A-Za-z](?![A-Za-z])|[\\(])", rest)
    if first == "(":
        return not glued
    return first in "=≈→⇒" or unicodedata.category(first) not in {"Sm", "No", "Nl"}


_SUPPOSED = re.compile(
    r"(?:\b(?:wrong|incorrect|false|not|if|suppose|assume|assuming|whether|doubt)\s+(?:that\s+)?"
    r"(?:the|an|a|my|our)?\s*|\b(?:wrong|incorrect|false)\s+"
    r"|(?:\b(?:to|not|never|cannot|one|you|some|someone|people|many|students?)|n['’]t)\s+"
    r"(?:(?:may|might|could|would|be|is|was|it)\s+){0,2}(?:think|say|guess|believe|claim|argue|imagine|doubt|true"
    r"|certain|clear|sure|(?:the\s+)?case)\s+(?:that\s+)?(?:the\s+)?)"
    r"(?:final\s+|correct\s+)?\Z|(?:错误|不正确|不是|如果|假设)的?(?:最终|最終)?\Z",
    re.IGNORECASE,
)
_RETRACTED = re.compile(
    r"[\s.,!*)$]{0,6}(?:(?:but|no|wait|actually|hmm|oops|sorry|correction|unless)\b"
    r"(?!,?\s(?:note|notice|remember|we\s(?:can|could)\s(?:also\s)?(?:check|verify))\b)"
    r"|(?-i:or)\s+\S|or\s+(?:something|some|any|anything|maybe|perhaps|not|whatever)\b"
    r"|(?:(?:that|this|it|which)(?:\s+is|['’]s)|is|was)\s+(?:wrong|incorrect|not|false|mistaken)\b)",
    re.IGNORECASE,
)


def is_supposed(text: str, start: int) -> bool:
    """Return whether the words before ``text[start:]`` mark a guess or a denial."""
    return bool(_SUPPOSED.search(text[max(0, start - _REACH) : start]))


def is_retracted(text: str, end: int) -> bool:
    """Return whether the words after an answer that ends at ``end`` question or withdraw it."""
    after = text[end : end + _REACH]
    return after.startswith("?") or bool(_RETRACTED.match(after))


_DENIED_BEFORE = re.compile(
    r"(?:(?:\b(?:not|never|cannot)|n['’]t)(?:\s+(?:be|equal(?:\s+to)?))?"
    r"|\b(?:(?:rather|other)\s+than|instead\s+of|anything\s+but|differs?\s+from)"
    r"|(?<!\bno\s)(?<!\bnot\s)\b(?:less|more|fewer|greater|smaller|larger|bigger|higher|lower)\s+than"
    r"|(?:wrong|incorrect)\s+answer(?:\s+(?:is|would\s+be))?:?"
    rf"|{_DENIED_ABROAD})[\s$*]{{0,4}}\Z",
    re.IGNORECASE,
)
_DENIED_AFTER = re.compile(
    r"[\s$*)]{0,4}(?:(?:the\s(?:final\s)?answer)?\?(?!\s{0,3}(?:yes|correct|indeed)\b)"
    r"|(?:is|was|(?:must|would)\s+be|seems|looks)\s+(?:(?:the|an?)\s+)?"
    r"(?:wrong|incorrect|false|not\s+(?:right|correct|it|the))\b"
    r"|(?:is|was|does|ca)n['’]t\s+(?:be\s+)?(?:right|correct|it|the|work)\b"
    r"|cannot\s+be\s+(?:right|correct|it|the)\b|does\s+not\s+work\b"
    r"|[,.]?\s{1,3}\(?(?:(?:but\s)?I(?:['’]m|\sam)\s)?(?:not\s(?:sure|certain)|unsure)\b(?!\s(?:if|how|why|about))"
    r"|,?\s?unless\b|,?\s?or\s(?:so|more|less|fewer|greater)[\s.!)]{0,4}(?:\Z|\n)"
    r"|(?:吗|？)(?![？\s]{0,3}(?:是|对|正确))|(?<!\n)[，,。]?(?:这|那)?是?(?:错(?:[误的了。，.!！]|\Z)|不对|不正确|不是(?:正确)?的?答案)|ではありません|[가이]?\s?아[니닙]"
    r"|\.?\s{0,3}(?:(?:but|no|wait|actually|hmm|oops|sorry),?\s{1,3}){0,2}"
    r"(?:that|this|it|which)(?:\s+is|\s+was|['’]s)\s+(?:wrong|incorrect|false|mistaken|"
    r"not\s+(?:right|correct))\b)",
    re.IGNORECASE,
)


_STATED = re.compile(
    r"(?:\b(?:so|thus|hence|therefore|is|are|equals|get|have|obtain|gives?|becomes)(?:\sthat)?[,:]?"
    r"|\b(?:result|solution|lösung):|→|⇒|=>|\b[A-Za-z]{1,3}\s?=)\s+\Z"
    r"|(?:因此|所以|故|即|得|[是为])[，,：:]?\s*\Z",
    re.IGNORECASE,
)
_CORRECTED = re.compile(
    r"[\s.,;:!$*)\]\\–—-]{0,8}(?:(?:but|no|wait|actually|hmm+|oops|sorry|correction|i\s(?:now\s)?(?:think|believe)"
    r"|i\smeant?|let\sme\s(?:re|double[- ])?check(?:\s(?:again|that|this|it))?"
    r"|(?:or\s)?rather|alternatively|(?:scratch|strike)\sthat|maybe|perhaps|it\s(?:could|may|might)(?:\salso)?\sbe"
    r"|i\schanged\smy\smind|just\skidding|the\s(?:correct|final|right)\sanswer\sis|on\s(?:second\sthoughts?|reflection)|(?:i|there)(?:\s(?:have|had|did|made|is|was)){1,2}\sa(?:n\serror|\smistake)"
    r"|(?:that|this|it)(?:['’]s|\s(?:is|was))\s(?:wrong|incorrect|not\sright))[\s,.:!]{1,3}){1,4}"
    r"(?:[^.\n$\\\d]{1,60}\.\s(?=the\s[a-z ]{0,8}answer\s))?"  # I forgot to carry. The answer is 5
    r"((?:it(?:['’]s|\s(?:is|was|should\sbe|must\sbe))|should\sbe|make\sthat|(?<=correction:)"
    r"|the\s(?:(?:correct|final|right)\s)?answer\s(?:is|should\sbe))\s)?\(?\$?(-?\d+|(?-i:[A-H])(?![A-Za-z]))"
    r"(?(1)|[ $.!*)]*(?:\n|\Z))",  # a bare number ends its line: "wait, 2+3 = 5" takes nothing back
    re.IGNORECASE,
)

_CORRECTED_IN_CHINESE = re.compile(
    r"[\s，。,.!！$*)]{0,4}(?:(?:等等|等一下|不|不对|错了|抱歉|更正)[\s，。,.!！：:]{1,3}){1,4}"
    r"(?:答案)?(?:应该|应)?(?:[是为]\s?)?()\$?(-?\d+|[A-H](?![A-Za-z]))"
)


OR_OTHER = re.compile(
    r"[\s$.,)(，—–-]{0,4}(?:\b[Oo]r\s{1,3}|(?:或者?|还是)\s{0,3})(?:(?:maybe|perhaps|possibly|even)\s{1,3})?"
    r"(?:it(?:['’]s|\s(?:is|(?:could|may|might)\sbe))\s{1,3})?\(?(?:\$|\\\()?(?:[a-z]\s?=\s?)?"
    r"(-?\d[\d,./]*(?:\\?%)?(?![A-Za-z\d^_(])|-?\\(?:[dt]?frac|sqrt|pi)(?:(?!\\\)|[$\n]).){0,30}"
    r"|(?!I\b)[A-Z][\w'’-]*+)"
)
"""Another answer after one: ``or 6``."""


def is_denied(text: str, start: int, end: int) -> bool:
    """Return whether the words beside a box, ``text[start:end]``, say that it is not the answer."""
    before = unwrap_text(text[max(0, start - _REACH) : start])
    after = unwrap_text(text[end : end + 2 * _REACH])
    near = max(0, len(before) - _WORDS_REACH)
    if _DENIED_BEFORE.search(before, near) or _DENIED_AFTER.match(after[:_REACH]):
        return True
    other = _CORRECTED.match(after) or _CORRECTED_IN_CHINESE.match(after)
    return other is not None and other[2] not in re.findall(
        r"-?\d+|(?<![A-Za-z])[A-H](?![A-Za-z])", text[start:end].replace(",", "")
    )


def is_stated(before: str) -> bool:
    """Return whether the words before a formula state it: ``so``, ``is``, ``we get``; or none."""
    before = before[-_REACH:]
    return not before.strip() or bool(_STATED.search(before) and _committed(before))


def left_open(text: str, start: int, end: int) -> bool:
    """Return whether the words beside a formula, ``text[start:end]``, doubt it, deny it or ask."""
    before = text[max(0, start - _REACH) : start]
    doubt = _DENIED_NAME.search(before) or text[end : end + 1] == "?"
    return bool(doubt) or is_denied(text, start, end)
