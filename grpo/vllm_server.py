"""Start and stop a ``vllm serve``, and name what can go wrong with any server."""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import httpx
from torch.distributed.elastic.utils.distributed import get_free_port

_LORA_RANKS = (1, 8, 16, 32, 64, 128, 256, 320, 512)  # that vLLM takes
# Run the server, and end its process group when it ends or when our end of stdin closes.
_GUARD = (
    'exec 3<&0; "$@" </dev/null 3<&- & server=$!; '
    '{ cat <&3 >/dev/null; kill "$server" 2>/dev/null; sleep 10; kill -9 0; } & '
    'exec 3<&-; wait "$server"; kill -9 0'
)


class ServerError(RuntimeError):
    """A server failed, refused, or answered what no reply can be made of; nothing was judged."""


class ServerLost(ServerError):
    """A server does not answer, or not with the weights it was given."""


class VLLMServer:
    """A ``vllm serve`` in a process group of its own that ends with this process.

    Args:
        model: directory or hub name.
        log: file to which the server's output is appended.
        executable: vLLM's command.
        port: 0 chooses a free one.
        dtype: of weights and computation, such as ``bfloat16``.
        max_model_len: most tokens of a prompt and its reply; by default the model's own limit.
        lora_rank: serve adapters up to this rank; 0 serves none.
        options: more options of ``vllm serve``.
        env: more environment variables.
        start_s: seconds that a start may take.
    """

    def __init__(
        self,
        model: str | Path,
        log: str | Path,
        *,
        executable: str = "vllm",
        port: int = 0,
        dtype: str = "auto",
        max_model_len: int | None = None,
        lora_rank: int = 0,
        options: Sequence[str] = (),
        env: Mapping[str, str] | None = None,
        start_s: float = 1800.0,
    ) -> None:
        self.log, self.start_s = Path(log), start_s
        port = port or get_free_port()  # type: ignore[no-untyped-call]  # torch
        self.url = f"http://127.0.0.1:{port}"
        given: dict[str, object] = {"host": "127.0.0.1", "port": port, "dtype": dtype}
        given |= {"logprobs-mode": "processed_logprobs", "generation-config": "vllm"}
        if max_model_len:
            given["max-model-len"] = max_model_len
        if lora_rank:  # two adapters: replies of the step before may still be under way
            rank = next(r for r in _LORA_RANKS if r >= lora_rank)
            given |= {"max-lora-rank": rank, "max-loras": 2, "max-cpu-loras": 2}
        self._command = [executable, "serve", str(model)]
        self._command += [f"--{name}={value}" for name, value in given.items()]
        self._command += ["--enable-lora"] * bool(lora_rank) + list(options)
        self._env = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
        self._env |= {"VLLM_NO_USAGE_STATS": "1", **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None
        self._said = 0  # bytes of the log before this start

    def __enter__(self) -> VLLMServer:
        """Start the server, and wait until it answers; stop it if that fails."""
        try:
            self.ensure()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ensure(self) -> None:
        """Start the server if it is not running, and wait until it answers.

        Raises:
            ServerError: it ended, or is not ready in time; the message quotes its log.
        """
        if self.process is not None and self.process.poll() is not None:
            self.stop()
        if self.process is None:
            require_executable(self._command[0])
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                self._said = log.tell()
                self.process = subprocess.Popen(
                    ["/bin/sh", "-c", _GUARD, "sh", *self._command],
                    stdin=subprocess.PIPE,
                    stdout=log,
                    stderr=log,
                    env=os.environ | self._env,
                    start_new_session=True,
                )
        until = time.monotonic() + self.start_s
        while not healthy(self.url):
            ended = self.process.poll() is not None
            if ended or time.monotonic() > until:
                with self.log.open(errors="replace") as log:
                    log.seek(self._said)
                    said = log.read().splitlines()
                # The first is the cause; those of the processes above it refer to it.
                cause = re.compile(r"(?:[^\]]*\] )? *(\w*Error: .+|Value error, .+)")
                found = map(cause.match, said)
                why = next((x[1] for x in found if x), "".join(said[-1:]))
                what = "ended" if ended else f"was not ready in {self.start_s:.0f} s"
                raise ServerError(f"vLLM {what}: {why.strip()[:300]} (see {self.log})")
            time.sleep(0.2)

    def stop(self) -> None:
        """End the server and all that it started."""
        if self.process is None:
            return
        cast(Any, self.process.stdin).close()  # asks the guard to end it
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None


def require_executable(name: str) -> None:
    """Raise ServerError if vLLM's command is missing."""
    if shutil.which(name) is None:
        raise ServerError(f"there is no {name!r}: pip install vllm, or name its executable")


def healthy(url: str) -> bool:
    """Return whether a server answers."""
    try:
        return httpx.get(f"{url}/health", timeout=10, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False
