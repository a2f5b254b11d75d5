"""Programming languages, and how programs in them are compiled and run."""
