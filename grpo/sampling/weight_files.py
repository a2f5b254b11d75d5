"""Give a server new weights: write them to a folder that it can read, and tell it to load them."""

from __future__ import annotations

import http.client
import json
import os
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from ...sandbox.redaction import redact
from ..model.loading import quiet

_LONGEST = 1 << 20  # bytes of an answer
_OURS = re.compile(r"step-\d{8}(\.partial)?")


class SyncError(RuntimeError):
    """A server did not take the weights: whatever it samples now is another policy's."""


@dataclass(frozen=True, slots=True)
class Call:
    """One request to a server.

    Attributes:
        path: such as ``/load_weights``.
        body: sent as JSON.
        expect: the answer must be a JSON object with these values.
    """

    path: str
    body: Mapping[str, Any]
    expect: Mapping[str, Any] = field(default_factory=dict)


def plain_calls(folder: Path, step: int) -> list[Call]:
    """``POST /load_weights`` with ``path`` and ``step``; the answer must echo ``step``."""
    return [Call("/load_weights", {"path": str(folder), "step": step}, {"step": step})]


def vllm_calls(folder: Path, step: int) -> list[Call]:
    """The requests of a vLLM server (0.15 or later) started with ``VLLM_SERVER_DEV_MODE=1``.

    Its workers read the folder, and it forgets the prompts that it computed with the old
    weights. It has no way to echo a version. Never run by this project against a real vLLM.
    """
    reload = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
    return [Call("/collective_rpc", reload), Call("/reset_prefix_cache", {})]


class WeightFiles:
    """A ``sync`` of :class:`~assay.grpo.ServerPolicy`: a safetensors folder for each step.

    A folder appears under its name when it is whole, and the one before is deleted when the
    server has taken it.

    Args:
        directory: that this process can write, and the server can read, under the same path.
        server: its address, such as ``http://127.0.0.1:8000``.
        calls: the requests, of the folder and the step.
        api_key: sent as a bearer token.
        timeout_s: seconds to wait for each answer.

    Raises:
        ValueError: the address is none.
    """

    def __init__(
        self,
        directory: str | Path,
        server: str,
        *,
        calls: Callable[[Path, int], Sequence[Call]] = plain_calls,
        api_key: str | None = None,
        timeout_s: float = 600.0,
    ) -> None:
        self._address = urlsplit(server)
        if self._address.scheme not in ("http", "https") or not self._address.hostname:
            raise ValueError(
                f"server must be such as 'http://127.0.0.1:8000', got {redact(server)!r}"
            )
        self.directory = Path(directory).absolute()
        self._calls, self._timeout_s = calls, timeout_s
        self._headers = {"Content-Type": "application/json"}
        if api_key is not None:
            self._headers["Authorization"] = f"Bearer {api_key}"

    def __call__(self, model: Any, step: int) -> None:
        """Write the weights of a step, and have the server load them.

        Raises:
            SyncError: the server cannot be reached, refuses, or does not echo what it must.
            ValueError: the model is an adapter, which a server needs merged.
            OSError: the folder cannot be written.
        """
        folder = self._write(model, step)
        for call in self._calls(folder, step):
            self._post(call)
        self._delete_but(folder)

    def _write(self, model: Any, step: int) -> Path:
        if hasattr(model, "peft_config"):
            raise ValueError(
                "WeightFiles writes whole models, got a PEFT adapter: give ServerPolicy a sync of "
                "your own that saves the merged weights, or has the server load the adapter"
            )
        folder = self.directory / f"step-{step:08d}"
        partial = folder.with_name(folder.name + ".partial")
        for left in (partial, folder):
            if left.exists():
                shutil.rmtree(left)
        with quiet():
            model.save_pretrained(partial, safe_serialization=True)
        os.replace(partial, folder)
        return folder

    def _post(self, call: Call) -> None:
        """Send one request. There are no redirects and no proxies: it goes there or it fails."""
        where = redact(f"{self._address.geturl().rstrip('/')}{call.path}")
        secure = self._address.scheme == "https"
        kind = http.client.HTTPSConnection if secure else http.client.HTTPConnection
        connection = kind(str(self._address.hostname), self._address.port, timeout=self._timeout_s)
        try:
            path = self._address.path.rstrip("/") + call.path
            connection.request("POST", path, json.dumps(dict(call.body)), self._headers)
            response = connection.getresponse()
            status, said = response.status, response.read(_LONGEST)
        except (OSError, http.client.HTTPException) as error:
            raise SyncError(
                f"no answer from {where}: {error!r}. Is the server up, and are its development "
                "endpoints on? No reply was sampled"
            ) from error
        finally:
            connection.close()
        text = said.decode(errors="replace")
        if status != 200:
            raise SyncError(
                f"{where} answered {status}: {text[:300]!r}; the weights were not taken"
            )
        if call.expect:
            _require(where, text, call.expect)

    def _delete_but(self, folder: Path) -> None:
        for other in self.directory.iterdir():
            if other != folder and _OURS.fullmatch(other.name):
                shutil.rmtree(other, ignore_errors=True)


def _require(where: str, text: str, expect: Mapping[str, Any]) -> None:
    try:
        answer = json.loads(text)
    except (ValueError, RecursionError):
        answer = None
    for name, wanted in expect.items():
        if not isinstance(answer, dict) or answer.get(name) != wanted:
            raise SyncError(
                f"{where} must answer with {name!r} = {wanted!r}, got {text[:300]!r}: it may hold "
                "other weights"
            )
