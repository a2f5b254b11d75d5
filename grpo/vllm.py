"""Generation by vLLM: sample from a server that has each step's weights.

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
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, Literal, TypeVar, cast

import httpx
import torch
from torch import Tensor
from torch.distributed.elastic.utils.distributed import get_free_port

from ..envs import Completion, ExtendingPolicy
from ..sandbox.pool.threads import Threads
from ..sandbox.redaction import redact
from .draw import Distribution, StopStrings, derive_seed
from .loading import without_progress_bars
from .model import autocast_context, is_adapted
from .sampler import TokenPolicy, eos_ids
from .vllm_server import ServerError, ServerLost, VLLMServer, healthy

_log = logging.getLogger(__name__)
_START = "start it with VLLM_SERVER_DEV_MODE=1 vllm serve MODEL --logprobs-mode processed_logprobs"
_TRIES = 4
_SHAPE = ("model_type", "vocab_size", "hidden_size", "num_hidden_layers", "intermediate_size")
_T = TypeVar("_T")

Route = Literal["folder", "adapter", "nccl", "ipc"]


@dataclass(frozen=True, slots=True)
class ServedCompletion(Completion):
    """A completion with the step of the weights that its first token was sampled with."""

    step: int = 0


class VLLMPolicy(TokenPolicy):
    """Samples replies from a vLLM server, with the weights of a model in training.

    Prompts go out as token ids, and ids come back with the log-probabilities of the distribution
    they were drawn from; nothing is tokenized again. A server that is lost in mid-run is started
    again (a :class:`VLLMServer`) or waited for (an address), given the last weights, and asked
    again with the same seeds. One thread may sample while another calls :meth:`sync`.

    Other arguments are those of :class:`~assay.grpo.ModelPolicy`.

    Args:
        server: a running server, or its address such as ``http://127.0.0.1:8000``.
        directory: for checkpoints, of this run alone; the server reads it under the same path.
            In memory (``/dev/shm/my-run``) a sync is fastest.
        eos_ids: tokens that end a reply; by default the tokenizer's, and from the first
            :meth:`sync` on those of the model's generation config too.
        route: see :mod:`assay.grpo.vllm`; by default ``adapter`` with LoRA, else ``folder``.
        check: before the first step, change every trained tensor, and require that the server's
            log-probabilities follow. In bfloat16 that shows only effects above its rounding.
        sleep_level: free the server's GPU memory while the model is trained, see :meth:`sleep`;
            0 keeps it.
        concurrency: requests under way at a time.
        timeout_s: of a request, and of waiting for a lost server.
        api_key_env: environment variable with the server's key.

    Attributes:
        step: of the weights that the server has.
        longest: most tokens of a prompt and its reply that the server takes, if known.
    """

    def __init__(
        self,
        tokenizer: Any,
        server: VLLMServer | str,
        directory: str | Path,
        *,
        max_new_tokens: int,
        eos_ids: Sequence[int] | None = None,
        temperature: float = 1.0,
        top_k: int = 0,
        min_p: float = 0.0,
        top_p: float = 1.0,
        stop: Sequence[str] = (),
        seed: int = 0,
        chat_template_kwargs: Mapping[str, Any] | None = None,
        route: Route | None = None,
        check: bool = True,
        sleep_level: Literal[0, 1, 2] = 0,
        concurrency: int = 256,
        timeout_s: float = 600.0,
        api_key_env: str | None = None,
    ) -> None:
        if max_new_tokens < 1 or concurrency < 1:
            raise ValueError("max_new_tokens and concurrency must be at least 1")
        key = os.environ.get(api_key_env, "") if api_key_env else "none"
        if not key:
            raise ValueError(f"the environment variable {api_key_env} holds no API key")
        self.tokenizer, self.server = tokenizer, server
        self.distribution = Distribution(
            temperature=temperature, top_k=top_k, min_p=min_p, top_p=top_p
        )
        self.max_new_tokens, self.chat_template_kwargs = max_new_tokens, chat_template_kwargs
        self.stop, self._concurrency = StopStrings(tokenizer, stop), concurrency
        self.route: Route | None = route
        self.eos_ids = tuple(eos_ids or (tokenizer.eos_token_id,))
        self._own_eos = not eos_ids
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
        self._name, self._dtype = "", torch.float32
        self.longest = None
        self._vocabulary = len(tokenizer)
        self._label, self._syncs, self._run = "", 0, uuid.uuid4().hex[:8]
        self._held: tuple[int, list[float]] | None = None
        self._transfer: Any = None
        self.sleep_level, self._asleep = sleep_level, False
        self.step = 0
        self.reseed(seed)

    def stream(self, seed: int, *, temperature: float | None = None) -> ExtendingPolicy:
        """Return a policy with its own random numbers, which may be used beside others.

        Its temperature is this policy's if it is given none.
        """
        heat = self.distribution.temperature if temperature is None else temperature
        return _Stream(self, seed, replace(self.distribution, temperature=heat))

    def answer(self, prompts: list[list[int]], rows: list[int]) -> list[Completion]:
        """Sample a reply to each prompt.

        Ctrl-C ends the call at once, and the requests under way.

        Raises:
            ServerError: as for :meth:`sample`.
        """
        return self.sample(prompts, [derive_seed(self.seed, row) for row in rows])

    def sample(
        self,
        prompts: Sequence[list[int]],
        seeds: Sequence[int],
        distribution: Distribution | None = None,
    ) -> list[Completion]:
        """Sample a reply to each prompt of token ids, from this policy's or another distribution.

        Raises:
            ServerError: the server refuses, stays away, or an answer is off. The whole call
                fails then: no reply is lost silently.
        """
        if not self._name:
            self._inspect_server()
        needed = max(map(len, prompts), default=0) + self.max_new_tokens
        if self.longest and needed > self.longest:
            raise ServerError(
                f"the longest prompt and a reply of {self.max_new_tokens} are {needed} tokens, "
                f"and the server takes {self.longest}: start it with --max-model-len {needed}, "
                "or leave long prompts out"
            )

        def ask() -> list[Completion]:
            threads = Threads(min(self._concurrency, max(1, len(prompts))), "assay-vllm")
            try:
                drawn, asked = distribution or self.distribution, zip(prompts, seeds, strict=True)
                calls = [threads.submit(partial(self._answer, *each, drawn)) for each in asked]
                found: list[Completion] = [call.result() for call in calls]
            except Exception:  # if one failed, the others are not asked
                threads.close(cancel=True, wait=True)
                raise
            except BaseException:  # Ctrl-C waits for no reply
                threads.close(cancel=True)
                self._abort()
                raise
            threads.close()
            self._require_weights()  # a server that was restarted has those it began with
            return found

        return self._with_recovery(ask, self._recover)

    def _answer(self, prompt: list[int], seed: int, d: Distribution) -> ServedCompletion:
        step = self.step
        body = {
            "model": self._served,
            "prompt": prompt,
            "max_tokens": self.max_new_tokens,
            "seed": seed,
            "temperature": d.temperature,
            # Each is named: a server may take other defaults from the model's generation config.
            "top_p": d.top_p,
            "top_k": d.top_k,
            "min_p": d.min_p,
            "repetition_penalty": 1.0,
            "presence_penalty": 0.0,
            "frequency_penalty": 0.0,
            "ignore_eos": True,  # the server's own; ours follow
            "stop_token_ids": list(self.eos_ids),
            "stop": list(self.stop.strings),
            "include_stop_str_in_output": True,
            "return_token_ids": True,
            "logprobs": 0,
        }
        choice = self._complete(body)
        ids: Any = choice.get("token_ids")
        finish: Any = choice.get("finish_reason")
        logprobs: Any = (choice.get("logprobs") or {}).get("token_logprobs")
        if finish == "abort":
            raise ServerLost(f"{self._shown} aborted a request")

        def require(good: bool, rule: str) -> None:
            if not good:
                raise ServerError(f"an answer of {self._shown} is off: {rule}")

        same = choice.get("prompt_token_ids") in (None, prompt)
        require(same, "it was given other tokens: the server must not cut prompts")
        # Ids of a vocabulary padded beyond the tokenizer have no text, but the loss knows them.
        require(
            isinstance(ids, list)
            and 1 <= len(ids) <= self.max_new_tokens
            and all(type(i) is int and 0 <= i < self._vocabulary for i in ids),
            f"a reply must have 1 to {self.max_new_tokens} token ids below {self._vocabulary}, "
            f"got {ids!r:.80}: the server must serve this model and know return_token_ids",
        )
        # A little above 0 is rounding; vLLM writes -9999 if there is none.
        require(
            isinstance(logprobs, list)
            and len(logprobs) == len(ids)
            and all(isinstance(x, float | int) and -9000 < x < 1e-3 for x in logprobs),
            f"there must be {len(ids)} log-probabilities, got {logprobs!r:.120}",
        )
        known_end = finish == "length" or ids[-1] in self.eos_ids or self.stop.complete(ids)
        ended = finish in ("stop", "length")
        require(ended, f"a reply must finish by 'stop' or 'length', got {finish!r}")
        require(
            known_end,
            f"the server ended a reply at token {ids[-1]}, which is not in eos_ids "
            f"{self.eos_ids} and completes no stop string: pass eos_ids with every token that "
            "the server ends at, or start it with --generation-config vllm",
        )
        if d.temperature == 0:
            logprobs = [0.0] * len(ids)  # as the policy that takes the most likely token has them
        known = [i for i in ids if i < len(self.tokenizer)]
        text = self.tokenizer.decode(known, skip_special_tokens=True)
        return ServedCompletion(text, finish, tuple(prompt), tuple(ids), tuple(logprobs), step)

    def close(self) -> None:
        """Delete the checkpoints, and close the connections."""
        for folder in self.directory.glob("assay-*"):
            shutil.rmtree(folder, ignore_errors=True)
        self._http.close()

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
                self._inspect_server(model)
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
            tensors = _state_dict_of(model, self.route == "adapter", self._dtype)
            self._write(model, tensors, self.directory / label)
            self._label, before = label, self._label
            self._with_recovery(self._load, self._wait)
            self._delete_old(before)
        self.step = step

    def _write(self, model: Any, tensors: dict[str, Tensor], folder: Path) -> None:
        try:
            folder.mkdir(parents=True)
            with without_progress_bars():
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
            self._asleep = False
            self._post("/v1/load_lora_adapter", {"lora_name": self._label, "lora_path": folder})
            return
        call = {"method": "reload_weights", "kwargs": {"weights_path": folder}}
        self._exchange(lambda: self._post("/collective_rpc", call), self._label)

    def _exchange(self, send: Callable[[], object], label: str) -> None:
        """Exchange weights between two tokens: requests under way go on with the new ones."""
        if self._asleep:
            self._post("/wake_up?tags=weights")
        self._post("/pause?mode=keep")
        send()
        if self._asleep:
            self._post("/wake_up?tags=kv_cache")
        self._asleep = False
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
                    master_port=get_free_port(),  # type: ignore[no-untyped-call]  # torch
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
            self._asleep, self._held = True, None

    def _delete_old(self, before: str) -> None:
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

    def _with_recovery(self, do: Callable[[], _T], repair: Callable[[ServerLost], None]) -> _T:
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

    def _inspect_server(self, model: Any = None) -> None:
        """Find out what is served, and refuse what cannot work."""
        try:
            (served, *_) = (m for m in self._get("/v1/models")["data"] if not m.get("parent"))
        except ServerLost as error:
            raise ServerError(f"{error}. Is it running? If not, {_START}") from error
        self._name, self.longest = served["id"], served.get("max_model_len")
        if model is None:
            return
        adapted = is_adapted(model)
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
        self._asleep = self._get("/is_sleeping")[
            "is_sleeping"
        ]  # an earlier run may have left it so
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
        prompt = list(range(min(64, len(self.tokenizer), (self.longest or 65) - 1)))
        trained = {n: p.data for n, p in model.named_parameters() if p.requires_grad}
        kept = {n: p.to("cpu", copy=True) for n, p in trained.items()}
        noise = torch.Generator().manual_seed(0)

        def off(*changed: str) -> float:
            """Return the mean difference of log-probabilities with these tensors changed."""
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
        answer = self._post("/v1/completions", body)
        match answer:
            case {"choices": [dict(choice)]}:
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


class _Stream(TokenPolicy):
    """Samples from a :class:`VLLMPolicy` with random numbers of its own."""

    def __init__(self, policy: VLLMPolicy, seed: int, distribution: Distribution) -> None:
        self.tokenizer, self.chat_template_kwargs = policy.tokenizer, policy.chat_template_kwargs
        self.max_new_tokens, self.longest = policy.max_new_tokens, policy.longest
        self._policy, self._distribution = policy, distribution
        self.reseed(seed)

    def answer(self, prompts: list[list[int]], rows: list[int]) -> list[Completion]:
        seeds = [derive_seed(self.seed, row) for row in rows]
        return self._policy.sample(prompts, seeds, self._distribution)


def _state_dict_of(model: Any, adapter: bool, dtype: torch.dtype) -> dict[str, Tensor]:
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
    ids = torch.tensor([prompt], device=model.device)
    with autocast_context(model):
        logits = model(ids).logits[:, :-1]
    found: Tensor = logits.double().log_softmax(-1).gather(2, ids[:, 1:, None])[0, :, 0]
    return found.cpu()
