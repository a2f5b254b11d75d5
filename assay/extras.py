"""Packages that only some commands need."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .sandbox.extras import missing_package


@contextmanager
def needing(user: str, extra: str) -> Iterator[None]:
    """Name the command that installs an extra, if an import within fails.

    Raises:
        ImportError: it does.
    """
    try:
        yield
    except ImportError as error:
        raise missing_package(user, extra, error) from error
