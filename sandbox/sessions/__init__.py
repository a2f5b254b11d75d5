"""Sessions: a container per episode, with commands, a shell and files."""
