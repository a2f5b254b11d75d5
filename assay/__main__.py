"""``python -m assay`` is ``assay``."""

from .cli import main

main()
