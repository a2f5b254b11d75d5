"""Judges: models that score replies if no rule can."""
