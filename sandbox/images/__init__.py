"""What container images hold, and how they are built."""
