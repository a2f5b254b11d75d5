"""Rewards and verifiers for reinforcement learning: what most people need, by name."""

from __future__ import annotations

__version__ = "0.1.0"
