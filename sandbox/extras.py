"""Packages that only some parts need: what to install if one is missing."""

from __future__ import annotations


def missing_package(user: str, extra: str, error: ImportError) -> ImportError:
    """Return an error that names the package and the command that installs it.

    Args:
        user: what needs it, as the subject of "needs".
        extra: the extra of this project that has it; several with commas between.
        error: the failed import.
    """
    absent = isinstance(error, ModuleNotFoundError) and error.name
    reason = f"{error.name}, which is not installed" if absent else f"more packages ({error})"
    return ModuleNotFoundError(
        f"{user} needs {reason}: run pip install '.[{extra}]' in a checkout of Assay",
        name=error.name,
    )
