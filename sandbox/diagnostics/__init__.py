"""What a machine offers to sandboxes, whether they hold, and how fast they are."""
