"""Refusals of requests, with their reasons."""

from __future__ import annotations

from typing import Any


class Refused(Exception):
    """A request that is not answered; never a verdict.

    Args:
        status: HTTP's.
        code: one word for programs.
        message: what was expected, what came, what to do.
        retry_s: when to try again, if that may help.
    """

    def __init__(
        self, status: int, code: str, message: str, *, retry_s: float | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.code, self.message, self.retry_s = status, code, message, retry_s

    def to_json(self) -> dict[str, Any]:
        """Return the body of the answer."""
        error: dict[str, Any] = {"code": self.code, "message": self.message}
        if self.retry_s is not None:
            error["retry_s"] = self.retry_s
        return {"error": error}

    @property
    def headers(self) -> dict[str, str]:
        """``Retry-After``, in whole seconds, if it may help."""
        return {} if self.retry_s is None else {"retry-after": str(max(1, round(self.retry_s)))}
