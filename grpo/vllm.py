"""Generation by vLLM: start a server, give it each step's weights, sample from it.

Weights reach the server by one of four routes (``VLLMPolicy.route``):

* ``folder``: a checkpoint that the server's ``reload_weights`` reads. Works on every device.
* ``adapter``: a LoRA adapter under a name of its own for each step. Chosen for models with peft.
* ``nccl``, ``ipc``: vLLM's weight transfer between GPUs, or within one. Both need CUDA, on which
  this project never ran them.

A checkpoint holds the output matrix under its own name even if it is tied to the embedding. vLLM
packs a second copy of it on a CPU, and reloading the embedding alone leaves that copy as it was.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import signal
import socket
import subprocess
import threading
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal

import httpx
import torch
from torch import Tensor

from ..envs import Completion, Conversation
from ..sandbox.redaction import redact
from .model.loading import quiet
from .sampling.draw import Distribution
from .sampling.policy import eos_ids
from .sampling.prompts import encode_all
from .sampling.random_numbers import derive_seed
from .sampling.stop import StopStrings

_log = logging.getLogger(__name__)
_START = "start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs"
# The server ends if its output or this process does, however that ends: its input closes then.
_GUARD = (
    'exec 3<&0; "$@" </dev/null 3<&- & server=$!; '
    '{ cat <&3 >/dev/null; kill "$server" 2>/dev/null; sleep 10; kill -9 0; } & '
    'exec 3<&-; wait "$server"; kill -9 0'
)


class ServerError(RuntimeError):
    """A server failed, refused, or answered what no reply can be made of; nothing was judged."""


class ServerLost(ServerError):
    """A server does not answer, or not with the weights it was given."""


@dataclass(frozen=True, slots=True)
class ServedCompletion(Completion):
    """A completion that knows its weights.

    Attributes:
        step: of the weights when the request went out; tokens after a sync are of newer ones.
    """

    step: int = 0


class VLLMServer:
    """A ``vllm serve`` in a process group of its own that ends with this process.

    Args:
        model: directory or hub name, as ``vllm serve`` takes it.
        log: file to which its output is appended.
        executable: vLLM's command.
        port: 0 chooses a free one.
        dtype: of weights and computation, such as ``bfloat16``.
        max_model_len: most tokens of a prompt and its reply; the model's own limit by default.
        lora_rank: serve adapters up to this rank; 0 serves none.
        options: more options of ``vllm serve``, such as ``("--enable-sleep-mode",)``.
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
        self.url = f"http://127.0.0.1:{port or _free_port()}"
        self._command = [executable, "serve", str(model), "--host", "127.0.0.1"]
        self._command += ["--port", self.url.rpartition(":")[2], "--dtype", dtype]
        self._command += ["--logprobs-mode", "processed_logprobs", "--generation-config", "vllm"]
        if max_model_len:
            self._command += ["--max-model-len", str(max_model_len)]
        if lora_rank:  # two: replies of the step before may still be under way
            self._command += ["--enable-lora", "--max-loras", "2", "--max-cpu-loras", "2"]
            self._command += ["--max-lora-rank", str(lora_rank)]
        self._command += options
        self._env = {"VLLM_SERVER_DEV_MODE": "1", "VLLM_ALLOW_RUNTIME_LORA_UPDATING": "1"}
        self._env |= {"VLLM_NO_USAGE_STATS": "1", **(env or {})}
        self.process: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> VLLMServer:
        """Start the server and wait until it answers.

        Raises:
            ServerError: it ended, or is not ready in time; the message quotes its log.
        """
        try:
            self.ensure()
        except BaseException:
            self.stop()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def ensure(self) -> None:
        """Start the server if it is not running, and wait until it answers."""
        if self.process is None or self.process.poll() is not None:
            self.log.parent.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab") as log:
                try:
                    self.process = _guarded(self._command, {**os.environ, **self._env}, log)
                except OSError as error:
                    raise ServerError(f"cannot start {self._command[0]!r}: {error}") from error
        until = time.monotonic() + self.start_s
        while not _healthy(self.url):
            ended = self.process.poll() is not None
            if ended or time.monotonic() > until:
                self.stop()
                said = self.log.read_text(errors="replace").splitlines()
                why = next((x for x in reversed(said) if "Error" in x), "".join(said[-1:]))
                what = "ended" if ended else f"was not ready in {self.start_s:.0f} s"
                raise ServerError(f"vLLM {what}: {why.strip()[-300:]} (see {self.log})")
            time.sleep(0.2)

    def stop(self) -> None:
        """End the server and all that it started."""
        if self.process is None:
            return
        if self.process.stdin is not None:
            self.process.stdin.close()  # the guard asks it to end
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        self.process = None


