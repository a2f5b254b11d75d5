"""What runs inside a slot, sent there as source: standard library only."""
