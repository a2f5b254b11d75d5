"""Task families: for each, a verifier that takes every valid answer, not only the known one."""
