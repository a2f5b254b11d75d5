"""Sampling: from conversations to replies with their tokens."""
