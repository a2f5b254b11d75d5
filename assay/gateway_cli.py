"""``assay gateway``: a model for agent programs, and a record of what it sampled for each."""

from __future__ import annotations

import asyncio
import contextlib
import functools
import os
import secrets
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from .command import HelpAll
from .console import err, naming_the_port, say
from .extras import needing

if TYPE_CHECKING:
    from .gateway import ChatEngine, Engine

TOKEN = "ASSAY_GATEWAY_TOKEN"
_rare = functools.partial(typer.Option, hidden=True)
Kind = Literal["transformers", "vllm", "proxy"]


def gateway_command(
    model: Annotated[
        str | None, typer.Option(help="Transformers directory, or for proxy the server's name.")
    ] = None,
    engine: Annotated[
        Kind,
        typer.Option(help="What samples; proxy passes chats on to --server, which tokenizes."),
    ] = "transformers",
    server: Annotated[
        str | None, typer.Option(help="A running vLLM server, else vllm starts one.")
    ] = None,
    processed_logprobs: Annotated[
        bool, _rare(help="--server runs with --logprobs-mode processed_logprobs.")
    ] = False,
    api_key_env: Annotated[
        str | None, _rare(help="Environment variable with the key of --server.")
    ] = None,
    vllm_executable: Annotated[str, _rare(help="vLLM's command.")] = "vllm",
    device: Annotated[str, typer.Option(help="Where transformers runs the model.")] = "auto",
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens of a reply.")] = 1024,
    max_turns: Annotated[int, _rare(min=1, help="Maximum replies of an episode.")] = 200,
    timeout: Annotated[
        float, _rare(min=0.001, help="Seconds for a reply, its queue included.")
    ] = 600.0,
    help_all: HelpAll = False,
) -> None:
    """Serve a model to agents by OpenAI's and Anthropic's routes.

    POST /episodes opens an episode and returns its key and address; DELETE /episodes/KEY ends it
    and returns its tokens. Both need the token of ASSAY_GATEWAY_TOKEN, by default a new one, which
    is printed.
    """
    with needing("assay gateway", "serve,train"):
        from .gateway import Gateway, GatewayConfig, create_app
        from .gateway.app import uvicorn_server
        from .service.limits import ServiceLimits
        from .service.server import listen, url_of
    token = os.environ.get(TOKEN) or secrets.token_urlsafe(24)
    config = GatewayConfig(max_tokens=max_tokens, max_turns=max_turns, timeout_s=timeout)
    with contextlib.ExitStack() as stack:
        with naming_the_port(port, host):
            listener = stack.enter_context(listen(host, port, ServiceLimits()))
        made = stack.enter_context(
            engine_of(
                engine,
                model,
                server,
                processed=processed_logprobs,
                api_key_env=api_key_env,
                executable=vllm_executable,
                device=device,
            )
        )
        app = create_app(Gateway(made, config), token)
        shown = "" if os.environ.get(TOKEN) else f"; token: {token}"
        say(f"Serving {made.name} at {url_of(listener)}{shown}", to=err)
        uvicorn_server(app).run([listener])


@contextlib.contextmanager
def engine_of(
    kind: Kind,
    model: str | None,
    server: str | None,
    *,
    processed: bool = False,
    api_key_env: str | None = None,
    executable: str = "vllm",
    device: str = "auto",
) -> Iterator[Engine | ChatEngine]:
    """Yield an engine; close it, and the server that it started.

    Raises:
        ConnectionError: the server cannot be started or reached, or gives no token ids.
        ValueError: something is missing, or has no effect.
    """
    from .gateway import EngineError, ProxyEngine, VLLMEngine
    from .grpo import ServerError, VLLMServer, load_model
    from .grpo.loading import load_tokenizer

    if (server is None and kind == "proxy") or (model is None and kind != "proxy"):
        raise ValueError(f"engine {kind} needs --{'server' if kind == 'proxy' else 'model'}")
    if server is None and (processed or api_key_env):
        raise ValueError("--processed-logprobs and --api-key-env go with --server")
    if server is not None and kind == "transformers":
        raise ValueError("--server goes with --engine vllm or proxy")
    settings: dict[str, Any] = {"processed": processed}
    if api_key_env is not None:
        settings["api_key"] = os.environ.get(api_key_env, "")
    made: Engine | ChatEngine
    with contextlib.ExitStack() as stack:
        try:
            if kind == "proxy":
                made = ProxyEngine(str(server), model=model, **settings)
            elif kind == "vllm":
                if server is None:
                    folder = Path(tempfile.mkdtemp(prefix="assay-gateway-"))
                    own = VLLMServer(str(model), folder / "vllm.log", executable=executable)
                    server, settings["processed"] = stack.enter_context(own).url, True
                made = VLLMEngine(server, load_tokenizer(Path(str(model))), **settings)
            else:
                from .gateway.transformers_engine import TransformersEngine

                name = Path(str(model)).name
                loaded = load_model(str(model), device=device, autocast=None)
                made = TransformersEngine(*loaded, name=name)
        except (EngineError, ServerError) as error:
            raise ConnectionError(str(error)) from error
        try:
            yield made
        finally:
            asyncio.run(made.close())
