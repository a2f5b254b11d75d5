"""Eighteen shapes of a reply, judged by our form and by public rewards for it; and what it costs.

    python benchmarks/format.py

``trl`` is TRL's own ``think_format_reward``. ``open-r1`` and ``tag count`` are written anew from
what they do: a line feed around everything, a lazy pattern whose ``$`` also matches before a line
feed; and a quarter for each tag that stands once, wherever it does.

TRL's reward asks for less than ours: a thought, then anything. So it is judged twice, by the
grammar of thought and answer and, as "bare", by that of a thought and a bare answer.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from assay.verifiers import Format


class Shape(NamedTuple):
    """A reply, and whether it has the form.

    Attributes:
        name: for people.
        reply: what the model wrote.
        right: whether it is a thought and an answer, each in its tags.
        bare: whether it is a thought in its tags and a bare answer after it.
        prefilled: whether the prompt ended in ``<think>``.
    """

    name: str
    reply: str
    right: bool
    bare: bool
    prefilled: bool = False


THOUGHT = "<think>\n6 by 7\n</think>\n"
ANSWER = "<answer>\n42\n</answer>"
SHAPES = (
    Shape("the template", THOUGHT + ANSWER, True, True),
    Shape("an end token is left", f"{THOUGHT}{ANSWER}<|im_end|>", True, True),
    Shape("the prompt opened the thought", f"6 by 7\n</think>\n{ANSWER}", True, True, True),
    Shape("the thought is opened again", THOUGHT + ANSWER, False, False, True),
    Shape("an empty thought", f"<think>\n\n</think>\n{ANSWER}", False, False),
    Shape("an answer of white space", f"{THOUGHT}<answer>\n \n</answer>", False, False),
    Shape("no answer", THOUGHT, False, False),
    Shape("two answers", f"{THOUGHT}{ANSWER}\n<answer>\n43\n</answer>", False, True),
    Shape("text before", f"Sure!\n{THOUGHT}{ANSWER}", False, False),
    Shape("text between", f"{THOUGHT}So it is\n{ANSWER}", False, True),
    Shape("text after", f"{THOUGHT}{ANSWER} Done.", False, True),
    Shape("text after, on a new line", f"{THOUGHT}{ANSWER}\nOr is it 43?", False, True),
    Shape("</think> five times", THOUGHT + "</think>\n" * 4 + ANSWER, False, False),
    Shape("all of it twice", f"{THOUGHT}{ANSWER}\n{THOUGHT}{ANSWER}", False, False),
    Shape("a thought in a thought", f"<think>\n{THOUGHT}</think>\n{ANSWER}", False, False),
    Shape("an answer in the thought", f"<think>\n{ANSWER}\n</think>\n{ANSWER}", False, True),
    Shape("the answer comes first", f"\n{ANSWER}\n{THOUGHT}", False, False),
    Shape("a thought that never closes", f"<think>\n6 by 7\n{ANSWER}", False, False),
)

_OPEN_R1 = re.compile(r"<think>\n(?s:.*?)\n</think>\n<answer>\n(?s:.*?)\n</answer>$", re.MULTILINE)


def ours(shape: Shape, *, bare: bool = False) -> bool:
    """Our form, told what the prompt ended in."""
    tags = ("think",) if bare else ("think", "answer")
    form = Format(tags=tags, prefilled_think=shape.prefilled)
    return form.verify(shape.reply, None).score == 1.0


def trl(reply: str) -> float:
    """TRL's own reward."""
    from trl.rewards import think_format_reward

    scores: list[float] = think_format_reward([[{"role": "assistant", "content": reply}]])
    return scores[0]


def open_r1(reply: str) -> float:
    """What open-r1 rewards for form, written anew."""
    return float(_OPEN_R1.match(reply) is not None)


def tag_count(reply: str) -> float:
    """What open-r1 rewards for tags, written anew: a quarter for each that stands once."""
    tags = ("<think>\n", "\n</think>\n", "\n<answer>\n", "\n</answer>")
    return sum(reply.count(tag) == 1 for tag in tags) / len(tags)


def main() -> None:
    """Print who gives full marks to which shape; verdicts that are wrong are marked."""
    judges: dict[str, Callable[[Shape], bool]] = {
        "ours": ours,
        "open-r1": lambda shape: open_r1(shape.reply) == 1.0,
        "tag count": lambda shape: tag_count(shape.reply) == 1.0,
        "trl": lambda shape: trl(shape.reply) == 1.0,
        "ours, bare": lambda shape: ours(shape, bare=True),
        "trl, bare": lambda shape: trl(shape.reply) == 1.0,
    }
    right = dict.fromkeys(judges, 0)
    table = Table("shape", *judges, title="Full marks for the form")
    for shape in SHAPES:
        cells = []
        for name, judge in judges.items():
            full = judge(shape)
            good = full == (shape.bare if "bare" in name else shape.right)
            right[name] += good
            cells.append(("yes" if full else "no") + ("" if good else " ✗"))
        table.add_row(shape.name, *cells)
    table.add_section()
    table.add_row(f"judged right, of {len(SHAPES)}", *map(str, right.values()))
    Console(width=120).print(table)


if __name__ == "__main__":
    main()
