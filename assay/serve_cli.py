"""``assay serve``: an environment over HTTP and WebSocket."""

from __future__ import annotations

import dataclasses
import functools
import logging
import os
import ssl
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Option

from .arguments import DataOption, EnvName, SetOption, environment_options, settings
from .command import HelpAll
from .console import err, naming_the_port, say
from .envs import make
from .extras import needing
from .naming import found_here
from .verifiers.visible import escape_invisible

if TYPE_CHECKING:
    from fastapi import FastAPI

    from .service import ServiceLimits, Tokens

TOKEN = "ASSAY_SERVE_TOKEN"


def serve_command(
    context: typer.Context,
    env: EnvName,
    data: DataOption = None,
    setting: SetOption = None,
    host: Annotated[
        str, Option(help="Address to listen on; a public one needs a token.")
    ] = "127.0.0.1",
    port: Annotated[int, Option(min=0, max=65535, help="Port; 0 for any free one.")] = 8000,
    token_file: Annotated[
        Path | None, Option(help=f"File with one token per line, or set {TOKEN}.")
    ] = None,
    limit: Annotated[
        list[str] | None, Option("--limit", help="A limit, such as batch=256; see docs/service.md.")
    ] = None,
    allow_references: Annotated[
        bool, Option(hidden=True, help="Also accept references from clients.")
    ] = False,
    tell_reasons: Annotated[
        bool,
        Option(hidden=True, help="Send the reasons of verdicts, which may quote the reference."),
    ] = False,
    certificate: Annotated[
        Path | None, Option(hidden=True, help="TLS certificate chain in PEM.")
    ] = None,
    key: Annotated[Path | None, Option(hidden=True, help="TLS private key.")] = None,
    workers: Annotated[int, Option(min=1, help="Worker processes.")] = 1,
    drain: Annotated[
        int, Option(min=0, hidden=True, help="Seconds for requests to finish after SIGTERM.")
    ] = 30,
    access_log: Annotated[
        bool, Option(hidden=True, help="Log each request as JSON on stderr.")
    ] = True,
    mcp: Annotated[
        bool, Option("--mcp", help="Serve one MCP client over stdin and stdout instead.")
    ] = False,
    help_all: HelpAll = False,
) -> None:
    """Serve an environment over HTTP and WebSocket: scoring, episodes.

    /openapi.json describes the routes; /openenv serves OpenEnv's clients. References never leave
    the server. The Python client is assay.service.RemoteEnv(URL). With --mcp any MCP client plays
    episodes: reset, the environment's tools, and its reward at the end.
    """
    if mcp:
        _serve_mcp(context, env, environment_options(setting, data), reasons=tell_reasons)
        return
    with needing("assay serve", "serve"):
        from .service import ServiceLimits, Tokens, check_exposure, serve
    if (certificate is None) != (key is None):
        raise ValueError("--certificate and --key go together: give both, or none")
    if certificate is not None and key is not None:
        _refuse_pem(certificate, key)
    limits = ServiceLimits(**_limits(limit or [], ServiceLimits))
    if token_file is not None:
        tokens = Tokens.read(token_file)
    else:
        tokens = Tokens([os.environ[TOKEN]] if os.environ.get(TOKEN) else [])
    check_exposure(host, tokens)
    kwargs = environment_options(setting, data)
    plural = "s" if len(tokens) > 1 else ""
    guarded = f"{len(tokens)} token{plural}" if tokens else "no token: this machine alone"
    guarded += f", {workers} workers" if workers > 1 else ""
    flags = {"references": allow_references, "reasons": tell_reasons}
    make_app = functools.partial(_make_app, env, kwargs, limits, tokens, flags, access_log)
    with naming_the_port(port, host):
        serve(
            make_app if workers > 1 else make_app(),
            host=host,
            port=port,
            limits=limits,
            workers=workers,
            drain_s=drain,
            certificate=certificate,
            key=key,
            listening=lambda url: say(f"Serving {env} at {url} ({guarded})", to=err),
        )


def _refuse_pem(certificate: Path, key: Path) -> None:
    """Refuse files that TLS cannot use, or that do not belong together."""
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate, key)
    except OSError as error:
        raise ValueError(
            f"--certificate {certificate} and --key {key} must be a chain and its key in PEM: "
            f"{error.strerror or error}"
        ) from error


def _serve_mcp(context: typer.Context, env: str, kwargs: dict[str, Any], *, reasons: bool) -> None:
    """Serve over stdio; refuse options that have no effect there."""
    sources = {name: context.get_parameter_source(name) for name in context.params}
    given = {name for name, source in sources.items() if source and source.name != "DEFAULT"}
    others = sorted(given - {"env", "data", "setting", "tell_reasons", "mcp"})
    if others:
        option = others[0].replace("_", "-")
        raise ValueError(
            f"--{option} has no effect with --mcp, which serves one client: leave it out"
        )
    with needing("assay serve --mcp", "serve,mcp"):
        from .service.mcp_server import serve_stdio
    serve_stdio(make(found_here(env), **kwargs), reasons=reasons)


def _make_app(
    env: str,
    kwargs: dict[str, Any],
    limits: ServiceLimits,
    tokens: Tokens,
    flags: dict[str, bool],
    access_log: bool,
) -> FastAPI:
    """Make the application, in this process or in a worker."""
    from .service import create_app

    _log_to_stderr(access=access_log)
    return create_app(make(found_here(env), **kwargs), limits, tokens, **flags)


def _limits(pairs: list[str], kind: type) -> dict[str, Any]:
    """Parse limits by name, each a number of its kind."""
    known = {field.name: field for field in dataclasses.fields(kind)}
    found = settings(pairs, "--limit")
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"there is no limit {name!r}; there are {', '.join(known)}")
        whole = known[name].type == "int"
        if isinstance(value, bool) or not isinstance(value, int if whole else int | float):
            wanted = "a whole number" if whole else "a number"
            raise ValueError(f"--limit {name} must be {wanted}, got {value!r}")
    return found


class _Visible(logging.Formatter):
    """Escape control sequences: a traceback may quote a client's reply."""

    def format(self, record: logging.LogRecord) -> str:
        """Format a record."""
        return escape_invisible(super().format(record))


def _log_to_stderr(*, access: bool) -> None:
    """Log the service's messages to stderr unchanged: access is JSON already."""
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(_Visible("%(message)s"))
    for name in ("assay.service", "uvicorn.error"):
        logger = logging.getLogger(name)
        logger.addHandler(handler)
        logger.propagate = False
    logging.getLogger("assay.service").setLevel(logging.WARNING)
    logging.getLogger("assay.service.access").setLevel(logging.INFO if access else logging.WARNING)