class VLLMPolicy:
    """Samples replies from a vLLM server, with the weights of a model in training.

    Prompts go out as token ids, and ids come back with the log-probabilities of the distribution
    they were drawn from; nothing is tokenized again. A server that is lost in mid-run is started
    again (a :class:`VLLMServer`) or waited for (an address), given the last weights, and asked
    again with the same seeds. One thread may sample while another calls :meth:`sync`.

    Args:
        tokenizer: the model's.
        server: a running server, or its address such as ``http://127.0.0.1:8000``.
        max_new_tokens: tokens after which a reply is cut off.
        eos_ids: tokens that end a reply; by default the tokenizer's, and from the first
            :meth:`sync` on those of the model's generation config too.
        temperature: divides the logits; 0 takes the most likely token.
        top_k: for evaluation only, as the next two; see ``Distribution``.
        min_p: likewise.
        top_p: likewise.
        stop: texts that end a reply.
        seed: of the first calls.
        route: how weights get there, see this module; by default ``adapter`` or ``folder``.
        directory: for checkpoints, readable by the server under the same path.
        check: before the first step, change every trained tensor, and require that the server's
            log-probabilities change as the model's do.
        concurrency: requests under way at a time.
        timeout_s: of a request.
        patience_s: seconds to wait for a lost server.
        api_key_env: environment variable with the server's key.

    Raises:
        ValueError: a setting is out of its range.
    """

    def __init__(
        self,
        tokenizer: Any,
        server: VLLMServer | str,
        *,
        max_new_tokens: int,
        eos_ids: Sequence[int] | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        route: Literal["folder", "adapter", "nccl", "ipc"] | None = None,
        directory: str | Path = "/dev/shm",  # noqa: S108  # a folder of our own is made there
        check: bool = True,
        concurrency: int = 256,
        timeout_s: float = 600.0,
        patience_s: float = 600.0,
        api_key_env: str | None = None,
    ) -> None:
        if max_new_tokens < 1 or concurrency < 1:
            raise ValueError(
                "max_new_tokens and concurrency must be at least 1, "
                f"got {max_new_tokens} and {concurrency}"
            )
        self.tokenizer, self.server, self.max_new_tokens = tokenizer, server, max_new_tokens
        self.distribution = Distribution(
            temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p
        )
        self.stop = StopStrings(tokenizer, stop)
        self.eos_ids = tuple([tokenizer.eos_token_id] if eos_ids is None else eos_ids)
        self._eos_given = eos_ids is not None
        url = server.url if isinstance(server, VLLMServer) else server
        url = url.rstrip("/").removesuffix("/v1")
        key = os.environ.get(api_key_env, "").strip() if api_key_env else None
        if key == "":
            raise ValueError(f"the environment variable {api_key_env} holds no API key")
        limits = httpx.Limits(max_connections=concurrency + 4)  # sync must not wait for replies
        headers = {"Authorization": f"Bearer {key}"} if key else None
        try:
            self._http = httpx.Client(
                base_url=url, headers=headers, timeout=timeout_s, limits=limits, trust_env=False
            )
            good = httpx.URL(url).scheme in ("http", "https")
        except httpx.InvalidURL:
            good = False
        if not good:
            raise ValueError(f"server must be such as 'http://127.0.0.1:8000', got {redact(url)!r}")
        self._shown = redact(url)
        self.route, self._check, self._patience_s = route, check, patience_s
        self._concurrency = concurrency
        self._run = uuid.uuid4().hex[:8]  # tells this policy's weights from any others
        self.directory = Path(directory).absolute() / f"assay-weights-{self._run}"
        self._lock = threading.RLock()
        self._transfer: Any = None
        self._name, self._longest, self._dtype = "", 0, torch.float32
        self._vocabulary = len(tokenizer)
        self._syncs, self._label, self._asleep = 0, "", 0
        self._held: tuple[int, list[float]] | None = None
        self.step = 0
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        """Start a new stream of random numbers, at row 0."""
        self._seed, self._row = seed, 0

    def close(self) -> None:
        """Delete the checkpoints, and close the connections."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self._http.close()

    # Sampling

    def __call__(self, conversations: Sequence[Conversation], /) -> list[Completion]:
        """Answer each conversation."""
        return self.extend(conversations, [()] * len(conversations))

    def extend(
        self, conversations: Sequence[Conversation], prefixes: Sequence[Sequence[int]], /
    ) -> list[Completion]:
        """Answer each conversation, going on from the tokens of its earlier turns.

        Args:
            conversations: what was said so far.
            prefixes: for each, all tokens up to the end of the policy's last turn; empty before
                its first.

        Raises:
            ServerError: the server refuses, stays away, or an answer is off. The whole call
                fails then: no reply is lost silently.
        """
        prompts = encode_all(self.tokenizer, conversations, prefixes)
        rows = range(self._row, self._row + len(prompts))
        self._row += len(prompts)
        if not self._name:
            self._meet()
        longest = max(map(len, prompts), default=0)
        if self._longest and longest + self.max_new_tokens > self._longest:
            raise ServerError(
                f"a prompt of {longest} tokens and a reply of {self.max_new_tokens} do not fit "
                f"the server's {self._longest}: start it with --max-model-len "
                f"{longest + self.max_new_tokens}, or drop long prompts"
            )
        for attempt in range(4):
            try:
                pool = ThreadPoolExecutor(min(self._concurrency, max(1, len(prompts))))
                try:
                    found: list[Completion] = list(pool.map(self._answer, prompts, rows))
                finally:
                    pool.shutdown(cancel_futures=True)
                self._require_weights()  # a server that was restarted has its first ones
                return found
            except ServerLost as error:
                if attempt == 3:
                    raise
                self._recover(error)
        raise AssertionError

    def _answer(self, prompt: list[int], row: int) -> ServedCompletion:
        d, step = self.distribution, self.step
        body = {
            "model": self._adapter or self._name,
            "prompt": prompt,
            "max_tokens": self.max_new_tokens,
            "seed": derive_seed(self._seed, row),
            "temperature": d.temperature,
            # All are named: a server may have others for its defaults, from the model's files.
            "top_p": d.top_p,
            "top_k": d.top_k,
            "min_p": d.min_p,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "stop_token_ids": list(self.eos_ids),
            "stop": list(self.stop.strings),
            "include_stop_str_in_output": True,
            "return_token_ids": True,
            "logprobs": 0,
        }
        choice = self._only_choice(self._post("/v1/completions", body))
        if choice.get("prompt_token_ids") not in (None, prompt):
            raise ServerError("the server was given other tokens than it says: it cuts prompts")
        ids = choice.get("token_ids")
        if not isinstance(ids, list) or not all(type(i) is int for i in ids):
            raise ServerError("the server gave no token ids: it must know return_token_ids")
        # Of a vocabulary padded beyond the tokenizer: the loss knows these ids, text has none.
        if not 1 <= len(ids) <= self.max_new_tokens or not 0 <= min(ids) <= max(ids) < (
            self._vocabulary
        ):
            raise ServerError(
                f"a reply must have 1 to {self.max_new_tokens} tokens below {self._vocabulary}, "
                f"got {str(ids)[:80]}: serve this tokenizer's model"
            )
        logprobs = _logprobs(choice, len(ids))
        if d.temperature == 0:
            logprobs = [0.0] * len(ids)  # as the policy that takes the most likely token has them
        known = [i for i in ids if i < len(self.tokenizer)]
        text = self.tokenizer.decode(known, skip_special_tokens=True)
        finish = self._finish(choice, ids)
        return ServedCompletion(text, finish, tuple(prompt), tuple(ids), tuple(logprobs), step)

    def _finish(self, choice: dict[str, Any], ids: list[int]) -> Any:
        finish = choice.get("finish_reason")
        if finish == "abort":
            raise ServerLost("the server aborted a request")
        if finish not in ("stop", "length"):
            raise ServerError(f"a reply must finish by 'stop' or 'length', got {finish!r}")
        if finish == "stop" and ids[-1] not in self.eos_ids and not self.stop.complete(ids):
            raise ServerError(
                f"the server ended a reply at token {ids[-1]}, which is not in eos_ids "
                f"{self.eos_ids} and completes no stop string: pass eos_ids with every token that "
                "the server ends at, or start it with --generation-config vllm"
            )
        return finish

    def _only_choice(self, answer: Any) -> dict[str, Any]:
        try:
            (choice,) = answer["choices"]
        except (ValueError, KeyError, TypeError) as error:
            raise ServerError(
                f"the server's answer holds no one choice: {answer!r:.200}"
            ) from error
        found: dict[str, Any] = choice
        return found

    # Weights

    @property
    def _adapter(self) -> str:
        return self._label if self.route == "adapter" else ""

    def sync(self, model: Any, step: int) -> None:
        """Give the server the model's weights, unless it has these.

        In a run of several processes all must call it: tensors are gathered, the first process
        sends them, and what fails there raises everywhere.

        Raises:
            ServerError: the server is another model's, lacks what this needs, or stays away.
            OSError: the checkpoint cannot be written, as the disk is full; the server keeps the
                weights it has.
        """
        with self._lock:
            held = (step, _fingerprint(model))  # of a second run, the steps may be the same
            if held == self._held:
                return
            first = not self._syncs
            if first:
                self._meet(model)
            self._held = None
            self._send(model, step)
            if first and self._check and _world() == 1:
                self._require_effects(model, step)
            self._held = held

    def _send(self, model: Any, step: int) -> None:
        """Send the weights, and wait for a server that is lost meanwhile."""
        self._syncs += 1
        label, error = f"{self._run}-{self._syncs}-{step}", None
        if self.route in ("folder", "adapter"):
            tensors = _gathered(model, self.route == "adapter", self._dtype)
            try:
                if _rank() == 0:
                    self._write(model, tensors, self.directory / label)
                    self._label, before = label, self._label
                    self._load()
                    self._forget(before)
            except Exception as caught:
                error = caught
        else:
            self._exchange(self._transferred, model, label)
        failures: list[str | None] = [None if error is None else str(error)]
        if _world() > 1:
            torch.distributed.broadcast_object_list(failures, src=0)
        if error is not None:
            raise error
        if failures[0] is not None:
            raise ServerError(f"the first process could not send weights: {failures[0]}")
        self._label, self.step = label, step

    def _write(self, model: Any, tensors: dict[str, Tensor], folder: Path) -> None:
        """Write a checkpoint; a folder that is there is whole."""
        partial = folder.with_name(folder.name + ".partial")
        try:
            partial.mkdir(parents=True, mode=0o755)
            with quiet():
                model.save_pretrained(partial, state_dict=tensors)
            partial.replace(folder)
        except Exception as error:
            shutil.rmtree(partial, ignore_errors=True)
            if isinstance(error, OSError) or "No space left" in str(error):
                raise OSError(
                    f"cannot write weights to {str(folder)!r}: {error}. Nothing is lost: make "
                    "room, or give another directory, and resume"
                ) from error
            raise

    def _load(self) -> None:
        """Have the server load the newest checkpoint; if it is lost, wait for it and repeat."""
        for attempt in range(4):
            try:
                if self.route == "adapter":
                    body = {"lora_name": self._label, "lora_path": str(self._folder)}
                    self._post("/v1/load_lora_adapter", body)
                else:
                    self._exchange(self._reload, self._label)
                return
            except ServerLost as error:
                if attempt == 3:
                    raise
                self._wait(error)

    @property
    def _folder(self) -> Path:
        return self.directory / self._label

    def _reload(self) -> None:
        call = {"method": "reload_weights", "kwargs": {"weights_path": str(self._folder)}}
        self._post("/collective_rpc", call)

    def _exchange(self, send: Any, *of: Any) -> None:
        """Exchange weights between two tokens; requests under way go on with the new ones."""
        label = of[-1]
        if self._asleep:
            tags = {"tags": "weights"} if self._asleep == 2 else {}
            self._post("/wake_up", params=tags)
        self._post("/pause", params={"mode": "keep"})
        send(*of[:-1])
        # Keys and values of the old weights are computed again, those of running requests too.
        cleared = self._post("/reset_prefix_cache", params={"reset_running_requests": "true"})
        if cleared != {"success": True}:
            raise ServerError(f"the server kept its prefix cache: {cleared!r:.200}")
        self._post("/update_weight_version", {"new_version": label})
        if self._asleep == 2:
            self._post("/wake_up", params={"tags": "kv_cache"})
        self._asleep = 0
        self._post("/resume")

    def _transferred(self, model: Any) -> None:
        """Send tensors by vLLM's own trainer engine. Needs CUDA; never run by this project."""
        try:
            from vllm.distributed.weight_transfer import (  # type: ignore[import-not-found]
                WeightTransferTrainerFactory,
            )
            from vllm.distributed.weight_transfer.base import (  # type: ignore[import-not-found]
                ModuleSource,
            )
            from vllm.distributed.weight_transfer.clients import (  # type: ignore[import-not-found]
                HTTPVLLMWeightSyncClient,
            )
        except ImportError as error:
            raise ServerError(
                f"route {self.route!r} needs vllm in this environment too: pip install vllm, or "
                "take route='folder'"
            ) from error
        if self._transfer is None:
            workers = self._get("/get_world_size")["world_size"]
            if self.route == "nccl":
                from vllm.distributed.weight_transfer.nccl_common import (  # type: ignore[import-not-found]
                    NCCLTrainerInitInfo,
                )

                info = NCCLTrainerInitInfo(
                    master_address=socket.gethostbyname(socket.gethostname()),
                    master_port=_free_port(),
                    world_size=workers + 1,
                    rank=_rank(),
                )
            else:
                from vllm.distributed.weight_transfer.ipc_engine import (  # type: ignore[import-not-found]
                    IPCTrainerInitInfo,
                )

                info = IPCTrainerInitInfo(rank=_rank())
            self._transfer = WeightTransferTrainerFactory.trainer_init(
                info,
                client=HTTPVLLMWeightSyncClient(str(self._http.base_url)),
                source=ModuleSource(model),
            )
        self._transfer.send_weights()

    def sleep(self, level: Literal[1, 2] = 1) -> None:
        """Free the server's GPU memory until the next :meth:`sync`, on a GPU that both use.

        Level 1 keeps the weights in host memory, level 2 drops them. Needs a server started with
        ``--enable-sleep-mode``, and CUDA; never run by this project.
        """
        with self._lock:
            self._post("/sleep", params={"level": level, "mode": "wait"})
            self._asleep, self._held = level, None

    def _forget(self, before: str) -> None:
        """Drop the checkpoints and the adapters of the steps before the last two."""
        if not self.directory.is_dir():
            return
        for old in self.directory.iterdir():
            if old.name in (self._label, before):
                continue
            if self.route == "adapter":
                try:
                    self._post("/v1/unload_lora_adapter", {"lora_name": old.name})
                except ServerError as error:  # a server that was restarted never had it
                    _log.debug("adapter %s was not unloaded: %s", old.name, error)
            shutil.rmtree(old, ignore_errors=True)

    def _require_weights(self) -> None:
        """Require that the server has the weights it was given last."""
        if not self._label:
            return
        with self._lock:  # not in the middle of a sync
            if self.route == "adapter":
                has = {m["id"] for m in self._get("/v1/models")["data"]}
                good = self._label in has
            else:
                good = self._get("/weight_info") == {"weight_version": self._label}
        if not good:
            raise ServerLost(f"{self._shown} lost the weights it was given: it was restarted")

    def _recover(self, error: ServerLost) -> None:
        """Wait for a lost server, and give it the last weights."""
        with self._lock:
            self._wait(error)
            if not self._label:
                return
            if self.route not in ("folder", "adapter"):
                raise ServerError(f"{error}; by {self.route} only a new run can go on") from error
            try:
                self._require_weights()
            except ServerLost:
                self._load()

    def _wait(self, error: ServerLost) -> None:
        """Wait until a lost server answers; one of our own is started again."""
        _log.warning("%s: waiting for the server", error)
        if isinstance(self.server, VLLMServer):
            if not _healthy(self.server.url):
                self.server.stop()
            self.server.ensure()
            return
        until = time.monotonic() + self._patience_s
        while not _healthy(str(self._http.base_url).rstrip("/")):
            if time.monotonic() > until:
                raise ServerError(
                    f"{error}; {self._shown} stayed away for {self._patience_s:.0f} s. Nothing is "
                    f"lost: {_START}, and resume"
                ) from error
            time.sleep(0.5)

    # At the start

    def _meet(self, model: Any = None) -> None:
        """Find out what is served, and refuse what cannot work."""
        try:
            (served, *_) = (m for m in self._get("/v1/models")["data"] if not m.get("parent"))
        except ServerLost as error:
            raise ServerError(f"{error}. Is it running? If not, {_START}") from error
        self._name, self._longest = served["id"], served.get("max_model_len") or 0
        if model is None:
            return
        adapted = hasattr(model, "peft_config")
        self.route = self.route or ("adapter" if adapted else "folder")
        if adapted is not (self.route == "adapter"):
            raise ServerError(f"a model {'with' if adapted else 'without'} LoRA: leave route out")
        if not self._eos_given:
            self.eos_ids = eos_ids(model, self.tokenizer)
        config = model.config.get_text_config()
        self._vocabulary = max(config.vocab_size, len(self.tokenizer))
        try:
            info = self._get("/server_info?config_format=json")["vllm_config"]["model_config"]
        except (ServerError, KeyError, TypeError) as error:
            raise ServerError(
                f"{self._shown} cannot be given weights: it has no development endpoints. {_START}"
            ) from error
        self._dtype = getattr(torch, str(info.get("dtype")).removeprefix("torch."), torch.float32)
        theirs = Path(str(info.get("model"))) / "config.json"
        if theirs.is_file():  # weights of another shape would end the server
            _require_same(json.loads(theirs.read_text()), model.config.to_dict(), self._shown)
        d = self.distribution
        plain = d.temperature in (0, 1) and not d.top_k and not d.min_p and d.top_p == 1
        if not plain and not str(info.get("logprobs_mode")).startswith("processed_logprobs"):
            raise ServerError(
                f"{self._shown} gives log-probabilities before temperature and cuts: start it "
                "with --logprobs-mode processed_logprobs"
            )

    def _require_effects(self, model: Any, step: int) -> None:
        """Require that every trained tensor changes the server as it changes the model.

        All are changed at once, which takes two syncs; only if the server differs then, each alone
        is, to name the one. The noise of both is known from the weights as they are.

        Raises:
            ServerError: a tensor does not arrive, or the server has another model.
        """
        prompt = list(range(min(64, len(self.tokenizer), self._longest - 1)))
        trained = {n: p for n, p in model.named_parameters() if p.requires_grad}
        kept = {n: p.detach().clone() for n, p in trained.items()}
        noise = torch.Generator().manual_seed(0)

        def off() -> float:
            return float((self._read(prompt) - _read(model, prompt)).abs().mean())

        def change(name: str) -> None:
            p = trained[name].data
            scale = 0.3 * float(p.abs().mean()) or 0.02
            p.add_(scale * torch.randn(p.shape, generator=noise).to(p))

        usual = off()
        if usual > (0.2 if self._dtype != torch.float32 else 1e-3):
            raise ServerError(
                f"{self._shown} has the weights, and its log-probabilities are {usual:.2g} off "
                "on average: it serves another model, or computes it otherwise; serve this one"
            )
        limit = 5 * usual + 1e-6
        try:
            for name in trained:
                change(name)
            self._send(model, step)
            if off() <= limit:
                return
            for name, p in trained.items():
                for n, other in trained.items():
                    other.data.copy_(kept[n])
                change(name)
                self._send(model, step)
                if (found := off()) > limit:
                    raise ServerError(
                        f"{name} does not reach the server: its log-probabilities are {found:.2g} "
                        f"off then, {usual:.2g} before ({tuple(p.shape)}). Training would be "
                        "off-policy: take another vLLM (0.32 is tested), or --engine transformers"
                    )
            _log.warning("all tensors reach the server, though not all at once to rounding")
        finally:
            for name, p in trained.items():
                p.data.copy_(kept[name])
            self._send(model, step)

    def _read(self, prompt: list[int]) -> Tensor:
        """The server's log-probabilities of a prompt's tokens after the first."""
        body = {"model": self._adapter or self._name, "prompt": prompt, "max_tokens": 1}
        found = self._only_choice(self._post("/v1/completions", body | {"prompt_logprobs": 0}))
        given = zip(found["prompt_logprobs"][1:], prompt[1:], strict=True)
        return torch.tensor([at[str(i)]["logprob"] for at, i in given], dtype=torch.float64)

    # Requests

    def _get(self, path: str) -> Any:
        return self._request("GET", path)

    def _post(self, path: str, body: Any = None, params: Mapping[str, Any] | None = None) -> Any:
        return self._request("POST", path, json=body, params=params)

    def _request(self, method: str, path: str, **content: Any) -> Any:
        for pause in (0.5, 2.0, 8.0, None):
            try:
                response = self._http.request(method, path, **content)
            except httpx.HTTPError as error:
                raise ServerLost(f"no answer from {self._shown}{path}: {error!r:.200}") from error
            if response.status_code not in (429, 503) or pause is None:
                break
            time.sleep(pause)
        if response.status_code >= 500:
            raise ServerLost(
                f"{self._shown}{path} answered {response.status_code}: {response.text[:300]!r}"
            )
        if response.status_code == 404 and "/v1/" in path:
            raise ServerLost(f"{self._shown} does not serve {content['json']!r:.80}")
        if response.status_code != 200:
            raise ServerError(
                f"{self._shown}{path} answered {response.status_code}: {response.text[:300]!r}"
            )
        return response.json() if response.text.startswith(("{", "[")) else response.text


