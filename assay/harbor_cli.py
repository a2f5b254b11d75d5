"""``assay harbor``: run agents on Harbor task folders, and check the tasks."""

from __future__ import annotations

import json
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Annotated, Literal, TypeVar

import typer
from rich import box as rich_box
from rich.table import Table

from .console import AsJson, add_row, err, out, print_json, progress, say
from .envs.harbor import (
    HACKS,
    Agent,
    CommandAgent,
    HarborTask,
    TaskCheck,
    check_task,
    load_tasks,
    nop,
    oracle,
    run_trial,
)
from .eval_cli import eval_command
from .evaluation.named_policy import FORMS
from .sandbox import Sandbox
from .verifiers.visible import one_line

harbor_app = typer.Typer(
    help="Run agents on Harbor task folders, and check the tasks.",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

_Found = TypeVar("_Found")

Folder = Annotated[Path, typer.Argument(help="A task folder, or a folder of task folders.")]
Jobs = Annotated[int, typer.Option("--jobs", "-j", min=1, help="Tasks at one time.")]
Only = Annotated[list[str] | None, typer.Option("--task", help="Only this task, by id or folder.")]


@harbor_app.command(epilog="Example: assay harbor run examples/harbor --agent oracle")
def run(
    folder: Folder,
    agent: Annotated[
        str,
        typer.Option(help="oracle, nop, policy, or a shell command that works in the container."),
    ] = "oracle",
    policy: Annotated[
        str | None, typer.Option("--policy", "-p", help=f"With --agent policy: {FORMS}.")
    ] = None,
    model: Annotated[str | None, typer.Option(help="The server's name for the model.")] = None,
    task: Only = None,
    jobs: Jobs = 2,
    out_path: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the trials to this JSONL file.")
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
            as_json=as_json,
        )  # fmt: skip
        return
    if policy is not None or model is not None:
        raise ValueError("--policy and --model go with --agent policy")
    known: dict[str, Agent] = {"oracle": oracle, "nop": nop}
    works = known.get(agent) or CommandAgent(agent)
    tasks = _chosen(folder, task)
    with Sandbox() as box:
        trials = _each(tasks, jobs, lambda one: run_trial(one, works, box, name=agent))
    if out_path:
        out_path.write_text("".join(json.dumps(t.to_json()) + "\n" for t in trials), "utf-8")
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


@harbor_app.command(epilog="Example: assay harbor check examples/harbor --hacks published")
def check(
    folder: Folder,
    hacks: Annotated[
        Literal["none", "published", "all"],
        typer.Option(help="Attacks on the grader to try on each task."),
    ] = "none",
    repeat: Annotated[
        int, typer.Option(min=1, help="Runs of the oracle and of the no-op: do they agree?")
    ] = 2,
    task: Only = None,
    jobs: Jobs = 2,
    as_json: AsJson = False,
) -> None:
    """Find tasks that no one should train on.

    On each task: the oracle, which must earn 1; an agent that does nothing, three random ones and
    the attacks, which must earn nothing. Exit code 1 if something is found.
    """
    tried = [h for h in HACKS if hacks == "all" or (hacks == "published" and h.pattern)]
    with Sandbox() as box:
        found: list[TaskCheck] = _each(
            _chosen(folder, task),
            jobs,
            lambda one: check_task(one, box, repeat=repeat, hacks=tried),
        )
    if as_json:
        print_json([one.to_json() for one in found])
    else:
        for one in found:
            say(f"{one.task}: {'ok' if not one.findings else 'NOT to be trained on'}")
            for line in (*one.findings, *(f"note: {note}" for note in one.notes)):
                say(f"    {one_line(line)}")
        bad = sum(bool(one.findings) for one in found)
        say(f"{len(found) - bad} of {len(found)} tasks are sound.")
    if any(one.findings for one in found):
        raise typer.Exit(1)


def _chosen(folder: Path, names: list[str] | None) -> list[HarborTask]:
    tasks = load_tasks(folder)
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
