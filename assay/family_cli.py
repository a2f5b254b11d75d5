"""``assay family``: every system of the GRPO family, trained small and measured."""

from __future__ import annotations

import ast
import importlib
import sys
from collections.abc import Iterable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Annotated, get_args

import typer
from rich.table import Table

from .command import Command
from .console import add_row, err, out, progress, say
from .study import Measured, Results, Study
from .study.claims import Verdict, Word, agreed, verdicts
from .study.measured import by_arm, read_measured, write_measured
from .study.page import gain_of, rows_of, section
from .study.picture import draw_overview, draw_study
from .study.run import ArmFailed, run_study
from .study.study import is_decided
from .verifiers.atomic_io import write_text
from .verifiers.nearest import did_you_mean

PACKAGE = "assay.family"
OTHER_SEEDS = "measured/other_seeds"
family_app = typer.Typer(
    help="Train each system of the GRPO family small, beside its rivals.",
    epilog="Example: assay family run dapo --short",
    no_args_is_help=True,
)


def studies() -> dict[str, Path]:
    """Return the file of each study by name."""
    folders = importlib.import_module(PACKAGE).__path__
    files = sorted(path for folder in folders for path in Path(folder).glob("[!_]*.py"))
    return {path.stem: path for path in files}


def load(name: str) -> Study:
    """Import a study.

    Raises:
        ValueError: there is none of that name.
    """
    if name not in studies():
        near = did_you_mean(name, studies(), "See: assay family list")
        raise ValueError(f"no study is named {name!r}. {near}")
    study: Study = importlib.import_module(f"{PACKAGE}.{name}").STUDY
    return study


def measured_before(name: str, folder: str = "measured") -> list[Measured]:
    """Return the results that ship with a study, if any; ``OTHER_SEEDS`` has a second run's."""
    path = studies()[name].parent / folder / f"{name}.json"
    return read_measured(path) if path.exists() else []


@family_app.command("list", cls=Command, epilog="Example: assay family list")
def list_command() -> None:
    """Show every study, with what its arms took when they were last measured in full."""
    table = Table("name", "what it shows", "runs", "CPU minutes", "peak MiB")
    for name, path in studies().items():
        # Read, not imported: torch would take seconds.
        what = (ast.get_docstring(ast.parse(path.read_text("utf-8"))) or "").partition("\n")[0]
        before = measured_before(name)
        minutes = f"{sum(m.cpu_s for m in before) / 60:.1f}" if before else ""
        peak = f"{max(m.peak_mib for m in before):.0f}" if before else ""
        add_row(table, name, what, str(len(before) or ""), minutes, peak)
    out.print(table)
    say("Run one: assay family run NAME (in seconds, to see that it works: --short)")


@family_app.command("run", cls=Command, epilog="Example: assay family run dapo --short")
def run_command(
    name: Annotated[
        str | None, typer.Argument(help="A study, as assay family list shows them.")
    ] = None,
    everything: Annotated[
        bool, typer.Option("--all", help="Run every study, then write the page of all.")
    ] = False,
    out_dir: Annotated[
        Path | None,
        typer.Option("--out", "-o", help="Default: runs/family/NAME, or runs/family with --all."),
    ] = None,
    seeds: Annotated[
        int | None, typer.Option(min=1, help="Of each arm; by default what the study asks for.")
    ] = None,
    first_seed: Annotated[int, typer.Option(min=0, help="The least seed.")] = 0,
    short: Annotated[
        bool, typer.Option("--short", help="A few seconds that show the mechanism; one seed.")
    ] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Arms at once; by default one for each core.")
    ] = None,
    arm: Annotated[
        list[str] | None, typer.Option(help="Run only this arm; may be given several times.")
    ] = None,
) -> None:
    """Train every arm of a study, then write its numbers, verdicts and picture.

    Each arm runs with each seed in a process of its own, on one thread. An
    interrupted study continues when it is started again.
    """
    if (name is None) != everything:
        raise typer.BadParameter("give either the name of one study or --all")
    folder = out_dir or Path("runs/family") / (name or "")
    try:
        for one in studies() if name is None else [name]:
            into = folder if name else folder / one
            _run(one, into, 1 if short else seeds, first_seed, short, jobs, arm)
    except ArmFailed as error:
        say(f"error: {error}", to=err)
        raise typer.Exit(1) from None
    if everything:
        page_command(folder / "family.md", folder)


