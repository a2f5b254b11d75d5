"""What starts slots: a file for each way, and :mod:`.registry`, which knows them all."""
