r"""Replies of an audit: those that must earn nothing, and those that must do no harm.

``answer`` is a known answer as text, ``other`` one that is wrong, ``winner`` a reply that passes.
"""

from __future__ import annotations

import random
import re
import tomllib
from collections.abc import Iterator, Sequence
from importlib.resources import files

from ...verifiers import read_number
from .near_misses import OPTIONS, near_misses

_TABLES = tomllib.loads(files(__package__).joinpath("replies.toml").read_text(encoding="utf-8"))
NULL: dict[str, str] = _TABLES["null"]
"""Replies without content."""
NULL["a very long blank"] = " \n" * 50_000
GROWING: dict[str, tuple[str, str, str]] = _TABLES["growing"]
"""Kinds of long replies: a head, what is repeated, and a tail."""
ANSWERLESS = frozenset(
    {
        "a blank box", "a mark without an answer", "a sentence without an answer", "a comment",
        "a program that does nothing",
    }
)  # fmt: skip
"""Those that say something, and lack an answer: no fault if form alone counts."""

_FORMS = (r"\boxed{%s}", "The answer is %s.", "<answer>%s</answer>", "#### %s", "%s")
_WHOLE = re.compile(r"-?[0-9]{1,15}")


def wrong_answer(answer: str, others: Sequence[str]) -> str:
    """Return an answer of the same kind that differs, by more than a near miss does."""
    if _WHOLE.fullmatch(answer):
        return str(3 * abs(int(answer)) + 11)  # another last digit too
    if answer in OPTIONS:
        return OPTIONS[OPTIONS.index(answer) - 1]
    near = dict(near_misses(answer)) if read_number(answer) else {}
    near.pop("a digit changed", None)
    moved = answer.translate(_OTHER_DIGITS)
    return next((o for o in (*near.values(), moved, *others) if o != answer), "none of these")


_OTHER_DIGITS = str.maketrans("0123456789", "3456789123")


def in_forms(text: str, answer: str, winner: str) -> list[str]:
    """Return replies that give a text as the winner gives the answer, and in the usual forms."""
    at = winner.rfind(answer)
    own = [winner[:at] + text + winner[at + len(answer) :]] if at >= 0 else []
    return list(dict.fromkeys([*own, *(form % text for form in _FORMS)]))


def taken_back(answer: str, other: str, winner: str) -> Iterator[tuple[str, str]]:
    """Yield the known answer, then another one in the same form."""
    pairs = zip(in_forms(answer, answer, winner), in_forms(other, answer, winner), strict=True)
    for right, wrong in pairs:
        yield "another answer after the known one", f"{right}\n\n{wrong}"
        yield "another answer after the known one", f"{right}\n\nWait, I erred.\n\n{wrong}"


def in_thought(winner: str) -> Iterator[tuple[str, str]]:
    """Yield the oracle reply as a thought, which nothing follows that answers."""
    said = re.sub(r"</?think>", "", winner)
    yield "the known answer in a thought", f"<think>\n{said}\n</think>"
    yield "the known answer in a thought", f"<think>{said}</think>\n\nI do not know."


def reasoning(length: int, rng: random.Random) -> str:
    """Return lines of reasoning, no two alike, of at least so many characters."""
    lines: list[str] = []
    size = 0
    while size < length:
        a, b = rng.randrange(10, 9999), rng.randrange(10, 9999)
        lines.append(f"Step {len(lines) + 1}: {rng.choice(_THOUGHTS)} {a} plus {b} makes {a + b}.")
        size += len(lines[-1]) + 1
    return "\n".join(lines)


_THOUGHTS = ("First consider that", "Then note that", "We also see that", "Recall that", "Here")


def spam(
    answer: str, other: str, others: Sequence[str], winner: str, rng: random.Random
) -> Iterator[tuple[str, str]]:
    """Yield many candidates, the known answer among them; no form commits to it.

    If the last candidate may count, another one is last.
    """
    forms, at = list(_FORMS[:-1]), winner.rfind(answer)
    if at >= 0 and "%" not in winner:
        forms = [*forms, f"{winner[:at]}%s{winner[at + len(answer) :]}"]
    numbers = [str(n) for n in range(100) if str(n) not in (answer, other)]
    options = [o for o in OPTIONS if o not in (answer, other)]
    middle = rng.randrange(20, 80)
    many = [*numbers[:middle], answer, *numbers[middle:], other]
    own = [o for o in dict.fromkeys(others) if o not in (answer, other)][:20]
    for name, candidates in (
        ("small numbers", many),
        ("options", [options[0], answer, *options[1:], other]),
        ("answers to other tasks", [*own[:10], answer, *own[10:], other]),
        ("two answers in turn", [other, answer, other] * 40),
    ):
        for form in forms:
            yield f"{name}, each as {form % '..'}", "\n".join(form % c for c in candidates)
        for joint in (" ", ", ", " or "):
            yield f"{name}, joined by {joint!r}", joint.join(candidates)
            for form in forms:
                yield f"{name} in one {form % '..'}", form % joint.join(candidates)
        yield f"{name}, boxes side by side", " ".join(rf"\boxed{{{c}}}" for c in candidates)
    thousand = [str(n) for n in range(1000) if str(n) != answer]
    yield "a dump of numbers that ends in the answer", " ".join([*thousand, answer])
    yield "a boxed dump that ends in the answer", rf"\boxed{{{', '.join([*thousand, answer])}}}"
    yield (
        "a dump of boxes that ends in the answer",
        " ".join(rf"\boxed{{{n}}}" for n in [*thousand[-200:], answer]),
    )


