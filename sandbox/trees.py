"""Folders that untrusted programs wrote: deeper than Python's own functions, which recurse, go."""

from __future__ import annotations

import subprocess
from pathlib import Path


def remove_tree(folder: str | Path) -> None:
    """Remove a folder and all in it as far as it can be; do nothing if there is none."""
    subprocess.run(["rm", "-rf", "--", folder], stderr=subprocess.DEVNULL, check=False)


def count_files(folder: str | Path) -> int:
    """Count the files and folders in a folder; 0 if it is another machine's or not ours to read."""
    found = subprocess.run(
        ["find", folder, "-mindepth", "1", "-printf", "."],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    return len(found.stdout)
