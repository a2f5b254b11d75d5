"""Bytes of unanswered requests, limited over all connections."""

from __future__ import annotations

from .refused import Refused


class InFlightBytes:
    """Bytes that all connections hold together.

    Args:
        most: bytes. A body, or message, larger than that is let in if it is the only one.

    Attributes:
        held: bytes now.
    """

    def __init__(self, most: int) -> None:
        self.most, self.held = most, 0


class Reservation:
    """Bytes of one connection, until the context ends.

    Args:
        total: what it is a part of.
    """

    def __init__(self, total: InFlightBytes) -> None:
        self._total, self.held = total, 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.resize(0)

    def resize(self, size: int) -> None:
        """Hold so many bytes from now on.

        Raises:
            Refused: 503: that is more than before, and more than there is room for.
        """
        others = self._total.held - self.held
        if size > self.held and others and others + size > self._total.most:
            raise Refused(
                503,
                "bytes",
                f"{others} bytes of requests are under way, and {self._total.most} may be: come "
                "back later, or send less in one request",
                retry_s=1,
            )
        self._total.held = others + size
        self.held = size
