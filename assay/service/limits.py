"""Limits of the service, for one client and for all together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields

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
        idle_s: seconds until an idle episode is dropped.
        connections: HTTP requests in progress; more are answered with 503.
        silent: connections that have not sent a request yet, a quarter of them from one address;
            beyond it the oldest are closed.
        sockets: WebSockets.
        token_share: share of ``episodes``, ``held_mib``, ``connections`` and ``sockets`` for one
            token if there are several.
        in_flight: messages of one WebSocket in progress; it is not read beyond that.
        queue: waiting replies; more are answered with 503.
        threads: threads for environments and verifiers.
        request_s: seconds until a request is answered with 504.
        read_s: seconds to receive headers, to receive a body, and to send a response.
        rate: without effect, as ``burst``: a reverse proxy limits rates.
        burst: see ``rate``.

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
    silent: int = 1024
    sockets: int = 256
    token_share: float = 0.5
    in_flight: int = 16
    queue: int = 8192
    threads: int = 4
    request_s: float = 300.0
    read_s: float = 30.0
    rate: float = 0.0
    burst: int = 0

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if field.name in ("rate", "burst"):
                if value:
                    warnings.warn(
                        f"{field.name}={value} has no effect, and will be removed in the next "
                        "version: limit rates in a reverse proxy (nginx: limit_req)",
                        DeprecationWarning,
                        stacklevel=3,
                    )
            elif value <= 0:
                raise ValueError(f"{field.name} must be above 0, got {value!r}")
        if self.token_share > 1:
            raise ValueError(f"token_share must be at most 1, got {self.token_share!r}")


def too_long(size: int, most: int, what: str, lowest: float) -> Verdict:
    """Return the verdict of a reply that exceeds a limit of the server or of a request.

    Args:
        size: size of the reply.
        most: the limit.
        what: the unit.
        lowest: the lowest score of the environment.
    """
    reason = f"the reply has {size} {what}, and the server judges replies of at most {most}"
    return Verdict.wrong(reason, status=Status.UNPARSEABLE, score=lowest)
