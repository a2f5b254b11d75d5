"""Any environment over HTTP and WebSocket, and a client that is an environment itself.

It needs the extra ``serve``. :func:`create_app` is the server, :class:`RemoteEnv` the client.
"""

from __future__ import annotations

from .app import create_app
from .client import RemoteEnv
from .limits import ServiceLimits
from .remote import RemoteError
from .server import check_exposure, serve
from .tokens import Tokens

__all__ = [
    "RemoteEnv",
    "RemoteError",
    "ServiceLimits",
    "Tokens",
    "check_exposure",
    "create_app",
    "serve",
]