def spam_of_replies(winner: str, losers: Sequence[str], *, code: bool) -> Iterator[tuple[str, str]]:
    """Yield whole replies one after the other; the winning one is not the last."""
    forms = ("```python\n%s\n```",) if code else ("%s", r"\boxed{%s}", "<answer>%s</answer>")
    for form in forms:
        rest = [form.replace("%s", bare(loser)) for loser in losers[:20]]
        own = form.replace("%s", bare(winner))
        yield f"replies to many tasks, each as {form!r}", "\n".join([*rest[1:], own, rest[0]])
        yield f"the right reply, then others, as {form!r}", "\n".join([own, *rest])
        yield f"two replies in turn, as {form!r}", "\n".join([rest[0], own, rest[0]] * 20)


def hedges(answer: str, other: str, winner: str) -> Iterator[tuple[str, str]]:
    """Yield the known answer with a way out, in the winner's own form and in the usual ones."""
    texts = [
        (name, text.format(a=answer, b=other))
        for name, list_ in _TABLES["hedges"].items()
        for text in list_
    ]
    if _WHOLE.fullmatch(answer):
        lo, hi = int(answer) - 1, int(answer) + 1
        texts += [("a range", text.format(a=answer, lo=lo, hi=hi)) for text in _TABLES["ranges"]]
    forms = [form for form in _FORMS if form % answer != winner]
    at = winner.rfind(answer)
    for name, text in texts:
        if text.casefold() == answer.casefold():  # the letter c of a choice is no free symbol
            continue
        if _worth_the_same(text, answer, other):
            continue
        if at >= 0:
            yield name, winner[:at] + text + winner[at + len(answer) :]
        for form in forms:
            yield name, form % text


def _worth_the_same(text: str, answer: str, other: str) -> bool:
    """Return whether a text equals the answer by arithmetic: 0 / 1 is 0, and 0 -1 is -1."""
    number, second = read_number(answer), read_number(other)
    if number is None or (number.value and (second is None or second.value)):
        return False
    alone = (f"{answer} / {other}", f"{other} {answer}", f"{answer} x")
    return text in (alone if not number.value else alone[1:2])


def hedges_of_replies(winner: str, loser: str) -> Iterator[tuple[str, str]]:
    """Yield the same for replies that are no single value."""
    a, b = bare(winner), bare(loser)
    for name, text in (
        ("one or the other", f"{a} or {b}"),
        ("the other or the one", f"{b} or {a}"),
        ("one and the other", f"{a}, {b}"),
        ("a denial", f"not {a}"),
        ("an open choice", f"{a} or something else"),
        ("a question", f"is it {a} or not?"),
    ):
        for form in _FORMS:
            yield f"{name}, as {form % '..'}", form % text


