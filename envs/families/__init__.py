"""The former place of :mod:`assay.envs.puzzles`; it goes with the next version."""
