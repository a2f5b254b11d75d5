"""Give a vLLM server each step's weights, and require that it has them.

Weights take one of four routes: ``folder``, a checkpoint that the server's ``reload_weights``
reads; ``adapter``, a LoRA adapter under a new name for each step; ``nccl`` between GPUs and
``ipc`` within one, by vLLM's weight transfer. The last two need CUDA, and so does ``sleep``: this
project never ran these.

A checkpoint holds the output matrix under its own name even if it is tied to the embedding: on a
CPU vLLM packs a second copy of it, which reloading the embedding alone leaves as it was.
"""

from __future__ import annotations

import importlib
import json
import logging
import os
import shutil
import socket
import threading
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import httpx
import torch
from torch import Tensor

from ..sandbox.redaction import redact
from .draw import Distribution
from .loading import quiet
from .model import computing
from .sampler import eos_ids
from .vllm_server import ServerError, ServerLost, VLLMServer, free_port, healthy

_log = logging.getLogger(__name__)
_START = "start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs"
_TRIES = 4
_SHAPE = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
_T = TypeVar("_T")

Route = Literal["folder", "adapter", "nccl", "ipc"]


class ServedModel:
    """Connection to a server and its weights: the base of :class:`~assay.grpo.VLLMPolicy`."""

    def __init__(
        self,
        tokenizer: Any,
        server: VLLMServer | str,
        directory: str | Path,
        distribution: Distribution,
        *,
        eos: tuple[int, ...] | None,
        route: Route | None,
        check: bool,
        concurrency: int,
        timeout_s: float,
        api_key_env: str | None,
    ) -> None:
        key = os.environ.get(api_key_env, "") if api_key_env else "none"
        if not key:
            raise ValueError(f"the environment variable {api_key_env} holds no API key")
        self.tokenizer, self.server, self.distribution = tokenizer, server, distribution
        self.route: Route | None = route
        self.eos_ids = eos or (tokenizer.eos_token_id,)
        self._own_eos = eos is None
        self.directory = Path(directory).absolute()
        url = server.url if isinstance(server, VLLMServer) else server
        self._url = url.rstrip("/").removesuffix("/v1")
        self._shown = redact(self._url)
        self._http = httpx.Client(
            headers={"Authorization": f"Bearer {key}"},
            limits=httpx.Limits(max_connections=concurrency + 4),  # a sync needs one besides
            trust_env=False,
        )
        self._timeout_s, self._check = timeout_s, check
        self._lock = threading.RLock()  # of what follows
        self._name, self._longest, self._dtype = "", 0, torch.float32
        self._vocabulary = len(tokenizer)
        self._label, self._syncs, self._run = "", 0, uuid.uuid4().hex[:8]
        self._held: tuple[int, list[float]] | None = None
        self._transfer: Any = None
        self._asleep = 0
        self.step = 0

    def close(self) -> None:
        """Delete the checkpoints, and close the connections."""
        for folder in self.directory.glob("assay-*"):
            shutil.rmtree(folder, ignore_errors=True)
        self._http.close()

    @property
    def longest(self) -> int | None:
        """Most tokens of a prompt and its reply that the server takes, if known."""
        return self._longest or None

    def sync(self, model: Any, step: int) -> None:
        """Give the server the model's weights, unless it has these.

        Raises:
            ServerError: the server is another model's, lacks what this needs, or stays away.
            OSError: the checkpoint cannot be written; the server keeps the weights it has.
        """
        with self._lock:
            held = (step, _fingerprint(model))  # of a second run, the steps may be the same
            if held == self._held:
                return
            if not self._name or self.route is None:
                self._meet(model)
            self._held = None
            self._send(model, step)
            if self._check:
                self._require_effects(model, step)
                self._check = False
            self._held = held

    def _send(self, model: Any, step: int) -> None:
        """Send the weights under a new label."""
        self._syncs += 1
        label = f"assay-{self._run}-{self._syncs}-{step}"
        if self.route in ("nccl", "ipc"):
            self._exchange(lambda: self._transfer_by_vllm(model), label)
            self._label = label
        else:
            tensors = _gathered(model, self.route == "adapter", self._dtype)
            self._write(model, tensors, self.directory / label)
            self._label, before = label, self._label
            self._through(self._load, self._wait)
            self._forget(before)
        self.step = step

    def _write(self, model: Any, tensors: dict[str, Tensor], folder: Path) -> None:
        try:
            folder.mkdir(parents=True)
            with quiet():
                model.save_pretrained(folder, state_dict=tensors)
        except Exception as error:
            shutil.rmtree(folder, ignore_errors=True)
            if not isinstance(error, OSError) and "os error" not in str(error):  # safetensors' own
                raise
            raise OSError(
                f"cannot write weights to {str(folder)!r}: {error}. Nothing is lost: make "
                "room there or name another directory, and resume"
            ) from error

    def _load(self) -> None:
        """Have the server load the newest checkpoint."""
        folder = str(self.directory / self._label)
        if self.route == "adapter":
            if self._asleep:
                self._post("/wake_up")
            self._asleep = 0
            self._post("/v1/load_lora_adapter", {"lora_name": self._label, "lora_path": folder})
            return
        call = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        self._exchange(lambda: self._post("/collective_rpc", call), self._label)

    def _exchange(self, send: Callable[[], object], label: str) -> None:
        """Exchange weights between two tokens: requests under way go on with the new ones."""
        if self._asleep:
            self._post("/wake_up?tags=weights" if self._asleep == 2 else "/wake_up")
        self._post("/pause?mode=keep")
        send()
        if self._asleep == 2:
            self._post("/wake_up?tags=kv_cache")
        self._asleep = 0
        # Keys and values of old weights are computed again, those of running requests too.
        cleared = self._post("/reset_prefix_cache?reset_running_requests=true")
        if cleared != {"success": True}:
            raise ServerError(f"the server kept its prefix cache: {cleared!r:.200}")
        self._post("/update_weight_version", {"new_version": label})
        self._post("/resume")

    def _transfer_by_vllm(self, model: Any) -> None:
        """Send tensors by vLLM's own trainer engine (0.32)."""
        if self._transfer is None:
            try:
                vllm = importlib.import_module("vllm.distributed.weight_transfer")
                engine = importlib.import_module(f"{vllm.__name__}.{self.route}_engine")
            except ImportError as error:
                raise ServerError(
                    f"route {self.route!r} needs vllm in this environment too: pip install vllm, "
                    "or take route='folder'"
                ) from error
            if self.route == "ipc":
                info = engine.IPCTrainerInitInfo(rank=0)
            else:
                info = engine.NCCLTrainerInitInfo(
                    master_address=socket.gethostbyname(socket.gethostname()),
                    master_port=free_port(),
                    world_size=1 + self._get("/get_world_size")["world_size"],
                    rank=0,
                )
            self._transfer = vllm.WeightTransferTrainerFactory.trainer_init(
                info,
                client=vllm.HTTPVLLMWeightSyncClient(self._url),
                source=vllm.ModuleSource(model),
            )
        self._transfer.send_weights()

    def sleep(self, level: Literal[1, 2] = 1) -> None:
        """Free the server's GPU memory until the next :meth:`sync`.

        Level 1 keeps the weights in host memory, level 2 drops them. The server must have been
        started with ``--enable-sleep-mode``.
        """
        if level == 2 and self.route == "adapter":
            raise ValueError("level 2 drops the weights that an adapter needs: sleep at level 1")
        with self._lock:
            self._post(f"/sleep?level={level}&mode=wait")
            self._asleep, self._held = level, None

    def _forget(self, before: str) -> None:
        """Delete checkpoints and adapters but the last two, and what an earlier run left."""
        for old in self.directory.glob("assay-*"):
            if old.name in (self._label, before):
                continue
            shutil.rmtree(old, ignore_errors=True)
            if self.route == "adapter" and self._run in old.name:
                try:
                    self._post("/v1/unload_lora_adapter", {"lora_name": old.name})
                except ServerError as error:  # a restarted server does not know it
                    _log.debug("%s was not unloaded: %s", old.name, error)

    def _require_weights(self) -> None:
        """Require that the server has the weights it was given last."""
        with self._lock:  # not in the middle of a sync
            if self.route == "adapter" and self._label:
                good = self._label in [m["id"] for m in self._get("/v1/models")["data"]]
            else:
                good = not self._label or self._label in self._get("/weight_info").values()
        if not good:
            raise ServerLost(f"{self._shown} does not have the weights it was given")

    def _through(self, do: Callable[[], _T], repair: Callable[[ServerLost], None]) -> _T:
        """Call ``do``, and again each time the server was lost and repaired."""
        for left in reversed(range(_TRIES)):
            try:
                return do()
            except ServerLost as error:
                if not left or self._http.is_closed:  # a rollout ahead may outlive the run
                    raise
                repair(error)
        raise AssertionError

    def _recover(self, error: ServerLost) -> None:
        """Wait for a lost server, and give it the last weights."""
        with self._lock:
            self._wait(error)
            try:
                self._require_weights()
            except ServerLost:
                if self.route in ("nccl", "ipc"):
                    raise ServerError(f"{error}. Nothing is lost: resume the run") from error
                self._load()

    def _wait(self, error: ServerLost) -> None:
        """Wait until a lost server answers; start one of our own again."""
        _log.warning("%s: waiting for the server", error)
        time.sleep(1.0)
        if isinstance(self.server, VLLMServer):
            if not healthy(self._url):  # its engine may be dead, and it still there
                self.server.stop()
            self.server.ensure()
        until = time.monotonic() + self._timeout_s
        while not healthy(self._url):
            if time.monotonic() > until:
                raise ServerError(
                    f"{error}; it stayed away for {self._timeout_s:.0f} s. Nothing is lost: "
                    f"{_START}, and resume"
                ) from error
            time.sleep(0.5)

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
        if self.route is not None and adapted is not (self.route == "adapter"):
            raise ValueError(f"route {self.route!r} with LoRA={adapted}: leave route out")
        if self._own_eos:
            self.eos_ids = eos_ids(model, self.tokenizer)
        self._vocabulary = max(model.config.get_text_config().vocab_size, len(self.tokenizer))
        try:
            info = self._get("/server_info?config_format=json")["vllm_config"]["model_config"]
        except (ServerError, KeyError, TypeError) as error:
            raise ServerError(
                f"{self._shown} takes no weights: its development endpoints are off. {_START}"
            ) from error
        theirs, ours = Path(str(info.get("model"))) / "config.json", model.config.to_dict()
        if theirs.is_file():  # weights of another shape would end the server
            for name, value in json.loads(theirs.read_text()).items():
                if name in _SHAPE and ours.get(name) != value:
                    raise ServerError(
                        f"{self._shown} serves another model: its {name} is {value}, and that of "
                        f"the model in training {ours.get(name)}. Serve the model that is trained"
                    )
        d, mode = self.distribution, str(info.get("logprobs_mode"))
        plain = d.temperature in (0, 1) and not d.top_k and not d.min_p and d.top_p == 1
        if not plain and mode != "processed_logprobs":
            raise ServerError(
                f"{self._shown} gives {mode}, which leave out temperature and cuts: start it with "
                "--logprobs-mode processed_logprobs"
            )
        self._dtype = getattr(torch, str(info.get("dtype")).removeprefix("torch."), torch.float32)
        self.route = self.route or ("adapter" if adapted else "folder")

    def _require_effects(self, model: Any, step: int) -> None:
        """Require that a change of any trained tensor changes the server as it does the model.

        All are changed at once; only if the server differs then, each is alone, to name it.

        Raises:
            ServerError: a tensor does not arrive, or the server has another model.
        """
        prompt = list(range(min(64, len(self.tokenizer), self._longest - 1)))
        trained = {n: p.data for n, p in model.named_parameters() if p.requires_grad}
        kept = {n: p.to("cpu", copy=True) for n, p in trained.items()}
        noise = torch.Generator().manual_seed(0)

        def off(*changed: str) -> float:
            """Mean difference of log-probabilities with these tensors changed."""
            for name, p in trained.items():
                p.copy_(kept[name])
                if name in changed:
                    scale = 0.3 * float(p.abs().mean()) or 0.02
                    p.add_(scale * torch.randn(p.shape, generator=noise).to(p))
            self._send(model, step)
            return float((self._prompt_logprobs(prompt) - _logprobs(model, prompt)).abs().mean())

        try:
            usual = off()
            if usual > (1e-3 if self._dtype == torch.float32 else 0.2):
                raise ServerError(
                    f"{self._shown} has the weights, and its log-probabilities are {usual:.2g} off "
                    "on average: it serves another model, or in another precision"
                )
            limit = 5 * usual + 1e-6
            for name in trained if off(*trained) > limit else ():
                if (found := off(name)) > limit:
                    raise ServerError(
                        f"{name} does not reach the server: with it changed, log-probabilities "
                        f"are {found:.2g} off, else {usual:.2g}. Training would be off-policy: "
                        "use vLLM 0.32, or sample with transformers"
                    )
        finally:
            for name, p in trained.items():
                p.copy_(kept[name])
        self._send(model, step)

    @property
    def _served(self) -> str:
        return self._label if self.route == "adapter" else self._name

    def _prompt_logprobs(self, prompt: list[int]) -> Tensor:
        """Ask for the server's log-probabilities of a prompt's tokens after the first."""
        body = {"model": self._served, "prompt": prompt, "max_tokens": 1, "prompt_logprobs": 0}
        given = zip(self._complete(body)["prompt_logprobs"][1:], prompt[1:], strict=True)
        return torch.tensor([at[str(i)]["logprob"] for at, i in given], dtype=torch.float64)

    def _complete(self, body: dict[str, Any]) -> dict[str, Any]:
        match answer := self._post("/v1/completions", body):
            case {"choices": [{**choice}]}:
                return choice
        raise ServerError(f"an answer must hold one choice, got {answer!r:.200}")

    def _abort(self) -> None:
        """Have the server drop all requests; its development endpoints do."""
        with suppress(httpx.HTTPError):
            where, headers = f"{self._url}/abort_requests", self._http.headers
            httpx.post(where, json={}, headers=headers, timeout=5, trust_env=False)

    def _get(self, path: str) -> Any:
        # An engine that dies while it is asked never answers, and its server waits for it.
        return self._request("GET", path, timeout_s=min(60.0, self._timeout_s))

    def _post(self, path: str, body: object = None) -> Any:
        return self._request("POST", path, body, timeout_s=self._timeout_s)

    def _request(self, method: str, path: str, body: object = None, *, timeout_s: float) -> Any:
        where = f"{self._shown}{path}"
        try:
            response = self._http.request(method, self._url + path, json=body, timeout=timeout_s)
            said: Any = response.text
            if said.startswith(("{", "[")):
                said = response.json()
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            raise ServerLost(f"no answer from {where}: {error!r:.200}") from error
        if response.status_code == 200:
            return said
        message = f"{where} answered {response.status_code}: {said!r:.300}"
        # After a restart there is no adapter.
        lost = response.status_code in (404, 408, 429) if path == "/v1/completions" else False
        raise (ServerLost if lost or response.status_code >= 500 else ServerError)(message)


