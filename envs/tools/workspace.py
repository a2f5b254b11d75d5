"""The files of an episode and their changes, in memory only."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any

from .tool import ToolError

_LONGEST_PATH, _DEEPEST = 200, 8


class Workspace:
    """A small file system in memory, which programs of a sandbox see as files.

    Args:
        files: text or bytes by path, to begin with.
        most_bytes: of all files together, and of all that was written since.
        most_files: how many there may be.

    Attributes:
        files: content by path, as it is now.
        events: what led here, in order, as :mod:`assay.envs.tools.python_runner` does it again:
            ``["write", path, base64]`` and ``["cell", number, code]``.

    Raises:
        ValueError: the files are too many or too large, or a path leads out.
    """

    def __init__(
        self,
        files: Mapping[str, str | bytes] | None = None,
        *,
        most_bytes: int = 1 << 18,
        most_files: int = 100,
    ) -> None:
        if most_bytes < 1 or most_files < 1:
            raise ValueError(
                f"most_bytes and most_files must be at least 1, got {most_bytes} and {most_files}"
            )
        self.most_bytes, self.most_files = most_bytes, most_files
        self.files: dict[str, bytes] = {}
        self.events: list[list[Any]] = []
        for path, content in (files or {}).items():
            try:
                self.write(path, content.encode() if isinstance(content, str) else content)
            except ToolError as error:
                raise ValueError(f"an initial file is refused: {error}") from error

    def read(self, path: str) -> bytes:
        """Return the content of a file.

        Raises:
            ToolError: there is none of this name.
        """
        path = checked_path(path)
        if path not in self.files:
            raise ToolError(f"there is no file {path!r}; list_files names those that there are")
        return self.files[path]

    def write(self, path: str, content: bytes) -> None:
        """Make a file, or replace it.

        Raises:
            ToolError: the path leads out or goes through a file, or there is no room.
        """
        path = checked_path(path)
        for other in self.files:
            if other.startswith(path + "/") or path.startswith(other + "/"):
                raise ToolError(f"{path!r} cannot be a file beside {other!r}")
        if path not in self.files and len(self.files) >= self.most_files:
            raise ToolError(f"there may be at most {self.most_files} files")
        size = sum(map(len, self.files.values())) - len(self.files.get(path, b""))
        if size + len(content) > self.most_bytes:
            raise ToolError(f"files may have at most {self.most_bytes} bytes together")
        self.add(["write", path, base64.b64encode(content).decode()])
        self.files[path] = content

    def add(self, event: list[Any]) -> None:
        """Keep an event. A write takes the place of one of the same file that nobody saw.

        Raises:
            ToolError: more was done than an episode can keep.
        """
        kept = list(self.events)
        if event[0] == "write":
            at = len(kept)
            while at and kept[at - 1][0] != "cell":
                at -= 1
            kept = kept[:at] + [e for e in kept[at:] if e[1] != event[1]]
        if sum(len(str(e[-1])) for e in [*kept, event]) > 4 * self.most_bytes:
            raise ToolError(
                f"cells and files of this session have more than {4 * self.most_bytes} characters"
            )
        self.events = [*kept, event]

    def seen(self, files: Mapping[str, Any]) -> list[str]:
        """Take over the files that a program says there are; the names of those it did not give.

        Args:
            files: base64 by path, as an untrusted program reported it; ``None`` for a file that
                is too large.
        """
        found: dict[str, bytes] = {}
        left_out = []
        for path, content in files.items():
            try:
                data = base64.b64decode(content, validate=True)
                if len(found) == self.most_files or len(data) > self.most_bytes:
                    raise ValueError("too many, or too large")
                found[checked_path(path)] = data
            except (ToolError, TypeError, ValueError):
                left_out.append(path if path.isprintable() else repr(path))
        if sum(map(len, found.values())) > self.most_bytes:
            return [*found, *left_out]
        self.files = found
        return left_out


def checked_path(path: Any) -> str:
    """Normalize a path within the workspace.

    Raises:
        ToolError: it is absolute, leads out, is too long or deep, or holds odd characters.

    Example:
        >>> checked_path("./notes//a.txt")
        'notes/a.txt'
    """
    if not isinstance(path, str) or not path.isprintable() or "\\" in path:
        raise ToolError(f"a path must be printable text with / between folders, got {path!r:.80}")
    if path.startswith(("/", "~")) or ".." in path.split("/"):
        raise ToolError(f"paths are relative to the working directory, got {path!r:.80}")
    parts = [part for part in path.split("/") if part not in ("", ".")]
    if not parts or len(parts) > _DEEPEST or len(path.encode()) > _LONGEST_PATH:
        raise ToolError(
            f"a path must have 1 to {_DEEPEST} parts and at most {_LONGEST_PATH} bytes, "
            f"got {path!r:.80}"
        )
    return "/".join(parts)
