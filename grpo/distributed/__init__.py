"""More than one process: who does what, and how it comes together."""
