"""Images of a Dockerfile whose FROM is here already, so no registry is asked for anything."""

from __future__ import annotations

import contextlib
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..backends.docker import connect
from ..errors import ImageUnavailable, SandboxError

_SAID = 2000  # characters of a step's output in an error
_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_NO_NETWORK = re.compile(
    r"could not resolve|temporary failure|network is unreachable|name resolution|connection error"
    r"|no such network interface|getaddrinfo|failed to establish a new connection",
    re.IGNORECASE,
)
_BUILDKIT = (
    "\nDocuments (<<EOF), RUN --mount and COPY --chmod need BuildKit, which is not used here: "
    "write it without them, or build the image by `docker buildx build` and name its tag"
)


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction of a Dockerfile."""

    line: int
    name: str
    text: str

    def __str__(self) -> str:
        return f"line {self.line}: {self.name} {self.text}"


def instructions(text: str) -> list[Instruction]:
    """Read a Dockerfile's instructions, as Docker numbers them."""
    found: list[Instruction] = []
    began, parts = 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.lstrip().startswith("#") or not line.strip():
            continue
        began = began or number
        parts.append(line.strip().removesuffix("\\").strip())
        if line.rstrip().endswith("\\"):
            continue
        name, _, arguments = " ".join(filter(None, parts)).partition(" ")
        found.append(Instruction(began, name.upper(), arguments.strip()))
        began, parts = 0, []
    return found


def build_folder(
    path: Path | str,
    tag: str,
    *,
    network: str = "none",
    arguments: Mapping[str, str] | None = None,
    timeout_s: float = 3600.0,
) -> str:
    """Build an image from a folder with a Dockerfile, or from a Dockerfile, and return its digest.

    Docker keeps the layers, so a second build of the same files takes no time. Nothing is pulled.

    Args:
        path: the folder, which is the build's context, or a Dockerfile in it.
        tag: what to call the image.
        network: ``none``, or ``default`` for what the daemon gives its builds.
        arguments: values of the Dockerfile's ARG.
        timeout_s: seconds until the build is ended; a step that prints nothing is noticed after
            as many seconds of silence.

    Raises:
        ValueError: there is no Dockerfile.
        ImageUnavailable: an image that it starts from is not here, it cannot be read, a step
            fails, or the time is over. The message has the line.
        SandboxUnavailable: no Docker daemon answers.
    """
    import docker.errors
    import requests
    import urllib3

    file = Path(path)
    file = file / "Dockerfile" if file.is_dir() else file
    if not file.is_file():
        raise ValueError(f"no Dockerfile at {file}")
    steps = instructions(text := file.read_text("utf-8"))
    client = connect()
    end = time.monotonic() + timeout_s
    try:
        for step, image in _bases(steps, arguments or {}):
            _check_here(client, file, step, image)
        stream = client.build(
            path=str(file.parent),
            dockerfile=file.name,
            tag=tag,
            rm=True,
            forcerm=True,
            network_mode=network,
            buildargs=dict(arguments or {}),
            timeout=max(1, round(timeout_s)),
            decode=True,
        )
        _check_built(stream, file, steps, network, end)
        return str(client.inspect_image(tag)["Id"])
    except (TimeoutError, urllib3.exceptions.ReadTimeoutError) as error:
        raise ImageUnavailable(f"{file}: its build does not end in {timeout_s:g} s") from error
    except (
        docker.errors.DockerException,
        requests.RequestException,
        urllib3.exceptions.HTTPError,
    ) as error:
        if isinstance(error, docker.errors.APIError) and error.status_code == 400:
            hint = _BUILDKIT if "<<" in text else ""
            raise ImageUnavailable(f"{file}: {error.explanation}{hint}") from error
        raise SandboxError(f"Docker does not build {file}: {error}") from error
    finally:
        client.close()


def base_fault(text: str, where: Path) -> str | None:
    """Return why a Dockerfile cannot start on this machine; ``None`` if it can.

    Looks for the images that it is built on, and builds nothing.

    Args:
        text: the Dockerfile.
        where: its file, for the message.

    Raises:
        SandboxUnavailable: no Docker daemon answers.
    """
    with contextlib.closing(connect()) as client:
        try:
            for step, image in _bases(instructions(text), {}):
                _check_here(client, where, step, image)
        except ImageUnavailable as error:
            return str(error)
    return None


def _bases(
    steps: Sequence[Instruction], arguments: Mapping[str, str]
) -> Iterable[tuple[Instruction, str]]:
    """Yield the images that a Dockerfile starts from or copies from, its own stages left out."""
    values: dict[str, str] = {}
    stages: set[str] = {"scratch"}
    for step in steps:
        words = step.text.split()
        if step.name == "ARG" and len(stages) == 1:  # before the first FROM
            name, _, default = step.text.partition("=")
            values[name] = arguments.get(name, default.strip("\"'"))
        elif step.name == "FROM":
            image = next((word for word in words if not word.startswith("--")), "")
            image = re.sub(r"\$\{?(\w+)\}?", lambda m: values.get(m[1], ""), image)
            if image and image.lower() not in stages:
                yield step, image
            stages.add(words[-1].lower() if len(words) > 2 else str(len(stages)))
        elif step.name == "COPY":
            source = next((w[7:] for w in words if w.startswith("--from=")), "")
            if source and source.lower() not in stages and not source.isdigit():
                yield step, source


def _check_here(client: Any, file: Path, step: Instruction, image: str) -> None:
    import docker.errors

    try:
        client.inspect_image(image)
    except docker.errors.ImageNotFound as error:
        raise ImageUnavailable(
            f"{file}, {step}: Docker has no image {image!r} here, and nothing is pulled. Bring it "
            f"with `docker load`, or let another stand for it: `docker tag IMAGE {image}`"
        ) from error


def _check_built(
    stream: Iterable[Mapping[str, Any]],
    file: Path,
    steps: Sequence[Instruction],
    network: str,
    end: float,
) -> None:
    """Follow a build to its end.

    Raises:
        ImageUnavailable: a step fails.
        TimeoutError: the time is over.
    """
    number, said = 0, ""
    for message in stream:
        if time.monotonic() > end:
            raise TimeoutError
        text = _COLOURS.sub("", str(message.get("stream", "")))
        if step := re.match(r"Step (\d+)/\d+ : ", text):
            number, said = int(step[1]), ""
        else:
            said = (said + text)[-_SAID:]
        if "error" in message:
            where = f"{file}, {steps[number - 1]}" if 0 < number <= len(steps) else str(file)
            fault = f"{said.strip()}\n{message['error']}".strip()
            hint = _BUILDKIT if "BuildKit" in fault else ""
            if network == "none" and _NO_NETWORK.search(fault):
                hint += "\nThe build has no network: give --network default if it may have one"
            raise ImageUnavailable(f"{where}\n{fault}{hint}")
