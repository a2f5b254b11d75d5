"""A cache of a judge's answers, by the content of the question."""

from __future__ import annotations

import hashlib
import json
import warnings
from pathlib import Path
from typing import Any

from ..atomic_io import write_text
from ..memo import Memo


def content_key(body: dict[str, Any], vote: int) -> str:
    """Hash all that an answer depends on with SHA-256: model, prompt, sampling, form, vote."""
    held = json.dumps([1, body, vote], sort_keys=True)
    return hashlib.sha256(held.encode()).hexdigest()


class AnswerCache:
    """Answer in memory, and in a folder if one is given.

    Each answer is a file, written whole or not at all, so many processes may share the folder. A
    file that cannot be read is a question not yet asked.

    Args:
        folder: made if missing; ``None`` for memory alone.
    """

    def __init__(self, folder: str | None) -> None:
        self.folder = folder
        self._memo: Memo[str, str] = Memo(100_000)
        self._told = False

    def get(self, key: str) -> str | None:
        """Return the judge's cached answer, or ``None``."""
        found = self._memo.get(key)
        if found is not None or self.folder is None:
            return found
        try:
            row = json.loads(self._file(key).read_text("utf-8"))
        except (OSError, ValueError, RecursionError):
            return None
        if not isinstance(row, dict) or row.get("key") != key or type(row.get("answer")) is not str:
            return None
        return self._memo.put(key, row["answer"])

    def put(self, key: str, answer: str, model: str) -> None:
        """Cache an answer. A folder that cannot be written causes one warning."""
        self._memo.put(key, answer)
        if self.folder is None:
            return
        try:
            row = {"key": key, "model": model, "answer": answer}
            write_text(self._file(key), json.dumps(row), sync=False)
        except OSError as error:
            if not self._told:
                self._told = True
                warnings.warn(
                    f"the cache {self.folder!r} cannot be written ({error}): verdicts are kept in "
                    "memory only. Free some space, or give another folder",
                    RuntimeWarning,
                    stacklevel=2,
                )

    def _file(self, key: str) -> Path:
        return Path(str(self.folder)) / key[:2] / f"{key}.json"
