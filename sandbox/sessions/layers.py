"""Images of a Docker daemon of this machine, as folders that an overlay shows."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..backends.docker import connect
from ..errors import ImageUnavailable, SandboxUnavailable

_LONGEST = 3500
"""Bytes of ``lowerdir`` that fit into the one page of mount's options, with the other options."""


def daemons_image(image: str) -> Mapping[str, Any]:
    """Return a daemon's description of an image.

    Raises:
        ImageUnavailable: no daemon answers, or it does not have the image.
    """
    import docker.errors

    no_folder = f"{image!r} is no folder with bin/sh, and no image of a Docker daemon either"
    try:
        with contextlib.closing(connect()) as client:
            found: Mapping[str, Any] = client.inspect_image(image)
    except docker.errors.ImageNotFound as error:
        raise ImageUnavailable(f"{no_folder}: `assay sandbox build` makes one") from error
    except (SandboxUnavailable, docker.errors.DockerException, OSError) as error:
        raise ImageUnavailable(f"{no_folder}: {error}") from error
    return found


def layers_of(image: str, found: Mapping[str, Any]) -> str:
    """Return the folders of an image's layers, as ``lowerdir`` wants them: the topmost first.

    Raises:
        ImageUnavailable: the daemon keeps them otherwise, or on another machine.
    """
    driver = found.get("GraphDriver") or {}
    data = driver.get("Data") or {}
    folders = [data.get("UpperDir", ""), *filter(None, data.get("LowerDir", "").split(":"))]
    if driver.get("Name") != "overlay2" or not all(map(os.path.isdir, folders)):
        raise ImageUnavailable(
            f"bubblewrap shows images of Docker only where the daemon keeps them on this machine "
            f"as overlay2, not {image!r}: give a folder, such as an unpacked `docker export`"
        )
    lower = ":".join(map(_short, folders))
    if len(lower) > _LONGEST:
        raise ImageUnavailable(
            f"image {image!r} has {len(folders)} layers, more than one mount takes: squash it, or "
            "give a folder, such as an unpacked `docker export`"
        )
    return lower


def _short(folder: str) -> str:
    """Return the link that the daemon keeps for a layer, which is shorter than its name."""
    layer = Path(folder).parent
    try:
        return str(layer.parent / "l" / (layer / "link").read_text("ascii"))
    except OSError:
        return folder
