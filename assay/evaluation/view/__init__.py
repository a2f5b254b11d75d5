"""A local web page to look at every reply of a run."""

from __future__ import annotations

from .pages import Pages, open_pages
from .server import ViewServer

__all__ = ["Pages", "ViewServer", "open_pages"]
