"""Watching a run: its log, progress and pictures."""
