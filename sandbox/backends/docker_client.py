"""docker-py's client, made fit for daemons that come and go."""

from __future__ import annotations

import os
import socket
from typing import Any
from urllib.parse import urlsplit

import docker
from docker.constants import DEFAULT_DOCKER_API_VERSION
from docker.utils import kwargs_from_env

_PROBE_S = 10.0


class Client(docker.APIClient):
    """A client of the low-level API.

    It connects once before a request over a unix socket: docker-py leaks its own socket where
    nobody listens.

    Args:
        url: the daemon's, as Docker writes it.
        timeout_s: for each answer.
        version: of the API. Default: the daemon's.

    Raises:
        OSError, docker.errors.DockerException: the daemon does not answer.
    """

    def __init__(self, url: str, timeout_s: int, version: str | None) -> None:
        self._path = url.removeprefix("unix://") if url.startswith("unix://") else ""
        # The variables of TLS are for tcp:// only; a certificate missing here must not stop unix://.
        arguments: dict[str, Any] = {"base_url": url}
        if not self._path:
            arguments = dict(kwargs_from_env({**os.environ, "DOCKER_HOST": url}))
        if url.startswith("tcp://"):
            parts = urlsplit(url)  # a host that is off would else be waited for much longer
            socket.create_connection((parts.hostname or "", parts.port or 2375), _PROBE_S).close()
        known = version or DEFAULT_DOCKER_API_VERSION
        super().__init__(**arguments, timeout=timeout_s, version=known)
        # Else a REQUESTS_CA_BUNDLE takes the place of Docker's own certificates.
        self.trust_env = "tls" not in arguments
        try:
            if version is None:
                # Asked for by docker-py's constructor, it leaks the connection where this fails.
                self._version = self.version(api_version=False)["ApiVersion"]
        except BaseException:
            super().close()
            raise

    def request(self, *arguments: Any, **options: Any) -> Any:
        """Send one request."""
        if self._path:
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(self._path)
        return super().request(*arguments, **options)
