"""How much one client, and all of them, may ask of a server."""

from __future__ import annotations

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
        connections: HTTP connections at one time; those above it are told 503.
        sockets: WebSockets at one time.
        in_flight: messages of one WebSocket that are being answered; it is not read meanwhile.
        queue: replies that wait to be judged or answered; more are told 503.
        threads: for environments and verifiers.
        request_s: a request that takes longer is told 504.
        read_s: for a request's headers, for its body or a WebSocket message to be complete, and for
            a client to read its answer.
        rate: requests and WebSocket messages a second of one token (of one address where there
            are no tokens); 0 for no limit.
        burst: how many may come at once before ``rate`` counts.

    Raises:
        ValueError: a limit is not above 0; ``rate`` may be 0.
    """

    body_bytes: int = 8 * 2**20
    under_way_mib: int = 256
    batch: int = 1024
    reply_chars: int = 200_000
    episode_chars: int = 2_000_000
    episodes: int = 20_000
    held_mib: int = 512
    idle_s: float = 900.0
    connections: int = 512
    sockets: int = 256
    in_flight: int = 16
    queue: int = 8192
    threads: int = 4
    request_s: float = 300.0
    read_s: float = 30.0
    rate: float = 1000.0
    burst: int = 2000

    def __post_init__(self) -> None:
        for field in fields(self):
            value = getattr(self, field.name)
            if value <= 0 and not (field.name == "rate" and value == 0):
                raise ValueError(f"{field.name} must be above 0, got {value!r}")


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
