"""``assay view``: browse the replies of a run."""

from __future__ import annotations

import os
import sys
import webbrowser
from pathlib import Path
from typing import Annotated

from typer import Argument, Option

from .console import say
from .evaluation.view import ViewServer, open_pages


def _has_screen() -> bool:
    """Return whether a desktop is available; otherwise a browser would occupy the terminal."""
    return sys.platform in ("win32", "darwin") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")
    )


def view_command(
    run: Annotated[Path, Argument(help="The directory of an evaluation, or of a training run.")],
    other: Annotated[
        Path | None,
        Argument(help="A second evaluation, to show its verdicts beside the first one's."),
    ] = None,
    port: Annotated[
        int, Option(min=0, max=65535, help="Port of the page; 0 for any free one.")
    ] = 0,
    open_page: Annotated[bool, Option("--open/--no-open", help="Open the browser.")] = True,
) -> None:
    """Browse a run: replies side by side, rewards, reasons, plots.

    Listens on this machine only and loads nothing external. Ctrl-C ends it.
    """
    server = ViewServer(open_pages(run, other), port)
    try:
        say(f"{server.url}\nCtrl-C ends it.")
        if open_page and _has_screen():
            webbrowser.open(server.url)
        server.serve_forever()
    except KeyboardInterrupt:
        say("")
    finally:
        server.server_close()
