"""A web page in one file that needs no network and runs no script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

from ..verifiers.visible import visible

# Even if a reply found a way to be markup, the browser would run and fetch nothing for it.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_CSS = """
:root { color-scheme: light dark; --line: #8885; --soft: #8881; --good: #2a9d4a; --bad: #d1495b; }
body { font: 15px/1.45 system-ui, sans-serif; margin: 0 auto; max-width: 90rem;
  padding: 1rem clamp(.6rem, 2vw, 2rem) 4rem; }
h1 { font-size: 1.5rem; margin: .4rem 0; overflow-wrap: anywhere; }
h2 { font-size: 1.15rem; margin: 2rem 0 .6rem; border-bottom: 1px solid var(--line); }
h3 { font-size: 1rem; margin: 1rem 0 .3rem; overflow-wrap: anywhere; }
.note { opacity: .75; font-size: .9em; margin: .3rem 0; }
.alarm { border-left: 4px solid var(--bad); background: var(--soft); padding: .4rem .8rem;
  margin: .4rem 0; }
.tiles, .curves, .cards, .tables { display: grid; gap: .8rem; }
.tiles { grid-template-columns: repeat(auto-fill, minmax(9.5rem, 1fr)); margin: 1rem 0; }
.tile { border: 1px solid var(--line); border-radius: 6px; padding: .5rem .7rem; }
.tile b { display: block; font-size: 1.25rem; font-weight: 600; }
.tile span { opacity: .75; font-size: .82em; }
.curves { grid-template-columns: repeat(auto-fill, minmax(min(100%, 25rem), 1fr)); }
.tables { grid-template-columns: repeat(auto-fit, minmax(min(100%, 22rem), 1fr));
  align-items: start; }
figure { margin: 0; border: 1px solid var(--line); border-radius: 6px; padding: .5rem; }
figcaption { font-weight: 600; font-size: .92em; overflow-wrap: anywhere; }
svg { width: 100%; height: auto; display: block; }
table { border-collapse: collapse; font-size: .9em; }
th, td { text-align: left; padding: .22rem .8rem .22rem 0; border-bottom: 1px solid var(--line);
  vertical-align: top; overflow-wrap: anywhere; font-variant-numeric: tabular-nums; }
.cards { grid-template-columns: repeat(auto-fill, minmax(min(100%, 15rem), 1fr)); }
.card { border: 1px solid var(--line); border-left: 5px solid var(--line); border-radius: 6px;
  padding: .4rem .6rem; min-width: 0; }
.card.up { border-left-color: var(--good); }
.card.down { border-left-color: var(--bad); }
.card .why { font-size: .82em; opacity: .8; overflow-wrap: anywhere; }
pre { font: .85em/1.4 ui-monospace, monospace; white-space: pre-wrap; overflow-wrap: anywhere;
  margin: .3rem 0; max-height: 16rem; overflow-y: auto; unicode-bidi: isolate; }
pre.prompt { background: var(--soft); padding: .4rem .6rem; border-radius: 6px; }
details { margin: .5rem 0; }
summary { cursor: pointer; font-weight: 600; }
"""


def safe(text: object) -> str:
    """Escape any text for HTML, and make invisible characters visible."""
    return escape(visible(str(text)))


def page(title: str, parts: Iterable[str]) -> str:
    """Return a whole page; the parts are HTML already."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{safe(title)}</title>\n<style>{_CSS}</style>\n</head>\n<body>\n"
        f"<h1>{safe(title)}</h1>\n" + "\n".join(parts) + "\n</body>\n</html>\n"
    )


def table(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Return a table of texts."""
    head = "".join(f"<th>{safe(cell)}</th>" for cell in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{safe(cell)}</td>" for cell in row) + "</tr>\n" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def tiles(numbers: Iterable[tuple[str, str]]) -> str:
    """Return the most important numbers as boxes, from names and values."""
    boxes = (
        f'<div class="tile"><b>{safe(value)}</b><span>{safe(name)}</span></div>'
        for name, value in numbers
    )
    return f'<div class="tiles">{"".join(boxes)}</div>'


def figures(pictures: Iterable[tuple[str, str]]) -> str:
    """Return titled ``<svg>`` elements side by side."""
    boxes = (
        f"<figure><figcaption>{safe(title)}</figcaption>{svg}</figure>" for title, svg in pictures
    )
    return f'<div class="curves">{"".join(boxes)}</div>'


def note(text: str) -> str:
    """Return a paragraph in small print."""
    return f'<p class="note">{safe(text)}</p>'


def folded(title: str, inside: str, *, shown: bool = False) -> str:
    """Return HTML that a click unfolds."""
    return f"<details{' open' * shown}><summary>{safe(title)}</summary>{inside}</details>"


def duration(seconds: float) -> str:
    """Format seconds as ``41 s``, ``12 min 5 s`` or ``3 h 20 min``."""
    whole = round(seconds)
    if whole < 60:
        return f"{seconds:.3g} s" if seconds < 10 else f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"
