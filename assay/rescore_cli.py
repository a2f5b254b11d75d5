"""``assay rescore``: judge the replies of a run again."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Annotated, Any

from typer import Argument, Option

from .arguments import ByOption, settings
from .console import AsJson, err, say
from .diff_cli import show_difference
from .envs import EnvSpec, EpisodeGroup, Task, TextEnv
from .eval_cli import finish, play, refuse_by
from .evaluation import (
    Plan,
    RunWriter,
    Tally,
    data_record,
    difference,
    environment_record,
    many_answers,
    read_groups,
    read_plan,
    read_rubric,
    rescored,
    rescored_plan,
    task_now,
    with_references_of,
)
from .naming import found_here, make_to_judge
from .sandbox.redaction import redacted_paths


def rescore_command(
    run: Annotated[Path, Argument(help="The directory of a run.")],
    out_path: Annotated[
        Path | None, Option("--out", "-o", help="Directory of the new run. Default: RUN-rescored.")
    ] = None,
    resume: Annotated[bool, Option(help="Resume an interrupted run.")] = False,
    references: Annotated[
        bool,
        Option(
            "--references",
            help="Use the current references of the environment's data (--set data=... for "
            "other data) instead of the run's.",
        ),
    ] = False,
    setting: Annotated[
        list[str] | None,
        Option("--set", help="Another argument of the environment: weights, percent=value."),
    ] = None,
    rubric: Annotated[
        str | None, Option(help='Another verifier: JSON ({"name": "Math", ...}) or a file of it.')
    ] = None,
    show: Annotated[int, Option(min=0, help="Changed verdicts to show.")] = 10,
    by: ByOption = None,
    as_json: AsJson = False,
) -> None:
    """Score a run's replies again, without sampling.

    The verifier is the current one, or another. Exit code 1: some replies have no score.
    """
    plan = read_plan(run)
    refuse_by(by, (group.task for group in read_groups(run)))
    made, record = _environment(plan, settings(setting or []))
    if rubric is not None:
        made.close()
        made = TextEnv(made.source, read_rubric(rubric), name=made.name)
    directory = out_path or run.with_name(f"{run.name}-rescored")
    tally = Tally(many_answers=many_answers(made.rubric), by=by)
    try:
        tasks, data = _tasks(run, made, plan, references)
        new = rescored_plan(plan, str(run), made, record, data)
        with RunWriter(directory, new, resume=resume) as writer:
            stored = _Stored(islice(_groups(run, made, references), writer.done, None))
            play(made, stored, tasks, [1] * len(tasks), writer, tally, judge=rescored)
    finally:
        made.close()
    found = difference(read_groups(run), read_groups(directory))
    if not as_json:
        show_difference(found, show, "before", "now")
    finish(directory, tally, plan.seed, as_json=as_json)


def _environment(plan: Plan, changes: dict[str, Any]) -> tuple[TextEnv, dict[str, Any]]:
    """Make the run's environment again, with its record."""
    record = plan.environment
    kwargs = {**record["kwargs"], **changes}
    name = record["id"]
    spec = record["spec"]
    for path in redacted_paths({**(spec or {"kwargs": {}})["kwargs"], **kwargs}):
        raise ValueError(
            f"{path} is a secret, which the run does not keep: give it again with --set"
        )
    if spec is not None:
        found_here(f"{spec['module']}:")
    subject = EnvSpec.from_json(spec) if spec is not None else found_here(name)
    made, kwargs = make_to_judge(subject, kwargs, answers=True)
    return made, environment_record(name, kwargs, made)


def _groups(run: Path, env: TextEnv, references: bool) -> Iterator[EpisodeGroup]:
    groups = read_groups(run)
    return with_references_of(env, groups) if references else groups


def _tasks(
    run: Path, env: TextEnv, plan: Plan, references: bool
) -> tuple[list[Task], dict[str, Any]]:
    """Return the tasks that replies are judged by, and their record; tell of other references."""
    tasks = [group.task for group in _groups(run, env, references)]
    whole = plan.data["tasks"]
    if len(tasks) < whole:
        say(f"{run} is not complete: {len(tasks):,} of {whole:,} tasks are there.", to=err)
    if references:
        return tasks, {**data_record(tasks), "tasks": whole}
    now = [(task, task_now(env, task)) for task in tasks]
    other = [task.id for task, new in now if new and new.reference != task.reference]
    if other:
        say(
            f"{len(other):,} tasks have another reference in the data now, such as {other[0]}; "
            "replies are judged by those of the run. --references takes the new ones.",
            to=err,
        )
    return tasks, dict(plan.data)


@dataclass(frozen=True)
class _Stored:
    """The groups of a run, as a policy that plays them again."""

    groups: Iterator[EpisodeGroup]

    def play(self, tasks: Sequence[Task], count: int, seed: int, /) -> list[EpisodeGroup]:
        return list(islice(self.groups, len(tasks)))

    def describe(self) -> dict[str, Any]:
        return {}
