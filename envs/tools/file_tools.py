"""Tools to read and write the files of an episode."""

from __future__ import annotations

from .tool import ToolError, Toolset
from .workspace import Workspace


class FileTools(Toolset):
    """``write_file``, ``read_file``, ``list_files`` and ``edit_file`` over a workspace.

    Args:
        workspace: the files; by default none. A PythonTool that is given the
            same one sees the same files.
    """

    def __init__(self, workspace: Workspace | None = None) -> None:
        self.workspace = workspace or Workspace()

    def write_file(self, path: str, content: str) -> str:
        """Write a text file. One that is there already is replaced.

        Args:
            path: Where, relative to the working directory.
            content: The whole text.
        """
        data = _encoded(content)
        self.workspace.write(path, data)
        return f"wrote {len(data)} bytes"

    def read_file(self, path: str, first_line: int = 1, lines: int = 200) -> str:
        """Read lines of a text file.

        Args:
            path: Which file, relative to the working directory.
            first_line: Number of the first line to read, from 1.
            lines: How many lines to read.
        """
        if first_line < 1 or lines < 1:
            raise ToolError("first_line and lines must be at least 1")
        found = self.workspace.read(path).decode(errors="replace").splitlines(keepends=True)
        part = found[first_line - 1 : first_line - 1 + lines]
        more = len(found) - (first_line - 1) - len(part)
        left = f"\n[{more} more lines]" if more > 0 else ""
        return "".join(part) + left if part else f"[no such lines: the file has {len(found)}]"

    def list_files(self) -> str:
        """List all files, with their size in bytes."""
        files = self.workspace.files
        return "\n".join(f"{path}  {len(files[path])}" for path in sorted(files)) or "[no files]"

    def edit_file(self, path: str, old: str, new: str) -> str:
        """Replace one piece of a text file by another.

        Args:
            path: Which file, relative to the working directory.
            old: The piece to replace, exactly as it stands there, and only once.
            new: What to put in its place.
        """
        before, piece = self.workspace.read(path), _encoded(old)
        times = before.count(piece) if piece else 0
        if times != 1:
            raise ToolError(
                f"'old' must stand in {path} exactly once, and it stands there {times} times"
                if piece
                else "'old' must not be empty"
            )
        self.workspace.write(path, before.replace(piece, _encoded(new)))
        return "edited"


def _encoded(text: str) -> bytes:
    try:
        return text.encode()
    except UnicodeEncodeError as error:
        raise ToolError("the text holds half of a surrogate pair") from error