def _gathered(model: Any, adapter: bool, dtype: torch.dtype) -> dict[str, Tensor]:
    """Gather all tensors of a checkpoint in the server's precision."""
    if adapter:
        from peft import get_peft_model_state_dict as state_dict
    else:
        state_dict = type(model).state_dict
    found: dict[str, Tensor] = {}
    seen = set()
    for name, tensor in state_dict(model).items():
        whole = tensor.detach().to(dtype) if tensor.is_floating_point() else tensor.detach()
        place = whole.untyped_storage().data_ptr()
        found[name] = whole.clone() if place in seen else whole  # a tied one would be left out
        seen.add(place)
    return found


def _fingerprint(model: Any) -> list[float]:
    """Sum the weights to detect a change: fused optimizers do not bump tensors' versions."""
    sums = [p.detach().sum(dtype=torch.float64) for p in model.parameters() if p.requires_grad]
    return cast(list[float], torch.stack(sums).tolist())


@torch.no_grad()
def _logprobs(model: Any, prompt: list[int]) -> Tensor:
    """Compute the log-probabilities of a prompt's tokens after the first."""
    ids = torch.tensor([prompt], device=next(model.parameters()).device)
    with computing(model):
        logits = model(ids).logits
    found: Tensor = logits[0, :-1].double().log_softmax(-1).cpu()
    return found[torch.arange(len(prompt) - 1), torch.tensor(prompt[1:])]
