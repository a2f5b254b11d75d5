"""``assay harbor``: run agents on Harbor task folders, and check the tasks."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer
from rich import box as rich_box
from rich.table import Table
from typer import Argument, Option

from .command import Command
from .console import AsJson, add_row, err, out, print_json, progress, say
from .envs.harbor import (
    HACKS,
    Agent,
    CommandAgent,
    HarborTask,
    Trial,
    check_task,
    load_tasks,
    nop,
    oracle,
    read_task,
    run_trial,
    task_folders,
)
from .envs.harbor.making.maker import Made
from .envs.harbor.making.mine import mine as mined
from .envs.harbor.making.swe import from_swe as swe_tasks
from .envs.scoring import refuse_unwritable
from .eval_cli import eval_command
from .evaluation.named_policy import FORMS
from .sandbox import Sandbox
from .verifiers.atomic_io import write_text
from .verifiers.visible import one_line

harbor_app = typer.Typer(
    help="Run agents on Harbor task folders, and check the tasks.",
    epilog="Example: assay harbor run examples/harbor --agent oracle",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_Found = TypeVar("_Found")

Folder = Annotated[Path, Argument(help="A task folder, or a folder of task folders.")]
Jobs = Annotated[int, Option("--jobs", "-j", min=1, help="Tasks at one time.")]
Only = Annotated[list[str] | None, Option("--task", help="Only this task, by id or folder.")]
Guard = Annotated[
    bool,
    Option(
        "--guard/--no-guard",
        help="Keep the agent's code out of the tests' processes. Without, it can forge rewards.",
    ),
]


@harbor_app.command(cls=Command, epilog="Example: assay harbor run examples/harbor --agent oracle")
def run(
    folder: Folder,
    agent: Annotated[
        str, Option(help="oracle, nop, policy, or a shell command that works in the container.")
    ] = "oracle",
    policy: Annotated[
        str | None, Option("--policy", "-p", help=f"With --agent policy: {FORMS}.")
    ] = None,
    model: Annotated[str | None, Option(help="The server's name for the model.")] = None,
    task: Only = None,
    guard: Guard = True,
    jobs: Jobs = 2,
    out_path: Annotated[
        Path | None,
        Option(
            "--out",
            "-o",
            help="Write each trial to this JSONL file when it ends; with --agent policy: the run's "
            "directory.",
        ),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Let an agent work on each task, and grade what it leaves in a fresh container.

    A policy plays assay/Harbor-v0, as in assay eval. Exit code 1: a fault left a trial without a
    score.
    """
    if agent == "policy":
        if policy is None:
            raise ValueError("--agent policy needs --policy")
        eval_command(
            "assay/Harbor-v0", policy, model=model, data=str(folder), task=task, out_path=out_path,
            as_json=as_json, setting=[f"guard={json.dumps(guard)}"],
        )  # fmt: skip
        return
    if policy is not None or model is not None:
        raise ValueError("--policy and --model go with --agent policy")
    known: dict[str, Agent] = {"oracle": oracle, "nop": nop}
    works = known.get(agent) or CommandAgent(agent)
    tasks = _chosen(folder, task, guard)
    if out_path:
        refuse_unwritable(out_path)
        write_text(out_path, "")
    written = threading.Lock()

    def play(one: HarborTask) -> Trial:
        trial = run_trial(one, works, sandbox, name=agent)
        if out_path:
            with written, out_path.open("a", encoding="utf-8") as file:
                file.write(json.dumps(trial.to_json()) + "\n")
        return trial

    with Sandbox() as sandbox:
        trials = _each(tasks, jobs, play)
    if as_json:
        print_json([trial.to_json() for trial in trials])
    else:
        table = Table("task", "reward", "grading", "s", "reason", box=rich_box.SIMPLE_HEAD)
        for trial in trials:
            shown = "none" if trial.reward is None else f"{trial.reward:g}"
            reason = one_line(trial.graded.verdict.reason)
            add_row(table, trial.task, shown, trial.graded.grading, f"{trial.seconds:.1f}", reason)
        out.print(table)
        scored = [trial.reward for trial in trials if trial.reward is not None]
        if scored:
            say(f"Mean reward of {len(scored)} trials: {sum(scored) / len(scored):.3f}")
    faults = [trial for trial in trials if trial.reward is None]
    if faults:
        why = one_line(faults[0].graded.verdict.reason)
        say(
            f"{len(faults)} of {len(trials)} trials have no score, the first because: {why}", to=err
        )
        raise typer.Exit(1)


