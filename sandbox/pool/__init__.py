"""Warm slots, and what keeps them busy."""
