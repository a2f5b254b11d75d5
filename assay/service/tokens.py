"""Bearer tokens, compared in constant time."""

from __future__ import annotations

import hashlib
import hmac
import stat
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Self

SHORTEST = 16


class Tokens:
    """The tokens that a server knows; none of them is ever shown.

    Only hashes are kept, and every one is compared each time, in constant time.

    Args:
        tokens: secrets of at least 16 characters. Without any, everybody is let in.

    Raises:
        ValueError: a token is shorter, or holds white space or characters outside ASCII.
    """

    def __init__(self, tokens: Iterable[str] = ()) -> None:
        self._known: list[tuple[bytes, str]] = []
        for place, token in enumerate(tokens, start=1):
            if len(token) < SHORTEST or not token.isascii() or len(token.split()) != 1:
                raise ValueError(
                    f"token {place} must be at least {SHORTEST} ASCII characters without white "
                    "space (it is not shown here); make one with: "
                    "python -c 'import secrets; print(secrets.token_urlsafe(32))'"
                )
            digest = hashlib.sha256(token.encode()).digest()
            self._known.append((digest, f"token-{hashlib.sha256(digest).hexdigest()[:8]}"))

    @classmethod
    def read(cls, path: str | Path) -> Self:
        """Read one token per line, skipping empty lines and lines that begin with ``#``.

        Raises:
            ValueError: there is none, or one cannot be used.
            OSError: the file cannot be read.
        """
        mode = Path(path).stat().st_mode & 0o777
        if mode & stat.S_IROTH:
            warnings.warn(
                f"everybody on this machine can read the tokens in {path} (mode {mode:04o}): "
                f"chmod 600 {path}",
                stacklevel=2,
            )
        lines = (line.strip() for line in Path(path).read_text(encoding="utf-8").splitlines())
        found = [line for line in lines if line and not line.startswith("#")]
        if not found:
            raise ValueError(f"{path} holds no token: write one on a line of its own")
        return cls(found)

    def __len__(self) -> int:
        return len(self._known)

    def __bool__(self) -> bool:
        return bool(self._known)

    def __repr__(self) -> str:
        return f"Tokens({len(self._known)})"

    def name_of(self, header: bytes | None) -> str | None:
        """Return a short name for the token of an ``Authorization`` header, for logs and limits.

        Returns:
            ``None`` if it holds none of the tokens.
        """
        kind, _, token = (header or b"").partition(b" ")
        given = hashlib.sha256(token.strip()).digest()
        name = None
        for digest, known in self._known:
            if hmac.compare_digest(digest, given):
                name = known
        return name if kind.lower() == b"bearer" else None
