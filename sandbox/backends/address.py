"""Addresses of Docker daemons, and clients for them."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from ..errors import SandboxUnavailable
from ..redaction import redact
from .tunnel import forward, ssh_fault


def default_address() -> str:
    """Return the address in DOCKER_HOST, or that of the local daemon."""
    return os.environ.get("DOCKER_HOST") or "unix:///var/run/docker.sock"


def checked_addresses(hosts: Sequence[str]) -> tuple[str, ...]:
    """Check addresses of daemons, and return them as they are given.

    Raises:
        ValueError: one is malformed, or is given twice.
    """
    if isinstance(hosts, str) or not hosts:
        raise ValueError(
            f"hosts must be a list of one address or more, such as ['unix:///var/run/docker.sock', "
            f"'ssh://user@host'], got {redact(hosts)!r}"
        )
    for i, address in enumerate(hosts):
        fault = _address_fault(address) if isinstance(address, str) else "it is not a string"
        if fault is None and address in hosts[:i]:
            fault = "it is given twice; give a machine more work with `slots`"
        if fault is not None:
            raise ValueError(
                f"hosts[{i}] is {redact(address)!r}: {fault}. An address is "
                "unix:///path/to/docker.sock, ssh://user@host[:port] or tcp://host:port"
            )
    return tuple(hosts)


def _address_fault(address: str) -> str | None:
    scheme, separator, rest = address.partition("://")
    if not separator or scheme not in ("unix", "ssh", "tcp"):
        return "it begins with none of unix://, ssh:// and tcp://"
    if scheme == "unix":
        return None if rest.startswith("/") else "the path of a socket begins with /"
    if scheme == "ssh":
        return ssh_fault(address)
    try:
        parts = urlsplit(address)
        if not parts.hostname or not parts.port:
            return "it needs a host and a port (2376 with TLS, 2375 without)"
    except ValueError as error:
        return str(error)
    if parts.path.strip("/") or parts.username is not None:
        return "only a host and a port come after tcp://"
    return None


def open_client(address: str, timeout_s: int, version: str | None = None) -> Any:
    """Open a client of the low-level API at an address, through an SSH tunnel if it is ssh://.

    Raises:
        SandboxUnavailable: nothing listens there, or what listens is no Docker daemon.
    """
    url = forward(address) if address.startswith("ssh://") else address
    try:
        if url.startswith("unix://"):
            # Importing docker-py takes 0.2 s, for nothing if nobody listens.
            with socket.socket(socket.AF_UNIX) as probe:
                probe.connect(url.removeprefix("unix://"))
        from .docker_client import Client

        return Client(url, timeout_s, version)
    except OSError as error:
        raise SandboxUnavailable(unreachable_message(address, error)) from error
    except Exception as error:
        import docker.errors

        if isinstance(error, docker.errors.DockerException):
            raise SandboxUnavailable(unreachable_message(address, error)) from error
        raise


def unreachable_message(address: str, error: BaseException) -> str:
    """Describe a daemon that does not answer, with the remedy."""
    remedy = "Start Docker there."
    if address.startswith("ssh://"):
        remedy = "ssh gets there: start Docker, and give the user access to its socket."
    elif address == default_address():
        remedy = "Start Docker, or set DOCKER_HOST."
    return str(redact(f"cannot reach Docker at {address}: {daemon_message(error)}. {remedy}"))


def daemon_message(error: BaseException) -> str:
    """Return what the daemon itself said, without the HTTP around it."""
    return str(getattr(error, "explanation", None) or error).strip().rstrip(".")
