"""For each puzzle a verifier that takes every right answer, not only the known one."""
