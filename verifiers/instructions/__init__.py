"""Instructions: constraints on a reply that a rule can check."""
