"""Eighteen shapes of a reply, judged by our form and by public rewards for it; and what it costs.

    python benchmarks/format.py [--pairs 3000,6000,12000]

``trl`` is TRL's own ``think_format_reward``. ``open-r1`` and ``tag count`` are written anew from
what they do: a line feed around everything, a lazy pattern whose ``$`` also matches before a line
feed; and a quarter for each tag that stands once, wherever it does.

TRL's reward asks for less than ours: a thought, then anything. So it is judged twice, by the
grammar of thought and answer and by that of a thought and a bare answer.
"""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Callable
from typing import NamedTuple

from rich.console import Console
from rich.table import Table

from assay.verifiers import Format

Judge = Callable[[str], float]


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


def verdicts() -> dict[str, list[bool]]:
    """Who gives full marks to which shape."""
    return {
        "ours": [ours(shape) for shape in SHAPES],
        "open-r1": [open_r1(shape.reply) == 1.0 for shape in SHAPES],
        "tag count": [tag_count(shape.reply) == 1.0 for shape in SHAPES],
        "trl": [trl(shape.reply) == 1.0 for shape in SHAPES],
        "ours, bare": [ours(shape, bare=True) for shape in SHAPES],
    }


def wanted(name: str) -> list[bool]:
    """What is right, by the grammar that a judge is held to first."""
    return [shape.bare if name == "ours, bare" else shape.right for shape in SHAPES]


def shapes_table() -> Table:
    """Every verdict; those that are wrong are marked."""
    found = verdicts()
    table = Table("shape", "right", *found, title="Full marks for the form")
    for k, shape in enumerate(SHAPES):
        cells = [_cell(found[name][k], wanted(name)[k]) for name in found]
        table.add_row(shape.name, _yes(shape.right), *cells)
    right = {
        name: sum(a == b for a, b in zip(found[name], wanted(name), strict=True)) for name in found
    }
    bare = sum(a == shape.bare for a, shape in zip(found["trl"], SHAPES, strict=True))
    table.add_section()
    table.add_row("shapes judged right", f"{len(SHAPES)}", *(str(n) for n in right.values()))
    table.caption = f"trl, by the grammar of a thought and a bare answer: {bare} of {len(SHAPES)}"
    return table


def _cell(found: bool, right: bool) -> str:
    return _yes(found) if found == right else f"[red]{_yes(found)} ✗[/red]"


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def cost(judge: Judge, pairs: int) -> float:
    """CPU seconds for a thought that closes ``pairs`` times, each time before an answer begins."""
    reply = "<think>\n6 by 7" + "\n</think>\n<answer>\n" * pairs
    started = time.process_time()
    judge(reply)
    return time.process_time() - started


def cost_table(sizes: list[int]) -> Table:
    """Milliseconds by number of tag pairs."""
    graded = Format(graded=True)
    judges: dict[str, Judge] = {
        "ours": lambda reply: Format().verify(reply, None).score or 0.0,
        "ours, graded": lambda reply: graded.verify(reply, None).score or 0.0,
        "ours, all of it read": lambda reply: Format().verify(_prose(reply), None).score or 0.0,
        "open-r1": open_r1,
        "tag count": tag_count,
        "trl": trl,
    }
    table = Table("CPU ms", *(f"{size:,} pairs" for size in sizes), title="Cost")
    for name, judge in judges.items():
        judge("warm")
        table.add_row(name, *(f"{1000 * cost(judge, size):,.2f}" for size in sizes))
    return table


def _prose(reply: str) -> str:
    """A well-formed reply as long as another, in which the tags are other ones."""
    thought = reply.replace("think", "thought").replace("answer", "reply")
    return f"<think>{thought}</think><answer>42</answer>"


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--pairs", default="3000,6000,12000", help="numbers of tag pairs")
    sizes = [int(size) for size in parser.parse_args().pairs.split(",")]
    console = Console(width=120)
    console.print(shapes_table())
    console.print(cost_table(sizes))


if __name__ == "__main__":
    main()
