"""Limit the size of a server's response while it is read."""

from __future__ import annotations

from collections.abc import AsyncIterator
from functools import cache
from typing import Any

LONGEST = 16 << 20
"""Bytes of an answer; words for a hundred thousand tokens take less than a tenth of them."""

HEADERS = {"Accept-Encoding": "identity"}
"""What to ask with: the length of a compressed answer says nothing of what it unpacks to."""


class Unbounded(Exception):
    """An answer is compressed or too long."""


async def refuse_long_response(response: Any) -> None:
    """Raise on a response that is too long, as a hook of the client.

    Raises:
        Unbounded: it is compressed, though nobody asked for that.
    """
    coding = response.headers.get("content-encoding", "")
    if coding.strip().lower() not in ("", "identity"):
        raise Unbounded(f"the answer is compressed ({coding:.40}), which was not requested")
    kind: Any = type(response.stream)
    response.stream = _bounded(kind)(response.stream)


@cache
def _bounded(kind: Any) -> Any:
    """Wrap a stream class to raise once it is too long.

    The client takes only streams of its own library, which is httpx or a successor of it, by the
    version of openai: so the class is made from what is there.
    """

    class Bounded(kind):  # type: ignore[misc]  # a class that is known only when it runs
        def __init__(self, stream: Any) -> None:
            self._held = stream

        async def __aiter__(self) -> AsyncIterator[bytes]:
            read = 0
            async for piece in self._held:
                read += len(piece)
                if read > LONGEST:
                    raise Unbounded(f"the answer is longer than {LONGEST >> 20} MiB")
                yield piece

        async def aclose(self) -> None:
            await self._held.aclose()

    return Bounded