def _guarded(
    command: Sequence[str], env: Mapping[str, str], log: IO[bytes]
) -> subprocess.Popen[bytes]:
    if shutil.which(command[0], path=env.get("PATH")) is None:
        raise ServerError(f"there is no {command[0]!r}: pip install vllm, or name its executable")
    return subprocess.Popen(
        ["/bin/sh", "-c", _GUARD, "sh", *command],
        stdin=subprocess.PIPE,
        stdout=log,
        stderr=log,
        env=dict(env),
        start_new_session=True,
    )


def _healthy(url: str) -> bool:
    try:
        return httpx.get(f"{url}/health", timeout=10, trust_env=False).status_code == 200
    except httpx.HTTPError:
        return False


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


def _world() -> int:
    return torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1


def _rank() -> int:
    return torch.distributed.get_rank() if torch.distributed.is_initialized() else 0


def _gathered(model: Any, adapter: bool, dtype: torch.dtype) -> dict[str, Tensor]:
    """All tensors of a checkpoint, in the server's precision, whole in the first process."""
    if adapter:
        from peft import get_peft_model_state_dict

        named: Iterator[tuple[str, Tensor]] = iter(get_peft_model_state_dict(model).items())
    else:
        named = iter(model.state_dict().items())
    found, seen = {}, set()
    for name, tensor in named:
        whole = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor.detach()
        if _rank() == 0:
            whole = whole.to(dtype) if whole.is_floating_point() else whole
            tied = whole.untyped_storage().data_ptr() in seen
            found[name] = whole.clone() if tied else whole  # save_pretrained would leave it out
            seen.add(whole.untyped_storage().data_ptr())
    return found


