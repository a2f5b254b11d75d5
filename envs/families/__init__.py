"""Task families: procedural tasks, each with levels, judged by the verifier of the same name."""
