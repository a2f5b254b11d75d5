"""Container images: made of what this machine has, or by Docker from an image of a registry."""

from __future__ import annotations

import contextlib
import io
import tempfile
from collections.abc import Iterable
from typing import Any

from ..backends.docker import PRELOAD_LABEL, connect
from ..errors import ImageUnavailable, SandboxError
from .archive import archive, write_layer
from .description import ImageDescription, describe
from .host_files import Tree, add_distributions, add_packages, add_python


def registry_fault(reference: str, timeout_s: int = 15) -> str | None:
    """Return why an image cannot be pulled now, or ``None`` if its registry has it.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
    """
    import docker.errors
    import requests

    with contextlib.closing(connect(timeout_s)) as client:
        try:
            client.inspect_distribution(reference)
        except (docker.errors.DockerException, requests.RequestException) as error:
            return str(getattr(error, "explanation", None) or error)
    return None


def build_image(
    tag: str | None = None, description: ImageDescription | None = None, *, pull: str | None = None
) -> str:
    """Make an image that programs run in, and return its digest.

    Args:
        tag: what to call it; default: ``assay-NAME:VERSION`` of this Python.
        description: what to put into it; default: Python alone.
        pull: an image to start from, such as ``description.base``; Docker pulls it and installs
            the packages in it. Default: everything comes from this machine: its own Python, with
            the packages as they are installed here. That needs no registry and no network, and
            the same files give the same digest.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
        ImageUnavailable: the reference cannot be pulled, or packages are missing. The message
            names them.
        SandboxError: the daemon does not take the image.

    Example:
        >>> from assay.sandbox import describe
        >>> describe("science").preload
        ('numpy', 'pandas', 'sympy')
    """
    import docker.errors
    import requests

    description = description or describe("python")
    tag = tag or description.tag
    client = connect(600)
    try:
        if pull is not None:
            _pull(client, tag, description, pull)
        else:
            _load(client, tag, description)
        digest: str = client.inspect_image(tag)["Id"]
        if tag == description.tag:  # Dockerfiles name it without the version of this Python
            client.tag(digest, tag.partition(":")[0], "latest")
    except (docker.errors.DockerException, requests.RequestException) as error:
        if pull is not None:
            raise ImageUnavailable(f"cannot pull {pull!r}: {error}") from error
        raise SandboxError(f"Docker does not load the image: {error}") from error
    finally:
        client.close()
    return digest


def image_tree(description: ImageDescription) -> Tree:
    """Return the files of this machine that make up an image.

    Raises:
        ImageUnavailable: packages are missing here.
    """
    tree = Tree()
    add_python(tree)
    add_distributions(tree, description.pip)
    add_packages(tree, description.system)
    return tree


def dockerfile(description: ImageDescription, base: str) -> str:
    """Return the Dockerfile of an image that starts from a registry's."""
    lines = [f"FROM {base}"]
    if description.system:
        lines.append(
            "RUN apt-get update && apt-get install --yes --no-install-recommends "
            f"{' '.join(description.system)} && rm -rf /var/lib/apt/lists/*"
        )
    if description.pip:
        lines.append(f"RUN pip install --no-cache-dir {' '.join(description.pip)}")
    if description.preload:
        lines.append(f'LABEL {PRELOAD_LABEL}="{" ".join(description.preload)}"')
    return "\n".join(lines) + "\n"


def _load(client: Any, tag: str, description: ImageDescription) -> None:
    labels = {PRELOAD_LABEL: " ".join(description.preload)} if description.preload else {}
    with tempfile.TemporaryFile() as layer:
        write_layer(image_tree(description), layer)
        fault = _fault(client.load_image(archive(layer, tag, labels)))
    if fault:
        raise SandboxError(f"Docker does not load the image: {fault}")


def _pull(client: Any, tag: str, description: ImageDescription, base: str) -> None:
    if not (description.pip or description.system or description.preload):
        client.pull(base)
        repository, _, name = tag.partition(":")
        client.tag(base, repository, name or "latest")
        return
    source = io.BytesIO(dockerfile(description, base).encode())
    fault = _fault(client.build(fileobj=source, tag=tag, rm=True, forcerm=True, decode=True))
    if fault:
        raise ImageUnavailable(f"Docker does not build {tag}: {fault}")


def _fault(messages: Iterable[dict[str, Any]]) -> str:
    """Return what went wrong, from the stream of messages of a daemon."""
    return "; ".join(message["error"].strip() for message in messages if "error" in message)
