"""Bytes that clients have sent and were not answered: bounded over all connections together."""

from __future__ import annotations

from .refused import Refused


class InFlightBytes:
    """What all connections hold together.

    Args:
        most: bytes. A body, or message, larger than that is let in where it is the only one.

    Attributes:
        bytes: held now.
    """

    def __init__(self, most: int) -> None:
        self.most, self.bytes = most, 0

    def share(self) -> Reservation:
        """What a connection holds: nothing yet."""
        return Reservation(self)


class Reservation:
    """What one connection holds of it; as a context, until the context ends.

    Args:
        all_: of whose it is a share.
    """

    def __init__(self, all_: InFlightBytes) -> None:
        self._all, self.bytes = all_, 0

    def __enter__(self) -> Reservation:
        return self

    def __exit__(self, *_: object) -> None:
        self.hold(0)

    def hold(self, size: int) -> None:
        """Hold so many bytes from now on.

        Raises:
            Refused: that is more than before, and more than there is room for: 503.
        """
        others = self._all.bytes - self.bytes
        if size > self.bytes and others and others + size > self._all.most:
            raise Refused(
                503,
                "bytes",
                f"{others} bytes of requests are under way, and {self._all.most} may be: come "
                "back later, or send less in one request",
                retry_s=1,
            )
        self._all.bytes = others + size
        self.bytes = size