@harbor_app.command(
    cls=Command, epilog="Example: assay harbor check examples/harbor --hacks published"
)
def check(
    folder: Folder,
    hacks: Annotated[
        Literal["none", "published", "all"],
        Option(help="Attacks on the grader to try on each task."),
    ] = "none",
    repeat: Annotated[
        int, Option(min=1, help="Runs of the oracle and of the no-op: do they agree?")
    ] = 2,
    task: Only = None,
    guard: Guard = True,
    static: Annotated[
        bool, Option("--static", help="Only read the tasks and look for their images.")
    ] = False,
    jobs: Jobs = 2,
    as_json: AsJson = False,
) -> None:
    """Find tasks that no one should train on.

    On each task: the oracle, which must earn 1; an agent that does nothing, three random ones and
    the attacks, which must earn nothing. Exit code 1 if something is found.
    """
    tried = [h for h in HACKS if hacks == "all" or (hacks == "published" and h.pattern)]
    read = [read_task(path, guard=guard) for path in task_folders(folder)]
    read = [(t, c) for t, c in read if not task or {c.task, t and t.folder.name} & set(task)]
    if not read:
        raise ValueError(
            f"{folder} has no task {task}" if task else f"{folder} holds no task folder"
        )
    found = [one for loaded, one in read if loaded is None or static]
    if not static:
        usable = [loaded for loaded, _ in read if loaded is not None]
        with Sandbox() as sandbox:
            found += _each(
                usable, jobs, lambda one: check_task(one, sandbox, repeat=repeat, hacks=tried)
            )
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        for one in found:
            say(f"{one.task}: {'ok' if not one.findings else 'NOT to be trained on'}")
            for line in (*one.findings, *(f"note: {note}" for note in one.notes)):
                say(f"    {one_line(line)}")
        bad = sum(bool(one.findings) for one in found)
        say(f"{len(found) - bad} of {len(found)} tasks {'can be read' if static else 'are sound'}.")
    if any(one.findings for one in found):
        raise typer.Exit(1)


Out = Annotated[Path, Option("--out", "-o", help="The folder of the tasks.")]
Image = Annotated[str, Option(help="What environments start from: it has git and pytest.")]
Setup = Annotated[str, Option(help="A command that installs the repository in the image.")]
Seconds = Annotated[float, Option(min=1, help="Seconds for the tests of a task.")]


@harbor_app.command(cls=Command, epilog="Example: assay harbor mine ~/src/boltons --limit 5")
def mine(
    repository: Annotated[Path, Argument(help="A local git repository. It is only read.")],
    out_folder: Out = Path("tasks"),
    limit: Annotated[int, Option(min=1, help="Tasks to make.")] = 10,
    revisions: Annotated[str, Option("--range", help="Commits, as for rev-list.")] = "HEAD",
    image: Image = "assay-shell:latest",
    setup: Setup = "",
    command: Annotated[
        str, Option(help="Runs the tests, if pytest does not; its exit code decides.")
    ] = "",
    timeout: Seconds = 300.0,
    jobs: Jobs = 2,
    as_json: AsJson = False,
) -> None:
    """Make tasks of the commits whose tests fail before them and pass after them.

    Each is tried in containers before it is written: doing nothing must earn 0 and the commit's own
    change 1, twice. The container has no history. A second run goes on where the first has ended;
    refused.jsonl in the folder has what was refused. Exit code 1: no task was made.
    """
    with Sandbox() as sandbox:
        found = mined(
            repository, out_folder, sandbox, revisions=revisions, image=image, setup=setup,
            command=command, limit=limit, jobs=jobs, timeout_s=timeout,
        )  # fmt: skip
        _report_made(found, out_folder, as_json)


@harbor_app.command(
    "from-swe",
    cls=Command,
    epilog="Example: assay harbor from-swe rows.jsonl --repos ~/src --image mine:1",
)
def from_swe(
    rows: Annotated[Path, Argument(help="JSON, JSONL, CSV or Parquet, or a folder of such files.")],
    out_folder: Out = Path("tasks"),
    repos: Annotated[
        Path | None, Option(help="A folder with clones, such as OWNER/NAME or NAME.")
    ] = None,
    image: Annotated[str, Option(help="For rows whose own image is not here.")] = "",
    setup: Setup = "",
    limit: Annotated[int | None, Option(min=1, help="Tasks to make.")] = None,
    split: Annotated[str, Option(help="To read, if there are several.")] = "test",
    timeout: Seconds = 1800.0,
    jobs: Jobs = 2,
    as_json: AsJson = False,
) -> None:
    """Make tasks of rows of SWE-bench, SWE-smith or R2E-Gym.

    Each is tried in containers before it is written, as by mine. A row needs its image, or a clone
    of its repository and --image; nothing is pulled. Exit code 1: no task was made.
    """
    with Sandbox() as sandbox:
        found = swe_tasks(
            rows, out_folder, sandbox, repos=repos, image=image, setup=setup, split=split,
            limit=limit, jobs=jobs, timeout_s=timeout,
        )  # fmt: skip
        _report_made(found, out_folder, as_json)


def _report_made(found: Iterator[Made], folder: Path, as_json: bool) -> None:
    rows = []
    for one in found:
        rows.append(one)
        if not as_json:
            said = f"refused: {one.refused}" if one.refused else f"{one.grading}: {one.title}"
            say(one_line(f"{one.name}  {said}"))
    made = [one for one in rows if not one.refused]
    if as_json:
        print_json([asdict(one) for one in rows])
    else:
        say(f"{len(made)} tasks made in {folder}, {len(rows) - len(made)} refused.")
    if not made:
        raise typer.Exit(1)


def _chosen(folder: Path, names: list[str] | None, guard: bool) -> list[HarborTask]:
    tasks = load_tasks(folder, guard=guard)
    chosen = [t for t in tasks if not names or {t.id, t.folder.name} & set(names)]
    if not chosen:
        raise ValueError(f"{folder} has no task {names}; it has {', '.join(t.id for t in tasks)}")
    return chosen


def _each(tasks: list[HarborTask], jobs: int, do: Callable[[HarborTask], _Found]) -> list[_Found]:
    with ThreadPoolExecutor(jobs) as pool, progress() as bar:
        row = bar.add_task("tasks", total=len(tasks))
        running = [pool.submit(do, task) for task in tasks]
        for each in running:
            each.add_done_callback(lambda _: bar.advance(row))
        try:
            return [each.result() for each in running]
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
