"""Remove the thought and the end tokens of chat models."""

from __future__ import annotations

import re

UNCLOSED = "<think> is never closed"
"""Why a reply without a closed thought has no answer."""

END_TOKEN = re.compile(
    r"</s>|<eos>|<pad>|<end_of_turn>|<\|[A-Za-z0-9_]{2,30}\|>|<｜[A-Za-z▁_]{2,30}｜>"
)
_LONGEST_TOKEN = 40
_THOUGHTS = {  # how a thought opens, and what ends it
    "<think>": "</think>",
    "[THINK]": "[/THINK]",  # Magistral
    "◁think▷": "◁/think▷",  # Kimi
    "<seed:think>": "</seed:think>",  # Seed-OSS
    "<|channel|>analysis<|message|>": "<|channel|>final<|message|>",  # gpt-oss
}


def after_thinking(reply: str) -> str | None:
    """Return what follows the last ``</think>``, without end tokens; ``None`` if one is open.

    The marks of other models' thoughts are read as well.

    Example:
        >>> after_thinking("<think>6 * 7</think>42<|im_end|>")
        '42'
    """
    return without_thought(without_end_tokens(reply))


def without_thought(reply: str) -> str | None:
    """Return what follows the last thought, with end tokens; ``None`` if one is open."""
    for opened, closed in _THOUGHTS.items():
        reply = reply.rpartition(closed)[2]
        if opened in reply:
            return None
    return reply


def without_end_tokens(reply: str) -> str:
    r"""Remove the tokens with which a chat model ends its reply, and a leading byte order mark.

    A batch pads its shorter replies, so there may be thousands of them.

    Example:
        >>> without_end_tokens("It is 42.<|im_end|>\n<|endoftext|>")
        'It is 42.'
    """
    if reply.startswith("\ufeff"):
        reply = reply[1:]
    if ">" not in reply:
        return reply
    end, kept = len(reply.rstrip()), len(reply)
    while end and reply[end - 1] == ">":
        start = reply.rfind("<", max(0, end - _LONGEST_TOKEN), end)
        if start < 0 or not END_TOKEN.fullmatch(reply, start, end):
            break
        end = start
        while end and reply[end - 1].isspace():
            end -= 1
        kept = end
    return reply[:kept]
