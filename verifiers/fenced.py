"""Fenced blocks under the name by which other packages import them."""

from __future__ import annotations

from .text.fences import Block, fenced_blocks, find_program

__all__ = ["Block", "fenced_blocks", "find_program"]
