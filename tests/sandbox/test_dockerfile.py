"""Images of a Dockerfile, from what is on this machine."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from assay.cli import app
from assay.sandbox import ImageUnavailable, Sandbox, build_folder
from assay.sandbox.backends.docker import connect
from assay.sandbox.images.dockerfile import instructions

TAG = f"assay-tests-dockerfile:{os.getpid()}"


@pytest.fixture(scope="module")
def folder(session_image: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a Dockerfile; what it is built to is removed at the end."""
    path = tmp_path_factory.mktemp("context")
    (path / "data.txt").write_text("data\n")
    (path / "Dockerfile").write_text(
        f"# a comment\nARG BASE={session_image}\nFROM ${{BASE}} AS first\nRUN echo one >/one\n"
        "FROM first\nCOPY --from=first /one /two\nCOPY data.txt /app/\n# within\n"
        "RUN echo x:x:1234:1234::/home/x:/bin/sh >>/etc/passwd \\\n"
        "    && mkdir -p /home/x\nENV A=1\nWORKDIR /app\nUSER x\n"
    )
    yield path
    client = connect()
    for image in client.images(TAG):
        client.remove_image(image["Id"], force=True)
    client.close()


def test_an_image_is_built_from_what_is_here(folder: Path) -> None:
    digest = build_folder(folder, TAG)
    assert build_folder(folder / "Dockerfile", TAG) == digest  # the layers are kept
    with Sandbox(backend="docker") as box, box.session(TAG) as s:
        found = s.exec("cat data.txt /two; echo $A $HOME; id -un; pwd").text
        assert found == "data\none\n1 /home/x\nx\n/app\n"
    refused = CliRunner().invoke(app, ["sandbox", "build", "shell", "--tag", TAG])
    assert "shell has a name of its own" in str(refused.exception)
    done = CliRunner().invoke(app, ["sandbox", "build", str(folder), "--tag", TAG])
    assert digest in done.output


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("\nFROM no-such-image:9\n", r"line 2: FROM no-such-image:9: Docker has no image 'no-such"),
        (
            "FROM BASE\nCOPY --from=no-such:1 /a /b\n",
            r"line 2: COPY .*Docker has no image 'no-such",
        ),
        (
            "FROM BASE\nRUN true\nRUN true && \\\n  exit 7\n",
            r"(?s)line 3: RUN true && exit 7.*code: 7",
        ),
        (
            "FROM BASE\nRUN python3 -c 'import socket; socket.getaddrinfo(\"example.org\", 80)'\n",
            r"(?s)line 2: RUN python3.*has no network: give --network default",
        ),
        ("FROM BASE\nRUN <<EOF\necho 1\nEOF\n", r"need BuildKit"),
        ("FROM BASE\nCOPY --chmod=644 x /x\n", r"(?s)line 2: COPY --chmod.*docker buildx build"),
        ("FROM BASE\nCOPY missing /x\n", r"(?s)line 2: COPY missing /x.*missing"),
    ],
)
def test_what_cannot_be_built_is_refused_with_its_line(
    session_image: str, tmp_path: Path, text: str, fault: str
) -> None:
    file = tmp_path / "Dockerfile"
    file.write_text(text.replace("BASE", session_image))
    with pytest.raises(ImageUnavailable, match=fault):
        build_folder(file, TAG)


@pytest.mark.slow
@pytest.mark.parametrize("step", ["sleep 60", "for i in 1 2 3 4 5 6 7 8; do echo; sleep 1; done"])
def test_a_build_that_does_not_end_is_ended(session_image: str, tmp_path: Path, step: str) -> None:
    (tmp_path / "Dockerfile").write_text(f"FROM {session_image}\nRUN {step}; : {os.getpid()}\n")
    began = time.monotonic()
    with pytest.raises(ImageUnavailable, match=r"its build does not end in 2 s"):
        build_folder(tmp_path, TAG, timeout_s=2.0)
    assert time.monotonic() - began < 30


def test_instructions_are_read_as_docker_numbers_them() -> None:
    text = "# syntax\n\nFROM a\nRUN b \\\n # note\n  c\\\n\n  d\nenv e=1"
    found = [(step.line, step.name, step.text) for step in instructions(text)]
    assert found == [(3, "FROM", "a"), (4, "RUN", "b c d"), (9, "ENV", "e=1")]
    with pytest.raises(ValueError, match="no Dockerfile"):
        build_folder("/no/such/folder", TAG)
