"""The former place of :mod:`assay.verifiers.text.fences`; it goes with the next version."""

from __future__ import annotations

import warnings

from .text.fences import Block, fenced_blocks, find_program

__all__ = ["Block", "fenced_blocks", "find_program"]

warnings.warn(
    "assay.verifiers.fenced is now assay.verifiers.text.fences",
    DeprecationWarning,
    stacklevel=2,
)
