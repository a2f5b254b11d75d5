"""Limits of the service, for one client and for all together, and refusals of what exceeds them."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ..verifiers import Status, Verdict


@dataclass(frozen=True)
class ServiceLimits:
    """Limits of a server. Together they bound its memory, whatever clients do.

    Attributes:
        body_bytes: size of a request's body, or of a WebSocket message.
        under_way_mib: bodies and messages being received, waiting or processed, over all
            connections; more are answered with 503, and a WebSocket is closed with 1013.
        batch: replies, episodes or steps in one request.
        reply_chars: characters of a reply; a longer one gets the lowest score, and no other does.
        episode_chars: characters of a conversation; a longer one is truncated.
        episodes: live episodes, over all clients.
        held_mib: text of all episodes together, at four bytes per character.
        idle_s: seconds until an idle episode or WebSocket is dropped.
        connections: HTTP requests in progress; more are answered with 503.
        sockets: WebSockets.
        token_share: share of ``episodes``, ``held_mib``, ``connections`` and ``sockets`` for one
            token if there are several.
        in_flight: messages of one WebSocket in progress; it is not read beyond that.
        queue: waiting replies; more are answered with 503.
        threads: threads for environments and verifiers.
        request_s: seconds until a request is answered with 504.
        read_s: seconds to receive a body, and to send a response; an idle connection ends after it.

    Raises:
        ValueError: a limit is not above 0, or ``token_share`` is above 1.
    """

    body_bytes: int = 8 * 2**20
    under_way_mib: int = 256
    batch: int = 1024
    reply_chars: int = 200_000
    episode_chars: int = 2_000_000
    episodes: int = 20_000
    held_mib: int = 512
    idle_s: float = 900.0
    connections: int = 4096
    sockets: int = 256
    token_share: float = 0.5
    in_flight: int = 16
    queue: int = 8192
    threads: int = 4
    request_s: float = 300.0
    read_s: float = 30.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            if getattr(self, name) <= 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)!r}")
        if self.token_share > 1:
            raise ValueError(f"token_share must be at most 1, got {self.token_share!r}")


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
        retry = {} if self.retry_s is None else {"retry_s": self.retry_s}
        return {"error": {"code": self.code, "message": self.message, **retry}}

    @property
    def headers(self) -> dict[str, str]:
        """``Retry-After``, in whole seconds, if it may help."""
        return {} if self.retry_s is None else {"retry-after": str(max(1, round(self.retry_s)))}


class InFlightBytes:
    """Bytes of unanswered requests and messages, over all connections.

    Args:
        most: bytes. A request that is larger is let in if it is the only one.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0

    def resize(self, before: int, after: int) -> int:
        """Replace the bytes that one connection holds; return the new number.

        Raises:
            Refused: 503 if that is more than before, and than there is room for.
        """
        others = self.held - before
        if after > before and others and others + after > self.most:
            raise Refused(
                503,
                "bytes",
                f"{others} bytes of requests are under way, and {self.most} may be: come back "
                "later, or send less in one request",
                retry_s=1,
            )
        self.held = others + after
        return after


def too_long(size: int, most: int, what: str, lowest: float) -> Verdict:
    """Return the verdict of a reply of ``size`` ``what`` (the unit), if ``most`` are judged."""
    reason = f"the reply has {size} {what}, and the server judges replies of at most {most}"
    return Verdict.wrong(reason, status=Status.UNPARSEABLE, score=lowest)
