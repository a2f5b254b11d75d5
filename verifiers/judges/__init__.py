"""Judges: models that score replies where no rule can."""
