"""The learner: group-relative advantages, clipped losses, and the loop around them."""

from __future__ import annotations

__all__: list[str] = []
