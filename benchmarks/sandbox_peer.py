"""One worker of another sandbox, run by an interpreter that has it: a line in, a program run.

    python sandbox_peer.py llm-sandbox|epicbox IMAGE

Reads lines; for each runs the program that the environment variable PROGRAM holds, and answers
with a line of JSON: what it printed, or how it failed. Set-up that a user would do once is done
before the first answer, so that it is not timed.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections.abc import Callable, Iterator

PROGRAM = os.environ["PROGRAM"]


@contextlib.contextmanager
def llm_sandbox(image: str) -> Iterator[Callable[[], str]]:
    """A session kept open: a new one for each program takes ten seconds to stop."""
    from llm_sandbox import SandboxSession

    with SandboxSession(
        lang="python",
        image=image,
        keep_template=True,
        skip_environment_setup=True,
        workdir="/tmp",  # noqa: S108 - the container's
        runtime_configs={"network_mode": "none"},
    ) as session:
        yield lambda: str(session.run(PROGRAM).stdout)


@contextlib.contextmanager
def epicbox(image: str) -> Iterator[Callable[[], str]]:
    """A container for each program, which is the only way it has."""
    import epicbox

    epicbox.configure(profiles=[epicbox.Profile("python", image)])
    files = [{"name": "main.py", "content": PROGRAM.encode()}]
    limits = {"cputime": 5, "memory": 256}

    def run() -> str:
        found = epicbox.run("python", "python3 -I main.py", files=files, limits=limits)
        return str(found["stdout"].decode())

    yield run


def main(name: str, image: str) -> None:
    """Answer until the input ends. What the library itself prints goes to stderr."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    with {"llm-sandbox": llm_sandbox, "epicbox": epicbox}[name](image) as run:
        for _ in sys.stdin:
            try:
                answer = {"output": run()}
            except Exception as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
            print(json.dumps(answer), file=answers, flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
