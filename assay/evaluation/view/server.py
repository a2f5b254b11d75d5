"""Serve the page to this machine only."""

from __future__ import annotations

import json
import math
import secrets
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from ...envs import DataError
from .pages import Pages

# A reply is hostile text. The page only ever shows it as text; and even if one found a way to be
# markup, the browser would run and fetch nothing for it.
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "require-trusted-types-for 'script'; trusted-types 'none'"
)
_FILES = {
    "": ("page.html", "text/html"),
    "view.css": ("view.css", "text/css"),
    **{
        name: (name, "text/javascript")
        for name in ("view.js", "marks.js", "list.js", "group.js", "words.js", "plots.js")
    },
}


class ViewServer(ThreadingHTTPServer):
    """Listen on 127.0.0.1 only, under an unguessable path."""

    daemon_threads = True

    def __init__(self, pages: Pages, port: int = 0) -> None:
        try:
            super().__init__(("127.0.0.1", port), _Handler)
        except (OSError, OverflowError) as error:
            raise OSError(
                f"cannot listen on port {port} ({error}): give another --port, or 0 for a free one"
            ) from error
        self.pages = pages
        self.home = f"/{secrets.token_urlsafe(12)}/"
        self.hosts = {f"{name}:{self.server_port}" for name in ("127.0.0.1", "localhost")}
        self.url = f"http://127.0.0.1:{self.server_port}{self.home}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore errors of browsers that disconnect."""


def _json(value: Any) -> bytes:
    """Serialise to JSON that browsers can parse, without NaN."""
    try:
        return json.dumps(value, allow_nan=False).encode()
    except ValueError:
        return json.dumps(_finite(value)).encode()


def _finite(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_finite(item) for item in value]
    return repr(value) if isinstance(value, float) and not math.isfinite(value) else value


class _Handler(BaseHTTPRequestHandler):
    server: ViewServer
    protocol_version = "HTTP/1.1"
    timeout = 60
    # Head and body in one packet, at once: two wait 40 ms for the first one's acknowledgement.
    wbufsize = -1
    disable_nagle_algorithm = True

    def do_GET(self) -> None:  # the standard library's name
        path = self.path.partition("?")[0]
        # Another site's page could reach this port under a name of its own (DNS rebinding).
        if self.headers.get("Host") not in self.server.hosts or not path.startswith(
            self.server.home
        ):
            self._send(b"not found", "text/plain", HTTPStatus.NOT_FOUND)
            return
        name = path.removeprefix(self.server.home)
        if name in _FILES:
            file, kind = _FILES[name]
            self._send(resources.files(__package__).joinpath(file).read_bytes(), kind)
        else:
            self._data(name)

    def _data(self, name: str) -> None:
        pages = self.server.pages
        kind, _, place = name.removeprefix("data/").partition("/")
        try:
            if name == "data/run":
                found: Any = pages.run()
            elif name == "data/index":
                found = pages.index()
            elif kind == "group" and place.isdecimal():
                found = pages.group(int(place))
            else:
                raise IndexError(kind)
        except IndexError:
            self._send(b"not found", "text/plain", HTTPStatus.NOT_FOUND)
        except (DataError, OSError) as error:  # the files have changed, or are gone
            self._send(str(error).encode(), "text/plain", HTTPStatus.INTERNAL_SERVER_ERROR)
        else:
            self._send(_json(found), "application/json")

    def _send(self, body: bytes, kind: str, status: HTTPStatus = HTTPStatus.OK) -> None:
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.send_header("Content-Security-Policy", _POLICY)
        self.send_header("X-Content-Type-Options", "nosniff")
        self.send_header("Referrer-Policy", "no-referrer")
        self.send_header("Cross-Origin-Resource-Policy", "same-origin")
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:  # noqa: A002  # the standard library's
        """Log nothing, to protect the user's privacy."""
