"""Limits of the service, for one client and for all together."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, fields

from ..verifiers import Status, Verdict


@dataclass(frozen=True)
class ServiceLimits:
    """Every bound of a server. Together they bound its memory, whatever clients do.

    Attributes:
        body_bytes: of one request's body, or of one WebSocket message.
        under_way_mib: bodies and messages that are coming in, wait or are being answered, over all
            connections; more are told 503, and a WebSocket is closed with 1013.
        batch: replies, episodes or steps in one request.
        reply_chars: of one reply; a longer one gets the lowest score, and spoils no other.
        episode_chars: of one episode's conversation; one that grows past it is cut off there.
        episodes: held at one time, over all clients.
        held_mib: text of all episodes together, at four bytes a character.
        idle_s: an episode that nobody has touched for so long is forgotten.
        connections: HTTP requests under way at one time; those above it are told 503.
        silent: connections that have not sent a request yet, a quarter of them from one address;
            of more the oldest are closed.
        sockets: WebSockets at one time.
        token_share: of ``episodes``, ``held_mib``, ``connections`` and ``sockets``, which one token
            may take if there are several.
        in_flight: messages of one WebSocket that are being answered; it is not read meanwhile.
        queue: replies that wait to be judged or answered; more are told 503.
        threads: for environments and verifiers.
        request_s: a request that takes longer is told 504.
        read_s: for a request's headers and for its body to be complete, and for a client to read.
        rate: has no effect any more, as ``burst``: a reverse proxy limits rates.
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
    """Return the verdict of a reply that is longer than a server judges, whoever finds that out.

    Args:
        size: of the reply.
        most: of a reply that is judged.
        what: is counted.
        lowest: of the scores that the server gives.
    """
    reason = f"the reply has {size} {what}, and the server judges replies of at most {most}"
    return Verdict.wrong(reason, status=Status.UNPARSEABLE, score=lowest)