def _run(
    name: str,
    out_dir: Path,
    seeds: int | None,
    first_seed: int,
    short: bool,
    jobs: int | None,
    arms: Sequence[str] | None,
) -> None:
    """Run a study; write ``results.json``, ``section.md`` and ``figure.png`` into a folder."""
    study = load(name)
    unknown = [arm for arm in arms or () if arm not in study.arms]
    if unknown:
        raise ValueError(f"{name} has no arm {unknown[0]!r}: choose of {', '.join(study.arms)}")
    chosen = {arm: i for i, arm in enumerate(study.arms) if not arms or arm in arms}
    wanted = range(first_seed, first_seed + (seeds or study.seeds))
    with progress(refreshes=1) as bar:  # arms take minutes, and the cores
        line = bar.add_task(name, total=len(chosen) * len(wanted))
        found = run_study(
            f"{PACKAGE}.{name}",
            studies()[name],
            chosen,
            out_dir,
            seeds=wanted,
            prepared=study.prepare is not None,
            short=short,
            jobs=jobs,
            on_done=lambda done: bar.update(line, advance=1, description=f"{name}: {done.arm}"),
        )
    write_measured(out_dir / "results.json", found)
    results = by_arm(found)
    picture = draw_study(study, results, out_dir / "figure.png")
    if not arms:
        write_text(out_dir / "section.md", section(name, study, results, picture.name))
    head, rows = rows_of(study, results)
    table = Table(*head, title=study.title)
    for row in rows:
        add_row(table, *row)
    out.print(table)
    if is_decided(study, results):
        decided = Table("claim", "gain [interval]", "verdict")
        for verdict in verdicts(study, results):
            add_row(decided, verdict.claim.text, gain_of(verdict), verdict.word)
        out.print(decided)
    say(f"Picture: {picture}\nNumbers: {out_dir / 'results.json'}")


@family_app.command("page", cls=Command, epilog="Example: assay family page docs/family.md")
def page_command(
    path: Annotated[Path, typer.Argument(help="The Markdown page to write.")],
    results: Annotated[
        Path | None,
        typer.Option(help="The folder of assay family run --all; by default, what is shipped."),
    ] = None,
) -> None:
    """Write the page of all studies, with its pictures in a folder named after it."""
    shown, decided = list(_shown(results)), []
    for name, study, measured, _, found in shown:
        if measured:
            draw_study(study, measured, path.with_suffix("") / f"{name}.png")
        decided += [(study.title, verdict) for verdict in found]
    if decided:
        draw_overview(decided, path.with_suffix("") / "overview.png")
    write_text(path, family_page(path.stem, shown))
    say(f"Page: {path}")


def family_page(folder: str = "family", shown: Iterable[_Shown] | None = None) -> str:
    """Return the page of studies, by default of those that ship; ``folder`` has their pictures."""
    parts, claims = [], 0
    words: list[Word] = []
    for name, study, results, repeated, found in _shown(None) if shown is None else shown:
        claims += len(study.claims)
        words += [verdict.word for verdict in found]
        picture = f"{folder}/{name}.png" if results else None
        parts.append(section(name, study, results, picture, repeated))
    counted = _count(claims, words, folder) if words else ""
    text = (files(f"{__package__}.study") / "family.md").read_text(encoding="utf-8")
    return Template(text).substitute(counted=counted, studies="\n".join(parts))


def _count(claims: int, words: Sequence[Word], folder: str) -> str:
    count = {word: words.count(word) for word in get_args(Word)}
    waiting = claims - len(words)
    return (
        f"Of {claims} claims {count['shown']} are shown, {count['shown against']} are shown "
        f"against, and {count['too small to tell']} are too small to tell or not repeated"
        + (f"; {waiting} wait for their seeds" if waiting else "")
        + f".\n\n![Every claim with its gain and interval]({folder}/overview.png)\n"
    )


_Shown = tuple[str, Study, Results, Results, list[Verdict]]


def _shown(runs: Path | None) -> Iterator[_Shown]:
    """Yield each study's name, the study, results, those of other seeds, and verdicts if decided.

    Where other seeds were run too, a claim has the verdict that both give.
    """
    for name in studies():
        path = None if runs is None else runs / name / "results.json"
        if path is None:
            measured = measured_before(name)
        else:
            measured = read_measured(path) if path.exists() else []
        study, results = load(name), by_arm(measured)
        found = verdicts(study, results) if is_decided(study, results) else []
        repeated = by_arm(measured_before(name, OTHER_SEEDS)) if runs is None else {}
        if found and repeated:
            found = agreed(found, verdicts(study, repeated))
        yield name, study, results, repeated, found


def run_script(file: str) -> None:
    """Run the study that a script holds, as ``assay family run`` does."""
    family_app(["run", Path(file).stem, *sys.argv[1:]], prog_name=Path(file).name)
