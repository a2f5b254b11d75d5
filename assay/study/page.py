"""Render a study as text: what the source says, the load, the numbers and the verdicts."""

from __future__ import annotations

from collections.abc import Sequence

from .claims import Verdict, verdicts
from .measured import Results, means
from .study import Study, is_decided


def rows_of(study: Study, results: Results) -> tuple[list[str], list[list[str]]]:
    """Return a table's head and a row for each arm: mean [least, most] of each value, and cost."""
    found = dict.fromkeys(n for m in results.values() for one in m for n in one.outcome.values)
    columns = [name for name in study.columns or found if name in found]  # its choice, or all
    rows = []
    for arm, measured in results.items():
        values = means(measured)
        cells = [_spread(*values[name]) if name in values else "" for name in columns]
        seconds = sum(m.cpu_s for m in measured) / len(measured)
        peak = max(m.peak_mib for m in measured)
        rows.append([arm, *cells, str(len(measured)), f"{seconds:.0f}", f"{peak:.0f}"])
    return ["arm", *columns, "seeds", "CPU s", "peak MiB"], rows


def section(
    name: str,
    study: Study,
    results: Results,
    picture: str | None,
    repeated: Results | None = None,
) -> str:
    """Render a study's part of the page in Markdown.

    Args:
        name: of the study, as the command line takes it.
        study: the study.
        results: of each arm; none if it was not measured.
        picture: the picture's path from the page.
        repeated: of each arm with other seeds, if the study was run again with them.
    """
    presets = ", ".join(f"`{preset}`" for preset in study.presets)
    named = f" (preset {presets})" if presets else ""
    lines = [f"## {study.title}", "", f"**Source.** {study.source}: {study.says}", ""]
    if study.equation:
        lines += ["```math", study.equation, "```", ""]
    lines += [f"**Load.** {study.load} `assay family run {name}`{named}.", ""]
    lines += [f"**Tried before.** {study.tried}", ""]
    if results:
        head, rows = rows_of(study, results)
        lines += [markdown_row(head), markdown_row(["---"] * len(head)), *map(markdown_row, rows)]
        lines.append("")
        if is_decided(study, results):
            lines += [*claims_table(study, results, repeated), "", study.remark, ""]
        else:
            texts = "; ".join(claim.text for claim in study.claims)
            lines += [f"**Claims**, open until {study.seeds} seeds are run: {texts}.", ""]
    if picture is not None:
        lines += [f"![{study.title}]({picture})", ""]
    return "\n".join(lines)


def claims_table(study: Study, results: Results, repeated: Results | None = None) -> list[str]:
    """Render the gain and the verdict of each claim; with other seeds, what both runs say."""
    head = ["claim", "gain", "verdict"]
    found = verdicts(study, results)
    rows = [[v.claim.text, gain_of(v), word_of(v)] for v in found]
    if repeated:
        head.insert(2, "gain, other seeds")
        for row, one, other in zip(rows, found, verdicts(study, repeated), strict=True):
            row.insert(2, gain_of(other))
            if one.word not in (other.word, "too small to tell"):
                row[-1] = f"{one.word}, and not repeated"
    return [markdown_row(row) for row in (head, ["---"] * len(head), *rows)]


def gain_of(verdict: Verdict) -> str:
    """Return mean and interval: ``+0.05 [0.02, 0.08]``, or ``x4.1 [3.9, 4.3]`` of a ratio."""
    sign = "x" if verdict.claim.ratio else "+" if verdict.mean >= 0 else ""
    return f"{sign}{_number(verdict.mean)} [{_number(verdict.low)}, {_number(verdict.high)}]"


def word_of(verdict: Verdict) -> str:
    """Return the verdict; if it is open, with the size that the seeds rule out."""
    if verdict.word != "too small to tell":
        return f"**{verdict.word}**"
    most = max(abs(verdict.low), abs(verdict.high))
    return f"too small to tell (below {'x' if verdict.claim.ratio else ''}{_number(most)})"


def markdown_row(cells: Sequence[str]) -> str:
    """Return a row of a Markdown table."""
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


def _spread(mean: float, least: float, most: float) -> str:
    if least == most:
        return _number(mean)
    return f"{_number(mean)} [{_number(least)}, {_number(most)}]"


def _number(x: float) -> str:
    if x == 0 or 0.01 <= abs(x) < 10:
        return f"{x:.3f}".rstrip("0").rstrip(".") if x != round(x) else f"{x:.0f}"
    return f"{x:,.0f}" if abs(x) >= 1000 else f"{x:.3g}"