def _fingerprint(model: Any) -> list[float]:
    """Sums that a change of weights changes; fused optimizers leave tensors' versions alone."""
    trained = (p.detach() for p in model.parameters() if p.requires_grad)
    sums = [p.sum(dtype=torch.float64) for p in trained]
    whole = [s.full_tensor() if hasattr(s, "full_tensor") else s for s in sums]
    found: list[float] = torch.stack(whole).tolist()
    return found


@torch.no_grad()
def _read(model: Any, prompt: list[int]) -> Tensor:
    ids = torch.tensor([prompt], device=next(model.parameters()).device)
    logprobs = model(ids).logits[0, :-1].double().log_softmax(-1).cpu()
    return logprobs[torch.arange(len(prompt) - 1), torch.tensor(prompt[1:])]


def _require_same(theirs: Mapping[str, Any], ours: Mapping[str, Any], server: str) -> None:
    names = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
    for name in names:
        if name in theirs and name in ours and theirs[name] != ours[name]:
            raise ServerError(
                f"{server} serves another model: its {name} is {theirs[name]}, that of the model "
                f"in training {ours[name]}. Serve the model that is trained"
            )


def _logprobs(choice: dict[str, Any], tokens: int) -> list[float]:
    found = choice.get("logprobs")
    values = found.get("token_logprobs") if isinstance(found, dict) else None
    if not isinstance(values, list) or len(values) != tokens:
        raise ServerError(
            f"the server gave no log-probability for each of {tokens} tokens: {str(values)[:80]}"
        )
    # A little above 0 is rounding; vLLM writes -9999 if there is none.
    if not all(isinstance(v, float | int) and -9000 < v < 1e-3 for v in values):
        raise ServerError(f"these are no log-probabilities: {str(values)[:120]}")
    return [float(v) for v in values]