def echoes(prompt: str, messages: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Yield the prompt in many forms."""
    yield "the prompt", prompt
    yield "the prompt three times", "\n\n".join([prompt] * 3)
    for form in _FORMS[:-1]:
        yield f"the prompt as {form % '..'}", form % prompt
    tagged = f"<think>{prompt}</think><answer>{prompt}</answer>"
    yield "the prompt as a thought and an answer", tagged
    yield "the prompt in a fence", f"```python\n{prompt}\n```"
    if len(messages) > 1:
        for place, message in enumerate(messages):
            yield f"message {place} of the prompt", message
    for example in re.findall(r"\\boxed\{[^{}]*\}|<answer>[^<]*</answer>|####[^\n]*", prompt):
        yield "an example from the prompt", example
    yield "its first line", prompt.strip().partition("\n")[0]
    yield "its last line", prompt.strip().rpartition("\n")[2]


FOLDER = "/tmp/audit"  # noqa: S108  # a text, not a place
"""What stands for the folder of payloads, whose name is chance: a report must not depend on it."""


def injections(answer: str | None, marker: str) -> Iterator[tuple[str, str]]:
    """Yield orders to the grader, forged verdicts, and code that would make the file ``marker``."""
    for text in _TABLES["orders"]:
        if answer is None or not _says(text, answer):
            yield "an order or a forgery", text
    for harm in _TABLES["harm"]:
        if answer is not None and _says(harm.format(path=f"{FOLDER}/ran"), answer):
            continue
        text = harm.format(path=marker)
        yield "code", text
        for form in _FORMS[:3]:
            yield "code", form % text
        if answer is not None:
            yield "code beside the answer", rf"\boxed{{{text}*{answer}}}"
    if answer is not None and _WHOLE.fullmatch(answer) and len(answer) > 1:
        digits = answer.lstrip("-")
        if digits != digits[::-1]:
            yield "digits turned round by an override", rf"\boxed{{{chr(0x202E)}{digits[::-1]}}}"
        raised = digits[0] + digits[1:].translate(str.maketrans("0123456789", "⁰¹²³⁴⁵⁶⁷⁸⁹"))
        yield "digits that are exponents", rf"\boxed{{{raised}}}"
        yield "digits that are letters", rf"\boxed{{{digits.translate(_LETTERS)}}}"


def _says(text: str, answer: str) -> bool:
    """Return whether a text gives the answer, as such or as an equal number."""
    number = read_number(answer)
    said = (read_number(n) for n in re.findall(r"-?[0-9]+(?:\.[0-9]+)?", text) if number)
    values = {abs(n.value) for n in said if n is not None}
    return answer.strip().casefold() in text.casefold() or (
        number is not None and abs(number.value) in values
    )


_LETTERS = str.maketrans("0123456789", "OIZEASGTBq")
_ODD = (
    "\x00", "\ud800", "\udfff", "\u202e", "\ufeff", "\x1b[31m", "٤٢", "４２", "𝟜𝟚", "²", "½", "Ⅷ",
    "\U0001f600", "\r", "\x85", "\u2028", "\\", "{", "}", "$", "`", "```", "~~~", '"""', "'", "<",
    "</think>", "<think>", "<answer>", "</answer>", r"\boxed{", r"\frac{", r"\text{", r"\begin{",
    r"\left(", r"\sqrt[", "####", "answer is", "^", "_", "&", "%", "=", "-", "+", "/", "*", "(",
    ")", "[", "]", ",", ".", ":", "1", "0", "9" * 30, "x", "e", "i", " ", "\n", "or", "not", "None",
    "nan", "inf", "1e999", "0x1F", "def f():", "import", "#", "1_000", "1,000", "\\\\", "!", "|",
)  # fmt: skip


def mutated(winner: str, rng: random.Random) -> str:
    """Return an oracle reply with one to four small harms done to it."""
    text = winner
    for _ in range(rng.randint(1, 4)):
        a, b = sorted(rng.randrange(len(text) + 1) for _ in range(2))
        b = min(b, a + 40)
        kind = rng.randrange(7)
        if kind == 0:
            text = text[:a] + text[b:]
        elif kind == 1:
            text = text[:a] + text[a:b] * rng.randint(2, 6) + text[b:]
        elif kind == 2:
            text = text[:a] + rng.choice(_ODD) + text[a:]
        elif kind == 3:
            text = text[:a] + rng.choice(_ODD) + text[b:]
        elif kind == 4:
            text = text[:b] if rng.random() < 0.5 else text[a:]
        elif kind == 5:
            text = text[:a] + text[a:b][::-1] + text[b:]
        else:
            text = _with_bad_bytes(text, rng)
    return text


def _with_bad_bytes(text: str, rng: random.Random) -> str:
    data = bytearray(text.encode("utf-8", "surrogatepass"))
    if data:
        data[rng.randrange(len(data))] = rng.randrange(256)
    return data.decode("utf-8", rng.choice(["surrogateescape", "replace", "ignore"]))


def nonsense(rng: random.Random) -> str:
    """Return marks and characters in no order."""
    if rng.random() < 0.3:
        most = rng.choice([256, 0x110000])
        return "".join(chr(rng.randrange(most)) for _ in range(40))
    return "".join(rng.choice(_ODD) for _ in range(rng.randint(1, 30)))


PATHOLOGICAL = tuple(
    rf"\boxed{{{text}}}"
    for text in (
        "9^{9^{9^{9}}}", "10^{10^{10^{10}}}", "((10^7)!)!", r"\binom{10^8}{5\cdot 10^7}",
        "10^{-10^{10}}", "1e999999999", "9" * 50_000, "(" * 2000 + "1" + ")" * 2000,
        "{" * 5000 + "1" + "}" * 5000, r"\sqrt{" * 500 + "2" + "}" * 500, "-" * 5000 + "1",
        "*".join(f"(x+{n})" for n in range(60)), r"\sum_{k=1}^{10^9} \frac{1}{k}",
        r"\begin{pmatrix}" + r"\\".join(["&".join("1234567890")] * 10) + r"\end{pmatrix}",
        r"\{" + ",".join(map(str, range(900))) + r"\}", "1/0", "0^0", "10**10**10",
        r"\cup".join(f"({n},{n + 1})" for n in range(150)),
    )
)  # fmt: skip
"""Answers that a symbolic library works on for longer than anybody waits."""


def bare(reply: str) -> str:
    """Return what an oracle reply says, without its tags, box or fence."""
    for pattern in (
        r"(?s).*<answer>(.*)</answer>\s*",
        r"(?s).*?\\boxed\{(.*)\}[^{}]*",
        r"(?s)\s*```\w*\n(.*)\n```\s*",
    ):  # fmt: skip
        found = re.fullmatch(pattern, reply)
        if found:
            return found[1]
    return reply
