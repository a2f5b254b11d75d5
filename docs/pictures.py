"""Make the docs' screenshots from a short training run and two evaluations, in Chromium.

    python docs/pictures.py [--runs FOLDER]

About two minutes on two cores. Look at the pictures before you commit them.
"""

import argparse
import runpy
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from PIL import Image

from assay.evaluation.view import ViewServer, open_pages
from assay.grpo import tiny_model

DOCS = Path(__file__).parent
HARNESS = DOCS.parent / "tests" / "assay" / "evaluation" / "headless.py"
TASK = '''
from assay import Task, environment


@environment("mine/Digits-v0", rubric=lambda reply, _: sum(map(str.isdigit, reply)) / 8)
def digits(rng):
    """Write eight digits."""
    return Task(f"{rng.integers(1000)}: ", reference="")
'''
TRAIN = "--learning-rate 3e-3 --steps 30 --prompts-per-step 8 --max-new-tokens 8 --eval-every 10"
WIDTH, HEIGHT = 1200, 800


def make_runs(folder: Path) -> None:
    """Train a tiny model, evaluate a policy, and score its replies by a stricter rule."""
    (folder / "digits.py").write_text(TASK)
    tiny_model(folder / "model")
    evaluation = "eval assay/Arithmetic-v1 --policy assay.demo:hasty -n 8 --limit 60 --out sums"
    _assay(folder, f"train digits:mine/Digits-v0 --model model {TRAIN} --out digits-run")
    _assay(folder, "report digits-run")
    _assay(folder, evaluation)
    strict = '{"name": "Math", "extract": ["boxed"]}'
    _assay(folder, "rescore sums --out boxed-only --rubric", strict)


def _assay(folder: Path, command: str, *more: str) -> None:
    words = [sys.executable, "-m", "assay", *command.split(), *more]
    subprocess.run(words, cwd=folder, check=True)


@contextmanager
def served(*runs: Path) -> Iterator[str]:
    """Serve one or two runs as `assay view` does."""
    server = ViewServer(open_pages(*runs))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield server.url
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def take(folder: Path) -> None:
    """Take every picture."""
    page = runpy.run_path(str(HARNESS))["Headless"](width=WIDTH, height=HEIGHT)
    try:
        page.go((folder / "digits-run" / "report.html").as_uri(), "document.querySelector('svg')")
        picture(page, "report.png")
        with served(folder / "digits-run") as url:
            page.go(url, "document.querySelector('.plots')")
            picture(page, "view-training.png")
        with served(folder / "sums") as url:
            page.go(f"{url}#0", "document.querySelector('.card')")
            picture(page, "view.png")
        with served(folder / "sums", folder / "boxed-only") as url:
            page.go(f"{url}#0", "document.querySelector('.card')")
            page.key("c")
            picture(page, "compare.png")
    finally:
        page.close()


def picture(page: Any, name: str) -> None:
    """Write a screenshot with few colours, so that it stays small."""
    page.picture(DOCS / name)
    with Image.open(DOCS / name) as image:
        few = image.convert("RGB").quantize(128, dither=Image.Dither.NONE)
    few.save(DOCS / name, optimize=True)


def main() -> None:
    """Make the runs unless they are there, and take the pictures."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--runs", type=Path, help="keep the runs here, and take them from here")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (chosen.runs or Path(temporary)).resolve()
        if not (folder / "boxed-only").exists():
            folder.mkdir(parents=True, exist_ok=True)
            make_runs(folder)
        take(folder)


if __name__ == "__main__":
    main()
